"""Represent grants: decisions of people about calls of one tool, and the rules for whether they still count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from truename.identity import ToolId
    from truename.policy.call import Call

__all__ = [
    "SCOPES",
    "Grant",
    "Scope",
    "Subject",
    "Verdict",
    "judge",
    "suspension",
]

Scope = Literal["call", "arguments", "session", "always"]
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
    # A person's approval stays with the tool that it was given for; a rejection goes with what the tool may have been.
    denied_as = call.lineage.denied_as
    same_tool = frozenset(call.formerly) - denied_as - call.lineage.separate | {call.id}
    covering = [
        one
        for one in grants
        if (
            one.subject.id in same_tool
            or (not one.approved and (one.subject[3:5] == now[3:5] or one.subject.id in denied_as))
        )
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
