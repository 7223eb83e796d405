"""Canaries: secrets that are found again, the servers that they are put into, and the search for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from base64 import b64encode
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["Far", "canary", "environment", "farther", "found_in", "served", "written"]


def canary(place: str) -> str:
    """A secret that is found again: 40 characters and more, of the form that each place takes."""
    return f"canary-{place}-{'0123456789abcdef' * 2}"


ASKED_URL = f"https://pay.example/start?ticket={canary('elicited-url')}"
_QUESTION = {"mode": "url", "message": "Pay first.", "url": ASKED_URL, "elicitationId": "e1"}


class Far(ThreadingHTTPServer):
    """A server of the handshake era over HTTP, which keeps all that it is sent, and a collector of spans."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.heard: list[tuple[str, str]] = []
        self.told = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def at(self, *paths: str) -> list[str]:
        """Return what was sent to these paths, heads and bodies."""
        return [text for path, text in self.heard if path in paths]


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Far

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        self.server.heard.append((self.path, f"{self.headers}{body.decode('latin-1')}"))
        message = json.loads(body) if self.path.startswith("/mcp") else {}
        if message.get("method") == "tools/call" and message["params"]["name"] == "ask":
            self._ask(message["id"])
            return
        if "method" not in message and "result" in message:
            self.server.told.set()
        answer = _answer(message)
        self.send_response(200 if answer or not self.path.startswith("/mcp") else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _ask(self, id: Any) -> None:
        """Have the caller open an address, and go on when they said that they do."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self._event({"id": 77, "method": "elicitation/create", "params": _QUESTION})
        self.server.told.wait(10)
        self._event({"id": id, "result": {"content": []}})
        self.close_connection = True

    def _event(self, message: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n\n")
        self.wfile.flush()

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _answer(asked: dict[str, Any]) -> bytes:
    if "id" not in asked or "method" not in asked:
        return b""
    schema = {"type": "object"}
    tools = [{"name": name, "description": name, "inputSchema": schema} for name in ("read", "fails", "ask")]
    answers: dict[str, Any] = {
        "initialize": {
            "protocolVersion": "2025-11-25",
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


@contextmanager
def farther() -> Iterator[Far]:
    """Have such a server while the block lasts."""
    server = Far()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process that leaves all that it writes in a folder."""
    own = {
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src"))),
        "XDG_STATE_HOME": str(folder / "state"),
        "TRUENAME_DEBUG": "1",
    }
    return {**os.environ, **own, **more}


@contextmanager
def served(folder: Path, path: Path, environ: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Have a real `truename serve` in a process of its own; gives it and its address."""
    command = [sys.executable, "-m", "truename", "serve", str(path), "--http", "127.0.0.1:0"]
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


def written(folder: Path, ours: set[str]) -> dict[str, list[str]]:
    """Return all that stands in files, but in those in which the secrets were put."""
    found = [path for path in folder.rglob("*") if path.is_file() and path.name not in ours]
    return {str(path.relative_to(folder)): [path.read_bytes().decode("latin-1")] for path in found}


def found_in(places: Mapping[str, Iterable[str]], secrets: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return where which secret stands: as it is, as in an address, or within what was encoded as base64."""
    forms = {name: _forms(secret) for name, secret in secrets.items()}
    texts = {place: "\n".join(parts) for place, parts in places.items()}
    return [
        (place, name)
        for place, text in texts.items()
        for name, some in forms.items()
        if any(one in text for one in some)
    ]


def _forms(secret: str) -> set[str]:
    # Three bytes are four letters: what it begins with depends on what stands before it, and so for its end.
    coded = (b64encode(b"\0" * before + secret.encode()).decode()[4:-4] for before in range(3))
    return {secret, quote(secret, safe=""), *coded}
