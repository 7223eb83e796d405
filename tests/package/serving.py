"""A gateway that was installed, over HTTP: whether it is ready, and what a tool behind it returns."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tests.package.commands import expect, fail, say

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

TOKEN: Final = "t" * 40
BEARER: Final = {"authorization": f"Bearer {TOKEN}"}
_VERSION: Final = "2025-11-25"
# Of the environment that the gateway is installed in: the SDK is there.
SERVER: Final = '''
from mcp.server import MCPServer

server = MCPServer("shop")


@server.tool()
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


server.run()
'''


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def ask(port: int, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], str]:
    """Return status, headers and text of the answer; status 0 if there is none."""
    data = None if body is None else json.dumps(body).encode()
    heads = {"content-type": "application/json", "accept": "application/json, text/event-stream", **headers}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, heads)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            return response.status, {k.lower(): v for k, v in response.headers.items()}, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, {}, error.read().decode()
    except OSError as error:
        return 0, {}, str(error)


def await_ready(port: int, process: subprocess.Popen[str]) -> float:
    """Return after how many seconds it was ready; stop with what it said if it ends or two minutes pass."""
    began = time.monotonic()
    while ask(port, "/readyz")[0] != 200:
        if process.poll() is not None or time.monotonic() - began > 120:
            process.kill()
            fail(f"it does not become ready:\n{process.communicate()[1]}")
        time.sleep(0.1)
    return time.monotonic() - began


def call(port: int) -> str:
    """Call the tool of `SERVER` with 21, as a client of 2025-11-25; whoever has no token is refused first."""
    params = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"name": "try", "version": "1"}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    expect(401, ask(port, "/mcp", hello)[0], "the answer to whoever has no token")
    status, heads, text = ask(port, "/mcp", hello, **BEARER)
    expect(200, status, f"the answer to initialize ({text})")
    session = {**BEARER, "mcp-session-id": heads["mcp-session-id"], "mcp-protocol-version": _VERSION}
    ask(port, "/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, **session)
    message = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "double", "arguments": {"number": 21}},
    }
    _, _, answer = ask(port, "/mcp", message, **session)
    data = next((line[6:] for line in answer.splitlines() if line.startswith("data: {")), answer)
    result: dict[str, Any] = json.loads(data)
    return str(result["result"]["content"][0]["text"]) if "result" in result else answer


@contextmanager
def serving(truename: Path, config: Path, *options: str, env: Mapping[str, str]) -> Iterator[int]:
    """Run `truename serve` until the block ends; yield the port."""
    port = free_port()
    command = [str(truename), "serve", str(config), "--http", f"127.0.0.1:{port}", *options]
    say("$ " + " ".join(command))
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, env=dict(env)
    )
    try:
        await_ready(port, process)
        yield port
    finally:
        process.terminate()
        process.communicate(timeout=60)
