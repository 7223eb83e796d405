"""Calls that are held open while a client of the stateless era is asked.

A server of the handshake eras asks while its tool runs; a client of the stateless era is asked by a result, and answers
by calling again. So the call goes on by itself meanwhile, and who calls again with its state meets it there. The state
names the process whose call it is: what reaches another gateway of the same state is passed on (`AnswerRelay`).
"""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.errors import TruenameError
from truename.gateway.elicitation.answer_relay import AnswerRelay
from truename.gateway.elicitation.input_requests import INPUT_REQUIRED
from truename.gateway.elicitation.request_states import ANSWERS, STATE, RequestStates
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import whole
from truename.gateway.protocol.specification import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, REQUEST_TIMEOUT
from truename.gateway.quota import Quota, share_of, whose
from truename.gateway.upstream_errors import UpstreamError
from truename.policy.arguments import json_digest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from anyio.abc import TaskGroup

    from truename.config import Settings
    from truename.gateway.elicitation.router import Asker
    from truename.storage import StateLocation

    Send = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]

__all__ = ["SuspendedCalls"]

log: Final = logging.getLogger("truename.gateway")

# What belongs to one sending of a call, and not to the call.
_OF_ONE_SENDING: Final = frozenset({"_meta", ANSWERS, STATE})
_KIND: Final = "call"
_TOO_MANY: Final = "The user was not asked: too many calls wait for answers, in total or of this user. Try again later."
_UNKNOWN: Final = (
    "No call waits with this requestState for these parameters: it was already answered, expired, or belongs to "
    "another caller. Call again without requestState."
)


def _bound(what: tuple[Any, ...]) -> tuple[str, ...]:
    """Return what a state is sealed for: with other arguments it does not open, so it is not used up by them."""
    return (*what[:-1], json_digest(whole(what[-1])))


def _unknown() -> MCPError:
    return MCPError(INVALID_PARAMS, _UNKNOWN)


