"""What an operator does to names: redirects that stay listed, clean breaks, and who may have the name then."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from tests.ledger.stories import claim, log_of, show
from truename import Ledger, ToolId
from truename.errors import InvalidName, LedgerError
from truename.ledger import Break, Redirect

if TYPE_CHECKING:
    from pathlib import Path

OLD, NEW, OTHER = (ToolId.parse(text) for text in ("kenny/powershell.exec", "kenny/powershell_exec", "other/x"))


@pytest.mark.parametrize("until", ["2027-02-01", date(2027, 2, 1)])
def test_a_redirect_says_until_when_the_old_name_is_listed(ledger: Ledger, until: str | date) -> None:
    ledger.redirect("fs.list", NEW, until=until)

    standing = ledger.standing("fs.list")
    assert standing is not None
    assert (standing.status, standing.id, standing.until) == ("redirected", NEW, "2027-02-01")


@pytest.mark.parametrize("until", ["tomorrow", "2027-02-30", "2027-02-01\n", "02.01.2027"])
def test_what_is_no_day_is_refused_and_nothing_recorded(ledger: Ledger, until: str) -> None:
    with pytest.raises(LedgerError) as caught:
        ledger.redirect("fs.list", NEW, until=until)

    assert (caught.value.code, caught.value.wanted) == ("invalid_day", until)
    assert ledger.history("fs.list") == ()


def test_a_clean_break_tells_the_successor_and_since_when(ledger: Ledger) -> None:
    show(ledger, str(OLD), client="native", style="declared")
    ledger.break_name("powershell.exec", "powershell_exec", id=NEW, protocol="0.3")

    standing = ledger.standing("powershell.exec")
    assert standing is not None
    assert (standing.status, standing.id, standing.successor, standing.protocol) == (
        "broken",
        NEW,
        "powershell_exec",
        "0.3",
    )
    assert log_of(ledger, "powershell.exec") == ["claim", "break"]
    assert "powershell.exec" in ledger.withdrawn


def test_a_break_without_a_successor_says_none(ledger: Ledger) -> None:
    ledger.break_name("gone")

    standing = ledger.standing("gone")
    assert standing is not None
    assert (standing.status, standing.id, standing.successor) == ("broken", None, None)
    assert ledger.is_withdrawn("gone")


def test_a_break_may_name_what_is_on_record_or_an_id(ledger: Ledger) -> None:
    show(ledger, "a/c")
    ledger.break_name("one", "a_c")
    ledger.break_name("two", "A@v1/C")
    ledger.break_name("three", ToolId.parse("a/c"))

    assert {ledger.withdrawn[name].id for name in ("one", "two", "three")} == {ToolId.parse("a/c")}


@pytest.mark.parametrize("old", ["", "a\nb", "x" * 3000])
def test_what_can_not_be_told_can_not_be_broken(ledger: Ledger, old: str) -> None:
    with pytest.raises(InvalidName):
        ledger.break_name(old, "new")
    with pytest.raises(InvalidName):
        ledger.break_name("old", "new", protocol="0.\n3")


def test_a_broken_spelling_is_nobodys_and_the_successor_has_the_others(ledger: Ledger) -> None:
    ledger.record([claim("powershell.exec", str(OLD), "native"), claim("powershell_exec", str(OLD))])
    ledger.break_name("powershell.exec", "powershell_exec", id=NEW)

    assert ledger.bars("powershell.exec", NEW)
    assert not ledger.bars("powershell_exec", NEW)
    assert ledger.holder("powershell_exec") == NEW
    ledger.record([claim("powershell_exec", str(NEW))])
    for id in (OLD, OTHER):
        with pytest.raises(LedgerError) as caught:
            ledger.record([claim("powershell_exec", str(id))])
        assert caught.value.code == "conflict"


def test_a_successor_given_as_an_id_has_the_spellings_of_its_own_name(ledger: Ledger) -> None:
    ledger.break_name("powershell.exec", NEW)
    ledger.break_name("other.x", OTHER)
    ledger.break_name("Files.List", ToolId.parse("k/files.list"))

    assert not ledger.bars("powershell_exec", NEW)
    assert not ledger.bars("other_x", OTHER)
    assert not ledger.bars("files_list", ToolId.parse("k/files.list"))


def test_a_break_to_another_name_takes_all_spellings_with_it(ledger: Ledger) -> None:
    ledger.record([claim("fs.list", "k/fs.list", "native"), claim("fs_list", "k/fs.list")])
    ledger.break_name("fs.list", "files_all", id=NEW)

    assert {ledger.withdrawn[name].status for name in ("fs.list", "fs_list")} == {"broken"}
    assert ledger.bars("FS-List", NEW)


def test_what_was_broken_stays_so_when_another_spelling_is_redirected(ledger: Ledger) -> None:
    ledger.record([claim("k:fs.list", "k/fs.list", "native"), claim("k_fs_list", "k/fs.list")])
    ledger.break_name("k:fs.list", NEW)
    ledger.redirect("k_fs_list", OTHER)

    assert [ledger.withdrawn[name].status for name in ("k:fs.list", "k_fs_list")] == ["broken", "redirected"]
    ledger.redirect("k:fs.list", OTHER)
    assert ledger.withdrawn["k:fs.list"].status == "redirected"


def test_ids_that_fold_alike_are_broken_each_for_itself(ledger: Ledger) -> None:
    ledger.break_name(str(OLD), NEW, protocol="0.3")

    assert ledger.withdrawn[str(OLD)].id == NEW
    assert ledger.standing(str(NEW)) is None


def test_only_the_tool_that_a_name_was_redirected_to_may_be_shown_under_it(ledger: Ledger) -> None:
    ledger.record([claim("kenny_powershell_exec", str(OLD))])
    ledger.redirect("kenny_powershell_exec", NEW)

    with pytest.raises(LedgerError) as caught:
        ledger.record([claim("kenny_powershell_exec", str(OTHER))])
    assert caught.value.code == "withdrawn"
    ledger.record([claim("kenny-powershell-exec", str(NEW), "cursor")])
    assert ledger.holder("kenny_powershell_exec") == NEW
    assert ledger.standing("kenny-powershell-exec") == ("held", NEW, "", None, "", "")


def test_a_tool_inherits_the_names_of_the_one_that_was_redirected_to_it(ledger: Ledger) -> None:
    older = ToolId.parse("kenny/ps")
    ledger.record([claim("kenny_ps", str(older)), claim("x", "a/x")])
    ledger.redirect(str(older), OLD)
    ledger.break_name(str(OLD), NEW)

    assert ledger.is_heir("kenny_ps", NEW)
    assert not ledger.is_heir("kenny_ps", OTHER)
    assert not ledger.is_heir("x", NEW)
    assert not ledger.is_heir("never_shown", NEW)


def test_a_retired_tool_leaves_its_names_to_nobody(ledger: Ledger) -> None:
    ledger.record([claim("kenny_ps", str(OLD))])
    ledger.retire("kenny_ps", successor="new")
    assert not ledger.is_heir("kenny_ps", NEW)

    ledger.record([claim("ps", str(OLD))])
    ledger.remember(None, (), [("kenny", "powershell.exec", OLD)])
    ledger.retire(str(OLD))
    assert not ledger.is_heir("ps", NEW)


def test_a_redirect_that_would_close_a_circle_takes_the_first_one_back(ledger: Ledger) -> None:
    ledger.record([claim("ps", str(OLD))])
    ledger.redirect(str(OLD), NEW)
    ledger.redirect(str(NEW), OLD)

    assert not ledger.is_heir("ps", NEW)
    assert not ledger.is_heir("ps", OTHER)
    assert list(ledger.successors(NEW)) == [OLD]


def test_a_name_belongs_in_the_lists_where_it_was_or_in_all(ledger: Ledger) -> None:
    ledger.record([claim("ps", str(OLD), "cursor")])

    assert ledger.shown_in("ps", "cursor")
    assert not ledger.shown_in("ps", "openai")
    assert ledger.shown_in("PS", "openai")
    assert ledger.shown_in("never", "openai")


def test_withdrawals_are_counted_and_scopes_are_told(ledger: Ledger) -> None:
    assert (ledger.withdrawals, ledger.scopes) == (0, ())
    ledger.scoped("only/a").redirect("x", NEW)
    ledger.break_name("y")

    assert ledger.withdrawals == 1
    assert set(ledger.scopes) == {"", "only/a"}


def test_all_of_it_is_remembered(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    with ledger.transaction():
        ledger.redirect("fs.list", NEW, until="2027-02-01")
        ledger.break_name("powershell.exec", "powershell_exec", protocol="0.3")
        ledger.break_name("gone")

    again = Ledger.open(tmp_path / "ledger", readonly=True)
    assert dict(again.withdrawn) == dict(ledger.withdrawn)
    assert [type(event) for name in ("fs.list", "gone") for event in again.history(name)] == [Redirect, Break]


@pytest.mark.parametrize("client", ["openai", "universal"])
def test_a_name_that_was_led_back_stays_with_the_tool_that_shows_it_again(ledger: Ledger, client: str) -> None:
    old, new = "kenny/fs.list", "kenny/fs_list"
    assert show(ledger, old)["kenny@1/fs.list@1"] == "kenny_fs_list"
    ledger.redirect(old, new)
    assert show(ledger, new)["kenny@1/fs_list@1"] == "kenny_fs_list"
    ledger.redirect(new, old)
    assert show(ledger, old, client=client)["kenny@1/fs.list@1"] == "kenny_fs_list"

    both = show(ledger, old, new, client=client)

    assert both["kenny@1/fs.list@1"] == "kenny_fs_list"
    assert both["kenny@1/fs_list@1"] != "kenny_fs_list"
    assert str(ledger.holder("kenny_fs_list")) == "kenny@1/fs.list@1"


def test_an_id_that_was_given_away_and_comes_back_is_the_tools_again() -> None:
    ledger = Ledger.memory()
    old, new = ToolId.parse("fs/list"), ToolId.parse("files/list")
    ledger.remember(None, (), [("fs", "list", old)])
    ledger.redirect(str(old), new)
    ledger.remember(None, (), [("fs", "list", new)])
    ledger.redirect(str(new), old)

    ledger.remember(None, (), [("fs", "list", old)])

    assert ledger.bindings()["fs", "list"] == old
    assert ledger.origin_of(old) == ledger.origin_of(new) == ("fs", "list")
