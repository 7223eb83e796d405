"""Forwarding: the one place where a client's request is sent to a server."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from truename.errors import InvalidCall
from truename.gateway.downstream.logins import logged_in_first
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.writable import unwritable
from truename.gateway.questions.asking import attributed_questions, own_answers, with_answers
from truename.gateway.questions.elicitation import Asker
from truename.gateway.questions.owned import given, taken_back
from truename.gateway.questions.visits import is_required, required, without_visits
from truename.gateway.upstream.counter import counted
from truename.gateway.upstream.logs import own_level, with_level

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.mcp.requests import Request
    from truename.gateway.upstream.known import Before
    from truename.gateway.upstream.upstream import Upstream

__all__ = ["forward"]


@counted
async def forward(
    request: Request,
    upstream: Upstream,
    method: str,
    params: Mapping[str, Any],
    *,
    task: tuple[str, str] | None = None,
    repeatable: bool | None = None,
    before: Before | None = None,
) -> dict[str, Any]:
    """Send a request on this client's behalf and return the raw result.

    ``task`` is the one for whose result it asks: the server's own id, and the one that the client knows.
    ``repeatable`` says whether it may be sent again; None leaves that to the server's entry. ``before`` looks at the
    server whenever something is about to be sent to it, and raises what is raised here then.
    What a server asks meanwhile is asked of this client (`asking`). Raises `UpstreamError`, `InvalidCall` for what no
    server could read, and `MCPError` for errors that the server itself sends.
    """
    if (problem := unwritable(params, upstream.settings.max_depth)) is not None:
        raise InvalidCall(field="params", problem=problem)
    await upstream.awake()
    sent = partial(_sent, request, upstream, method, task=task, repeatable=repeatable, before=before)
    return await logged_in_first(request, upstream, method, params, sent)


async def _sent(
    request: Request,
    upstream: Upstream,
    method: str,
    params: Mapping[str, Any],
    *,
    task: tuple[str, str] | None,
    repeatable: bool | None,
    before: Before | None,
) -> dict[str, Any]:
    params = without_visits(upstream.key, params)
    asker = Asker(request, upstream.settings, upstream.key)
    asker.task, asker.repeatable = task, repeatable
    try:
        return await _answered(request, upstream, asker, method, params, before=before)
    except MCPError as error:
        if not is_required(error):
            raise
        return required(upstream.key, method, error, asker)


async def _answered(
    request: Request,
    upstream: Upstream,
    asker: Asker,
    method: str,
    params: Mapping[str, Any],
    *,
    before: Before | None,
) -> dict[str, Any]:
    wants_progress = "progressToken" in (params.get("_meta") or {})
    target = await _connection(request, upstream, asker)

    async def send(body: Mapping[str, Any]) -> dict[str, Any]:
        on_progress = asker.report_progress if wants_progress else None
        # A call that is held goes on when this request of the client is over.
        body = own_answers(body)
        with upstream.running, target.running:
            result = await target.request(
                method, body, capabilities=asker.able, on_progress=on_progress, asker=asker, before=before
            )
        return attributed_questions(upstream.key, result) if speaks_modern else result

    session = target.session or upstream.session
    speaks_modern = session is not None and session.modern
    said = with_level(request, params) if speaks_modern else params
    # A state is one that the gateway gave: going on with a call must never begin another.
    may_be_held = asker.is_modern and bool(asker.able or "requestState" in said)
    if may_be_held and not speaks_modern and upstream.suspended is not None:
        return await upstream.suspended.call(asker, (upstream.key, method, principal_of(request).key), said, send)
    if not (asker.is_modern and speaks_modern):
        return await with_answers(request, upstream.key, upstream.settings, said, send)
    whose = principal_of(request), upstream.key, method
    return given(await with_answers(request, upstream.key, upstream.settings, taken_back(said, *whose), send), *whose)


async def _connection(request: Request, upstream: Upstream, asker: Asker) -> Upstream:
    """Return the connection to the server that a request goes over.

    To a server that speaks both eras that is one in the era of a client that can be asked something: many servers can
    ask in the way of that era only.
    """
    asks = upstream.session is not None and upstream.session.modern and not asker.is_modern and asker.may_be_asked
    if upstream.isolation is not None:
        own = await upstream.isolation.of(request, asker, "first" if asks else "last")
        await own_level(request, own.follower)
        return own
    if asks and upstream.second is not None:
        return await upstream.second.of(upstream, is_lasting=request.http is None) or upstream
    return upstream
