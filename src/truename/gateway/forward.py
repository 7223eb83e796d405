"""Forwarding: the one place where a client's request is sent to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.gateway.asking import with_answers
from truename.gateway.logs import own_level, with_level
from truename.gateway.questions import Asker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.sdk import Request
    from truename.gateway.upstream import Upstream

__all__ = ["forward"]


async def forward(request: Request, upstream: Upstream, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Send a request on this client's behalf and return the raw result.

    What a server asks meanwhile is asked of this client (`asking`). Raises `UpstreamError`, and `MCPError` for errors
    that the server itself sends.
    """
    asker = Asker(request, upstream.settings)
    wants_progress = "progressToken" in (params.get("_meta") or {})
    target = upstream
    if upstream.isolation is not None:
        target = await upstream.isolation.of(request, asker)
        await own_level(request, target.follower)

    async def send(body: Mapping[str, Any]) -> dict[str, Any]:
        on_progress = asker.report_progress if wants_progress else None
        return await target.request(method, body, capabilities=asker.able, on_progress=on_progress, asker=asker)

    speaks_modern = upstream.session is not None and upstream.session.modern
    said = with_level(request, params) if speaks_modern else params
    # A state is one that the gateway gave: going on with a call must never begin another.
    may_be_held = asker.is_modern and bool(asker.able or "requestState" in said)
    if may_be_held and not speaks_modern and upstream.holding is not None:
        return await upstream.holding.call(asker, (upstream.key, method), said, send)
    return await with_answers(request, upstream.key, upstream.settings, said, send)
