"""A gateway as its own process: it starts, serves, and ends with all that it started when it is told to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import ROOT, alive

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_open_streams_and_children(
    lab: Lab, tmp_path: Path, connect: Callable[..., Any], said: Callable[[Any], str], number: signal.Signals
) -> None:
    pid_file = tmp_path / "child.pid"
    config = lab.config_file(lab.normal("w", "get"), lab.script("family", "family", str(pid_file)))
    command = [sys.executable, "-m", "tests.gateway.servers.gateway_http", str(config)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    async with await anyio.open_process(command, env=env, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        with anyio.fail_after(30):
            address = (await process.stdout.receive()).decode().strip()
        async with connect(address + "/mcp", "legacy") as client:
            assert said(await client.call_tool("w_get", {})) == "w:get"
            process.send_signal(number)
            with anyio.fail_after(15):
                assert await process.wait() == 0
    with anyio.fail_after(5):
        while alive(int(pid_file.read_text())):
            await anyio.sleep(0.02)
