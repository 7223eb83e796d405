"""The gateway writes the calls of recordable tools down, and a recording that fails stops no call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from tests.support.gateway_asking import Person, stateless
from tests.support.gateway_memory import in_memory
from tests.support.gateway_questions import Handshaking
from truename.policy import Context

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio
METADATA: dict[str, dict[str, Any]] = {
    "phone/pressback": {"platforms": ["android"]},
    "phone/addfunds": {"is_recordable": False},
}


async def test_calls_are_recorded_after_the_decision(lab: Lab, connect: Any, era: str, tmp_path: Path) -> None:
    recording = tmp_path / "calls.jsonl"
    contexts = {"iphone": Context(platform="ios")}
    more = {"contexts": contexts, "metadata": METADATA, "protocol": "0.3", "recording": str(recording)}
    async with (
        lab.serving(lab.normal("phone", "tap", "pressBack", "addFunds"), **more) as address,
        connect(address + "/mcp/in/iphone", era) as client,
    ):
        await client.call_tool("TAP", {"text": "x"})
        for name in ("press_back", "add_funds", "nothing"):
            await client.call_tool(name, {})

    (line,) = (json.loads(line) for line in recording.read_text().splitlines())
    assert (line["id"], line["arguments"], line["name"]) == ("phone@1/tap@1", {"text": "x"}, "TAP")
    assert line["context"] == {"platform": "ios", "app": "", "origin": "llm"}
    assert line["protocol"] == "0.3"
    assert line["catalog"].startswith("sha256:")


async def test_a_recording_that_can_not_be_written_is_told_and_stops_no_call(
    lab: Lab, connect: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        lab.serving(lab.normal("phone", "tap"), recording=str(tmp_path)) as address,
        connect(address + "/mcp", "legacy") as client,
    ):
        assert not (await client.call_tool("tap", {})).is_error
    assert "Calls are not recorded." in caplog.text


async def test_a_recording_that_is_full_is_told_once_and_stops_no_call(
    lab: Lab, connect: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with lab.gateway(lab.normal("phone", "tap"), recording=str(tmp_path / "calls.jsonl")) as gateway:
        gateway.registry.access.recording.close()
        async with connect(in_memory(gateway.endpoint()), "legacy") as client:
            for _ in range(2):
                assert not (await client.call_tool("tap", {})).is_error
    assert caplog.text.count("This call and perhaps others are not recorded.") == 1


@pytest.mark.parametrize("make", [stateless, lambda: Handshaking().server], ids=["stateless", "handshake"])
async def test_a_call_with_a_question_is_recorded_once_and_without_the_answer(
    lab: Lab, connect: Any, era: str, upstreams: Upstreams, tmp_path: Path, *, make: Any
) -> None:
    recording = tmp_path / "calls.jsonl"
    async with (
        upstreams.serve(make()) as url,
        lab.serving(lab.at("far", url), recording=str(recording)) as address,
        connect(address + "/mcp", era, **Person("ada").answering) as client,
    ):
        done = await client.call_tool("ask", {"of": "whom"})
    assert "ada" in str(done.structured_content)
    (line,) = (json.loads(line) for line in recording.read_text().splitlines())
    assert (line["id"], line["arguments"]) == ("far@1/ask@1", {"of": "whom"})
    assert "ada" not in str(line)


async def test_a_state_that_is_nobodys_runs_nothing_and_is_not_recorded(
    lab: Lab, raw: Any, upstreams: Upstreams, tmp_path: Path
) -> None:
    recording = tmp_path / "calls.jsonl"
    async with (
        upstreams.serve(Handshaking().server) as url,
        lab.serving(lab.at("far", url), recording=str(recording)) as address,
        raw(address) as http,
    ):
        answer = (await http.post("tools/call", {"name": "ask", "arguments": {}, "requestState": "x"})).json()
    assert answer["error"]["code"] == types.INVALID_PARAMS
    assert recording.read_text() == ""


async def test_what_may_have_run_is_recorded_and_what_did_not_is_not(
    lab: Lab, connect: Any, upstreams: Upstreams, tmp_path: Path
) -> None:
    recording = tmp_path / "calls.jsonl"
    async with anyio.create_task_group() as tasks:
        url, stop = await tasks.start(upstreams.hold, stateless())
        async with (
            lab.serving(lab.normal("w", "boom"), lab.at("far", url), recording=str(recording)) as address,
            connect(address + "/mcp", "legacy") as client,
        ):
            with pytest.raises(MCPError):
                await client.call_tool("w_boom", {})
            # A client that cannot be asked: the server has begun all the same.
            assert (await client.call_tool("far_ask", {})).is_error
            await stop()
            assert (await client.call_tool("far_later", {})).is_error
    assert [json.loads(line)["tool"] for line in recording.read_text().splitlines()] == ["boom", "ask"]
