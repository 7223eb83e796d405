"""The calls pending approval and the decisions on them, as people who decide see them."""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.errors import StoreError
from truename.policy import Approvals, SqlApprovalStore
from truename.trust.approval_queue import ApprovalQueue, decided, stamp
from truename.trust.pins import PinStore

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from truename.config import Config
    from truename.policy import Grant, Scope
    from truename.policy.approval_validity import Subject
    from truename.trust.approval_queue import PendingCall

__all__ = ["ApprovalDecisions", "ListedApproval"]

_CHANGED: Final = "the tool's definition has changed since"
_OFFERED: Final = (
    "it is suspended while the server offers another definition, pending review: `truename pins diff {id}`"
)
_COVERS: Final[Mapping[str, str]] = {
    "call": "one call",
    "arguments": "these arguments",
    "session": "its session",
    "always": "all calls",
}


@dataclass(frozen=True, kw_only=True)
class ListedApproval:
    """A pending call or a decision; ``state`` is waiting, approved, rejected, used, expired or suspended.

    ``scopes`` are those that a decision on a pending call may have.
    """

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
    scopes: tuple[Scope, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether the call is pending."""
        return not self.scope

    @property
    def tool(self) -> str:
        """The tool's id."""
        return str(self.subject.id)

    @property
    def covers(self) -> str:
        """The scope of a decision, in words."""
        return _COVERS.get(self.scope, "")


class ApprovalDecisions:
    """The pending calls and the decisions of a configuration. All methods wait for the state, and raise `StoreError`.

    Nothing is recorded in the audit log: whoever decides records it, with `about_request` and `about_grant`.
    """

    def __init__(self, config: Config) -> None:
        location = config.state_location()
        self._settings = config.settings.approvals
        self._store = SqlApprovalStore(location)
        self._approvals = Approvals(self._store)
        self._pins: PinStore | None = None
        with suppress(StoreError):
            # `truename pins` reports it.
            self._pins = PinStore(pins) if (pins := config.pins_location()).has("pin") else None
        # A command that only reads creates no file.
        self._queue = ApprovalQueue(location if location.has("pending_call") else None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pins is not None:
            self._pins.close()
        self._queue.close()
        self._store.close()

    def waiting(self) -> Sequence[ListedApproval]:
        """Return the pending calls, oldest first."""
        return [self.listed_request(one) for one in self._queue.all() if one.is_open]

    def decisions(self) -> Sequence[ListedApproval]:
        """Return all decisions, oldest first."""
        return [self.listed(one) for one in self._approvals.grants()]

    def all(self) -> Sequence[ListedApproval]:
        """Return the pending calls, then all decisions."""
        return [*self.waiting(), *self.decisions()]

    def find(self, key: str) -> ListedApproval | None:
        """Return the pending call or decision with a key."""
        return next((one for one in self.all() if one.key == key), None)

    def decision_on(self, key: str) -> ListedApproval | None:
        """Return the decision with a key, or the last decision on the call with that key."""
        known = [one for one in self._approvals.grants() if key in {one.key, one.call_id}]
        return self.listed(known[-1]) if known else None

    def pending(self, key: str) -> PendingCall | None:
        """Return the call with a key if it is still pending."""
        found = self._queue.find(key)
        return found if found is not None and found.is_open else None

    def decide(
        self, one: PendingCall, scope: Scope, *, approved: bool, by: str, message: str = "", lasts: float | None = None
    ) -> Grant | None:
        """Grant or deny a pending call; ``lasts`` is how many seconds an approval counts, if not as configured.

        Return None, and decide nothing, if somebody decided on it first, in whichever process.
        """
        key = secrets.token_hex(8)
        made = decided(
            one,
            scope,
            self._approvals,
            self._queue,
            approved=approved,
            by=by,
            message=message,
            lasts=self._settings.expiry,
            grant_lasts=self._settings.grant_expiry if lasts is None else lasts,
            key=key,
        )
        return made if made.key == key else None

    def grant(self, key: str) -> Grant | None:
        """Return the decision with a key, None if there is none."""
        return next((one for one in self._approvals.grants() if one.key == key), None)

    def revoke(self, key: str) -> ListedApproval | None:
        """Revoke a decision; None if there is none with this key, or another process revoked it first."""
        gone = self._approvals.revoke(key)
        if gone is not None and gone.scope == "call":
            self._queue.drop(gone.call_id)
        return None if gone is None else self.listed(gone)

    def listed(self, grant: Grant) -> ListedApproval:
        """Return a decision with its state."""
        state, reason = self._state(grant)
        return ListedApproval(
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
        """Return why a decision is suspended; "" if it applies to the definition that the server offers."""
        now, is_trusted = self._offered(subject)
        if now == subject.digest:
            return ""
        return _CHANGED if is_trusted else _OFFERED.format(id=subject.id)

    def _offered(self, subject: Subject) -> tuple[str, bool]:
        """Return the digest of the definition that the server offered last, and whether it is trusted."""
        unknown = subject.digest, True
        if self._pins is None:
            return unknown
        try:
            kept = self._pins.about(str(subject.id))
        except StoreError:
            # `truename pins` reports it.
            return unknown
        pending = [one.digest for one in kept.seen.values() if one.word == "waiting"]
        if pending:
            # The server offers it now, instead of the pinned one.
            return pending[-1], False
        return unknown if kept.pin is None else (kept.pin.digest, True)

    def listed_request(self, one: PendingCall) -> ListedApproval:
        """Return a pending call with its state."""
        reason = self._changed(one.subject)
        return ListedApproval(
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
            scopes=one.scopes,
        )
