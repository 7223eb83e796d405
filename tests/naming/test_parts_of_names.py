"""What a name is made of: the rung, the server's part in front, the number behind, and what it gave way to."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.naming.tables import table
from truename import Catalog, Ledger, NameTable, ToolId, dialects, project, resolve
from truename.errors import AmbiguousName, DuplicateTool, InvalidName, NoLegalName, RetiredName, UnknownTool
from truename.identity import digest_of

AB, CD = ToolId.parse("a/b"), ToolId.parse("c/d")
Part = tuple[str, str, str, int | None]


def parts(names: NameTable) -> dict[str, Part]:
    """Return name, rung, server's part and number of each tool."""
    found = {str(id): names.assigned(id) for id in names}
    return {id: (one.name, one.rung, one.prefix, one.number) for id, one in found.items()}


def remembered(ledger: Ledger, *tools: str, style: str = "prefixed") -> NameTable:
    return project(Catalog.of(*tools), "openai", style=style, ledger=ledger)


@pytest.mark.parametrize(
    ("tools", "style", "expected"),
    [
        # A version is numbered behind what its sibling is called, also where that has a digest.
        (
            ("a/b_c", "a@1/b_c@2", "a_b/c", "a_b@1/c@2"),
            "prefixed",
            {
                "a@1/b_c@1": ("a_b_c", "natural", "a_", None),
                "a@1/b_c@2": ("a_b_c_2", "numbered", "a_", 2),
                "a_b@1/c@1": ("a_b_c_fcfa", "digest", "a_b_", None),
                "a_b@1/c@2": ("a_b_c_3", "numbered", "a_b_", 3),
            },
        ),
        # Two tools of one server are no reason to put it in front of both.
        (
            {"s": ["Danger", "danger"]},
            "on-conflict",
            {
                "s@1/danger-8412c070@1": ("s_Danger", "namespaced", "s_", None),
                "s@1/danger@1": ("danger", "natural", "", None),
            },
        ),
        # Tools of two servers are.
        (
            {"x": ["get"], "y": ["get"]},
            "on-conflict",
            {"x@1/get@1": ("x_get", "namespaced", "x_", None), "y@1/get@1": ("y_get", "namespaced", "y_", None)},
        ),
        (
            ("truename/get", "truename/get@2", "truename/b_c", "truename_b/c"),
            "prefixed",
            {
                "truename@1/b_c@1": ("tool_truename_b_c", "natural", "truename_", None),
                "truename@1/get@1": ("tool_truename_get", "natural", "truename_", None),
                "truename@1/get@2": ("tool_truename_get_2", "numbered", "", 2),
                "truename_b@1/c@1": (f"tool_truename_b_c_{digest_of('truename_b@1/c@1', 4)}", "digest", "", None),
            },
        ),
        # The word that keeps a name apart from a client's form is no part of the server's.
        (
            {"truename": ["get"]},
            "prefixed",
            {"truename@1/get@1": ("tool_truename_get", "natural", "truename_", None)},
        ),
    ],
)
def test_a_name_knows_its_parts(
    tools: tuple[str, ...] | dict[str, list[str]], style: str, expected: dict[str, Part]
) -> None:
    assert parts(table(tools, style=style)) == expected


def test_a_version_that_comes_later_is_told_apart_from_the_one_that_left() -> None:
    ledger = Ledger.memory()
    remembered(ledger, "salesforce/create_lead")

    names = remembered(ledger, "salesforce/create_lead@2")

    assert parts(names) == {"salesforce@1/create_lead@2": ("sf_create_lead_2", "numbered", "sf_", 2)}
    assert str(names.explain("salesforce@1/create_lead@2")) == (
        "sf_create_lead_2 is salesforce@1/create_lead@2 (numbered: variant 2 of salesforce@1/create_lead@1; "
        "salesforce@1/create_lead@1 has the better name)"
    )
    later = remembered(ledger, "salesforce/create_lead@2", "salesforce/create_lead@3")
    assert parts(later) == {
        "salesforce@1/create_lead@2": ("sf_create_lead_2", "held", "sf_", 2),
        "salesforce@1/create_lead@3": ("sf_create_lead_3", "numbered", "sf_", 3),
    }


def test_a_tool_that_gives_way_says_to_whom() -> None:
    names = table({"s": ["Danger", "danger"]}, style="on-conflict")

    assert names.explain("s@1/danger-8412c070@1").clash == ToolId.parse("s/danger")
    assert names.explain("s@1/danger@1").clash is None


