"""An upstream server as a child process: JSON-RPC lines on its standard input and output.

Written for servers that misbehave: what is no message on standard output is skipped, lines and standard error are
bounded, and at the end the whole process group goes. (The SDK's own transport holds lines of any length, logs noise
with a traceback, and gives standard error away.)
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
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from truename.gateway.background import background
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.protocol.lines import LineReader, TooLong
from truename.gateway.upstream.link import Link
from truename.gateway.upstream.messages import report_noise, said, too_long

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator, Mapping

    from anyio.abc import Process
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp_types import RequestId

    from truename.config import ServerConfig
    from truename.gateway.protocol.wire import Take
    from truename.gateway.rate_limited_log import RateLimitedLog

__all__ = ["open_stdio"]

# Beside the SDK's few: how this machine reaches the network, or a runner such as uvx or npx cannot fetch the server.
_AMBIENT: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "UV_CACHE_DIR", "UV_SYSTEM_CERTS", "npm_config_cache"),
)
STOP_GRACE: Final = 2.0
_POLL: Final = 0.02
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, OSError)


@dataclass(frozen=True, kw_only=True)
class _ChildLink(Link):
    process: Process
    pipe: _Pipe

    def ending(self) -> str:
        status = self.process.returncode
        if status is None:
            return "closed its standard output"
        if status < 0:
            with suppress(ValueError):
                return f"was terminated by {signal.Signals(-status).name}"
        return f"exited with status {status}"


@asynccontextmanager
async def open_stdio(server: ServerConfig, max_line: int, news: RateLimitedLog) -> AsyncIterator[Link]:
    """Start the program and connect to it; on exit end it with everything that it started.

    Raises `UpstreamError` (missing) if there is no such program or it cannot be started.
    """
    process = await _start(server)
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    pipe, secret = _Pipe(process), os.urandom(8).hex()
    link = _ChildLink(streams=(from_server, to_server), process=process, secret=secret, carrier=pipe, pipe=pipe)
    try:
        async with background() as tasks:
            tasks.start_soon(_read_messages, server.key, link, to_session, max_line, news)
            tasks.start_soon(_write_messages, pipe, from_session)
            tasks.start_soon(_read_errors, link)
            try:
                yield link
            finally:
                with anyio.CancelScope(shield=True):
                    await _end(process)
    finally:
        for stream in (to_session, from_server, to_server, from_session):
            stream.close()
        with anyio.CancelScope(shield=True):
            await process.aclose()


async def _start(server: ServerConfig) -> Process:
    ambient = {key: os.environ[key] for key in _AMBIENT if key in os.environ}
    env = get_default_environment() | ambient | dict(server.env)
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
    key: str,
    link: _ChildLink,
    to_session: MemoryObjectSendStream[SessionMessage | Exception],
    max_line: int,
    news: RateLimitedLog,
) -> None:
    reader = LineReader(max_line)
    assert link.process.stdout is not None  # noqa: S101 - opened with pipes
    with suppress(*_GONE):
        async for chunk in link.process.stdout:
            for line in reader.feed(chunk):
                message = too_long(key, line, link, news) if isinstance(line, TooLong) else said(line, link)
                if message is not None:
                    # The stream only until a session is there: its way is longer.
                    await (link.pipe.hear or to_session.send)(message)
                elif not isinstance(line, TooLong) and line.strip():
                    report_noise(key, line, "writes text that is not a message to its standard output", news)
    # The exit status usually follows the end of the output within moments; it makes a better message.
    with anyio.move_on_after(0.5):
        while link.process.returncode is None:
            await anyio.sleep(_POLL)
    link.closed.set()
    to_session.close()


class _Pipe:
    """A program's standard input, one line after the other: a `Carrier`, whose answers come among all messages."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None  # noqa: S101 - opened with pipes
        # Its own `send` goes once round the loop for each line.
        self.hear: Take | None = None
        self._input: asyncio.StreamWriter = process.stdin._stream  # type: ignore[attr-defined]  # noqa: SLF001

    def begin(self, hear: Take) -> None:
        self.hear = hear

    async def carry(self, number: RequestId, message: bytes, headers: Mapping[str, str], take: Take) -> None:  # noqa: ARG002 - a `Carrier`
        await self.send(message)

    async def send(self, message: bytes) -> None:
        """Send a line when the program has taken those before it, also one whose sender went away meanwhile."""
        await self._input.drain()
        self._input.write(message + b"\n")
        if self._input.is_closing():
            raise anyio.BrokenResourceError


async def _write_messages(pipe: _Pipe, from_session: MemoryObjectReceiveStream[SessionMessage]) -> None:
    # Closing the stream wakes whoever goes on sending.
    with suppress(*_GONE), from_session:
        async for item in from_session:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await pipe.send(text.encode("utf-8", "replace"))


async def _read_errors(link: _ChildLink) -> None:
    assert link.process.stderr is not None  # noqa: S101 - opened with pipes
    with suppress(*_GONE):
        async for chunk in link.process.stderr:
            link.tail.feed(chunk)


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
