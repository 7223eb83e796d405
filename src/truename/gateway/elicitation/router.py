"""Questions that a server of the handshake eras sends while it is called: whose they are, and who answers.

Nothing in such a request says for which call it is. It is relayed only where that is certain, and else refused: a
question must never reach somebody else.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import anyio

from truename.gateway.elicitation.attribution import attributed, refusal
from truename.gateway.elicitation.input_requests import QUESTIONS, askable, can_answer, put
from truename.gateway.elicitation.program_runs import ProgramRun
from truename.gateway.elicitation.progress_limit import ProgressLimit
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    REQUEST_TIMEOUT,
)
from truename.gateway.protocol.tasks import ASKED_FOR, related_to, renamed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
    from types import TracebackType

    from truename.config import Settings
    from truename.gateway.deadline import Deadline
    from truename.gateway.elicitation.semaphore import Permit
    from truename.gateway.mcp.requests import Request
    from truename.gateway.protocol.progress import ReportProgress

__all__ = ["A_USER", "Asker", "ElicitationRouter", "ServerRequest", "User"]

Number = str | int

# Before any client is known: a question that its client cannot be asked is refused when it comes. Roots are asked for
# outside of calls, so a connection that clients share cannot have them.
_SHARED: Final[Mapping[str, Any]] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}}
# Whichever session of a user it is for: that is the same user's.
_OF_A_USER: Final[Mapping[str, Any]] = {**_SHARED, "roots": {}}
_WHOSE: Final = (
    "The user was not asked: several clients use this connection, so the right one is unknown. "
    'Set isolation = "session" for this server.'
)
_STATELESS: Final = (
    "The user was not asked: clients without sessions use this connection, so the right one is unknown. "
    'Set isolation = "user" for this server, or have the client start the gateway itself (stdio).'
)
_WHICH: Final = (
    "The user was not asked: no session of the user calls now, or several do, so the right one is unknown. "
    'Set isolation = "session" for this server.'
)
_OVER: Final = "The call that this request belongs to has ended."


class ServerRequest(NamedTuple):
    """A request that a server sends, as it came.

    ``call`` is the id of the call in whose stream it came, None where a connection has no such streams;
    ``report_progress`` tells the server how far its request has come.
    """

    method: str
    params: Mapping[str, Any] | None
    call: Number | None
    report_progress: ReportProgress


class User:
    """One user, as the owner of a connection: all sessions on it are the same user's."""


A_USER: Final = User()


