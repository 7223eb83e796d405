"""From tools/list answers to identities: every shape, and names that fold into one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import ListToolsResult
from mcp_types import Tool as SdkTool

from truename import Catalog, Origin, ToolId
from truename.catalog import AdmissionNotice
from truename.identity import digest_of

TOOL = {"name": "get_data", "inputSchema": {"type": "object"}}
SDK = SdkTool(name="get_data", input_schema={"type": "object"})


def ids(catalog: Catalog) -> dict[tuple[str, str], str]:
    return {(tool.origin.server_id, tool.origin.name): str(id) for id, tool in catalog.items()}


@pytest.mark.parametrize(
    "listing",
    [
        [TOOL],
        (TOOL,),
        {"tools": [TOOL]},
        {"tools": [TOOL], "nextCursor": "x", "_meta": {}},
        {"jsonrpc": "2.0", "id": 1, "result": {"tools": [TOOL]}},
        [SDK],
        ListToolsResult(tools=[SDK]),
    ],
    ids=["list", "tuple", "result", "page", "response", "objects", "object"],
)
def test_every_shape_of_an_answer_is_read(listing: Any) -> None:
    catalog = Catalog.from_mcp({"weather": listing})

    assert [str(id) for id in catalog] == ["weather@1/get_data@1"]
    assert catalog["weather@1/get_data@1"].origin == Origin("weather", "get_data", "weather")
    assert catalog["weather@1/get_data@1"].definition == TOOL


def test_names_alone_are_read_too() -> None:
    catalog = Catalog.from_mcp({"weather": ["get_data"]})

    assert catalog["weather@1/get_data@1"].definition == {"name": "get_data"}


@pytest.mark.parametrize("listing", [[], (), {"tools": []}])
def test_a_server_without_tools_has_none(listing: Any) -> None:
    assert len(Catalog.from_mcp({"a": listing, "b": ["x"]})) == 1


def test_the_order_is_that_of_the_servers_and_their_lists() -> None:
    catalog = Catalog.from_mcp({"z": ["b", "a"], "a": ["c"]})

    assert [str(id) for id in catalog] == ["z@1/b@1", "z@1/a@1", "a@1/c@1"]


def test_a_name_listed_twice_is_admitted_once_and_reported() -> None:
    catalog = Catalog.from_mcp({"a": [{"name": "x", "title": "first"}, {"name": "x", "title": "second"}, "y"]})

    assert [tool.definition.get("title") for tool in catalog.values()] == ["first", None]
    assert catalog.notices == (AdmissionNotice("duplicate", "a", "x", "'a' lists 'x' twice; the first is used"),)


def test_of_case_twins_on_one_server_the_lower_case_one_keeps_the_key() -> None:
    twins = ["GET_DATA", "Get_Data", "get_data"]

    catalog = Catalog.from_mcp({"a": twins})

    assert ids(catalog) == {
        ("a", "get_data"): "a@1/get_data@1",
        ("a", "GET_DATA"): f"a@1/get_data-{digest_of('GET_DATA')}@1",
        ("a", "Get_Data"): f"a@1/get_data-{digest_of('Get_Data')}@1",
    }
    assert ids(catalog) == ids(Catalog.from_mcp({"a": twins[::-1]}))


def test_case_twins_with_a_suite_are_told_apart_within_it() -> None:
    catalog = Catalog.from_mcp({"a": ["FS.list", "fs.list", "list"]})

    assert ids(catalog) == {
        ("a", "fs.list"): "a@1/fs.list@1",
        ("a", "FS.list"): f"a@1/fs.list-{digest_of('FS.list')}@1",
        ("a", "list"): "a@1/list@1",
    }


def test_of_case_twins_of_server_keys_the_lower_case_one_keeps_the_key() -> None:
    servers = {"Weather": ["x"], "weather": ["x"]}

    catalog = Catalog.from_mcp(servers)

    assert ids(catalog) == {
        ("Weather", "x"): f"weather-{digest_of('Weather')}@1/x@1",
        ("weather", "x"): "weather@1/x@1",
    }
    assert ids(catalog) == ids(Catalog.from_mcp(dict(reversed(servers.items()))))


def test_a_name_that_looks_like_anothers_digest_is_told_apart_again() -> None:
    crafted = f"get_data-{digest_of('GET_DATA')}"

    catalog = Catalog.from_mcp({"a": ["get_data", "GET_DATA", crafted]})

    assert len(catalog) == 3
    assert catalog[f"a@1/{crafted}@1"].origin.name == crafted


def test_labels_may_repeat_and_each_pair_is_a_server_of_its_own() -> None:
    catalog = Catalog.from_mcp([("git", ["status"]), ("git", ["status", "log"]), ("other", ["status"])])

    origins = [tool.origin for tool in catalog.values()]
    assert [(origin.server, origin.name, origin.has_conflict) for origin in origins] == [
        ("git", "status", True),
        ("git", "status", True),
        ("git", "log", False),
        ("other", "status", True),
    ]
    assert origins[0].server_id == "git"
    assert origins[1].server_id == origins[2].server_id
    assert len({origin.server_id for origin in origins}) == 3
    assert len({id.integration for id in catalog}) == 3


@pytest.mark.parametrize("second", ["a", "b"])
def test_a_label_that_looks_like_a_repeated_one_is_a_server_of_its_own(second: str) -> None:
    catalog = Catalog.from_mcp([("x", ["a"]), ("x", ["a"]), ("x#2", [second])])

    assert len(catalog) == 3
    assert len({tool.origin.server_id for tool in catalog.values()}) == 3
    assert len({id.integration for id in catalog}) == 3


def test_bound_identities_are_kept() -> None:
    first = Catalog.from_mcp({"Weather": ["GET", "x"]})
    bound = {(t.origin.server_id, t.origin.name): id for id, t in first.items()}

    second = Catalog.from_mcp({"weather": ["get"], "Weather": ["get", "GET", "x"]}, bound=bound)

    assert ids(first) == {("Weather", "GET"): "weather@1/get@1", ("Weather", "x"): "weather@1/x@1"}
    assert ids(second) == {
        ("weather", "get"): f"weather-{digest_of('weather')}@1/get@1",
        ("Weather", "GET"): "weather@1/get@1",
        ("Weather", "get"): f"weather@1/get-{digest_of('get')}@1",
        ("Weather", "x"): "weather@1/x@1",
    }


def test_the_identity_of_an_absent_tool_is_never_given_away() -> None:
    bound = {("a", "Get.Data"): ToolId.parse("a/get.data"), ("gone", "x"): ToolId.parse("here/x")}

    catalog = Catalog.from_mcp({"a": ["get.data", "data"], "here": ["x"]}, bound=bound)

    assert not {ToolId.parse("a/get.data"), ToolId.parse("here/x")} & set(catalog)
    assert len(catalog) == 3


def test_a_bound_identity_may_have_versions() -> None:
    catalog = Catalog.from_mcp({"crm": ["lead"]}, bound={("crm", "lead"): ToolId.parse("salesforce@2/lead@3")})

    assert [str(id) for id in catalog] == ["salesforce@2/lead@3"]


NAMES = st.text("aAbB._- /天", min_size=1, max_size=4).filter(str.strip)


@given(
    st.lists(st.tuples(st.sampled_from(["a", "A", "b c", "b-c", "#", "a#2"]), st.lists(NAMES, max_size=5)), max_size=5)
)
def test_whatever_is_listed_each_tool_has_one_identity_for_ever(listings: list[tuple[str, list[str]]]) -> None:
    catalog = Catalog.from_mcp(listings)
    bound = {(tool.origin.server_id, tool.origin.name): id for id, tool in catalog.items()}
    origins = {(number, name) for number, (_, names) in enumerate(listings) for name in names}

    again = Catalog.from_mcp(listings, bound=bound)

    assert len(catalog) == len(origins)
    assert len(bound) == len(origins)
    assert list(again) == list(catalog)


@given(st.permutations(["a", "A", "x.y", "X.y", "x y", "x-y", "a..b"]), st.permutations(["s", "S", "s t", "s-t"]))
def test_identities_do_not_depend_on_the_order_of_arrival(names: list[str], labels: list[str]) -> None:
    expected = ids(Catalog.from_mcp({label: sorted(names) for label in sorted(labels)}))

    assert ids(Catalog.from_mcp(dict.fromkeys(labels, names))) == expected
