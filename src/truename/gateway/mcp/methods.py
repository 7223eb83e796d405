"""The methods of MCP that clients call: which version has which, what their parameters must be, and their results.

Source: MCP 2024-11-05 to 2026-07-28, the schemas of each version .
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.mcp.client import ClientDescription
from truename.gateway.mcp.schema import has_method, wrong_params
from truename.gateway.protocol.app_capability import UI_EXTENSION
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.skills import SKILLS_DIRECTORIES, SKILLS_EXTENSION
from truename.gateway.protocol.specification import (
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    MODERN_VERSIONS,
    SERVER_INFO_META_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.gateway.mcp.requests import Request

__all__ = ["announced", "check_request", "discovered", "in_envelope", "initialized", "negotiated", "not_found"]

# May be asked before the handshake.
_PING: Final = "ping"
_INPUT_REQUIRED: Final = "input_required"
# Only results of 2026-07-28 have these.
_STATELESS: Final = ("resultType", "ttlMs", "cacheScope")
_OF_ENVELOPE: Final = frozenset({"_meta", *_STATELESS})
# What a client may keep: lists change at any time, and differ by principal.
_CACHE: Final = {"ttlMs": 0, "cacheScope": "private"}
_CACHED: Final = frozenset(
    {
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"),
        *("server/discover", "skills/list", "skills/get"),
    }
)
# Kept for as long as the session lasts; real clients say less than 1 KiB.
_MOST_SAID: Final = 16 * 1024
_SAYS_TOO_MUCH: Final = (
    "Name, title, version and capabilities of the client are larger than 16 KiB; no session was begun. Send less."
)
_CANNOT_ASK: Final = (
    "This {what} needs to ask the user something, which this client's protocol version does not support; "
    "nothing was done. Use another {what}, or a client that speaks MCP 2026-07-28."
)


def check_request(request: Request) -> None:
    """Raise `MCPError` for a request that the client's version does not have so."""
    method, params = request.method, request.params
    if not has_method(request.protocol_version, method):
        raise not_found(method)
    if wrong_params(request.protocol_version, method, params) is not None:
        raise MCPError(INVALID_PARAMS, "Invalid request parameters", "")
    if not request.connection.may_request and method not in {_PING, "initialize"}:
        raise MCPError(INVALID_PARAMS, "Invalid request parameters", "")


def not_found(method: str) -> MCPError:
    """Return the error for a method that is not answered here."""
    return MCPError(METHOD_NOT_FOUND, "Method not found", method)


def negotiated(params: Mapping[str, Any] | None) -> tuple[str, ClientDescription]:
    """Return the version for a session, and what is kept of what its client says of itself.

    Raises `MCPError`: for parameters that are none, and where they are too much, since a cut name could be another
    client's. What nobody reads (icons, description, address) is dropped without a word.
    """
    client = ClientDescription.of(params or {})
    if client is None:
        raise MCPError(INVALID_PARAMS, "Invalid request parameters", "")
    if len(json.dumps(client.said())) > _MOST_SAID:
        raise MCPError(INVALID_PARAMS, _SAYS_TOO_MUCH)
    wanted = client.protocol_version
    return (wanted if wanted in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]), client


def initialized(version: str, server: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Build the result of ``initialize``."""
    return {"protocolVersion": version, "capabilities": capabilities, "serverInfo": server}


def discovered(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Build the result of ``server/discover``."""
    return {"supportedVersions": list(MODERN_VERSIONS), "capabilities": capabilities}


def announced(offered: Callable[[str], bool]) -> dict[str, Any]:
    """Build the capabilities; ``offered`` tells which there are beside tools.

    What changes is told in every version: in 2026-07-28 to who listens (``subscriptions/listen``).
    """
    found: dict[str, Any] = {}
    if offered("logging"):
        found["logging"] = {}
    if offered("prompts"):
        found["prompts"] = {"listChanged": True}
    if offered("resources"):
        found["resources"] = {"subscribe": True, "listChanged": True}
    found["tools"] = {"listChanged": True}
    if offered("completions"):
        found["completions"] = {}
    extensions: dict[str, Any] = {}
    if offered(UI_EXTENSION):
        extensions[UI_EXTENSION] = {}
    if offered(SKILLS_EXTENSION):
        extensions[SKILLS_EXTENSION] = {"directoryRead": True} if offered(SKILLS_DIRECTORIES) else {}
    if extensions:
        found["extensions"] = extensions
    return found


def in_envelope(
    request: Request, result: Mapping[str, Any], server: Mapping[str, Any], what: str = "tool"
) -> dict[str, Any]:
    """Give a raw result what the client's version says around it; the rest of it stays as it is.

    ``server`` is the gateway's own ``serverInfo``. Raises `MCPError` where a server asks what this client cannot be
    asked, unless it was a tool: that is answered with a result that says so.
    """
    is_stateless = request.connection.is_modern
    if not is_stateless and type(result) is dict and not result.keys() & _OF_ENVELOPE:
        return result
    body = dict(result)
    meta = body.pop("_meta", None)
    meta = dict(meta) if isinstance(meta, dict) else {}
    meta.pop(SERVER_INFO_META_KEY, None)
    if is_stateless:
        body.setdefault("resultType", "complete")
        if request.method in _CACHED and body["resultType"] != _INPUT_REQUIRED:
            body = {**_CACHE, **body}
        meta[SERVER_INFO_META_KEY] = server
    elif body.get("resultType") == _INPUT_REQUIRED:
        return _cannot_ask(what)
    else:
        for field in _STATELESS:
            body.pop(field, None)
    return {**body, "_meta": meta} if meta else body


def _cannot_ask(what: str) -> dict[str, Any]:
    text = _CANNOT_ASK.format(what=what)
    if what != "tool":
        raise MCPError(INVALID_REQUEST, text)
    return {"content": [{"type": "text", "text": text}], "isError": True}
