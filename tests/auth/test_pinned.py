"""Connections to judged addresses: over real sockets, with a name service that changes its mind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import httpx2
import pytest

from tests.support.auth_pinned import Names, listening
from truename.auth.network.addresses import AddressRefused, NetworkPolicy, NetworkZone
from truename.auth.network.pinned import PinnedAddressTransport

if TYPE_CHECKING:
    from ipaddress import IPv4Address

    from anyio.abc import SocketStream

pytestmark = pytest.mark.anyio
_LOOPBACK = NetworkPolicy(NetworkZone.LOOPBACK)


def client(names: Names, reach: NetworkPolicy = _LOOPBACK) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=PinnedAddressTransport(httpx2.AsyncHTTPTransport(), reach, names))


async def test_the_name_stays_in_the_request_and_the_address_is_what_was_judged() -> None:
    names = Names(("127.0.0.1",))
    async with listening() as (port, hosts), client(names) as web:
        assert (await web.get(f"http://tools.example:{port}/")).text == "ok"
        assert hosts == [f"tools.example:{port}"]


async def test_a_name_that_moves_after_it_was_judged_leads_nowhere_new() -> None:
    names = Names(("127.0.0.1",), ("169.254.169.254",))
    async with listening() as (port, hosts), client(names) as web:
        for _ in range(3):
            await web.get(f"http://tools.example:{port}/")
    assert len(hosts) == 3
    assert names.asked == [f"tools.example:{port}"]


async def test_a_server_that_moved_is_found_and_judged_again() -> None:
    names = Names(("127.0.0.2",), ("127.0.0.1",), ("10.0.0.1",))
    async with listening() as (port, hosts), client(names) as web:
        with pytest.raises(httpx2.ConnectError):
            await web.get(f"http://tools.example:{port}/")
        assert (await web.get(f"http://tools.example:{port}/")).text == "ok"
    assert len(hosts) == 1


@pytest.mark.parametrize("url", ["http://2130706433:{}/", "http://127.1:{}/", "http://[::ffff:127.0.0.1]:{}/"])
async def test_nothing_is_sent_to_an_address_too_near_in_whatever_form(url: str) -> None:
    async with listening() as (port, hosts), client(Names(), NetworkPolicy()) as web:
        with pytest.raises(AddressRefused, match="loopback"):
            await web.get(url.format(port))
    assert hosts == []


async def test_one_address_too_near_among_several_refuses_the_name() -> None:
    async with listening() as (port, hosts), client(Names(("8.8.8.8", "127.0.0.1")), NetworkPolicy()) as web:
        with pytest.raises(AddressRefused, match="loopback"):
            await web.get(f"http://both.example:{port}/")
    assert hosts == []


async def test_a_redirect_is_judged_as_any_request() -> None:
    names = Names(("127.0.0.1",))

    async def moved(stream: SocketStream) -> None:
        async with stream:
            await stream.receive(65_536)
            await stream.send(b"HTTP/1.1 307 Moved\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n")

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, moved)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        async with client(names) as web:
            with pytest.raises(AddressRefused, match="metadata"):
                await web.get(f"http://tools.example:{port}/", follow_redirects=True)
        tasks.cancel_scope.cancel()


async def test_a_name_without_an_address_is_a_connection_that_failed() -> None:
    async def nobody(host: str, port: int) -> tuple[IPv4Address, ...]:
        message = f"no {host}:{port}"
        raise OSError(message)

    transport = PinnedAddressTransport(httpx2.AsyncHTTPTransport(), _LOOPBACK, nobody)
    async with httpx2.AsyncClient(transport=transport) as web:
        with pytest.raises(httpx2.ConnectError, match=r"gone\.example has no address"):
            await web.get("http://gone.example/")


async def test_a_name_is_resolved_as_it_is_sent() -> None:
    """Resolvers that go by an older rule take ``faß.example`` for ``fass.example``, which is somebody else's."""
    async with listening() as (port, hosts):
        names = Names(("127.0.0.1",))
        async with client(names) as http:
            assert (await http.get(f"http://xn--fa-hia.example:{port}/")).text == "ok"
    assert [*names.asked, *hosts] == [f"xn--fa-hia.example:{port}"] * 2
