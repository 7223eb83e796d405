"""Between a call and the word about it things may change: a yes is for what was asked, while it is still that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from mcp import Client

from tests.gateway.office import ASK, Office
from tests.gateway.staged import Stage
from tests.support.gateway_memory import in_memory
from truename.config import Settings
from truename.config.trust import Trust
from truename.policy import Approvals, read_policy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.anyio

PUSH: dict[str, Any] = {"name": "push", "description": "Push.", "inputSchema": {"type": "object"}}
FORCED = {**PUSH, "description": "Push with force."}
DENY = read_policy({"default": "ask", "rules": [{"outcome": "deny", "tools": ["fs/push"]}]})


async def changed(stage: Stage) -> None:
    stage.lists(FORCED)


async def gone(stage: Stage) -> None:
    stage.lists({**PUSH, "name": "pull"})


async def denied(stage: Stage) -> None:
    await stage.registry.reload(replace(stage.registry.settings, policy=DENY), [stage.fs.config], lambda: None)


async def moved(stage: Stage) -> None:
    stage.fs.config = replace(stage.fs.config, command="false")


async def nothing(_: Stage) -> None:
    pass


@pytest.mark.parametrize("word", ["allow once", "always allow"])
@pytest.mark.parametrize(
    ("drift", "happens", "code"),
    [
        ("warn", changed, "approval_required"),
        ("block", changed, "quarantined"),
        ("warn", gone, "unknown_tool"),
        ("warn", denied, "unknown_tool"),
        ("warn", moved, "approval_required"),
        ("block", nothing, "upstream_unavailable"),
    ],
)
async def test_a_yes_is_not_for_what_the_tool_became_while_somebody_thought_about_it(
    tmp_path: Path, drift: Any, happens: Callable[[Stage], Awaitable[None]], code: str, word: str
) -> None:
    office = Office(tmp_path)
    settings = Settings(trust=Trust(drift=drift), policy=ASK, approvals=office.settings(), state=office.state)
    stage = Stage(settings, approvals=office.place)
    stage.lists(PUSH)

    async def decides(_: Any, __: Any) -> types.ElicitResult:
        await happens(stage)
        return types.ElicitResult(action="accept", content={"decision": word})

    user: dict[str, Any] = {"elicitation_callback": decides}
    async with Client(in_memory(stage.endpoint), mode="legacy", **user) as client:
        result = await client.call_tool("push", {})
    assert result.meta is not None
    assert result.meta["dev.truename/error"] == code, result
    assert stage.fs.calls == (code == "upstream_unavailable")
    # What was not run is not used up.
    approvals = Approvals.open(office.place)
    is_used = stage.fs.calls and word == "allow once"
    assert [approvals.state_of(one) for one in approvals.grants()] == ["failed" if is_used else "seen"]
