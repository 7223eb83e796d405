"""Every call has one account, however it ends; audit, metrics and traces are made of nothing else."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from tests.support.gateway_asking import Person, stateless
from tests.support.gateway_questions import Handshaking
from truename.config import Config, Settings
from truename.errors import NotAllowed
from truename.gateway import Gateway, listening
from truename.policy import Context, read_policy
from truename.policy.call import CallEvent
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams
    from truename.gateway.call_records import CallRecord

pytestmark = pytest.mark.anyio

POLICY = {
    "default": "allow",
    "rules": [
        {"name": "no deleting", "outcome": "deny", "tools": ["w/delete"]},
        {"name": "look first", "outcome": "ask", "tools": ["w/write"]},
        {"name": "reading", "outcome": "allow", "tools": ["w/read"]},
    ],
}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Ear:
    """Hears of calls, and waits for the next."""

    def __init__(self) -> None:
        self.heard: list[CallEvent] = []
        self._log = anyio.Event()

    def __call__(self, event: CallEvent) -> None:
        self.heard.append(event)
        self._log.set()
        self._log = anyio.Event()

    async def hears(self, count: int) -> list[CallEvent]:
        with anyio.fail_after(15):
            while len(self.heard) < count:
                await self._log.wait()
        return self.heard

    @property
    def told(self) -> list[tuple[str, str, str]]:
        return [(str(event.id or ""), event.outcome, event.code) for event in self.heard]


@pytest.fixture
def ear() -> Ear:
    return Ear()


@asynccontextmanager
async def heard(lab: Lab, ear: Ear, *servers: Any, **settings: Any) -> AsyncIterator[str]:
    config = Config(servers=servers, settings=Settings(startup_timeout=20.0, style="prefixed", **settings))
    async with Gateway(config, on_call=ear) as gateway, listening(gateway) as address:
        yield address


async def call(client: Any, name: str, arguments: dict[str, Any] | None = None) -> None:
    try:
        await client.call_tool(name, arguments or {})
    except MCPError:
        return


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("w_read", ("w@1/read@1", "ok", "")),
        ("w@1/read@1", ("w@1/read@1", "ok", "")),
        ("w_fails", ("w@1/fails@1", "tool_error", "")),
        ("w_boom", ("w@1/boom@1", "protocol_error", "-32002")),
        ("w_shapeless", ("w@1/shapeless@1", "failed", "upstream_unavailable")),
        ("w_die", ("w@1/die@1", "failed", "upstream_unavailable")),
        ("w_write", ("w@1/write@1", "refused", "approval_required")),
        ("w_ios", ("w@1/ios@1", "refused", "unsupported")),
        ("w_delete", ("w@1/delete@1", "unknown", "unknown_tool")),
        ("w_nothing", ("", "unknown", "unknown_tool")),
    ],
)
async def test_each_way_in_which_a_call_ends_is_told_once(
    lab: Lab, ear: Ear, connect: Callable[..., Any], era: str, *, name: str, told: tuple[str, str, str]
) -> None:
    tools = ("read", "fails", "boom", "shapeless", "die", "write", "delete", "ios")
    metadata = {"w/ios": {"platforms": ["ios"]}}
    more = {"policy": read_policy(POLICY), "metadata": metadata, "context": Context(platform="android")}
    async with heard(lab, ear, lab.normal("w", *tools), **more) as address, connect(f"{address}/mcp", era) as client:
        await call(client, name)
    assert ear.told == [told]
    (event,) = ear.heard
    assert event.wire_name == name
    assert (event.serial, event.principal, event.view) == (1, LOCAL, "universal")
    assert event.call_id.startswith("request-")
    assert event.seconds > 0
    if event.id is not None:
        assert event.digest.startswith("sha256:")
        assert event.origin is not None
        assert event.origin.server == "w"


@pytest.mark.parametrize(
    ("name", "decision"),
    [("w_read", ("allow", "reading")), ("w_other", ("allow", "default")), ("w_write", ("ask", "look first"))],
)
async def test_it_is_told_which_rule_decided(
    lab: Lab, ear: Ear, connect: Callable[..., Any], name: str, decision: tuple[str, str]
) -> None:
    server = lab.normal("w", "read", "other", "write")
    async with (
        heard(lab, ear, server, policy=read_policy(POLICY)) as address,
        connect(f"{address}/mcp", "legacy") as client,
    ):
        await call(client, name)
    (event,) = ear.heard
    assert (event.decision, event.rule or decision[1]) == decision


async def test_what_a_client_gives_up_is_told_as_cancelled(
    lab: Lab, ear: Ear, connect: Callable[..., Any], era: str
) -> None:
    async with heard(lab, ear, lab.normal("w", "sleep")) as address, connect(f"{address}/mcp", era) as client:
        with anyio.move_on_after(0.3):
            await client.call_tool("w_sleep", {})
        await ear.hears(1)
    assert ear.told == [("w@1/sleep@1", "cancelled", "cancelled")]


async def test_what_the_end_of_the_gateway_breaks_off_is_told_as_cancelled(
    lab: Lab, ear: Ear, connect: Callable[..., Any], era: str, tmp_path: Path
) -> None:
    journal = tmp_path / "ran"
    config = Config(servers=(lab.script("j", "journal", str(journal), "wait"),))
    async with (
        Gateway(config, on_call=ear) as gateway,
        listening(gateway) as address,
        connect(f"{address}/mcp", era) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(call, client, "wait")
        while not journal.exists():
            await anyio.sleep(0.02)
        assert not await gateway.drain(0.01)
        await gateway.break_off()
        await call(client, "wait")
    assert ear.told == [("j@1/wait@1", "cancelled", "upstream_unavailable"), ("", "failed", "upstream_unavailable")]


@pytest.mark.parametrize("make", [stateless, lambda: Handshaking().server], ids=["stateless", "handshake"])
async def test_a_call_with_a_question_is_told_for_each_request(
    lab: Lab, ear: Ear, connect: Callable[..., Any], era: str, upstreams: Upstreams, *, make: Any
) -> None:
    async with (
        upstreams.serve(make()) as url,
        heard(lab, ear, lab.at("far", url)) as address,
        connect(f"{address}/mcp", era, **Person("ada").answering) as client,
    ):
        assert not (await client.call_tool("far_ask", {"of": "whom"})).is_error
    outcomes = [event.outcome for event in ear.heard]
    assert outcomes == (["ok"] if era == "legacy" else ["input_required", "ok"])
    assert "ada" not in str([event.arguments for event in ear.heard])


async def test_a_call_through_call_tool_is_told_as_the_call_that_is_meant(
    lab: Lab, ear: Ear, connect: Callable[..., Any], era: str
) -> None:
    async with (
        heard(lab, ear, lab.normal("w", "read"), tool_search="on") as address,
        connect(f"{address}/mcp", era) as client,
    ):
        await client.call_tool("call_tool", {"name": "w_read", "arguments": {"text": "x"}})
        await client.call_tool("call_tool", {"name": "nothing"})
        await client.call_tool("call_tool", {"name": 5})
        await client.call_tool("search_tools", {"query": "read"})
    assert [(event.wire_name, *told) for event, told in zip(ear.heard, ear.told, strict=True)] == [
        ("w_read", "w@1/read@1", "ok", ""),
        ("nothing", "", "unknown", "unknown_tool"),
        ("call_tool", "", "refused", "invalid_call"),
        ("search_tools", "", "ok", ""),
    ]
    assert ear.heard[0].arguments == {"text": "x"}


async def test_what_is_no_call_at_all_is_told_too(lab: Lab, ear: Ear, raw: Callable[[str], Any]) -> None:
    async with heard(lab, ear, lab.normal("w", "read")) as address, raw(address) as http:
        for _ in range(2):
            await http.post("tools/call", {"name": "w_read", "arguments": "text"})
    assert ear.told == [("", "protocol_error", "-32602")] * 2


async def test_the_trace_of_the_caller_is_told_if_it_is_one(lab: Lab, ear: Ear, raw: Callable[[str], Any]) -> None:
    async with heard(lab, ear, lab.normal("w", "read")) as address, raw(address) as http:
        await http.post("tools/call", {"name": "w_read", "arguments": {}, "_meta": {"traceparent": TRACE}})
        await http.post("tools/call", {"name": "w_read", "arguments": {}}, headers={"traceparent": TRACE})
        await http.post("tools/call", {"name": "w_read", "arguments": {}, "_meta": {"traceparent": f"{TRACE}\n"}})
        await http.post("tools/call", {"name": "w_read", "arguments": {}, "_meta": {"traceparent": 5}})
    assert [event.trace for event in ear.heard] == [TRACE, TRACE, "", ""]


async def test_the_number_of_a_session_is_not_told(lab: Lab, ear: Ear, connect: Callable[..., Any]) -> None:
    async with heard(lab, ear, lab.normal("w", "read")) as address:
        for _ in range(2):
            async with connect(f"{address}/mcp", "legacy") as client:
                await client.call_tool("w_read", {})
    one, other = (event.session for event in ear.heard)
    assert one != other
    assert len(one) == 16


async def test_a_listener_that_fails_stops_nothing(
    lab: Lab, ear: Ear, connect: Callable[..., Any], era: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: CallEvent) -> None:
        raise ValueError("no")

    async with lab.gateway(lab.normal("w", "read")) as gateway, listening(gateway) as address:
        gateway.registry.call_records.listen(fail)
        gateway.registry.call_records.listen(ear)
        async with connect(f"{address}/mcp", era) as client:
            assert not (await client.call_tool("read", {})).is_error
    assert ear.told == [("w@1/read@1", "ok", "")]
    assert "a listener failed on the call 1" in caplog.text


async def test_a_gate_is_asked_before_a_call_is_sent_and_can_refuse_it(
    lab: Lab, ear: Ear, connect: Callable[..., Any], era: str, tmp_path: Path
) -> None:
    journal, asked = tmp_path / "ran", list[CallEvent]()

    async def gate(account: CallRecord) -> None:
        event = account.event("begun")
        asked.append(event)
        assert event.id is not None
        raise NotAllowed(id=event.id, rule="audit", code="unrecorded")

    async with lab.gateway(lab.script("j", "journal", str(journal), "note")) as gateway, listening(gateway) as address:
        gateway.registry.call_records.guard(gate)
        gateway.registry.call_records.listen(ear)
        async with connect(f"{address}/mcp", era) as client:
            refused = await client.call_tool("note", {})
            await client.call_tool("nothing", {})
    assert refused.is_error
    assert refused.meta is not None
    assert refused.meta["dev.truename/error"] == "unrecorded"
    assert not journal.exists()
    assert [(str(event.id), event.outcome) for event in asked] == [("j@1/note@1", "begun")]
    assert ear.told == [("j@1/note@1", "refused", "unrecorded"), ("", "unknown", "unknown_tool")]
