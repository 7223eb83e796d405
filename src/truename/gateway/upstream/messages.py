"""Messages of servers, read tolerantly: whoever waits for an answer gets one, or is told what was wrong with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from truename.gateway.protocol.envelopes import Envelope, read_envelope, read_object
from truename.gateway.protocol.lines import TooLong, id_at_ends
from truename.gateway.upstream.transport import Receiver, TransportError
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from truename.gateway.rate_limited_log import RateLimitedLog

__all__ = ["Malformed", "read_message", "receive", "report_noise", "too_long"]

# Bits of the largest number that one of our requests can have.
_LONGEST_ID: Final = 64


class Malformed(NamedTuple):
    """A response of a wrong shape, and the number of the request that it seems to answer."""

    number: int


def read_message(text: bytes) -> Envelope | Malformed | None:
    """Return the message that a server sent, mended as far as can be; None for what is none."""
    if (found := read_envelope(text)) is not None:
        return found
    if not (b'"result"' in text or b'"error"' in text) or (number := _id_of(text)) is None:
        return None
    return Malformed(number)


def _id_of(text: bytes) -> int | None:
    message = read_object(text.decode("utf-8", "replace").encode())
    if message is None:
        # Nested too deeply, a number of thousands of digits, or no JSON: its ends tell whom it answers.
        return id_at_ends(text)
    id = message.get("id")
    return id if isinstance(id, int) and not isinstance(id, bool) and id.bit_length() < _LONGEST_ID else None


def receive(text: bytes | TooLong, receiver: Receiver, key: str, log: RateLimitedLog, noise: str) -> None:
    """Give a message to who waits for it; what is none is reported: ``noise`` says how it came."""
    if isinstance(text, TooLong):
        too_long(key, text, receiver, log)
        return
    found = read_message(text)
    if isinstance(found, Envelope):
        receiver.receive(found)
    elif found is not None:
        receiver.fail(found.number, TransportError("protocol", "a malformed response"))
    elif text.strip():
        report_noise(key, text, noise, log)


def too_long(key: str, found: TooLong, receiver: Receiver, log: RateLimitedLog) -> None:
    """Tell that a message was dropped, also whoever waits for it, if that is known."""
    text = f"server {printable(key)!r} sent a message of {found.size:,} bytes, more than max_result allows"
    log.tell("too large", text, about="")
    if found.request_id is not None:
        receiver.fail(found.request_id, TransportError("too_large", f"{found.size:,} bytes"))


def report_noise(key: str, text: bytes, where: str, log: RateLimitedLog) -> None:
    """Tell that a server sent an event that is not a message."""
    shown = printable(text[:400].decode("utf-8", "replace"), 200)
    log.tell("noise", f"server {printable(key)!r} {where}: {shown}", about="")
