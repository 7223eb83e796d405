"""Names that an operator fixed, and names that a ledger holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from truename import Catalog, Ledger, NameTable, ToolId, dialects, project, resolve
from truename.errors import (
    DuplicateTool,
    InvalidName,
    LedgerError,
    NoLegalName,
    ResolutionError,
    RetiredName,
    TruenameError,
    UnknownDialect,
    UnknownTool,
)

AB, AC = ToolId.parse("a/b"), ToolId.parse("a/c")
CATALOG = Catalog.of("a/b", "a/c")


def refused(
    overrides: dict[str, dict[ToolId | str, str]], client: str = "openai", **options: object
) -> list[Exception]:
    with pytest.raises(ExceptionGroup) as caught:
        project(CATALOG, client, overrides=overrides, **options)  # type: ignore[arg-type]
    return list(caught.value.exceptions)


@pytest.mark.parametrize("key", [AB, "a@1/b@1", "A@v1/B", "a/b"])
@pytest.mark.parametrize("client", ["cursor", "Cursor"])
def test_an_override_is_the_name_in_its_dialect_and_nowhere_else(key: ToolId | str, client: str) -> None:
    overrides = {client: {key: "my_tool"}}

    names = project(CATALOG, "cursor", overrides=overrides)
    others = project(CATALOG, "openai", overrides=overrides)

    assert dict(names) == {AB: "my_tool", AC: "a_c"}
    assert dict(others) == {AB: "a_b", AC: "a_c"}
    assert names.explain(AB).rung == "override"
    assert str(names.explain(AB)) == "my_tool is a@1/b@1 (override: fixed by the operator)"


def test_an_override_comes_before_another_tool_s_own_name() -> None:
    names = project(CATALOG, "openai", overrides={"openai": {"a/b": "a_c"}})

    assert names[AB] == "a_c"
    assert names[AC] not in {"a_c", ""}
    assert resolve("a_c", names).id == AB


def test_an_override_of_an_absent_tool_waits_for_it() -> None:
    assert dict(project(CATALOG, "openai", overrides={"openai": {"gone/x": "a_b"}})) == {AB: "a_b", AC: "a_c"}


def test_an_illegal_override_is_told_with_everything_wrong() -> None:
    (error,) = refused({"openai": {"a/b": "fs.list"}})

    assert isinstance(error, InvalidName)
    assert (error.name, error.dialect) == ("fs.list", "openai")
    assert str(error).startswith("'fs.list' is not legal for openai: '.' at 2 is not in [a-zA-Z0-9_-].")


def test_two_overrides_of_one_name_are_a_duplicate() -> None:
    (error,) = refused({"openai": {"a/b": "x", "a/c": "X"}})

    assert isinstance(error, DuplicateTool)
    assert (error.existing, error.duplicate, error.name) == ("a@1/b@1", "a@1/c@1", "X")


def test_an_override_for_an_unknown_client_is_told() -> None:
    with pytest.raises(UnknownDialect):
        project(CATALOG, "openai", overrides={"cursr": {"a/b": "x"}})


def test_an_override_of_a_name_that_another_tool_holds_is_a_duplicate_and_nothing_is_recorded() -> None:
    ledger = Ledger.memory()
    project(CATALOG, "openai", ledger=ledger)

    (error,) = refused({"cursor": {"a/b": "a_c"}}, "cursor", ledger=ledger)

    assert isinstance(error, DuplicateTool)
    assert dict(ledger.held("cursor")) == {}


@pytest.mark.parametrize("style", ["prefixed", "declared", "canonical"])
def test_a_withdrawn_name_is_no_override(style: str) -> None:
    ledger = Ledger.memory()
    client = "native"
    project(CATALOG, client, style=style, overrides={client: {"a/b": "mine"}}, ledger=ledger)
    ledger.retire("mine")

    found = refused({client: {"a/b": "mine"}}, client, style=style, ledger=ledger)

    assert all(isinstance(error, TruenameError) for error in found)
    assert "mine" in str(found[0])


def test_a_canonical_table_keeps_the_promises_of_its_overrides() -> None:
    ledger = Ledger.memory()
    project(CATALOG, "openai", ledger=ledger)

    found = refused({"native": {"a/c": "a_b"}}, "native", style="canonical", ledger=ledger)
    names = project(CATALOG, "native", style="canonical", overrides={"native": {"a/c": "see"}}, ledger=ledger)

    assert isinstance(found[0], DuplicateTool)
    assert dict(names) == {AB: "a@1/b@1", AC: "see"}
    assert ledger.holder("see") == AC


def test_an_override_that_comes_later_renames_and_the_old_name_goes_on_working() -> None:
    ledger = Ledger.memory()
    project(CATALOG, "openai", ledger=ledger)

    names = project(CATALOG, "openai", overrides={"openai": {"a/b": "mine"}}, ledger=ledger)
    without = project(CATALOG, "openai", ledger=ledger)

    assert names[AB] == "mine"
    assert resolve("a_b", names).id == AB
    assert without[AB] == "mine", "a shown name stays when its override goes"


def test_a_declared_name_that_was_retired_is_not_shown_again() -> None:
    ledger = Ledger.memory()
    project(CATALOG, "openai", style="declared", ledger=ledger)
    ledger.retire("b")

    with pytest.raises(ExceptionGroup) as caught:
        project(CATALOG, "openai", style="declared", ledger=ledger)

    assert "b" in str(caught.value.exceptions[0])


def shown(ledger: Ledger, *ids: str, client: str = "openai", style: str = "prefixed") -> NameTable:
    return project(Catalog.of(*ids), client, style=style, ledger=ledger)


@pytest.mark.parametrize("style", ["prefixed", "on-conflict"])
def test_the_holder_stays_and_the_newcomer_takes_the_next_rung(style: str) -> None:
    ledger = Ledger.memory()
    before = dict(shown(ledger, "a_b/c", style=style))

    after = dict(shown(ledger, "a/b_c", "a_b/c", "d/c", style=style))

    assert {id: after[id] for id in before} == before
    assert len(set(after.values())) == 3


def test_a_version_that_comes_later_never_takes_the_number_of_another() -> None:
    ledger = Ledger.memory()
    shown(ledger, "a/x", "a/x@10")

    after = shown(ledger, "a/x", "a/x@2", "a/x@10", "a/x_2")

    assert {str(id): name for id, name in after.items()} == {
        "a@1/x@1": "a_x",
        "a@1/x@10": "a_x_2",
        "a@1/x@2": "a_x_3",
        "a@1/x_2@1": after["a@1/x_2@1"],
    }
    assert after["a@1/x_2@1"] not in {"a_x", "a_x_2", "a_x_3"}


def test_held_names_are_told_as_held() -> None:
    ledger = Ledger.memory()
    shown(ledger, "a/b")

    names = shown(ledger, "a/b")

    assert names.explain(AB).rung == "held"
    assert str(names.explain(AB)) == "a_b is a@1/b@1 (held: held since it was first shown)"


def test_one_claim_space_for_all_clients() -> None:
    ledger = Ledger.memory()
    project(Catalog.from_mcp({"a": ["get.data"]}), "native", ledger=ledger, style="declared")

    with pytest.raises(ExceptionGroup):
        project(Catalog.from_mcp({"b": ["get_data"]}), "openai", ledger=ledger, style="declared")


def test_the_canonical_style_records_the_order_and_no_names() -> None:
    ledger = Ledger.memory()

    names = project(CATALOG, "native", style="canonical", ledger=ledger)

    assert list(names) == [AB, AC]
    assert ledger.settings is None
    assert ledger.holder("a_1_b_1") is None
    assert set(ledger.bindings().values()) == {AB, AC}


def test_a_canonical_name_of_an_absent_tool_stops_the_search() -> None:
    ledger = Ledger.memory()
    shown(ledger, "a/b", "a/b@2")

    names = shown(ledger, "a/b@2")

    for text in ("a@1/b@1", "a/b", "a_b", "A_B", "a-b", "mcp__truename__a_b"):
        with pytest.raises(UnknownTool) as caught:
            resolve(text, names)
        assert (caught.value.reason, caught.value.id) == ("absent", AB)
        with pytest.raises(UnknownTool):
            resolve(text, names, on_unknown="passthrough")


def test_a_retired_name_stops_the_search_in_every_spelling() -> None:
    ledger = Ledger.memory()
    shown(ledger, "a/b", "c/a_b")
    ledger.retire("a_b", successor="c@1/a_b@1")

    names = shown(ledger, "a/b", "c/a_b")

    for text in ("a_b", "A_B", "a-b", "a%5Fb", "mcp__truename__a_b"):
        with pytest.raises(RetiredName) as caught:
            resolve(text, names)
        assert caught.value.successor == "c_a_b"
        assert str(caught.value).endswith("nothing was run. Call 'c_a_b'.")


def test_a_full_ledger_is_told_before_anything_is_recorded() -> None:
    ledger = Ledger.memory(max_claims=1)

    with pytest.raises(LedgerError, match="Server 'a' needs more than 1 names"):
        shown(ledger, "a/b", "a/c")

    assert ledger.settings is None


@pytest.mark.parametrize("later", ["n8n", "gemini-cli", "openai", "universal", "claude-code"])
@pytest.mark.parametrize("client", ["n8n", "gemini-cli", "opencode", "claude-code"])
def test_a_name_as_a_client_showed_it_never_becomes_another_tool_s_name(client: str, later: str) -> None:
    ledger = Ledger.memory()
    first = project(Catalog.from_mcp({"a": ["get"]}), client, style="on-conflict", ledger=ledger)
    seen = first.dialect.shown("truename", first["a@1/get@1"])
    assert seen is not None

    for servers in ({"truename": ["get"]}, {"a": ["get"], "truename": ["get"]}):
        names = project(Catalog.from_mcp(servers), later, style="on-conflict", ledger=ledger)
        if ToolId.parse("a/get") in names:
            assert resolve(seen, names).id == ToolId.parse("a/get")
        else:
            with pytest.raises(ResolutionError):
                resolve(seen, names)


def test_numbers_are_counted_on_past_those_that_absent_versions_hold() -> None:
    ledger = Ledger.memory()
    shown(ledger, *(f"a/x@{version}" for version in range(1, 31)))

    names = shown(ledger, "a/x@1", "a/x@31")

    assert list(names.values()) == ["a_x", "a_x_31"]


def test_a_held_name_that_became_illegal_renames_nobody() -> None:
    ledger = Ledger.memory()
    cursor = dialects.get("cursor")
    before = dict(project(CATALOG, cursor, ledger=ledger))
    tighter = replace(cursor, max_length=2, mangling=replace(cursor.mangling, over="drop"))

    after = project(CATALOG, tighter, ledger=ledger)

    assert dict(after) == before
    assert tighter.shown("truename", after[AB]) is None
    assert all(resolve(name, after).id == id for id, name in before.items())
    assert all(tighter.check(name) for name in after.values())
    assert resolve("A-B", after).id == AB


def test_a_newcomer_that_can_not_be_legal_beside_held_names_is_told() -> None:
    ledger = Ledger.memory()
    project(CATALOG, "cursor", ledger=ledger)

    with pytest.raises(ExceptionGroup) as caught:
        project(Catalog.of("a/b", "a/b@2"), replace(dialects.get("cursor"), max_length=2), ledger=ledger)

    assert [type(error) for error in caught.value.exceptions] == [NoLegalName]


@pytest.mark.parametrize("key", ["gate", "truename"])
def test_an_override_does_not_begin_with_the_gateway_s_own_key(key: str) -> None:
    (error,) = refused({"universal": {"a/b": f"{key}_x"}}, "universal", server_name=key)

    assert isinstance(error, InvalidName)
    assert [reason.code for reason in error.reasons] == ["prefix"]
    other = {"gate": "truename", "truename": "gate"}[key]
    names = project(CATALOG, "universal", overrides={"universal": {"a/b": f"{other}_x"}}, server_name=key)
    assert names[AB] == f"{other}_x"


def test_an_override_may_be_the_name_that_the_tool_holds() -> None:
    ledger = Ledger.memory()
    held = project(CATALOG, "openai", ledger=ledger)[AB]

    assert project(CATALOG, "openai", overrides={"openai": {"a/b": held.upper()}}, ledger=ledger)[AB] == held.upper()
    assert project(CATALOG, "cursor", overrides={"cursor": {"a/b": held}}, ledger=ledger)[AB] == held


@pytest.mark.parametrize("tools", [{"sf_b": ["c"], "zeta": ["b_c"]}, ("a/x", "a/x@2", "a/x@10")])
def test_a_digest_and_a_number_that_a_tool_holds_are_its_own_for_the_next_client_too(
    tools: tuple[str, ...] | dict[str, list[str]],
) -> None:
    aliases = {"zeta": "sf"}
    catalog = Catalog.of(*tools) if isinstance(tools, tuple) else Catalog.from_mcp(tools, aliases)
    ledger = Ledger.memory()
    first = project(catalog, "openai", ledger=ledger)

    assert dict(project(catalog, "cursor", ledger=ledger)) == dict(first)
