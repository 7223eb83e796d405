"""Represent grants: decisions of people about calls of one tool, and the rules for whether they still count."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol

from truename.errors import StoreError, excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from truename.identity import ToolId
    from truename.policy.call import Call

__all__ = [
    "MAX_CALLS",
    "MAX_GRANTS",
    "SCOPES",
    "Book",
    "CallRecord",
    "CallState",
    "Grant",
    "PlainBook",
    "Scope",
    "Subject",
    "Verdict",
    "Where",
    "judge",
    "suspension",
]

Scope = Literal["call", "arguments", "session", "always"]
CallState = Literal["seen", "running", "done", "failed"]
State = Literal["approved", "rejected", "suspended", "undecided"]


class Subject(NamedTuple):
    """The subject of a decision: the tool, the digests of its definition (with and without name), and its origin."""

    id: ToolId
    digest: str
    shape: str
    server: str
    name: str
    endpoint: str = ""


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A decision of a person; ``key`` identifies it in the store.

    ``scope`` says which calls it covers: the call with this ``call_id``, those with these ``arguments`` (a digest),
    those of this ``session``, or all. ``message`` is the text of a rejection for the model, ``by`` the person who
    decided, ``at`` the time (UTC, ISO 8601), ``wire_name`` the name of the tool at that time, for display. ``until`` is
    the time when an approval expires, in the same format; "" is never. A rejection only expires if it is for one call.
    """

    key: str
    approved: bool
    scope: Scope
    principal: str
    agent: str
    subject: Subject
    session: str = ""
    call_id: str = ""
    arguments: str = ""
    message: str = ""
    by: str = ""
    at: str = ""
    wire_name: str = ""
    until: str = ""

    def is_over(self, now: str) -> bool:
        """Return whether the decision has expired; ``now`` has the format of ``at``.

        >>> from truename.identity import ToolId
        >>> subject = Subject(ToolId.parse("git/push"), "sha256:0", "", "git", "push")
        >>> noon = Grant(key="1", approved=True, scope="always", principal="ada", agent="", subject=subject,
        ...     until="2026-11-22T12:00:00+00:00")
        >>> noon.is_over("2026-11-22T11:59:59+00:00"), noon.is_over("2026-11-22T12:00:00+00:00")
        (False, True)
        """
        return (self.approved or self.scope == "call") and self.until != "" and self.until <= now

    @property
    def covers_same(self) -> tuple[object, ...]:
        """The calls that the grant covers; a later grant with an equal value replaces an earlier one."""
        limits = {"call": (self.session, self.call_id), "arguments": self.arguments, "session": self.session}
        return self.principal, self.agent, self.subject, self.scope, limits.get(self.scope)


class Verdict(NamedTuple):
    """The verdict on a call: approved, rejected, suspended (with the reason) or undecided, and the grant behind it."""

    state: State
    grant: Grant | None = None
    reason: str = ""


class _RequestedCall(NamedTuple):
    session: str
    call_id: str
    arguments: str


SCOPES: Final[Mapping[Scope, Callable[[Grant, _RequestedCall], bool]]] = {
    "call": lambda grant, asked: (grant.session, grant.call_id, grant.arguments) == asked,
    "arguments": lambda grant, asked: grant.arguments == asked.arguments,
    "session": lambda grant, asked: grant.session == asked.session != "",
    "always": lambda _grant, _asked: True,
}


def suspension(grant: Grant, now: Subject) -> str:
    """Return why a grant does not count for the present tool, as a clause for people; "" if it counts.

    A tool whose id was redirected may have another name and server, but its definition must be the same except for the
    name, and the server must have the same endpoint.
    """
    then, renamed = grant.subject, grant.subject.id != now.id
    if then.endpoint != now.endpoint:
        return f"server {excerpt(now.server)} has another command or URL than at the time of the decision"
    if not renamed and (then.server, then.name) != (now.server, now.name):
        was, is_now = (f"tool {excerpt(one.name)} of server {excerpt(one.server)}" for one in (then, now))
        return f"the decision was for {was}, and this is {is_now}"
    if (then.shape != now.shape or not now.shape) if renamed else then.digest != now.digest:
        return f"the tool's definition changed since then ({then.digest[:19]}, now {now.digest[:19]})"
    return ""


def judge(grants: Iterable[Grant], call: Call, now: Subject) -> Verdict:
    """Return the verdict of the grants of the call's principal and agent, oldest first.

    The latest grant that covers the call and counts decides, whatever its scope. A suspended grant never decides, but a
    suspended rejection that is later than an approval suspends that too: a person has to decide again. Of the grants
    under an id that the tool would have without a digest, only rejections of this same tool count.
    """
    asked = _RequestedCall(call.caller.session, call.call_id, call.arguments_digest)
    same_tool = frozenset((call.id, *call.formerly))
    covering = [
        one
        for one in grants
        if (one.subject.id in same_tool or (not one.approved and one.subject[3:5] == now[3:5]))
        and SCOPES[one.scope](one, asked)
    ]
    doubts: list[Verdict] = []
    for grant in reversed(covering):
        reason = suspension(grant, now)
        if reason:
            doubts.append(Verdict("suspended", grant, reason))
            continue
        rejections = [doubt for doubt in doubts if doubt.grant and not doubt.grant.approved]
        if grant.approved:
            return rejections[0] if rejections else Verdict("approved", grant)
        return Verdict("rejected", grant)
    return doubts[0] if doubts else Verdict("undecided")


MAX_GRANTS: Final = 20_000
# Beyond this number, the calls that were not updated for longest are removed together with the decisions on them; such
# a call needs a new approval.
MAX_CALLS: Final = 10_000


class Where(NamedTuple):
    """The key of a call. A call id is unique within one session of one principal, across all agents."""

    principal: str
    session: str
    call_id: str


@dataclass(frozen=True, kw_only=True)
class CallRecord:
    """The record of a call that was decided on or started: its tool, the digest of its arguments, and its state."""

    where: Where
    id: ToolId
    arguments: str
    state: CallState = "seen"
    at: str = ""


class Book(Protocol):
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

    def call(self, where: Where) -> CallRecord | None:
        """Return the record of a call; None if there is none."""
        ...

    def put(self, record: CallRecord) -> None:
        """Store the record of a call, replacing an earlier one."""
        ...

    def forget(self, principal: str, session: str) -> None:
        """Remove the calls and grants of one session."""
        ...


class PlainBook:
    """The content of a store in memory. Raises `StoreError` (``full``) when a limit is reached."""

    def __init__(self, grants: Iterable[Grant] = (), calls: Iterable[CallRecord] = ()) -> None:
        self._grants = {grant.key: grant for grant in grants}
        self._calls = {record.where: record for record in calls}
        self._index: dict[tuple[str, str, ToolId], list[tuple[int, Grant]]] | None = None

    def copy(self) -> PlainBook:
        """Return a copy that can be changed while other threads read this one."""
        return PlainBook(self._grants.values(), self._calls.values())

    def calls(self) -> Sequence[CallRecord]:
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

    def call(self, where: Where) -> CallRecord | None:
        """Return the record of a call; None if there is none."""
        return self._calls.get(where)

    def put(self, record: CallRecord) -> None:
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

    def _forget_call(self, where: Where) -> None:
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
