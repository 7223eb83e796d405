"""One issuer's tokens at the door: which are its own to judge, whose word counts, and for how long it does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from joserfc.jwk import ECKey

from tests.support.auth_signed import curve, signed
from truename.auth.inbound import issuer_tokens
from truename.auth.inbound.authentication import Authenticated, AuthenticationFailure
from truename.auth.inbound.issuer_tokens import IssuerAuthenticator
from truename.auth.jwt import verify_token
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument
from truename.config import Issuer
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

ISSUER = "https://idp.example"
MINE = "https://tools.example/mcp"
NOW = 1_800_000_000.0


class Net:
    """An issuer with one key, which says the same of every token."""

    def __init__(self, **said: Any) -> None:
        self.now = NOW
        self.key = curve()
        self.status = 200
        self.said = {"active": True, "aud": MINE, "sub": "ann", **said}

    async def __call__(self, url: str, **_: Any) -> FetchedDocument:
        if "/.well-known/" in url:
            said = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys", "introspection_endpoint": f"{ISSUER}/asked"}
            return FetchedDocument(200, json.dumps(said).encode())
        keys = {"keys": [self.key.as_dict(private=False)]}
        return FetchedDocument(self.status, json.dumps(keys if url.endswith("/keys") else self.said).encode())

    async def network_zone(self, _: str) -> NetworkZone:
        return NetworkZone.PUBLIC

    def way(self, **more: Any) -> IssuerAuthenticator:
        places = {"jwks_url": f"{ISSUER}/keys", "introspection_url": f"{ISSUER}/asked"}
        return IssuerAuthenticator(Issuer(issuer=ISSUER, **{**places, **more}), MINE, self, lambda: self.now)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the tokens whose signatures were looked at."""
    found: list[str] = []

    def look(token: str, *others: Any) -> Mapping[str, Any]:
        found.append(token)
        return verify_token(token, *others)

    monkeypatch.setattr(issuer_tokens, "verify_token", look)
    return found


async def admitted(way: IssuerAuthenticator, token: str) -> Authenticated:
    found = await way.admit(token)
    assert isinstance(found, Authenticated)
    assert found.token == token
    return found


async def refusal(way: IssuerAuthenticator, token: str) -> str:
    found = await way.admit(token)
    assert isinstance(found, AuthenticationFailure)
    assert found.error == "invalid_token"
    return found.text


async def test_where_its_keys_are_and_where_it_is_asked_an_issuer_says_itself() -> None:
    way = Net(sub="bob").way(introspection="always", jwks_url=None, introspection_url=None)

    assert (await admitted(way, signed(curve()))).principal.name == "bob"


@pytest.mark.parametrize(("introspection", "is_known"), [("never", False), ("opaque", True), ("always", True)])
def test_a_token_that_says_nothing_is_an_issuer_s_that_can_be_asked(introspection: Any, is_known: bool) -> None:
    way = Net().way(introspection=introspection)

    assert way.knows("opaque") is is_known
    assert way.knows(signed(curve()))
    assert not way.knows(signed(curve(), iss="https://other.example"))


async def test_a_good_token_is_believed_for_a_minute(looks: list[str]) -> None:
    net, token = Net(), signed(curve(), exp=int(NOW) + 600)
    way = net.way()
    for seconds, number in ((0.0, 1), (59.9, 1), (60.0, 2), (119.9, 2), (120.0, 3)):
        net.now = NOW + seconds
        found = await admitted(way, token)
        assert (found.principal.name, found.until) == ("ann", NOW + 630)
        assert looks == [token] * number


async def test_a_token_is_believed_no_longer_than_it_is_good(looks: list[str]) -> None:
    net, token = Net(), signed(curve(), exp=int(NOW) - 20)
    way = net.way()
    for seconds in (0.0, 9.9):
        net.now = NOW + seconds
        assert (await admitted(way, token)).until == NOW + 10
    assert looks == [token]
    net.now = NOW + 10
    assert await refusal(way, token) == "The token is not accepted: it has expired."


