"""Envelopes: a server's raw result becomes an answer of the client's era, and nothing else of it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_types import INVALID_REQUEST, CallToolRequestParams
from mcp_types.methods import validate_client_request

from truename.gateway.protocol.sdk import SERVER_INFO_META_KEY, MCPError, connection_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.context import HandlerResult

    from truename.gateway.protocol.sdk import CallNext, Request

__all__ = ["Envelopes", "enveloped", "plain"]

_CALL: Final = "tools/call"

_INPUT_REQUIRED: Final = "input_required"
# What only results of the stateless era say.
_STATELESS: Final = ("resultType", "ttlMs", "cacheScope")
_HINTS: Final = ("ttlMs", "cacheScope")
_CANNOT_ASK: Final = (
    "This {what} needs to ask the user something, which this client's protocol version does not support; "
    "nothing was done. Use another {what}, or a client that speaks MCP 2026-07-28."
)


class Envelopes:
    """What the SDK makes around an empty result. Around that of a call it is the same each time, so it is kept."""

    def __init__(self) -> None:
        self._of_calls: dict[str, HandlerResult] = {}

    async def around(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        """Have the SDK check a request, and return the envelope of its answer. Raises as the SDK does."""
        version = ctx.protocol_version
        if ctx.method != _CALL or ctx.request_id is None or not connection_of(ctx).initialize_accepted:
            return await call_next(ctx)
        if version not in self._of_calls:
            self._of_calls[version] = await call_next(ctx)
        else:
            validate_client_request(_CALL, version, ctx.params)
            CallToolRequestParams.model_validate(ctx.params, by_name=False)
        return self._of_calls[version]


def plain(envelope: HandlerResult) -> dict[str, Any]:
    """Return what the SDK answered as a dictionary."""
    return dict(envelope) if isinstance(envelope, dict) else {}


def enveloped(
    result: Mapping[str, Any], envelope: Mapping[str, Any], *, modern: bool, what: str = "tool"
) -> dict[str, Any]:
    """Give a server's raw result the envelope of the client's era: the rest of it stays as it is.

    ``envelope`` is what the SDK made of an empty result. Raises `MCPError` where a server asks what this client cannot
    be asked, unless it was a tool: that is answered with a result that says so.
    """
    body = dict(result)
    meta = body.pop("_meta", None)
    meta = dict(meta) if isinstance(meta, dict) else {}
    meta.pop(SERVER_INFO_META_KEY, None)
    if modern:
        body.setdefault("resultType", "complete")
        if body["resultType"] != _INPUT_REQUIRED:
            body = {**{hint: envelope[hint] for hint in _HINTS if hint in envelope}, **body}
        meta |= envelope.get("_meta") or {}
    elif body.get("resultType") == _INPUT_REQUIRED:
        return _unasked(what)
    else:
        for field in _STATELESS:
            body.pop(field, None)
    return {**body, "_meta": meta} if meta else body


def _unasked(what: str) -> dict[str, Any]:
    text = _CANNOT_ASK.format(what=what)
    if what != "tool":
        raise MCPError(INVALID_REQUEST, text)
    return {"content": [{"type": "text", "text": text}], "isError": True}
