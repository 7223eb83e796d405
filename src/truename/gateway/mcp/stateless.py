"""What a request of 2026-07-28 says of itself: in ``_meta``, and over HTTP in headers that repeat its body.

Source: MCP 2026-07-28, basic (fields of each request) and basic/transports; SEP-2243.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.gateway.protocol.routing_headers import NAMED, decode_value
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.specification import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_HEADER,
    MODERN_VERSIONS,
    NAME_HEADER,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_HEADER,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["RequestEnvelope", "envelope_of", "unsupported_version"]

_REQUIRED: Final = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
# The extension for tasks has rules of its own.
_REPEATED: Final = {method: key for method, key in NAMED.items() if not method.startswith("tasks/")}


class RequestEnvelope(NamedTuple):
    """The version of a request, and what its client says of itself; None for what it does not say."""

    version: str
    client: Any
    capabilities: Any


def envelope_of(
    method: str, params: Mapping[str, Any] | None, headers: Mapping[str, str] | None = None
) -> RequestEnvelope:
    """Return what a request says of itself. ``headers`` have names in lower case; a pipe has none.

    A client whose headers contradict its request is told so before anything else: it may mean another version. Raises
    `MCPError`: INVALID_PARAMS, HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION.
    """
    meta = (params or {}).get("_meta")
    if not isinstance(meta, dict):
        raise MCPError(INVALID_PARAMS, f"The request has no _meta. Send one with {' and '.join(_REQUIRED)}.")
    if missing := [key for key in _REQUIRED if key not in meta]:
        raise MCPError(INVALID_PARAMS, f"The _meta of the request lacks {' and '.join(missing)}.")
    version = meta[PROTOCOL_VERSION_META_KEY]
    if headers is not None and (problem := _mismatch(method, params or {}, version, headers)) is not None:
        raise MCPError(HEADER_MISMATCH, problem)
    if not isinstance(version, str):
        raise MCPError(INVALID_PARAMS, f"{PROTOCOL_VERSION_META_KEY} must be a string.")
    if (refusal := unsupported_version(version)) is not None:
        raise refusal
    return RequestEnvelope(version, meta.get(CLIENT_INFO_META_KEY), meta[CLIENT_CAPABILITIES_META_KEY])


def _mismatch(method: str, params: Mapping[str, Any], version: object, headers: Mapping[str, str]) -> str | None:
    if VERSION_HEADER not in headers or headers[VERSION_HEADER] != version:
        return f"The header {VERSION_HEADER} and {PROTOCOL_VERSION_META_KEY} in _meta differ. Send the same in both."
    if headers.get(METHOD_HEADER) != method:
        return f"The header {METHOD_HEADER} and the method of the request differ. Send the same in both."
    key = _REPEATED.get(method)
    named = None if key is None else params.get(key)
    if named is not None and decode_value(headers.get(NAME_HEADER)) != named:
        return f"The header {NAME_HEADER} and the parameter {key!r} of the request differ. Send the same in both."
    return None


def unsupported_version(version: str) -> MCPError | None:
    """Return the refusal of a version that the gateway does not speak statelessly; None for one that it does."""
    if version in MODERN_VERSIONS:
        return None
    data = {"supported": list(MODERN_VERSIONS), "requested": version}
    return MCPError(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
