"""The gateway writes the calls of recordable tools down, and a recording that fails stops no call."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from truename.policy import Context

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import Lab

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
        gateway.hub.rights.close()
        async with connect(gateway.endpoint().server, "legacy") as client:
            for _ in range(2):
                assert not (await client.call_tool("tap", {})).is_error
    assert caplog.text.count("This call and perhaps others are not recorded.") == 1
