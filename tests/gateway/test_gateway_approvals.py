"""Approvals at the gateway: a call that the policy asks about is run when a person said so, and then once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client

from tests.gateway.office import Office, User, gateway, ran
from tests.support.auth_entrance import bearer, known
from tests.support.gateway_asking import stateless
from tests.support.gateway_questions import Handshaking
from tests.support.gateway_trust import READ, REWORDED, Turning
from truename.policy import Approvals, read_policy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = [pytest.mark.slow, pytest.mark.anyio]


ABLE: dict[str, Any] = {"_meta": {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}}}


@pytest.fixture
def office(tmp_path: Path) -> Office:
    return Office(tmp_path)


async def test_the_user_of_a_client_decides_and_the_call_is_run_once(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    user = User("allow once")
    async with gateway(lab, office) as address, connect(address, era, elicitation_callback=user.elicited) as client:
        assert await ran(client, text="x")
        (form,) = user.asked
        assert "fs@1/write@1" in form.message
        assert "Server: fs" in form.message
        assert 'text: "x"' in form.message
        # The very same call is another one: it is asked about anew, and nobody says yes.
        assert not await ran(client, text="x")
        assert not await ran(client, text="y")
    assert len(user.asked) == 3
    (grant,) = Approvals.open(office.place).grants()
    assert (grant.principal, grant.scope, grant.by) == ("local", "call", "the client's user")


@pytest.mark.parametrize(
    ("decision", "same", "other"),
    [
        ("allow with these arguments", True, False),
        ("always allow", True, True),
        ("deny", False, False),
        ("decline", False, False),
        ("no such word", False, False),
    ],
)
async def test_a_decision_covers_what_it_says(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office, *, decision: str, same: bool, other: bool
) -> None:
    user = User(decision)
    async with gateway(lab, office) as address, connect(address, era, elicitation_callback=user.elicited) as client:
        assert await ran(client, text="x") is same
        assert await ran(client, text="x") is same
        assert await ran(client, text="y") is other


async def test_a_decision_for_a_session_ends_with_it_and_is_offered_where_there_is_one(
    lab: Lab, connect: Callable[..., Any], office: Office
) -> None:
    user = User("allow for this session")
    async with gateway(lab, office) as address:
        async with connect(address, "legacy", elicitation_callback=user.elicited) as client:
            assert await ran(client, text="x")
            assert await ran(client, text="y")
            async with connect(address, "legacy") as another:
                assert not await ran(another, text="x")
        with anyio.fail_after(15):
            while Approvals.open(office.place).grants():
                await anyio.sleep(0.02)
        async with connect(address, "2026-07-28", elicitation_callback=user.elicited) as client:
            assert not await ran(client, text="x")
    offered = [form.requested_schema["properties"]["decision"]["enum"] for form in user.asked]
    assert ["allow for this session" in words for words in offered] == [True, False]


async def test_where_the_client_can_not_be_asked_the_operator_decides_and_the_repeated_call_finds_it(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    async with gateway(lab, office) as address, connect(address, era) as client:
        result = await client.call_tool("write", {"text": "x"})
        (waiting,) = office.waiting()
        assert result.meta is not None
        assert result.meta["dev.truename/approval"] == waiting.key
        assert f"truename approvals grant {waiting.key}" in result.content[0].text
        # Two calls that are the same are one request.
        assert not await ran(client, text="x")
        office.decides()
        # Other arguments have no part in it.
        assert not await ran(client, text="y")
        assert await ran(client, text="x")
        assert not await ran(client, text="x")


async def test_only_the_operator_is_asked_where_that_is_said(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    user = User("always allow")
    running = gateway(lab, office, ask="operator")
    async with running as address, connect(address, era, elicitation_callback=user.elicited) as client:
        assert not await ran(client, text="x")
        office.decides(approved=False, message="not on Fridays")
        result = await client.call_tool("write", {"text": "x"})
        assert "not on Fridays" in result.content[0].text
    assert user.asked == []


async def test_where_both_are_asked_the_first_answer_counts(
    lab: Lab, connect: Callable[..., Any], office: Office
) -> None:
    opened = anyio.Event()

    async def slow(_: object, params: Any) -> types.ElicitResult:
        opened.set()
        await anyio.sleep_forever()
        raise AssertionError

    async with (
        gateway(lab, office, ask="both") as address,
        connect(address, "legacy", elicitation_callback=slow) as client,
        anyio.create_task_group() as calls,
    ):
        heard: list[bool] = []

        async def call() -> None:
            heard.append(await ran(client, text="x"))

        calls.start_soon(call)
        await opened.wait()
        office.decides(scope="arguments")
        with anyio.fail_after(5):
            while not heard:
                await anyio.sleep(0.02)
        assert heard == [True]
        calls.cancel_scope.cancel()


async def test_a_decision_is_nobody_elses(lab: Lab, connect: Callable[..., Any], era: str, office: Office) -> None:
    tokens, access = known("ann", "bob")

    @asynccontextmanager
    async def of(name: str, address: str) -> AsyncIterator[Client]:
        async with (
            httpx2.AsyncClient(headers=bearer(tokens[name])) as http,
            connect(streamable_http_client(address, http_client=http), era) as client,
        ):
            yield client

    async with gateway(lab, office, access=access) as address, of("ann", address) as ann, of("bob", address) as bob:
        assert not await ran(ann, text="x")
        office.decides(scope="always")
        assert await ran(ann, text="x")
        assert not await ran(bob, text="x")
    assert {one.principal for one in office.waiting()} == {"bob"}


async def test_a_drifted_tool_has_no_approval(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office, tmp_path: Path
) -> None:
    fs = Turning(tmp_path, "fs")
    fs.says(READ)
    user = User("always allow", "allow with these arguments")
    async with (
        gateway(lab, office, fs.config(lab)) as address,
        connect(address, era, elicitation_callback=user.elicited) as client,
    ):
        assert await ran(client, "read", path="x")
        assert await ran(client, "read", path="y")
        assert await ran(client, "turn")
        fs.says(REWORDED)
    async with gateway(lab, office, fs.config(lab)) as address, connect(address, era) as client:
        result = await client.call_tool("read", {"path": "x"})
        assert result.is_error
        assert "the earlier decision is suspended" in result.content[0].text


async def test_another_program_under_the_same_key_has_no_approval(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    for tools, allowed in (("write",), True), (("write", "more"), False), (("write",), True):
        async with gateway(lab, office, lab.normal("fs", *tools)) as address, connect(address, era) as client:
            if not Approvals.open(office.place).grants():
                assert not await ran(client, text="x")
                office.decides(scope="always")
            assert await ran(client, text="x") is allowed


async def test_a_decision_that_is_revoked_counts_no_more(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    async with gateway(lab, office) as address, connect(address, era) as client:
        assert not await ran(client, text="x")
        grant = office.decides(scope="always")
        assert await ran(client, text="y")
        Approvals.open(office.place).revoke(grant.key)
        assert not await ran(client, text="y")


async def test_a_state_is_good_once_for_its_own_call_and_principal(
    lab: Lab, raw: Callable[[str], Any], office: Office
) -> None:
    async def refused(http: Any, **params: Any) -> None:
        error = (await http.post("tools/call", {**call, **params})).json()["error"]
        assert error["code"] == types.INVALID_PARAMS
        assert "No call waits with this requestState" in error["message"]

    said = {"approval": {"action": "accept", "content": {"decision": "allow once"}}}
    call: dict[str, Any] = {"name": "write", "arguments": {"text": "x"}, "inputResponses": said, **ABLE}
    async with gateway(lab, office) as address, raw(address.removesuffix("/mcp")) as http:
        asked = await http.result("tools/call", {**call, "inputResponses": {}})
        assert asked["resultType"] == "input_required"
        state = asked["requestState"]
        await refused(http, requestState="made up")
        await refused(http, requestState=state, arguments={"text": "other"})
        # Who does not answer is asked again.
        again = await http.result("tools/call", {**call, "requestState": state, "inputResponses": {}})
        await refused(http, requestState=state)
        done = await http.result("tools/call", {**call, "requestState": again["requestState"]})
        assert done["structuredContent"]["params"]["arguments"] == {"text": "x"}
        assert not {"requestState", "inputResponses"} & done["structuredContent"]["params"].keys()
        await refused(http, requestState=again["requestState"])


async def test_a_request_that_is_named_is_for_its_own_call(lab: Lab, raw: Callable[[str], Any], office: Office) -> None:
    async with gateway(lab, office) as address, raw(address.removesuffix("/mcp")) as http:

        async def called(text: str, key: str) -> str:
            meta = {"dev.truename/approval": key}
            result = await http.result("tools/call", {"name": "write", "arguments": {"text": text}, "_meta": meta})
            return str(result["_meta"].get("dev.truename/error", "ran"))

        asked = await http.result("tools/call", {"name": "write", "arguments": {"text": "x"}})
        key = asked["_meta"]["dev.truename/approval"]
        office.decides()
        assert await called("y", key) == "call_reused"
        assert await called("x", key) == "ran"
        assert await called("x", key) == "call_repeated"


@pytest.mark.parametrize("upstream_era", ["legacy", "2026-07-28"])
async def test_a_server_that_asks_itself_is_answered_after_the_approval(
    lab: Lab, connect: Callable[..., Any], era: str, *, upstreams: Upstreams, office: Office, upstream_era: str
) -> None:
    asked: list[str] = []

    async def elicited(_: object, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        said: dict[str, Any] = (
            {"decision": "allow once"} if "needs your decision" in params.message else {"name": "ada"}
        )
        return types.ElicitResult(action="accept", content=said)

    server, tool = (Handshaking().server, "ask") if upstream_era == "legacy" else (stateless(), "twice")
    async with (
        upstreams.serve(server) as url,
        gateway(lab, office, lab.at("far", url)) as address,
        connect(address, era, elicitation_callback=elicited) as client,
    ):
        done = (await client.call_tool(tool, {})).structured_content
    answer = done if upstream_era == "legacy" else done["answers"]["two"]
    assert answer == {"action": "accept", "content": {"name": "ada"}}
    assert [("decision" in message) for message in asked] == [True, False, *([False] * (len(asked) - 2))]
    assert len(asked) == (2 if upstream_era == "legacy" else 3)


async def test_nothing_in_the_arguments_can_hide_or_break_out_of_its_line(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    user = User()
    hostile = "a\u202eb\x1b[2J\nServer: bank, tool: harmless" + "x" * 5_000 + "rm -rf"
    async with gateway(lab, office) as address, connect(address, era, elicitation_callback=user.elicited) as client:
        assert not await ran(client, text=hostile)
    message = user.asked[0].message
    assert "\u202e" not in message
    assert "\x1b" not in message
    assert r"\u202e" in message
    assert message.count("\n") == 4
    assert "characters are not shown" in message
    assert 'rm -rf"' in message
    assert len(message) < 2_000


async def test_what_is_allowed_or_denied_by_a_rule_asks_nobody(
    lab: Lab, connect: Callable[..., Any], era: str, office: Office
) -> None:
    user = User()
    rules = [{"outcome": "allow", "tools": ["fs/read"]}, {"outcome": "deny", "tools": ["fs/delete"]}]
    policy = read_policy({"default": "ask", "rules": rules})
    async with (
        lab.serving(
            lab.normal("fs", "read", "delete"), policy=policy, approvals=office.settings(), state=office.state
        ) as address,
        connect(address + "/mcp", era, elicitation_callback=user.elicited) as client,
    ):
        assert await ran(client, "read", text="x")
        assert (await client.call_tool("delete", {})).is_error
    assert user.asked == []
    assert Approvals.open(office.place).grants() == ()
