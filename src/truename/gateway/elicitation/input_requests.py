"""Questions that a stateless server has while it is called, put to a client of the handshake eras.

Since 2026-07-28 a server asks by its result: ``input_required``, with questions and a state, and the client calls
again with the answers. Before, it sent requests of its own while the call ran. A client of those eras gets such
requests from here, on the stream of its call, and its answers go back in the call that is sent again.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.gateway.elicitation.attribution import attributed, refusal, under_own_key, under_servers_key
from truename.gateway.mcp.requests import declared_by
from truename.gateway.protocol.errors import MCPError
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from truename.config import Settings
    from truename.gateway.mcp.requests import Request
    from truename.gateway.protocol.progress import ReportProgress

__all__ = [
    "INPUT_REQUIRED",
    "QUESTIONS",
    "askable",
    "attributed_questions",
    "can_answer",
    "own_answers",
    "put",
    "with_answers",
]

INPUT_REQUIRED: Final = "input_required"
# What a server may ask, and the capability that a client declares for it.
QUESTIONS: Final[Mapping[str, str]] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
_MOST_AT_ONCE: Final = 32
_PAUSE: Final = 0.25
_LAST_WORD: Final = 1.0
_numbers: Final = count(1)
_UNDONE: Final = "The call was cancelled; what it did until then is unknown."


def askable(request: Request) -> Mapping[str, Any]:
    """Return what the client of this request says it can be asked, by capability, as it says it."""
    if request.connection.is_modern:
        return declared_by(request)
    if not request.channel.can_send_request:
        return {}
    client = request.connection.client
    said = {} if client is None else client.capabilities
    # Changes of roots are a notification of the handshake eras.
    return {name: {} if name == "roots" else said[name] for name in QUESTIONS.values() if name in said}


def can_answer(able: Mapping[str, Any], method: str, params: Mapping[str, Any] | None) -> bool:
    """Whether a client that can be asked this (`askable`) can be asked such a question; a URL is not a form."""
    said = able.get(QUESTIONS[method])
    return said is not None and ((params or {}).get("mode") != "url" or "url" in said)


async def put(
    request: Request, method: str, params: Mapping[str, Any] | None, on_progress: ReportProgress | None = None
) -> dict[str, Any]:
    """Send a question to the client of a request, on the request's stream while that lasts. Raises `MCPError`.

    When this is cancelled, the client is told so on the stream of its session: one that has cancelled its call reads
    the call's no more.
    """
    session, id = request.connection.channel, f"question-{next(_numbers)}"
    channel = request.channel if request.channel.can_send_request else session
    try:
        return await channel.send_request(method, params, request_id=id, on_progress=on_progress)
    except anyio.get_cancelled_exc_class():
        with anyio.move_on_after(_LAST_WORD, shield=True):
            await session.notify("notifications/cancelled", {"requestId": id})
        raise


async def with_answers(
    request: Request,
    server: str,
    settings: Settings,
    params: Mapping[str, Any],
    *,
    result: dict[str, Any],
    send: Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]],
) -> dict[str, Any]:
    """Send a request again with the client's answers, as long as its ``result`` asks something.

    Raises `UpstreamError` (question) if a client cannot be asked, refuses, or does not answer in time, and where a
    server asks more often than ``max_rounds``.
    """
    for _ in range(settings.max_rounds):
        if result.get("resultType") != INPUT_REQUIRED:
            return result
        answers = await _answers(request, server, settings, result.get("inputRequests") or {})
        if not answers:
            # A server that only wants to be called again is given time.
            await anyio.sleep(_PAUSE)
        again = {key: value for key, value in params.items() if key not in {"inputResponses", "requestState"}}
        if answers:
            again["inputResponses"] = answers
        if "requestState" in result:
            again["requestState"] = result["requestState"]
        result = await send(again)
    if result.get("resultType") == INPUT_REQUIRED:
        problem = f"asked more than {settings.max_rounds:,} times in one call, which max_rounds allows"
        raise _fault(server, problem, _UNDONE)
    return result


async def _answers(request: Request, server: str, settings: Settings, questions: object) -> dict[str, dict[str, Any]]:
    """Ask one question after the other: people answer one at a time."""
    able = askable(request)
    for question in (asked := questions if isinstance(questions, dict) else {}).values():
        if not can_answer(able, question["method"], question.get("params")):
            problem = (
                f"wants to ask the user something ({QUESTIONS[question['method']]}), which this client does not support"
            )
            raise _fault(server, problem, "Use another tool, or a client that supports this.")
    return {
        key: await _answer(request, server, settings, question["method"], question.get("params"))
        for key, question in asked.items()
    }


def attributed_questions(server: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return a result of the stateless era with the server's name in what it asks.

    Raises `UpstreamError` (question) for what is no question, and for one that nobody is asked.
    """
    if (questions := result.get("inputRequests")) is None:
        return result
    if not isinstance(questions, dict) or len(questions) > _MOST_AT_ONCE:
        raise _fault(server, "sent the client an invalid request", "Report it to the server's authors.")
    asked = {under_servers_key(key): _attributed(server, one) for key, one in questions.items()}
    return {**result, "inputRequests": asked}


def own_answers(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters of a call with the answers under the keys of the server that asked."""
    answers = params.get("inputResponses")
    if not isinstance(answers, dict):
        return params
    return {**params, "inputResponses": {under_own_key(key): one for key, one in answers.items()}}


def _attributed(server: str, question: object) -> dict[str, Any]:
    method = question.get("method") if isinstance(question, dict) else None
    if not isinstance(question, dict) or not isinstance(method, str) or method not in QUESTIONS:
        asked = f" ({printable(method, 80)})" if isinstance(method, str) else ""
        raise _fault(server, f"sent the client a request that the protocol does not define{asked}", _UNDONE)
    params = question.get("params")
    if not isinstance(params, dict | None):
        raise _fault(server, "sent the client an invalid request", "Report it to the server's authors.")
    if (problem := refusal(method, params)) is not None:
        raise _fault(server, problem, _UNDONE)
    return question if params is None else {**question, "params": attributed(server, method, params)}


async def _answer(
    request: Request, server: str, settings: Settings, method: str, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    try:
        with anyio.fail_after(settings.answer_timeout):
            return await put(request, method, params)
    except TimeoutError as error:
        problem = f"asked for {QUESTIONS[method]}, and got no answer within {settings.answer_timeout:g} seconds"
        raise _fault(server, problem, _UNDONE) from error
    except MCPError as error:
        problem = f"asked for {QUESTIONS[method]}, which the client refused ({printable(error.message, 200)})"
        raise _fault(server, problem, _UNDONE) from error


def _fault(server: str, problem: str, remedy: str) -> UpstreamError:
    return UpstreamError(server=server, kind="question", problem=problem, remedy=remedy)
