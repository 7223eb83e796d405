"""A deny rule is not outrun by a twin: whichever of two names has the plain id, both are kept from who may not call."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway.office import ran
from truename.policy import read_policy
from truename.policy.profiles import Profile, Profiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp import Client

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio

Twins = tuple[str, ...]
FREE: dict[str, Any] = {"default": "allow"}


def ruled(outcome: str, **more: Any) -> dict[str, Any]:
    return {"policy": read_policy({**FREE, "rules": [{"outcome": outcome, "tools": ["alpha/danger"], **more}]})}


@asynccontextmanager
async def client_of(lab: Lab, connect: Callable[..., Any], *names: str, **settings: Any) -> AsyncIterator[Client]:
    running = lab.serving(lab.normal("alpha", *names), style="on-conflict", **settings)
    async with running as address, connect(f"{address}/mcp", "legacy") as client:
        yield client


@pytest.mark.parametrize("twins", [("Danger",), ("Danger", "danger"), ("danger", "Danger"), ("DANGER", "Danger")])
@pytest.mark.parametrize(
    "settings",
    [ruled("deny"), {"profiles": Profiles({"all": Profile(tools=("*",), excluded=("alpha/danger",), everyone=True)})}],
    ids=["deny", "profile"],
)
async def test_what_is_denied_is_neither_listed_nor_run_with_an_empty_ledger(
    lab: Lab, connect: Callable[..., Any], twins: Twins, settings: dict[str, Any]
) -> None:
    async with client_of(lab, connect, *twins, "safe", **settings) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {"safe"}
        for text in (*twins, "alpha/danger", "alpha:Danger", "danger-8412c070", "alpha/danger-8412c070"):
            result = await client.call_tool(text, {})
            assert result.meta is not None
            assert result.meta["dev.truename/error"] == "unknown_tool", (text, result)
        assert await ran(client, "safe", text="x")


async def test_what_is_asked_about_is_asked_about_for_both_twins(lab: Lab, connect: Callable[..., Any]) -> None:
    async with client_of(lab, connect, "Danger", "danger", **ruled("ask")) as client:
        assert not await ran(client, "Danger", text="x")
        assert not await ran(client, "danger", text="x")


async def test_what_is_allowed_is_allowed_for_the_one_that_has_the_id(lab: Lab, connect: Callable[..., Any]) -> None:
    rules = [{"outcome": "allow", "tools": ["alpha/danger"]}]
    settings = {"policy": read_policy({"default": "ask", "rules": rules})}
    async with client_of(lab, connect, "Danger", "danger", **settings) as client:
        assert await ran(client, "danger", text="x")
        assert not await ran(client, "Danger", text="x")
