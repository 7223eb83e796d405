"""A table of some of the tools: the others keep their names and ids, and leave no other trace."""

from __future__ import annotations

import pytest

from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.errors import AmbiguousName, RetiredName, UnknownTool
from truename.ledger.seen import SeenLedger

SECRET = {"vault": ["read_file"], "open": ["readFile", "vault@1/old@1"]}


def seen(servers: dict[str, list[str]] = SECRET, ledger: Ledger | None = None) -> NameTable:
    """Return what somebody sees to whom the server ``vault`` is hidden."""
    ledger = ledger or Ledger.memory()
    catalog = Catalog.from_mcp(servers, bound=ledger.bindings(), owners=ledger.origins())
    table = project(catalog, "universal", ledger=ledger)
    shown = [id for id in table if id.integration != "vault"]
    return table.among(shown, SeenLedger(ledger, lambda id: id.integration != "vault"))


@pytest.mark.parametrize(
    "text", ["vault_read_file", "vault/read_file", "vault@1~read_file", "mcp__truename__vault_read_file"]
)
def test_the_name_and_the_id_of_a_hidden_tool_are_unknown(text: str) -> None:
    with pytest.raises(UnknownTool) as caught:
        resolve(text, seen())

    assert (caught.value.reason, "vault" in str(caught.value.suggestions)) == ("unknown", False)


def test_another_spelling_of_a_hidden_tool_is_as_if_it_were_not_there() -> None:
    without = seen({"open": SECRET["open"]})

    for text in ("read_file", "readFile", "READ-FILE"):
        assert resolve(text, seen()).id == resolve(text, without).id


@pytest.mark.parametrize("text", ["vault_old", "vault@1/old@1", "vault/old"])
def test_the_name_and_the_id_of_a_hidden_tool_that_left_never_fall_to_another(text: str) -> None:
    ledger = Ledger.memory()
    project(Catalog.from_mcp({"vault": ["old"]}), "universal", ledger=ledger)

    with pytest.raises(UnknownTool) as caught:
        resolve(text, seen(ledger=ledger))

    assert caught.value.reason == "unknown"


def test_what_was_redirected_to_a_hidden_tool_is_unknown() -> None:
    ledger = Ledger.memory()
    names = seen(ledger=ledger)
    ledger.redirect("open_read_file", "vault/read_file")

    with pytest.raises(UnknownTool) as caught:
        resolve("open_read_file", names)

    assert caught.value.reason == "unknown"


FORMS = ["t", "a:t", "a_t", "mcp_a__t", "T", "A.T", "functions.a_t", "mcp__truename__t"]


def canonical(first: str, second: str, *, hidden: str) -> NameTable:
    """Return what one sees in a table of ids, in which no name has a number, after `first` was shown under a name."""
    ledger = Ledger.memory()
    project(Catalog.of(first), "universal", ledger=ledger)
    whole = project(Catalog.of(first, second), "native", style="canonical", ledger=ledger)
    return whole.among([id for id in whole if str(id) != hidden], SeenLedger(ledger, lambda id: str(id) != hidden))


@pytest.mark.parametrize("text", FORMS)
@pytest.mark.parametrize(("first", "second"), [("a@1/t@1", "a@2/t@1"), ("a@10/t@1", "a@2/t@1")])
def test_a_spelling_of_a_hidden_first_version_is_unknown_where_names_are_ids_too(
    text: str, first: str, second: str
) -> None:
    with pytest.raises(UnknownTool) as caught:
        resolve(text, canonical(first, second, hidden=first))

    assert (caught.value.reason, caught.value.id) == ("unknown", None)
    assert str(resolve(text, canonical(first, second, hidden=second)).id) == first


@pytest.mark.parametrize("text", FORMS)
def test_without_a_record_the_lowest_version_is_the_first_where_names_are_ids(text: str) -> None:
    low, high = ToolId.parse("a@1/t@1"), ToolId.parse("a@1/t@10")
    whole = project(Catalog.of(str(low), str(high)), "native", style="canonical")

    assert resolve(text, whole.among([low], None)).id == low
    with pytest.raises(AmbiguousName):
        resolve(text, whole)
    with pytest.raises(UnknownTool):
        resolve(text, whole.among([high], None))


@pytest.mark.parametrize("text", FORMS)
def test_hiding_one_of_three_versions_does_not_choose_between_the_others(text: str) -> None:
    one, two, three = (ToolId.parse(f"a@1/t@{version}") for version in (1, 2, 3))
    whole = project(Catalog.of(*map(str, (one, two, three))), "native", style="canonical")

    with pytest.raises(AmbiguousName):
        resolve(text, whole.among([one, three], None))
    with pytest.raises(UnknownTool):
        resolve(text, whole.among([two, three], None))


def test_a_spelling_of_a_hidden_first_version_that_left_is_unknown_where_names_are_ids() -> None:
    first, second, ledger = ToolId.parse("sf@10/get@1"), ToolId.parse("sf@3/get@1"), Ledger.memory()
    project(Catalog.of(str(first)), "openai", ledger=ledger)
    whole = project(Catalog.of(str(second)), "native", style="canonical", ledger=ledger)
    part = whole.among([second], SeenLedger(ledger, lambda id: id != first))

    for text in ("get", "GET", "sf:get"):
        with pytest.raises(UnknownTool):
            resolve(text, part)
    assert resolve("sf@3/get@1", part).id == second


def test_a_name_whose_tool_was_redirected_by_way_of_a_visible_one_to_a_hidden_one_is_unknown() -> None:
    ledger = Ledger.memory()
    project(Catalog.of("old@1/t@1"), "universal", ledger=ledger)
    ledger.redirect("next@1/t@1", ToolId.parse("vault@1/t@1"))
    ledger.redirect("old@1/t@1", ToolId.parse("next@1/t@1"))
    whole = project(Catalog.of("next@1/t@1"), "universal", ledger=ledger)
    part = whole.among(list(whole), SeenLedger(ledger, lambda id: id.integration not in {"vault", "old"}))

    for text in ("old_t", "old@1/t@1", "OLD_T", "mcp__truename__old_t"):
        with pytest.raises(UnknownTool) as caught:
            resolve(text, part)
        assert caught.value.reason == "unknown"


@pytest.mark.parametrize("text", ["a@1/t@1", "a%401/t%401", "mcp__truename__a@1/t@1"])
def test_a_version_of_a_hidden_tool_that_is_not_there_runs_no_tool_that_is_called_so(text: str) -> None:
    whole = project(Catalog.from_mcp({"get": ["a@1/t@1"]}).with_tools(Catalog.of("a@1/t@10").values()), "universal")
    part = whole.among([id for id in whole if id.integration == "get"], None)

    for table in (whole, part):
        with pytest.raises(UnknownTool) as caught:
            resolve(text, table)
        assert caught.value.reason == "unknown"


def test_of_a_redirect_and_a_later_retirement_of_one_name_in_two_spellings_the_later_counts() -> None:
    ledger = Ledger.memory()
    names = seen(ledger=ledger)
    ledger.redirect("open_read__file", "vault/read_file")
    with pytest.raises(UnknownTool):
        resolve("open_read__file", names)
    ledger.retire("open_read_file")

    for text in ("open_read__file", "open_read_file"):
        with pytest.raises(RetiredName) as caught:
            resolve(text, names)
        assert str(caught.value.id) == "open@1/readfile@1"
