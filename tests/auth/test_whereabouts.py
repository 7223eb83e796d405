"""Where hosts are: as near as they were found first, and never nearer; connections lead to what was judged."""

from __future__ import annotations

import socket
import sys
from contextlib import ExitStack
from ipaddress import ip_address
from typing import TYPE_CHECKING

import httpx2
import pytest

from tests.support.auth_pinned import Names, listening
from tests.support.auth_whereabouts import certificate_of, listening_safely
from truename.auth.network.addresses import AddressRefused, HostResolver, NetworkZone
from truename.auth.network.web import Web
from truename.gateway.http_connections import Connections
from truename.gateway.upstream.library import SenderTransport

if TYPE_CHECKING:
    from pathlib import Path

    from truename.auth.network.addresses import IPAddress

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("first", "later", "refused"),
    [
        ("8.8.8.8", "10.0.0.1", "private"),
        ("8.8.8.8", "127.0.0.1", "loopback"),
        ("10.0.0.1", "127.0.0.1", "loopback"),
        ("10.0.0.1", "::1", "loopback"),
        ("127.0.0.1", "169.254.169.254", "a metadata service"),
        ("127.0.0.1", "::ffff:169.254.1.1", "reserved"),
        ("127.0.0.1", "fe80::1", "link-local"),
        ("127.0.0.1", "10.0.0.1", None),
        ("10.0.0.1", "10.0.0.2", None),
        ("10.0.0.1", "8.8.8.8", None),
    ],
)
async def test_a_name_never_comes_nearer_than_it_was_found_first(first: str, later: str, refused: str | None) -> None:
    where = HostResolver(resolve=Names((first,), (later,)))
    assert await where.addresses("tools.example", 443) == (ip_address(first),)
    if refused is None:
        assert await where.addresses("Tools.Example.", 443) == (ip_address(later),)
        return
    for _ in range(2):
        with pytest.raises(AddressRefused, match=f"which is {refused}"):
            await where.addresses("Tools.Example.", 8443)


async def test_going_away_and_coming_back_is_no_way_nearer() -> None:
    where = HostResolver(resolve=Names(("10.0.0.1",), ("8.8.8.8",), ("10.0.0.1",), ("127.0.0.1",)))
    for _ in range(3):
        await where.addresses("tools.example", 443)
    with pytest.raises(AddressRefused):
        await where.addresses("tools.example", 443)


async def test_what_was_refused_at_first_is_not_known_by_that() -> None:
    where = HostResolver(resolve=Names(("169.254.169.254",), ("8.8.8.8",), ("10.0.0.1",)))
    with pytest.raises(AddressRefused):
        await where.addresses("tools.example", 443)
    await where.addresses("tools.example", 443)
    with pytest.raises(AddressRefused):
        await where.addresses("tools.example", 443)


async def test_where_one_name_was_found_lets_no_other_come_nearer() -> None:
    asked: list[tuple[str, int]] = []
    known = {"here.example": "127.0.0.1", "there.example": "8.8.8.8"}

    async def resolve(host: str, port: int) -> tuple[IPAddress, ...]:
        asked.append((host, port))
        return (ip_address(known[host]),)

    where = HostResolver(resolve=resolve)
    await where.addresses("here.example", 8443)
    await where.addresses("there.example", 443)
    known["there.example"] = "127.0.0.1"
    with pytest.raises(AddressRefused, match=r"^'there\.example' resolves to 127\.0\.0\.1"):
        await where.addresses("there.example", 443)

    assert asked == [("here.example", 8443), ("there.example", 443), ("there.example", 443)]


@pytest.mark.parametrize(
    ("namer", "named", "permitted"),
    [
        ("8.8.8.8", "8.8.4.4", True),
        ("8.8.8.8", "10.0.0.1", False),
        ("8.8.8.8", "127.0.0.1", False),
        ("10.0.0.1", "10.0.0.2", True),
        ("10.0.0.1", "127.0.0.1", False),
        ("127.0.0.1", "127.0.0.2", True),
        ("127.0.0.1", "169.254.169.254", False),
        (None, "8.8.4.4", True),
        (None, "10.0.0.1", False),
    ],
)
async def test_a_host_names_none_that_is_nearer_than_itself(namer: str | None, named: str, permitted: bool) -> None:
    known = {"namer.example": (namer,) if namer else (), "named.example": (named,)}

    async def resolve(host: str, port: int) -> tuple[IPAddress, ...]:
        assert port == 443
        return tuple(map(ip_address, known[host]))

    where = HostResolver(resolve=resolve)
    if namer:
        await where.addresses("namer.example", 443)
    led = where.named_by("Namer.Example.")
    if permitted:
        led.check_written(named)
        assert await led.addresses("named.example", 443) == (ip_address(named),)
        assert await led.addresses(named, 443) == (ip_address(named),)
        return
    for host in ("named.example", named):
        with pytest.raises(AddressRefused) as caught:
            await led.addresses(host, 443)
        assert caught.value.host == host
    with pytest.raises(AddressRefused) as caught:
        led.check_written(named)
    assert caught.value.host == named


