"""Views kept ready and addresses of clients: those used last stay, and nobody fills the room of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.gateway_bounds import HELLO, JSON
from truename import Catalog, dialects, project
from truename.gateway.views.view import View, ViewSpec
from truename.gateway.views.view_cache import ViewCache
from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


def _view(name: str, tools: int) -> View:
    described = tuple((ToolId("x", 1, None, f"t{number}", 1), {"name": f"t{number}"}) for number in range(tools))
    return View(ViewSpec(name), project(Catalog.of("x/t"), "universal"), described)


def test_of_views_those_used_last_are_kept_and_of_large_ones_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.gateway.views.view_cache.MOST_SHOWN", 10)
    one, two, three, large = (_view(name, tools) for name, tools in [("1", 1), ("2", 1), ("3", 1), ("large", 20)])
    shelf = ViewCache(2)
    assert [shelf.put(view) for view in (one, two)] == [(), ()]
    assert shelf.get(one.spec) is one

    assert shelf.put(three) == (two,)
    assert shelf.dropped == {two.spec}
    assert shelf.put(large) == (one, three)
    assert (len(shelf), shelf.get(large.spec)) == (1, large)
    assert shelf.put(two) == (large,)
    assert shelf.emptied() == (two,)
    assert shelf.put(two) == shelf.put(two) == ()
    assert shelf.dropped == {one.spec, three.spec, large.spec}


async def test_clients_that_ask_for_every_dialect_take_no_room_and_names_stay(lab: Lab) -> None:
    async with lab.gateway(lab.normal("w", "get", "a" * 60), max_views=3) as gateway:
        names = {name: dict(gateway.table(f"/mcp/for/{name}")) for name in dialects.names()[:20]}

        assert len(gateway.registry._view_cache) == 3
        assert all(dict(gateway.table(f"/mcp/for/{name}")) == shown for name, shown in names.items())
        gateway.registry.rebuild()
        assert len(gateway.registry._view_cache) == 3
        assert ViewSpec("openai", client="openai") in gateway.registry.changes()


async def test_paths_without_a_client_make_room_and_those_with_one_stay(lab: Lab, raw: Callable[[str], Any]) -> None:
    async with lab.serving(lab.normal("w", "echo"), max_views=2) as address, raw(address) as http:

        async def asked(client: str, **headers: str) -> int:
            said = {**JSON, **headers}
            body = HELLO if not headers else {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            answer = await http.http.post(f"{address}/mcp/for/{client}", json=body, headers=said)
            sessions[client] = answer.headers.get("mcp-session-id", sessions.get(client, ""))
            return int(answer.status_code)

        sessions: dict[str, str] = {}
        for name in ("openai", "cursor", "claude-code", "codex"):
            assert (await http.post("tools/list", {}, path=f"/mcp/for/{name}")).status_code == 200
        assert (await asked("openai"), await asked("cursor")) == (200, 200)
        full = await http.post("tools/list", {}, path="/mcp/for/codex")
        assert (full.status_code, full.headers["retry-after"]) == (503, "1")
        assert full.json()["error"].endswith("Try again later, or raise max_views.")
        assert await asked("openai", **{"mcp-session-id": sessions["openai"]}) == 200

        ended = await http.http.delete(
            f"{address}/mcp/for/cursor", headers={**JSON, "mcp-session-id": sessions["cursor"]}
        )
        assert ended.status_code == 200
        assert (await http.post("tools/list", {}, path="/mcp/for/codex")).status_code == 200
        assert await asked("openai", **{"mcp-session-id": sessions["openai"]}) == 200
