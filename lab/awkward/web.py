"""The awkward server over streamable HTTP, in this program, on loopback."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Self

from lab.awkward.answers import Received
from lab.model.server import body_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lab.awkward.answers import Answers

__all__ = ["WebServer"]


class WebServer:
    """A context manager: the server runs while it is entered, at this port if it is free."""

    def __init__(self, answers: Answers, port: int = 0) -> None:
        self.answers = answers
        self.streams: list[SimpleQueue[Mapping[str, Any]]] = []
        self.over = Event()
        self._server = _listening(port, type("_Bound", (_Endpoint,), {"owner": self}))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The address of the endpoint."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/mcp"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()

    def notify(self, message: Mapping[str, Any]) -> None:
        """Send a message to all clients that listen."""
        for stream in list(self.streams):
            stream.put(message)


class _Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: WebServer

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        raw = body_of(self.headers, self.rfile)
        if not self.path.startswith("/mcp"):
            self._send(404)
            return
        try:
            found = json.loads(raw)
        except ValueError:
            self._send(400)
            return
        messages = found if isinstance(found, list) else [found]
        answers = [answer for message in messages if (answer := self._one(message)) is not None]
        if not answers:
            self._send(202)
            return
        session = {"Mcp-Session-Id": "lab-1"} if messages[0].get("method") == "initialize" else {}
        whole = answers if isinstance(found, list) else answers[0]
        self._send(200, json.dumps(whole, ensure_ascii=False).encode(), session)

    def _one(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        self.owner.answers.note(Received(message, dict(self.headers.items())))
        return self.owner.answers.answer(message, self.owner.notify)

    def do_GET(self) -> None:
        if not self.path.startswith("/mcp"):
            self._send(404)
        elif "text/event-stream" not in (self.headers.get("Accept") or ""):
            self._send(405)
        else:
            self._stream()

    def do_DELETE(self) -> None:
        self._send(200)

    def _stream(self) -> None:
        inbox: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        self.owner.streams.append(inbox)
        try:
            while not self.owner.over.is_set():
                self.wfile.write(_next(inbox))
                self.wfile.flush()
        except OSError:
            pass
        finally:
            self.owner.streams.remove(inbox)

    def _send(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if body:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _listening(port: int, endpoint: type[_Endpoint]) -> ThreadingHTTPServer:
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), endpoint)
    except OSError:
        # Outside a namespace somebody else may be there.
        return ThreadingHTTPServer(("127.0.0.1", 0), endpoint)


def _next(inbox: SimpleQueue[Mapping[str, Any]]) -> bytes:
    try:
        return b"event: message\ndata: " + json.dumps(inbox.get(timeout=1)).encode() + b"\n\n"
    except Empty:
        return b": still here\n\n"