async def test_of_a_name_nothing_is_known_before_it_is_looked_up() -> None:
    where = HostResolver(resolve=Names(("8.8.8.8",)))

    where.check_written("tools.example")
    where.check_written("127.0.0.1")
    with pytest.raises(AddressRefused):
        where.check_written("127.0.0.1", NetworkZone.PRIVATE)
    with pytest.raises(AddressRefused):
        where.check_written("169.254.169.254")


async def test_an_allowed_network_is_gone_to() -> None:
    where = HostResolver(("169.254.10.0/24", "127.0.0.0/8"), Names(("8.8.8.8",), ("127.0.0.1",), ("169.254.10.1",)))
    for _ in range(3):
        await where.addresses("tools.example", 443)
    with pytest.raises(AddressRefused):
        await where.addresses("169.254.11.1", 80)


async def test_many_addresses_are_cut_off_and_none_is_an_error() -> None:
    many = tuple(f"8.8.{number}.8" for number in range(200))
    where = HostResolver(resolve=Names(many, ()))
    assert len(await where.addresses("tools.example", 443)) == 16
    with pytest.raises(OSError, match="no address"):
        await HostResolver(resolve=Names(())).addresses("gone.example", 443)


async def _get(connections: Connections, url: str) -> int:
    request = httpx2.Request("GET", url, extensions={"timeout": {"connect": 5.0, "read": 5.0}})
    response = await SenderTransport(connections).handle_async_request(request)
    try:
        async for _ in response.aiter_raw():
            pass
        return response.status_code
    finally:
        await response.aclose()


async def test_each_connection_is_judged_by_itself() -> None:
    names = Names(("127.0.0.1",), ("127.0.0.1",), ("169.254.169.254",))
    connections = Connections(HostResolver(resolve=names))
    async with listening() as (port, hosts):
        for _ in range(2):
            assert await _get(connections, f"http://tools.example:{port}/") == 200
        with pytest.raises(AddressRefused, match="metadata"):
            await _get(connections, f"http://tools.example:{port}/")
        await connections.aclose()
    assert hosts == [f"tools.example:{port}"] * 2
    assert len(names.asked) == 3


async def test_the_next_address_is_tried_where_one_does_not_answer() -> None:
    connections = Connections(HostResolver(resolve=Names(("127.0.0.2", "::1", "127.0.0.1"))))
    async with listening() as (port, hosts):
        assert await _get(connections, f"http://tools.example:{port}/") == 200
        await connections.aclose()
    assert len(hosts) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a full queue refuses connections")
async def test_an_address_that_never_answers_holds_the_next_one_up_for_a_moment_only() -> None:
    connections = Connections(HostResolver(resolve=Names(("127.0.0.2", "127.0.0.1"))))
    async with listening() as (port, hosts):
        with socket.create_server(("127.0.0.2", port), backlog=0) as silent, ExitStack() as waiting:
            # Nobody accepts, and the queue is full: what comes next is dropped without a word.
            for _ in range(2):
                one = waiting.enter_context(socket.socket())
                one.setblocking(False)
                one.connect_ex(silent.getsockname())
            assert await _get(connections, f"http://tools.example:{port}/") == 200
        await connections.aclose()
    assert hosts == [f"tools.example:{port}"]


async def test_where_none_answers_the_server_can_not_be_reached() -> None:
    connections = Connections(HostResolver(resolve=Names(("127.0.0.2", "127.0.0.3"))))
    with pytest.raises(httpx2.ConnectError):
        await _get(connections, "http://tools.example:9/")


async def test_the_certificate_is_the_names_and_not_the_addresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, context = certificate_of(tmp_path, "tools.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    connections = Connections(HostResolver(resolve=Names(("127.0.0.1",))))
    async with listening_safely(context) as (port, asked_for):
        # The second on the same connection: what TLS itself says behind its beginning is nothing unasked.
        for _ in range(2):
            assert await _get(connections, f"https://tools.example:{port}/") == 200
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            await _get(connections, f"https://other.example:{port}/")
        await connections.aclose()
    assert asked_for == ["tools.example", "other.example"]


async def test_a_connection_to_one_name_never_serves_another_at_the_same_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose certificate was checked may not get what is another's to get, wherever that one's name leads now."""
    certificate, context = certificate_of(tmp_path, "attacker.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    fetch = Web()
    for transport in fetch._transports.values():
        transport._resolve = Names(("127.0.0.1",))
    async with listening_safely(context) as (port, asked_for):
        assert (await fetch(f"https://attacker.example:{port}/")).status == 200
        with pytest.raises(Exception, match="cannot be reached"):
            await fetch(f"https://idp.example:{port}/", form={"client_secret": "s"})
        await fetch.close()
    assert asked_for == ["attacker.example", "idp.example"]


async def test_the_network_takes_what_is_allowed() -> None:
    async with listening() as (port, hosts):
        fetch = Web(["127.0.0.0/8"])
        assert (await fetch(f"http://127.0.0.1:{port}/", named_by=NetworkZone.PUBLIC)).status == 200
        await fetch.close()
    assert len(hosts) == 1
