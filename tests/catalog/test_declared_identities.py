"""Declared identities: a server's entry says which integration, which version of it, which versions of its tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import Catalog, ToolId, project, resolve
from truename.catalog import ServerIdentity, identity_changes
from truename.errors import DuplicateTool, InvalidName, InvalidToolId, LedgerError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SF2 = ServerIdentity(integration="salesforce", version=2)


def ids(catalog: Iterable[ToolId]) -> list[str]:
    return [str(id) for id in catalog]


def one(group: ExceptionGroup[Exception], kind: type[Exception]) -> Any:
    (error,) = group.exceptions
    assert isinstance(error, kind)
    return error


def test_a_server_is_the_integration_and_version_that_its_entry_says() -> None:
    listed = {"salesforce": ["create_lead"], "sf2": ["create_lead"]}
    catalog = Catalog.from_mcp(listed, identities={"sf2": SF2})

    assert ids(catalog) == ["salesforce@1/create_lead@1", "salesforce@2/create_lead@1"]
    assert list(project(catalog, "openai").values()) == ["sf_create_lead", "sf_create_lead_2"]


def test_a_version_alone_leaves_the_integration_to_the_key() -> None:
    catalog = Catalog.from_mcp({"Salesforce": ["t"]}, identities={"Salesforce": ServerIdentity(version=2)})

    assert ids(catalog) == ["salesforce@2/t@1"]


def test_versions_of_single_tools_go_by_the_servers_own_names() -> None:
    said = ServerIdentity(versions={"Create Lead": 3, "prism.refract": 2})
    catalog = Catalog.from_mcp({"s": ["Create Lead", "prism.refract", "list"]}, identities={"s": said})

    assert [(id.suite, id.version) for id in catalog] == [(None, 3), ("prism", 2), (None, 1)]
    assert resolve("s/prism.refract@2", project(catalog, "native", style="canonical")).id == list(catalog)[1]


def test_an_omitted_version_does_not_fall_back_to_a_declared_one() -> None:
    catalog = Catalog.from_mcp({"sf2": ["t"]}, identities={"sf2": SF2})

    with pytest.raises(LookupError, match="salesforce@2/t@1"):
        resolve("salesforce/t", project(catalog, "native", style="canonical"))


def test_a_server_that_nobody_declared_keeps_the_integration_of_its_key_beside_one_that_has_it_in_another_version() -> (
    None
):
    bound = {("sf2", "t"): ToolId.parse("salesforce@2/t@1")}
    catalog = Catalog.from_mcp({"salesforce": ["t"], "sf2": ["t"]}, bound=bound, identities={"sf2": SF2})

    assert ids(catalog) == ["salesforce@1/t@1", "salesforce@2/t@1"]


def test_a_new_tool_of_a_server_that_is_not_declared_any_more_stands_where_the_others_do() -> None:
    catalog = Catalog.from_mcp({"sf2": ["t", "u"]}, bound={("sf2", "t"): ToolId.parse("salesforce@2/t@1")})

    assert ids(catalog) == ["salesforce@2/t@1", "salesforce@2/u@1"]


def test_two_servers_may_share_an_integration_and_a_version_as_long_as_their_tools_differ() -> None:
    identities = {"east": SF2, "west": SF2}

    assert ids(Catalog.from_mcp({"east": ["a"], "west": ["b"]}, identities=identities)) == [
        "salesforce@2/a@1",
        "salesforce@2/b@1",
    ]


@pytest.mark.parametrize("second", ["a", "A"])
def test_a_tool_whose_id_another_server_has_is_refused_and_both_owners_are_named(second: str) -> None:
    listed, identities = {"east": ["a"], "west": [second, "b"]}, {"east": SF2, "west": SF2}
    with pytest.raises(ExceptionGroup) as caught:
        Catalog.from_mcp(listed, identities=identities)

    error = one(caught.value, DuplicateTool)
    assert (error.existing, error.duplicate, error.name) == ("'east' (a)", f"'west' ({second})", "salesforce@2/a@1")
    assert "another integration or version" in str(error)


def test_without_strict_such_a_tool_is_left_out_and_told_and_the_others_stay() -> None:
    listed, identities = {"east": ["a"], "west": ["a", "b"]}, {"east": SF2, "west": SF2}
    catalog = Catalog.from_mcp(listed, identities=identities, strict=False)

    assert [(tool.origin.server, tool.origin.name) for tool in catalog.values()] == [("east", "a"), ("west", "b")]
    assert [(notice.code, notice.server, notice.name) for notice in catalog.notices] == [("taken", "west", "a")]


def test_an_id_on_record_stays_its_tools_whoever_is_listed_first() -> None:
    bound = {("west", "a"): ToolId.parse("salesforce@2/a@1")}
    listed, identities = {"east": ["a"], "west": ["a"]}, {"east": SF2, "west": SF2}

    kept = Catalog.from_mcp(listed, bound=bound, identities=identities, strict=False)
    absent = Catalog.from_mcp({"east": ["a"]}, bound=bound, identities=identities, strict=False)

    assert [tool.origin.server for tool in kept.values()] == ["west"]
    assert list(absent) == []


def test_a_tool_version_of_its_own_makes_room_for_the_same_tool_of_another_server() -> None:
    newer = ServerIdentity(integration="salesforce", version=2, versions={"a": 2})
    catalog = Catalog.from_mcp({"east": ["a"], "west": ["a"]}, identities={"east": SF2, "west": newer})

    assert ids(catalog) == ["salesforce@2/a@1", "salesforce@2/a@2"]


@pytest.mark.parametrize(
    ("recorded", "declared", "wanted"),
    [
        ("sf2@1/t@1", SF2, "salesforce@2/t@1"),
        ("salesforce@2/t@1", ServerIdentity(), "sf2@1/t@1"),
        ("salesforce@1/t@1", SF2, "salesforce@2/t@1"),
        ("sf2@1/t@1", ServerIdentity(version=2), "sf2@2/t@1"),
        ("sf2@1/t@1", ServerIdentity(versions={"t": 2}), "sf2@1/t@2"),
        ("sf2@1/t@2", ServerIdentity(), "sf2@1/t@1"),
        ("sf2@1/t@1", ServerIdentity(versions={"u": 2}), None),
        ("sf2-0a1b2c3d@1/t@1", ServerIdentity(), None),
        ("sf2-0a1b2c3d@1/t@1", ServerIdentity(version=2), "sf2-0a1b2c3d@2/t@1"),
    ],
)
def test_another_declaration_than_the_one_on_record_is_refused(
    recorded: str, declared: ServerIdentity, wanted: str | None
) -> None:
    bound, identities = {("sf2", "t"): ToolId.parse(recorded)}, {"sf2": declared}
    assert [str(change.declared) for change in identity_changes(bound, identities)] == ([wanted] if wanted else [])
    if wanted is None:
        assert ids(Catalog.from_mcp({"sf2": ["t"]}, bound=bound, identities=identities)) == [recorded]
        return
    with pytest.raises(LedgerError) as caught:
        Catalog.from_mcp({"sf2": ["t"]}, bound=bound, identities=identities)

    error = caught.value
    assert (error.code, error.origin, error.name) == ("identity_mismatch", "sf2", "t")
    assert (error.recorded, error.wanted) == (recorded, wanted)
    assert "truename rename --ids" in str(error)
    assert ids(Catalog.from_mcp({"sf2": ["t"]}, bound=bound, identities=identities, strict=False)) == [recorded]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ({"integration": "My Server"}, InvalidName),
        ({"integration": ""}, InvalidName),
        ({"integration": "a" * 201}, InvalidName),
        ({"version": 0}, InvalidToolId),
        ({"versions": {"t": -1}}, InvalidToolId),
        ({"versions": {"t": 10**18}}, InvalidToolId),
    ],
)
def test_what_no_id_can_have_can_not_be_declared(values: Mapping[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        ServerIdentity(**values)


KEYS = st.sampled_from(["a", "A", "b", "a-b", "a b", "é"])
TOOLS = st.lists(st.sampled_from(["t", "T", "t.u", "T.u", "t u", "é", "t-u"]), max_size=4, unique=True)
DECLARED = st.builds(
    ServerIdentity,
    integration=st.none() | st.sampled_from(["a", "B", "a-b"]),
    version=st.none() | st.integers(1, 3),
    versions=st.dictionaries(st.sampled_from(["t", "T", "t.u"]), st.integers(1, 3), max_size=2),
)


@given(st.dictionaries(KEYS, TOOLS, max_size=4), st.dictionaries(KEYS, DECLARED, max_size=4), st.randoms())
def test_one_id_never_means_two_tools_and_ids_on_record_are_those_given_first(
    listed: dict[str, list[str]], identities: dict[str, ServerIdentity], chance: Any
) -> None:
    first = Catalog.from_mcp(listed, identities=identities, strict=False)
    bound = {(tool.origin.server_id, tool.origin.name): id for id, tool in first.items()}
    keys = list(listed)
    chance.shuffle(keys)
    again = Catalog.from_mcp({key: listed[key] for key in keys}, bound=bound, identities=identities, strict=False)

    assert {(tool.origin.server_id, tool.origin.name): id for id, tool in again.items()} == bound
    assert identity_changes(bound, {key: identities.get(key, ServerIdentity()) for key in listed}) == ()
    for id, tool in first.items():
        said = identities.get(tool.origin.server)
        if said is not None:
            assert id.integration == (said.integration or id.integration)
            assert (id.integration_version, id.version) == (said.version or 1, said.versions.get(tool.origin.name, 1))


def test_a_long_key_that_was_told_apart_by_a_digest_has_not_changed() -> None:
    long = "a" * 200
    listed = {long.upper(): ["t"], long: ["t"]}
    bound = {(tool.origin.server_id, "t"): id for id, tool in Catalog.from_mcp(listed).items()}

    assert identity_changes(bound, dict.fromkeys(listed, ServerIdentity())) == ()
