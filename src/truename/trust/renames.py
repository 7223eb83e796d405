"""Store what servers dropped and brought: tools that left, tools that are new since then, and which became which.

A tool that is new since another one left may be that one. The record says so until somebody decides, also if the other
one comes back meanwhile: whoever renames a denied tool does not get rid of the denial by that. A decision is durable
before the ledger has the redirect; the gateway completes one that was interrupted (`RenameStore.accepted`), and the
end of one that was taken back (`RenameStore.reopening`).
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from truename.errors import InvalidToolId
from truename.identity import ToolId
from truename.storage import (
    Schema,
    SharedStore,
    StateLocation,
    Transaction,
    in_parts,
    insert,
    open_database,
    select,
    select_among,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.trust.rename_matching import RenameMatch

__all__ = ["MAX_ARRIVED", "SCHEMA", "ArrivedTool", "DepartedTool", "RenameStore"]

RenameWord = Literal["new", "proposed", "accepted", "rejected", "renamed"]
# Of one server. Beyond that, tools are forgotten that got no identity and are not listed any more: what is left has
# identities, of which a server may have `max_claims`, or is in the present list.
MAX_ARRIVED: Final = 20_000
# How often one tool is remembered to have left and come back, before its absences are taken for one.
_MOST_ABSENCES: Final = 4
_LONGEST_REASON: Final = 400
_WORDS: Final = "'new', 'proposed', 'accepted', 'rejected', 'renamed'"
_GONE: Final = """
CREATE TABLE rename_gone (
    tool TEXT NOT NULL, began INTEGER NOT NULL, ended INTEGER NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL,
    at TEXT NOT NULL, PRIMARY KEY (tool, began)
)
"""
_COME: Final = f"""
CREATE TABLE rename_come (
    tool TEXT PRIMARY KEY, number INTEGER NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, at TEXT NOT NULL,
    digest TEXT NOT NULL, old TEXT NOT NULL, old_digest TEXT NOT NULL, certain INTEGER NOT NULL, score REAL NOT NULL,
    reasons TEXT NOT NULL, word TEXT NOT NULL CHECK (word IN ({_WORDS})), by TEXT NOT NULL, decided TEXT NOT NULL,
    until TEXT NOT NULL, CHECK (old != '' OR word NOT IN ('proposed', 'accepted'))
)
"""
SCHEMA: Final = Schema(
    "rename",
    (
        (
            _GONE,
            _COME,
            "CREATE UNIQUE INDEX rename_come_old ON rename_come (old) WHERE word IN ('proposed', 'accepted')",
        ),
        (
            "CREATE INDEX rename_gone_server ON rename_gone (server)",
            "CREATE INDEX rename_come_server ON rename_come (server)",
        ),
    ),
)
_GONE_COLUMNS: Final = ("tool", "began", "ended", "server", "name", "at")
_COME_COLUMNS: Final = (
    *("tool", "number", "server", "name", "at", "digest", "old", "old_digest", "certain", "score", "reasons"),
    *("word", "by", "decided", "until"),
)
_GONE_TABLE: Final = ("rename_gone", _GONE_COLUMNS, "ORDER BY began, tool")
_COME_TABLE: Final = ("rename_come", _COME_COLUMNS, "ORDER BY number, tool")
_ADD_GONE: Final = insert("rename_gone", _GONE_COLUMNS, "ON CONFLICT DO NOTHING")
_ADD_COME: Final = insert("rename_come", _COME_COLUMNS, "ON CONFLICT (tool) DO NOTHING")
_LAST: Final = (
    "SELECT coalesce(max(number), 0) FROM rename_come",
    "SELECT coalesce(max(began), 0) FROM rename_gone",
    "SELECT coalesce(max(ended), 0) FROM rename_gone",
)
_END: Final = "UPDATE rename_gone SET ended = ? WHERE tool = ? AND ended = 0"
_FORGET_GONE: Final = "DELETE FROM rename_gone WHERE tool = ? AND ended = 0"
# Also one on which somebody decided: that can be taken back.
_LATER: Final = "SELECT 1 FROM rename_come WHERE server = ? AND number > ? LIMIT 1"
_OPEN: Final = "SELECT began FROM rename_gone WHERE tool = ? AND ended = 0"
_REOPEN: Final = (
    "UPDATE rename_gone SET ended = 0 WHERE tool = ? AND began = (SELECT max(began) FROM rename_gone WHERE tool = ?)"
)
_AWAY_AT: Final = (
    "SELECT tool, name FROM rename_gone WHERE server = ? AND tool != ? AND began < ? AND (ended = 0 OR ended > ?)"
)
_EXTEND: Final = (
    "UPDATE rename_gone SET ended = ? WHERE tool = ? AND began = (SELECT max(began) FROM rename_gone WHERE tool = ?)"
)
_ABSENCES: Final = "SELECT count(*) FROM rename_gone WHERE tool = ?"
_WITHDRAW: Final = (
    "UPDATE rename_come SET word = 'new', old = '', old_digest = '', certain = 0, score = 0, reasons = '[]' "
    "WHERE word = 'proposed' AND {}"
)
_WITHDRAW_OLD: Final = _WITHDRAW.format("old = ?")
_WITHDRAW_OTHERS: Final = _WITHDRAW.format("old = ? AND tool != ?")
_WITHDRAW_NEW: Final = _WITHDRAW.format("tool = ?")
_PROPOSE: Final = (
    "UPDATE rename_come SET word = 'proposed', old = ?, old_digest = ?, digest = ?, certain = ?, score = ?, "
    "reasons = ? WHERE tool = ? AND word IN ('new', 'proposed')"
)
_TAKEN: Final = "SELECT 1 FROM rename_come WHERE old = ? AND word = 'accepted' AND tool != ?"
_DECIDE: Final = "UPDATE rename_come SET word = ?, old = ?, by = ?, decided = ?, until = ? WHERE tool = ?"
_REOPENED: Final = "UPDATE rename_come SET decided = '' WHERE tool = ? AND word IN ('new', 'proposed')"
_AGAIN: Final = (
    "UPDATE rename_come SET word = 'new', number = ?, digest = ?, old = '', old_digest = '', certain = 0, score = 0, "
    "reasons = '[]', by = '', decided = ?, until = '' WHERE tool = ?"
)
_FORGET_COME: Final = "DELETE FROM rename_come WHERE tool = ?"
_UNDECIDED: Final = ("", "", 0, 0.0, "[]", "new", "", "", "")
_COUNT: Final = "SELECT count(*) FROM rename_come WHERE server = ?"
_OF_SERVER: Final = "SELECT tool FROM rename_come WHERE server = ?"


@dataclass(frozen=True, kw_only=True)
class DepartedTool:
    """A tool that left its server's list. ``began`` and ``ended`` (0: it is absent still) are places in the order."""

    id: ToolId
    server: str
    name: str
    began: int
    ended: int
    at: str

    def was_away_at(self, number: int) -> bool:
        """Return whether it was away at a place in the order."""
        return self.began < number and (not self.ended or number < self.ended)


