"""Laws about the names in clients' files: what is told to be missing exists nowhere, and what is shown passes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from truename import Catalog, Ledger, dialects, project, resolve
from truename.clients.existing_tools import ExistingTools, GatewayTools
from truename.clients.kept_names import sanitized_forms
from truename.clients.name_findings import judge_files
from truename.clients.named_files import ProjectServers, read_named_file
from truename.config import Config, ServerConfig, Settings
from truename.errors import ResolutionError
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from truename import NameTable, ToolId
    from truename.conventions import Finding

KEYS = st.sampled_from(["git", "git_hub", "a", "a__b", "my server", "g.h", "A", "mcp"])
WORDS = st.sampled_from(["log", "b", "c", "list", "Read", "b__c", "fs.read", "get-x", "log_list", "x_", "_y", "tool"])
TOOLS = st.builds("".join, st.lists(WORDS, min_size=1, max_size=3)) | WORDS
CATALOGS = st.dictionaries(KEYS, st.lists(TOOLS, min_size=1, max_size=4, unique=True), min_size=1, max_size=4)
ANY = st.builds("mcp__{}__{}".format, KEYS, st.lists(WORDS, min_size=1, max_size=3).map("_".join))
STYLE = {True: "on-conflict", False: "prefixed"}
LAW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def findings(root: Path, names: Iterable[str], known: ExistingTools) -> list[Finding]:
    """Judge these names in the list of an agent."""
    path = root / ".claude" / "agents" / "a.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("---\ntools:\n" + "".join(f"  - {json.dumps(name)}\n" for name in names) + "---\n", "utf-8")
    servers = ProjectServers(known.listed)
    (judged,) = judge_files([read_named_file(path, servers)], known, servers)
    return list(judged.findings)


def missing(found: Iterable[Finding]) -> set[str]:
    return {one.tools[0] for one in found if one.rule.name == "missing_tool"}


def exists(name: str, catalog: Mapping[str, Iterable[str]]) -> bool:
    """Return whether a name is that of a tool in any spelling, however it is split into server and tool."""
    starts = (
        (f"mcp__{form}__", tool) for key, tools in catalog.items() for form in sanitized_forms(key) for tool in tools
    )
    return any(name.startswith(start) and fold(name.removeprefix(start)) == fold(tool) for start, tool in starts)


@LAW
@given(catalog=CATALOGS, names=st.lists(ANY, max_size=8, unique=True))
@example(catalog={"a": ["b__c"], "a__b": ["d"]}, names=["mcp__a__b__c"])
def test_what_is_missing_is_in_no_catalogue_and_every_tool_passes(
    catalog: dict[str, list[str]], names: list[str], tmp_path: Path
) -> None:
    known = ExistingTools.of((key, tool) for key, tools in catalog.items() for tool in tools)

    told = missing(findings(tmp_path, names, known))
    assert [name for name in told if exists(name, catalog)] == []

    shown = [
        rules.shown(key, tool)
        for rules in dialects.versions("claude-code")
        for key, tools in catalog.items()
        for tool in tools
    ]
    assert findings(tmp_path, [name for name in shown if name], known) == []


@LAW
@given(catalog=CATALOGS, names=st.lists(ANY, max_size=8, unique=True))
def test_what_is_missing_at_the_gateway_resolves_to_nothing_and_every_name_that_it_shows_passes(
    catalog: dict[str, list[str]], names: list[str], tmp_path: Path
) -> None:
    url = "http://127.0.0.1:8750/mcp"
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"tn": {"type": "http", "url": url}}}), "utf-8")
    servers = tuple(ServerConfig(key=key, command="x") for key in catalog)
    ledger = Ledger.memory()
    table = project(Catalog.from_mcp(catalog, strict=False), "universal", ledger=ledger, style=STYLE[len(catalog) == 1])
    known = ExistingTools.of((), [GatewayTools(Config(servers=servers, settings=Settings(state="memory")), ledger)])

    wires = [f"mcp__tn__{name.removeprefix('mcp__')}" for name in names]
    for text in missing(findings(tmp_path, wires, known)):
        assert resolved(table, text.removeprefix("mcp__tn__")) is None

    rules = dialects.get("claude-code")
    shown = [name for wire in table.values() if (name := rules.shown("tn", wire))]
    assert findings(tmp_path, shown, known) == []


def resolved(table: NameTable, text: str) -> ToolId | None:
    try:
        return resolve(text, table).id
    except ResolutionError:
        return None
