"""One session, one answer: what is not for it is neither listed nor run, in the toolbox and in every framework."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from fastmcp import Client, FastMCP
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from mcp.types import CallToolResult, TextContent
from mcp.types import Tool as McpTool
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from tests.adapters.offline import call_named, model, results
from truename import Catalog, Ledger, project
from truename.adapters import openai_chat
from truename.adapters.fastmcp import mount, register
from truename.adapters.langchain import NamedTools
from truename.adapters.layout import NamespaceLayout
from truename.adapters.openai_agents import AgentTools
from truename.adapters.pydantic_ai import NamedToolset
from truename.adapters.toolbox import Toolbox, ToolboxNames, error_text
from truename.conventions import declared, metadata_of, tool
from truename.errors import DuplicateTool, NotAllowed, UnknownTool
from truename.migration.recordings import CallRecorder, RecordedCall, read_recording
from truename.policy import Caller, CallRule, Exposure, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from truename.conventions import Declaration

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("closing")]
RULES = [CallRule(name="hidden", outcome="deny", tools=("phone/wipe",))]
POLICY = Policy(rules=RULES, default="allow", exposure=Exposure())
ANDROID = Caller(principal="ada", session="s", platform="android")
# The names that this session gets, and how each of the others is refused.
SHOWN = ["phone_tap", "phone_swipe"]
REFUSED = {"phone_clear": "rule platform: it works on ios, and this session is on android", "phone_old": "not_for_llm"}


class Phone:
    """Tools of a phone, all of one implementation, which notes what was run."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.tools: Sequence[Declaration] = declared(_phone)

    def run(self, name: str) -> str:
        self.ran.append(name)
        return f"{name} done"

    @property
    def listed(self) -> dict[str, list[Any]]:
        return {"phone": [dict(one.definition) for one in self.tools]}

    def server(self) -> FastMCP[Any]:
        app = FastMCP[Any]("phone")
        for one in self.tools:
            app.tool(self._function(one.name), name=one.name, meta=one.definition.get("_meta"))
        return app

    def _function(self, name: str) -> Any:
        def run() -> str:
            return self.run(name)

        return run


@tool("tap")
@tool("clear", platforms=["IOS"])
@tool("old", is_for_llm=False)
@tool("wipe")
@tool("swipe", platforms=["ios", "android"])
def _phone() -> None: ...


@pytest.fixture
def phone() -> Phone:
    return Phone()


def test_the_toolbox_offers_and_runs_what_is_for_the_session(phone: Phone) -> None:
    box = Toolbox(names=ToolboxNames().table(phone.listed), policy=POLICY, caller=ANDROID)

    assert [offer.key.name for offer in box.offered] == SHOWN
    for name, why in REFUSED.items():
        with pytest.raises(NotAllowed) as caught, box.running(box.call(name, f"c-{name}", {})):
            phone.run(name)
        assert why in error_text(caught.value)
    with pytest.raises(UnknownTool):
        box.call("phone_wipe", "c", {})
    assert phone.ran == []
    ids = {str(name): id for id, name in box.names.items()}
    assert box.refused(ids["phone_tap"]) is None
    assert isinstance(box.refused(ids["phone_wipe"]), UnknownTool)
    assert isinstance(box.refused(ids["phone_old"]), NotAllowed)


def test_what_was_redirected_stays_kept_from_models(phone: Phone) -> None:
    ledger = Ledger.memory()
    policy = Policy(default="allow", exposure=Exposure(metadata={"phone/press": {"is_for_llm": False}}))
    ledger.redirect("phone@1/press@1", "phone@1/tap@1")
    box = Toolbox(names=ToolboxNames(ledger=ledger).table(phone.listed), policy=policy, caller=ANDROID)

    assert [offer.key.name for offer in box.offered] == ["phone_wipe", "phone_swipe"]


