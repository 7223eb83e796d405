"""What an authorization server says of itself: where it may stand, and what of it is believed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.oauth import endpoint_in, fetch_metadata, well_known

pytestmark = pytest.mark.anyio

ROOT = "https://idp.example"
OAUTH = "/.well-known/oauth-authorization-server"
OIDC = "/.well-known/openid-configuration"


class Net:
    """An authorization server with these pages."""

    def __init__(self, **pages: Any) -> None:
        self.pages = pages
        self.asked: list[str] = []

    async def __call__(self, url: str, **_: Any) -> FetchedDocument:
        self.asked.append(url)
        said = self.pages.get(url.removeprefix(ROOT))
        return FetchedDocument(404 if said is None else 200, json.dumps(said or {"issuer": ROOT}).encode())

    async def network_zone(self, _: str) -> NetworkZone:
        return NetworkZone.PUBLIC


@pytest.mark.parametrize("issuer", [ROOT, f"{ROOT}/"])
def test_an_issuer_without_a_path_has_two_places(issuer: str) -> None:
    assert well_known(issuer) == (f"{ROOT}{OAUTH}", f"{ROOT}{OIDC}")


@pytest.mark.parametrize(("issuer", "path"), [("/tenant", "/tenant"), ("/tenantX/", "/tenantX"), ("/a/b", "/a/b")])
def test_an_issuer_with_a_path_has_three(issuer: str, path: str) -> None:
    assert well_known(f"{ROOT}{issuer}") == (f"{ROOT}{OAUTH}{path}", f"{ROOT}{OIDC}{path}", f"{ROOT}{path}{OIDC}")


async def test_the_first_that_is_the_issuer_s_own_is_believed() -> None:
    said = {"issuer": ROOT, "jwks_uri": "x"}
    for pages in ({OAUTH: said}, {OIDC: said}, {OAUTH: {"issuer": "https://other.example"}, OIDC: said}):
        assert await fetch_metadata(ROOT, Net(**pages)) == said


@pytest.mark.parametrize(
    ("pages", "problem"),
    [
        ({}, "it has no metadata"),
        ({OAUTH: {"issuer": f"{ROOT}/"}}, "its metadata names another issuer"),
        ({OIDC: {"jwks_uri": "x"}}, "its metadata names another issuer"),
    ],
)
async def test_what_another_says_is_not_believed(pages: dict[str, Any], problem: str) -> None:
    net = Net(**pages)
    with pytest.raises(FetchError) as caught:
        await fetch_metadata(ROOT, net)

    assert str(caught.value) == f"{ROOT}: {problem}"
    assert net.asked == [f"{ROOT}{OAUTH}", f"{ROOT}{OIDC}"]


@pytest.mark.parametrize(
    ("issuer", "url", "is_usable"),
    [
        (ROOT, "https://other.example/x", True),
        (ROOT, "http://idp.example/x", False),
        (ROOT, "HTTPS://idp.example/x", False),
        (ROOT, "/x", False),
        (ROOT, None, False),
        (ROOT, ["https://idp.example/x"], False),
        ("http://127.0.0.1:1", "http://127.0.0.1:1/x", True),
        ("http://127.0.0.1:1", "https://idp.example/x", True),
        ("http://127.0.0.1:1", "ftp://127.0.0.1/x", False),
    ],
)
def test_an_endpoint_is_https_unless_its_issuer_is_not(issuer: str, url: object, is_usable: bool) -> None:
    if is_usable:
        assert endpoint_in({"jwks_uri": url}, "jwks_uri", issuer) == url
        return
    with pytest.raises(FetchError) as caught:
        endpoint_in({"jwks_uri": url}, "jwks_uri", issuer)
    assert str(caught.value) == f"{issuer}: its metadata has no usable jwks_uri"
