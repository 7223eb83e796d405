"""`truename serve` ends when it is told to, at any time, with status 0 and with all that it started."""

from __future__ import annotations

import json
import logging
import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client

from tests.gateway.conftest import alive
from tests.shared import ROOT
from tests.support.cli_ending import PATIENCE, until
from tests.support.cli_running import TRUENAME, Lines, call, serving
from truename.cli._logs import log_to_stderr

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

pytestmark = pytest.mark.slow

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


def stubborn(pid_file: Path, *more: str) -> dict[str, Any]:
    args = ["-m", "tests.gateway.servers.stubborn", str(pid_file), *more]
    return {"command": sys.executable, "args": args, "cwd": str(ROOT)}


def gone(pid_file: Path) -> bool:
    pid = int(pid_file.read_text())
    until(lambda: not alive(pid))
    return not alive(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda one: one.name)
@pytest.mark.parametrize("words", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_a_signal_ends_it_and_its_servers(
    configure: Callable[..., Path], tmp_path: Path, words: tuple[str, ...], number: signal.Signals
) -> None:
    pid_file = tmp_path / "pid"
    settings = {"reload": "off" if number == signal.SIGHUP else "watch"}
    source = configure({"one": ["search"]}, servers={"stubborn": stubborn(pid_file)}, truename=settings)

    with serving(source, *words) as (process, out, err):
        _ = out.until("Ctrl-C ends it.") if words else err.until("Serving over")
        process.send_signal(number)
        status = process.wait(PATIENCE)
        err.rest()

    assert status == 0
    assert gone(pid_file)
    assert not [line for line in err.seen if "Traceback" in line or "Error" in line]


@pytest.mark.parametrize("words", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_a_signal_while_a_server_starts_ends_it_too(
    configure: Callable[..., Path], tmp_path: Path, words: tuple[str, ...]
) -> None:
    pid_file = tmp_path / "pid"
    source = configure({}, servers={"stubborn": stubborn(pid_file, "silent")})

    with serving(source, *words) as (process, _, err):
        until(pid_file.exists)
        process.send_signal(signal.SIGTERM)
        status = process.wait(PATIENCE)
        err.rest()

    assert status == 0
    assert gone(pid_file)
    assert not [line for line in err.seen if "Traceback" in line]


def test_a_second_signal_leaves_nobody_behind(configure: Callable[..., Path], tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    source = configure({}, servers={"stubborn": stubborn(pid_file)})

    with serving(source) as (process, _, err):
        err.until("Serving over")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        status = process.wait(PATIENCE)

    assert status == 0
    assert gone(pid_file)


ENDINGS: dict[str, tuple[int, str, str]] = {
    "answered": (0, "journal:hold", "Ended. No call was interrupted."),
    "timeout": (1, "stopped before the call ended", "Ended. 1 call was interrupted, because drain_timeout passed"),
    "second": (1, "stopped before the call ended", "Ended. 1 call was interrupted, because a second signal arrived"),
}


# What is told of a call that is broken off, in each era, `test_gateway_draining.py` asks without a start each.
@pytest.mark.parametrize(
    ("era", "how"),
    [("legacy", "answered"), ("2026-07-28", "answered"), ("legacy", "timeout"), ("2026-07-28", "second")],
)
def test_its_status_and_its_last_line_say_how_it_ended(
    configure: Callable[..., Path], tmp_path: Path, *, how: str, era: str
) -> None:
    status, answer, last = ENDINGS[how]
    journal, heard = tmp_path / "journal", list[str]()
    args = ["-m", "tests.gateway.servers.journal", str(journal), "hold"]
    servers = {"j": {"command": sys.executable, "args": args, "cwd": str(ROOT)}}
    settings = {"drain_timeout": 0.5 if how == "timeout" else 30}
    with serving(configure({}, servers=servers, truename=settings), "--http", "127.0.0.1:0") as (process, out, err):
        url = out.until("/mcp  ").split()[0]
        out.until("Ctrl-C ends it.")
        caller = threading.Thread(target=anyio.run, args=(_hold, url, era, heard))
        caller.start()
        until(journal.exists)
        process.send_signal(signal.SIGTERM)
        err.until("Shutting down when the running call has ended, after ")
        if how == "answered":
            journal.with_suffix(".gate").touch()
        elif how == "second":
            process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == status
        caller.join(PATIENCE)
        err.rest()
    assert answer in heard[0]
    assert err.seen[-1].startswith(last)
    assert not [line for line in err.seen if "Traceback" in line or "rror" in line]


async def _hold(url: str, era: str, heard: list[str]) -> None:
    async with Client(url, mode=era) as client:
        # Known before, so that the client has no need to ask for them when the gateway is gone.
        await client.list_tools()
        heard.append(str((await client.call_tool("hold", {})).content))


@pytest.mark.parametrize("close", [False, True], ids=["ctrl-c", "closed"])
def test_a_terminal_ends_it(configure: Callable[..., Path], tmp_path: Path, close: bool) -> None:
    pid_file = tmp_path / "pid"
    source = configure({}, servers={"stubborn": stubborn(pid_file)})
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", _IN_TERMINAL, TRUENAME, "serve", str(source)],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    try:
        said = bytearray()
        while b"Serving over" not in said:
            said += os.read(controller, 4096)
        if close:
            os.close(controller)
            status = process.wait(PATIENCE)
        else:
            os.write(controller, b"\x03")
            rest = threading.Thread(target=_drain, args=(controller, said), daemon=True)
            rest.start()
            status = process.wait(PATIENCE)
            rest.join(PATIENCE)
    finally:
        process.kill()
        process.wait()
        if not close:
            os.close(controller)

    assert status == 0
    assert gone(pid_file)
    assert b"Traceback" not in said


_IN_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


def _drain(controller: int, said: bytearray) -> None:
    try:
        while chunk := os.read(controller, 4096):
            said += chunk
    except OSError:
        return


def test_a_client_that_reads_nothing_keeps_it_from_nothing(configure: Callable[..., Path], tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    source = configure({"one": ["x" * 900]}, servers={"stubborn": stubborn(pid_file)})
    command = [TRUENAME, "serve", str(source)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        try:
            Lines(process.stderr).until("Serving over")
            asked = "".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": "tools/list"}) + "\n" for n in range(300))
            ready = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"})
            process.stdin.write(f"{json.dumps(HELLO)}\n{ready}\n{asked}")
            process.stdin.flush()
            process.send_signal(signal.SIGTERM)
            status = process.wait(PATIENCE)
        finally:
            process.kill()

    assert status == 0
    assert gone(pid_file)


def test_what_was_asked_before_the_end_of_input_is_answered(configure: Callable[..., Path]) -> None:
    done = subprocess.run(
        [TRUENAME, "serve", str(configure({"one": ["search"]}))],
        input=f"{json.dumps(HELLO)}\n{'x' * 5_000_000}\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 0
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [1]
    assert "more than max_body allows" in done.stderr


def test_a_port_that_is_taken_is_found_out_before_any_server_starts(
    configure: Callable[..., Path], tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    source = configure({}, servers={"stubborn": stubborn(pid_file)})
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with serving(source, "--http", address) as (process, _, err):
            status = process.wait(PATIENCE)
            err.rest()

    assert status == 2
    assert not pid_file.exists()
    assert "cannot listen" in err.seen[0]


def test_a_server_that_is_slow_keeps_nobody_waiting(configure: Callable[..., Path], tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    source = configure({"one": ["search"]}, servers={"slow": stubborn(pid_file, "silent")})

    with serving(source, "--http", "127.0.0.1:0") as (process, _out, err):
        line = err.until("Still starting, added when ready: slow.")
        listed, _ = anyio.run(call, f"{line.split()[2].rstrip('.')}/mcp", "one_search")
        until(pid_file.exists)
        # A gateway that is killed has nobody who could end its servers, and this one minds no end of its input.
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0

    assert listed == ["one_search"]
    assert gone(pid_file)


@pytest.mark.parametrize("name", ["mcp.server", "uvicorn.error", "httpx2", "asyncio", "truename.gateway"])
def test_what_any_library_logs_is_one_printable_line(capsys: pytest.CaptureFixture[str], name: str) -> None:
    log_to_stderr()
    log_to_stderr()
    try:
        log = logging.getLogger(name)
        log.warning("said %s", "\x1b[31mred\nline" + "x" * 10_000)
        try:
            raise ValueError("\x1b[0m")
        except ValueError:
            log.exception("it broke")
    finally:
        logging.getLogger().handlers = [h for h in logging.getLogger().handlers if type(h).__name__ != "_Shown"]
    one, two = capsys.readouterr().err.splitlines()

    assert one.startswith("warning: said \\x1b[31mred\\nline")
    assert len(one) < 1_100
    assert two == "error: it broke (ValueError: \\x1b[0m)"


def test_tracebacks_are_shown_when_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRUENAME_DEBUG", "1")
    log_to_stderr()
    try:
        raise ValueError("\x1b[0m")
    except ValueError:
        logging.getLogger("mcp").exception("it broke")
    finally:
        logging.getLogger().handlers = [h for h in logging.getLogger().handlers if type(h).__name__ != "_Shown"]
    said = capsys.readouterr().err

    assert "Traceback" in said
    assert "\x1b" not in said


@pytest.mark.parametrize("words", [("--server-name", "\x1b[31m"), ("--token", "a b"), ("--alias", "one=\n")])
def test_options_are_checked_as_the_file_is(run: Run, configure: Callable[..., Path], words: tuple[str, ...]) -> None:
    done = run("serve", configure({"one": ["search"]}), *words)

    assert (done.status, done.out) == (2, "")
    assert "\x1b" not in done.err
