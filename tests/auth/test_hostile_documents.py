"""What strangers write into documents and ids that are read before anybody is known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from truename.auth.authorization_server.clients import RegisteredClients
from truename.auth.authorization_server.tokens import TokenIssuer
from truename.auth.inbound.authentication import Authenticated
from truename.auth.inbound.issuer_tokens import IssuerAuthenticator
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.oauth import IssuerClient, is_document
from truename.auth.outbound.discovery import login_metadata
from truename.config import Issuer

pytestmark = pytest.mark.anyio

HERE = "https://tools.example"
ID = "https://client.example/id.json"
GOOD = {"client_id": ID, "client_name": "A client", "redirect_uris": ["https://client.example/back"]}
WRONG: dict[str, dict[str, Any]] = {
    "a list of ways to prove itself": {"token_endpoint_auth_method": ["none"]},
    "an object as its way": {"token_endpoint_auth_method": {"none": 1}},
    "a secret": {"client_secret": "x"},
    "another's id": {"client_id": ID + "x"},
    "addresses that are none": {"redirect_uris": ["https://[red]/back"]},
    "addresses that are no texts": {"redirect_uris": [7]},
    "addresses that are no list": {"redirect_uris": "https://client.example/back"},
}


METADATA = {name: f"https://idp.example/{name}" for name in ("authorization_endpoint", "token_endpoint")}
TAKEN: list[tuple[Any, bool]] = [
    (["S256"], True),
    (["plain"], False),
    (7, False),
    ("S256", False),
    ({"S256": 1}, False),
]


class Net:
    def __init__(self, **pages: Any) -> None:
        self.pages = pages

    async def __call__(self, url: str, **_: Any) -> FetchedDocument:
        assert url.startswith("https://")
        return FetchedDocument(200, json.dumps(self.pages["document"]).encode())

    async def network_zone(self, _: str) -> NetworkZone:
        return NetworkZone.PUBLIC


def clients(document: dict[str, Any]) -> RegisteredClients:
    issued = TokenIssuer(b"k" * 32, HERE, lambda: 0.0)
    return RegisteredClients(issued, Net(document=document), issuer=HERE, scopes=(), schemes=(), clock=lambda: 0.0)


async def test_a_client_is_what_its_document_says() -> None:
    found = await clients(GOOD).get(ID)
    assert found is not None
    assert (found.client_id, found.client_name) == (ID, "A client")


@pytest.mark.parametrize("what", WRONG)
async def test_a_document_with_what_is_not_meant_is_no_clients(what: str) -> None:
    assert await clients({**GOOD, **WRONG[what]}).get(ID) is None


@pytest.mark.parametrize("id", ["https://[red]/id", "https://[::1/id", "https://a]b/id"])
async def test_an_id_that_is_no_address_is_no_documents(id: str) -> None:
    assert not is_document(id)
    assert await clients(GOOD).get(id) is None


@pytest.mark.parametrize(("methods", "is_usable"), TAKEN)
async def test_an_authority_that_says_it_otherwise_takes_no_pkce(methods: Any, is_usable: bool) -> None:
    said = {"issuer": "https://idp.example", **METADATA, "code_challenge_methods_supported": methods}
    speaker = IssuerClient("https://idp.example", Net(document=said), lambda: 0.0)
    if is_usable:
        assert await login_metadata(speaker) == said
    else:
        with pytest.raises(FetchError, match="PKCE"):
            await login_metadata(speaker)


async def test_an_authority_that_names_no_end_is_asked_again() -> None:
    said = {"active": True, "aud": HERE, "sub": "ann", "client_id": "cli", "exp": None}
    issuer = Issuer(issuer="https://idp.example", introspection="always", introspection_url="https://idp.example/ask")
    found = await IssuerAuthenticator(issuer, HERE, Net(document=said), lambda: 100.0).admit("opaque")
    assert isinstance(found, Authenticated)
    assert found.until == 400.0