def test_a_layout_for_a_model_api_has_what_is_for_the_session(phone: Phone) -> None:
    names = project(Catalog.from_mcp(phone.listed), "openai")
    layout = NamespaceLayout.of(names).visible_to(POLICY, ANDROID)
    deferred = NamespaceLayout.of(names).deferring().visible_to(POLICY, ANDROID)

    assert [one["function"]["name"] for one in openai_chat.tools(layout)] == SHOWN
    assert deferred.deferred == set(deferred.keys)
    asked = {"id": "c", "type": "function", "function": {"name": "phone_clear", "arguments": "{}"}}
    answer = {"choices": [{"message": {"role": "assistant", "tool_calls": [asked]}, "finish_reason": "tool_calls"}]}
    (call,) = openai_chat.calls(answer, layout, ANDROID)
    with pytest.raises(NotAllowed):
        POLICY.enforce(call)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_fastmcp_lists_and_runs_what_is_for_the_session(phone: Phone, mode: Any) -> None:
    app = FastMCP[Any]("all")
    mount(app, {"phone": phone.server()}, policy=POLICY, caller=ANDROID)
    async with Client(app, mode=mode) as client:
        assert [one.name for one in await client.list_tools()] == SHOWN
        for name, why in REFUSED.items():
            answer = await client.call_tool(name, raise_on_error=False)
            assert why in answer.content[0].text
        assert not (await client.call_tool("phone_tap")).is_error
    assert phone.ran == ["tap"]


async def test_fastmcp_asks_each_request_for_its_session(phone: Phone) -> None:
    app, now = FastMCP[Any]("all"), [ANDROID]
    mount(app, {"phone": phone.server()}, policy=POLICY, caller=lambda: now[0])
    async with Client(app) as client:
        before = [one.name for one in await client.list_tools()]
        now[0] = Caller(platform="ios", origin="replay")
        after = [one.name for one in await client.list_tools()]
        await client.call_tool("phone_old")
    assert (before, after) == (SHOWN, ["phone_tap", "phone_clear", "phone_old", "phone_swipe"])
    assert phone.ran == ["old"]


def _langchain(phone: Phone, one: Declaration) -> StructuredTool:
    # As LangChain's package for MCP keeps it; by the mark the scripted model knows a tool.
    meta = {"_meta": one.definition["_meta"]} if "_meta" in one.definition else None
    run, mark = phone._function(one.name), f"[lab:1] {one.name}"
    return StructuredTool.from_function(run, name=one.name, description=mark, metadata=meta)


@pytest.mark.parametrize(("name", "why"), REFUSED.items())
async def test_langchain_lists_and_runs_what_is_for_the_session(phone: Phone, name: str, why: str) -> None:
    tools = [_langchain(phone, one) for one in phone.tools]
    named = NamedTools({"phone": tools}, policy=POLICY, caller=ANDROID)
    with model(call_named(name)) as server:
        chat = ChatOpenAI(model="fake-model", base_url=f"{server.url}/v1", api_key="lab", max_retries=0)  # type: ignore[arg-type]
        go: Any = {"messages": [("user", "go")]}
        await create_agent(chat, [], middleware=[named]).ainvoke(go)
        assert [one.name for one in server.requests[0].turn.tools] == SHOWN
        assert why in results(server)[0]
    assert phone.ran == []


async def test_pydantic_ai_lists_what_is_for_the_session_and_runs_nothing_else(phone: Phone) -> None:
    seen: list[list[str]] = []

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        seen.append([one.name for one in info.function_tools])
        return ModelResponse([ToolCallPart("phone_clear", {})] if len(seen) == 1 else [TextPart("done")])

    toolset = NamedToolset.of({"phone": MCPToolset(phone.server())}, policy=POLICY, caller=ANDROID)
    await PydanticAgent(FunctionModel(answer), toolsets=[toolset]).run("go")

    assert seen[0] == SHOWN
    assert phone.ran == []


class _Server:
    """As much of an MCP server of the SDK as the adapter asks for."""

    def __init__(self, phone: Phone) -> None:
        self._phone = phone
        self.name = "phone"

    async def list_tools(self) -> list[McpTool]:
        return [McpTool.model_validate(one.definition) for one in self._phone.tools]

    async def call_tool(self, name: str, *_: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=self._phone.run(name))])


@pytest.mark.parametrize(("name", "why"), REFUSED.items())
async def test_the_agents_sdk_lists_and_runs_what_is_for_the_session(phone: Phone, name: str, why: str) -> None:
    server: Any = _Server(phone)
    tools = await AgentTools.of({"phone": server}, policy=POLICY, caller=ANDROID)
    asked = function_call(name, "{}", call_id="c1")
    clerk = Agent(name="clerk", model=ScriptedModel([[asked], [assistant_message("done")]]), tools=tools.tools)
    ended = await Runner.run(clerk, "go", run_config=tools.run_config())

    assert [one.name for one in tools.tools] == SHOWN
    assert why in str([item.get("output") for item in ended.to_input_list()])
    assert phone.ran == []


