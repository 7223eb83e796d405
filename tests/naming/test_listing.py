"""Lists after a rename: the old name stays beside the new one until its day, where it was, and nowhere else."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest

from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.naming import ListedName, listing, renamed, utc_today

LAST, AFTER = date(2027, 2, 1), date(2027, 2, 2)
UNTIL = LAST.isoformat()
NEW = ToolId.parse("files/find_all")


def table(ledger: Ledger, *names: str, dialect: str = "universal", **more: Any) -> NameTable:
    return project(Catalog.from_mcp({"files": list(names)}), dialect, ledger=ledger, style="on-conflict", **more)


def names_on(day: date, names: NameTable) -> list[str]:
    return [one.name for one in listing(names, day)]


def test_an_old_name_is_listed_in_its_place_until_its_day_is_over() -> None:
    ledger = Ledger.memory()
    table(ledger, "first", "search", "last")
    ledger.redirect("files/search", NEW, until=UNTIL)
    names = table(ledger, "first", "find_all", "last")

    assert names_on(LAST, names) == ["first", "search", "last", "find_all"]
    assert listing(names, LAST)[1] == ListedName("search", NEW, "find_all", UNTIL)
    assert names_on(AFTER, names) == ["first", "last", "find_all"]
    assert resolve("search", names).id == NEW


def test_an_old_name_of_the_same_tool_stands_behind_the_present_one() -> None:
    ledger = Ledger.memory()
    names = table(ledger, "first", "find_all", "last")
    ledger.redirect("seek", "find_all", until=UNTIL)

    assert names_on(LAST, names) == ["first", "find_all", "seek", "last"]


@pytest.mark.parametrize("old", ["find.all", "FIND_ALL", "find all", "a" * 80])
def test_what_is_not_legal_or_could_be_taken_for_another_name_is_left_out(old: str) -> None:
    ledger = Ledger.memory()
    names = table(ledger, "find_all")
    ledger.redirect(old, "find_all", until=UNTIL)

    assert names_on(LAST, names) == ["find_all"]
    assert resolve(old, names).id == NEW


def test_two_old_names_that_a_client_could_merge_are_one() -> None:
    ledger = Ledger.memory()
    names = table(ledger, "find_all", dialect="openai")
    ledger.redirect("seek-all", "find_all", until=UNTIL)
    ledger.redirect("seek_all", "find_all", until=UNTIL)

    assert names_on(LAST, names) == ["find_all", "seek-all"]


def test_a_name_is_listed_where_it_was() -> None:
    ledger = Ledger.memory()
    table(ledger, "search", dialect="openai")
    ledger.redirect("search", NEW, until=UNTIL)

    assert names_on(LAST, table(ledger, "find_all", dialect="openai")) == ["search", "find_all"]
    assert names_on(LAST, table(ledger, "find_all", dialect="cursor")) == ["find_all"]


def test_an_old_id_brings_the_name_that_its_tool_held_in_this_list() -> None:
    ledger = Ledger.memory()
    table(ledger, "search", dialect="openai")
    ledger.redirect("files/search", NEW, until=UNTIL)

    assert names_on(LAST, table(ledger, "find_all", dialect="openai")) == ["search", "find_all"]
    assert names_on(LAST, table(ledger, "find_all", dialect="cursor")) == ["find_all"]


def test_an_old_tool_that_is_still_there_is_listed_once() -> None:
    ledger = Ledger.memory()
    table(ledger, "search")
    ledger.redirect("files/search", NEW, until=UNTIL)

    assert names_on(LAST, table(ledger, "search", "find_all")) == ["search", "find_all"]


def test_a_name_whose_new_tool_is_away_is_not_listed() -> None:
    ledger = Ledger.memory()
    table(ledger, "search", "other")
    ledger.redirect("search", NEW, until=UNTIL)

    assert names_on(LAST, table(ledger, "other")) == ["other"]


def test_without_a_day_or_a_ledger_the_list_is_the_table() -> None:
    ledger = Ledger.memory()
    ledger.redirect("seek", NEW)

    assert names_on(LAST, table(ledger, "find_all")) == ["find_all"]
    assert names_on(LAST, project(Catalog.of("files/find_all"), "openai")) == ["files_find_all"]


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("Finds.", "Renamed to 'find_all'; this name is listed until 2027-02-01. Finds."),
        ("", "Renamed to 'find_all'; this name is listed until 2027-02-01."),
        (None, "Renamed to 'find_all'; this name is listed until 2027-02-01."),
        (["x"], "Renamed to 'find_all'; this name is listed until 2027-02-01."),
    ],
)
def test_the_description_of_an_old_name_begins_with_the_present_one(description: Any, expected: str) -> None:
    definition = {"name": "find_all", "description": description, "inputSchema": {"type": "object"}}

    told = renamed(definition, ListedName("search", NEW, "find_all", UNTIL))

    assert told == {**definition, "description": expected}
    assert renamed(definition, ListedName("find_all", NEW)) is definition


def test_a_day_is_one_of_utc() -> None:
    before = datetime.now(UTC).date()
    assert before <= utc_today() <= datetime.now(UTC).date()
