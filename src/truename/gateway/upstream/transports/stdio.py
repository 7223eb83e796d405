"""An upstream server as a child process: JSON-RPC lines on its standard input and output.

Written for servers that misbehave: what is no message on standard output is skipped, lines and standard error are
bounded, and at the end the whole process group goes.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
import signal
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import anyio

from truename.gateway.protocol.lines import LineReader
from truename.gateway.upstream.messages import receive
from truename.gateway.upstream.transport import Receiver, Transport, TransportError
from truename.gateway.upstream.transports.gated_pipe import GatedPipe
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from truename.config import ServerConfig
    from truename.gateway.rate_limited_log import RateLimitedLog

__all__ = ["open_stdio"]

# What a program is given of this environment: who runs it and where, and how this machine reaches the network, or a
# runner such as uvx or npx cannot fetch the server.
_OWN: Final = (
    (
        *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "PROCESSOR_ARCHITECTURE"),
        *("SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
    )
    if sys.platform == "win32"
    else ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
)
_AMBIENT: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "UV_CACHE_DIR", "UV_SYSTEM_CERTS", "npm_config_cache"),
)
STOP_GRACE: Final = 2.0
_POLL: Final = 0.02
_EXIT_SECONDS: Final = 0.5
_OUTPUT: Final = 1
_NOISE: Final = "writes text that is not a message to its standard output"


@asynccontextmanager
async def open_stdio(
    server: ServerConfig, max_line: int, log: RateLimitedLog, pipe: GatedPipe | None = None
) -> AsyncIterator[Transport]:
    """Start the program and connect to it; on exit end it with everything that it started.

    ``pipe`` is its standard input, if that is not an ordinary pipe. Raises `UpstreamError` (missing) if there is no
    such program or it cannot be started.
    """
    transport = await _start(server, max_line, log, pipe)
    try:
        yield transport
    finally:
        with anyio.CancelScope(shield=True):
            await transport.end()


async def _start(server: ServerConfig, max_line: int, log: RateLimitedLog, pipe: GatedPipe | None) -> _StdioTransport:
    own = {key: os.environ[key] for key in _OWN if not os.environ.get(key, "()").startswith("()")}
    ambient = {key: os.environ[key] for key in _AMBIENT if key in os.environ}
    env = own | ambient | dict(server.env)
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
            _, protocol = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Program(LineReader(max_line), server.key, log, pipe),
                command,
                *server.args,
                stdin=asyncio.subprocess.PIPE if pipe is None else pipe.theirs,
                env=env,
                cwd=server.cwd,
                start_new_session=sys.platform != "win32",
            )
    except OSError as error:
        place = f" in {server.cwd}" if isinstance(error, FileNotFoundError) and server.cwd else ""
        raise UpstreamError(
            server=server.key,
            kind="missing",
            problem=f"cannot be started: {error.strerror or error} ({printable(command)}{printable(place)})",
            remedy="Check command, cwd and permissions.",
        ) from error
    finally:
        if pipe is not None:
            pipe.handed_over()
    return _StdioTransport(protocol)


def _program(command: str, path: str | None) -> str | None:
    """Find the program as a shell would; last, beside this interpreter, where ``uvx`` is installed with Truename."""
    if os.path.dirname(command):  # noqa: PTH120 - a question of text: a path is taken relative to cwd, by the system
        return command
    beside = Path(sys.executable).parent
    return shutil.which(command, path=path) or shutil.which(command, path=str(beside))


class _Program(asyncio.SubprocessProtocol):
    """The pipes of a program. What it writes before there is a session waits for that, within the bound of a line."""

    def __init__(self, lines: LineReader, key: str, log: RateLimitedLog, pipe: GatedPipe | None) -> None:
        self._pipe = pipe
        self.tail_feed: list[bytes] = []
        self.closed = anyio.Event()
        self.transport: _StdioTransport | None = None
        self._lines = lines
        self._key = key
        self._log = log
        self._receiver: Receiver | None = None
        self._early: list[bytes] = []
        self._taken: asyncio.Future[None] | None = None
        self._has_output = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.process = cast("asyncio.SubprocessTransport", transport)
        self.input = self._pipe or cast("asyncio.WriteTransport", self.process.get_pipe_transport(0))

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd != _OUTPUT:
            if self.transport is None:
                self.tail_feed.append(data)
            else:
                self.transport.tail.feed(data)
        elif self._receiver is None:
            self._early.append(data)
            self._reading(on=False)
        else:
            for line in self._lines.feed(data):
                receive(line, self._receiver, self._key, self._log, _NOISE)

    def _reading(self, *, on: bool) -> None:
        pipe = cast("asyncio.ReadTransport", self.process.get_pipe_transport(_OUTPUT))
        with suppress(RuntimeError, AttributeError):
            if on:
                pipe.resume_reading()
            else:
                pipe.pause_reading()

    def begin(self, receiver: Receiver) -> None:
        self._receiver = receiver
        early, self._early = self._early, []
        for data in early:
            self.pipe_data_received(_OUTPUT, data)
        self._reading(on=True)

    def pause_writing(self) -> None:
        self._taken = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        taken, self._taken = self._taken, None
        if taken is not None and not taken.done():
            taken.set_result(None)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - an asyncio protocol
        if fd == 0:
            self.resume_writing()
        if fd == _OUTPUT:
            self._has_output = False
            # The exit status usually follows the end of the output within moments; it makes a better message.
            asyncio.get_running_loop().call_later(0 if self.has_exited else _EXIT_SECONDS, self.closed.set)

    def process_exited(self) -> None:
        if not self._has_output:
            self.closed.set()

    @property
    def has_exited(self) -> bool:
        return self.process.get_returncode() is not None

    async def write(self, line: bytes) -> None:
        """Write a line when the program has taken those before it. Raises `TransportError` once it takes none."""
        while self._taken is not None:
            await asyncio.shield(self._taken)
        if self.input.is_closing():
            with anyio.move_on_after(_EXIT_SECONDS):
                await self.closed.wait()
            raise TransportError("lost")
        if isinstance(self.input, GatedPipe):
            await self.input.write(line)
        else:
            self.input.write(line)


class _StdioTransport(Transport):
    def __init__(self, program: _Program) -> None:
        super().__init__()
        self.run = secrets.token_hex(8)
        self.closed = program.closed
        self._program = program
        for data in program.tail_feed:
            self.tail.feed(data)
        program.transport = self

    def begin(self, receiver: Receiver) -> None:
        """Give to this receiver what comes from now on, and what came until now."""
        self._program.begin(receiver)

    async def request(self, number: int, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        """Write a request; its response comes to the receiver."""
        await self._program.write(message + b"\n")

    async def notify(self, message: bytes, headers: bytes) -> None:  # noqa: ARG002 - a `Transport`
        """Write a message that is not answered."""
        with suppress(TransportError):
            await self._program.write(message + b"\n")

    def ending(self) -> str:
        """Say how it ended, as far as is known."""
        status = self._program.process.get_returncode()
        if status is None:
            return "closed its standard output"
        if status < 0:
            with suppress(ValueError):
                return f"was terminated by {signal.Signals(-status).name}"
        return f"exited with status {status}"

    async def end(self) -> None:
        """Close the program's input and let it end by itself; then end what is left of its process group."""
        program = self._program
        try:
            program.input.close()
            await _exited(program, STOP_GRACE)
            for step in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
                if not _signal(program.process, step):
                    return
                with anyio.move_on_after(STOP_GRACE):
                    while not program.has_exited or _signal(program.process, 0):
                        await anyio.sleep(_POLL)
                    return
        finally:
            program.process.close()


async def _exited(program: _Program, seconds: float) -> None:
    # A grandchild may hold the pipes open: only the program counts.
    with anyio.move_on_after(seconds):
        while not program.has_exited:
            await anyio.sleep(_POLL)


def _signal(process: asyncio.SubprocessTransport, number: int) -> bool:
    """Signal the whole group (0 only asks); False once nothing is left of it."""
    try:
        if sys.platform == "win32":
            if process.get_returncode() is not None:
                return False
            if number:
                process.kill()
        else:
            os.killpg(process.get_pid(), number)
    except (ProcessLookupError, PermissionError):
        return process.get_returncode() is None
    return True
