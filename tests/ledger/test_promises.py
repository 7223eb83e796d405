"""What a ledger promises, in memory and on disk alike."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.ledger.stories import SETTINGS, claim, log_of, settings, show
from truename import Catalog, Ledger, ToolId, project, resolve
from truename.errors import LedgerError, RetiredName, UnknownTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.ledger import Event

AB, AC = ToolId.parse("a/b"), ToolId.parse("a/c")


def refused(ledger: Ledger, *events: Event) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        ledger.record(events)
    return caught.value


def test_a_name_belongs_to_the_first_tool_that_it_was_shown_for(ledger: Ledger) -> None:
    ledger.record([claim("get_data", "a/b")])

    error = refused(ledger, claim("get_data", "a/c"))

    assert (error.code, error.name, error.holder, error.claimant) == ("conflict", "get_data", AB, AC)
    assert str(error) == (
        "'get_data' is held by a@1/b@1, so a@1/c@1 cannot have it. "
        "A name never passes to another tool; choose another name."
    )


@pytest.mark.parametrize("other", ["Get_Data", "get-data", "get__data", "_get_data", "GET.DATA"])
@pytest.mark.parametrize("table", ["openai", "cursor"])
def test_a_name_that_a_client_could_take_for_it_belongs_to_it_too(ledger: Ledger, other: str, table: str) -> None:
    ledger.record([claim("get_data", "a/b")])

    assert refused(ledger, claim(other, "a/c", table)).code == "conflict"
    ledger.record([claim(other, "a/b", table)])

    assert ledger.holder("get_data") == AB


def test_two_newcomers_in_one_record_don_t_get_one_name(ledger: Ledger) -> None:
    error = refused(ledger, claim("x", "a/b"), claim("X", "a/c"))

    assert error.code == "conflict"
    assert ledger.holder("x") is None
    assert ledger.history("x") == ()


def test_a_record_is_kept_whole_or_not_at_all(ledger: Ledger) -> None:
    ledger.record([claim("x", "a/b")])

    refused(ledger, SETTINGS, claim("new", "a/c"), claim("x", "a/c"))

    assert ledger.settings is None
    assert ledger.holder("new") is None
    assert dict(ledger.bindings()) == {}


def test_nothing_to_record_is_nothing_recorded(ledger: Ledger) -> None:
    ledger.record([])

    assert ledger.settings is None


def test_one_server_can_not_reserve_the_whole_space(fresh: Callable[..., Ledger]) -> None:
    ledger = fresh(max_claims=2)
    ledger.record([claim("x", "a/x"), claim("y", "a/y"), claim("z", "b/z", server="b")])

    ledger.record([claim("x", "a/x", "cursor"), claim("X", "a/x", "zed")])
    error = refused(ledger, claim("w", "a/w"))

    assert (error.code, error.origin, error.count) == ("full", "a", 2)
    assert str(error) == (
        "Server 'a' needs more than 2 names, the limit for one server. "
        "Leave out tools that it does not need, or raise max_claims."
    )
    assert ledger.holder("w") is None


def test_a_hostile_server_fills_its_own_share_and_others_go_on(fresh: Callable[..., Ledger]) -> None:
    ledger = fresh(max_claims=10)
    flood = Catalog.from_mcp({"evil": [f"t{number}" for number in range(11)]})

    with pytest.raises(LedgerError, match="Server 'evil' needs more than 10 names"):
        project(flood, "openai", ledger=ledger)

    assert show(ledger, "good/x")["good/x"[:4] + "@1/x@1"] == "good_x"
    assert dict(ledger.bindings()) == {("good", "x"): ToolId.parse("good/x")}


def test_how_names_are_made_is_remembered_at_the_first_projection(ledger: Ledger) -> None:
    show(ledger, "a/b")

    assert ledger.settings is not None
    assert (ledger.settings.style, ledger.settings.server_name) == ("prefixed", "truename")
    assert ledger.settings.same(SETTINGS)


@pytest.mark.parametrize(
    ("change", "recorded", "wanted"),
    [
        ({"style": "on-conflict"}, "style = 'prefixed'", "style = 'on-conflict'"),
        ({"server_name": "gate"}, "server_name = 'truename'", "server_name = 'gate'"),
    ],
)
def test_names_are_not_made_otherwise_in_one_ledger(
    ledger: Ledger, change: dict[str, str], recorded: str, wanted: str
) -> None:
    catalog = Catalog.of("a/b")
    project(catalog, "openai", ledger=ledger)

    with pytest.raises(LedgerError) as caught:
        project(catalog, "openai", ledger=ledger, **change)  # type: ignore[arg-type]

    assert (caught.value.code, caught.value.recorded, caught.value.wanted) == ("style_mismatch", recorded, wanted)
    assert str(caught.value) == (
        f"This ledger was created with {recorded}, not with {wanted}. "
        "Run `truename rename --all` to change it, or use another ledger (--state PATH)."
    )


def test_other_aliases_are_a_mismatch_too(ledger: Ledger) -> None:
    project(Catalog.of("a/b", aliases={"a": "x"}), "openai", ledger=ledger)

    with pytest.raises(LedgerError, match=re.escape("aliases = {'a': 'x'}")):
        project(Catalog.of("a/b", aliases={}), "openai", ledger=ledger)


def test_after_a_change_of_style_old_names_go_on_working(ledger: Ledger) -> None:
    show(ledger, "salesforce/get_leads")

    ledger.restyle(settings("on-conflict"))
    names = show(ledger, "salesforce/get_leads", style="on-conflict")

    assert dict(names) == {ToolId.parse("salesforce/get_leads"): "get_leads"}
    assert resolve("sf_get_leads", names).step == "ledger"


def test_a_retired_name_is_answered_with_its_successor_and_never_shown_again(ledger: Ledger) -> None:
    show(ledger, "a/b", "a/c")

    ledger.retire("a_b", successor="a@1/c@1")
    names = show(ledger, "a/b", "a/c")

    assert "a_b" not in names.values()
    assert ledger.is_withdrawn("a_b")
    assert "a_b" in ledger.withdrawn
    with pytest.raises(RetiredName) as caught:
        resolve("a_b", names)
    assert (caught.value.id, caught.value.successor) == (AB, "a_c")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", caught.value.since)


def test_a_retired_name_is_given_to_nobody(ledger: Ledger) -> None:
    ledger.record([claim("x", "a/b")])
    ledger.retire("x")

    for id in ("a/b", "a/c"):
        error = refused(ledger, claim("X", id))
        assert (error.code, error.name, error.claimant) == ("withdrawn", "X", ToolId.parse(id))
    assert refused(ledger, claim("x", "a/c")).holder is None


def test_a_table_made_before_a_retirement_no_longer_answers_to_the_name(ledger: Ledger) -> None:
    names = show(ledger, "a/b")

    ledger.retire("a_b")

    with pytest.raises(RetiredName):
        resolve("a_b", names)


def test_a_redirected_name_means_its_successor(ledger: Ledger) -> None:
    names = show(ledger, "a/b", "a/c")

    ledger.redirect("a_b", "a_c")
    ledger.redirect("fs.list", AC)
    ledger.redirect("fs.read", "a/c@1")

    for old in ("a_b", "fs.list", "fs.read", "fs.read"):
        assert resolve(old, names).id == AC
        assert resolve(old, names).step == "ledger"
    assert refused(ledger, claim("fs.list", "a/b")).code == "withdrawn"


def test_a_redirect_to_an_absent_tool_stops(ledger: Ledger) -> None:
    ledger.redirect("old", "gone/tool")

    with pytest.raises(UnknownTool) as caught:
        resolve("old", show(ledger, "a/b"))

    assert (caught.value.reason, caught.value.id) == ("absent", ToolId.parse("gone/tool"))


def test_what_was_never_shown_can_not_be_retired_or_redirected_to(ledger: Ledger) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.retire("nothing")
    assert (caught.value.code, caught.value.name) == ("not_held", "nothing")
    with pytest.raises(LedgerError) as caught:
        ledger.redirect("old", "nothing")
    assert (caught.value.code, caught.value.name) == ("not_held", "nothing")
    assert ledger.standing("old") is None


def test_a_name_is_retired_in_any_spelling(ledger: Ledger) -> None:
    ledger.record([claim("get_data", "a/b")])

    ledger.retire("Get-Data")

    for spelling in ("get_data", "Get-Data"):
        standing = ledger.standing(spelling)
        assert standing is not None
        assert standing.status == "retired"


def test_the_history_of_a_name_is_told_in_order(ledger: Ledger) -> None:
    ledger.record([claim("get_data", "a/b")])
    ledger.record([claim("get-data", "a/b", "cursor")])
    ledger.retire("get_data")
    ledger.redirect("get_data", AC)

    assert log_of(ledger, "GET_DATA") == ["claim", "claim", "retire", "redirect"]
    assert all(event.at.endswith("+00:00") for event in ledger.history("get_data"))
    assert ledger.history("never") == ()


def test_transactions_nest(ledger: Ledger) -> None:
    with ledger.transaction(), ledger.transaction():
        ledger.record([claim("x", "a/b")])
        ledger.refresh()
        with pytest.raises(LedgerError):
            ledger.record([claim("x", "a/c")])

    assert ledger.holder("x") == AB


def test_the_caller_s_own_error_leaves_a_transaction_as_it_is(ledger: Ledger) -> None:
    with pytest.raises(PermissionError, match="mine"), ledger.transaction():
        raise PermissionError("mine")

    ledger.record([claim("x", "a/b")])
