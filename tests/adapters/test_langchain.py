"""LangChain, as installed, over two real servers and a scripted model."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from langchain_core.tools import StructuredTool, tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from mcp import Client, MCPError
from pydantic import ValidationError

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
from truename import Ledger
from truename.adapters.langchain import NamedTools
from truename.adapters.toolbox import ToolboxNames
from truename.errors import DuplicateTool
from truename.policy import Approvals, Caller, CallRule, Policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from langchain_core.tools import BaseTool

    from lab.model import ModelServer

pytestmark = pytest.mark.anyio
ALLOW = Policy(default="allow")
THREAD: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": 100}
GO: Any = {"messages": [("user", "go")]}


@asynccontextmanager
async def loaded(urls: Mapping[str, str]) -> AsyncIterator[dict[str, list[BaseTool]]]:
    """Turn the servers' tools into LangChain's, as its package for MCP does: a protocol error is an exception."""
    async with AsyncExitStack() as stack:
        yield {key: await _tools(await stack.enter_async_context(Client(url))) for key, url in urls.items()}


async def _tools(client: Client) -> list[BaseTool]:
    return [
        StructuredTool(
            name=one.name,
            description=one.description or "",
            args_schema=one.input_schema,
            coroutine=_calling(client, one.name),
        )
        for one in (await client.list_tools()).tools
    ]


def _calling(client: Client, name: str) -> Any:
    async def call(**arguments: Any) -> str:
        answer = await client.call_tool(name, arguments)
        return "\n".join(getattr(block, "text", "") for block in answer.content)

    return call


def agent(server: ModelServer, tools: Any = (), *middleware: Any, **parts: Any) -> Any:
    chat = ChatOpenAI(model="fake-model", base_url=f"{server.url}/v1", api_key="lab", max_retries=0)  # type: ignore[arg-type]
    return create_agent(chat, [*tools], middleware=middleware, **parts)


def in_order(*names: str) -> Any:
    return lambda _: [Step(name=name) for name in names]


# Without


async def test_without_truename_the_last_of_two_tools_with_one_name_stays_in_silence() -> None:
    with upstreams(docs=["search"], crm=["search"]) as up, model(call_every) as server:
        async with loaded(up.urls) as tools:
            await agent(server, [*tools["docs"], *tools["crm"]]).ainvoke(GO, THREAD)
        assert len({key for key, _ in up.ran}) == 1


async def test_without_truename_names_are_sent_that_the_provider_refuses() -> None:
    with upstreams(docs=CLASHING) as up, model(call_every) as server:
        async with loaded(up.urls) as tools:
            await agent(server, tools["docs"]).ainvoke(GO, THREAD)
        assert illegal([*shown(server)]) == [name for name in CLASHING if name != "search"]


async def test_without_truename_a_protocol_error_ends_the_run() -> None:
    with upstreams(docs=["err_jsonrpc"]) as up, model(call_every) as server:
        async with loaded(up.urls) as tools:
            with pytest.raises(MCPError, match="JSONRPC-WORDING"):
                await agent(server, tools["docs"]).ainvoke(GO, THREAD)


async def test_without_truename_an_old_name_is_sent_to_a_server_that_renamed_the_tool_and_ends_the_run() -> None:
    with upstreams(docs=["get_weather", "rename_now"]) as up, model(in_order("rename_now", "get_weather")) as server:
        async with loaded(up.urls) as tools:
            with pytest.raises(MCPError):
                await agent(server, tools["docs"]).ainvoke(GO, THREAD)


# With


async def test_an_old_name_in_mid_run_is_answered_with_a_text_and_the_run_goes_on() -> None:
    plan = in_order("docs_rename_now", "docs_get_weather")
    with upstreams(docs=["get_weather", "rename_now"]) as up, model(plan) as server:
        async with loaded(up.urls) as tools:
            ended = await agent(server, (), NamedTools(tools, policy=ALLOW)).ainvoke(GO, THREAD)
        assert ended["messages"][-1].content == "all done"
        assert len(results(server)) == 2


async def test_an_old_name_reaches_the_renamed_tool_where_the_ledger_redirects_it() -> None:
    ledger = Ledger.memory()
    naming = ToolboxNames(ledger=ledger)
    naming.table({"docs": [{"name": "search"}]})
    ledger.redirect("docs_search", "docs/search_v2")
    with upstreams(docs=["search_v2"]) as up, model(call_named("docs_search")) as server:
        async with loaded(up.urls) as tools:
            await agent(server, (), NamedTools(tools, policy=ALLOW, naming=naming)).ainvoke(GO, THREAD)
        assert up.ran == [("docs", "search_v2")]


async def test_every_tool_is_shown_under_a_legal_name_and_reached_by_it() -> None:
    with upstreams() as up, model(call_every, batch=4) as server:
        async with loaded(up.urls) as tools:
            ended = await agent(server, (), NamedTools(tools, policy=ALLOW)).ainvoke(GO, THREAD)
        assert ended["messages"][-1].content == "all done"
        assert set(shown(server).values()) == EVERY
        assert illegal([*shown(server)], *PROVIDERS) == []
        assert sorted(up.ran) == sorted(EVERY)
        assert all("UPSTREAM-OK" in text for text in results(server))


async def test_the_text_of_a_protocol_error_reaches_the_model_and_the_run_goes_on() -> None:
    with upstreams(docs=["err_jsonrpc"]) as up, model(call_every) as server:
        async with loaded(up.urls) as tools:
            ended = await agent(server, (), NamedTools(tools, policy=ALLOW)).ainvoke(GO, THREAD)
        assert ended["messages"][-1].content == "all done"
        assert "JSONRPC-WORDING" in results(server)[0]


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("docs_serch", "Did you mean 'docs_search'"),
        ("search", "is not unique"),
        ("crm/getUserByID", "UPSTREAM-OK getUserByID"),
    ],
)
async def test_a_name_that_is_not_shown_leads_to_its_tool_or_to_a_text_that_helps(name: str, answer: str) -> None:
    with upstreams() as up, model(call_named(name)) as server:
        async with loaded(up.urls) as tools:
            await agent(server, (), NamedTools(tools, policy=ALLOW)).ainvoke(GO, THREAD)
        assert answer in results(server)[0]


async def test_what_a_rule_denies_is_not_shown_and_not_called_by_another_name() -> None:
    policy = Policy(rules=[CallRule(name="no crm", outcome="deny", tools=("crm/*",))], default="allow")
    with upstreams() as up, model(call_named("crm_search")) as server:
        async with loaded(up.urls) as tools:
            await agent(server, (), NamedTools(tools, policy=policy)).ainvoke(GO, THREAD)
        assert {key for key, _ in shown(server).values()} == {"docs"}
        assert "does not exist" in results(server)[0]
        assert up.ran == []


async def test_a_call_interrupts_the_run_is_approved_resumed_and_not_run_again() -> None:
    with upstreams() as up, model(call_one("crm", "has space")) as server:
        async with loaded(up.urls) as tools:
            clerk = agent(server, (), NamedTools(tools), checkpointer=InMemorySaver())
            paused = await clerk.ainvoke(GO, THREAD)
            (pause,) = paused["__interrupt__"]
            assert (pause.value["type"], pause.value["server"]) == ("tool_approval", "crm")
            assert pause.value["tool"].startswith("crm@1/has-space")
            assert up.ran == []
            before = await clerk.aget_state(THREAD)

            ended = await clerk.ainvoke(Command(resume={pause.id: {"type": "approve", "by": "ada"}}), THREAD)
            assert ended["messages"][-1].content == "all done"
            assert up.ran == [("crm", "has space")]

            # The same pause answered once more, from its checkpoint: the call was run, and is not run again.
            await clerk.ainvoke(Command(resume={pause.id: {"type": "approve"}}), before.config)
            assert "was already started" in results(server)[-1]
            assert up.ran == [("crm", "has space")]


async def test_a_rejected_call_is_not_run_and_the_model_reads_the_message() -> None:
    with upstreams() as up, model(call_one("crm", "search")) as server:
        async with loaded(up.urls) as tools:
            clerk = agent(server, (), NamedTools(tools), checkpointer=InMemorySaver())
            (pause,) = (await clerk.ainvoke(GO, THREAD))["__interrupt__"]
            answer = {"type": "reject", "message": "not on Sundays"}
            await clerk.ainvoke(Command(resume={pause.id: answer}), THREAD)
        assert "not on Sundays" in results(server)[0]
        assert up.ran == []


@pytest.mark.parametrize(
    ("answer", "field"),
    [
        (True, ()),
        ({}, ("type",)),
        ({"type": "edit"}, ("type",)),
        ({"type": "approve", "scope": 1}, ("scope",)),
        ({"type": "approve", "scope": "forever"}, ("scope",)),
        ({"type": "approve", "scope": "session"}, ("scope",)),
        ({"type": "approve", "args": {}}, ("args",)),
        ({"type": "reject", "message": "x" * 5000}, ("message",)),
    ],
)
async def test_an_answer_that_is_none_is_an_error_and_the_run_still_waits(answer: Any, field: tuple[str, ...]) -> None:
    with upstreams() as up, model(call_one("crm", "search")) as server:
        async with loaded(up.urls) as tools:
            clerk = agent(server, (), NamedTools(tools), checkpointer=InMemorySaver())
            (pause,) = (await clerk.ainvoke(GO, THREAD))["__interrupt__"]
            with pytest.raises(ValidationError) as caught:
                await clerk.ainvoke(Command(resume={pause.id: answer}), THREAD)
            assert [error["loc"] for error in caught.value.errors()] == [field]
            assert up.ran == []
            await clerk.ainvoke(Command(resume={pause.id: {"type": "approve"}}), THREAD)
            assert up.ran == [("crm", "search")]


async def test_several_calls_wait_and_are_answered_each_by_itself() -> None:
    def both(offered: Any) -> Any:
        return [*call_one("crm", "search")(offered), *call_one("docs", "search")(offered)]

    with upstreams() as up, model(both, batch=2) as server:
        async with loaded(up.urls) as tools:
            clerk = agent(server, (), NamedTools(tools), checkpointer=InMemorySaver())
            pauses = (await clerk.ainvoke(GO, THREAD))["__interrupt__"]
            answers = {p.id: {"type": "approve" if p.value["server"] == "crm" else "reject"} for p in pauses}
            await clerk.ainvoke(Command(resume=answers), THREAD)
        assert up.ran == [("crm", "search")]


async def test_an_approval_for_ever_is_not_inherited_by_another_server() -> None:
    policy = Policy(approvals=Approvals())
    with upstreams(docs=["search"], evil=["search"]) as up:
        with model(call_one("docs", "search")) as server:
            async with loaded({"docs": up.urls["docs"]}) as tools:
                named = NamedTools(tools, policy=policy, caller=Caller(session="1"))
                clerk = agent(server, (), named, checkpointer=InMemorySaver())
                (pause,) = (await clerk.ainvoke(GO, THREAD))["__interrupt__"]
                await clerk.ainvoke(Command(resume={pause.id: {"type": "approve", "scope": "always"}}), THREAD)
        for key in ("evil", "docs"):
            with model(call_one("evil", "search")) as server:
                async with loaded({key: up.urls["evil"]}) as tools:
                    named = NamedTools(tools, policy=policy, caller=Caller(session=key))
                    again = await agent(server, (), named, checkpointer=InMemorySaver()).ainvoke(GO, THREAD)
            assert len(again["__interrupt__"]) == 1
        assert up.ran == [("docs", "search")]


def test_without_asyncio_tools_are_called_too_and_others_of_the_agent_are_left_alone() -> None:
    @tool
    def search(q: str) -> str:
        """[lab:1] Search the desk."""
        return f"desk {q}"

    @tool
    def other(q: str) -> str:
        """[lab:2] Something else."""
        return f"other {q}"

    with model(call_every, batch=2) as server:
        clerk = agent(server, [other], NamedTools({"desk": [search]}, policy=ALLOW))
        clerk.invoke(GO, THREAD)
        assert {tool.name for tool in server.requests[0].turn.tools} == {"desk_search", "other"}
        assert sorted(text.split()[0] for text in results(server)) == ["desk", "other"]


def test_a_tool_of_the_agent_with_the_name_of_a_servers_tool_is_an_error_and_no_tool_is_lost_in_silence() -> None:
    @tool
    def search(q: str) -> str:
        """[lab:1] Search the desk."""
        return f"desk {q}"

    @tool("desk_search")
    def own(q: str) -> str:
        """[lab:2] Something else."""
        return f"own {q}"

    with model(call_every, batch=1) as server:
        clerk = agent(server, [own], NamedTools({"desk": [search]}, policy=ALLOW))
        with pytest.raises(DuplicateTool, match="desk_search"):
            clerk.invoke(GO, THREAD)
        assert server.requests == []


def test_another_middleware_may_change_the_tools_that_are_shown() -> None:
    @tool
    def search(q: str) -> str:
        """[lab:1] Search the desk."""
        return f"desk {q}"

    @wrap_model_call
    def tagging(request: Any, handler: Any) -> Any:
        return handler(request.override(tools=[one.model_copy(update={"tags": ["x"]}) for one in request.tools]))

    with model(call_every, batch=1) as server:
        clerk = agent(server, [], tagging, NamedTools({"desk": [search]}, policy=ALLOW))
        clerk.invoke(GO, THREAD)
        assert [text.split()[0] for text in results(server)] == ["desk"]


async def test_what_one_user_allows_for_ever_is_not_allowed_for_another_and_each_sees_his_own() -> None:
    def caller(runtime: Any) -> Caller:
        return Caller(principal=runtime.context, session=runtime.context)

    rule = CallRule(name="no crm", outcome="deny", tools=("crm/*",), principals=("bob",))
    policy = Policy(rules=[rule], approvals=Approvals())
    seen = {}
    with upstreams(docs=["search"], crm=["search"]) as up:
        async with loaded(up.urls) as tools:
            named = NamedTools(tools, policy=policy, caller=caller)
            for user in ("ada", "bob"):
                with model(call_every) as server:
                    clerk = agent(server, (), named, checkpointer=InMemorySaver())
                    paused = await clerk.ainvoke(GO, THREAD, context=user)
                    (pause,) = paused["__interrupt__"]
                    answer = {"type": "approve" if user == "ada" else "reject", "scope": "always"}
                    await clerk.ainvoke(Command(resume={pause.id: answer}), THREAD, context=user)
                    seen[user] = {tool.name for tool in server.requests[0].turn.tools}
    assert seen == {"ada": {"docs_search", "crm_search"}, "bob": {"docs_search"}}
    assert up.ran == [("docs", "search")]


@pytest.mark.parametrize(("name", "answer"), [("desk_fail", "no paper"), ("desk_fall", "Did you mean 'desk_fail'?")])
def test_without_asyncio_errors_reach_the_model_too(name: str, answer: str) -> None:
    @tool
    def fail(q: str) -> str:
        """[lab:1] Fail."""
        message = f"no paper {q}"
        raise OSError(message)

    with model(call_named(name)) as server:
        agent(server, (), NamedTools({"desk": [fail]}, policy=ALLOW)).invoke(GO, THREAD)
        assert answer in results(server)[0]


def test_without_asyncio_a_run_waits_and_goes_on_too() -> None:
    @tool
    def search(q: str) -> str:
        """[lab:1] Search the desk."""
        return f"desk {q}"

    with model(call_every) as server:
        clerk = agent(server, (), NamedTools({"desk": [search]}), checkpointer=InMemorySaver())
        (pause,) = clerk.invoke(GO, THREAD)["__interrupt__"]
        clerk.invoke(Command(resume={pause.id: {"type": "approve"}}), THREAD)
        assert results(server)[0].startswith("desk ")
