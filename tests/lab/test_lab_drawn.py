"""Catalogues drawn from the collection of real ones, and what clients do with them beside what the table says."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from lab import clients, compare, drawing, places, results, runner
from lab.__main__ import main
from lab.drawing import drawn
from lab.results import SeenTool, Trial
from lab.scenarios import parts, scenario
from tests.shared import shared

if TYPE_CHECKING:
    from pathlib import Path

    from lab.trial import Order

SEEDS = range(40)


@pytest.fixture(autouse=True)
def collection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRUENAME_SHARED", str(shared("corpus", "open.jsonl.gz").parent.parent))


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(compare, "NOTES", tmp_path / "drawn.json")
    return tmp_path / "drawn.json"


def test_a_seed_draws_the_same_catalogues_every_time_and_another_seed_others() -> None:
    assert drawn(7) == drawn(7)
    assert len({drawn(seed) for seed in SEEDS}) == len(SEEDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_draw_has_a_name_on_two_servers_an_odd_name_and_a_long_one(seed: int) -> None:
    servers = scenario(f"drawn/{seed}").servers
    names = [name for server in servers for name in server.names]

    assert len({server.key for server in servers}) == len(servers) >= 4
    assert all(0 < len(server.names) <= 15 for server in servers)
    assert len({name for server in servers for name in set(server.names)}) < sum(len(set(s.names)) for s in servers)
    assert any(not re.fullmatch(r"[a-zA-Z][a-zA-Z0-9]*([_-][a-zA-Z0-9]+)*", name) for name in names)
    assert any(len(name) > 40 for name in names)


def test_where_a_draw_fails_as_a_whole_each_catalogue_is_played_alone_under_a_harmless_key() -> None:
    servers = scenario("drawn/7").servers

    assert [scenario(name).servers for name in parts("drawn/7")] == [
        (type(server)("lab", server.names),) for server in servers
    ]
    assert parts("many") == ()


def _play(monkeypatch: pytest.MonkeyPatch, **otherwise: str) -> None:
    """Have clients show every name as it is, but for those that are said."""

    def played(order: Order) -> Trial:
        tools = tuple(
            SeenTool(server=server.key, upstream=name, shown=otherwise.get(name, name))
            for server in scenario(order.scenario).servers
            for name in server.names
        )
        return Trial(scenario=order.scenario, mode=order.mode, tools=tools)

    monkeypatch.setattr(runner, "played", played)
    fastmcp = clients.get("pydantic-ai-prefix")
    monkeypatch.setattr(type(fastmcp), "installed", fastmcp.version)


def test_a_client_that_does_something_else_is_found_and_noted(
    notes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _play(monkeypatch)

    assert main(["compare", "pydantic-ai-prefix", "--drawn", "2", "--seed", "7", "--bare", "--note"]) == 1

    said, version = capsys.readouterr().out, clients.get("pydantic-ai-prefix").version
    assert said.startswith("seeds 7 to 8\n")
    assert f"pydantic-ai-prefix {version} on seed 8: " in said
    assert "drawn/7, bare, (" in said
    first, second = json.loads(notes.read_text("utf-8"))
    assert (first["client"], first["version"], first["seed"], second["seed"]) == ("pydantic-ai-prefix", version, 7, 8)
    assert first["servers"] == len(scenario("drawn/7").servers)
    assert first["differ"] == first["tools"] == sum(len(server.names) for server in scenario("drawn/7").servers)


def test_without_a_seed_one_is_drawn_and_said(
    notes: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _play(monkeypatch)
    said = []
    for _ in range(3):
        main(["compare", "pydantic-ai-prefix", "--drawn", "1", "--bare"])
        found = re.match(r"seed (\d+)\npydantic-ai-prefix [\d.]+ on seed \1: ", capsys.readouterr().out)
        assert found
        said.append(found[1])

    assert len(set(said)) > 1
    assert not notes.exists()


def test_without_the_collection_nothing_is_drawn_and_the_way_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawing._catalogues.cache_clear()
    monkeypatch.setenv("TRUENAME_SHARED", str(tmp_path))
    assert main(["compare", "--drawn", "1"]) == 2
    assert "TRUENAME_SHARED says where" in capsys.readouterr().err


def test_the_results_of_one_client_can_be_compared_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "codex"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"codex [\d.]+: [\d,]+ tools compared, 0 differ", line)
    assert main(["compare", "codx"]) == 2


def test_what_is_noted_of_draws_is_of_versions_that_have_results_and_nothing_differs() -> None:
    there = {(run.client, run.version) for run in results.load_all()}
    seeds = {note.seed for note in compare.noted()}

    assert len(seeds) >= 2
    for note in compare.noted():
        assert (note.client, note.version) in there
        assert (note.differ, note.tools > 0) == (0, True)
    for seed in seeds:
        assert len([note for note in compare.noted() if note.seed == seed]) >= 20
    assert (places.ROOT / "lab" / "drawn.json").is_file()
