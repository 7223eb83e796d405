"""Servers that rename a tool to which an operator had redirected an id: rules about that id follow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.renaming_server import OTHER_SHAPE, READ, WIPE, House, id_of
from tests.gateway.staged import SPEC
from truename.errors import NotAllowed
from truename.policy import Context
from truename.policy.profiles import Profile, Profiles

pytestmark = pytest.mark.anyio
OLD = "disk@1/wipe@1"
REDIRECTED_DENY: dict[str, dict[str, Any]] = {
    "a rule that denies": {"rules": [{"outcome": "deny", "tools": ["disk/wipe"]}]},
    "a rule that asks": {"rules": [{"outcome": "ask", "tools": ["disk/*"]}]},
    "one of several rules": {
        "rules": [
            {"outcome": "deny", "tools": ["other/*"]},
            {"outcome": "deny", "tools": [OLD], "except": ["disk/read"]},
        ]
    },
}


def renamed_after_redirect(**settings: Any) -> House:
    """Return a gateway whose server renamed a tool, to which the operator had redirected the id `OLD`."""
    house = House(**settings)
    house.lists(READ, WIPE)
    house.registry.ledger.redirect(OLD, id_of("wipe"))
    house.lists(READ, OTHER_SHAPE)
    return house


@pytest.mark.parametrize("policy", REDIRECTED_DENY.values(), ids=REDIRECTED_DENY.keys())
async def test_a_denial_of_a_redirected_id_goes_with_what_its_tool_may_have_become(policy: dict[str, Any]) -> None:
    house = renamed_after_redirect(policy=policy)
    assert await house.outcome("clean") in {"unknown_tool", "ask"}
    house.decisions.accept(id_of("clean"), id_of("wipe"), by="ann", until="")
    house.look()
    assert await house.outcome("clean") in {"unknown_tool", "ask"}
    house.decisions.undo(id_of("clean"))
    house.decisions.reject(id_of("clean"), by="ann")
    house.look()
    assert await house.outcome("clean") == "allow"


async def test_a_redirect_that_an_operator_enters_after_the_rename_counts_at_the_next_call() -> None:
    house = House(REDIRECTED_DENY["a rule that denies"])
    house.lists(READ, WIPE)
    house.lists(READ, OTHER_SHAPE)
    assert await house.outcome("clean") == "allow"
    house.registry.ledger.redirect(OLD, id_of("wipe"))
    assert await house.outcome("clean") == "unknown_tool"


async def test_a_redirect_that_is_in_one_naming_scope_counts_too() -> None:
    house = House(REDIRECTED_DENY["a rule that denies"])
    house.lists(READ, WIPE)
    house.registry.ledger.scoped("cursor").redirect(OLD, id_of("wipe"))
    house.lists(READ, OTHER_SHAPE)
    assert await house.outcome("clean") == "unknown_tool"


async def test_a_tool_whose_redirected_id_is_not_for_models_is_not_for_models_under_another_name() -> None:
    house = renamed_after_redirect(metadata={OLD: {"is_for_llm": False}})
    registry, view = house.registry, house.registry.view(SPEC)
    assert [*registry.access.limited(view, Context()).by_name] == ["read"]
    tool = view.table.catalog[id_of("clean")]
    with pytest.raises(NotAllowed, match="not_for_llm"):
        await registry.access.judge(view, tool, Context(), {"name": "clean", "arguments": {}}, 1)


async def test_a_profile_that_leaves_out_a_redirected_id_leaves_out_what_may_be_its_tool() -> None:
    profiles = Profiles({"all": Profile(servers=("fs",), excluded=("disk/wipe",), default=True)})
    house = renamed_after_redirect(profiles=profiles)
    spec = replace(SPEC, profiles=("all",))
    assert [*house.registry.view(spec).table.values()] == ["read"]
