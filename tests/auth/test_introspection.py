"""What an issuer says of a token that it is asked about (RFC 7662), word by word, and for how long it is believed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from truename.auth.inbound import introspection
from truename.auth.inbound.introspection import Introspection
from truename.auth.jwt import Invalid
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.oauth import IssuerClient
from truename.config import Issuer

pytestmark = pytest.mark.anyio

MINE = "https://tools.example/mcp"
NOW = 1_800_000_000.0
ISSUER = Issuer(
    issuer="https://idp.example",
    leeway=30.0,
    introspection="always",
    introspection_url="https://idp.example/asked",
    client_id="gate",
    client_secret="s3cret",
)
ACTIVE = {"active": True, "aud": MINE, "sub": "ann"}


class Net:
    """An issuer that says the same of every token, and writes down what it is sent."""

    def __init__(self, status: int = 200, **said: Any) -> None:
        self.status = status
        self.said: dict[str, Any] = {**ACTIVE, **said}
        self.now = NOW
        self.sent: list[tuple[str, Any, Any]] = []

    async def __call__(self, url: str, *, form: Any = None, headers: Any = None, **_: Any) -> FetchedDocument:
        self.sent.append((url, form, headers))
        return FetchedDocument(self.status, json.dumps(self.said).encode())

    async def network_zone(self, _: str) -> NetworkZone:
        return NetworkZone.PUBLIC

    @property
    def asked(self) -> list[str]:
        return [form["token"] for _, form, _ in self.sent]

    def introspection(self) -> Introspection:
        return Introspection(ISSUER, IssuerClient(ISSUER.issuer, self, self.clock), self.clock)

    def clock(self) -> float:
        return self.now


async def refusal(**said: Any) -> str:
    with pytest.raises(Invalid) as caught:
        await Net(**said).introspection().claims("opaque", frozenset({MINE, "other"}))
    return str(caught.value)


async def test_an_issuer_is_asked_as_the_standard_has_it() -> None:
    net = Net()

    assert await net.introspection().claims("opaque", frozenset({MINE})) == ACTIVE
    assert net.sent == [
        (
            "https://idp.example/asked",
            {"token": "opaque", "token_type_hint": "access_token"},
            {"authorization": "Basic Z2F0ZTpzM2NyZXQ="},
        )
    ]


async def test_an_issuer_is_asked_where_its_metadata_say_if_nothing_is_written_down() -> None:
    net = Net(issuer=ISSUER.issuer, introspection_endpoint="https://idp.example/said")
    issuer = replace(ISSUER, introspection_url=None)
    asked = Introspection(issuer, IssuerClient(issuer.issuer, net, net.clock), net.clock)
    await asked.claims("opaque", frozenset({MINE}))

    assert [url for url, form, _ in net.sent if form is not None] == ["https://idp.example/said"]


@pytest.mark.parametrize(
    "said",
    [
        {"aud": "other"},
        {"aud": ["x", MINE, 7]},
        {"iss": ISSUER.issuer},
        {"exp": None, "nbf": None},
        {"exp": NOW - 29},
        {"exp": int(NOW) - 29, "nbf": int(NOW) + 30},
        {"nbf": NOW + 30},
    ],
)
async def test_a_token_that_is_active_and_for_the_gateway_is_good(said: dict[str, Any]) -> None:
    assert await Net(**said).introspection().claims("opaque", frozenset({MINE, "other"})) == {**ACTIVE, **said}


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"active": False}, "its issuer reports it as inactive"),
        ({"active": None}, "its issuer reports it as inactive"),
        ({"active": 1}, "its issuer reports it as inactive"),
        ({"active": "true"}, "its issuer reports it as inactive"),
        ({"iss": "https://idp.example/"}, "it was issued by another issuer"),
        ({"iss": None}, "it was issued by another issuer"),
        ({"aud": None}, "it was issued for another resource"),
        ({"aud": "https://tools.example"}, "it was issued for another resource"),
        ({"aud": {MINE: 1}}, "it was issued for another resource"),
        ({"aud": [[MINE]]}, "it was issued for another resource"),
        ({"exp": "2099"}, "its times are not valid"),
        ({"exp": True}, "its times are not valid"),
        ({"nbf": [0]}, "its times are not valid"),
        ({"nbf": False}, "its times are not valid"),
        ({"exp": NOW - 30}, "it has expired"),
        ({"exp": NOW - 31, "nbf": NOW}, "it has expired"),
        ({"nbf": NOW + 31}, "it is not valid yet"),
        ({"exp": NOW + 90, "nbf": NOW + 31}, "it is not valid yet"),
    ],
)
async def test_a_token_is_good_for_its_issuer_its_audience_and_its_time(said: dict[str, Any], why: str) -> None:
    assert await refusal(**said) == why


async def test_an_answer_that_is_none_is_no_judgement() -> None:
    with pytest.raises(FetchError) as caught:
        await Net(status=401).introspection().claims("opaque", frozenset({MINE}))
    assert str(caught.value) == "introspection at https://idp.example fails (HTTP 401)"


async def test_an_answer_is_believed_for_half_a_minute() -> None:
    net = Net()
    asked = net.introspection()
    for seconds in (0.0, 29.9, 30.0):
        net.now = NOW + seconds
        await asked.claims("opaque", frozenset({MINE}))

    assert net.asked == ["opaque", "opaque"]


async def test_what_is_believed_is_judged_by_each_time_and_audience() -> None:
    net = Net(exp=NOW)
    asked = net.introspection()
    assert await asked.claims("opaque", frozenset({MINE}))
    with pytest.raises(Invalid, match=r"^it was issued for another resource$"):
        await asked.claims("opaque", frozenset({"other"}))
    net.now = NOW + 29.5
    assert await asked.claims("opaque", frozenset({MINE}))
    assert net.asked == ["opaque"]


async def test_of_answers_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introspection, "MAX_RESPONSES", 2)
    net = Net()
    asked = net.introspection()
    for token in ("a", "b", "c", "c", "b", "a"):
        await asked.claims(token, frozenset({MINE}))

    assert net.asked == ["a", "b", "c", "a"]


async def test_an_answer_that_was_asked_for_again_is_a_late_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(introspection, "MAX_RESPONSES", 2)
    net = Net()
    asked = net.introspection()
    for token, seconds in (("a", 0), ("b", 10), ("a", 30), ("c", 30), ("a", 31)):
        net.now = NOW + seconds
        await asked.claims(token, frozenset({MINE}))

    assert net.asked == ["a", "b", "a", "c"]
