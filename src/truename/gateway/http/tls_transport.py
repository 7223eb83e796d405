"""TLS between HTTP and TCP: a transport for the protocol above, and a protocol for the transport below.

OpenSSL does the work, over buffers in memory (`ssl.SSLObject`). The TLS of the event loops tells a protocol of its
connection only after the handshake, and counts no bytes that wait in TCP. Here the protocol knows the connection from
its first packet: whatever it counts, bounds and closes, it does so during the handshake too.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NO_DATA", "TlsTransport"]

NO_DATA: Final = "NO_DATA"
"""The reason where a client sends records without data on and on."""

# The longest record (RFC 8446, section 5.1): OpenSSL reads no more at once.
_RECORD: Final = 16 * 1024
_PIECE: Final = 64 * 1024
# So much is decrypted in one turn of the event loop: a record without data may have 27 bytes, and takes as long as one
# with a request.
_TURN: Final = 16 * 1024
# So many bytes may come without any data for HTTP: a handshake, and key updates. No client needs more.
_MOST_WITHOUT_DATA: Final = 128 * 1024
_NOBODY: Final = asyncio.Protocol()
_PLAIN_HTTP: Final = "HTTP_REQUEST"
_SPEAK_TLS: Final = (
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\ncontent-length: 46\r\n\r\n"
    b"This address speaks TLS. Use https:// instead."
)


class TlsTransport(asyncio.Transport, asyncio.Protocol):
    """One connection of a client over TLS; ``protocol`` is told of it before the handshake.

    ``on_failure`` is called with the address of the client and OpenSSL's reason, or `NO_DATA`, if TLS fails. What is
    written before the end of the handshake is dropped. The client's close_notify is not waited for (RFC 8446, section
    6.1).
    """

    def __init__(
        self, context: ssl.SSLContext, protocol: asyncio.Protocol, on_failure: Callable[[str, str], None]
    ) -> None:
        super().__init__()
        self._context = context
        self._protocol = protocol
        self._on_failure = on_failure
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # What came and is not decrypted yet, and what was written and is not encrypted yet.
        self._received = bytearray()
        self._unsent = b""
        self._without_data = 0
        self._is_open = False
        self._is_closing = False
        self._is_paused = False
        self._is_reading_on = False

    # What TCP calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Tell the protocol of the connection, and wait for the client to begin the handshake."""
        # Those of uvloop are none by their class.
        self._tcp = cast("asyncio.Transport", transport)
        self._protocol.connection_made(self)

    def data_received(self, data: bytes) -> None:
        """Take what came, for the handshake or the protocol: a piece now, the rest in the next turns of the loop."""
        if self._is_closing:
            return
        if not (self._received or self._is_paused) and len(data) <= _TURN:
            self._decrypt(data)
            return
        self._received += data
        self._tcp.pause_reading()
        self._read_soon()

    def eof_received(self) -> None:
        """Have TCP close the connection, as without TLS; HTTP knows by itself whether a request came whole."""

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol that the connection is gone."""
        self._is_closing = True
        self._received.clear()
        self._unsent = b""
        # Each of them holds the other, and what TCP has not sent: the collector may come late.
        protocol, self._protocol = self._protocol, _NOBODY
        protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        """Tell the protocol that the client does not read."""
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Tell the protocol that the client has read."""
        self._protocol.resume_writing()

    # What the protocol calls

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return what is known of the connection; ``sslcontext`` says that it is one over TLS."""
        return self._context if name == "sslcontext" else self._tcp.get_extra_info(name, default)

    def is_closing(self) -> bool:
        """Return whether the connection is closed, or will be once all is sent."""
        return self._is_closing

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Send data, with what else is written in this turn of the event loop: a record costs more than its bytes."""
        if self._is_closing or not self._is_open:
            return
        if len(data) + len(self._unsent) < _RECORD:
            if not self._unsent:
                asyncio.get_running_loop().call_soon(self._send)
            self._unsent += data
        else:
            self._send()
            self._encrypt(data)

    def get_write_buffer_size(self) -> int:
        """Return how many bytes the client has not taken yet."""
        return len(self._unsent) + self._tcp.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Give the protocol nothing more for now."""
        self._is_paused = True
        self._tcp.pause_reading()

    def resume_reading(self) -> None:
        """Go on, first with what has come already."""
        if self._is_paused:
            self._is_paused = False
            self._read_soon()

    def close(self) -> None:
        """Say that nothing more comes, and close the connection once all is sent."""
        if self._is_closing:
            return
        self._send()
        self._is_closing = True
        if self._is_open:
            # It asks for the client's own close_notify at once.
            with suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
        self._tcp.close()

    def abort(self) -> None:
        """Close the connection at once."""
        self._is_closing = True
        self._unsent = b""
        self._tcp.abort()

    # TLS

    def _shake_hands(self) -> bool:
        """Go on with the handshake; return whether it is complete."""
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._fail(error)
        else:
            self._flush()
            self._is_open = True
        return self._is_open

    def _read_soon(self) -> None:
        if not self._is_reading_on:
            self._is_reading_on = True
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        """Go on with what came, unless the protocol has enough, and then with TCP."""
        self._is_reading_on = False
        if self._is_paused or self._is_closing:
            return
        piece = bytes(self._received[:_TURN])
        del self._received[:_TURN]
        self._decrypt(piece)
        if self._received:
            self._read_soon()
        elif not self._is_paused and not self._is_closing:
            self._tcp.resume_reading()

    def _decrypt(self, piece: bytes) -> None:
        self._incoming.write(piece)
        self._without_data += len(piece)
        if self._is_open or self._shake_hands():
            self._read()
        if self._without_data > _MOST_WITHOUT_DATA and not self._is_closing:
            self._on_failure(self._address(), NO_DATA)
            self.abort()

    def _read(self) -> None:
        """Give the protocol what came, until it has enough."""
        # Looking first is cheaper than an exception for each read.
        while (self._incoming.pending or self._tls.pending()) and not self._is_paused and not self._is_closing:
            try:
                data = self._tls.read(_RECORD)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError as error:
                self._fail(error)
                return
            if not data:
                self.close()
                return
            self._without_data = 0
            self._protocol.data_received(data)
        self._flush()

    def _send(self) -> None:
        """Send what was written and waits."""
        data, self._unsent = self._unsent, b""
        if data:
            self._encrypt(data)

    def _encrypt(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt data, and give it to TCP piece by piece."""
        rest = memoryview(data)
        try:
            while rest:
                # The buffer between OpenSSL and TCP never shrinks.
                rest = rest[self._tls.write(rest[:_PIECE]) :]
                self._flush()
        except ssl.SSLError as error:
            self._fail(error)

    def _address(self) -> str:
        peer = self._tcp.get_extra_info("peername")
        return str(peer[0]) if isinstance(peer, tuple) else ""

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._tcp.write(self._outgoing.read())

    def _fail(self, error: ssl.SSLError) -> None:
        """Close the connection on which TLS failed, after the alert to the client."""
        self._on_failure(self._address(), error.reason or "unknown error")
        self._unsent = b""
        self._flush()
        if error.reason == _PLAIN_HTTP and not self._is_open:
            self._tcp.write(_SPEAK_TLS)
        self._is_closing = True
        self._tcp.close()
