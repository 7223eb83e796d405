"""An issuer's keys: when they are fetched, how long they are good, and what is asked while it does not answer."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from joserfc.jwk import ECKey

from truename.auth.issuer_keys import IssuerKeys
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchedDocument, FetchError
from truename.auth.oauth import IssuerClient

pytestmark = pytest.mark.anyio

ISSUER = "https://idp.example"
NOW = 1_800_000_000.0
METADATA = {"issuer": ISSUER, "jwks_uri": f"{ISSUER}/said", "introspection_endpoint": f"{ISSUER}/asked"}
PAGE = f"{ISSUER}/.well-known/oauth-authorization-server"


class Net:
    """An issuer with a clock; ``status`` is of its keys, ``gate`` has whoever asks for them wait."""

    def __init__(self) -> None:
        self.now = NOW
        self.status = 200
        self.kid = "one"
        self.sent: list[str] = []
        self.more: list[dict[str, Any]] = []
        self.gate: anyio.Event | None = None
        self.waiting = anyio.Event()

    async def __call__(self, url: str, **more: Any) -> FetchedDocument:
        self.sent.append(url.removeprefix(ISSUER))
        self.more.append(more)
        if url == PAGE:
            return FetchedDocument(200, json.dumps(METADATA).encode())
        if self.gate is not None:
            self.waiting.set()
            await self.gate.wait()
        row = ECKey.generate_key("P-256", {"kid": self.kid}).as_dict(private=False)
        return FetchedDocument(self.status, json.dumps({"keys": [row]}).encode())

    async def network_zone(self, url: str) -> NetworkZone:
        assert url == ISSUER
        return NetworkZone.PRIVATE

    def clock(self) -> float:
        return self.now

    def keys(self, typed: str | None = f"{ISSUER}/typed") -> IssuerKeys:
        return IssuerKeys(IssuerClient(ISSUER, self, self.clock), typed, self.clock)


async def kids(keys: IssuerKeys) -> list[str | None]:
    return [key.kid for key in (await keys.now()).keys]


async def test_keys_are_fetched_at_first_need_and_again_after_ten_minutes() -> None:
    net = Net()
    keys = net.keys()
    assert (net.sent, keys.changes) == ([], 0)
    for seconds, number in ((0.0, 1), (599.9, 1), (600.0, 2), (601.0, 2), (1_199.9, 2), (1_200.0, 3)):
        net.now = NOW + seconds
        assert await kids(keys) == ["one"]
        assert (len(net.sent), keys.changes) == (number, number)


async def test_keys_are_where_the_operator_wrote_else_where_the_metadata_say() -> None:
    typed, said = Net(), Net()
    await typed.keys().now()
    await said.keys(None).now()

    assert typed.sent == ["/typed"]
    assert typed.more == [{"form": None, "headers": None}]
    assert said.sent == ["/.well-known/oauth-authorization-server", "/said"]
    # Where they are was the issuer's word, which leads no nearer than the issuer is.
    assert said.more[-1] == {"form": None, "headers": None, "named_by": NetworkZone.PRIVATE}


async def test_the_last_keys_are_good_for_an_hour_without_their_issuer(caplog: pytest.LogCaptureFixture) -> None:
    net = Net()
    keys = net.keys()
    await keys.now()
    net.status = 503
    for seconds in (600.0, 3_599.9):
        net.now = NOW + seconds
        assert await kids(keys) == ["one"]
    assert (
        caplog.messages == [f"Cannot renew the keys of {ISSUER}: the keys of {ISSUER} cannot be fetched (HTTP 503)"] * 2
    )
    net.now = NOW + 3_600.0
    with pytest.raises(FetchError) as caught:
        await keys.now()
    assert str(caught.value) == f"the keys of {ISSUER} cannot be fetched"
    assert keys.changes == 1


async def test_an_issuer_is_asked_once_in_ten_seconds_at_most() -> None:
    net = Net()
    keys = net.keys()
    net.status = 503
    for seconds, number in ((0.0, 1), (9.9, 1), (10.0, 2), (19.9, 2)):
        net.now = NOW + seconds
        with pytest.raises(FetchError):
            await keys.now()
        assert len(net.sent) == number
    net.status, net.now = 200, NOW + 20.0
    known = await keys.now()
    for seconds, number in ((20.0, 3), (29.9, 3), (30.0, 4)):
        net.now = NOW + seconds
        await keys.newer(known)
        assert len(net.sent) == number


async def test_newer_keys_are_looked_for_by_who_has_the_latest_only() -> None:
    net = Net()
    keys = net.keys()
    old = await keys.now()
    net.now += 10.0
    net.kid = "two"
    found = await keys.newer(old)

    assert [key.kid for key in found.keys] == ["two"]
    net.now += 10.0
    assert await keys.newer(old) is found
    assert len(net.sent) == 2


async def test_while_an_issuer_is_slow_one_waits_and_the_others_go_by_what_is_known() -> None:
    net = Net()
    keys = net.keys()
    old = await keys.now()
    net.now += 600.0
    net.kid, net.gate = "two", anyio.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(keys.now)
        await net.waiting.wait()
        assert await keys.now() is old
        net.gate.set()

    assert await kids(keys) == ["two"]
    assert len(net.sent) == 2


async def test_an_endpoint_that_is_not_named_is_told_with_its_issuer() -> None:
    net = Net()
    with pytest.raises(FetchError) as caught:
        await IssuerClient(ISSUER, net, net.clock).endpoint("revocation_endpoint", None)

    assert str(caught.value) == f"{ISSUER}: its metadata has no usable revocation_endpoint"


@pytest.mark.parametrize("had", [False, True])
async def test_while_there_is_nothing_good_all_wait_for_one(had: bool) -> None:
    net = Net()
    keys = net.keys()
    if had:
        await keys.now()
        net.sent.clear()
        net.now += 3_600.0
    net.gate = anyio.Event()
    found = []

    async def wait() -> None:
        found.append(await keys.now())

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(wait)
        await net.waiting.wait()
        await anyio.lowlevel.checkpoint()
        assert found == []
        net.gate.set()

    assert found == [await keys.now()] * 3
    assert len(net.sent) == 1


async def test_metadata_are_kept_for_an_hour() -> None:
    net = Net()
    speaker = IssuerClient(ISSUER, net, net.clock)
    for seconds, number in ((0.0, 1), (3_599.9, 1), (3_600.0, 2), (7_199.9, 2)):
        net.now = NOW + seconds
        assert await speaker.endpoint("introspection_endpoint", None) == f"{ISSUER}/asked"
        assert len(net.sent) == number


async def test_a_form_and_headers_are_sent_wherever_it_goes() -> None:
    net = Net()
    speaker = IssuerClient(ISSUER, net, net.clock)
    sent: dict[str, Any] = {"form": {"token": "x"}, "headers": {"authorization": "Basic eA=="}}
    await speaker.ask("introspection_endpoint", f"{ISSUER}/typed", **sent)
    await speaker.ask("introspection_endpoint", None, **sent)

    assert [(url, more) for url, more in zip(net.sent, net.more, strict=True) if url != PAGE.removeprefix(ISSUER)] == [
        ("/typed", sent),
        ("/asked", {**sent, "named_by": NetworkZone.PRIVATE}),
    ]
