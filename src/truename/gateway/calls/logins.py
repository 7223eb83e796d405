"""Logins that calls need: whoever calls is sent to a page of the gateway to log in at the server, and the call goes on.

A client of the handshake eras is asked while its call waits; one of the stateless era gets the question as its result,
and calls again. Both only where the client can open addresses for its user (`elicitation` with `url`), and where the
gateway can tell who follows them (`PendingLogins`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.config.credentials import Login
from truename.errors import ConfigError, StoreError
from truename.gateway.elicitation.input_requests import INPUT_REQUIRED, askable, can_answer, put
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.trust.forms import QUESTION
from truename.gateway.trust.multi_round import ANSWERS, STATE
from truename.gateway.upstream_errors import UpstreamError, needs_login, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import Scope

    from truename.auth.outbound.login_pages import LoginAttempt, PendingLogins
    from truename.gateway.mcp.requests import Request
    from truename.gateway.upstream.upstream import Upstream

    Raw = dict[str, Any]

__all__ = ["finish_login", "log_in", "login_answer", "renew_login", "with_pending_logins"]

_LOGINS: Final = "truename.login_desk"
# Servers have keys for questions of their own; none of theirs is to be taken for this one.
_KEY: Final = "dev.truename/login"
# What may be answered with a question (2026-07-28); on the rest nobody waits.
_ASKING: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
_URL: Final[Mapping[str, Any]] = {"mode": "url"}
_COMPLETE: Final = "notifications/elicitation/complete"


def with_pending_logins(scope: Scope, logins: PendingLogins | None) -> None:
    """Write into a request where its sender can be sent to log in."""
    scope.setdefault("state", {})[_LOGINS] = logins


def login_answer(params: Mapping[str, Any]) -> tuple[object, Mapping[str, Any]]:
    """Return the client's answer to a request to log in, None where it has none, and the parameters without it."""
    answers = params.get(ANSWERS)
    if not isinstance(answers, dict) or _KEY not in answers:
        return None, params
    others = {key: value for key, value in answers.items() if key != _KEY}
    rest = {key: value for key, value in params.items() if key != ANSWERS}
    return answers[_KEY] or {}, {**rest, **({ANSWERS: others} if others else {})}


async def finish_login(request: Request, upstream: Upstream, answer: object) -> None:
    """Wait for the login of a user who went to the page."""
    logins, auth, address = _logins_of(request), upstream.config.auth, upstream.config.url
    is_gone_to = isinstance(answer, dict) and answer.get("action") == "accept"
    if logins is None or not is_gone_to or not isinstance(auth, Login) or address is None:
        return
    try:
        attempt = await logins.open(auth, address, principal_of(request))
    except (StoreError, ConfigError):
        return
    if attempt is not None:
        await logins.wait(attempt, upstream.settings.answer_timeout)


async def log_in(
    request: Request, upstream: Upstream, method: str, params: Mapping[str, Any], error: UpstreamError
) -> Raw | None:
    """Have the user log in at a server that refused a request for want of a login, so that it can be sent again.

    Return None after the login, and for a client of the stateless era the result that asks. Raises ``error`` where
    nobody can be asked, or does not log in.
    """
    attempt = await _attempt(request, upstream, error) if method in _ASKING and STATE not in params else None
    if attempt is None:
        raise error
    logins, one = attempt
    if request.connection.is_modern:
        asked = {"method": QUESTION, "params": _question(logins, one)}
        return {"resultType": INPUT_REQUIRED, "inputRequests": {_KEY: asked}}
    if not await _asked(request, logins, one, upstream.settings.answer_timeout):
        raise error
    return None


def renew_login(request: Request, upstream: Upstream) -> None:
    """Have a connection that a user has for themselves use the login that they have now."""
    if upstream.isolation is not None:
        upstream.isolation.renew(principal_of(request))


async def _attempt(
    request: Request, upstream: Upstream, error: UpstreamError
) -> tuple[PendingLogins, LoginAttempt] | None:
    """Return the login that is to be made for a request that failed so; None where its client cannot be asked."""
    if not needs_login(error) or (logins := _logins_of(request)) is None:
        return None
    auth, address = upstream.config.auth, upstream.config.url
    if not isinstance(auth, Login) or address is None or not can_answer(askable(request), QUESTION, _URL):
        return None
    try:
        found = await logins.attempt(upstream.key, auth, address, principal_of(request))
    except (StoreError, ConfigError):
        return None
    return None if found is None else (logins, found)


def _question(logins: PendingLogins, attempt: LoginAttempt) -> Raw:
    message = (
        f"Server {printable(attempt.server, 100)!r} requires you to log in. Log in on this page of the gateway; "
        "the call then continues."
    )
    return {**_URL, "message": message, "url": logins.url(attempt)}


async def _asked(request: Request, logins: PendingLogins, attempt: LoginAttempt, patience: float) -> bool:
    """Ask the user of a client of the handshake eras, once a session; tell whether they logged in."""
    session = request.connection
    if (other := attempt.questions.get(session)) is not None:
        await other.wait()
        return attempt.over.is_set()
    question = attempt.questions[session] = anyio.Event()
    try:
        async with anyio.create_task_group() as both:

            async def log_in() -> None:
                await logins.wait(attempt, patience)
                both.cancel_scope.cancel()

            both.start_soon(log_in)
            if not await _goes(request, {**_question(logins, attempt), "elicitationId": attempt.id}):
                both.cancel_scope.cancel()
        if attempt.over.is_set():
            await session.notify(_COMPLETE, {"elicitationId": attempt.id})
    finally:
        del attempt.questions[session]
        question.set()
    return attempt.over.is_set()


async def _goes(request: Request, question: Raw) -> bool:
    try:
        return (await put(request, QUESTION, question)).get("action") == "accept"
    except MCPError:
        return False


def _logins_of(request: Request) -> PendingLogins | None:
    http = request.http
    found: PendingLogins | None = None if http is None else http.scope.get("state", {}).get(_LOGINS)
    return found