@dataclass(frozen=True, kw_only=True)
class ArrivedTool:
    """A tool that is new on its server since others left, with the one that it probably became, and the decision.

    ``word``: ``new`` (nobody decided, and it resembles none), ``proposed`` (nobody decided; ``old`` is what it
    probably was), ``accepted`` (it is ``old``), ``rejected`` (it is a tool of its own), ``renamed`` (an operator
    redirected another id to it). ``by`` is "" for a decision that a setting made. ``until`` is the last day on which
    the old name is listed.
    """

    id: ToolId
    server: str
    name: str
    number: int
    at: str
    digest: str = ""
    old: ToolId | None = None
    old_digest: str = ""
    is_certain: bool = False
    score: float = 0.0
    reasons: tuple[str, ...] = ()
    word: RenameWord = "new"
    by: str = ""
    decided: str = ""
    until: str = ""

    @property
    def is_open(self) -> bool:
        """Whether nobody decided on it yet."""
        return self.word in ("new", "proposed")

    @property
    def is_reopening(self) -> bool:
        """Whether a decision on it was taken back, and its redirect perhaps not yet."""
        return self.is_open and bool(self.decided)

    def may_be(self, other: DepartedTool) -> bool:
        """Return whether it came while the other one, of the same server, was away."""
        return self.server == other.server and self.id != other.id and other.was_away_at(self.number)