class _Memory:
    """How many bytes wait for clients, of ``most``."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._taken = 0

    def take(self, content: object) -> int | None:
        """Count this, and return its size; None if there is no room for it."""
        # What passes through as bytes counts as its text.
        size = len(json.dumps(content, default=lambda raw: bytes(raw).decode("utf-8", "replace")))
        if self._taken + size > self.most:
            return None
        self._taken += size
        return size

    def give_back(self, size: int) -> None:
        self._taken -= size


@dataclass
class _Question:
    request: dict[str, Any]
    answer: dict[str, Any] = field(default_factory=dict)
    answered: anyio.Event = field(default_factory=anyio.Event)


class _SuspendedCall:
    """One call that goes on by itself: what it asks now, and in the end its outcome."""

    def __init__(self, what: tuple[Any, ...], asker: Asker, limit: float, memory: _Memory) -> None:
        self.what = what
        self.asker = asker
        self._memory = memory
        self._kept = 0
        self._is_met = False
        self.is_forgotten = False
        self.id: str | None = None
        self.collected = anyio.Event()
        self._scope = anyio.CancelScope()
        self._limit = limit
        self._questions: dict[str, _Question] = {}
        self._asked = 0
        self._changed_event = anyio.Event()
        self._is_over = False
        self._outcome: dict[str, Any] | None = None
        self._failure: Exception | None = None

    async def run(self, send: Send, params: Mapping[str, Any]) -> None:
        try:
            with self._scope:
                self._outcome = await send(params)
        except Exception as error:  # noqa: BLE001 - raised to whoever comes for the outcome
            self._failure = error
        finally:
            if not self._is_met:
                self._keep()
            self._is_over = True
            self._changed_event.set()

    def _keep(self) -> None:
        """Keep the outcome for a client that is away, if there is room for it."""
        size = self._memory.take(self._outcome)
        if size is not None:
            self._kept = size
            return
        self._outcome, self._failure = (
            None,
            UpstreamError(
                server=self.what[0],
                kind="too_large",
                problem="returned a result while its client was disconnected, which was dropped, because max_held_bytes"
                " is reached",
                remedy="The call was run; check what it did before you repeat it.",
            ),
        )

    def end(self) -> None:
        """Cancel it, at its server too; nobody comes for its outcome any more."""
        self._scope.cancel()
        self.collected.set()

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        self._asked += 1
        key = f"q{self._asked}"
        question = _Question({"method": method, **({} if params is None else {"params": dict(params)})})
        # What the call itself holds counts with each of its questions.
        size = self._memory.take((self.what, question.request))
        if size is None:
            text = "The user was not asked: the calls that wait for answers take more than max_held_bytes."
            raise MCPError(INVALID_REQUEST, text)
        self._questions[key] = question
        self._changed_event.set()
        try:
            with anyio.fail_after(self._limit):
                await question.answered.wait()
        except TimeoutError as error:
            self.end()
            raise MCPError(REQUEST_TIMEOUT, f"The client did not answer within {self._limit:g} seconds.") from error
        finally:
            del self._questions[key]
            self._memory.give_back(size)
        return question.answer

    def answer(self, answers: object) -> None:
        """Give the answers to the questions that they are for."""
        for key, answer in answers.items() if isinstance(answers, dict) else ():
            if (question := self._questions.get(key)) is not None and isinstance(answer, dict):
                question.answer = answer
                question.answered.set()

    async def next(self) -> dict[str, Any] | None:
        """Wait for questions, and return their requests by key; None when it is over."""
        self._is_met = True
        try:
            while not self._is_over:
                if asked := {key: one.request for key, one in self._questions.items() if not one.answered.is_set()}:
                    return asked
                self._changed_event = anyio.Event()
                await self._changed_event.wait()
        finally:
            self._is_met = False
        return None

    def drop(self) -> None:
        """Keep the outcome no longer."""
        self._memory.give_back(self._kept)
        self._kept = 0

    def outcome(self) -> dict[str, Any]:
        """Return the result, or raise what it ended with."""
        self.collected.set()
        self.drop()
        if self._failure is not None:
            raise self._failure
        if self._outcome is None:
            raise MCPError(REQUEST_TIMEOUT, "The call was cancelled, because its question was not answered in time.")
        return self._outcome


class SuspendedCalls:
    """The calls of all servers that are held open, with ``max_held`` questions at most. They run among ``tasks``.

    One principal has a share of these (`Share`). The calls, their questions and their answers take ``max_held_bytes``
    at most while their clients are away.
    """

    def __init__(
        self,
        tasks: TaskGroup,
        settings: Settings,
        *,
        states: RequestStates | None = None,
        location: StateLocation | None = None,
    ) -> None:
        self._tasks = tasks
        self._states = states or RequestStates()
        self._relay = AnswerRelay(tasks, location, self._states, take=self._taken, is_needed=lambda: bool(self._held))
        self._held: dict[str, _SuspendedCall] = {}
        self._relayed = 0
        self._gone = anyio.Event()
        self._memory = _Memory(settings.max_held_bytes)
        self._room = Quota(share_of(settings, settings.max_held))
        self.reload(settings)

    def reload(self, settings: Settings) -> None:
        """Have other limits for the calls to come."""
        self._room.resize(share_of(settings, settings.max_held))
        self._memory.most = settings.max_held_bytes
        self._limit = settings.answer_timeout

    async def call(
        self,
        asker: Asker,
        target: tuple[str, ...],
        params: Mapping[str, Any],
        send: Send,
    ) -> dict[str, Any]:
        """Send a call, or go on with the one that its ``requestState`` is of; return its result or what it asks.

        ``target`` says where it goes, and whose it is: server, method, principal. Raises what ``send`` raises, and
        `MCPError` for a state that is of no call that waits, or of somebody else's.
        """
        what = (*target, {key: value for key, value in params.items() if key not in _OF_ONE_SENDING})
        if STATE not in params:
            return await self._met(self._begun(asker, what, params, send))
        state = await self._states.opened(_KIND, _bound(what), params)
        if state is None:
            raise _unknown()
        owner, id = state.content
        if owner != self._relay.owner:
            return await self._passed_on(owner, id, what, params)
        held = self._resumed(id, what, params.get(ANSWERS))
        held.asker.request = asker.request
        return await self._met(held)

    async def _met(self, held: _SuspendedCall) -> dict[str, Any]:
        """Return the outcome of a call, or what it asks now."""
        try:
            asked = await held.next()
            if asked is None:
                return held.outcome()
            id = secrets.token_hex(16)
            content = [self._relay.owner, id]
            state = await self._states.sealed(_KIND, _bound(held.what), content, lasts=self._limit)
        except (MCPError, anyio.get_cancelled_exc_class()):
            held.end()
            raise
        if held.is_forgotten:
            # It ended while its state was sealed.
            return held.outcome()
        held.id = id
        self._held[id] = held
        self._relay.watch()
        return {"resultType": INPUT_REQUIRED, "inputRequests": asked, STATE: state}

    def _begun(
        self,
        asker: Asker,
        what: tuple[Any, ...],
        params: Mapping[str, Any],
        send: Send,
    ) -> _SuspendedCall:
        held = _SuspendedCall(what, asker, self._limit, self._memory)

        async def ask(method: str, question: Mapping[str, Any] | None) -> dict[str, Any]:
            with self._room.place(whose(principal_of(asker.request))) as found:
                if not found:
                    raise MCPError(INVALID_REQUEST, _TOO_MANY)
                return await held.ask(method, question)

        asker.by_result = ask
        self._tasks.start_soon(self._run, held, send, params)
        return held

    def _resumed(self, id: str, what: Sequence[Any], answers: object) -> _SuspendedCall:
        held = self._held.get(id)
        if held is None or [*held.what] != [*what]:
            raise _unknown()
        # Each state is good for once.
        self._forget(held)
        held.answer(answers)
        return held

    async def _passed_on(self, owner: str, id: str, what: tuple[Any, ...], params: Mapping[str, Any]) -> dict[str, Any]:
        """Have the gateway whose call it is take an answer. Raises as `call` does."""
        outcome = await self._relay.pass_on(owner, id, {"what": [*what], "answers": params.get(ANSWERS)})
        match outcome:
            case {"result": dict(result)}:
                return result
            case {"upstream": dict(fields)}:
                raise UpstreamError(**{**fields, "output": tuple(fields["output"])})
            case {"error": [int(code), str(message), data]}:
                raise MCPError(code, message, data)
        raise _unknown()

    async def _taken(self, id: str, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Take an answer that came by another gateway; return what `_passed_on` reads there."""
        self._relayed += 1
        try:
            return {"result": whole(await self._met(self._resumed(id, answer.get("what", ()), answer.get("answers"))))}
        except UpstreamError as error:
            return {"upstream": {one.name: getattr(error, one.name) for one in fields(error)}}
        except MCPError as error:
            return {"error": [error.code, error.message, error.data]}
        except Exception as error:
            text = str(error) if isinstance(error, TruenameError) else "The call failed. The gateway's log says why."
            log.warning("A call failed whose client came back by another gateway", exc_info=error)
            return {"error": [INTERNAL_ERROR, text, None]}
        finally:
            self._relayed -= 1
            self._gone.set()

    @property
    def count(self) -> int:
        """How many calls wait for their clients now, or go on with an answer that came by another gateway."""
        return len(self._held) + self._relayed

    async def none(self) -> None:
        """Wait until no call waits."""
        while self.count:
            self._gone = anyio.Event()
            await self._gone.wait()

    def _forget(self, held: _SuspendedCall) -> None:
        if held.id is not None:
            self._held.pop(held.id, None)
            self._gone.set()

    async def _run(self, held: _SuspendedCall, send: Send, params: Mapping[str, Any]) -> None:
        """Run it; an outcome that comes while the client is away is kept for as long as an answer may take."""
        try:
            await held.run(send, params)
            with anyio.move_on_after(self._limit):
                await held.collected.wait()
        finally:
            held.drop()
            held.is_forgotten = True
            self._forget(held)

    def close(self) -> None:
        """Close the database of answers that are passed on."""
        self._relay.close()
