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


NUL, HALF = "a\\u0000b", '"\\ud800"'
# The gateway, a file whose only server is bad, and the place that is told.
BAD: list[tuple[str, str, str]] = [
    ("toolhive", '{"transport": "stdio",\n"name": 7}', ":2:1 (name)"),
    ("toolhive", f'{{"transport": "stdio",\n"image": "x", "env_vars": {{"A": "{NUL}"}}}}', ":1:1"),
    ("litellm", '{"mcp_servers": {\n"a": 7}}', ":2:1 (mcp_servers.a)"),
    ("litellm", '{"mcp_servers": {"a": {"url": "x",\n"transport": "pipe"}}}', ":2:1 (mcp_servers.a.transport)"),
    ("litellm", '{"mcp_servers":\n[]}\n', "has no servers"),
    ("contextforge", '{"entities": {"gateways": [\n{"name": "a"}]}}', ":2:1 (entities.gateways[0])"),
    ("agentgateway", '{"mcp": {"targets": [\n{"name": "a", "openapi": {}}]}}', ":2:1 (mcp.targets[0])"),
    ("docker", f'{{"registry": {{"b": \n{{"image": "{NUL}"}}}}}}', ":2:2 (registry.b.image)"),
    ("mcpproxy", '{"mcpServers": [{"name": "a"},\n7]}', ":1:17 (mcpServers[0])"),
    ("ubie", f'{{"mcpServers": {{\n"a": {{"command": {HALF}}}}}}}', "gateway.json"),
    ("mcphub", '{"mcpServers": {\n"a.b": {"command": 7}}}', ":2:1 (mcpServers.a.b)"),
    ("1mcp", '{"mcpServers": {\n"a": {"command": ["x"]}}}', ":2:1 (mcpServers.a)"),
    ("metamcp", '{"mcpServers": {\n"": {"type": "carrier pigeon"}}}', ":2:6 (mcpServers..type)"),
    ("fastmcp", '{"mcpServers": {"a": {"url": "x",\n"transport": "pipe"}}}', ":2:1 (mcpServers.a.transport)"),
    ("fastmcp", '{"mcpServers": {"a": {},\n"a": {}}}', "line 2, column 1"),
]


@pytest.mark.parametrize(("kind", "text", "place"), BAD)
def test_what_is_wrong_in_a_file_is_told_with_its_line(run: Run, kind: str, text: str, place: str) -> None:
    Path("gateway.json").write_text(text, "utf-8")
    outcome = run("import", "gateway.json", "--from", kind)

    assert outcome.status == 2
    assert "gateway.json" in outcome.err
    assert place in outcome.err


def test_what_is_left_is_told_with_its_line(run: Run) -> None:
    Path("gateway.json").write_text('{"mcp_servers": {\n"a": 7,\n"b": {"url": "http://x"}}}', "utf-8")
    outcome = run("import", "gateway.json", "--json")
    (finding,) = outcome.document["left"]

    assert (finding["file"], finding["line"], finding["column"]) == ("gateway.json", 2, 1)
    assert "gateway.json:2:1" in run("import", "gateway.json", "--force").out


def test_an_entry_that_is_left_out_is_told_with_its_line(run: Run) -> None:
    text = f'{{"mcp_servers": {{\n"a": {{"command": "{NUL}"}},\n"b": {{"url": "http://x"}}}}}}'
    Path("gateway.json").write_text(text, "utf-8")
    outcome = run("import", "gateway.json", "--json")

    assert [(one["where"], one["line"]) for one in outcome.document["refused"]] == [("mcp_servers.a", 2)]
    assert "gateway.json:2:1 (mcp_servers.a) was left out" in run("import", "gateway.json", "--force").err


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
