"""TLS towards clients: connections are counted and bounded from their first packet; certificates are renewed."""

from __future__ import annotations

import socket
import ssl
import struct
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from anyio.streams.tls import TLSAttribute, TLSStream

from tests.gateway.conftest import PATIENCE, connected, raw_client, text_of
from tests.gateway.streams import reader
from tests.support.tls import DAY, Authority, dial, trusting
from truename.config.access import Access, Issuer
from truename.config.telemetry import Telemetry
from truename.errors import ConfigError
from truename.gateway import listening
from truename.gateway.http.connection_limits import ConnectionLimits

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from anyio.abc import ByteStream

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("over_tls")]

PING = b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"
GARBAGE = (b"\x00" * 100, b"\xff" * 100, b"\x16\x03\x01\xff\xff" + b"x" * 70_000, b"\x15\x03\x01\x00\x02\x02\x28")
LINGER = "hh" if sys.platform == "win32" else "ii"
HALF_SENT = "truename.gateway.http.web_server.HALF_SENT_SECONDS"


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    if request.param == "uvloop" and find_spec("uvloop") is None:
        pytest.skip("There is no uvloop here.")
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[ConnectionLimits]:
    """Return a list that will hold the limits of the gateways that are started."""
    found: list[ConnectionLimits] = []
    plain = ConnectionLimits.__init__

    def init(self: ConnectionLimits, *args: Any, **more: Any) -> None:
        plain(self, *args, **more)
        found.append(self)

    monkeypatch.setattr(ConnectionLimits, "__init__", init)
    return found


async def number(limits: ConnectionLimits, wanted: int) -> None:
    """Wait until so many connections are counted."""
    with anyio.fail_after(PATIENCE):
        while len(limits) != wanted:
            await anyio.sleep(0.005)


async def plain_dial(address: str) -> ByteStream:
    return await anyio.connect_tcp("127.0.0.1", int(address.rpartition(":")[2]))


async def ping(stream: ByteStream) -> None:
    await stream.send(PING)
    said = b""
    with anyio.fail_after(PATIENCE):
        while b'"ok"}' not in said:
            said += await stream.receive()


async def shown(address: str) -> bytes | None:
    """Return the certificate that a new connection is shown."""
    async with await dial(address) as stream:
        return stream.extra(TLSAttribute.peer_certificate_binary)


def refused(address: str, context: ssl.SSLContext) -> bool:
    """Try a handshake, and return whether it failed."""
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=PATIENCE) as plain:
        try:
            context.wrap_socket(plain, server_hostname="localhost")
        except (ssl.SSLError, ConnectionError):
            return True
    return False


