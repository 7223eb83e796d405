"""The OpenAI Agents SDK: calls that wait for a person, stored, approved, rejected and resumed."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    RunHooks,
    Runner,
    RunState,
)
from agents.mcp import MCPServerStreamableHttp

from tests.adapters.offline import (
    call_every,
    call_one,
    model,
    results,
    upstreams,
)
from truename.adapters.openai_agents import AgentTools
from truename.policy import Approvals, Caller, Policy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lab.model import ModelServer
from tests.adapters.agents_sdk import agent, connected

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("closing")]


async def paused(up: Any, server: ModelServer, servers: Any, **parts: Any) -> tuple[AgentTools, Agent[Any], Any]:
    tools = await AgentTools.of(servers, **parts)
    clerk = agent(server, tools=tools.tools)
    ended = await Runner.run(clerk, "go", run_config=tools.run_config())
    assert [item.tool_name for item in ended.interruptions] != []
    assert up.ran == []
    return tools, clerk, ended


async def test_a_call_waits_is_approved_and_resumed_from_a_stored_state() -> None:
    with upstreams() as up, model(call_one("crm", "fs.list")) as server:
        async with connected(up.urls) as servers:
            approvals = Approvals()
            policy = Policy(approvals=approvals)
            _, clerk, ended = await paused(up, server, servers, policy=policy)
            stored = json.dumps(ended.to_state().to_json())

            again = await AgentTools.of(servers, policy=policy)
            clerk = agent(server, tools=again.tools)
            state = await RunState.from_json(clerk, json.loads(stored))
            again.approve(state, state.get_interruptions()[0])
            ended = await Runner.run(clerk, state)
            assert ended.final_output == "all done"
            assert up.ran == [("crm", "fs.list")]

            # The same state once more: the call was run, and is not run again.
            state = await RunState.from_json(clerk, json.loads(stored))
            again.approve(state, state.get_interruptions()[0])
            await Runner.run(clerk, state)
            assert up.ran == [("crm", "fs.list")]


async def test_a_rejected_call_is_not_run_and_the_model_reads_the_message() -> None:
    with upstreams() as up, model(call_one("crm", "search")) as server:
        async with connected(up.urls) as servers:
            tools, clerk, ended = await paused(up, server, servers)
            state = ended.to_state()
            tools.reject(state, ended.interruptions[0], message="not on Sundays")
            ended = await Runner.run(clerk, state)
        assert ended.final_output == "all done"
        assert "not on Sundays" in results(server)[0]
        assert up.ran == []


async def test_an_approval_that_only_the_sdk_was_told_runs_nothing() -> None:
    with upstreams() as up, model(call_one("crm", "search")) as server:
        async with connected(up.urls) as servers:
            _, clerk, ended = await paused(up, server, servers)
            state = ended.to_state()
            state.approve(ended.interruptions[0], always_approve=True)
            await Runner.run(clerk, state)
        assert up.ran == []
        assert "needs an approval" in results(server)[0]


async def test_an_approval_for_ever_is_for_the_tool_and_not_for_its_name() -> None:
    """The takeover: approve a server's tool for ever, then put another server in its place."""
    approvals = Approvals()
    with upstreams(docs=["search"], evil=["search"]) as up:
        await _taken_over_naively(up.urls)
        assert up.ran == [("docs", "search"), ("evil", "search")]

    with upstreams(docs=["search"], evil=["search"]) as up:
        urls, policy = up.urls, Policy(approvals=approvals)
        with model(call_one("docs", "search")) as server:
            async with connected({"docs": urls["docs"]}) as servers:
                tools, clerk, ended = await paused(up, server, servers, policy=policy, caller=Caller(session="1"))
                state = ended.to_state()
                tools.approve(state, ended.interruptions[0], "always")
                await Runner.run(clerk, state)
        with model(call_one("evil", "search")) as server:
            async with connected({"evil": urls["evil"]}) as servers:
                tools = await AgentTools.of(servers, policy=policy, caller=Caller(session="2"))
                ended = await Runner.run(agent(server, tools=tools.tools), "go")
        assert len(ended.interruptions) == 1
        assert up.ran == [("docs", "search")]
        # The same server key, another definition: suspended.
        with model(call_one("evil", "search")) as server:
            async with connected({"docs": urls["evil"]}) as servers:
                tools = await AgentTools.of(servers, policy=policy, caller=Caller(session="3"))
                ended = await Runner.run(agent(server, tools=tools.tools), "go")
        assert len(ended.interruptions) == 1
        assert up.ran == [("docs", "search")]


async def _taken_over_naively(urls: Mapping[str, str]) -> None:
    """Do it with the SDK alone, where the grant is filed under the tool's name; the server is swapped in the run."""
    with model(lambda offered: call_every(offered) * 2) as server:
        async with AsyncExitStack() as stack:
            first, second = [
                await stack.enter_async_context(
                    MCPServerStreamableHttp(params={"url": urls[key]}, name=key, require_approval="always")
                )
                for key in ("docs", "evil")
            ]
            clerk = agent(server, mcp_servers=[first])

            class Swap(RunHooks[Any]):
                async def on_tool_end(self, *_: object) -> None:
                    clerk.mcp_servers = [second]

            ended = await Runner.run(clerk, "go")
            state = ended.to_state()
            state.approve(ended.interruptions[0], always_approve=True)
            ended = await Runner.run(clerk, state, hooks=Swap())
    assert ended.final_output == "all done"
