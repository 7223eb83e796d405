"""A client as its user connects it: what is drawn, and what is told when something goes wrong."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import pytest

from lab import clients, configured, connecting, places, sandbox
from lab.__main__ import main
from lab.clients import Client
from lab.configured import Refused, Way
from lab.connecting import Connected, Order, Round, Stocked, stocked
from lab.drivers import Launch, Stage
from lab.drivers.stage import write_json
from tests.shared import shared

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEEDS = range(40)
FILE = ".cline/data/settings/cline_mcp_settings.json"
SMALL = Client(
    name="small", title="Small", dialect="cline", kind="python", driver="small", folder="small", packages=("small==1",)
)
STOCK = Stocked(
    servers=(("git", ("search", "get.file")), ("wiki", ("search", "drop_page", "get_page"))),
    refused=Refused("wiki", ("drop_page",), ("search", "get_page")),
    shared="search",
    new=("get_page", "get_file"),
)
RIGHT = Connected(
    client="codex",
    version="1",
    seed=7,
    servers=3,
    tools=20,
    refused=2,
    entries=(),
    rounds=(Round(name="bare", tools=18, lost=("a b is not shown",)), Round(name="connected", tools=18)),
    broken=(),
)


def _launch(stage: Stage) -> Launch:
    entries = {entry.key: {"type": "streamableHttp", "url": entry.url} for entry in stage.servers}
    path = write_json(stage.home / FILE, {"mcpServers": entries})
    told = json.dumps({"model": stage.model, "file": str(path)})
    return Launch(command=(sys.executable, "-m", "tests.lab.small_client", told), env={"PYTHONPATH": str(places.ROOT)})


def test_a_client_that_runs_what_its_user_refuses_is_found_and_all_else_holds_through_every_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def driver(_: str) -> Callable[[Stage], Launch]:
        return _launch

    # Its list is written nowhere, as by a client that reads another file.
    way = Way(client="cline", files=(FILE,), refuse=lambda _, __: None)
    monkeypatch.setattr(configured, "driver", driver)
    monkeypatch.setattr(clients, "get", lambda _: SMALL)
    monkeypatch.setattr(connecting, "stocked", lambda _: STOCK)
    monkeypatch.setattr(connecting, "WAYS", {"small": way})

    made = connecting.play(Order(client="small", seed=1), tmp_path)

    assert made.broken == ()
    assert [one.name for one in made.rounds] == ["bare", "connected", "restarted", "new tool", "renamed"]
    assert [(one.lost, one.misrouted) for one in made.rounds] == [((), ())] * 5
    assert [one.allowed for one in made.rounds] == [("wiki drop_page ran",)] * 5
    assert [one.tools for one in made.rounds] == [4, 4, 4, 6, 6]
    assert made.entries == ("/mcp/for/cline/only/git", "/mcp/for/cline/only/wiki")
    assert not made.is_right


@pytest.mark.parametrize("seed", SEEDS)
def test_a_draw_has_three_to_five_servers_with_a_name_in_common_and_short_keys(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUENAME_SHARED", str(shared("corpus", "open.jsonl.gz").parent.parent))
    stock = stocked(seed)
    by_key = dict(stock.servers)
    first, second, *_ = by_key

    assert stock == stocked(seed)
    assert 3 <= len(by_key) == len(stock.servers) <= 5
    assert all(re.fullmatch(r"[a-z0-9]+([-_][a-z0-9]+)?", key) for key in by_key)
    assert stock.shared in by_key[first]
    assert stock.shared in by_key[second]
    assert stock.refused.key != first
    assert {*stock.refused.tools, *stock.refused.others} == set(by_key[stock.refused.key])
    assert stock.new
    assert not set(stock.new) & set(by_key[first])


def _play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, made: Connected) -> None:
    def ended(command: list[str], **_: object) -> sandbox.Ended:
        (tmp_path / "runs" / "codex" / "connect-7" / "connected.json").write_text(json.dumps(asdict(made)))
        assert command
        return sandbox.Ended(0)

    monkeypatch.setenv("TRUENAME_LAB", str(tmp_path))
    monkeypatch.setattr(sandbox, "run", ended)
    monkeypatch.setattr(Client, "installed", clients.get("codex").version)


@pytest.mark.parametrize(
    ("made", "status"),
    [
        (RIGHT, 0),
        (replace(RIGHT, broken=("disconnect left a file otherwise",)), 1),
        (replace(RIGHT, rounds=(Round(name="connected", tools=18, allowed=("a b ran",)),)), 1),
    ],
    ids=["what goes wrong bare only", "a file that is not given back", "a refused tool that ran"],
)
def test_the_exit_status_says_whether_anything_went_wrong_once_connected(
    made: Connected, status: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _play(monkeypatch, tmp_path, made)

    assert main(["connect", "codex", "--seed", "7"]) == status
    said = capsys.readouterr()
    assert said.out.startswith("codex 1, seed 7: 20 tools of 3 servers, 2 refused; connected, 1 run")
    assert said.err == "seed 7\n"
    assert main(["connect", "codex", "--seed", "7", "--json"]) == status
    assert json.loads(capsys.readouterr().out) == [json.loads(json.dumps(asdict(made))) | {"right": not status}]


def test_a_client_whose_configuration_connect_does_not_write_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connect", "fastmcp"]) == 2
    assert capsys.readouterr().err.startswith("fastmcp keeps no file that `truename connect` writes. There are ")
