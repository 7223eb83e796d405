"""Pydantic AI, as installed, over two real servers and a scripted model."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ModelRetry,
    RunContext,
    Tool,
    ToolApproved,
    ToolCallPart,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.toolsets import FunctionToolset

from lab.model import Step
from tests.adapters.offline import (
    CLASHING,
    EVERY,
    PROVIDERS,
    call_every,
    call_one,
    illegal,
    model,
    results,
    shown,
    upstreams,
)
from truename.adapters.pydantic_ai import NamedToolset
from truename.policy import Approvals, Caller, CallRule, Policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from lab.model import ModelServer, Offered

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
ALLOW = Policy(default="allow")
OPENED: list[OpenAIProvider] = []


@pytest.fixture(autouse=True)
async def _clean(anyio_backend: str) -> AsyncIterator[None]:
    yield
    while OPENED:
        await OPENED.pop().client.close()


def agent(server: ModelServer, *toolsets: Any) -> Agent[Any, Any]:
    provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="lab")
    OPENED.append(provider)
    return Agent(
        OpenAIChatModel("fake-model", provider=provider), toolsets=toolsets, output_type=[str, DeferredToolRequests]
    )


def toolsets(urls: Mapping[str, str]) -> dict[str, MCPToolset[Any]]:
    return {key: MCPToolset(url) for key, url in urls.items()}


# Without


async def test_without_truename_two_servers_with_one_tool_name_end_the_run() -> None:
    with upstreams() as up, model(call_every) as server:
        with pytest.raises(UserError, match="conflicts with existing tool"):
            await agent(server, *toolsets(up.urls).values()).run("go")
        assert up.ran == []


@pytest.mark.parametrize("prefix", [False, True])
async def test_without_truename_names_are_sent_that_the_provider_refuses(prefix: bool) -> None:
    with upstreams(docs=CLASHING) as up, model(call_every) as server:
        docs = toolsets(up.urls)["docs"]
        await agent(server, docs.prefixed("docs") if prefix else docs).run("go")
        assert len(illegal([*shown(server)])) == len(CLASHING) - 1


async def test_without_truename_two_prefixes_can_make_one_name() -> None:
    with upstreams(docs=["b_c"], crm=["c"]) as up, model(call_every) as server:
        tools = toolsets(up.urls)
        with pytest.raises(UserError, match="'a_b_c'"):
            await agent(server, tools["docs"].prefixed("a"), tools["crm"].prefixed("a_b")).run("go")


async def test_without_truename_an_approval_that_is_sent_twice_runs_the_call_twice_with_any_arguments() -> None:
    with upstreams(docs=["search"]) as up, model(call_every) as server:
        clerk = agent(server, toolsets(up.urls)["docs"].approval_required())
        first = await clerk.run("go")
        (part,) = first.output.approvals
        for answer in (True, ToolApproved(override_args={"q": "other"})):
            answers = DeferredToolResults(approvals={part.tool_call_id: answer})
            await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert up.ran == [("docs", "search")] * 2


# With


async def test_servers_whose_keys_and_names_read_alike_are_told_apart() -> None:
    with upstreams(docs=["b_c"], crm=["c"]) as up, model(call_every_name) as server:
        tools = toolsets(up.urls)
        await agent(server, NamedToolset.of({"a": tools["docs"], "a_b": tools["crm"]}, policy=ALLOW)).run("go")
        assert sorted(up.ran) == [("crm", "c"), ("docs", "b_c")]


def call_every_name(offered: Sequence[Offered]) -> list[Step]:
    return [Step(name=tool.name) for tool in offered]


async def test_every_tool_is_shown_under_a_legal_name_and_reached_by_it() -> None:
    with upstreams() as up, model(call_every, batch=4) as server:
        ended = await agent(server, NamedToolset.of(toolsets(up.urls), policy=ALLOW)).run("go")
        assert ended.output == "all done"
        assert set(shown(server).values()) == EVERY
        assert illegal([*shown(server)], *PROVIDERS) == []
        assert sorted(up.ran) == sorted(EVERY)
        assert all("UPSTREAM-OK" in text for text in results(server))


async def test_a_tool_that_a_rule_denies_is_not_shown_and_a_check_is_told() -> None:
    def never(_: object) -> str:
        return "deny"

    rules = [CallRule(name="no crm", outcome="deny", tools=("crm/*",))]
    policy = Policy(rules=rules, checks=[never], default="allow")  # type: ignore[list-item]
    with upstreams() as up, model(call_one("docs", "search")) as server:
        await agent(server, NamedToolset.of(toolsets(up.urls), policy=policy)).run("go")
        assert {key for key, _ in shown(server).values()} == {"docs"}
        assert "not allowed here (rule never)" in results(server)[0]
        assert up.ran == []


async def test_a_call_is_deferred_approved_resumed_and_not_run_again() -> None:
    with upstreams() as up, model(call_one("crm", "天気取得")) as server:
        named = NamedToolset.of(toolsets(up.urls))
        clerk = agent(server, named)
        first = await clerk.run("go")
        (part,) = first.output.approvals
        assert first.output.metadata[part.tool_call_id]["tool"].startswith("crm@1/")
        assert up.ran == []

        answers = DeferredToolResults(approvals={part.tool_call_id: named.approve(part, by="ada")})
        ended = await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert ended.output == "all done"
        assert up.ran == [("crm", "天気取得")]

        ended = await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert "was already started" in results(server)[-1]
        assert up.ran == [("crm", "天気取得")]


async def test_a_rejected_call_is_not_run_and_the_model_reads_the_message() -> None:
    with upstreams() as up, model(call_one("crm", "search")) as server:
        named = NamedToolset.of(toolsets(up.urls))
        clerk = agent(server, named)
        first = await clerk.run("go")
        (part,) = first.output.approvals
        answers = DeferredToolResults(approvals={part.tool_call_id: named.reject(part, message="not on Sundays")})
        await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert "not on Sundays" in results(server)[0]
        assert up.ran == []


@pytest.mark.parametrize("answer", [True, ToolApproved(override_args={"q": "other"})])
async def test_an_approval_that_only_the_framework_was_told_runs_nothing(answer: Any) -> None:
    with upstreams() as up, model(call_one("crm", "search")) as server:
        clerk = agent(server, NamedToolset.of(toolsets(up.urls)))
        first = await clerk.run("go")
        answers = DeferredToolResults(approvals={part.tool_call_id: answer for part in first.output.approvals})
        again = await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert isinstance(again.output, DeferredToolRequests)
        assert up.ran == []


async def test_arguments_that_were_changed_after_the_approval_are_not_run() -> None:
    with upstreams() as up, model(call_one("crm", "search")) as server:
        named = NamedToolset.of(toolsets(up.urls))
        clerk = agent(server, named)
        first = await clerk.run("go")
        (part,) = first.output.approvals
        named.approve(part)
        answers = DeferredToolResults(approvals={part.tool_call_id: ToolApproved(override_args={"q": "other"})})
        await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert "was already used for another call" in results(server)[0]
        assert up.ran == []


async def test_an_approval_for_ever_is_not_inherited_by_another_server() -> None:
    policy = Policy(approvals=Approvals())
    with upstreams(docs=["search"], evil=["search"]) as up:
        with model(call_one("docs", "search")) as server:
            named = NamedToolset.of(toolsets({"docs": up.urls["docs"]}), policy=policy, caller=Caller(session="1"))
            clerk = agent(server, named)
            first = await clerk.run("go")
            (part,) = first.output.approvals
            answers = DeferredToolResults(approvals={part.tool_call_id: named.approve(part, "always")})
            await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        for key in ("evil", "docs"):
            with model(call_one("evil", "search")) as server:
                other = NamedToolset.of(toolsets({key: up.urls["evil"]}), policy=policy, caller=Caller(session=key))
                again = await agent(server, other).run("go")
            assert isinstance(again.output, DeferredToolRequests)
        assert up.ran == [("docs", "search")]


async def test_tools_of_python_take_part_and_have_their_arguments_checked_before_anybody_is_asked() -> None:
    days: list[dt.date] = []

    def book(day: dt.date) -> str:
        """[lab:1] Book a day."""
        days.append(day)
        return f"booked {day:%d}"

    def plan(offered: Sequence[Offered]) -> list[Step]:
        (tool,) = offered
        return [Step(name=tool.name, arguments={"day": day}) for day in ("soon", "2026-11-22")]

    with model(plan) as server:
        named = NamedToolset.of({"desk": FunctionToolset([book])})
        clerk = agent(server, named)
        first = await clerk.run("go")
        assert "Input should be a valid date" in results(server)[0]
        (part,) = first.output.approvals
        answers = DeferredToolResults(approvals={part.tool_call_id: named.approve(part)})
        await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers)
        assert days == [dt.date(2026, 11, 22)]
        assert results(server)[-1] == "booked 22"


def test_a_decision_before_any_list_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match="no run has listed the tools yet"):
        NamedToolset.of({}).approve(ToolCallPart("docs_search", {}, "c1"))


async def test_what_one_user_allows_for_ever_is_not_allowed_for_another() -> None:
    def caller(ctx: RunContext[Any]) -> Caller:
        return Caller(principal=ctx.deps, session=ctx.deps)

    with upstreams(docs=["search"]) as up, model(call_one("docs", "search", 2)) as server:
        named = NamedToolset.of(toolsets(up.urls), caller=caller)
        clerk = agent(server, named)
        first = await clerk.run("go", deps="ada")
        (part,) = first.output.approvals
        with pytest.raises(RuntimeError, match="pass `caller`"):
            named.approve(part)
        approved = named.approve(part, "always", caller=Caller(principal="ada", session="ada"))
        answers = DeferredToolResults(approvals={part.tool_call_id: approved})
        ended = await clerk.run(message_history=first.all_messages(), deferred_tool_results=answers, deps="ada")
        assert ended.output == "all done"
        assert len(up.ran) == 2

    with upstreams(docs=["search"]) as up, model(call_one("docs", "search")) as server:
        other = NamedToolset.of(toolsets(up.urls), caller=caller, policy=named.policy)
        again = await agent(server, other).run("go", deps="bob")
        assert isinstance(again.output, DeferredToolRequests)
        assert up.ran == []


async def test_instructions_of_the_toolsets_inside_reach_the_model() -> None:
    def search(q: str = "") -> str:
        """[lab:1] Search."""
        return q

    with model(call_every) as server:
        inner = FunctionToolset[Any]([search], instructions="Search before you answer.")
        await agent(server, NamedToolset.of({"docs": inner}, policy=ALLOW)).run("go")
        assert "Search before you answer." in server.requests[0].turn.text


async def test_a_tools_own_check_of_its_arguments_comes_before_the_question() -> None:
    async def weekday(ctx: RunContext[Any], day: str) -> None:
        if day == "Sunday":
            raise ModelRetry("not on Sundays")

    def book(ctx: RunContext[Any], day: str) -> str:
        """[lab:1] Book a day."""
        return day

    def plan(offered: Sequence[Offered]) -> list[Step]:
        return [Step(name=offered[0].name, arguments={"day": day}) for day in ("Sunday", "Monday")]

    with model(plan) as server:
        tools = FunctionToolset[Any]([Tool(book, args_validator=weekday)])
        ended = await agent(server, NamedToolset.of({"desk": tools})).run("go")
        assert "not on Sundays" in results(server)[0]
        assert [part.args for part in ended.output.approvals] == ['{"day": "Monday"}']