class _KnownSuspects(NamedTuple):
    """The suspects that were found in one reading, by server, place in the order, and whether the new tool is open."""

    departed: Mapping[str, tuple[DepartedTool, ...]]
    arrived: Mapping[ToolId, ArrivedTool]
    found: dict[tuple[str, int, bool], tuple[DepartedTool, ...]]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class RenameStore(SharedStore):
    """What left servers and what came, in a database that processes share; without a file (None), in memory.

    With ``servers``, only what is on record about these is read, and about those that are expected later: what others
    had costs a gateway nothing. All methods raise `StoreError`: ``corrupt``, ``newer``, ``busy``, ``unusable``. May be
    used from several threads.
    """

    def __init__(
        self,
        where: StateLocation | Path | str | None = None,
        *,
        now: Callable[[], str] = _now,
        readonly: bool = False,
        servers: Iterable[str] | None = None,
    ) -> None:
        self._now = now
        self._lock = threading.RLock()
        self._servers = None if servers is None else frozenset(servers)
        self.departed: Mapping[str, tuple[DepartedTool, ...]] = {}
        self.arrived: Mapping[ToolId, ArrivedTool] = {}
        # What was read last, by row: nearly all rows are the same ones the next time.
        self._gone: Mapping[tuple[Any, ...], DepartedTool] = {}
        self._come: Mapping[tuple[Any, ...], ArrivedTool] = {}
        self._suspects = _KnownSuspects(self.departed, self.arrived, {})
        super().__init__(open_database(where, SCHEMA, readonly=readonly))

    def expect(self, servers: Iterable[str]) -> None:
        """Have what is on record about these servers too, from now on."""
        with self._lock:
            wanted = None if self._servers is None else self._servers.union(servers)
            if wanted != self._servers:
                self._servers = wanted
                self._read_again()

    @property
    def proposals(self) -> Sequence[ArrivedTool]:
        """The new tools of which nobody decided yet what they were, with what they probably were."""
        return [one for one in self.arrived.values() if one.word == "proposed"]

    @property
    def accepted(self) -> Sequence[ArrivedTool]:
        """The tools that were accepted as others; the ledger has a redirect for each, or gets it."""
        return [one for one in self.arrived.values() if one.word == "accepted"]

    @property
    def reopening(self) -> Sequence[ArrivedTool]:
        """The tools whose decision was taken back; the ledger may still redirect an old id to each."""
        return [one for one in self.arrived.values() if one.is_reopening]

    def suspects(self, new: ArrivedTool) -> tuple[DepartedTool, ...]:
        """Return the tools that a new one may be, as long as nobody decided.

        A setting that accepted one as its old tool says nothing of others that left, unless they became others too.
        """
        if not new.is_open and (new.word != "accepted" or new.by):
            return ()
        departed, arrived, place = self.departed, self.arrived, (new.server, new.number, new.is_open)
        known = self._suspects
        if known.departed is not departed or known.arrived is not arrived:
            # Another thread may be reading the record: what is found of one reading is never taken for another's.
            known = self._suspects = _KnownSuspects(departed, arrived, {})
        if (found := known.found.get(place)) is None:
            accepted = () if new.is_open else (one.old for one in arrived.values() if one.word == "accepted")
            became = frozenset(accepted)
            away = (one for one in departed.get(new.server, ()) if one.was_away_at(new.number))
            found = known.found[place] = tuple(one for one in away if one.id not in became)
        return tuple(one for one in found if one.id != new.id)

    def note(
        self,
        server: str,
        *,
        bound: Mapping[ToolId, str],
        present: Mapping[ToolId, str],
        digest: Callable[[ToolId], str],
        was: Collection[ToolId] | None = None,
    ) -> None:
        """Record what left the list of a server and what is new in it.

        ``bound`` are the tools that it ever had, ``present`` the present ones, both with names; ``digest`` returns the
        digest of a present one.
        ``was`` is what this process noted before, None at first: what another gateway is offered is its own to tell.
        """
        with self._lock:
            self.expect([server])
            open_ones = {one.id for one in self.departed.get(server, ()) if not one.ended}
            candidates = bound if was is None else {id: bound[id] for id in was if id in bound}
            gone = [(id, name) for id, name in candidates.items() if id not in present and id not in open_ones]
            back = [id for id in open_ones if id in present and (was is None or id not in was)]
            fresh = [id for id in present if id not in bound and id not in self.arrived]
            if not gone and not back and not (fresh and open_ones):
                return
            with self._change() as data:
                number = self._next(data)
                for id in back:
                    self._returned(data, server, id, number)
                for id, name in gone:
                    self._left(data, (str(id), number, 0, server, name, self._now()))
                self._make_room(data, server, len(fresh), (*bound, *present))
                rows = [(str(id), number + 1, server, present[id], self._now(), digest(id)) for id in fresh]
                data.executemany(_ADD_COME, [(*row, *_UNDECIDED) for row in rows])

    @staticmethod
    def _make_room(data: Transaction, server: str, wanted: int, known: Iterable[ToolId]) -> None:
        """Forget new tools of a server that have no identity and are not listed any more, if there are many."""
        ((count,),) = data.execute(_COUNT, (server,)).fetchall()
        if count + wanted > MAX_ARRIVED:
            kept = {str(id) for id in known}
            idle = [(tool,) for (tool,) in data.execute(_OF_SERVER, (server,)).fetchall() if tool not in kept]
            data.executemany(_FORGET_COME, idle)

    def _left(self, data: Transaction, row: tuple[Any, ...]) -> None:
        tool = row[0]
        if data.execute(_OPEN, (tool,)).fetchone() is not None:
            return
        ((count,),) = data.execute(_ABSENCES, (tool,)).fetchall()
        if count >= _MOST_ABSENCES:
            # More tools may be this one then, and none fewer.
            data.execute(_REOPEN, (tool, tool))
        else:
            data.execute(_ADD_GONE, row)

    @staticmethod
    def _returned(data: Transaction, server: str, id: ToolId, number: int) -> None:
        began = data.execute(_OPEN, (str(id),)).fetchone()
        if began is None:
            return
        if data.execute(_LATER, (server, began[0])).fetchone() is None:
            data.execute(_FORGET_GONE, (str(id),))
        else:
            data.execute(_END, (number, str(id)))
        data.execute(_WITHDRAW_OLD, (str(id),))

    def take_over(self, server: str, pairs: Iterable[tuple[ToolId, ToolId, str, tuple[str, str]]]) -> None:
        """Record tools that took the definition of another one, each as ``(old, new, old's name, (name, digest))``.

        The new tool is treated as if it had come while the old one was away, and while all were that it may have been
        before. A decision on it, which was about another definition, is taken back as `reopen` does.
        """
        with self._lock, self._change() as data:
            for old, new, old_name, (name, digest) in pairs:
                at, number = self._now(), self._next(data)
                one = self._current(data, new)
                suspects = {str(old): old_name, **self._suspected(data, one)}
                if one is not None and one.word == "accepted" and one.old is not None:
                    data.execute(_REOPEN, (str(one.old), str(one.old)))
                for tool, tool_name in suspects.items():
                    if data.execute(_OPEN, (tool,)).fetchone() is None:
                        self._was_away(data, (tool, number, number + 2, server, tool_name, at))
                data.execute(_ADD_COME, (str(new), number + 1, server, name, at, digest, *_UNDECIDED))
                # A rejection has no redirect.
                has_redirect = one is not None and (one.word in {"accepted", "renamed"} or one.is_reopening)
                data.execute(_AGAIN, (number + 1, digest, at if has_redirect else "", str(new)))

    @staticmethod
    def _suspected(data: Transaction, one: ArrivedTool | None) -> dict[str, str]:
        """Return what a tool may be still, with names; of one that a person decided on, nothing."""
        if one is None or not (one.is_open or (one.word == "accepted" and not one.by)):
            return {}
        return dict(data.execute(_AWAY_AT, (one.server, str(one.id), one.number, one.number)).fetchall())

    @staticmethod
    def _was_away(data: Transaction, row: tuple[Any, ...]) -> None:
        """Record an absence that is over, as an extension of the last one if a tool has many."""
        ((count,),) = data.execute(_ABSENCES, row[:1]).fetchall()
        if count >= _MOST_ABSENCES:
            # More tools may be this one then, and none fewer.
            data.execute(_EXTEND, (row[2], row[0], row[0]))
        else:
            data.execute(_ADD_GONE, row)

    def propose(
        self, present: Collection[ToolId], found: Iterable[RenameMatch], digests: Callable[[ToolId], str]
    ) -> None:
        """Record the proposals about these present tools of a server, in place of former ones about them."""
        wanted = {one.new: one for one in found}
        with self._lock:
            stale = [
                one
                for one in (self.arrived.get(id) for id in present)
                if one is not None and one.is_open and not self._is_as(one, wanted.get(one.id), digests)
            ]
            if not stale:
                return
            with self._change() as data:
                data.executemany(_WITHDRAW_NEW, [(str(one.id),) for one in stale])
                for proposal in (wanted[one.id] for one in stale if one.id in wanted):
                    data.execute(_WITHDRAW_OLD, (str(proposal.old),))
                    if data.execute(_TAKEN, (str(proposal.old), str(proposal.new))).fetchone() is None:
                        data.execute(_PROPOSE, (*_written(proposal, digests), str(proposal.new)))

    @staticmethod
    def _is_as(one: ArrivedTool, wanted: RenameMatch | None, digests: Callable[[ToolId], str]) -> bool:
        if wanted is None:
            return one.word == "new"
        told = one.old, one.is_certain, one.score, one.old_digest, one.digest
        return told == (wanted.old, wanted.is_certain, wanted.score, digests(wanted.old), digests(wanted.new))

    def accept(
        self,
        new: ToolId,
        old: ToolId,
        *,
        by: str,
        until: str = "",
        digest: str = "",
        shown: ArrivedTool | None = None,
    ) -> ArrivedTool | None:
        """Record that a new tool is the old one; None, and nothing is recorded, if that cannot be said now.

        With ``digest``, the definition must be the one that was looked at; with ``shown``, the whole record: of two
        processes that decide at once, one does. ``by`` is "" if a setting decides: it decides before people do, and
        other new tools go on being suspected to be the old one.
        """
        with self._lock, self._change() as data:
            if not self._accepted(data, new, old, by=by, until=until, digest=digest, shown=shown):
                return None
        return self.arrived.get(new)

    def accept_proposals(self, proposals: Iterable[ArrivedTool], *, until: str) -> None:
        """Accept proposals for a setting, in one transaction, each if it is on record still as it is given."""
        with self._lock, self._change() as data:
            for one in proposals:
                if one.old is not None:
                    self._accepted(data, one.id, one.old, by="", until=until, shown=one)

    def _accepted(
        self,
        data: Transaction,
        new: ToolId,
        old: ToolId,
        *,
        by: str,
        until: str,
        digest: str = "",
        shown: ArrivedTool | None = None,
    ) -> bool:
        one = self._current(data, new)
        if one is None or one.is_reopening or (digest and one.digest != digest):
            return False
        if shown is not None and one != shown:
            return False
        if not by and not one.is_open:
            return False
        # What a setting accepted, a person may confirm.
        if one.word == "accepted" and (one.by or one.old != old):
            return False
        if data.execute(_TAKEN, (str(old), str(new))).fetchone() is not None:
            return False
        data.execute(_WITHDRAW_OTHERS, (str(old), str(new)))
        data.execute(_DECIDE, ("accepted", str(old), by, self._now(), until, str(new)))
        if by:
            data.execute(_END, (self._next(data), str(old)))
        return True

    def reject(
        self,
        new: ToolId,
        *,
        by: str,
        digest: str = "",
        word: RenameWord = "rejected",
        shown: ArrivedTool | None = None,
    ) -> ArrivedTool | None:
        """Record that a new tool is none of those that left; None if it is not pending any more, or not as `shown`."""
        with self._lock, self._change() as data:
            one = self._current(data, new)
            if one is None or not one.is_open or one.is_reopening or (digest and one.digest != digest):
                return None
            if shown is not None and one != shown:
                return None
            data.execute(_DECIDE, (word, "" if one.old is None else str(one.old), by, self._now(), "", str(new)))
        return self.arrived.get(new)

    def reopen(self, new: ToolId) -> ArrivedTool | None:
        """Take a decision back: nobody decided on the tool. Return what was decided, None if there was nothing.

        It is `is_reopening` until `reopened` says that no redirect is left, and nobody decides on it until then. A
        rejection has no redirect.
        """
        with self._lock, self._change() as data:
            one = self._current(data, new)
            if one is None or (one.is_open and not one.is_reopening):
                return None
            if not one.is_open:
                taken_back = "" if one.word == "rejected" else self._now()
                data.execute(_DECIDE, ("new", "", "", taken_back, "", str(new)))
            if one.word == "accepted" and one.old is not None:
                data.execute(_REOPEN, (str(one.old), str(one.old)))
        return one

    def reopened(self, new: ToolId) -> None:
        """Record that no redirect is left of a decision that was taken back."""
        with self._lock, self._change() as data:
            data.execute(_REOPENED, (str(new),))

    @contextmanager
    def _change(self) -> Iterator[Transaction]:
        with self._file.change() as data:
            yield data
        self._read_again()

    @staticmethod
    def _next(data: Transaction) -> int:
        return 1 + max(int(data.execute(query).fetchall()[0][0]) for query in _LAST)

    def _current(self, data: Transaction, id: ToolId) -> ArrivedTool | None:
        rows = data.execute(select("rename_come", _COME_COLUMNS, where=("tool",)), (str(id),)).fetchall()
        return self._arrived(rows[0]) if rows else None

    def _read_again(self) -> None:
        with self._lock:
            self._is_current = False
            if not self._file.is_begun:
                return
            gone = {row: self._gone.get(row) or self._departed(row) for row in self._rows(*_GONE_TABLE)}
            come = {row: self._come.get(row) or self._arrived(row) for row in self._rows(*_COME_TABLE)}
            departed: defaultdict[str, list[DepartedTool]] = defaultdict(list)
            for one in gone.values():
                departed[one.server].append(one)
            self.departed = {server: tuple(several) for server, several in departed.items()}
            self.arrived = {one.id: one for one in come.values()}
            self._gone, self._come = gone, come
            self._is_current = True

    def _rows(self, table: str, columns: Sequence[str], order: str) -> Iterator[tuple[Any, ...]]:
        if self._servers is None:
            yield from self._file.rows(select(table, columns, then=order))
            return
        for part in in_parts(sorted(self._servers)):
            query = select_among(table, columns, (), "server", len(part))
            yield from self._file.rows(f"{query} {order}", *part)

    def _departed(self, row: Sequence[Any]) -> DepartedTool:
        tool, began, ended, server, name, at = row
        return DepartedTool(id=self._id(tool), server=server, name=name, began=began, ended=ended, at=at)

    def _arrived(self, row: Sequence[Any]) -> ArrivedTool:
        values = dict(zip(_COME_COLUMNS, row, strict=True))
        try:
            reasons = tuple(map(str, json.loads(values.pop("reasons"))))
        except (ValueError, TypeError, RecursionError):
            self._file.refuse(f"the new tool {values['tool']!r} is damaged (reasons)")
        id, old = self._id(values.pop("tool")), values.pop("old")
        return ArrivedTool(
            id=id,
            old=self._id(old) if old else None,
            reasons=reasons,
            is_certain=bool(values.pop("certain")),
            **values,
        )

    def _id(self, text: str) -> ToolId:
        try:
            return ToolId.parse(text)
        except InvalidToolId:
            self._file.refuse(f"the entry {text!r} is no tool's")


def _written(one: RenameMatch, digests: Callable[[ToolId], str]) -> tuple[Any, ...]:
    reasons = json.dumps([reason[:_LONGEST_REASON] for reason in one.reasons])
    return str(one.old), digests(one.old), digests(one.new), int(one.is_certain), one.score, reasons