async def test_of_good_tokens_the_latest_are_believed(looks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_tokens, "MAX_TOKENS", 2)
    net = Net()
    way = net.way()
    tokens = {name: signed(curve(), sub=name, exp=int(NOW) + 600) for name in "abc"}
    for name, seconds in (("a", 0), ("b", 10), ("a", 60), ("c", 60), ("a", 61), ("c", 61), ("b", 61)):
        net.now = NOW + seconds
        await admitted(way, tokens[name])

    assert looks == [tokens[name] for name in "abacb"]


async def test_a_token_that_is_asked_about_is_asked_about_again_after_five_minutes() -> None:
    way = Net().way(introspection="opaque")

    assert (await admitted(way, "opaque")).until == NOW + 300
    assert (await admitted(Net(exp=NOW + 10).way(introspection="opaque"), "opaque")).until == NOW + 40


async def test_what_a_signed_token_says_of_itself_counts_whatever_its_issuer_says() -> None:
    way = Net().way(introspection="always")

    assert (await admitted(way, signed(curve()))).principal.name == "ann"
    forged = signed(ECKey.generate_key("P-256", {"kid": "ec"}))
    assert "its signature or a claim is not valid" in await refusal(way, forged)
    assert "another resource" in await refusal(way, signed(curve(), aud="https://other.example"))
    assert "expired" in await refusal(way, signed(curve(), exp=int(NOW) - 60))
    assert "bound to a key" in await refusal(way, signed(curve(), cnf={"jkt": "x"}))
    assert "an ID token" in await refusal(way, signed(curve(), at_hash="x"))


async def test_what_an_issuer_says_now_goes_before_what_a_signed_token_says() -> None:
    way = Net(sub="bob", scope="read").way(introspection="always", scopes=("read",))
    found = await admitted(way, signed(curve(), sub="ann", scope="read write"))

    assert (found.principal.name, found.principal.scopes) == ("bob", frozenset({"read"}))
    assert "reports it as inactive" in await refusal(Net(active=False).way(introspection="always"), signed(curve()))


async def test_a_key_that_is_not_known_is_looked_for_and_the_old_one_is_good_no_more() -> None:
    net = Net()
    way, old = net.way(), signed(curve())
    await admitted(way, old)
    net.now += 10
    net.key = ECKey.generate_key("P-256", {"kid": "new"})
    new = signed(net.key)

    assert (await admitted(way, new)).principal.name == "ann"
    assert "a key that is not among the issuer's keys" in await refusal(way, old)
    assert "expired" in await refusal(way, signed(net.key, exp=int(NOW) - 60))


async def test_a_token_whose_scopes_are_too_few_says_which_would_do() -> None:
    found = await Net().way(scopes=("read", "write")).admit(signed(curve(), scope="read"))

    assert found == AuthenticationFailure(
        error="insufficient_scope", text="The token lacks the scope write.", scopes=("read", "write")
    )


async def test_times_that_no_clock_has_are_no_fault_of_the_gateway_s() -> None:
    text = "The token is not accepted: its times are not valid."

    assert await refusal(Net(exp=10**400).way(introspection="opaque"), "opaque") == text


async def test_while_an_issuer_can_t_be_asked_its_tokens_can_t_be_checked(caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    net.status = 503
    found = await net.way(introspection="opaque").admit("opaque")

    assert found == AuthenticationFailure(
        error="temporarily_unavailable", text="The token cannot be checked. Try again later."
    )
    assert caplog.messages == [f"Cannot check tokens of {ISSUER}: introspection at {ISSUER} fails (HTTP 503)"]


async def test_only_clients_that_are_named_may_act() -> None:
    way = Net().way(clients=("cli", "app"))

    assert (await admitted(way, signed(curve(), client_id="app"))).principal.client == "app"
    for client in ("bad", None):
        text = await refusal(way, signed(curve(), client_id=client))
        assert text == "The token is not accepted: its client is not allowed."


async def test_somebody_is_who_the_configured_claims_say_and_their_issuer_s() -> None:
    way = Net().way(name_claim="email", groups_claim="roles")
    found = await admitted(way, signed(curve(), email="ann@example.com", roles=["eng"], groups=["ops"], scope="read"))

    assert found.principal == Principal(
        name="ann@example.com", issuer=ISSUER, groups=frozenset({"eng"}), scopes=frozenset({"read"})
    )
