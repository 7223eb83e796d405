"""Laws of every exporter: each tool once, no name of another tool, and a name once listed stays its tool's."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.clients.exporters.lists import LISTS, exported, real, table
from truename.catalog import Catalog
from truename.clients.exporters import GATEWAYS
from truename.identity import fold
from truename.ledger import Ledger
from truename.naming import project, resolve

pytestmark = pytest.mark.slow

EVERY = pytest.mark.parametrize("gateway", GATEWAYS)


@EVERY
def test_every_real_tool_is_exported_or_named_as_inexpressible(gateway: str) -> None:
    names = table(real())
    export = exported(gateway, names)
    left = [one.id for one in export.left if one.tool]

    assert Counter([*(one.id for one in export.tools), *left]) == Counter(list(names))


@EVERY
def test_no_two_real_tools_are_listed_under_one_name_in_any_spelling(gateway: str) -> None:
    export = exported(gateway, table(real()))
    count = Counter(fold(one.listed) for one in export.tools)

    assert [name for name, number in count.items() if number > 1] == []


@EVERY
def test_no_listed_name_is_another_tools_name_in_the_table(gateway: str) -> None:
    names = table(real())
    owners = {fold(name): id for id, name in names.items()}

    assert [one for one in exported(gateway, names).tools if owners.get(fold(one.listed), one.id) != one.id] == []


@EVERY
def test_a_listed_name_that_is_recorded_resolves_to_its_tool(gateway: str) -> None:
    names = table(real(), Ledger.memory())
    export = exported(gateway, names)

    assert [one for one in export.tools if resolve(one.listed, names).id != one.id] == []


@EVERY
def test_the_same_names_come_out_whatever_the_order_of_servers_and_tools(gateway: str) -> None:
    turned = {key: list(reversed(tools)) for key, tools in reversed(LISTS.items())}
    one, other = (exported(gateway, table(lists)) for lists in (LISTS, turned))

    assert {tool.id: tool.listed for tool in one.tools} == {tool.id: tool.listed for tool in other.tools}


@EVERY
def test_a_name_that_was_listed_never_becomes_another_tools(gateway: str) -> None:
    ledger, long = Ledger.memory(), "create_confluence_page_from_markdown_template_in_space_with_labels"
    first = exported(gateway, table({"atlassian": [long, "search"], "desk": ["search"]}, ledger))
    lists = [
        {"atlassian": ["search"], "desk": ["search"]},
        {"desk": ["search", "atlassian_search"], "atlassian": ["create_page_from_space_with_labels", long]},
        {"atlassian": ["search"], "atlassian-2": [long], "desk": ["search"]},
    ]
    holders = {fold(one.listed): one.id for one in first.tools}
    for listed in lists:
        for one in exported(gateway, table(listed, ledger)).tools:
            assert holders.setdefault(fold(one.listed), one.id) == one.id


@EVERY
def test_an_export_that_is_repeated_is_the_same(gateway: str) -> None:
    names = table(real(), Ledger.memory())

    assert exported(gateway, names).tools == exported(gateway, names).tools


@EVERY
def test_nothing_is_exported_of_no_tools(gateway: str) -> None:
    assert exported(gateway, table({})).tools == ()


@EVERY
def test_of_two_servers_with_one_key_only_the_first_is_exported(gateway: str) -> None:
    catalog = Catalog.from_mcp([("desk", ["search", "list"]), ("desk", ["search", "getTicket"]), ("notes", ["list"])])
    export = exported(gateway, project(catalog, "universal"))

    assert [(one.server, one.tool) for one in export.left if one.tool] == [("desk", "search"), ("desk", "getTicket")]
    assert [(one.server, one.tool) for one in export.tools] == [("desk", "search"), ("desk", "list"), ("notes", "list")]
