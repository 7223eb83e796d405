"""ToolHive: overrides of a virtual MCP server, and the operator's MCPToolConfig, as its validation wants them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.clients.exporters.lists import LISTS, exported, real, table


def aggregation(export: Any) -> dict[str, Any]:
    found: dict[str, Any] = export.documents["vmcp.yaml"]["aggregation"]
    return found


def resolved(section: dict[str, Any], lists: dict[str, list[str]]) -> dict[tuple[str, str], str]:
    """Apply the overrides as ToolHive does: twice, since its resolver asks again for the new name."""
    overrides = {one["workload"]: one["overrides"] for one in section["tools"]}
    names: dict[tuple[str, str], str] = {}
    for server, tools in lists.items():
        for tool in tools:
            name = tool
            for _ in range(2):
                name = overrides.get(server, {}).get(name, {}).get("name", name)
            names[server, tool] = name
    return names


def test_every_tool_gets_the_whole_name_of_the_table() -> None:
    names = table(LISTS)
    export = exported("toolhive", names)
    section = aggregation(export)

    assert section["conflictResolution"] == "manual"
    assert section["conflictResolutionConfig"] == {}
    assert resolved(section, LISTS) == {
        (names.catalog[id].origin.server, names.catalog[id].origin.name): name for id, name in names.items()
    }
    assert export.left == ()


def test_its_rules_hold_for_all_real_servers() -> None:
    section = aggregation(exported("toolhive", table(real())))
    workloads = [one["workload"] for one in section["tools"]]

    assert len(set(workloads)) == len(workloads)
    assert all(change["name"] for one in section["tools"] for change in one["overrides"].values())


def test_names_after_its_overrides_are_unique_for_all_real_servers() -> None:
    names = table(real())
    lists: dict[str, list[str]] = {}
    for tool in names.catalog.values():
        lists.setdefault(tool.origin.server, []).append(tool.origin.name)
    export = exported("toolhive", names)
    made = resolved(aggregation(export), lists)

    assert {(one.server, one.tool): one.listed for one in export.tools}.items() <= made.items()
    assert len(set(made.values())) == len(made)


def test_a_new_name_that_it_would_change_again_is_not_expressible() -> None:
    names = table({"desk": ["desk_search", "search"]})
    export = exported("toolhive", names)

    assert {names.catalog[id].origin.name: name for id, name in names.items()} == {
        "search": "desk_search",
        "desk_search": "desk_desk_search",
    }
    assert [(one.tool, one.name) for one in export.left] == [("search", "desk_search")]


def test_nothing_is_written_if_no_tool_is_renamed() -> None:
    export = exported("toolhive", table({"desk": ["desk_search"]}))

    assert (export.documents, len(export.tools)) == ({}, 1)


def test_the_operator_gets_one_resource_for_each_server_with_a_legal_name() -> None:
    export = exported("toolhive-operator", table(LISTS))
    resources: list[Any] = list(export.documents.values())

    assert [one["kind"] for one in resources] == ["MCPToolConfig"] * 3
    assert resources[0]["apiVersion"] == "toolhive.stacklok.dev/v1beta1"
    assert resources[0]["metadata"] == {"name": "desk-tools"}
    assert resources[0]["spec"]["toolsOverride"]["search"] == {"name": "desk_search"}


@pytest.mark.parametrize("key", ["a" * 300, "A_b", "a b", "-x-", "文書", "../../x", "a.b"])
def test_the_name_of_a_resource_is_legal_and_one_for_each_server(key: str) -> None:
    export = exported("toolhive-operator", table({key: ["doIt"], "a-b": ["doIt"]}))
    names = [str(one["metadata"]["name"]) for one in export.documents.values()]  # type: ignore[index]

    assert len(set(names)) == 2
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names)