def test_a_conflict_with_a_name_that_is_held_is_logged_too(caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger.memory()
    project(Catalog.from_mcp({"x": ["get_data"]}), "openai", style="on-conflict", ledger=ledger)
    servers = {"a": ["other"], "x": ["get_data"], "y": ["get_data"]}

    with caplog.at_level(logging.INFO, "truename.naming"):
        project(Catalog.from_mcp(servers), "openai", style="on-conflict", ledger=ledger)

    assert [record.message for record in caplog.records] == ["name conflict: 'get_data' is a tool of 'y', 'x'"]


def test_a_name_that_is_held_and_no_longer_legal_is_told_with_its_tool(caplog: pytest.LogCaptureFixture) -> None:
    ledger = Ledger.memory()
    cursor = dialects.get("cursor")
    catalog = Catalog.of("a/bcd")
    project(catalog, cursor, ledger=ledger, server_name="a_longer_key")
    tighter = replace(cursor, max_length=16, mangling=replace(cursor.mangling, over="drop"))

    names = project(catalog, tighter, ledger=ledger, server_name="a_longer_key")

    how = "held since it was first shown, but no longer legal for cursor: it has 5 characters, 4 are allowed"
    assert names.explain("a@1/bcd@1").reason == f"{how} for the server key 'a_longer_key'"
    (record,) = caplog.records
    assert record.message == f"a_bcd, the name of a@1/bcd@1, is {names.explain('a@1/bcd@1').reason}"


def test_digests_grow_until_a_name_is_free_and_a_hostile_server_can_not_take_them_all() -> None:
    whole = digest_of("a_b@1/c@1", 16)
    taken = [f"b_c_{whole[:length]}" for length in (4, 6, 8, 16)]
    further = [f"b_c_{digest_of(f'a_b@1/c@1 {number}', 8)}" for number in range(2, 30)]

    for count in range(5):
        names = table({"a": ["b_c", *taken[:count]], "a_b": ["c"]}, "universal")
        assert names["a_b@1/c@1"] == f"a_{[*taken, further[0]][count]}"
    names = table({"a": ["b_c", *taken, *further], "a_b": ["c"]}, "universal")
    assert re.fullmatch("a_b_c_[0-9a-f]{8}", names["a_b@1/c@1"])


@pytest.mark.parametrize("style", ["declared", "on-conflict", "prefixed"])
def test_a_redirected_name_is_its_heirs_from_then_on(style: str) -> None:
    ledger = Ledger.memory()
    first = project(Catalog.from_mcp({"a": ["x"]}), "openai", style=style, ledger=ledger)
    name = first["a@1/x@1"]
    heir = Catalog.from_mcp({"b": [name]})
    (id,) = heir
    ledger.redirect(name, id)

    overrides: dict[str, dict[ToolId | str, str]] = {"openai": {id: name}} if style == "prefixed" else {}
    for given in (overrides, {}):
        assert dict(project(heir, "openai", style=style, ledger=ledger, overrides=given)) == {id: name}


def test_a_number_that_was_redirected_is_its_heirs() -> None:
    ledger = Ledger.memory()
    overrides: dict[str, dict[ToolId | str, str]] = {"openai": {"c/d": "a_b_2"}}
    project(Catalog.of("a/b", "c/d"), "openai", ledger=ledger, overrides=overrides)
    ledger.redirect("a_b_2", ToolId.parse("a/b@2"))

    assert remembered(ledger, "a/b", "a/b@2")["a@1/b@2"] == "a_b_2"


def test_a_redirected_name_is_not_its_heirs_while_its_tool_is_here() -> None:
    ledger = Ledger.memory()
    remembered(ledger, "a/b", "c/d")
    ledger.redirect("a_b", CD)

    with pytest.raises(ExceptionGroup) as caught:
        project(Catalog.of("a/b", "c/d"), "openai", ledger=ledger, overrides={"openai": {"c/d": "a_b"}})

    assert [type(error) for error in caught.value.exceptions] == [DuplicateTool]


def test_a_version_is_numbered_behind_what_the_operator_called_its_sibling() -> None:
    overrides: dict[str, dict[ToolId | str, str]] = {"openai": {"a/b": "mine", "x/y": "a_b"}}

    names = project(Catalog.of("a/b", "a/b@2", "x/y"), "openai", overrides=overrides)

    assert names["a@1/b@2"] == "mine_2"


@pytest.mark.parametrize(
    ("name", "code", "text"),
    [
        ("a_b", "withdrawn", "it was retired or redirected"),
        ("x/y", "identity", "it can be read as the id of another tool"),
    ],
)
def test_a_name_that_can_not_be_given_says_why_in_a_word(name: str, code: str, text: str) -> None:
    ledger = Ledger.memory()
    project(Catalog.of("a/b"), "native", ledger=ledger)
    ledger.retire("a_b")

    with pytest.raises(ExceptionGroup) as caught:
        project(Catalog.of("c/d"), "native", ledger=ledger, overrides={"native": {"c/d": name}})

    (error,) = caught.value.exceptions
    assert isinstance(error, InvalidName)
    assert [(reason.code, reason.text) for reason in error.reasons] == [(code, text)]
    with pytest.raises(ExceptionGroup) as told:
        project(
            Catalog.from_mcp({"c": [name]}),
            "native",
            style="declared",
            ledger=Ledger.memory() if code == "identity" else _retired(name),
        )
    (declared,) = told.value.exceptions
    assert isinstance(declared, InvalidName)
    assert (declared.dialect, declared.name, declared.reasons[0].code) == ("native", name, code)


def _retired(name: str) -> Ledger:
    ledger = Ledger.memory()
    project(Catalog.from_mcp({"a": [name]}), "native", style="declared", ledger=ledger)
    ledger.retire(name)
    return ledger


def test_a_canonical_name_that_is_not_legal_is_told_with_its_tool() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        table(("a/b",), "openai", "canonical")

    (error,) = caught.value.exceptions
    assert isinstance(error, NoLegalName)
    assert error.id == AB


def test_a_retired_name_tells_its_steps_and_its_day() -> None:
    ledger = Ledger.memory()
    remembered(ledger, "a/b")
    ledger.retire("a_b")

    with pytest.raises(RetiredName) as caught:
        resolve("a_b", remembered(ledger, "a/b"))

    assert caught.value.trail == ("table: no such name", "ledger: retired")
    assert len(caught.value.since) == len("2026-01-31")


@pytest.mark.parametrize(
    ("servers", "text", "step"),
    [
        ({"a": ["b"]}, "mcp__truename__a_b", "spelling"),
        ({"a": ["b"]}, "mcp__truename__b", "spelling"),
        ({"a": ["b"]}, "MCP__truename__a_b", "folded"),
        ({"a": ["b"]}, "MCP__truename__A_B", "folded"),
        ({"a": ["b"]}, "A-B", "folded"),
    ],
)
def test_the_step_says_how_far_a_text_is_from_a_name(servers: dict[str, list[str]], text: str, step: str) -> None:
    assert resolve(text, table(servers))[:2] == (AB, step)


def test_what_reads_as_a_clients_form_in_other_case_may_also_be_a_servers_own_name() -> None:
    names = table({"a": ["b"], "x": ["mcp__truename__a_b"]})

    with pytest.raises(AmbiguousName):
        resolve("MCP__truename__a_b", names)


def test_a_text_of_the_greatest_length_is_looked_for() -> None:
    names = table({"a": ["b"]})

    for length, reason in ((4_096, "unknown"), (4_097, "malformed")):
        with pytest.raises(UnknownTool) as caught:
            resolve("x" * length, names)
        assert caught.value.reason == reason


def test_what_is_no_id_says_so_in_its_steps() -> None:
    with pytest.raises(UnknownTool) as caught:
        resolve("a b/c", table({"a": ["b"]}))

    why = "canonical: 'a b' is not a valid integration: use a-z, 0-9, '_' and '-', with a letter or digit"
    assert [line for line in caught.value.trail if line.startswith("canonical")] == [why, why]


def test_a_name_that_was_passed_on_is_its_heirs_in_every_spelling() -> None:
    ledger = Ledger.memory()
    remembered(ledger, "a/b", "c/d")
    ledger.redirect("a_b", CD)
    names = remembered(ledger, "a/b", "c/d")

    assert {resolve(text, names).id for text in ("a_b", "A_B", "a-B", "mcp__truename__a_b")} == {CD}
    # The tool's own name is its own still.
    assert resolve("b", names).id == AB


def test_a_tool_that_is_here_is_meant_by_its_names_though_its_id_was_redirected() -> None:
    ledger = Ledger.memory()
    remembered(ledger, "a/b", "c/d")
    ledger.redirect("a@1/b@1", CD)
    names = remembered(ledger, "a/b", "c/d")

    assert resolve("a@1/b@1", names).id == CD
    assert {resolve(text, names).id for text in ("a_b", "b", "A:b", "A-B")} == {AB}


def test_redirects_without_an_end_name_the_last_tool_that_was_reached() -> None:
    ledger = Ledger.memory()
    ids = [ToolId.parse(f"docs/t{number}") for number in range(40)]
    names = project(Catalog.of(ids[-1]), "openai", ledger=ledger)
    for old, new in pairwise(ids):
        ledger.redirect(str(old), new)

    with pytest.raises(UnknownTool) as caught:
        resolve(str(ids[0]), names)

    assert caught.value.id == ids[33]
