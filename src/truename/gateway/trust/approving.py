"""Approving: a call that the policy asks about waits for a person's decision, and may be made once it has one.

The client's user is asked, or the operator, or both. Whoever decides, the same decision is kept in the same file, and
the call is judged anew by it: no call is approved that the policy does not allow then.
"""

from __future__ import annotations

import secrets
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec

from truename.errors import ApprovalRequired, NotAllowed
from truename.gateway.elicitation.input_requests import askable, can_answer, put
from truename.gateway.protocol.errors import MCPError
from truename.gateway.trust.decisions import Taken
from truename.gateway.trust.forms import QUESTION, answer_in, form_of
from truename.gateway.trust.multi_round import ANSWERS, STATE, MultiRoundRequests, plain, unknown_state
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from truename.config import Settings
    from truename.gateway.elicitation.request_states import RequestStates
    from truename.gateway.mcp.requests import Request
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.trust.decisions import Decisions
    from truename.gateway.trust.requests import Requests
    from truename.policy import Call, Decision
    from truename.trust.approval_queue import PendingCall

    Raw = dict[str, Any]

__all__ = ["APPROVAL_KEY", "Approval", "Approving", "session_of"]

APPROVAL_KEY: Final = "dev.truename/approval"
_KEY: Final = "approval"
_SESSION: Final = "truename.session"
_ENDING: Final = "truename.approvals"
_LOOK_EVERY: Final = 0.5
_TRIES: Final = 5


def session_of(request: Request) -> str:
    """Return a key of the client's session; "" in the stateless era, which has none."""
    if request.connection.is_modern:
        return ""
    state = request.connection.state
    return str(state.get(_SESSION) or state.setdefault(_SESSION, secrets.token_hex(16)))


class Approval(msgspec.Struct, frozen=True):
    """A call that may be made now, with these parameters.

    ``once`` is the call whose one approval it takes: `Approving.finish` ends that. ``is_approved`` tells that somebody
    approved just this call, so that a question of its server goes by `Approving.passed`.
    """

    params: Mapping[str, Any]
    once: Call | None = None
    is_approved: bool = False


@dataclass(frozen=True)
class _PendingApproval:
    """A call that is asked about: who made it, and what raises when it may not be made any more."""

    request: Request
    call: Call
    params: Mapping[str, Any]
    still: Callable[[Call], Awaitable[None]]


