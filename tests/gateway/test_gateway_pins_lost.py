"""No tool is listed or called before its pin is stored, whatever becomes of the database meanwhile."""

from __future__ import annotations

import secrets
from contextlib import closing
from typing import TYPE_CHECKING, Any

import anyio
import psycopg
import pytest
from mcp import Client

from tests.gateway.staged import Stage, Staged
from tests.support.gateway_memory import in_memory
from tests.support.postgresql_wire import Wire
from tests.support.state_places import shared_server
from truename.config import ServerConfig, Settings
from truename.config.trust import Trust
from truename.errors import LedgerError, StoreError
from truename.gateway.views.naming import Namer
from truename.identity import ToolId, definition_digest
from truename.storage import StateLocation
from truename.storage.postgresql_link import unlink
from truename.trust import PinnedTool, PinStore

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio

STRICT = Settings(trust=Trust(drift="quarantine"))


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"It is {name}.", "inputSchema": {"type": "object"}}


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire(shared_server()) as made:
        yield made


def pinned(scope: str) -> set[str]:
    with psycopg.connect(shared_server().url, autocommit=True) as direct:
        return {name for (name,) in direct.execute(f"SELECT name FROM truename_{scope}.pin".encode()).fetchall()}


@pytest.mark.parametrize(
    ("statement", "cut", "in_part"),
    [
        (b"FOR UPDATE OF part", "down", False),
        (b"INSERT INTO pin", "before", True),
        (b"INSERT INTO pin", "down", False),
        (b"COMMIT", "before", False),
        (b"COMMIT", "after", True),
        (b"COMMIT", "down", True),
    ],
)
async def test_a_tool_is_listed_and_called_when_its_pin_is_stored_and_not_before(
    wire: Wire, statement: bytes, cut: str, *, in_part: bool
) -> None:
    place = StateLocation.of(wire.url(f"t{secrets.token_hex(8)}"))
    with closing(PinStore(place)) as book:
        stage = Stage(STRICT, book)
        if in_part:
            pool: Any = stage.registry.pool
            pool["more"] = more = Staged(ServerConfig(key="more", command="true"), STRICT)
            more.takes(tuple(tool(f"more{number}") for number in range(20)), more.lists)
        async with Client(in_memory(stage.endpoint), mode="legacy") as client:

            async def names() -> set[str]:
                found = {one.name for one in (await client.list_tools(cache_mode="bypass")).tools}
                found = {name.removeprefix("fs_") for name in found if "more" not in name}
                assert found <= pinned(place.scope)
                return found

            async def lists(*tools: dict[str, Any]) -> None:
                if in_part:
                    assert stage.fs.takes(tools, stage.fs.lists)
                    await stage.registry.renew()
                else:
                    stage.lists(*tools)

            stage.lists(tool("a"))
            assert await names() == {"a"}
            there, wire.is_down_then = wire.server, cut == "down"
            if cut == "before":
                wire.cut_before = statement
            else:
                wire.cut_after = statement
            for number in range(3):
                await lists(tool("a"), tool("b"), tool(f"c{number}"))
                if "b" not in await names():
                    calls = stage.fs.calls
                    assert (await client.call_tool("fs/b", {})).is_error
                    assert stage.fs.calls == calls
            wire.server = there
            with anyio.fail_after(20):
                while await names() != {"a", "b", "c2"}:
                    await anyio.sleep(0.05)
            await stage.registry.end()
    while unlink(place):
        pass


@pytest.mark.parametrize("then", ["it is gone", "it is pinned otherwise"])
async def test_a_list_that_cannot_be_made_anew_shows_nothing_that_was_kept_back_in_it(
    monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """The old list has the tool, and what kept it back may not hold for the new one."""

    def away(*_: object, **__: object) -> Any:
        raise StoreError(file="state", key="", problem="it is away", remedy="Wait.", code="unusable")

    def busy(*_: object, **__: object) -> Any:
        raise LedgerError(code="busy", path="state")

    book = PinStore()
    stage = Stage(STRICT, book)
    async with Client(in_memory(stage.endpoint), mode="legacy") as client:

        async def names() -> set[str]:
            return {one.name for one in (await client.list_tools(cache_mode="bypass")).tools}

        stage.lists(tool("a"))
        assert await names() == {"a"}
        with monkeypatch.context() as cut:
            cut.setattr(PinStore, "trust", away)
            stage.lists(tool("a"), tool("b"))
            assert await names() == {"a"}
        with monkeypatch.context() as cut:
            for name in ("table", "table_again"):
                cut.setattr(Namer, name, busy)
            if then == "it is gone":
                stage.lists(tool("a"))
            else:
                other = {**tool("b"), "description": "It was b."}
                id = ToolId.parse("fs@1/b@1")
                book.trust(
                    [PinnedTool(id=id, server="fs", name="b", digest=definition_digest(other), content=other, at="")]
                )
                stage.registry.stale = True
            assert await names() == {"a"}
            assert (await client.call_tool("b", {})).is_error
            assert stage.fs.calls == 0
        stage.lists(tool("a"), {**tool("b"), "description": "It was b."} if then != "it is gone" else tool("b"))
        assert await names() == {"a", "b"}
