"""Absent tools that a ledger is asked for are those that an index of all of them finds, whatever happened before."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.laws.catalogues import LABELS, NAMES
from tests.support.state_places import new_place
from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.catalog import label_of
from truename.errors import LedgerError, ResolutionError, UnknownTool
from truename.identity import ToolRef
from truename.ledger.ledger import MAX_CLAIMS, LedgerCore
from truename.ledger.seen import SeenLedger
from truename.ledger.sql import SqlLedger
from truename.naming import spellings
from truename.naming.spellings import SpellingIndex
from truename.storage import StateLocation
from truename.storage.sqlite import SqliteDatabase

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path


_numbers = count()
_IDS = [f"salesforce@{version}/{name}@{tool}" for name in ("get", "get_data") for version in (1, 2) for tool in (1, 2)]
_LISTS = st.tuples(LABELS, st.lists(NAMES, max_size=5, unique=True))
_VERSIONS = st.tuples(st.just("versions"), st.lists(st.sampled_from(_IDS), max_size=5, unique=True))
_WITHDRAWALS = st.tuples(st.sampled_from(["retire", "redirect", "break"]), st.integers(0, 50), st.integers(0, 50))
_STYLED = st.tuples(st.just("style"), st.sampled_from(["prefixed", "on-conflict", "canonical"]))
_STEPS = st.lists(_LISTS | _VERSIONS | _WITHDRAWALS | _STYLED, min_size=2, max_size=8)
_DIALECTS = st.sampled_from(["universal", "openai", "gemini-cli", "n8n", "native"])


class WholeIndex(SpellingIndex):
    """The index that has all absent tools of the ledger, in memory, and finds them as it finds present ones."""

    def __init__(self, table: NameTable) -> None:
        super().__init__(table)
        self._gone: frozenset[ToolId] = frozenset()

    def prepare(self) -> None:
        if self._is_prepared:
            return
        super().prepare()
        table, ledger = self._table, self._table.ledger
        assert ledger is not None
        self._gone = frozenset(
            id
            for id, (server, _) in dict(ledger.origins()).items()
            if id not in table and (not ledger.scope or server in table.catalog.servers)
        )
        self._add_own(self._gone)

    def is_absent(self, id: ToolId) -> bool:
        self.prepare()
        return id in self._gone

    def _ending(self, end: str) -> list[ToolId]:
        found = self._ends.get(end, frozenset())
        return [found] if isinstance(found, ToolId) else list(found)

    def _proposed(self, key: str) -> dict[ToolId, None]:
        found: dict[ToolId, None] = {}
        for plain in dict.fromkeys((key, spellings._NUMBER.sub("", key))):
            found |= dict.fromkeys(self._ending(plain.lstrip("_")))
            for at in spellings._separators(plain):
                labels = self._heads.get(plain[:at], frozenset())
                ending = self._ending(plain[at + 1 :])
                found |= {id: None for id in ending if not labels.isdisjoint(one.server for one in self._spelled(id))}
        return found


class Life:
    """A ledger, the names of one client, and all texts that are perhaps spellings of something."""

    def __init__(self, ledger: Ledger, dialect: str, scope: str = "") -> None:
        self.whole = ledger
        self.ledger = ledger.scoped(scope) if scope else ledger
        self.dialect, self.style = dialect, "prefixed"
        self.lists: dict[str, list[str]] = {}
        self.versions: list[str] = []
        self.names = self.project()

    def live(self, what: str, one: Any, other: int = 0) -> None:
        if what == "style":
            self.style = one
            if (recorded := self.ledger.settings) is not None:
                self.ledger.restyle(replace(recorded, style=one))
        elif what == "versions":
            self.versions = one
        elif isinstance(one, list):
            self.lists[what] = one
        else:
            self.withdraw(what, one, other)
        self.names = self.project()

    def withdraw(self, what: str, one: int, other: int) -> None:
        names = list(self.names.values())
        if not names:
            return
        old, new = names[one % len(names)], names[other % len(names)]
        with suppress(LedgerError):
            if what == "retire":
                self.ledger.retire(old)
            elif what == "redirect":
                self.ledger.redirect(old, new)
            else:
                self.ledger.break_name(old, "successor")

    def project(self) -> NameTable:
        record = self.whole.bindings(), self.whole.origins()
        catalog = Catalog.from_mcp(self.lists, bound=record[0], owners=record[1], strict=False)
        catalog = catalog.with_tools(tool for id, tool in Catalog.of(*self.versions).items() if id not in catalog)
        with suppress(LedgerError):
            self.whole.remember(None, (), [(one.origin.server_id, one.origin.name, id) for id, one in catalog.items()])
        return project(catalog, self.dialect, style=self.style, ledger=self.ledger)


def texts_about(names: NameTable) -> Iterator[str]:
    """Yield spellings, exact and others, of all tools on record, also behind the other names of their servers."""
    ledger = names.ledger
    assert ledger is not None
    for id, (server, name) in dict(ledger.origins()).items():
        held = ledger.held(names.dialect.name).get(id, "")
        prefix, number = ledger.parts(held)
        for label in {label_of(server), id.integration}:
            one = spellings._SpelledTool(id, label, name, held, prefix, number)
            for alias in (None, names.catalog.aliases.get(id.integration)):
                yield from spellings._all_spellings(one, alias)
                yield from spellings._loose_spellings(one, alias)
        yield from (held, f"{held}_2", f"{id.integration}_{held}", str(id), id.short)


def found(names: NameTable, text: str) -> list[object]:
    index = names.spellings
    told: object
    try:
        told = resolve(text, names)
    except ResolutionError as error:
        told = error.code, error.trail
    try:
        family = frozenset(index.family(ToolRef.parse(text)))
    except ValueError:
        family = frozenset()
    return [
        told,
        family,
        frozenset(index.exact(text)),
        frozenset(index.folded(text)),
        index.belongs_to_older(text),
        frozenset(index.shown_as(text)),
    ]


def with_index(names: NameTable, kind: type[SpellingIndex]) -> NameTable:
    """Return the same table, whole and with every second tool hidden, with an index of this kind."""
    assert names.ledger is not None
    names.__dict__["spellings"] = kind(names)
    seen = set(list(names)[::2])
    absent = sorted(id for id in dict(names.ledger.origins()) if id not in names)
    part = names.among(seen, SeenLedger(names.ledger, (seen | set(absent[::2])).__contains__))
    part.__dict__["spellings"] = kind(part)
    return part


def compare(ledger: Ledger, steps: list[Any], dialect: str, scope: str) -> None:
    try:
        life = Life(ledger, dialect, scope)
        for step in steps:
            life.live(*step)
    except ExceptionGroup:
        # A tool has no legal name here.
        return
    names = life.names
    spelled = sorted(set(texts_about(names)))
    texts: Collection[str] = [
        *spelled[::2],
        *(text.upper() for text in spelled[::3]),
        *(f"{text}_2" for text in spelled[1::3]),
    ]
    answers = []
    for kind in (WholeIndex, SpellingIndex):
        part = with_index(names, kind)
        told = [(text, found(names, text), found(part, text)) for text in texts]
        answers.append((told, [names.spellings.is_absent(id) for id in dict(ledger.origins())]))
    assert answers[0] == answers[1]


# Names that the keys of the tables do not have, that a client shortens, and that only their ids have.
LONG = "create_confluence_page_with_long_body_and_many_attachments_for_a_team"
ODD: list[Any] = [
    ("天気", ["天気 取得", "é", "get+data", "fs.list", "getData", "GET_DATA", LONG, f"{LONG}_2"]),
    ("My Server", ["getData", "x"]),
    ("天気", []),
    ("My Server", []),
    ("other", ["a"]),
]
places = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@example(ODD, "universal", "")
@settings(places, max_examples=15)
@given(_STEPS, _DIALECTS, st.sampled_from(["", "one"]))
def test_in_memory(steps: list[Any], dialect: str, scope: str) -> None:
    compare(Ledger.memory(), steps, dialect, scope)


def asked(place: StateLocation) -> Ledger:
    return Ledger(LedgerCore(SqlLedger(place, readonly=False, at_once=0), MAX_CLAIMS, readonly=False))


@example(ODD, "universal", "")
@settings(places, max_examples=15)
@given(_STEPS, _DIALECTS, st.sampled_from(["", "one"]))
def test_in_a_file_of_which_rows_are_read_when_asked(
    tmp_path: Path, steps: list[Any], dialect: str, scope: str
) -> None:
    with closing(asked(StateLocation(tmp_path / f"{next(_numbers)}"))) as ledger:
        compare(ledger, steps, dialect, scope)


@example(ODD, "universal", "")
@settings(places, max_examples=6)
@given(_STEPS, _DIALECTS, st.sampled_from(["", "one"]))
def test_in_postgresql(steps: list[Any], dialect: str, scope: str) -> None:
    with new_place() as place, closing(asked(place)) as ledger:
        compare(ledger, steps, dialect, scope)


def test_a_name_that_nobody_has_reads_no_row_of_absent_tools_and_asks_once_for_all_that_it_can_mean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = StateLocation(tmp_path / "ledger")
    with closing(asked(place)) as writer:
        names = [f"tool_{number}" for number in range(3000)]
        project(Catalog.from_mcp({"old": names, "other": ["get_it"]}), "universal", style="prefixed", ledger=writer)
        table = project(Catalog.from_mcp({"new": ["a"]}), "universal", style="prefixed", ledger=writer)
    read: list[int] = []
    rows = SqliteDatabase.rows

    def counted(data: SqliteDatabase, query: str, *values: object) -> list[tuple[object, ...]]:
        found = rows(data, query, *values)
        read.append(len(found))
        return found

    monkeypatch.setattr(SqliteDatabase, "rows", counted)
    with closing(asked(place)) as ledger:
        table = project(Catalog.from_mcp({"new": ["a"]}), "universal", style="prefixed", ledger=ledger)
        read.clear()
        with pytest.raises(UnknownTool):
            resolve("old_get_" + "_".join(map(str, range(300))), table)
        assert (sum(read), len(read)) < (20, 40)
        assert table.spellings.exact("OTHER_get_it") == frozenset()
        assert table.spellings.exact("other:get_it") == table.spellings.folded("OTHER.GET-IT") != frozenset()
