"""HTTP by hand, for servers that answer as no library would."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyio.abc import SocketStream

__all__ = ["read_request", "response"]


async def read_request(stream: SocketStream) -> tuple[dict[str, str], bytes]:
    """Return the headers, by name in lower case, and the body of the request that comes."""
    text = b""
    while b"\r\n\r\n" not in text or len(text) < _whole(text):
        text += await stream.receive()
    head, _, body = text.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")[1:]
    return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}, body


def _whole(text: bytes) -> int:
    head, _, _ = text.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if b"content-length:" in line), 0)
    return len(head) + 4 + length


def response(status: str, kind: str, body: bytes, more: str = "") -> bytes:
    """Return a whole response after which the connection is closed; ``more`` are header lines."""
    named = f"content-type: {kind}\r\n" if kind else ""
    head = f"HTTP/1.1 {status}\r\n{named}{more}content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body
