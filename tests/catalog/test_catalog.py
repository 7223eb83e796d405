"""Catalog: an immutable mapping from identity to tool, in the order in which it was built."""

from __future__ import annotations

from typing import Any

import pytest

from truename import Catalog, Origin, Tool, ToolId
from truename.catalog import BUILT_IN_ALIASES, usable_aliases
from truename.errors import DuplicateTool, InvalidToolId


def test_bare_ids_keep_their_order_and_are_found_by_id_and_by_text() -> None:
    catalog = Catalog.of("salesforce@1/get_leads@1", ToolId.parse("data-grout/prism.refract"), "a@2/b@3")

    assert [str(id) for id in catalog] == ["salesforce@1/get_leads@1", "data-grout@1/prism.refract@1", "a@2/b@3"]
    assert len(catalog) == 3
    assert catalog["a@2/b@3"] is catalog[ToolId.parse("a@2/b@3")]
    assert "a@2/b@3" in catalog
    assert ToolId.parse("a@2/b@3") in catalog
    assert "a/b" not in catalog
    assert repr(catalog) == "<Catalog of 3 tools>"


def test_a_bare_id_has_itself_as_origin_and_definition() -> None:
    tool = Catalog.of("data-grout@2/prism.refract@1")["data-grout@2/prism.refract@1"]

    assert tool.origin == Origin("data-grout", "prism.refract", "data-grout@2")
    assert tool.definition == {"name": "prism.refract"}
    assert tool.metadata == {}


@pytest.mark.parametrize("name", ["a/nope", "", "x"])
def test_what_is_not_there_is_a_key_error(name: str) -> None:
    with pytest.raises(KeyError):
        Catalog.of("a/b")[name]


def test_one_id_given_twice_names_both_owners() -> None:
    with pytest.raises(DuplicateTool) as caught:
        Catalog.of("a/b", "A@v1/B")

    assert caught.value.name == "a@1/b@1"
    assert "'a' (b)" in str(caught.value)


def test_a_bad_id_is_told_as_one() -> None:
    with pytest.raises(InvalidToolId):
        Catalog.of("a/b", "nothing")


def test_the_built_in_aliases_are_used_unless_others_are_given() -> None:
    assert Catalog.of("a/b").aliases == {"salesforce": "sf", "quickbooks": "qb", "data-grout": "dg"}
    assert Catalog.of("a/b", aliases={}).aliases == {}
    assert Catalog.from_mcp({"a": ["b"]}, aliases={"a": "x"}).aliases == {"a": "x"}
    assert Catalog.of("a/b").aliases == BUILT_IN_ALIASES


@pytest.mark.parametrize(
    ("aliases", "integrations", "expected"),
    [
        ({"salesforce": "sf"}, {"salesforce"}, {"salesforce": "sf"}),
        ({"salesforce": "sf"}, {"salesforce", "sf"}, {}),
        ({"salesforce": "sf", "snowflake": "sf"}, {"salesforce"}, {}),
        ({"salesforce": "sf", "snowflake": "sn"}, {"sn"}, {"salesforce": "sf"}),
    ],
)
def test_an_alias_is_used_if_it_means_one_integration_and_is_none_itself(
    aliases: dict[str, str], integrations: set[str], expected: dict[str, str]
) -> None:
    assert usable_aliases(aliases, integrations) == expected


@pytest.mark.parametrize("change", [lambda c: c.aliases.update(x="y"), lambda c: c.__setitem__("a", 1)])
def test_a_catalogue_can_not_be_changed(change: Any) -> None:
    with pytest.raises((AttributeError, TypeError)):
        change(Catalog.of("a/b"))


def test_more_tools_make_a_new_catalogue() -> None:
    before = Catalog.from_mcp({"a": ["x"], "": []}, aliases={"a": "q"}, strict=False)
    more = Catalog.from_mcp({"b": ["x"]})

    after = before.with_tools(more.values())

    assert [str(id) for id in after] == ["a@1/x@1", "b@1/x@1"]
    assert len(before) == 1
    assert (after.aliases, after.notices) == (before.aliases, before.notices)
    assert not before["a@1/x@1"].origin.has_conflict
    assert after["a@1/x@1"].origin.has_conflict
    with pytest.raises(DuplicateTool):
        before.with_tools(before.values())


def test_the_part_of_one_server_has_no_conflicts() -> None:
    catalog = Catalog.from_mcp([("s", ["get", "a"]), ("s", ["get"])])

    second = list(catalog.values())[-1].origin.server_id

    part = catalog.only(second)

    assert [tool.origin for tool in part.values()] == [Origin("s", "get", second, has_conflict=False)]
    assert len(catalog.only("nobody")) == 0


def test_conflicts_are_counted_after_folding() -> None:
    catalog = Catalog.from_mcp(
        {"a": ["get-data", "own"], "b": ["get_data"], "c": ["GetData", "fs.list"], "d": ["fs_list"]}
    )

    assert {name: [str(tool.id) for tool in tools] for name, tools in catalog.conflicts().items()} == {
        "get-data": ["a@1/get-data@1", "b@1/get_data@1"],
        "fs.list": ["c@1/fs.list@1", "d@1/fs_list@1"],
    }
    assert [tool.origin.name for tool in catalog.values() if tool.origin.has_conflict] == [
        "get-data",
        "get_data",
        "fs.list",
        "fs_list",
    ]


def test_two_variants_on_one_server_are_no_conflict() -> None:
    assert Catalog.of("a/b", "a/b@2").conflicts() == {}


def test_the_digest_is_of_the_set_and_not_of_its_order() -> None:
    one = Catalog.from_mcp({"a": ["x"], "b": [{"name": "y", "_meta": {"z": 1}}]})
    same = Catalog.from_mcp({"b": ["y"], "a": ["x"]}, aliases={})
    others = [
        Catalog.from_mcp({"a": ["x"]}),
        Catalog.from_mcp({"a": ["x"], "b": [{"name": "y", "title": "Y"}]}),
        Catalog.from_mcp({"a": ["x"], "B": ["y"]}),
        Catalog.of(),
    ]

    assert one.digest == same.digest
    assert one.digest.startswith("sha256:")
    assert len({one.digest, *(other.digest for other in others)}) == 5


def test_metadata_is_what_stands_beside_the_definition() -> None:
    catalog = Catalog.from_mcp({"a": [{"name": "x", "_meta": {"k": 1}}, {"name": "y", "_meta": "odd"}]})

    assert [tool.metadata for tool in catalog.values()] == [{"k": 1}, {}]


def test_a_tool_is_a_value() -> None:
    one, other = (Tool(ToolId.parse("a/b"), Origin("a", "b", "a"), {"name": "b", "x": [1]}) for _ in range(2))

    assert one == other
    assert hash(one) == hash(other)
    assert one != Tool(one.id, one.origin, {"name": "b"})
