"""A server of the handshake eras asks a client of the stateless era: its call is held open until that calls again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import msgspec
import pytest
from mcp.shared.exceptions import MCPError

from tests.support.gateway_asking import Person
from tests.support.gateway_holding import ANSWER, ASK
from tests.support.gateway_questions import Handshaking
from tests.support.gateway_shares import people
from truename.config import Settings
from truename.gateway.elicitation.suspended_calls import SuspendedCalls
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio


async def test_a_client_that_calls_again_is_met_by_its_call(
    lab: Lab, connect: Callable[..., Any], upstreams: Upstreams
) -> None:
    people = [Person(f"p{number}") for number in range(3)]
    heard: dict[str, str] = {}

    async def call(target: str, person: Person) -> None:
        async with connect(target, "2026-07-28", **person.answering) as client:
            done = await client.call_tool("ask", {})
            heard[person.name] = done.structured_content["content"]["name"]

    far = Handshaking()
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url)) as address,
        anyio.create_task_group() as tasks,
    ):
        for person in people:
            tasks.start_soon(call, address + "/mcp", person)
    assert heard == {"p0": "p0", "p1": "p1", "p2": "p2"}
    assert [len(person.asked) for person in people] == [1, 1, 1]
    assert len(far.able) == 3


async def test_over_one_pipe_even_a_shared_program_may_ask(lab: Lab, connect: Callable[..., Any]) -> None:
    target = lab.over_stdio(lab.script("near", "asking", "near"))
    async with connect(target, "2026-07-28", **Person("ada").answering) as client:
        done = (await client.call_tool("ask", {})).structured_content
    assert done["answer"]["content"] == {"name": "ada"}


async def test_isolated_programs_ask_no_client_without_a_session(lab: Lab, connect: Callable[..., Any]) -> None:
    ada, bob = Person("ada"), Person("bob")
    async with lab.serving(lab.script("near", "asking", "near", isolation="session")) as address:
        target = address + "/mcp"
        async with (
            connect(target, "2026-07-28", **ada.answering) as first,
            connect(target, "2026-07-28", **bob.answering) as second,
        ):
            await first.call_tool("later", {"text": "of ada"})
            done = (await second.call_tool("remember", {})).structured_content
    assert "clients without sessions use this connection" in done["error"]["message"]
    assert ada.asked == bob.asked == []


async def test_a_program_that_stateless_clients_share_asks_nobody(lab: Lab, connect: Callable[..., Any]) -> None:
    ada = Person("ada")
    async with (
        lab.serving(lab.script("near", "asking", "near")) as address,
        connect(address + "/mcp", "2026-07-28", **ada.answering) as client,
    ):
        done = (await client.call_tool("ask", {})).structured_content
    assert "so the right one is unknown" in done["error"]["message"]
    assert ada.asked == []


async def test_a_state_is_good_once_and_for_its_own_call(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    async def refused(http: Any, **params: Any) -> None:
        answer = (await http.post("tools/call", {**ASK, "inputResponses": ANSWER, **params})).json()
        assert answer["error"]["code"] == types.INVALID_PARAMS
        assert "No call waits with this requestState" in answer["error"]["message"]

    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url)) as address,
        raw(address) as http,
    ):
        asked = await http.result("tools/call", ASK)
        state = asked["requestState"]
        assert asked["resultType"] == "input_required"
        assert asked["inputRequests"]["q1"]["method"] == "elicitation/create"
        await refused(http, requestState=state[:-1])
        await refused(http, requestState=state, name="sample")
        await refused(http, requestState=state, arguments={"other": 1})
        # Who answers nothing is asked again.
        again = await http.result("tools/call", {**ASK, "requestState": state, "inputResponses": {"q9": ANSWER["q1"]}})
        assert again["inputRequests"] == asked["inputRequests"]
        await refused(http, requestState=state)
        state = again["requestState"]
        done = await http.result("tools/call", {**ASK, "requestState": state, "inputResponses": ANSWER})
        assert done["structuredContent"] == ANSWER["q1"]
        await refused(http, requestState=state)


async def test_a_state_never_begins_a_call_anew(lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams) -> None:
    far = Handshaking()
    async with upstreams.serve(far.server) as url, lab.serving(lab.at("far", url)) as address, raw(address) as http:
        state = (await http.result("tools/call", ASK))["requestState"]
        mute = {"name": "ask", "arguments": {}, "inputResponses": ANSWER}
        refused = (await http.post("tools/call", {**mute, "requestState": "another"})).json()
        assert refused["error"]["code"] == types.INVALID_PARAMS
        done = await http.result("tools/call", {**mute, "requestState": state})
    assert done["structuredContent"] == ANSWER["q1"]
    assert len(far.able) == 1


async def test_a_client_that_says_it_cannot_be_asked_gets_the_error_of_the_protocol(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url)) as address,
        raw(address) as http,
    ):
        said: tuple[dict[str, Any], ...] = ({}, {"sampling": {}})
        for able in said:
            meta = {"io.modelcontextprotocol/clientCapabilities": able}
            error = (await http.post("tools/call", {"name": "ask", "_meta": meta})).json()["error"]
            assert error["code"] == types.MISSING_REQUIRED_CLIENT_CAPABILITY
            assert error["data"] == {"requiredCapabilities": {"elicitation": {}}}


async def test_a_call_whose_client_never_comes_back_is_cancelled(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    far = Handshaking()
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url), answer_timeout=0.2) as address,
        raw(address) as http,
    ):
        asked = await http.result("tools/call", ASK)
        with anyio.fail_after(10):
            await far.gave_up.wait()
        late = await http.post("tools/call", {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER})
        # That it was cancelled is kept for as long as an answer may take.
        assert late.json()["error"]["code"] in {types.INVALID_PARAMS, types.REQUEST_TIMEOUT}


async def test_calls_that_wait_are_bounded(lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams) -> None:
    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url), max_held=1) as address,
        raw(address) as http,
    ):
        asked = await http.result("tools/call", ASK)
        error = (await http.post("tools/call", ASK)).json()["error"]
        assert "too many calls wait for answers" in error["message"]
        done = {**ASK, "requestState": asked["requestState"], "inputResponses": ANSWER}
        assert (await http.result("tools/call", done))["structuredContent"] == ANSWER["q1"]


async def test_the_calls_of_one_user_that_wait_keep_no_other_from_being_asked(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    access, headers = people("ann", "eve")
    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url), access=access, max_held=4) as address,
        raw(address) as http,
    ):
        eve = [(await http.post("tools/call", ASK, headers=headers["eve"])).json() for _ in range(3)]
        ann = (await http.post("tools/call", ASK, headers=headers["ann"])).json()
    assert ["error" in one for one in eve] == [False, False, True]
    assert ann["result"]["resultType"] == "input_required"


async def test_errors_of_a_server_pass_as_they_are(lab: Lab, era: str, connect: Callable[..., Any]) -> None:
    async with (
        lab.serving(lab.normal("w", "boom")) as address,
        connect(address + "/mcp", era, **Person("ada").answering) as client,
    ):
        with pytest.raises(MCPError) as caught:
            await client.call_tool("boom", {})
    assert caught.value.error.code == -32002


async def test_questions_that_wait_are_bounded_in_bytes(
    lab: Lab, raw: Callable[[str], Any], upstreams: Upstreams
) -> None:
    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url), max_held_bytes=1_500) as address,
        raw(address) as http,
    ):
        asked = await http.result("tools/call", {**ASK, "arguments": {"text": "x" * 1_000}})
        error = (await http.post("tools/call", {**ASK, "arguments": {"text": "y" * 1_000}})).json()["error"]
        text = "The user was not asked: the calls that wait for answers take more than max_held_bytes."
        assert error["message"] == text
        done = {"requestState": asked["requestState"], "inputResponses": ANSWER}
        await http.result("tools/call", {**ASK, "arguments": {"text": "x" * 1_000}, **done})
        # What was answered waits no more.
        await http.result("tools/call", {**ASK, "arguments": {"text": "y" * 1_000}})


@pytest.mark.parametrize("content", ["x" * 5_000, msgspec.Raw(b'"%s"' % (b"x" * 5_000))], ids=["read", "bytes"])
@pytest.mark.parametrize(("most", "is_kept"), [(10_000, True), (1_000, False)])
async def test_an_answer_that_waits_for_its_client_is_bounded_in_bytes(
    *, most: int, is_kept: bool, content: str | msgspec.Raw
) -> None:
    asker: Any = SimpleNamespace(request=SimpleNamespace(http=None), by_result=None)
    gate, target = anyio.Event(), ("far", "tools/call")

    async def send(_: object) -> dict[str, Any]:
        async with anyio.create_task_group() as asking:
            asking.start_soon(asker.by_result, "elicitation/create", {})
            await gate.wait()
            asking.cancel_scope.cancel()
        return {"content": content}

    async with anyio.create_task_group() as tasks:
        holding = SuspendedCalls(tasks, Settings(max_held_bytes=most))
        for _ in range(3):
            gate = anyio.Event()
            asked = await holding.call(asker, target, {}, send)
            gate.set()
            await anyio.wait_all_tasks_blocked()
            if is_kept:
                answer = await holding.call(asker, target, {"requestState": asked["requestState"]}, send)
                assert answer == {"content": content}
            else:
                with pytest.raises(UpstreamError, match="max_held_bytes is reached"):
                    await holding.call(asker, target, {"requestState": asked["requestState"]}, send)
        tasks.cancel_scope.cancel()