def hello() -> bytes:
    """Return what a client begins its handshake with."""
    out = ssl.MemoryBIO()
    client = trusting().wrap_bio(ssl.MemoryBIO(), out, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return out.read()


async def test_both_versions_of_the_protocol_are_spoken_over_tls(lab: Lab, era: str) -> None:
    async with lab.serving(lab.normal("w", "get")) as address, connected(address + "/mcp", era) as client:
        assert address.startswith("https://127.0.0.1:")
        assert [tool.name for tool in (await client.list_tools()).tools] == ["get"]
        assert text_of(await client.call_tool("get", {})) == "w:get"


async def test_a_large_request_and_a_large_answer_come_whole(lab: Lab) -> None:
    size = 3_000_000
    async with lab.serving(lab.normal("w", "big")) as address, raw_client(address) as http:
        asked = {"name": "big", "arguments": {"size": size, "more": "x" * size}}
        answer = await http.result("tools/call", asked)
    assert len(answer["content"][0]["text"]) >= size


async def test_everything_that_says_where_the_gateway_is_says_https(lab: Lab) -> None:
    access = Access(oauth={"idp": Issuer(issuer="https://idp.example")})
    async with lab.serving(lab.normal("w", "get"), access=access) as address, httpx2.AsyncClient() as http:
        metadata = (await http.get(f"{address}/.well-known/oauth-protected-resource/mcp")).json()
        refused = await http.post(f"{address}/mcp", json={})
    assert metadata["resource"] == f"{address}/mcp"
    assert f'resource_metadata="{address}/' in refused.headers["www-authenticate"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_gets_http_1_1_by_tls_1_2_or_later(lab: Lab, version: ssl.TLSVersion) -> None:
    context = trusting()
    context.minimum_version = context.maximum_version = version
    async with lab.serving(lab.normal("w", "get")) as address:
        plain = await plain_dial(address)
        async with await TLSStream.wrap(plain, hostname="127.0.0.1", ssl_context=context) as stream:
            await ping(stream)
            assert stream.extra(TLSAttribute.alpn_protocol) == "http/1.1"
            assert stream.extra(TLSAttribute.tls_version) == version.name.replace("_", ".")


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
async def test_an_older_tls_is_refused_and_said_once(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    context = trusting()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with lab.serving(lab.normal("w", "get")) as address:
        for _ in range(3):
            assert await anyio.to_thread.run_sync(refused, address, context)
    said = "A TLS connection of the client at 127.0.0.1 failed: it speaks no TLS of version 1.2 or later. Upgrade it."
    assert caplog.messages == [said]


async def test_a_client_of_plain_http_is_told_to_speak_tls(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    async with lab.serving(lab.normal("w", "get")) as address:
        for _ in range(50):
            async with await plain_dial(address) as stream:
                await stream.send(PING)
                said = b""
                with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        said += await stream.receive()
                head, _, body = said.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 400 ")
                assert body == b"This address speaks TLS. Use https:// instead."
                assert head.endswith(b"content-length: %d" % len(body))
    assert [record.name for record in caplog.records] == ["truename.gateway"]
    assert "it speaks plain HTTP. Have it use https://." in caplog.text


async def test_a_client_that_does_not_trust_the_certificate_is_named(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    async with lab.serving(lab.normal("w", "get")) as address:
        assert await anyio.to_thread.run_sync(refused, address, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        async with await dial(address) as stream:
            await ping(stream)
        with anyio.fail_after(PATIENCE):
            while not caplog.records:
                await anyio.sleep(0.005)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "the client at 127.0.0.1 failed: it does not trust the certificate." in caplog.text


async def test_a_handshake_that_stops_at_any_byte_holds_one_place_for_a_bounded_time_and_disturbs_nobody(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, counted: list[ConnectionLimits]
) -> None:
    # All of them have to be there at once, also on a busy machine.
    monkeypatch.setattr(HALF_SENT, 6.0)
    begun = hello()
    # Each byte of the beginning, and then some.
    stops = [*range(64), *range(64, len(begun) + 1, 16), len(begun)]
    async with lab.serving(lab.normal("w", "get")) as address, AsyncExitStack() as stack:
        streams = [await stack.enter_async_context(await plain_dial(address)) for _ in stops]
        for stream, stop in zip(streams, stops, strict=True):
            if stop:
                await stream.send(begun[:stop])
        await number(counted[0], len(stops))
        async with await dial(address) as other:
            await ping(other)
        for stream in streams:
            with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    await stream.receive()
        await number(counted[0], 0)
    assert caplog.records == []


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01", b"\x16"])
async def test_connections_that_say_nothing_are_counted_and_keep_nobody_out(
    lab: Lab, sent: bytes, counted: list[ConnectionLimits], caplog: pytest.LogCaptureFixture
) -> None:
    most = 2 + 64
    async with lab.serving(lab.normal("w", "get"), max_sessions=1) as address, AsyncExitStack() as stack:
        for _ in range(3 * most):
            stream = await stack.enter_async_context(await plain_dial(address))
            with suppress(anyio.BrokenResourceError):
                await stream.send(sent or b"")
            assert len(counted[0]) <= most
        async with await dial(address) as other:
            await ping(other)
        assert len(counted[0]) <= most
    assert caplog.records == []


async def test_a_client_that_sends_byte_by_byte_is_answered(lab: Lab) -> None:
    async with lab.serving(lab.normal("w", "get")) as address:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
        plain = await plain_dial(address)

        async def exchanged(step: Callable[[], Any]) -> Any:
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    for byte in outgoing.read():
                        await plain.send(bytes([byte]))
                    incoming.write(await plain.receive())

        with anyio.fail_after(PATIENCE):
            async with plain:
                await exchanged(client.do_handshake)
                for byte in PING:
                    client.write(bytes([byte]))
                assert (await exchanged(lambda: client.read(8))) == b"HTTP/1.1"


async def test_garbage_ends_its_own_connection_at_any_moment(
    lab: Lab, caplog: pytest.LogCaptureFixture, counted: list[ConnectionLimits]
) -> None:
    async with lab.serving(lab.normal("w", "get")) as address:
        for garbage in GARBAGE:
            async with await plain_dial(address) as stream:
                with suppress(anyio.BrokenResourceError):
                    await stream.send(garbage)
                with anyio.fail_after(PATIENCE), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                    while True:
                        await stream.receive()
        async with await plain_dial(address) as plain:
            stream = await TLSStream.wrap(plain, hostname="localhost", ssl_context=trusting())
            await ping(stream)
            await plain.send(b"\x17\x03\x03\x00\x20" + b"x" * 32)
            with anyio.fail_after(PATIENCE), pytest.raises(ssl.SSLError, match="BAD_RECORD_MAC"):
                await stream.receive()
        await number(counted[0], 0)
    assert {record.name for record in caplog.records} == {"truename.gateway"}
    assert all(record.exc_info is None for record in caplog.records)


async def test_the_end_of_a_connection_is_said_on_both_sides(lab: Lab, counted: list[ConnectionLimits]) -> None:
    async with lab.serving(lab.normal("w", "get")) as address:
        plain = await plain_dial(address)
        stream = await TLSStream.wrap(plain, hostname="localhost", ssl_context=trusting())
        await stream.send(PING.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
        with anyio.fail_after(PATIENCE):
            # A connection that is cut off would be another error than the end.
            assert b"".join([piece async for piece in stream]).endswith(b'"ok"}')
        await plain.aclose()
        async with await TLSStream.wrap(
            await plain_dial(address), hostname="localhost", ssl_context=trusting()
        ) as stream:
            await ping(stream)
            await number(counted[0], 1)
            with anyio.fail_after(PATIENCE):
                await stream.unwrap()
        await number(counted[0], 0)


@pytest.mark.parametrize("is_reset", [False, True])
async def test_a_client_that_goes_without_a_word_leaves_nothing(
    lab: Lab, is_reset: bool, counted: list[ConnectionLimits], caplog: pytest.LogCaptureFixture
) -> None:
    def go(address: str, sent: bytes) -> None:
        with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2])), timeout=PATIENCE) as plain:
            if is_reset:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack(LINGER, 1, 0))
            if sent:
                plain.sendall(sent)
                return
            with trusting().wrap_socket(plain, server_hostname="localhost") as stream:
                stream.sendall(PING)
                assert stream.recv(8) == b"HTTP/1.1"

    async with lab.serving(lab.normal("w", "get")) as address:
        for sent in (b"", hello()[:20], hello()):
            await anyio.to_thread.run_sync(go, address, sent)
        await number(counted[0], 0)
    assert caplog.records == []


async def test_a_gateway_that_ends_waits_for_no_client(lab: Lab, counted: list[ConnectionLimits]) -> None:
    async with AsyncExitStack() as stack:
        async with lab.serving(lab.normal("w", "get")) as address:
            for _ in range(3):
                await stack.enter_async_context(await plain_dial(address))
            idle = await stack.enter_async_context(await dial(address))
            await ping(idle)
            client = await stack.enter_async_context(reader(address))
            streaming = await stack.enter_async_context(client.get())
            await number(counted[0], 5)
        with anyio.fail_after(PATIENCE):
            assert await streaming.rest() == []
            with pytest.raises(anyio.EndOfStream):
                await idle.receive()
    assert len(counted[0]) == 0


async def test_a_renewed_certificate_is_shown_to_new_connections_and_no_other_is_disturbed(
    lab: Lab, authority: Authority
) -> None:
    own = authority.issue("own")
    lab.tls = own.settings
    async with lab.gateway(lab.normal("w", "get")) as gateway, listening(gateway) as address:
        async with await dial(address) as before:
            await ping(before)
            first = await shown(address)
            assert not await gateway.reload(gateway.config)
            assert await shown(address) == first
            own.write(authority.issue("next"))
            assert (await gateway.reload(gateway.config)).settings == ("tls_certificate",)
            assert await shown(address) != first
            await ping(before)
        own.certificate.write_text("-----BEGIN CERTIFICATE-----\nbroken")
        second = await shown(address)
        with pytest.raises(ConfigError, match="holds no certificate that can be read"):
            await gateway.reload(gateway.config)
        own.write(authority.issue("third"))
        own.key.write_bytes(authority.issue("other").key.read_bytes())
        with pytest.raises(ConfigError, match="does not belong to the certificate"):
            await gateway.reload(gateway.config)
        assert await shown(address) == second


async def test_a_certificate_is_swapped_under_running_calls(lab: Lab, authority: Authority, tmp_path: Path) -> None:
    own, journal, answers = authority.issue("own"), tmp_path / "ran", list[str]()
    lab.tls = own.settings
    server = lab.script("j", "journal", str(journal), "hold")
    async with lab.gateway(server) as gateway, listening(gateway) as address:  # noqa: SIM117
        async with anyio.create_task_group() as tasks:

            async def call() -> None:
                async with raw_client(address) as http:
                    found = await http.result("tools/call", {"name": "hold", "arguments": {}})
                    answers.append(found["content"][0]["text"])

            for _ in range(20):
                tasks.start_soon(call)
            with anyio.fail_after(PATIENCE):
                while not journal.exists():
                    await anyio.sleep(0.01)
            for name in ("second", "third"):
                own.write(authority.issue(name))
                assert await gateway.reload(gateway.config)
            journal.with_suffix(".gate").touch()
    assert answers == ["journal:hold"] * 20


async def test_tls_is_neither_begun_nor_ended_by_a_reload(lab: Lab) -> None:
    async with lab.gateway(lab.normal("w", "get")) as gateway, listening(gateway):
        plain = replace(gateway.config, settings=replace(gateway.config.settings, tls_certificate=None, tls_key=None))
        with pytest.raises(ExceptionGroup) as caught:
            await gateway.reload(plain)
        assert [getattr(one, "key", "") for one in caught.value.exceptions] == ["tls_certificate", "tls_key"]


async def test_the_end_of_the_certificate_is_a_metric(lab: Lab, authority: Authority) -> None:
    name = "truename_tls_certificate_expiry_timestamp_seconds"
    lab.tls = authority.issue("own", end=DAY).settings
    async with (
        lab.serving(lab.normal("w", "get"), telemetry=Telemetry(metrics=True)) as address,
        httpx2.AsyncClient() as http,
    ):
        lines = (await http.get(f"{address}/metrics")).text.splitlines()
    (found,) = [float(line.partition(" ")[2]) for line in lines if line.startswith(name)]
    assert 86_000 < found - Path(lab.tls["tls_certificate"]).stat().st_mtime <= 86_400


@pytest.mark.parametrize(
    ("validity", "said"), [((-2 * DAY, -DAY), "expired on "), ((DAY, 2 * DAY), "is valid from "), ((-DAY, DAY), "")]
)
async def test_a_certificate_that_is_not_valid_now_is_served_with_a_warning(
    lab: Lab,
    authority: Authority,
    caplog: pytest.LogCaptureFixture,
    validity: tuple[timedelta, timedelta],
    said: str,
) -> None:
    begin, end = validity
    lab.tls = authority.issue("own", begin=begin, end=end).settings
    async with lab.serving(lab.normal("w", "get")) as address:
        assert address.startswith("https://")
    assert len(caplog.messages) == bool(said)
    assert said in caplog.text
