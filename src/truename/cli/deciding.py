"""What there is to decide, and what was: requests and decisions in one form, for people and for programs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from truename.cli.rendering import printable
from truename.cli.witnessed import witnessed
from truename.errors import StoreError
from truename.policy import Approvals
from truename.trust import PinStore
from truename.trust.approval_queue import ApprovalQueue, about_grant, about_request, decided, pending_path, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import Self

    from truename.config import Config
    from truename.policy import Grant, Scope
    from truename.policy.grants import Subject
    from truename.trust.approval_queue import PendingCall

__all__ = ["Desk", "Found", "lines_of", "plain", "row"]

_CHANGED = "the tool's definition changed since"
_OFFERED = "it does not count while the server offers another definition, which waits: `truename pins diff {id}`"
_COVERS = {"call": "one call", "arguments": "these arguments", "session": "its session", "always": "all calls"}


@dataclass(frozen=True, kw_only=True)
class Found:
    """A call that waits, or a decision; ``state`` is waiting, approved, rejected, used, expired or suspended."""

    key: str
    state: str
    principal: str
    subject: Subject
    at: str
    until: str = ""
    scope: str = ""
    by: str = ""
    message: str = ""
    reason: str = ""
    rule: str = ""
    arguments: str = ""
    wire_name: str = ""
    client: str = ""

    @property
    def waits(self) -> bool:
        """Whether nobody decided yet."""
        return not self.scope

    @property
    def tool(self) -> str:
        """The tool's id."""
        return str(self.subject.id)

    @property
    def covers(self) -> str:
        """What a decision is about, in words."""
        return _COVERS.get(self.scope, "")


class Desk:
    """The decisions of a configuration and what waits for one. All methods raise `StoreError`.

    What is decided here goes into the audit journal of the configuration.
    """

    def __init__(self, path: Path, config: Config) -> None:
        self._config = config
        self._settings = config.settings.approvals
        self._approvals = Approvals.open(path)
        self._digests = _offered(config)
        waiting = pending_path(path)
        # Who only looks makes no file.
        self._book = ApprovalQueue(waiting if waiting is not None and waiting.exists() else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._book.close()

    def waiting(self) -> Sequence[Found]:
        """Return what nobody decided on, the oldest first."""
        return [self._of_request(one) for one in self._book.all() if one.is_open]

    def all(self) -> Sequence[Found]:
        """Return what waits, and then all decisions."""
        return [*self.waiting(), *map(self._of_grant, self._approvals.grants())]

    def find(self, key: str) -> Found | None:
        """Return what has this key."""
        return next((one for one in self.all() if one.key == key), None)

    def decision_on(self, key: str) -> Found | None:
        """Return the decision of this key, or the last that was made on the request of this key."""
        known = [one for one in self._approvals.grants() if key in {one.key, one.call_id}]
        return self._of_grant(known[-1]) if known else None

    def pending(self, key: str) -> PendingCall | None:
        """Return the call of this key, if it waits still."""
        found = self._book.find(key)
        return found if found is not None and found.is_open else None

    def decide(
        self, one: PendingCall, scope: Scope, *, approved: bool, by: str, message: str, lasts: float | None
    ) -> Found:
        """Decide on a call that waits."""
        what, about = "granted" if approved else "denied", {**about_request(one), "covers": scope}
        with witnessed(self._config, "approval", what, [about]) as (record,):
            made = decided(
                one,
                scope,
                self._approvals,
                self._book,
                approved=approved,
                by=by,
                message=message,
                lasts=self._settings.expiry,
                grant_lasts=self._settings.grant_expiry if lasts is None else lasts,
            )
            record.update(about_grant(made))
        return self._of_grant(made)

    def revoke(self, key: str) -> Found | None:
        """Take a decision back; None if there is none of this key."""
        known = next((one for one in self._approvals.grants() if one.key == key), None)
        if known is None:
            return None
        with witnessed(self._config, "approval", "revoked", [about_grant(known)]) as records:
            gone = self._approvals.revoke(key)
            if gone is None:
                # Somebody else was faster, and has the record.
                records.clear()
            if known.scope == "call":
                self._book.drop(known.call_id)
        return None if gone is None else self._of_grant(gone)

    def _of_grant(self, grant: Grant) -> Found:
        state, reason = self._state(grant)
        return Found(
            key=grant.key,
            state=state,
            reason=reason,
            principal=grant.principal,
            subject=grant.subject,
            at=grant.at,
            until=grant.until,
            scope=grant.scope,
            by=grant.by,
            message=grant.message,
            wire_name=grant.wire_name,
        )

    def _state(self, grant: Grant) -> tuple[str, str]:
        if grant.is_over(stamp(time.time())):
            return "expired", ""
        if grant.scope == "call" and self._approvals.state_of(grant) not in {"", "seen"}:
            return "used", ""
        reason = self._changed(grant.subject)
        return ("suspended" if reason else "approved" if grant.approved else "rejected"), reason

    def _changed(self, subject: Subject) -> str:
        """Return why a decision on a definition does not count now; "" if it does, as far as the pins tell."""
        now, is_trusted = self._digests.get(str(subject.id), (subject.digest, True))
        if now == subject.digest:
            return ""
        return _CHANGED if is_trusted else _OFFERED.format(id=subject.id)

    def _of_request(self, one: PendingCall) -> Found:
        reason = self._changed(one.subject)
        return Found(
            key=one.key,
            state="suspended" if reason else "waiting",
            principal=one.principal,
            subject=one.subject,
            at=stamp(one.at),
            until=stamp(one.until),
            reason=reason or one.reason,
            rule=one.rule,
            arguments=one.arguments,
            wire_name=one.wire_name,
            client=one.client,
        )


def _offered(config: Config) -> dict[str, tuple[str, bool]]:
    """Return the digest of the definition that was offered last, by tool, and whether it is trusted.

    It is empty where the gateway knows none.
    """
    path = config.pins_path()
    if path is None or not path.exists():
        return {}
    try:
        with PinStore(path) as pins:
            found = {key: (pin.digest, True) for key, pin in pins.pins().items()}
            # A definition that waits is one that the server was seen to offer in the place of the pin.
            return found | {one.key: (one.digest, False) for one in pins.seen().values() if one.word == "waiting"}
    except StoreError:
        # What is wrong with them is told by the command that is about them.
        return {}


def row(one: Found) -> list[str]:
    """Return the row of a table."""
    since = one.at.replace("T", " ").removesuffix("+00:00")
    return [one.key, one.state, printable(one.principal), one.tool, one.covers, since]


def plain(one: Found) -> dict[str, Any]:
    """Return an entry of JSON output."""
    values = {name: value for name, value in vars(one).items() if name != "subject" and value}
    about = one.subject
    return {**values, "tool": one.tool, "digest": about.digest, "server": about.server, "name": about.name}


def lines_of(one: Found) -> Iterator[str]:
    """Yield what a person reads who decides, or looks at a decision."""
    about = one.subject
    yield f"{one.key} ({one.state}): {one.tool}"
    yield f"  server: {printable(about.server)}, its name there: {printable(about.name)}"
    yield f"  called as {printable(one.wire_name)} by {printable(one.principal)}"
    said = {"rule": one.rule, "why": one.reason, "covers": one.covers, "by": one.by, "message": one.message}
    for word, text in {**said, "since": one.at, "until": one.until}.items():
        if text:
            yield f"  {word}: {printable(text)}"
    if one.arguments:
        yield "  arguments:"
        for line in one.arguments.splitlines():
            yield f"    {printable(line)}"
