"""The identity provider behind sign-in: believed only if it is the provider's word, and about this sign-in."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import KeySet, RSAKey
from mcp.shared.auth import InvalidRedirectUriError
from pydantic import AnyUrl, ValidationError

from tests.auth.authority import authority
from tests.auth.signing import Browser, Flow, signing_in
from truename.auth.authorization_server.clients import RegisteredClient, redirect_error
from truename.auth.authorization_server.provider import IdentityProvider, NotAllowedIn, ProviderLogin
from truename.auth.authorization_server.sessions import SignInSessions
from truename.auth.jwt import Invalid
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.config import SignIn
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

pytestmark = pytest.mark.anyio

ISSUER = "https://idp.example"
KEY = RSAKey.generate_key(2048, {"kid": "k", "use": "sig"})
OTHER = RSAKey.generate_key(2048, {"kid": "k", "use": "sig"})
NOW = int(time.time())
GOOD: dict[str, Any] = {
    "iss": ISSUER,
    "aud": "gate",
    "sub": "ann",
    "iat": NOW,
    "exp": NOW + 600,
    "nonce": "n1",
    "email": "ann@example.com",
    "email_verified": True,
    "groups": ["eng"],
}


def clock() -> float:
    """Tell the time at which the tokens of this module are good, however long its tests are waited for."""
    return float(NOW)


def identity(key: RSAKey = KEY, alg: str = "RS256", **claims: Any) -> str:
    said = {name: value for name, value in {**GOOD, **claims}.items() if value is not None}
    return jwt.encode({"alg": alg, "kid": "k"}, said, key, algorithms=[alg])


class Net:
    """A provider as the network shows it."""

    def __init__(self, tokens: Mapping[str, Any], userinfo: Mapping[str, Any] | None = None, status: int = 200) -> None:
        self.tokens = tokens
        self.userinfo = userinfo
        self.status = status
        self.forms: list[Mapping[str, str]] = []
        self.headers: list[Mapping[str, str]] = []

    async def __call__(
        self,
        url: str,
        *,
        named_by: NetworkZone = NetworkZone.LOOPBACK,  # noqa: ARG002 - as the network has it
        form: Mapping[str, str] | None = None,
        document: Mapping[str, Any] | None = None,  # noqa: ARG002 - as above
        headers: Mapping[str, str] | None = None,
    ) -> FetchedDocument:
        self.headers.append(headers or {})
        if url.endswith("/token"):
            self.forms.append(form or {})
            return FetchedDocument(self.status, json.dumps(self.tokens).encode())
        if url.endswith("/userinfo"):
            return FetchedDocument(200, json.dumps(self.userinfo).encode())
        if url.endswith("/jwks"):
            return FetchedDocument(200, json.dumps(KeySet([KEY]).as_dict()).encode())
        found = {name: f"{ISSUER}/{path}" for name, path in (("token_endpoint", "token"), ("jwks_uri", "jwks"))}
        if self.userinfo is not None:
            found["userinfo_endpoint"] = f"{ISSUER}/userinfo"
        return FetchedDocument(200, json.dumps({"issuer": ISSUER, **found}).encode())

    async def network_zone(self, _: str) -> NetworkZone:
        return NetworkZone.PUBLIC


async def proof(net: Net, **more: Any) -> ProviderLogin:
    said = {"client_secret": "s3", "allow": ("*",), "issuer": ISSUER, **more}
    provider = IdentityProvider(SignIn(client_id="gate", **said), "https://tools/cb", net, clock)
    return await provider.proof("code", "verifier", "n1")


async def test_the_provider_says_who_it_is() -> None:
    net = Net({"access_token": "a", "id_token": identity(), "refresh_token": "r"}, GOOD)
    found = await proof(net)
    assert found.principal == Principal(name="ann", issuer=ISSUER, groups=frozenset({"eng"}))
    assert found.refresh_token == "r"
    assert "r" not in repr(found).replace("Principal", "").partition("refresh")[2]
    (form,) = net.forms
    assert (form["code_verifier"], "client_secret" in form) == ("verifier", False)


@pytest.mark.parametrize("verified", [False, None, "true"])
async def test_an_address_is_nobodys_name_before_the_provider_calls_it_verified(verified: object) -> None:
    """Else whoever writes the address of another into their account would be them."""
    said = {"allow": ("group:eng",), "name_claim": "email"}
    assert (await proof(Net({"id_token": identity()}), **said)).principal.name == "ann@example.com"
    with pytest.raises(NotAllowedIn, match="verified"):
        await proof(Net({"id_token": identity(email_verified=verified)}), **said)


WRONG: dict[str, str] = {
    "another sign-in's": identity(nonce="n2"),
    "no sign-in's": identity(nonce=None),
    "another client's": identity(aud="other"),
    "another client's too": identity(aud=["gate", "other"], azp="other"),
    "another issuer's": identity(iss="https://evil.example"),
    "an expired one": identity(exp=NOW - 3600),
    "a forged one": identity(OTHER),
    "nobody's": identity(sub=None),
    "no token": "x",
}


@pytest.mark.parametrize("what", WRONG)
async def test_another_s_word_is_not_believed(what: str) -> None:
    with pytest.raises(Invalid):
        await proof(Net({"access_token": "a", "id_token": WRONG[what]}))


async def test_an_id_token_has_to_be_there() -> None:
    with pytest.raises(Invalid, match="does not send an ID token"):
        await proof(Net({"access_token": "a"}, GOOD))


async def test_userinfo_adds_what_the_id_token_leaves_out() -> None:
    id_token = identity(email=None, email_verified=None, groups=None)
    net = Net({"access_token": "a", "id_token": id_token}, {**GOOD, "groups": ["ops"]})
    found = await proof(net, allow=("email:*@example.com",))
    assert found.principal.groups == frozenset({"ops"})
    assert net.headers[-1]["authorization"] == "Bearer a"


async def test_userinfo_of_somebody_else_is_not_believed() -> None:
    id_token = identity(groups=None)
    with pytest.raises(Invalid, match="another person"):
        await proof(Net({"access_token": "a", "id_token": id_token}, {**GOOD, "sub": "root", "groups": ["admin"]}))


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (400, {"error": "invalid_grant"}, NotAllowedIn),
        (400, {"error": "access_denied"}, NotAllowedIn),
        # A secret that was changed at the provider is no reason to sign everybody out.
        (401, {"error": "invalid_client"}, FetchError),
        (500, {}, FetchError),
        (302, {}, FetchError),
    ],
)
async def test_what_the_provider_refuses(status: int, said: Mapping[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        await proof(Net(said, status=status))


async def test_somebody_else_after_a_renewal_is_nobody() -> None:
    net = Net({"access_token": "a", "id_token": identity(sub="eve", nonce=None)})
    provider = IdentityProvider(SignIn(client_id="gate", allow=("*",), issuer=ISSUER), "https://tools/cb", net, clock)
    with pytest.raises(NotAllowedIn, match="another person"):
        await provider.again("r", Principal(name="ann", issuer=ISSUER))
    net.tokens = {"access_token": "a"}
    kept = await provider.again("r", Principal(name="ann", issuer=ISSUER))
    assert (kept.principal.name, kept.refresh_token) == ("ann", "r")


async def test_a_provider_without_openid_is_asked_by_userinfo(tmp_path: Path) -> None:
    with authority() as idp:
        idp.user = {"sub": "9", "id": 42, "groups": ["eng"]}
        urls = {"authorization_url": "/authorize", "token_url": "/token", "userinfo_url": "/userinfo"}
        said = {name: idp.issuer + path for name, path in urls.items()}
        more = {"issuer": None, "client_secret": "", "request": (), "name_claim": "id", "allow": ("group:eng",)}
        async with signing_in(idp, tmp_path, **{**said, **more}) as address:
            idp.client("gate", f"{address}/sign-in/callback")
            flow = Flow(address)
            await flow.register()
            back = await Browser()(flow.asking())
            tokens = (await flow.exchange(back.params["code"])).json()
            assert await flow.status(tokens["access_token"]) != 401
            sessions = SignInSessions(tmp_path / "state.db", time.time)
            (one,) = sessions.all()
            sessions.close()
            assert (one.name, one.issuer) == ("42", idp.issuer + "/authorize")


@given(st.text(max_size=60), st.sampled_from(["", "https://a.example/", "http://127.0.0.1:1/", "http://localhost@"]))
def test_answers_go_to_https_or_to_this_machine(text: str, begin: str) -> None:
    uri = begin + text
    if redirect_error(uri, ()) is None:
        found = httpx2.URL(uri)
        assert found.scheme == "https" or found.host in {"127.0.0.1", "localhost", "::1"}
        assert not found.userinfo


@given(st.sampled_from(["http://127.0.0.1/cb", "https://a.example/cb"]), st.text(max_size=30))
def test_only_a_port_may_differ_and_only_here(own: str, text: str) -> None:
    client = RegisteredClient(client_id="x", redirect_uris=[own])  # type: ignore[list-item]
    for wanted in (own + text, own.replace("/cb", f":{text}/cb")):
        try:
            found = str(client.validate_redirect_uri(AnyUrl(wanted)))
        except (InvalidRedirectUriError, ValidationError):
            continue
        there, here = httpx2.URL(found), httpx2.URL(own)
        assert (there.scheme, there.host, there.path, there.query) == (here.scheme, here.host, here.path, here.query)
        assert there.port == here.port or here.host == "127.0.0.1"
