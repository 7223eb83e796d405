"""A gateway with a policy whose state database is away: what depends on it is refused, and all else goes on."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.office import Office, ran
from tests.support.postgresql_wire import Wire
from tests.support.state_places import shared_server
from truename.policy import read_policy
from truename.storage import StateLocation
from truename.storage.postgresql_link import unlink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

_SOME = read_policy({"default": "allow", "rules": [{"outcome": "ask", "tools": ["fs/write", "fs/erase"]}]})


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[Wire]:
    # The operator comes by another address, which has a key of its own otherwise.
    monkeypatch.setenv("TRUENAME_VAULT_KEY", "A" * 43 + "=")
    with Wire(shared_server()) as made:
        yield made


async def refused(client: Any, name: str) -> tuple[str, str]:
    result = await client.call_tool(name, {})
    return result.meta["dev.truename/error"], result.content[0].text


async def test_calls_that_nobody_has_to_decide_on_go_on_without_the_database(
    lab: Lab, connect: Callable[..., Any], era: str, tmp_path: Path, wire: Wire
) -> None:
    scope = f"t{secrets.token_hex(8)}"
    office = Office(tmp_path)
    office.place = StateLocation.of(f"{shared_server().url}&scope={scope}")
    here = wire.url(scope)
    server = lab.normal("fs", "read", "write", "erase")
    async with (
        lab.serving(server, policy=_SOME, state=here) as address,
        connect(f"{address}/mcp", era) as client,
    ):
        assert await ran(client, "read")
        assert not await ran(client, "write")
        office.decides(scope="always")
        with anyio.fail_after(5):
            # The server tells the gateway of it.
            while not await ran(client, "write"):
                await anyio.sleep(0.01)
        # One that was told of a decision and has not read it refuses all: have each replica read it, if there are some.
        assert [await ran(client, "write") for _ in range(3)] == [True] * 3
        wire.server = None
        wire.cut_all()
        with anyio.fail_after(20):
            assert [await ran(client, name) for name in ("read", "write", "read")] == [True] * 3
            kind, text = await refused(client, "erase")
            assert [await ran(client, name) for name in ("read", "write", "read")] == [True] * 3
    assert kind == "state_unavailable"
    assert "the state database cannot be used" in text
    assert "nothing was run. Try again later" in text
    for location in (StateLocation.of(here), office.place):
        while unlink(location):
            pass
