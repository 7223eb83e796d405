"""Store decisions and calls: the `ApprovalStore` protocol, and a store in memory."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from truename.identity import ToolId
    from truename.policy.approval_validity import Grant

__all__ = [
    "MAX_CALLS",
    "MAX_GRANTS",
    "ApprovalRecords",
    "ApprovalStore",
    "CallKey",
    "CallState",
    "MemoryRecords",
    "MemoryStore",
    "StoredCall",
]

CallState = Literal["seen", "running", "done", "failed"]
MAX_GRANTS: Final = 20_000
# Beyond this number, the calls that were not updated for longest are removed together with the decisions on them; such
# a call needs a new approval.
MAX_CALLS: Final = 10_000


class CallKey(NamedTuple):
    """The key of a call. A call id is unique within one session of one principal, across all agents."""

    principal: str
    session: str
    call_id: str


@dataclass(frozen=True, kw_only=True)
class StoredCall:
    """The record of a call that was decided on or started: its tool, the digest of its arguments, and its state."""

    where: CallKey
    id: ToolId
    arguments: str
    state: CallState = "seen"
    at: str = ""


class ApprovalRecords(Protocol):
    """The protocol of the content of a store: all operations that a store must implement."""

    def grants(self, principal: str | None = None, agent: str | None = None) -> Sequence[Grant]:
        """Return the grants of a principal and an agent (None: all), in the order in which they were made."""
        ...

    def about(self, principal: str, agent: str, ids: Collection[ToolId]) -> Sequence[Grant]:
        """Return the grants of a principal and an agent for these tools, in the same order; called for every call."""
        ...

    def keep(self, grant: Grant) -> None:
        """Add a grant, replacing an earlier one that covers the same calls."""
        ...

    def drop(self, key: str) -> Grant | None:
        """Remove a grant by its key and return it; return None if there is none."""
        ...

    def call(self, where: CallKey) -> StoredCall | None:
        """Return the record of a call; None if there is none."""
        ...

    def put(self, record: StoredCall) -> None:
        """Store the record of a call, replacing an earlier one."""
        ...

    def forget(self, principal: str, session: str) -> None:
        """Remove the calls and grants of one session."""
        ...


class MemoryRecords:
    """The grants and call records of a store, in memory.

    `keep` raises `StoreError` (``full``) at the limit of grants. At the limit of calls `put` removes an idle call, and
    raises it if all calls are running.
    """

    def __init__(self, grants: Iterable[Grant] = (), calls: Iterable[StoredCall] = ()) -> None:
        self._grants = {grant.key: grant for grant in grants}
        self._calls = {record.where: record for record in calls}
        self._index: dict[tuple[str, str, ToolId], list[tuple[int, Grant]]] | None = None

    def copy(self) -> MemoryRecords:
        """Return a copy that can be changed while other threads read this one."""
        return MemoryRecords(self._grants.values(), self._calls.values())

    def calls(self) -> Sequence[StoredCall]:
        """Return all calls, the one updated longest ago first."""
        return tuple(self._calls.values())

    def grants(self, principal: str | None = None, agent: str | None = None) -> Sequence[Grant]:
        """Return the grants of a principal and an agent (None: all), in the order in which they were made."""
        return [
            grant
            for grant in self._grants.values()
            if principal in (None, grant.principal) and agent in (None, grant.agent)
        ]

    def about(self, principal: str, agent: str, ids: Collection[ToolId]) -> Sequence[Grant]:
        """Return the grants of a principal and an agent for these tools, in the order in which they were made."""
        index = self._index
        if index is None:
            index = {}
            for number, grant in enumerate(self._grants.values()):
                whose = (grant.principal, grant.agent, grant.subject.id)
                index.setdefault(whose, []).append((number, grant))
            # Assigned when complete, so that another thread never sees a partial index.
            self._index = index
        found = [one for id in ids for one in index.get((principal, agent, id), ())]
        return [grant for _, grant in (found if len(ids) < 2 else sorted(found, key=lambda one: one[0]))]

    def keep(self, grant: Grant) -> None:
        """Add a grant, replacing an earlier one that covers the same calls."""
        self._index = None
        for old in self.grants(grant.principal, grant.agent):
            if old.covers_same == grant.covers_same:
                del self._grants[old.key]
        if len(self._grants) >= MAX_GRANTS:
            raise _full(f"it holds {MAX_GRANTS:,} decisions, the limit")
        self._grants[grant.key] = grant

    def drop(self, key: str) -> Grant | None:
        """Remove a grant by its key and return it; return None if there is none."""
        self._index = None
        return self._grants.pop(key, None)

    def call(self, where: CallKey) -> StoredCall | None:
        """Return the record of a call; None if there is none."""
        return self._calls.get(where)

    def put(self, record: StoredCall) -> None:
        """Store the record of a call, replacing an earlier one."""
        if self._calls.pop(record.where, None) is None and len(self._calls) >= MAX_CALLS:
            self._make_room()
        self._calls[record.where] = record

    def forget(self, principal: str, session: str) -> None:
        """Remove the calls and grants of one session, except running calls, which must not be run again."""
        self._index = None
        for record in self.calls():
            if record.where[:2] == (principal, session) and record.state != "running":
                self._forget_call(record.where)
        for grant in self.grants(principal):
            if grant.scope == "session" and grant.session == session:
                del self._grants[grant.key]

    def _make_room(self) -> None:
        idle = [record.where for record in self._calls.values() if record.state != "running"]
        if not idle:
            raise _full(f"{MAX_CALLS:,} calls are running, the limit")
        # The principal with the most calls loses its oldest, so that a flood of calls evicts no other caller's.
        ((principal, _),) = Counter(where.principal for where in idle).most_common(1)
        self._forget_call(next(where for where in idle if where.principal == principal))

    def _forget_call(self, where: CallKey) -> None:
        del self._calls[where]
        self._index = None
        for grant in self.grants(where.principal):
            if grant.scope == "call" and (grant.session, grant.call_id) == (where.session, where.call_id):
                del self._grants[grant.key]


def _full(problem: str) -> StoreError:
    return StoreError(
        file="approvals",
        key="",
        problem=problem,
        remedy="Revoke decisions that are not needed, or end sessions.",
        code="full",
    )


class ApprovalStore(Protocol):
    """A store of decisions."""

    def read(self) -> ApprovalRecords:
        """Return the present decisions and calls; they must not be changed."""
        ...

    def change(self) -> AbstractContextManager[ApprovalRecords]:
        """Lock out other writers; commit all changes of the block, or none if it raises."""
        ...


class MemoryStore:
    """A store that is forgotten with its process."""

    def __init__(self) -> None:
        self._book = MemoryRecords()
        self._lock = threading.RLock()

    def read(self) -> MemoryRecords:
        """Return the present decisions and calls; they must not be changed."""
        return self._book

    @contextmanager
    def change(self) -> Iterator[ApprovalRecords]:
        """Lock out other threads; commit all changes of the block, or none if it raises."""
        with self._lock:
            draft = self._book.copy()
            yield draft
            self._book = draft