class Asker:
    """The client of one request: what it can be asked, and the way to it.

    ``server`` is the key of the server that asks. ``key`` is what requests of one session, or of one pipe, have in
    common; None where there is no such thing.
    ``by_result`` asks a client of the stateless era, which gets no requests. ``task`` is the one for whose result the
    request asks: the server's own id of it, and the client's. ``repeatable`` is the operator's word on whether the call
    may be sent again. ``run`` is the run of a program that the request is for.
    """

    def __init__(self, request: Request, settings: Settings, server: str) -> None:
        self._server = server
        self.is_modern = request.connection.is_modern
        self.key: Hashable | None = request.connection.pipe if self.is_modern else request.connection
        self.able = askable(request)
        self.by_result: Callable[[str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]] | None = None
        self.request = request
        self.task: tuple[str, str] | None = None
        self.repeatable: bool | None = None
        self.run = ProgramRun()
        self.most = settings.max_rounds
        self._limit = settings.answer_timeout
        self._told: ProgressLimit | None = None

    @property
    def may_be_asked(self) -> bool:
        """Whether the client can be asked what servers may ask on a connection that clients share."""
        return any(capability in self.able for capability in _SHARED)

    async def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the progress of the call on the stream that it has now; a client that does not read misses some."""
        self._told = self._told or ProgressLimit(self._report)
        await self._told(progress, total, message)

    async def _report(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        await self.request.channel.report_progress(progress, total, message)

    async def ask(self, asked: ServerRequest) -> dict[str, Any]:
        """Put a question; what the client answers, also an error, is the answer. Raises `MCPError`.

        No server is told that its questions may become tasks: a wish for one is passed over, as the protocol has it.
        """
        method, params = asked.method, asked.params
        params = None if params is None else {key: value for key, value in params.items() if key != ASKED_FOR}
        if not can_answer(self.able, method, params):
            raise self._cannot(QUESTIONS[method])
        if (problem := refusal(method, params)) is not None:
            raise MCPError(INVALID_PARAMS, f"The user was not asked: the server {problem}.")
        params = attributed(self._server, method, params)
        if self.by_result is not None:
            return await self.by_result(method, params)
        wants_progress = "progressToken" in ((params or {}).get("_meta") or {})
        own, known = self.task or ("", "")
        renamed_params = params if own == known else renamed(params or {}, own, known)
        try:
            with anyio.fail_after(self._limit):
                report = ProgressLimit(asked.report_progress) if wants_progress else None
                answer = await put(self.request, method, renamed_params, report)
                return renamed(answer, known, own)
        except TimeoutError as error:
            raise MCPError(REQUEST_TIMEOUT, f"The client did not answer within {self._limit:g} seconds.") from error

    def _cannot(self, capability: str) -> MCPError:
        text = f"This client does not support this request ({capability})."
        if not self.is_modern:
            return MCPError(INVALID_REQUEST, text)
        return MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, text, {"requiredCapabilities": {capability: {}}})


class _Call:
    """A call that runs: its clock stands still while its client is asked, and others may have its permit."""

    def __init__(
        self, router: ElicitationRouter, number: Number, asker: Asker, deadline: Deadline, permit: Permit | None
    ) -> None:
        self.asker = asker
        self._router = router
        self._number = number
        self._deadline = deadline
        self._permit = permit
        self._asked = 0
        self._open: set[anyio.CancelScope] = set()

    def __enter__(self) -> None:
        self._router.calls[self._number] = self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            # The client is told that its answers are not wanted any more.
            for question in self._open:
                question.cancel()
        del self._router.calls[self._number]

    async def ask(self, asked: ServerRequest) -> dict[str, Any]:
        self._asked += 1
        if self._asked > self.asker.most:
            text = f"The user was not asked: this call asked {self.asker.most:,} times, the limit of max_rounds."
            raise MCPError(INVALID_REQUEST, text)
        with self._standing_still():
            async with nullcontext() if self._permit is None else self._permit.away():
                return await self.asker.ask(asked)
        raise MCPError(INVALID_REQUEST, _OVER)

    @contextmanager
    def _standing_still(self) -> Iterator[None]:
        """Stop the clock while the block lasts, which ends with the call if that fails."""
        self._deadline.stand_still()
        with anyio.CancelScope() as question:
            self._open.add(question)
            try:
                yield
            finally:
                self._open.remove(question)
                if not self._open:
                    self._deadline.go_on()


class ElicitationRouter:
    """The questions of one connection. ``owner`` is the client, or the user, whose own it is; None where it is shared.

    An owner without a session is only the first of those who share it: it says what they can be asked.
    """

    def __init__(self, owner: Asker | User | None = None) -> None:
        self._is_a_users = isinstance(owner, User)
        self._owner = owner if isinstance(owner, Asker) else None
        self.calls: dict[Number, _Call] = {}
        self._only: Hashable | None = None
        self._is_mixed = False
        self._late = 0

    @property
    def declares(self) -> Mapping[str, Any]:
        """The capabilities to declare to a server of the handshake eras."""
        if self._is_a_users:
            return _OF_A_USER
        return _SHARED if self._owner is None else self._owner.able

    def during(self, number: Number, asker: Asker, deadline: Deadline, permit: Permit | None = None) -> _Call:
        """Return a block for a call: who calls, under which id, within which time, with which permit of the server."""
        self._is_mixed |= asker.key is None or self._only not in {None, asker.key}
        self._only = asker.key
        self._late = 0
        return _Call(self, number, asker, deadline, permit)

    async def relay(self, asked: ServerRequest) -> dict[str, Any]:
        """Put a server's question to whom it is for. Raises `MCPError` for one that nobody is asked."""
        call = self._call(asked.call, related_to(asked.params))
        if call is not None:
            return await call.ask(asked)
        if self._owner is None or self._owner.is_modern or self.calls:
            shared = _WHICH if self._is_a_users else _WHOSE
            raise MCPError(INVALID_REQUEST, shared if self._owner is None else _STATELESS)
        self._late += 1
        if self._late > self._owner.most:
            text = f"The user was not asked: {self._owner.most:,} requests since the last call reach max_rounds."
            raise MCPError(INVALID_REQUEST, text)
        return await self._owner.ask(asked)

    def whose_log(self, call: Number | None) -> Asker | None:
        """Return whose request a log message is about, by the call in whose stream it came; None where it is unclear.

        Over stdio even the only call that runs may be the wrong one, as for questions.
        """
        found = self._call(call)
        return None if found is None else found.asker

    def _call(self, related: Number | None, task: str | None = None) -> _Call | None:
        """Return the call that a question belongs to; None where that is not certain.

        A question about a task belongs to who waits for its result: ids of tasks are the server's own.
        A connection that one session alone has ever used can ask nobody else. Otherwise even the only call that runs
        may be the wrong one: a server may ask on behalf of one that has ended. Of one user that is the same user's.
        """
        if related is not None:
            return self.calls.get(related)
        calls = tuple(self.calls.values())
        waiting = [call for call in calls if task is not None and (call.asker.task or ("",))[0] == task]
        if waiting:
            return waiting[-1]
        if not calls or (self._is_mixed and not self._is_a_users):
            return None
        last = calls[-1]
        is_of_one = last.asker.key is not None and all(call.asker.key == last.asker.key for call in calls)
        return last if len(calls) == 1 or is_of_one else None
