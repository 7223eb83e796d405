"""Messages of servers, read tolerantly: whoever waits for an answer gets one, or is told what was wrong with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic_core import from_json

from truename.gateway.faults import printable
from truename.gateway.heap import still
from truename.gateway.protocol.lines import TooLong, id_at_ends, repaired
from truename.gateway.protocol.sdk import transport_fault

if TYPE_CHECKING:
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.link import Link

__all__ = ["fault", "report_noise", "said", "too_long"]

# Bits of the largest number that one of our requests can have.
_LONGEST_ID: Final = 64
_LONG: Final = 64 * 1024


def said(text: bytes, link: Link) -> SessionMessage | None:
    """Return the message that a server sent, mended as far as can be; None for what is none.

    A fault stands in place of an answer of a wrong shape: whoever asked would wait for it in vain.
    """
    if (found := _parsed(text)) is not None:
        return found
    mended = repaired(text)
    return (mended and _parsed(mended)) or _no_answer(text, link) or None


def _parsed(text: bytes) -> SessionMessage | None:
    try:
        if len(text) < _LONG:
            return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
        # It is looked at for each kind of message: read once, that takes a fifth of the time.
        with still():
            return SessionMessage(jsonrpc_message_adapter.validate_python(from_json(text), by_name=False))
    except (ValueError, RecursionError):
        return None


def _no_answer(text: bytes, link: Link) -> SessionMessage | None:
    if not (b'"result"' in text or b'"error"' in text) or (id := _id_of(text)) is None:
        return None
    return fault(link, id, "protocol", "a malformed response")


def _id_of(text: bytes) -> int | None:
    try:
        message = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        # Nested too deeply, a number of thousands of digits, or no JSON: its ends tell whom it answers.
        return id_at_ends(text)
    id = message.get("id") if isinstance(message, dict) else None
    return id if isinstance(id, int) and not isinstance(id, bool) and id.bit_length() < _LONGEST_ID else None


def too_long(key: str, found: TooLong, link: Link, news: RateLimitedLog) -> SessionMessage | None:
    """Tell that a message was dropped, and return what answers whoever waits for it, if that is known."""
    text = f"server {printable(key)!r} sent a message of {found.size:,} bytes, more than max_result allows"
    news.tell("too large", text, about="")
    if found.request_id is None:
        return None
    return fault(link, found.request_id, "too_large", f"{found.size:,} bytes")


def fault(link: Link, request_id: int | str, kind: str, detail: str) -> SessionMessage:
    """Return an error that the transport answers with in place of the server."""
    wrong = ErrorData(code=-32000, message=detail, data=transport_fault(link.secret, kind, detail))
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=wrong))


def report_noise(key: str, text: bytes, where: str, news: RateLimitedLog) -> None:
    """Tell that a server sent an event that is not a message."""
    shown = printable(text[:400].decode("utf-8", "replace"), 200)
    news.tell("noise", f"server {printable(key)!r} {where}: {shown}", about="")
