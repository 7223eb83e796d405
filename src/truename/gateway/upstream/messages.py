"""Messages of servers, read tolerantly: whoever waits for an answer gets one, or is told what was wrong with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import msgspec

from truename.gateway.faults import printable
from truename.gateway.heap import still
from truename.gateway.mcp.messages import error, kind_of
from truename.gateway.protocol.lines import TooLong, id_at_ends, lenient, repaired
from truename.gateway.protocol.marking import transport_fault

if TYPE_CHECKING:
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.transport import Message

__all__ = ["fault", "read_message", "report_noise", "too_long"]

# Bits of the largest number that one of our requests can have.
_LONGEST_ID: Final = 64
_LONG: Final = 64 * 1024


def read_message(text: bytes, secret: str) -> Message | None:
    """Return the message that a server sent, mended as far as can be; None for what is none.

    A fault stands in place of an answer of a wrong shape: whoever asked would wait for it in vain.
    """
    if (found := _parsed(text)) is not None:
        return found
    mended = repaired(text)
    found = None if mended is None else _parsed(mended) or lenient(mended)
    return found if kind_of(found) is not None else _no_answer(text, secret)


def _parsed(text: bytes) -> Message | None:
    try:
        if len(text) < _LONG:
            content = msgspec.json.decode(text)
        else:
            # What a large message is made of stays for long: no collector has to look at it meanwhile.
            with still():
                content = msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return content if kind_of(content) is not None else None


def _no_answer(text: bytes, secret: str) -> Message | None:
    if not (b'"result"' in text or b'"error"' in text) or (id := _id_of(text)) is None:
        return None
    return fault(secret, id, "protocol", "a malformed response")


def _id_of(text: bytes) -> int | None:
    try:
        message = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        # Nested too deeply, a number of thousands of digits, or no JSON: its ends tell whom it answers.
        return id_at_ends(text)
    id = message.get("id") if isinstance(message, dict) else None
    return id if isinstance(id, int) and not isinstance(id, bool) and id.bit_length() < _LONGEST_ID else None


def too_long(key: str, found: TooLong, secret: str, news: RateLimitedLog) -> Message | None:
    """Tell that a message was dropped, and return what answers whoever waits for it, if that is known."""
    text = f"server {printable(key)!r} sent a message of {found.size:,} bytes, more than max_result allows"
    news.tell("too large", text, about="")
    if found.request_id is None:
        return None
    return fault(secret, found.request_id, "too_large", f"{found.size:,} bytes")


def fault(secret: str, request_id: int | str, kind: str, detail: str) -> Message:
    """Return an error that the transport answers with in place of the server."""
    return error(request_id, -32000, detail, transport_fault(secret, kind, detail))


def report_noise(key: str, text: bytes, where: str, news: RateLimitedLog) -> None:
    """Tell that a server sent an event that is not a message."""
    shown = printable(text[:400].decode("utf-8", "replace"), 200)
    news.tell("noise", f"server {printable(key)!r} {where}: {shown}", about="")
