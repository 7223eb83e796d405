"""Profiles that change while clients listen: what is no longer somebody's own is not told to them any more."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.client.subscriptions import ResourceUpdated, SubscriptionLost

from tests.gateway.ears import Ear
from tests.gateway.shelf import Shelf
from truename.config import Config, Settings
from truename.gateway import Gateway, listening
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]

MINE, OPEN = "test://mine", "test://open"
BEFORE = Profiles({"all": Profile(servers=("bank", "wiki"), everyone=True)})
# The same profile has less in it; or it is somebody else's.
LESS = Profiles({"all": Profile(servers=("wiki",), everyone=True)})
OTHERS = Profiles({"all": Profile(servers=("bank", "wiki"), principals=("bob",))})


class House:
    def __init__(self, gateway: Gateway, url: str, bank: Shelf, wiki: Shelf) -> None:
        self.gateway, self.url, self.bank, self.wiki = gateway, f"{url}/mcp", bank, wiki

    async def profiles(self, profiles: Profiles) -> None:
        config = self.gateway.config
        settings = Settings(**{**vars(config.settings), "profiles": profiles})
        await self.gateway.reload(Config(path=config.path, servers=config.servers, settings=settings))

    async def update(self) -> None:
        await self.bank.update(MINE)
        await self.wiki.update(OPEN)


@pytest.fixture
def house(lab: Lab, upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    monkeypatch.setattr("truename.gateway.http.authentication.CHECK_INTERVAL", 0.01)

    @asynccontextmanager
    async def open_() -> AsyncIterator[House]:
        bank, wiki = Shelf("bank", uris=(MINE,)), Shelf("wiki", uris=(OPEN,))
        async with (
            upstreams.serve(bank.server) as one,
            upstreams.serve(wiki.server) as other,
            lab.gateway(lab.at("bank", one), lab.at("wiki", other), profiles=BEFORE) as gateway,
            listening(gateway) as url,
        ):
            yield House(gateway, url, bank, wiki)

    return open_


async def test_a_session_hears_no_more_of_what_it_watched_and_may_not_see(
    house: Callable[[], Any], connect: Callable[..., Any]
) -> None:
    ear = Ear()
    async with house() as at, connect(at.url, "legacy", message_handler=ear) as client:
        for uri in MINE, OPEN:
            await client.subscribe_resource(uri)
        await at.profiles(LESS)
        for times in 1, 2:
            await at.update()
            told = await ear.hears(types.ResourceUpdatedNotification, times)
            assert {str(one.uri) for one in told} == {OPEN}


async def test_a_stream_hears_no_more_of_what_it_watched_and_may_not_see(
    house: Callable[[], Any], connect: Callable[..., Any]
) -> None:
    async with (
        house() as at,
        connect(at.url, "2026-07-28") as client,
        client.listen(resource_subscriptions=[MINE, OPEN]) as events,
    ):
        await at.profiles(LESS)
        for _ in range(2):
            await at.update()
            with anyio.fail_after(15):
                assert await anext(aiter(events)) == ResourceUpdated(uri=OPEN)


async def test_a_stream_ends_that_leads_to_other_people_now(
    house: Callable[[], Any], connect: Callable[..., Any]
) -> None:
    async with house() as at, connect(at.url, "2026-07-28") as client:
        with pytest.RaisesGroup(SubscriptionLost, flatten_subgroups=True, allow_unwrapped=True):
            async with client.listen(resources_list_changed=True) as events:
                await at.profiles(OTHERS)
                with anyio.fail_after(15):
                    await anext(aiter(events))
        assert (await client.list_tools()).tools == []
