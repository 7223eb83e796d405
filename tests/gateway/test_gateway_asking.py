"""What servers ask the user while they are called: it reaches the client that called, in the way of its own era."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.client.session import ClientSession
from mcp.server.lowlevel.server import Server

from tests.conformance.fixture import refusing
from tests.support.gateway_asking import Person, stateless
from truename.gateway.elicitation.input_requests import can_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


async def test_a_question_of_a_stateless_server_reaches_a_client_of_each_era(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    ada = Person("ada")
    async with (
        upstreams.serve(stateless()) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", era, **ada.answering) as client,
    ):
        done = (await client.call_tool("all", {})).structured_content
        assert done["answers"]["who"] == {"action": "accept", "content": {"name": "ada"}}
        assert done["answers"]["say"]["content"]["text"] == "ada says"
        assert done["answers"]["where"]["roots"] == [{"uri": "file:///ada"}]
        assert set(done["able"]) == {"elicitation", "sampling", "roots"}
        forms = [one.requested_schema for one in ada.asked if hasattr(one, "requested_schema")]
        assert [form["properties"]["name"]["default"] for form in forms] == ["Ada"]
        twice = (await client.call_tool("twice", {})).structured_content
        assert (set(twice["answers"]), twice["steps"]) == ({"two"}, 2)
        assert (await client.call_tool("later", {})).structured_content["steps"] == 1


async def test_over_stdio_a_client_is_asked_too(
    lab: Lab, era: str, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    async with upstreams.serve(stateless()) as url:
        parameters = lab.over_stdio()
        path = lab.config_file()
        path.write_text(f'{{"mcpServers": {{"far": {{"url": "{url}"}}}}, "truename": {{"state": "memory"}}}}')
        async with connect(parameters, era, **Person("ada").answering) as client:
            done = (await client.call_tool("ask", {})).structured_content
    assert done["answers"]["who"]["content"] == {"name": "ada"}


async def test_each_question_reaches_its_own_asker(lab: Lab, connect: Callable[..., Any], upstreams: Upstreams) -> None:
    people = [Person(f"p{number}") for number in range(3)]
    heard: dict[str, str] = {}

    async def call(client: Any, person: Person) -> None:
        done = (await client.call_tool("ask", {})).structured_content
        heard[person.name] = done["answers"]["who"]["content"]["name"]

    async with upstreams.serve(stateless()) as url, lab.serving(lab.at("far", url)) as address:
        target = address + "/mcp"
        async with (
            connect(target, "legacy", **people[0].answering) as first,
            connect(target, "legacy", **people[1].answering) as second,
            connect(target, "2026-07-28", **people[2].answering) as third,
            anyio.create_task_group() as tasks,
        ):
            for client, person in zip((first, second, third), people, strict=True):
                tasks.start_soon(call, client, person)
    assert heard == {"p0": "p0", "p1": "p1", "p2": "p2"}
    assert [len(person.asked) for person in people] == [1, 1, 1]


async def test_a_client_is_asked_only_for_what_it_said_that_it_can(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams
) -> None:
    ada = Person("ada")
    async with (
        upstreams.serve(stateless()) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy", elicitation_callback=ada.elicited) as client,
    ):
        refused = await client.call_tool("all", {})
        assert refused.is_error
        assert "Server 'far' wants to ask the user something (sampling), which this client does not support" in said(
            refused
        )
        assert ada.asked == []
        assert set((await client.call_tool("ask", {})).structured_content["able"]) == {"elicitation"}


async def test_a_server_that_asks_without_end_is_given_up(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams
) -> None:
    ada = Person("ada")
    async with (
        upstreams.serve(stateless()) as url,
        lab.serving(lab.at("far", url), max_rounds=3) as address,
        connect(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        given_up = await client.call_tool("endless", {})
        assert given_up.is_error
        assert "asked more than 3 times in one call" in said(given_up)
        assert len(ada.asked) == 3


async def test_a_refusal_and_a_silence_are_told(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams
) -> None:
    async def refuse(context: object, params: object) -> types.ErrorData:
        return types.ErrorData(code=-1, message="The user said no")

    async def say_nothing(context: object, params: object) -> types.ElicitResult:
        await anyio.sleep_forever()
        raise AssertionError

    async with upstreams.serve(stateless()) as url, lab.serving(lab.at("far", url), answer_timeout=0.2) as address:
        async with connect(address + "/mcp", "legacy", elicitation_callback=refuse) as client:
            refused = await client.call_tool("ask", {})
            assert refused.is_error
            assert "which the client refused (The user said no)" in said(refused)
        async with connect(address + "/mcp", "legacy", elicitation_callback=say_nothing) as client:
            silent = await client.call_tool("ask", {})
            assert "got no answer within 0.2 seconds" in said(silent)


ODD = {
    "strange": {"q": {"method": "tools/call", "params": {}}},
    "shapeless": {"q": ["elicitation/create"]},
    "unlisted": ["elicitation/create"],
    "paramless": {"q": {"method": "elicitation/create", "params": [1]}},
    "crowd": {str(number): {"method": "roots/list"} for number in range(100)},
}


@pytest.mark.parametrize("name", ODD)
async def test_what_is_no_question_is_not_put_to_anybody(
    lab: Lab, connect: Callable[..., Any], said: Callable[[Any], str], upstreams: Upstreams, name: str
) -> None:
    ada = Person("ada")
    server = stateless()

    async def odd(ctx: Any, call_next: Any) -> Any:
        result = await call_next(ctx)
        return {"resultType": "input_required", "inputRequests": ODD[name]} if ctx.method == "tools/call" else result

    server.middleware.append(odd)
    async with (
        upstreams.serve(server) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy", **ada.answering) as client,
    ):
        answer = await client.call_tool("ask", {})
        assert answer.is_error
        assert "Server 'far' sent the client " in said(answer)
        assert ada.asked == []


async def test_a_call_that_is_cancelled_takes_its_question_back(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    asked, taken_back = anyio.Event(), anyio.Event()

    async def wait(context: object, params: object) -> types.ElicitResult:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            taken_back.set()
        raise AssertionError

    async with (
        upstreams.serve(stateless()) as url,
        lab.serving(lab.at("far", url)) as address,
        connect(address + "/mcp", "legacy", elicitation_callback=wait) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(client.call_tool, "ask", {})
        with anyio.fail_after(10):
            await asked.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(10, shield=True):
            await taken_back.wait()


def test_who_can_be_asked_by_forms_is_not_sent_to_a_url() -> None:
    url = {"mode": "url", "url": "https://example.com"}
    asked = "elicitation/create"
    forms: tuple[dict[str, Any], ...] = ({}, {"form": {}})
    for able in forms:
        assert can_answer({"elicitation": able}, asked, {"mode": "form"})
        assert not can_answer({"elicitation": able}, asked, url)
    assert can_answer({"elicitation": {"url": {}}}, asked, url)
    assert not can_answer({"sampling": {}}, asked, None)


async def test_a_url_of_a_stateless_server_is_refused_where_a_client_has_forms_only(
    lab: Lab,
    connect: Callable[..., Any],
    said: Callable[[Any], str],
    upstreams: Upstreams,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ada = Person("ada")

    async def list_tools(ctx: Any, params: object) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool(name="go", input_schema={"type": "object"})])

    async def call_tool(ctx: Any, params: object) -> types.InputRequiredResult:
        page = types.ElicitRequestURLParams(message="Log in", url="https://example.com", elicitation_id="1")
        return types.InputRequiredResult(input_requests={"page": types.ElicitRequest(params=page)}, request_state="1")

    # The SDK's clients declare both wherever they have a callback.
    forms = types.ClientCapabilities(elicitation=types.ElicitationCapability(form=types.FormElicitationCapability()))
    monkeypatch.setattr(ClientSession, "_build_capabilities", lambda *_: forms)
    server = Server("far", on_list_tools=list_tools, on_call_tool=call_tool)
    server.middleware.append(refusing("handshake"))
    async with (
        upstreams.serve(server) as address_of_far,
        lab.serving(lab.at("far", address_of_far)) as address,
        connect(address + "/mcp", "legacy", elicitation_callback=ada.elicited) as client,
    ):
        refused = await client.call_tool("go", {})
    assert refused.is_error
    assert "which this client does not support" in said(refused)
    assert ada.asked == []
