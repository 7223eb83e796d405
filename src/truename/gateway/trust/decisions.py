"""People's decisions at the gateway: calls are judged by them, requests for them are kept, and each is used as it says.

All that writes is done beside the loop. Where the files cannot be used nothing is run, and the client is not told where
they are.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from truename.errors import ApprovalRequired, CallRepeated, NotAllowed, StoreError
from truename.gateway.call_records import current_record
from truename.gateway.protocol.turns import in_thread
from truename.gateway.trust.forms import shown_arguments
from truename.gateway.trust.requests import Requests
from truename.gateway.upstream_errors import printable
from truename.identity.keys import CallId
from truename.policy import Approvals, MemoryStore, SqlApprovalStore, subject_of
from truename.policy.arguments import json_digest
from truename.trust.approval_queue import ApprovalQueue, PendingCall, about_grant, decided

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from truename.config import ServerConfig, Settings
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.trust.forms import Answer
    from truename.policy import Call, Decision, Grant
    from truename.storage import StateLocation

__all__ = ["Decisions", "Taken", "behind"]

_LAST_WORDS: Final = 5.0
# A program that answers its own questions must not take the room of all decisions.
_MOST_OF_ONE: Final = 1_000
_CLOSED: Final = "what people decided about it cannot be read or written now: the state database cannot be used"
_LATER: Final = "Try again later; if that does not help, the operator finds the reason in the gateway's log."
_BY_CLIENT: Final = "the client's user"
_REFUSED: Final = "the user rejected it"

T = TypeVar("T")


def behind(server: ServerConfig) -> str:
    """Return a digest of what is behind a server's key: another program or address under it is another thing."""
    return _behind(server.url, server.command, tuple(server.args))


@lru_cache(maxsize=1_024)
def _behind(url: str | None, command: str | None, args: tuple[str, ...]) -> str:
    return json_digest([url, command, list(args)])


class Taken(Exception):
    """The one call that was approved was made before."""


