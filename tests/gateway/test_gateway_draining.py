"""A gateway that is told to end lets its calls end first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import ROOT
from truename.gateway.faults import UpstreamError
from truename.gateway.traffic import Traffic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


async def test_without_calls_there_is_nothing_to_wait_for() -> None:
    traffic = Traffic()
    with traffic.call("truename"):
        pass
    traffic.close()
    with anyio.fail_after(1):
        await traffic.drained()


async def test_no_call_begins_while_others_end() -> None:
    traffic = Traffic()
    with traffic.call("truename"):
        traffic.close()
        with (
            pytest.raises(UpstreamError, match="'truename' is ending and takes no more calls; this call was not sent"),
            traffic.call("truename"),
        ):
            pass
        assert traffic.running == 1
        with anyio.move_on_after(0) as scope:
            await traffic.drained()
        assert scope.cancelled_caught
    with anyio.fail_after(1):
        await traffic.drained()


async def test_draining_ends_with_its_time(lab: Lab, connect: Callable[..., Any]) -> None:
    async with lab.gateway(lab.normal("w", "get"), drain_timeout=0.01) as gateway:
        with gateway.hub.traffic.call("truename"):
            assert not await gateway.drain()
        assert await gateway.drain()


async def test_a_signal_lets_the_running_call_end_and_refuses_the_next(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str]
) -> None:
    journal = tmp_path / "journal"
    config = lab.config_file(lab.script("j", "journal", str(journal), "hold"), lab.normal("w", "get"))
    command = [sys.executable, "-m", "truename", "serve", str(config), "--http", "127.0.0.1:0", "--json"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    results: list[Any] = []
    async with await anyio.open_process(command, env=env, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        document = ""
        with anyio.fail_after(30):
            while not document.endswith("}\n"):
                document += (await process.stdout.receive()).decode()
        async with connect(json.loads(document)["url"], "2026-07-28") as client:
            # Known before, so that the client has no need to ask for them when the gateway is gone.
            await client.list_tools()

            async def hold() -> None:
                results.append(await client.call_tool("j_hold", {}))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(hold)
                while not journal.exists():
                    await anyio.sleep(0.02)
                process.send_signal(signal.SIGTERM)
                while not (refused := await client.call_tool("w_get", {})).is_error:
                    await anyio.sleep(0.02)
                journal.with_suffix(".gate").touch()
        assert "is ending and takes no more calls" in said(refused)
        assert said(results[0]) == "journal:hold"
        with anyio.fail_after(15):
            assert await process.wait() == 0
