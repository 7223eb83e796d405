"""An upstream server as a child process: JSON-RPC lines on its standard input and output.

Written for servers that misbehave: what is no message on standard output is skipped, lines and standard error are
bounded, and at the end the whole process group goes.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from truename.gateway.background import background
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.protocol.lines import LineReader, TooLong
from truename.gateway.upstream.messages import read_message, report_noise, too_long
from truename.gateway.upstream.transport import Transport

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Mapping

    from anyio.abc import Process

    from truename.config import ServerConfig
    from truename.gateway.mcp.requests import RequestId
    from truename.gateway.rate_limited_log import RateLimitedLog
    from truename.gateway.upstream.transport import Hearer, Take

__all__ = ["open_stdio"]

# What a program needs to run at all, and how this machine reaches the network: a runner such as uvx or npx could not
# fetch the server otherwise. Nothing else of our own environment is passed on: it may hold secrets.
_OF_WINDOWS: Final = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
    *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)
_OF_POSIX: Final = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_AMBIENT: Final = (
    *(_OF_WINDOWS if sys.platform == "win32" else _OF_POSIX),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "UV_CACHE_DIR", "UV_SYSTEM_CERTS", "npm_config_cache"),
)
# How a shell exports a function.
_FUNCTION: Final = "()"
STOP_GRACE: Final = 2.0
_POLL: Final = 0.02
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


@dataclass(frozen=True, kw_only=True)
class _ChildTransport(Transport):
    process: Process

    def ending(self) -> str:
        status = self.process.returncode
        if status is None:
            return "closed its standard output"
        if status < 0:
            with suppress(ValueError):
                return f"was terminated by {signal.Signals(-status).name}"
        return f"exited with status {status}"


@asynccontextmanager
async def open_stdio(server: ServerConfig, max_line: int, news: RateLimitedLog) -> AsyncIterator[Transport]:
    """Start the program and connect to it; on exit end it with everything that it started.

    Raises `UpstreamError` (missing) if there is no such program or it cannot be started.
    """
    process = await _start(server)
    pipe = _Pipe(process)
    transport = _ChildTransport(requests=pipe, process=process, secret=os.urandom(8).hex())
    try:
        async with background() as tasks:
            tasks.start_soon(_read_messages, server.key, transport, pipe, max_line, news)
            tasks.start_soon(_read_errors, transport)
            try:
                yield transport
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
    finally:
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _start(server: ServerConfig) -> Process:
    ambient = {key: os.environ[key] for key in _AMBIENT if not os.environ.get(key, _FUNCTION).startswith(_FUNCTION)}
    env = ambient | dict(server.env)
    command = _program(server.command or "", env.get("PATH"))
    if command is None:
        raise UpstreamError(
            server=server.key,
            kind="missing",
            problem=f"cannot be started: cannot find the program {printable(server.command or '')!r}",
            remedy="Install it, or write its full path as the command.",
        )
    try:
        # A program whose start is cancelled half-way would be nobody's to end.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [command, *server.args], env=env, cwd=server.cwd, start_new_session=sys.platform != "win32"
            )
    except OSError as error:
        place = f" in {server.cwd}" if isinstance(error, FileNotFoundError) and server.cwd else ""
        raise UpstreamError(
            server=server.key,
            kind="missing",
            problem=f"cannot be started: {error.strerror or error} ({printable(command)}{printable(place)})",
            remedy="Check command, cwd and permissions.",
        ) from error
    return process


def _program(command: str, path: str | None) -> str | None:
    """Find the program as a shell would; last, beside this interpreter, where ``uvx`` is installed with Truename."""
    if os.path.dirname(command):  # noqa: PTH120 - a question of text: a path is taken relative to cwd, by the system
        return command
    beside = Path(sys.executable).parent
    return shutil.which(command, path=path) or shutil.which(command, path=str(beside))


async def _read_messages(
    key: str, transport: _ChildTransport, pipe: _Pipe, max_line: int, news: RateLimitedLog
) -> None:
    reader = LineReader(max_line)
    assert transport.process.stdout is not None  # noqa: S101 - opened with pipes
    hearer = await pipe.hearer()
    with suppress(*_GONE):
        async for chunk in transport.process.stdout:
            for line in reader.feed(chunk):
                if isinstance(line, TooLong):
                    message = too_long(key, line, transport.secret, news)
                else:
                    message = read_message(line, transport.secret)
                if message is not None:
                    await hearer.hear(message)
                elif isinstance(line, bytes) and line.strip():
                    report_noise(key, line, "writes text that is not a message to its standard output", news)
    # The exit status usually follows the end of the output within moments; it makes a better message.
    with anyio.move_on_after(0.5):
        while transport.process.returncode is None:
            await anyio.sleep(_POLL)
    transport.closed.set()
    hearer.lost()


class _Pipe:
    """A program's standard input: a `RequestTransport` whose answers come among all messages."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - opened with pipes
        self._hearer: Hearer | None = None
        self._begun = anyio.Event()
        # Its own `send` goes once round the loop for each line.
        self._input: asyncio.StreamWriter = process.stdin._stream  # type: ignore[attr-defined]  # noqa: SLF001

    def begin(self, hearer: Hearer) -> None:
        self._hearer = hearer
        self._begun.set()

    async def hearer(self) -> Hearer:
        """Return who gets the messages, once it is there."""
        await self._begun.wait()
        assert self._hearer is not None  # noqa: S101 - it was set before
        return self._hearer

    async def request(self, _: RequestId, message: bytes, headers: Mapping[str, str], __: Take) -> None:
        await self.post(message, headers)

    async def post(self, message: bytes, _: Mapping[str, str]) -> None:
        """Send a line when the program has taken those before it, also one whose sender went away meanwhile."""
        await self._input.drain()
        self._input.write(message + b"\n")
        if self._input.is_closing():
            raise anyio.BrokenResourceError


async def _read_errors(transport: _ChildTransport) -> None:
    assert transport.process.stderr is not None  # noqa: S101 - opened with pipes
    with suppress(*_GONE):
        async for chunk in transport.process.stderr:
            transport.tail.feed(chunk)


async def _end(process: Process) -> None:
    """Close its input and let it end by itself; then end what is left of its process group."""
    if process.stdin is not None:
        with suppress(*_GONE), anyio.move_on_after(STOP_GRACE):
            await process.stdin.aclose()
    await _exited(process, STOP_GRACE)
    for step in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if not _signal(process, step):
            return
        with anyio.move_on_after(STOP_GRACE):
            while process.returncode is None or _signal(process, 0):
                await anyio.sleep(_POLL)
            return


async def _exited(process: Process, seconds: float) -> None:
    # Not process.wait(): it waits for the pipes too, which a grandchild may hold open.
    with anyio.move_on_after(seconds):
        while process.returncode is None:
            await anyio.sleep(_POLL)


def _signal(process: Process, number: int) -> bool:
    """Signal the whole group (0 only asks); False once nothing is left of it."""
    try:
        if sys.platform == "win32":
            if process.returncode is not None:
                return False
            if number:
                process.kill()
        else:
            os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return process.returncode is None
    return True
