"""The book: all grants, and which calls were seen, as it is kept in memory and written to a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from truename.policy.faults import StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from truename.identity import ToolId
    from truename.policy.grants import Grant

__all__ = ["MAX_CALLS", "MAX_GRANTS", "Book", "CallRecord", "PlainBook", "Where"]

MAX_GRANTS: Final = 20_000
# A call of which nothing was written for so many others is forgotten, together with the decision on it: it would have
# to be asked for anew.
MAX_CALLS: Final = 10_000


class Where(NamedTuple):
    """Where a call id is unique: within one session of one principal, whatever agents take part in it."""

    principal: str
    session: str
    call_id: str


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """A call that was decided on or begun: of which tool, with which arguments (a digest), and how far it came."""

    where: Where
    id: ToolId
    arguments: str
    state: Literal["seen", "running", "done", "failed"] = "seen"
    at: str = ""


class Book(Protocol):
    """What a store holds; a store in a database needs these and nothing else."""

    def grants(self, principal: str | None = None, agent: str | None = None) -> Sequence[Grant]:
        """Return the grants of a principal and an agent (None: of all), in the order in which they were given."""
        ...

    def about(self, principal: str, agent: str, ids: Collection[ToolId]) -> Sequence[Grant]:
        """Return the grants of a principal and an agent for tools, in that order; it is asked for each call."""
        ...

    def keep(self, grant: Grant) -> None:
        """Add a grant; it replaces one that covers the same calls."""
        ...

    def drop(self, key: str) -> Grant | None:
        """Take a grant away and return it, or None if there is none of this key."""
        ...

    def call(self, where: Where) -> CallRecord | None:
        """Return what is known of a call."""
        ...

    def put(self, record: CallRecord) -> None:
        """Write down a call, in the place of what was known of it."""
        ...

    def forget(self, principal: str, session: str) -> None:
        """Take away what was for one session only."""
        ...


class PlainBook:
    """A book in memory. Raises `StoreError` (``full``) before it holds more than it can."""

    def __init__(self, grants: Iterable[Grant] = (), calls: Iterable[CallRecord] = ()) -> None:
        self._grants = {grant.key: grant for grant in grants}
        self._calls = {record.where: record for record in calls}
        self._index: dict[tuple[str, str, ToolId], list[tuple[int, Grant]]] | None = None

    def copy(self) -> PlainBook:
        """Return a copy that can be changed while others read this one."""
        return PlainBook(self._grants.values(), self._calls.values())

    def calls(self) -> Sequence[CallRecord]:
        """Return all calls, in the order in which something was last written of them."""
        return tuple(self._calls.values())

    def grants(self, principal: str | None = None, agent: str | None = None) -> Sequence[Grant]:
        """Return the grants of a principal and an agent (None: of all), in the order in which they were given."""
        return [
            grant
            for grant in self._grants.values()
            if principal in (None, grant.principal) and agent in (None, grant.agent)
        ]

    def about(self, principal: str, agent: str, ids: Collection[ToolId]) -> Sequence[Grant]:
        """Return the grants of a principal and an agent for tools, in the order in which they were given."""
        index = self._index
        if index is None:
            index = {}
            for number, grant in enumerate(self._grants.values()):
                whose = (grant.principal, grant.agent, grant.subject.id)
                index.setdefault(whose, []).append((number, grant))
            # Last: another thread never sees half of it.
            self._index = index
        found = [one for id in ids for one in index.get((principal, agent, id), ())]
        return [grant for _, grant in (found if len(ids) < 2 else sorted(found, key=lambda one: one[0]))]

    def keep(self, grant: Grant) -> None:
        """Add a grant; it replaces one that covers the same calls."""
        self._index = None
        for old in self.grants(grant.principal, grant.agent):
            if old.covers_same == grant.covers_same:
                del self._grants[old.key]
        if len(self._grants) >= MAX_GRANTS:
            raise _full(f"it holds {MAX_GRANTS:,} decisions, the most that it can")
        self._grants[grant.key] = grant

    def drop(self, key: str) -> Grant | None:
        """Take a grant away and return it, or None if there is none of this key."""
        self._index = None
        return self._grants.pop(key, None)

    def call(self, where: Where) -> CallRecord | None:
        """Return what is known of a call."""
        return self._calls.get(where)

    def put(self, record: CallRecord) -> None:
        """Write down a call, in the place of what was known of it."""
        if self._calls.pop(record.where, None) is None and len(self._calls) >= MAX_CALLS:
            self._make_room()
        self._calls[record.where] = record

    def forget(self, principal: str, session: str) -> None:
        """Take away what was for one session only; a call that is running is still not run again."""
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
            raise _full(f"{MAX_CALLS:,} calls are running, the most that can")
        # Who has the most loses the oldest: one caller's flood takes no other's decision.
        ((principal, _),) = Counter(where.principal for where in idle).most_common(1)
        self._forget_call(next(where for where in idle if where.principal == principal))

    def _forget_call(self, where: Where) -> None:
        del self._calls[where]
        self._index = None
        for grant in self.grants(where.principal):
            if grant.scope == "call" and (grant.session, grant.call_id) == (where.session, where.call_id):
                del self._grants[grant.key]


def _full(problem: str) -> StoreError:
    return StoreError(
        file="approvals", key="", problem=problem, remedy="Revoke what is not needed, or end sessions.", code="full"
    )
