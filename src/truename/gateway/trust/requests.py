"""Record requests for approval in the audit log: asked, answered by a client's user, ended, expired."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from truename.config.audit import Audit
from truename.errors import StoreError
from truename.gateway.auditing import Auditing
from truename.trust.approval_queue import about_grant, about_request, stamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from truename.policy import Approvals, Grant
    from truename.trust.approval_queue import ApprovalQueue, PendingCall

__all__ = ["Requests"]


class Requests:
    """The requests that are open, as this gateway knows them; ``audit`` is told what becomes of them.

    What commands decide, they write down themselves.
    """

    def __init__(self) -> None:
        self.audit = Auditing(Audit())
        self._approvals: Approvals | None = None
        self._pending: ApprovalQueue | None = None
        self._open: dict[str, PendingCall] = {}

    def over(self, approvals: Approvals, pending: ApprovalQueue) -> None:
        """Be about these from now on. Raises `StoreError`."""
        if self._pending is not pending:
            self._approvals, self._pending = approvals, pending
            self._open = {one.key: one for one in pending.all() if one.is_open}

    @property
    def waiting(self) -> int:
        """How many nobody decided on yet, whichever gateway asked. Raises `StoreError`."""
        return 0 if self._pending is None else self._pending.count()

    def asked(self, one: PendingCall) -> None:
        """Tell of a request, the first time that it is made at any gateway."""
        if one.is_new:
            self._open[one.key] = one
            self.audit.note("approval", what="asked", until=stamp(one.until), **about_request(one))

    @asynccontextmanager
    async def answered(self, one: PendingCall, *, approved: bool, by: str, via: str) -> AsyncIterator[dict[str, Any]]:
        """Tell of the decision that the block makes; what it gives may be added to. Raises `StoreError`."""
        about = {"what": "granted" if approved else "denied", **about_request(one), "by": by, "via": via}
        async with self.audit.deciding("approval", about):
            yield about
        self._open.pop(one.key, None)

    def ended(self, grants: Iterable[Grant]) -> None:
        """Tell of decisions that were for a session which is over."""
        for one in grants:
            self.audit.note("approval", what="ended", **about_grant(one))

    def look(self) -> None:
        """Tell which requests nobody decided on in time."""
        now = time.time()
        for one in [one for one in self._open.values() if one.until <= now]:
            try:
                is_decided = self._approvals is None or any(
                    grant.call_id == one.key for grant in self._approvals.grants(one.principal)
                )
            except StoreError:
                # Which it is can be seen when they can be read again.
                return
            del self._open[one.key]
            if not is_decided:
                self.audit.note("approval", what="expired", **about_request(one))
