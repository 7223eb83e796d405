"""Canaries: a secret in every place where secrets live, and none in anything that the process says, sends or stores.

A real `truename serve` runs in a process of its own; each canary may be seen only by whom it is for.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

_MARK = "canary"


def canary(place: str) -> str:
    """A secret that is found again: 40 characters and more, of the form that each place takes."""
    return f"{_MARK}-{place}-{'0123456789abcdef' * 2}"


TOKEN = canary("static-token")
UPSTREAM = canary("upstream-header")
ENVIRON = canary("environment")
ENV_FILE = canary("env-file")
AUDIT_KEY = canary("audit-key")
ARGUMENT = canary("argument")
PASSWORD = canary("password")
WRONG = canary("wrong-token")
QUERY = canary("query")
ALL = (TOKEN, UPSTREAM, ENVIRON, ENV_FILE, AUDIT_KEY, ARGUMENT, PASSWORD, WRONG, QUERY)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Far(ThreadingHTTPServer):
    """A server of the handshake era over HTTP, which keeps all that it is sent, and a collector of spans."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.heard: list[tuple[str, str]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Far

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.heard.append((self.path, f"{self.headers}{body.decode('latin-1')}"))
        answer = b"" if self.path != "/mcp" else _answer(json.loads(body))
        self.send_response(200 if answer or self.path != "/mcp" else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _answer(asked: dict[str, Any]) -> bytes:
    if "id" not in asked:
        return b""
    schema = {"type": "object"}
    tools = [{"name": name, "description": name, "inputSchema": schema} for name in ("read", "fails")]
    answers: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "far", "version": "1"},
        },
        "tools/list": {"tools": tools},
    }
    method, head = asked["method"], {"jsonrpc": "2.0", "id": asked["id"]}
    if method == "tools/call" and asked["params"]["name"] == "read":
        return json.dumps({**head, "result": {"content": []}}).encode()
    if method in answers:
        return json.dumps({**head, "result": answers[method]}).encode()
    return json.dumps({**head, "error": {"code": -32603, "message": "no"}}).encode()


@pytest.fixture
def far() -> Iterator[Far]:
    server = Far()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def configuration(folder: Path, far: Far) -> Path:
    (folder / "secrets.env").touch(mode=0o600)
    (folder / "secrets.env").write_text(f"FAR_TOKEN={UPSTREAM}\nCHILD={ENV_FILE}\n")
    child = {
        "command": sys.executable,
        "args": ["-m", "tests.gateway.servers.normal", "near", "read", "die"],
        "cwd": str(ROOT),
        "env": {"CHILD": "${CHILD}"},
    }
    document = {
        "mcpServers": {
            "far": {"type": "http", "url": f"{far.address}/mcp", "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}},
            "near": child,
            "gone": {"type": "http", "url": f"http://127.0.0.1:9/mcp?key={QUERY}"},
        },
        "truename": {
            "env_file": "secrets.env",
            "token": "${GATE_TOKEN}",
            "audit": {"path": "audit", "key": "${AUDIT_KEY}"},
            "telemetry": {"metrics": True, "metrics_sent": True, "traces": True},
            "policy": {"default": "allow"},
        },
    }
    path = folder / "mcp.json"
    path.write_text(json.dumps(document))
    return path


@contextmanager
def served(folder: Path, far: Far) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
        "XDG_STATE_HOME": str(folder / "state"),
        "GATE_TOKEN": TOKEN,
        "AUDIT_KEY": AUDIT_KEY,
        "UNRELATED": ENVIRON,
        "TRUENAME_DEBUG": "1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"{far.address}/otlp",
    }
    command = [sys.executable, "-m", "truename", "serve", str(configuration(folder, far)), "--http", "127.0.0.1:0"]
    command += ["--json", "--log-format", "json", "--log-level", "debug"]
    with (folder / "err").open("w") as err, (folder / "out").open("w") as out:
        process = subprocess.Popen(command, env=environ, stdout=out, stderr=err, text=True)
        try:
            yield process, _url(folder, process)
        finally:
            process.kill()
            process.wait()


def _url(folder: Path, process: subprocess.Popen[str]) -> str:
    while process.poll() is None:
        text = (folder / "out").read_text()
        if text.endswith("\n}\n"):
            return str(json.loads(text)["url"])
        threading.Event().wait(0.05)
    raise AssertionError((folder / "err").read_text())


async def call(http: httpx2.AsyncClient, url: str, name: str, token: str = TOKEN, **arguments: str) -> str:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await http.post(url, json=body, headers=headers)).text


async def test_no_secret_leaves_the_place_where_it_belongs(tmp_path: Path, far: Far) -> None:
    told: list[str] = []
    with served(tmp_path, far) as (process, url):
        async with httpx2.AsyncClient(timeout=30) as http:
            for name in ("far_read", "far_fails", "near_read", "near_die", "gone_x", "nothing"):
                arguments = {"text": "x"} if name == "near_read" else {"text": ARGUMENT, "password": PASSWORD}
                told.append(await call(http, url, name, **arguments))
            told.append(await call(http, url, "far_read", token=WRONG))
            metrics = await http.get(
                url.removesuffix("/mcp") + "/metrics", headers={"authorization": f"Bearer {TOKEN}"}
            )
            assert metrics.status_code == 200
            told.append(metrics.text)
            told += [(await http.get(url.removesuffix("/mcp") + path)).text for path in ("/readyz", "/metrics")]
        (tmp_path / "mcp.json").write_text(f'{{"mcpServers": {{"far": 5}}, "truename": {{"token": "{TOKEN}"}}}}')
        process.send_signal(signal.SIGHUP)
        with anyio.fail_after(15):
            while '"errors"' not in (tmp_path / "err").read_text():
                await anyio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        await anyio.to_thread.run_sync(process.wait)

    calls = [text for path, text in far.heard if path == "/mcp"]
    spans = [text for path, text in far.heard if path != "/mcp"]
    # The search finds what is there: the server was sent its own token and the arguments, and spans were sent.
    assert any(UPSTREAM in text for text in calls)
    assert any(ARGUMENT in text for text in calls)
    assert any("truename.tool.id" in text for text in spans)
    assert '"kind":"call"' in "".join(path.read_text() for path in (tmp_path / "audit").glob("*.jsonl"))
    for line in (tmp_path / "err").read_text().splitlines():
        assert line.isprintable()

    places = {
        "answers": told,
        "spans": spans,
        "calls": [text.replace(UPSTREAM, "").replace(ARGUMENT, "").replace(PASSWORD, "") for text in calls],
        **{str(path.relative_to(tmp_path)): [path.read_bytes().decode("latin-1")] for path in written(tmp_path)},
    }
    found = [(place, one) for place, texts in places.items() for one in ALL if one in "".join(texts)]
    assert found == []


def written(folder: Path) -> list[Path]:
    """All files but those in which the secrets were put."""
    ours = {"secrets.env", "mcp.json"}
    return [path for path in folder.rglob("*") if path.is_file() and path.name not in ours]
