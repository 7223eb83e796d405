"""Represent grants: what a person decided about calls of one tool, and whether it still counts."""

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
State = Literal["approved", "rejected", "suspended", "undecided"]


class Subject(NamedTuple):
    """What a decision is about: the tool, its definition (with and without its name), and where it comes from."""

    id: ToolId
    digest: str
    shape: str
    server: str
    name: str
    endpoint: str = ""


@dataclass(frozen=True, kw_only=True)
class Grant:
    """One decision of a person; ``key`` is its own number in the store.

    ``scope`` says which calls it covers: the one with this ``call_id``, those with these ``arguments`` (a digest),
    those of this ``session``, or all. ``message`` is what a model is told of a rejection, ``by`` who decided, ``at``
    when (UTC, ISO 8601), ``wire_name`` how the tool was shown then, for people. ``until`` is when an approval ends,
    written as ``at``; "" is never. A rejection does not end by itself, unless it is of one call.
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
        """Whether it was an approval for a time that has passed; ``now`` is written as ``at`` is.

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
        """What two grants have in common of which the later one replaces the earlier."""
        limits = {"call": (self.session, self.call_id), "arguments": self.arguments, "session": self.session}
        return self.principal, self.agent, self.subject, self.scope, limits.get(self.scope)


class Verdict(NamedTuple):
    """What is known of a call: approved, rejected, suspended (with the reason) or undecided, and by which grant."""

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
    """Return why a grant does not count for a tool as it is now, in a clause for people; "" if it counts.

    A tool that is another one by an explicit redirect may have another name and another server; its definition has to
    be the same but for the name, and what is behind the server too.
    """
    then, renamed = grant.subject, grant.subject.id != now.id
    if then.endpoint != now.endpoint:
        return f"server {excerpt(now.server)} is reached in another way than when it was decided"
    if not renamed and (then.server, then.name) != (now.server, now.name):
        was, is_now = (f"tool {excerpt(one.name)} of server {excerpt(one.server)}" for one in (then, now))
        return f"it was decided for {was}, and this is {is_now}"
    if (then.shape != now.shape or not now.shape) if renamed else then.digest != now.digest:
        return f"the tool's definition changed since ({then.digest[:19]}, now {now.digest[:19]})"
    return ""


def judge(grants: Iterable[Grant], call: Call, now: Subject) -> Verdict:
    """Return what the grants of the call's principal and agent, oldest first, say of it.

    The latest that covers the call and counts decides, whatever its scope. A suspended one never does; a suspended
    rejection that is later than an approval keeps it from counting: somebody has to look again. Under another id, which
    the tool would have had without a digest, only a rejection of this very tool counts.
    """
    asked = _RequestedCall(call.caller.session, call.call_id, call.arguments_digest)
    same_tool = frozenset((call.id, *call.formerly))
    mine = [
        one
        for one in grants
        if (one.subject.id in same_tool or (not one.approved and one.subject[3:5] == now[3:5]))
        and SCOPES[one.scope](one, asked)
    ]
    doubts: list[Verdict] = []
    for grant in reversed(mine):
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