class Approving:
    """Judges calls by the policy and people's decisions (`Decisions`), and has people asked."""

    def __init__(self, decisions: Decisions, settings: Settings, news: RateLimitedLog, states: RequestStates) -> None:
        self._log = news
        self._settings = settings.approvals
        self._patience = settings.answer_timeout
        self._decisions = decisions
        self._states = states
        self._multi_round = MultiRoundRequests(settings.approvals.expiry, states)
        # By the key of the call and that of the session whose user is asked.
        self._questions: dict[tuple[str, str], anyio.Event] = {}

    def with_settings(self, settings: Settings) -> Approving:
        """Return the same under other settings; who is asked now stays asked. Raises `StoreError`."""
        other = Approving(self._decisions.with_settings(settings), settings, self._log, self._states)
        other._questions = self._questions
        return other

    def close(self) -> None:
        """Close the files."""
        self._decisions.close()

    @property
    def requests(self) -> Requests:
        """What waits for a decision, and who is told of it."""
        return self._decisions.requests

    async def catch_up(self) -> None:
        """Read what others decided: where the database is away later, calls go by what was read."""
        await self._decisions.catch_up()

    async def judge(self, call: Call) -> Decision | None:
        """Return whether a call may be made, or has to be asked about; None without a policy. Raises `NotAllowed`."""
        return await self._decisions.judge(call)

    async def check(self, call: Call) -> None:
        """Raise `NotAllowed` for a call that is denied now, whoever allowed it before."""
        await self._decisions.check(call)

    async def approve(
        self,
        request: Request,
        call: Call | None,
        decision: Decision | None,
        params: Mapping[str, Any],
        *,
        still: Callable[[Call], Awaitable[None]],
    ) -> Approval | Raw:
        """Return the approval of a call that may be made, at once or after somebody decided; or the result that asks.

        ``decision`` is that of `judge`; ``still`` is asked before somebody has to think about a call, and again before
        the approval is returned then, for its tool may have changed or be gone. Raises what ``still`` raises,
        `ApprovalRequired`, `NotAllowed`, `CallRepeated`, and `MCPError` for a state that is not this call's.
        """
        if call is None or decision is None:
            return Approval(params)
        met = await self._multi_round.met(call, params) if STATE in params else None
        if met is not None and met.approved:
            # The server that runs the approved call asked something.
            return Approval(met.onward(params), is_approved=True)
        if met is None and decision.outcome == "allow":
            return Approval(params)
        if met is None and STATE in params:
            raise unknown_state()
        answers = params.get(ANSWERS) if met is not None else None
        asked = _PendingApproval(request, call, plain(params), still)
        return await self._asked(asked, decision, answers.get(_KEY) if isinstance(answers, dict) else None)

    async def finish(self, approval: Approval, *, failed: bool) -> None:
        """Write down that a call is over that took the one approval for it."""
        if approval.once is not None:
            await self._decisions.finish(approval.once, failed=failed)

    async def passed(self, call: Call, result: Raw) -> Raw:
        """Return the result of an approved call; where it is a question, the client comes back with a state of ours."""
        return await self._multi_round.passed(call, result)

    async def _asked(self, asked: _PendingApproval, decision: Decision, answer: object) -> Approval | Raw:
        """Have a call decided on; ``answer`` is what the client's user said in the stateless era."""
        await self._check_named(asked)
        # Nobody is asked about a definition that the server gives no more.
        await asked.still(asked.call)
        for _ in range(_TRIES):
            if decision.outcome == "allow" and answer is None:
                await asked.still(asked.call)
                return Approval(asked.params)
            self._end_with_session(asked)
            waiting = await self._decisions.keep(asked.call, decision)
            if answer is not None:
                await self._settle(asked.call, waiting, answer, "multi_round")
                answer = None
            elif await self._decisions.allowed(asked.call, waiting) is None and self._asks_client(asked.request):
                if asked.request.connection.is_modern:
                    question = {"method": QUESTION, "params": form_of(waiting)}
                    return await self._multi_round.asked(asked.call, {_KEY: question})
                await self._put(asked, waiting)
            found = await self._waited(asked.call, waiting)
            if found is None:
                raise self._undecided(asked.call, waiting.key, decision)
            await asked.still(asked.call)
            if found is asked.call:
                return Approval(asked.params)
            try:
                await self._decisions.begin(found)
            except Taken:
                # Another call took the one word: this one is asked about anew.
                decision = await self.judge(asked.call) or decision
            else:
                return Approval(asked.params, once=found, is_approved=True)
        raise self._undecided(asked.call, "", decision)

    async def _settle(self, call: Call, waiting: PendingCall, answer: object, via: str) -> None:
        read = answer_in(answer, waiting.scopes)
        if read is not None:
            await self._decisions.settle(call, waiting, read, via)

    def _asks_client(self, request: Request) -> bool:
        able = askable(request)
        said = able.get("elicitation")
        # A client that says URLs and nothing else has no forms.
        has_forms = not said or not isinstance(said, dict) or "form" in said
        return self._settings.ask != "operator" and has_forms and can_answer(able, QUESTION, None)

    async def _put(self, asked: _PendingApproval, waiting: PendingCall) -> None:
        """Ask the user of a client of the handshake eras; of calls of a session that are the same one at a time.

        Another session does not wait for that: its client may be gone, and nobody would answer.
        """
        own = waiting.key, session_of(asked.request)
        if (other := self._questions.get(own)) is not None:
            await other.wait()
            return
        over = self._questions[own] = anyio.Event()
        answer: object = None
        try:
            # Another question about the same call may have been answered since the last look.
            if await self._decisions.allowed(asked.call, waiting) is not None:
                return
            with anyio.move_on_after(self._patience):
                async with self._unless_decided(asked.call, waiting):
                    try:
                        answer = await put(asked.request, QUESTION, form_of(waiting))
                    except MCPError as error:
                        text = f"a client could not be asked about a call: {printable(error.message)}"
                        self._log.tell(("question", asked.call.id), text)
            await self._settle(asked.call, waiting, answer, "elicitation")
        finally:
            del self._questions[own]
            over.set()

    @asynccontextmanager
    async def _unless_decided(self, call: Call, waiting: PendingCall) -> AsyncIterator[None]:
        """Break the block off when the operator decides meanwhile, where both are asked."""
        if self._settings.ask != "both":
            yield
            return

        async def look() -> None:
            await self._decided(call, waiting)
            both.cancel_scope.cancel()

        async with anyio.create_task_group() as both:
            both.start_soon(look)
            yield
            both.cancel_scope.cancel()

    async def _decided(self, call: Call, waiting: PendingCall) -> None:
        """Wait until somebody decided, whatever it was."""
        try:
            while await self._decisions.allowed(call, waiting) is None:
                await anyio.sleep(_LOOK_EVERY)
        except NotAllowed:
            return

    async def _waited(self, call: Call, waiting: PendingCall) -> Call | None:
        """Wait for the operator, if that is set, and return what may be made then. Raises `NotAllowed`."""
        if self._settings.wait:
            with anyio.move_on_after(self._settings.wait):
                await self._decided(call, waiting)
        return await self._decisions.allowed(call, waiting)

    async def _check_named(self, asked: _PendingApproval) -> None:
        """Raise `CallRepeated` for a call that names a request, and is not the one that was asked about."""
        meta = asked.params.get("_meta")
        key = meta.get(APPROVAL_KEY) if isinstance(meta, dict) else None
        if isinstance(key, str):
            await self._decisions.check_named(asked.call, key)

    def _undecided(self, call: Call, key: str, decision: Decision) -> ApprovalRequired:
        remedy = f"The operator decides: `truename approvals grant {key}`. Then repeat the same call."
        if not self._decisions.is_kept:
            remedy = "Use a client that can ask its user."
        return ApprovalRequired(
            id=call.id, approval_key=key, call=call.call_id, decision=decision.reason, remedy=remedy
        )

    def _end_with_session(self, asked: _PendingApproval) -> None:
        """Have what is decided for a session go with it."""
        connection, caller = asked.request.connection, asked.call.caller
        if caller.session and not connection.state.get(_ENDING):
            connection.state[_ENDING] = True
            end = self._decisions.end_session
            connection.exit_stack.push_async_callback(end, caller.principal, caller.session)
