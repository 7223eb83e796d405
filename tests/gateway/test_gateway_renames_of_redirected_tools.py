"""Servers that rename a tool to which an operator redirected another id, and operators that redirect a renamed one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.staged import SPEC
from tests.gateway.test_gateway_server_renames import OTHER_SHAPE, READ, WIPE, House, Room, becomes, id_of
from truename.errors import NotAllowed
from truename.policy import Context, read_policy
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio
OLD = "disk@1/wipe@1"
DENY: dict[str, dict[str, Any]] = {
    "a rule that denies": {"rules": [{"outcome": "deny", "tools": ["disk/wipe"]}]},
    "a rule that asks": {"rules": [{"outcome": "ask", "tools": ["disk/*"]}]},
    "one of several rules": {
        "rules": [
            {"outcome": "deny", "tools": ["other/*"]},
            {"outcome": "deny", "tools": [OLD], "except": ["disk/read"]},
        ]
    },
}


def renamed(**settings: Any) -> House:
    """Return a gateway whose server renamed a tool, to which the operator had redirected the id `OLD`."""
    house = House(**settings)
    house.lists(READ, WIPE)
    house.registry.ledger.redirect(OLD, id_of("wipe"))
    house.lists(READ, OTHER_SHAPE)
    return house


@pytest.mark.parametrize("policy", DENY.values(), ids=DENY.keys())
async def test_a_denial_of_a_redirected_id_goes_with_what_its_tool_may_have_become(policy: dict[str, Any]) -> None:
    house = renamed(policy=policy)
    assert await house.outcome("clean") in {"unknown_tool", "ask"}
    house.decisions.accept(id_of("clean"), id_of("wipe"), by="ann", until="")
    house.look()
    assert await house.outcome("clean") in {"unknown_tool", "ask"}
    house.decisions.undo(id_of("clean"))
    house.decisions.reject(id_of("clean"), by="ann")
    house.look()
    assert await house.outcome("clean") == "allow"


async def test_a_redirect_that_an_operator_enters_after_the_rename_counts_at_the_next_call() -> None:
    house = House(DENY["a rule that denies"])
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    assert await house.outcome("clean") == "allow"
    house.registry.ledger.redirect(OLD, id_of("wipe"))
    assert await house.outcome("clean") == "unknown_tool"


async def test_a_redirect_that_is_in_one_naming_scope_counts_too() -> None:
    house = House(DENY["a rule that denies"])
    house.lists(READ, WIPE)
    house.registry.ledger.scoped("cursor").redirect(OLD, id_of("wipe"))
    house.lists(READ, OTHER_SHAPE)
    assert await house.outcome("clean") == "unknown_tool"


async def test_a_tool_whose_redirected_id_is_not_for_models_is_not_for_models_under_another_name() -> None:
    house = renamed(metadata={OLD: {"is_for_llm": False}})
    registry, view = house.registry, house.registry.view(SPEC)
    assert [*registry.access.limited(view, Context()).by_name] == ["read"]
    tool = view.table.catalog[id_of("clean")]
    with pytest.raises(NotAllowed, match="not_for_llm"):
        await registry.access.judge(view, tool, Context(), {"name": "clean", "arguments": {}}, 1)


async def test_a_profile_that_leaves_out_a_redirected_id_leaves_out_what_may_be_its_tool() -> None:
    profiles = Profiles({"all": Profile(servers=("fs",), excluded=("disk/wipe",), default=True)})
    house = renamed(profiles=profiles)
    spec = replace(SPEC, profiles=("all",))
    assert [*house.registry.view(spec).table.values()] == ["read"]


async def accepts(room: Room, old: str, new: str) -> None:
    async with room.deciding() as decisions:
        assert decisions.accept(id_of(new), id_of(old), by="ann", until="") is not None


async def redirects(room: Room, old: str, new: str) -> None:
    async with room.deciding() as decisions:
        decisions.ledger.redirect(str(id_of(old)), id_of(new))


ORDERS = {"the operator first": (redirects, accepts), "the server first": (accepts, redirects)}


@pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS.keys())
async def test_no_approval_passes_a_rename_by_the_server_on_its_way_through_redirects(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], order: Any
) -> None:
    policy = read_policy({"rules": [{"outcome": "ask", "tools": ["fs/*"], "except": ["fs/turn"]}]})
    room = Room(lab, tmp_path, connect, policy=policy)
    room.fs.says(READ, WIPE)
    async with room.client() as client:
        await client.call_tool("read", {})
        room.office.decides(scope="always")
        assert not (await client.call_tool("read", {})).is_error
        for old, new, decide in (("read", "page", order[0]), ("page", "leaf", order[1])):
            await room.turns(client, {**READ, "name": new}, WIPE)
            await becomes(client, new, "wipe")
            await decide(room, old, new)
        await leads(client, "read", "leaf")
        answer = await client.call_tool("leaf", {})
        assert answer.meta is not None
        assert answer.meta["dev.truename/error"] == "approval_required"


async def leads(client: Client, old: str, new: str) -> None:
    """Wait until an old name leads to a tool: then all decisions were taken in."""
    with anyio.fail_after(20):
        while str(id_of(new)) not in str((await client.call_tool(old, {})).content):
            await anyio.sleep(0.02)
