"""The OpenAI Agents SDK, as installed, over two real servers and a scripted model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from agents import (
    Agent,
    RunContextWrapper,
    Runner,
    RunState,
    function_tool,
    handoff,
)
from agents.exceptions import ModelBehaviorError, UserError
from agents.mcp import MCPServerStreamableHttp
from agents.testing import ScriptedModel, assistant_message, function_call

from lab.model import Step
from tests.adapters.offline import (
    CLASHING,
    EVERY,
    PROVIDERS,
    call_every,
    call_named,
    call_one,
    illegal,
    model,
    results,
    shown,
    upstreams,
)
from truename.adapters.openai_agents import AgentTools
from truename.adapters.toolbox import ToolboxNames
from truename.errors import DuplicateTool, InvalidCall, TruenameError
from truename.ledger import Ledger
from truename.policy import Caller, CallRule, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.model import Offered
from tests.adapters.agents_sdk import ALLOW, agent, connected

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("closing")]


async def test_without_truename_two_servers_with_one_tool_name_end_the_run() -> None:
    with upstreams() as up, model(call_every) as server:
        async with connected(up.urls) as servers:
            with pytest.raises(UserError, match="Duplicate tool names"):
                await Runner.run(agent(server, mcp_servers=[*servers.values()]), "go")
        assert up.ran == []


async def test_without_truename_names_are_sent_that_the_provider_refuses() -> None:
    with upstreams(docs=CLASHING) as up, model(call_every) as server:
        async with connected(up.urls) as servers:
            await Runner.run(agent(server, mcp_servers=[*servers.values()]), "go", max_turns=20)
        assert illegal([*shown(server)]) == [name for name in CLASHING if name != "search"]


async def test_without_truename_an_unknown_name_ends_the_run() -> None:
    with upstreams(docs=["search"]) as up, model(call_named("find")) as server:
        async with connected(up.urls) as servers:
            with pytest.raises(ModelBehaviorError, match="find not found"):
                await Runner.run(agent(server, mcp_servers=[*servers.values()]), "go")


async def test_without_truename_the_text_of_a_protocol_error_is_lost() -> None:
    with upstreams(docs=["err_jsonrpc"]) as up, model(call_named("err_jsonrpc")) as server:
        async with connected(up.urls) as servers:
            await Runner.run(agent(server, mcp_servers=[*servers.values()]), "go")
        assert "JSONRPC-WORDING" not in results(server)[0]


async def test_without_truename_a_state_that_is_resumed_twice_runs_the_call_twice() -> None:
    with upstreams(docs=["search"]) as up, model(call_every) as server:
        url = up.urls["docs"]
        async with MCPServerStreamableHttp(params={"url": url}, name="docs", require_approval="always") as docs:
            clerk = agent(server, mcp_servers=[docs])
            stored = (await Runner.run(clerk, "go")).to_state().to_json()
            for _ in range(2):
                state = await RunState.from_json(clerk, stored)
                state.approve(state.get_interruptions()[0])
                await Runner.run(clerk, state)
        assert up.ran == [("docs", "search")] * 2


async def test_without_truename_a_server_that_joins_renames_the_tools_of_another() -> None:
    with upstreams(docs=["search"], crm=["search"]) as up:
        async with connected({"docs": up.urls["docs"], "docs!": up.urls["crm"]}) as servers:
            config: Any = {"include_server_in_tool_names": True}
            context: Any = RunContextWrapper(None)
            alone = await Agent(name="clerk", mcp_servers=[servers["docs"]], mcp_config=config).get_mcp_tools(context)
            both = await Agent(name="clerk", mcp_servers=[*servers.values()], mcp_config=config).get_mcp_tools(context)
    assert [tool.name for tool in alone] == ["mcp_docs__search"]
    assert "mcp_docs__search" not in [tool.name for tool in both]


async def test_without_truename_a_rename_in_the_middle_ends_the_run() -> None:
    with upstreams(docs=["search", "rename_now"]) as up, model(rename_then_call) as server:
        async with connected(up.urls) as servers:
            with pytest.raises(ModelBehaviorError, match="search not found"):
                await Runner.run(agent(server, mcp_servers=[*servers.values()]), "go")


def rename_then_call(offered: Sequence[Offered]) -> list[Step]:
    """Have the server rename its first tool, then call that under the name that was shown."""
    first, renames = offered
    return [Step(name=renames.name), Step(name=first.name)]


async def test_a_rename_in_the_middle_is_told_and_the_run_goes_on() -> None:
    with upstreams(docs=["search", "rename_now"]) as up, model(rename_then_call) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            ended = await Runner.run(agent(server, tools=tools.tools), "go")
        assert ended.final_output == "all done"
        assert "UPSTREAM-UNKNOWN search" in results(server)[1]


async def test_every_tool_is_shown_under_a_legal_name_and_reached_by_it() -> None:
    with upstreams() as up, model(call_every) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            ended = await Runner.run(agent(server, tools=tools.tools), "go", max_turns=30)
        assert ended.final_output == "all done"
        assert set(shown(server).values()) == EVERY
        assert illegal([*shown(server)], *PROVIDERS) == []
        assert sorted(up.ran) == sorted(EVERY)
        assert all("UPSTREAM-OK" in text for text in results(server))


async def test_a_tool_of_the_agent_with_the_name_of_a_servers_tool_is_an_error_and_none_is_lost_in_silence() -> None:
    @function_tool(name_override="docs_search")
    def own(q: str) -> str:
        """[lab:9] Something else."""
        return f"own {q}"

    with upstreams(docs=["search"]) as up, model(call_every) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            other = handoff(agent(server), tool_name_override="docs_search")
            for given in (
                agent(server, tools=[*tools.tools, own]),
                agent(server, tools=[own, *tools.tools]),
                agent(server, tools=tools.tools, handoffs=[other]),
            ):
                with pytest.raises(DuplicateTool, match="docs_search"):
                    await Runner.run(given, "go")
        assert up.ran == []
        assert server.requests == []


async def test_parallel_calls_come_back_each_to_its_own() -> None:
    with upstreams() as up, model(call_every, batch=5) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            await Runner.run(agent(server, tools=tools.tools), "go", max_turns=30)
        assert sorted(up.ran) == sorted(EVERY)


async def test_an_unknown_name_is_answered_with_the_nearest_and_the_run_goes_on() -> None:
    with upstreams() as up, model(call_named("docs_serch")) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            ended = await Runner.run(agent(server, tools=tools.tools), "go", run_config=tools.run_config())
        assert ended.final_output == "all done"
        assert "Did you mean 'docs_search' or 'crm_search'?" in results(server)[0]
        assert up.ran == []


async def test_another_spelling_is_answered_with_the_name_to_use() -> None:
    with upstreams() as up, model(call_named("crm/getUserByID")) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            await Runner.run(agent(server, tools=tools.tools), "go", run_config=tools.run_config())
        assert "Call it exactly 'crm_get_user_by_id'" in results(server)[0]


async def test_the_text_of_a_protocol_error_reaches_the_model() -> None:
    with upstreams(docs=["err_jsonrpc"]) as up, model(call_every) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            await Runner.run(agent(server, tools=tools.tools), "go")
        assert "JSONRPC-WORDING" in results(server)[0]


async def test_what_a_rule_denies_to_everybody_is_not_shown() -> None:
    policy = Policy(rules=[CallRule(name="no crm", outcome="deny", tools=("crm/*",))], default="allow")
    with upstreams() as up, model(call_every) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=policy)
            await Runner.run(agent(server, tools=tools.tools), "go", max_turns=30)
        assert {key for key, _ in shown(server).values()} == {"docs"}


async def test_a_check_that_denies_runs_nothing_and_the_model_reads_why() -> None:
    def weekend(_: object) -> str:
        return "deny"

    with upstreams() as up, model(call_one("crm", "search")) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=Policy(checks=[weekend], default="allow"))  # type: ignore[list-item]
            await Runner.run(agent(server, tools=tools.tools), "go")
        assert up.ran == []
        assert "not allowed here (rule weekend)" in results(server)[0]


async def test_with_a_ledger_names_stay_when_a_server_joins(tmp_path: Any) -> None:
    with upstreams(docs=["search"], crm=["search"]) as up:
        urls = {"docs": up.urls["docs"], "docs!": up.urls["crm"]}
        naming = ToolboxNames(ledger=Ledger.open(tmp_path / "ledger"))
        async with connected(urls) as servers:
            alone = await AgentTools.of({"docs": servers["docs"]}, naming=naming)
            both = await AgentTools.of(servers, naming=naming)
    assert [tool.name for tool in alone.tools] == [tool.name for tool in both.tools][:1]


async def test_a_call_id_that_comes_twice_with_other_arguments_is_refused() -> None:
    with upstreams() as up:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
            box = tools.box
            with box.running(box.call("docs_search", "c1", '{"q": "a"}')):
                pass
            with pytest.raises(TruenameError) as caught, box.running(box.call("docs_search", "c1", '{"q": "b"}')):
                raise AssertionError
    assert caught.value.code == "call_reused"


async def test_what_a_server_lists_twice_is_there_once_and_reported() -> None:
    with upstreams(docs=["search", "search"]) as up:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=ALLOW)
    assert [tool.name for tool in tools.tools] == ["docs_search"]
    assert [notice.code for notice in tools.box.names.catalog.notices] == ["duplicate"]


@pytest.mark.parametrize("policy", [ALLOW, Policy()], ids=["allowed", "asked"])
@pytest.mark.parametrize("arguments", ["[]", "{", "1", "null", '{"q": 1, "q": 2}', '{"q": NaN}'])
async def test_arguments_that_are_none_run_nothing_and_are_named(arguments: str, policy: Policy) -> None:
    with upstreams() as up:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers, policy=policy)
            asked = function_call("docs_search", arguments, call_id="c1")
            clerk = Agent(name="clerk", model=ScriptedModel([[asked], [assistant_message("done")]]), tools=tools.tools)
            ended = await Runner.run(clerk, "go", run_config=tools.run_config())
            if ended.interruptions:
                # The SDK asks about what it cannot read without asking the tool.
                with pytest.raises(InvalidCall, match="arguments"):
                    tools.approve(ended.to_state(), ended.interruptions[0])
            else:
                assert any("arguments" in str(item.get("output")) for item in ended.to_input_list())
        assert up.ran == []


async def test_a_streamed_run_waits_and_goes_on_too() -> None:
    with upstreams() as up, model(call_one("crm", "fs.list")) as server:
        async with connected(up.urls) as servers:
            tools = await AgentTools.of(servers)
            clerk = agent(server, tools=tools.tools)
            streamed = Runner.run_streamed(clerk, "go", run_config=tools.run_config())
            _ = [event async for event in streamed.stream_events()]
            state = streamed.to_state()
            tools.approve(state, streamed.interruptions[0])
            resumed = Runner.run_streamed(clerk, state, run_config=tools.run_config())
            _ = [event async for event in resumed.stream_events()]
        assert resumed.final_output == "all done"
        assert up.ran == [("crm", "fs.list")]


async def test_what_one_user_allows_for_ever_is_not_allowed_for_another() -> None:
    with upstreams() as up:
        async with connected(up.urls) as servers:
            ada = await AgentTools.of(servers, caller=Caller(principal="ada"))
    bob = ada.for_caller(Caller(principal="bob"))
    ada.box.approve(ada.box.call("docs_search", "c1", {}), "always")

    outcomes = [tools.box.decide(tools.box.call("docs_search", "c2", {})).outcome for tools in (ada, bob)]
    assert outcomes == ["allow", "ask"]
