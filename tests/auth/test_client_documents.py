"""Clients that are known by a document at their own address: fetched with care, and believed only for what it is."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from tests.auth.person import CALLBACK
from tests.auth.signing import Flow, close_all, settings_of
from truename.auth.authentication_setup import HttpAuthentication, http_authentication
from truename.auth.authorization_server.clients import is_document
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError, Web
from truename.config import Access, Config, Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.auth.authority import Authority

pytestmark = pytest.mark.anyio


class Documents:
    """The network, with one client's document on it."""

    def __init__(self, url: str, document: object, status: int = 200) -> None:
        self.web = Web()
        self.url = url
        self.document = document
        self.status = status
        self.asked: list[tuple[str, NetworkZone]] = []

    async def __call__(self, url: str, *, named_by: NetworkZone = NetworkZone.LOOPBACK, **more: Any) -> FetchedDocument:
        self.asked.append((url, named_by))
        if url == self.url:
            return FetchedDocument(self.status, json.dumps(self.document).encode())
        return await self.web(url, named_by=named_by, **more)

    async def network_zone(self, url: str) -> NetworkZone:
        return await self.web.network_zone(url)


@asynccontextmanager
async def documented(idp: Authority, net: Documents) -> AsyncIterator[tuple[HttpAuthentication, httpx2.AsyncClient]]:
    here = "https://tools.example.com"
    access = Access(public_url=here, sign_in=settings_of(idp))
    async with (
        http_authentication(Config(settings=Settings(access=access)), "http://127.0.0.1:1", fetch=net) as front,
        httpx2.AsyncClient(transport=httpx2.ASGITransport(front.pages), base_url=here) as http,
    ):
        yield front, http
    await close_all()


URL = "https://client.example/app.json"


async def test_a_client_s_document_is_its_registration(idp: Authority) -> None:
    net = Documents(URL, {"client_id": URL, "client_name": "Doc", "redirect_uris": [CALLBACK]})
    async with documented(idp, net) as (_, http):
        said = (await http.get("/.well-known/oauth-authorization-server")).json()
        assert said["client_id_metadata_document_supported"] is True
        flow = Flow("https://tools.example.com")
        flow.client_id = URL
        for _ in range(3):
            sent = await http.get(flow.asking())
            assert sent.status_code == 302
        page = await http.get(sent.headers["location"])
        assert URL in page.text
        assert "__Host-truename-sign-in=" in page.headers["set-cookie"]
        assert "Secure" in page.headers["set-cookie"]
        assert (await http.get(flow.asking(redirect_uri="https://evil.example/cb"))).status_code == 400
    # A stranger names it: it is fetched from public addresses only, and once.
    assert net.asked == [(URL, NetworkZone.PUBLIC)]


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"client_id": "https://other.example/app.json", "redirect_uris": [CALLBACK]}, 200),
        ({"redirect_uris": [CALLBACK]}, 200),
        ({"client_id": URL}, 200),
        ({"client_id": URL, "redirect_uris": CALLBACK}, 200),
        ({"client_id": URL, "redirect_uris": ["http://evil.example"]}, 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK], "client_secret": "x"}, 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "private_key_jwt"}, 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK]}, 302),
        (["x"], 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK], "x": "x" * 70_000}, 200),
    ],
)
async def test_a_document_that_is_no_client_s_is_not_used(idp: Authority, document: object, status: int) -> None:
    async with documented(idp, Documents(URL, document, status)) as (_, http):
        flow = Flow("https://tools.example.com")
        flow.client_id = URL
        answer = await http.get(flow.asking())
        assert (answer.status_code, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "localhost", "10.0.0.1", "[::1]", "2130706433"])
async def test_a_document_on_a_near_address_is_not_fetched(idp: Authority, host: str) -> None:
    url = f"https://{host}/app.json"
    async with documented(idp, Documents("", {})) as (front, http):
        flow = Flow("https://tools.example.com")
        flow.client_id = url
        assert (await http.get(flow.asking())).status_code == 400
        assert "/authorize" in front.page_paths
    with pytest.raises(FetchError):
        await Web()(url, named_by=NetworkZone.PUBLIC)


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        (URL, True),
        ("https://client.example/a/b", True),
        ("http://client.example/app.json", False),
        ("https://client.example", False),
        ("https://client.example/", False),
        ("https://client.example/../x", False),
        ("https://client.example/x#y", False),
        ("https://me@client.example/x", False),
        ("https://client.example/x\n", False),
    ],
)
def test_which_ids_are_documents(url: str, is_one: bool) -> None:
    assert is_document(url) is is_one


class Slow(Documents):
    """The network with a host on it that takes connections and says nothing."""

    is_waited_for = False

    async def __call__(self, url: str, *, named_by: NetworkZone = NetworkZone.LOOPBACK, **more: Any) -> FetchedDocument:
        if "slow.example" in url:
            self.is_waited_for = True
            await anyio.sleep_forever()
        return await super().__call__(url, named_by=named_by, **more)


async def test_a_host_that_is_slow_keeps_nobody_elses_clients_waiting(idp: Authority) -> None:
    net = Slow(URL, {"client_id": URL, "client_name": "Doc", "redirect_uris": [CALLBACK]})
    flow = Flow("https://tools.example.com")
    async with documented(idp, net) as (_, http), anyio.create_task_group() as tasks:
        for number in range(40):
            flow.client_id = f"https://slow.example/{number}"
            tasks.start_soon(http.get, flow.asking())
        await anyio.wait_all_tasks_blocked()
        assert net.is_waited_for
        flow.client_id = URL
        with anyio.fail_after(10):
            assert (await http.get(flow.asking())).status_code == 302
        tasks.cancel_scope.cancel()