class Decisions:
    """The decisions of people, and what waits for one, under a policy.

    ``location`` is the state database, None for decisions that end with the process. Nothing is opened without a
    policy. Opening raises `StoreError`: with decisions that cannot be read the gateway does not start.
    """

    def __init__(
        self,
        location: StateLocation | None,
        settings: Settings,
        news: RateLimitedLog,
        books: tuple[Approvals, ApprovalQueue] | None = None,
        requests: Requests | None = None,
    ) -> None:
        self._location = location
        self._log = news
        self._settings = settings.approvals
        self.requests = requests or Requests()
        self._books = books
        self._policy = settings.policy
        if settings.policy is not None:
            self._books = books or _opened(location)
            self.requests.over(*self._books)
            self._policy = replace(settings.policy, approvals=self._books[0])

    def with_settings(self, settings: Settings) -> Decisions:
        """Return the same under other settings. Raises `StoreError`."""
        return Decisions(self._location, settings, self._log, self._books, self.requests)

    def close(self) -> None:
        """Close the files."""
        if self._books is not None:
            self._books[1].close()

    @property
    def is_kept(self) -> bool:
        """Whether they are in a database, where the operator can decide."""
        return self._location is not None and not self._location.is_memory

    @property
    def _approvals(self) -> Approvals:
        assert self._books is not None  # noqa: S101 - they are open where there is a policy
        return self._books[0]

    @property
    def _pending(self) -> ApprovalQueue:
        assert self._books is not None  # noqa: S101 - they are open where there is a policy
        return self._books[1]

    async def catch_up(self) -> None:
        """Read what others decided since the last look."""
        if self._books is not None and self._approvals.has_news():
            with suppress(StoreError):
                await in_thread(self._approvals.refresh)

    async def judge(self, call: Call) -> Decision | None:
        """Return whether a call may be made, or has to be asked about; None where there is no policy.

        Raises `NotAllowed`: also where people's decisions cannot be read.
        """
        decision = await self._said(call)
        if decision is not None and (account := current_record()) is not None:
            account.decided(decision)
        return _allowed(call, decision)

    async def check(self, call: Call) -> None:
        """Raise `NotAllowed` for a call that is denied now; what allowed it before stays what it was made by."""
        _allowed(call, await self._said(call))

    async def _said(self, call: Call) -> Decision | None:
        if self._policy is None:
            return None
        if self._approvals.reads(call):
            return await self._away(call, partial(self._policy.decide, call))
        try:
            return self._policy.decide(call)
        except StoreError as error:
            raise self._unread(call, error) from error

    async def allowed(self, call: Call, waiting: PendingCall) -> Call | None:
        """Return the call that may be made now: this one, or as the one call of its request; None for neither.

        Raises `NotAllowed`.
        """
        # A call that is made again may come in another session: the key of its request tells it.
        caller = replace(call.caller, session="")
        once = replace(call, call_id=CallId(waiting.key), caller=caller)
        if await self._is_allowed(call):
            return call
        decided = await self._decided_once(once)
        if not decided:
            return None
        # A no to just this request counts. Only a yes to it leaves aside what was decided for its session.
        is_allowed = await self._is_allowed(once)
        return once if is_allowed and any(one.approved for one in decided) else None

    async def _is_allowed(self, call: Call) -> bool:
        said = await self.judge(call)
        return said is not None and said.outcome == "allow"

    async def _decided_once(self, once: Call) -> list[Grant]:
        """Return the decisions on just this request."""
        known = await self._away(once, lambda: self._approvals.grants(once.caller.principal, once.caller.agent))
        return [one for one in known if one.scope == "call" and one.call_id == once.call_id]

    async def keep(self, call: Call, decision: Decision) -> PendingCall:
        """Keep the request for a decision, or find the one that is for the same call.

        Raises `ApprovalRequired` where too many wait, and `NotAllowed`.
        """
        caller, most = call.caller, self._settings.max_pending
        wanted = PendingCall(
            principal=caller.principal,
            agent=caller.agent,
            session=caller.session,
            fingerprint=call.fingerprint,
            subject=subject_of(call),
            arguments_digest=call.arguments_digest,
            arguments=shown_arguments(call.arguments),
            wire_name=printable(call.wire_name, 200),
            client=caller.client,
            rule=decision.rule,
            reason=decision.reason,
        )
        try:
            found = await self._away(call, lambda: self._pending.ask(wanted, most=most, lasts=self._settings.expiry))
        except NotAllowed as error:
            if not isinstance(error.__cause__, StoreError) or error.__cause__.code != "full":
                raise
            reason = f"as many calls as allowed, {most:,} of one caller, are already pending approval"
            raise ApprovalRequired(id=call.id, decision=reason, remedy="Decide on those first.") from error
        self.requests.asked(found)
        return found

    async def settle(self, call: Call, waiting: PendingCall, answer: Answer, via: str) -> None:
        """Keep what the client's user answered; ``via`` says how it came."""

        def keep() -> Grant:
            return decided(
                waiting,
                answer.scope,
                self._approvals,
                self._pending,
                approved=answer.approved,
                by=_BY_CLIENT,
                message="" if answer.approved else _REFUSED,
                lasts=self._settings.expiry,
                grant_lasts=self._settings.grant_expiry,
                most=_MOST_OF_ONE,
            )

        with self._closed(call):
            async with self.requests.answered(waiting, approved=answer.approved, by=_BY_CLIENT, via=via) as about:
                about.update(about_grant(await in_thread(keep)))

    async def begin(self, once: Call) -> None:
        """Use the approval of one call. Raises `Taken` where it was used, `ApprovalRequired` and `NotAllowed`."""

        def begin() -> None:
            said = self._policy.decide(once) if self._policy is not None else None
            try:
                self._approvals.begin(once, said.grant if said else None)
            except CallRepeated as error:
                self._pending.drop(once.call_id)
                raise Taken from error
            except ApprovalRequired as error:
                # It was revoked a moment ago.
                raise Taken from error
            # The next such call is asked about anew.
            self._pending.drop(once.call_id)

        await self._away(once, begin)

    async def finish(self, once: Call, *, failed: bool) -> None:
        """Write down that it is over, also when nobody waits any more."""
        with anyio.CancelScope(shield=True), anyio.move_on_after(_LAST_WORDS):
            try:
                await in_thread(lambda: self._approvals.finish(once, failed=failed))
            except StoreError as error:
                # It stays one that is running: it is not run again in any case.
                self._log.tell("approvals", str(error))

    async def check_named(self, call: Call, key: str) -> None:
        """Raise `CallRepeated` for a call that says to be the one of a request, and is not."""
        known = await self._away(call, lambda: self._pending.find(key))
        if known is None or known.principal != call.caller.principal:
            raise CallRepeated(id=call.id, call=key, state="used or expired")
        if known.fingerprint != call.fingerprint:
            raise CallRepeated(id=call.id, call=key, code="call_reused")

    async def end_session(self, principal: str, session: str) -> None:
        """Forget what was decided for a session."""

        def end() -> None:
            known = self._approvals.grants(principal)
            if own := [one for one in known if one.scope == "session" and one.session == session]:
                self._approvals.end_session(principal, session)
                self.requests.ended(own)

        with anyio.CancelScope(shield=True), anyio.move_on_after(_LAST_WORDS):
            try:
                await in_thread(end)
            except StoreError as error:
                self._log.tell("approvals", str(error))

    async def _away(self, call: Call, what: Callable[[], T]) -> T:
        with self._closed(call):
            return await in_thread(what)

    @contextmanager
    def _closed(self, call: Call) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            raise self._unread(call, error) from error

    def _unread(self, call: Call, error: StoreError) -> NotAllowed:
        self._log.tell(("approvals", error.code), f"{error} Calls that depend on it are refused.")
        return NotAllowed(id=call.id, rule="approvals", decision=_CLOSED, remedy=_LATER, code="state_unavailable")


def _allowed(call: Call, decision: Decision | None) -> Decision | None:
    if decision is not None and decision.outcome == "deny":
        raise NotAllowed(id=call.id, rule=decision.rule, decision=decision.reason)
    return decision


def _opened(location: StateLocation | None) -> tuple[Approvals, ApprovalQueue]:
    if location is None or location.is_memory:
        return Approvals(MemoryStore()), ApprovalQueue()
    queue = ApprovalQueue(location)
    queue.encrypt_plain()
    return Approvals(SqlApprovalStore(location)), queue
