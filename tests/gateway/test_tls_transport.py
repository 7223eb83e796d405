"""The transport between HTTP and TCP, with both sides in one process: what it passes on, when, and what it keeps."""

from __future__ import annotations

import asyncio
import gc
import ssl
import weakref
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.tls import trusting
from truename.gateway.http.tls_transport import NO_DATA, TlsTransport

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.tls import Authority

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("over_tls")]


class Tcp(asyncio.Transport):
    """Keeps what is written."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 9)})
        self.written: list[bytes] = []
        self.events: list[str] = []

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.written))

    def pause_reading(self) -> None:
        self.events.append("pause")

    def resume_reading(self) -> None:
        self.events.append("resume")

    def close(self) -> None:
        self.events.append("close")

    def abort(self) -> None:
        self.events.append("abort")


class Http(asyncio.Protocol):
    """Notes what comes; pauses after each piece if told to."""

    def __init__(self, *, pauses: bool = False) -> None:
        self.pauses = pauses
        self.came: list[bytes] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.came.append(data)
        if self.pauses:
            self.transport.pause_reading()


class Pair:
    """A client and the gateway's side of its connection, after the handshake."""

    def __init__(self, authority: Authority, http: Http) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        files = authority.issue()
        context.load_cert_chain(files.certificate, files.key)
        self.failures: list[str] = []
        self.tcp = Tcp()
        self.transport = TlsTransport(context, http, lambda _, reason: self.failures.append(reason))
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = trusting().wrap_bio(self._incoming, self._outgoing, server_hostname="localhost")
        self.transport.connection_made(self.tcp)
        while True:
            try:
                self.client.do_handshake()
            except ssl.SSLWantReadError:
                self.pass_on()
            else:
                self.pass_on()
                return

    def pass_on(self) -> None:
        self.transport.data_received(self._outgoing.read())
        self._incoming.write(b"".join(self.tcp.written))
        self.tcp.written.clear()

    def records(self) -> Iterator[bytes]:
        """Yield what the client is sent, by the read."""
        while True:
            try:
                data = self.client.read(1 << 20)
            except ssl.SSLWantReadError:
                return
            if not data:
                return
            yield data


async def test_the_protocol_knows_its_connection_before_the_handshake(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    http, tcp = Http(), Tcp()
    TlsTransport(context, http, lambda *_: None).connection_made(tcp)
    assert http.transport.get_extra_info("peername") == ("192.0.2.1", 9)
    assert http.transport.get_extra_info("sslcontext") is context
    http.transport.write(b"nobody could read this yet")
    http.transport.close()
    assert (tcp.written, tcp.events) == ([], ["close"])


async def test_what_is_written_in_one_turn_of_the_loop_is_one_record(authority: Authority) -> None:
    pair = Pair(authority, Http())
    pair.transport.write(b"head ")
    pair.transport.write(b"body")
    assert pair.transport.get_write_buffer_size() == 9
    assert pair.tcp.written == []
    await asyncio.sleep(0)
    assert len(pair.tcp.written) == 1
    pair.pass_on()
    assert list(pair.records()) == [b"head body"]


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
async def test_a_long_answer_reaches_tcp_in_order_and_in_pieces(authority: Authority, kind: type) -> None:
    pair, long = Pair(authority, Http()), bytes(range(256)) * 4_000
    pair.transport.write(b"head")
    pair.transport.write(kind(long))
    pair.transport.write(b"tail")
    pair.transport.close()
    # A buffer for all of it would be kept as long as the connection.
    assert max(map(len, pair.tcp.written)) < 70_000
    pair.pass_on()
    assert b"".join(pair.records()) == b"head" + long + b"tail"


async def test_a_protocol_that_pauses_gets_the_rest_when_it_goes_on(authority: Authority) -> None:
    http = Http(pauses=True)
    pair = Pair(authority, http)
    for word in (b"one", b"two", b"three"):
        pair.client.write(word)
    pair.pass_on()
    seen = []
    for _ in range(4):
        seen.append(list(http.came))
        http.transport.resume_reading()
        await asyncio.sleep(0)
    assert seen == [[b"one"], [b"one", b"two"], [b"one", b"two", b"three"], [b"one", b"two", b"three"]]
    # TCP goes on once nothing is left that came before.
    assert pair.tcp.events == ["pause", "pause", "pause", "resume"]


async def test_the_end_that_a_client_says_ends_the_connection(authority: Authority) -> None:
    pair = Pair(authority, Http())
    with pytest.raises(ssl.SSLWantReadError):
        pair.client.unwrap()
    pair.pass_on()
    assert (pair.tcp.events, pair.failures) == (["close"], [])
    pair.client.unwrap()


async def test_nothing_is_written_after_an_abort(authority: Authority) -> None:
    pair = Pair(authority, Http())
    pair.transport.write(b"never")
    pair.transport.abort()
    pair.transport.write(b"never")
    pair.transport.close()
    await asyncio.sleep(0)
    assert (pair.tcp.written, pair.tcp.events) == ([], ["abort"])


async def test_a_connection_that_is_gone_lets_its_protocol_go(authority: Authority) -> None:
    gc.disable()
    try:
        http = Http()
        pair, found = Pair(authority, http), weakref.ref(http)
        pair.transport.write(b"on its way")
        pair.transport.connection_lost(None)
        del http
        assert found() is None
        await asyncio.sleep(0)
        assert pair.tcp.written == []
    finally:
        gc.enable()


async def test_much_that_comes_at_once_is_decrypted_over_many_turns_of_the_loop(authority: Authority) -> None:
    http = Http()
    pair = Pair(authority, http)
    sent = b"".join(number.to_bytes(4, "big") * 2_000 for number in range(100))
    for begin in range(0, len(sent), 1_000):
        pair.client.write(sent[begin : begin + 1_000])
    pair.pass_on()
    amounts = [0]
    while sum(map(len, http.came)) < len(sent):
        await asyncio.sleep(0)
        amounts.append(sum(map(len, http.came)))
    assert b"".join(http.came) == sent
    # A record may begin in one piece and end in the next.
    assert max(after - before for before, after in pairwise(amounts)) <= 2 * 16_384
    assert (pair.tcp.events[0], pair.tcp.events[-1], pair.failures) == ("pause", "resume", [])


async def test_a_connection_on_which_no_data_comes_ends_after_so_many_bytes(authority: Authority) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files, failures, tcp = authority.issue(), list[str](), Tcp()
    context.load_cert_chain(files.certificate, files.key)
    transport = TlsTransport(context, Http(), lambda _, reason: failures.append(reason))
    transport.connection_made(tcp)
    # OpenSSL waits for the rest of a hello of up to 131,396 bytes.
    hello = b"\x01" + (131_396).to_bytes(3, "big") + bytes(131_392)
    for begin in range(0, len(hello), 16_000):
        part = hello[begin : begin + 16_000]
        transport.data_received(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part)
    assert (failures, tcp.events[-1]) == ([NO_DATA], "abort")
