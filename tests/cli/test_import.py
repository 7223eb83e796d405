"""`truename import`: another gateway's file becomes ours, its names stay, and what is lost is listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from tests.clients.importers.samples import SAMPLES
from truename.catalog import Catalog
from truename.config import Config, load
from truename.naming import project

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cli.conftest import Run
    from truename.identity import ToolId

ENVIRON = dict.fromkeys(["TICKETS_TOKEN", "PATH", "TOKEN", "TICKETS_FASTMCP_TOKEN"], "x")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TICKETS_TOKEN", raising=False)


def sample(kind: str, name: str = "gateway.json", **changes: object) -> Path:
    path = Path(name)
    path.write_text(json.dumps(SAMPLES[kind] | changes), "utf-8")
    return path


def imported(name: str = "truename.toml") -> Config:
    return load(name, ENVIRON)


@pytest.mark.parametrize("kind", SAMPLES)
def test_every_gateways_file_becomes_one_that_is_read(run: Run, kind: str) -> None:
    outcome = run("import", sample(kind), "--json")

    assert outcome.status == (0 if kind == "docker" else 1), outcome.err
    assert outcome.document["from"] == [{"file": "gateway.json", "kind": kind}]
    assert "tickets" in [server.key for server in imported().servers]


@pytest.mark.parametrize("kind", ["toolhive", "contextforge", "fastmcp"])
def test_names_that_were_given_there_are_given_here(run: Run, kind: str) -> None:
    run("import", sample(kind))
    config = imported()
    tools = {"toolhive": "createTicket"}.get(kind, "create")
    catalog = Catalog.from_mcp({"tickets": [tools, "other"], "clock": ["now"]}, aliases=config.settings.aliases)
    overrides = cast("Mapping[str, Mapping[ToolId | str, str]]", config.settings.overrides)
    names = project(catalog, "universal", overrides=overrides, server_name="tn")

    assert ("tickets_new_ticket" if kind == "fastmcp" else "new_ticket") in names.values()


def test_a_display_name_that_litellm_ignores_in_its_file_is_listed_and_given_to_nothing(run: Run) -> None:
    outcome = run("import", sample("litellm"), "--json")
    finding = next(one for one in outcome.document["left"] if one["where"].endswith("tool_name_to_display_name"))

    assert outcome.document["overrides"] == {}
    assert "LiteLLM ignores it in its file" in finding["fact"]


def test_a_name_that_is_not_legal_here_is_listed_and_not_declared(run: Run) -> None:
    outcome = run("import", sample("toolhive"), "--json")
    (finding,) = [one for one in outcome.document["left"] if one["rule"] == "rename"]

    assert outcome.document["overrides"] == {"universal": {"tickets@1/createticket@1": "new_ticket"}}
    assert "'Close!'" in finding["fact"]
    assert finding["where"] == "tools_override.closeTicket.name"


def test_a_name_that_two_tools_have_is_declared_once(run: Run) -> None:
    twice = {"a": {"name": "same"}, "b": {"name": "same"}}
    outcome = run("import", sample("toolhive", tools_override=twice), "--json")

    assert outcome.document["overrides"] == {"universal": {"tickets@1/a@1": "same"}}
    assert "has that name" in next(one["fact"] for one in outcome.document["left"] if one["rule"] == "rename")


def test_aliases_come_over(run: Run) -> None:
    run("import", sample("litellm"))

    assert imported().settings.aliases == {"tickets": "tk"}


def test_an_alias_that_is_none_is_listed(run: Run) -> None:
    settings = {"mcp_aliases": {"two words": "tickets"}}
    outcome = run("import", sample("litellm", litellm_settings=settings), "--json")

    assert outcome.document["aliases"] == {}
    assert any("'two words'" in one["fact"] for one in outcome.document["left"])


def test_a_secret_of_another_store_is_not_said_to_be_in_the_file(run: Run) -> None:
    out = run("import", sample("toolhive")).out

    assert "its value is in" not in out
    assert "only the program that wrote the file can fill in" in out


def test_several_files_become_one_configuration(run: Run) -> None:
    run("import", sample("toolhive"), sample("fastmcp", "b.json"))

    assert [server.key for server in imported().servers] == ["tickets", "tickets-fastmcp", "clock"]
    assert imported().settings.overrides["universal"] == {
        "tickets@1/createticket@1": "new_ticket",
        "tickets-fastmcp@1/create@1": "tickets_new_ticket",
    }


def test_the_summary_lists_what_is_left_and_what_has_to_be_set(run: Run) -> None:
    out = run("import", sample("toolhive")).out

    for text in (
        "Not imported",
        "tools_filter",
        "permission_profile",
        "TICKETS_TOKEN",
        "truename serve truename.toml",
    ):
        assert text in out


def test_values_stay_where_they_are_unless_they_are_to_be_copied(run: Run) -> None:
    outcome = run("import", sample("metamcp"))
    assert "abcdef123456" not in Path("truename.toml").read_text("utf-8") + outcome.out + outcome.err

    run("import", sample("metamcp"), "--copy-secrets", "--out", "other.toml")
    servers = {server.key: server for server in load("other.toml", {}).servers}
    assert servers["tickets"].headers == {"Authorization": "Bearer abcdef123456"}


def test_a_dry_run_writes_nothing(run: Run) -> None:
    outcome = run("import", sample("ubie"), "--dry-run")

    assert outcome.out.startswith("#:schema")
    assert sorted(path.name for path in Path.cwd().iterdir() if path.is_file()) == ["gateway.json"]


def test_what_is_there_is_not_overwritten(run: Run) -> None:
    Path("truename.toml").write_text("# mine\n", "utf-8")

    assert run("import", sample("ubie")).status == 2
    assert Path("truename.toml").read_text("utf-8") == "# mine\n"


REFUSED = [
    ([], "no FILE"),
    (["absent.json"], "cannot be read"),
    (["plain.json"], "plain mcpServers"),
    (["plain.json", "--from", "kong"], "not a known gateway"),
    (["openapi.json"], "can be imported"),
    (["empty.json"], "has no servers"),
]


@pytest.mark.parametrize(("words", "fact"), REFUSED, ids=[fact for _, fact in REFUSED])
def test_what_can_not_be_used_is_told(run: Run, words: list[str], fact: str) -> None:
    Path("plain.json").write_text('{"mcpServers": {"a": {"command": "x"}}}', "utf-8")
    Path("openapi.json").write_text('{"mcp_servers": {"a": {"url": "http://x", "spec_path": "y"}}}', "utf-8")
    Path("empty.json").write_text('{"mcp_servers": {}}', "utf-8")

    outcome = run("import", *words)

    assert outcome.status == 2
    assert fact in outcome.err
    assert not Path("truename.toml").exists()