async def test_declared_tools_are_registered_with_their_metadata_or_none_is() -> None:
    app = FastMCP[Any]("phone")
    register(app, _phone)
    listed = {one.name: one for one in await app.list_tools()}

    assert list(listed) == [one.name for one in declared(_phone)]
    assert {name: metadata_of(one.to_mcp_tool().model_dump(by_alias=True)) for name, one in listed.items()} == {
        one.name: one.metadata for one in declared(_phone)
    }

    @tool("TAP")
    def other() -> None: ...

    empty = FastMCP[Any]("empty")
    with pytest.raises(DuplicateTool):
        register(empty, _phone, other)
    assert await empty.list_tools() == []


async def test_what_a_framework_runs_is_recorded_and_what_it_refuses_is_not(phone: Phone, tmp_path: Path) -> None:
    recorder = CallRecorder(tmp_path / "calls.jsonl")
    app = FastMCP[Any]("all")
    policy = Policy(rules=RULES, default="allow", exposure=Exposure(), recorder=recorder.write)
    mount(app, {"phone": phone.server()}, policy=policy, caller=ANDROID)
    async with Client(app) as client:
        for name in ("phone_tap", "phone_clear", "phone_wipe"):
            await client.call_tool(name, raise_on_error=False)

    assert [one.name for one in read_recording(tmp_path / "calls.jsonl") if isinstance(one, RecordedCall)] == [
        "phone_tap"
    ]


def _redirected(phone: Phone) -> ToolboxNames:
    """Return a naming under which the phone's "press" became "tap", listed until the end of March."""
    naming = ToolboxNames(ledger=Ledger.memory())
    naming.table({"phone": [{"name": "press"}, *phone.listed["phone"]]})
    assert naming.ledger is not None
    naming.ledger.redirect("phone@1/press@1", "phone@1/tap@1", until="2999-03-31")
    return naming


def test_an_old_name_is_listed_with_its_tool_until_its_day(phone: Phone) -> None:
    naming = _redirected(phone)
    box = Toolbox(names=naming.table(phone.listed), policy=POLICY, caller=ANDROID, today=lambda: date(2999, 3, 31))

    assert [offer.key.name for offer in box.offered] == ["phone_press", *SHOWN]
    assert box.offered[0].description.startswith("Renamed to 'phone_tap'; this name is listed until 2999-03-31")
    assert box.offered[1].description == ""
    with box.running(box.call("phone_press", "c1", {})):
        phone.run("tap")
    later = replace(box, today=lambda: date(2999, 4, 1))
    assert [offer.key.name for offer in later.offered] == SHOWN


def test_the_old_name_of_a_tool_that_is_not_for_the_session_is_not_listed_either(phone: Phone) -> None:
    naming = _redirected(phone)
    policy = Policy(default="allow", exposure=Exposure(metadata={"phone/tap": {"is_for_llm": False}}))
    box = Toolbox(names=naming.table(phone.listed), policy=policy, caller=ANDROID, today=lambda: date(2999, 3, 31))

    assert {"phone_press", "phone_tap"}.isdisjoint(offer.key.name for offer in box.offered)


async def test_fastmcp_lists_an_old_name_too_and_runs_its_tool(phone: Phone) -> None:
    naming, app = _redirected(phone), FastMCP[Any]("all")
    mount(app, {"phone": phone.server()}, naming=naming, policy=POLICY, caller=ANDROID)
    async with Client(app) as client:
        listed = {one.name: one.description for one in await client.list_tools()}
        answer = await client.call_tool("phone_press")

    assert list(listed) == ["phone_press", *SHOWN]
    assert (listed["phone_press"] or "").startswith("Renamed to 'phone_tap'")
    assert (answer.content[0].text, phone.ran) == ("tap done", ["tap"])


async def test_pydantic_ai_takes_calls_under_an_old_name(phone: Phone) -> None:
    seen: list[dict[str, str | None]] = []

    def answer(messages: list[Any], info: AgentInfo) -> ModelResponse:
        seen.append({one.name: one.description for one in info.function_tools})
        return ModelResponse([ToolCallPart("phone_press", {})] if len(seen) == 1 else [TextPart("done")])

    servers = {"phone": MCPToolset(phone.server())}
    toolset = NamedToolset.of(servers, naming=_redirected(phone), policy=POLICY, caller=ANDROID)
    await PydanticAgent(FunctionModel(answer), toolsets=[toolset]).run("go")

    assert "Renamed to 'phone_tap'" in str(seen[0]["phone_press"])
    assert phone.ran == ["tap"]
