"""What a ledger says to somebody who must not hear of some tools."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from truename import Catalog, Ledger, ToolId, project, resolve
from truename.errors import RetiredName, UnknownTool
from truename.ledger import SeenLedger
from truename.naming import listing

if TYPE_CHECKING:
    from truename.naming import NameTable

OPEN, SECRET = (ToolId.parse(text) for text in ("files/list", "bank/pay"))


def part(names: NameTable, *, sees: tuple[ToolId, ...] = (OPEN,)) -> NameTable:
    assert names.ledger is not None
    return names.among(sees, SeenLedger(names.ledger, lambda id: id in sees))


def named(ledger: Ledger, *ids: ToolId | str) -> NameTable:
    return project(Catalog.of(*ids), "universal", style="prefixed", ledger=ledger)


@pytest.fixture
def names(ledger: Ledger) -> NameTable:
    return named(ledger, OPEN, SECRET)


def reason(text: str, names: NameTable) -> tuple[str, tuple[str, ...], str]:
    with pytest.raises(UnknownTool) as caught:
        resolve(text, names)
    return caught.value.reason, caught.value.suggestions, str(caught.value).replace(repr(text), "NAME")


def test_a_part_has_the_same_names(names: NameTable) -> None:
    seen = part(names)
    assert dict(seen) == {OPEN: names[OPEN]}
    assert list(seen.catalog) == [OPEN]
    assert resolve("Files:List", seen).id == OPEN
    assert names.among([OPEN], None).ledger is None


@pytest.mark.parametrize("text", ["bank_pay", "bank/pay", "bank@1/pay@1", "BANK_PAY", "pay", "bank:pay", "pay@latest"])
def test_a_hidden_name_is_no_name(names: NameTable, text: str) -> None:
    assert reason(text, part(names)) == reason("tank_say", part(names))


def test_it_is_none_when_its_tool_is_away_or_retired_or_redirected_too(ledger: Ledger) -> None:
    named(ledger, OPEN, SECRET, "bank/lend", "bank/owe")
    ledger.retire("bank_lend")
    ledger.redirect("bank_owe", SECRET)
    ledger.break_name("bank_sell", SECRET)
    now = named(ledger, OPEN)
    for text in ("bank_pay", "bank_lend", "bank_owe", "bank_sell", "BANK-LEND"):
        assert reason(text, part(now)) == reason("tank_say", part(now))
    assert ledger.standing("bank_lend") is not None


def test_what_leads_to_a_seen_tool_is_seen(ledger: Ledger) -> None:
    names = named(ledger, OPEN, SECRET)
    ledger.redirect("bank/old", OPEN, until="2027-01-01")
    ledger.redirect("dir", OPEN, until="2027-01-01")
    seen = part(names)
    assert resolve("dir", seen).id == resolve("bank/old", seen).id == OPEN
    assert [one.name for one in listing(seen, date(2026, 12, 1))] == ["files_list", "dir"]
    # What comes later counts too.
    ledger.redirect("ls", OPEN)
    assert resolve("ls", seen).id == OPEN
    assert seen.ledger is not None
    assert seen.ledger.scoped("").standing("bank_pay") is None


@pytest.mark.parametrize(("successor", "told"), [("bank_pay", None), ("files_list", "files_list"), ("nothing", None)])
def test_a_successor_that_is_hidden_is_not_told(ledger: Ledger, successor: str, told: str | None) -> None:
    names = named(ledger, OPEN, SECRET)
    gone = ToolId.parse("files/gone")
    named(ledger, gone)
    ledger.retire("files_gone", successor)
    with pytest.raises(RetiredName) as caught:
        resolve("files_gone", part(names, sees=(OPEN, gone)))
    assert caught.value.successor in {told, "files@1/gone@1"} - ({None} if told else set())


def test_hidden_holders_and_identities_are_none(names: NameTable) -> None:
    seen = part(names).ledger
    assert seen is not None
    assert (seen.holder("bankpay"), seen.holder("nothing")) == (None, None)
    assert OPEN in {seen.holder(key) for key in ("files_list", "fileslist")} | {OPEN}
    assert set(seen.bindings().values()) <= {OPEN}
    assert names.ledger is not None
    assert names.ledger.origin_of(ToolId.parse("no/thing")) is None


def test_a_spelling_of_a_hidden_tool_and_of_a_visible_one_is_the_visible_one_s() -> None:
    names = project(Catalog.from_mcp({"files": ["get"], "bank": ["get"]}), "universal", ledger=Ledger.memory())
    files, bank = names
    assert (files.integration, bank.integration) == ("files", "bank")
    seen = part(names, sees=(files,))

    assert caught_in("get", seen) == caught_in("Get", seen) == files
    assert caught_in("bank:get", seen) == ()


def caught_in(text: str, names: NameTable) -> ToolId | tuple[str, ...] | None:
    """Return the tool, or the suggestions of the error."""
    try:
        return resolve(text, names).id
    except UnknownTool as error:
        return error.suggestions


def test_withdrawals_are_read_again_only_after_another_one() -> None:
    ledger = Ledger.memory()
    names = named(ledger, OPEN, SECRET)
    told = SeenLedger(ledger, lambda id: id == OPEN)
    ledger.redirect("moved", SECRET)

    before = told.withdrawn
    assert (list(before), told.withdrawn is before) == ([], True)
    ledger.retire(names[OPEN])
    assert list(told.withdrawn) == [names[OPEN]]
