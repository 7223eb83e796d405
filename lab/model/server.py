"""The model over HTTP on loopback: knows the four APIs by their paths, and notes each request."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Final, Self

from lab.model import anthropic, chat, gemini, responses
from lab.model.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from io import BufferedIOBase
    from types import ModuleType

    from lab.model.script import Script
    from lab.model.turn import Reply, Step

__all__ = ["ModelServer", "Request", "body_of"]

_APIS: Final[Mapping[str, tuple[ModuleType, tuple[str, ...]]]] = {
    "chat": (chat, ("/chat/completions",)),
    "responses": (responses, ("/responses",)),
    "anthropic": (anthropic, ("/messages",)),
    "gemini": (gemini, (":generateContent", ":streamGenerateContent")),
}
_COUNTS: Final = ("count_tokens", ":countTokens")
_MODELS: Final = {
    "object": "list",
    "data": [{"id": "lab-model", "object": "model", "created": 0, "owned_by": "lab"}],
    "models": [],
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to the model and what it was answered."""

    api: str | None
    path: str
    user_agent: str
    turn: Turn
    steps: Sequence[Step]
    body: bytes


class ModelServer:
    """A context manager: the server runs while it is entered. ``requests`` is everything that was asked."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.requests: list[Request] = []
        self._lock = Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("_Bound", (_Endpoint,), {"model": self}))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """The address without a version, as ``http://127.0.0.1:1234``."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def note(self, request: Request) -> int:
        """Keep a request; returns how many there are."""
        with self._lock:
            self.requests.append(request)
            return len(self.requests)


class _Endpoint(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model: ModelServer

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._send(b"", "text/plain")

    def do_GET(self) -> None:
        self.model.note(Request(api=None, path=self.path, user_agent="", turn=Turn(), steps=(), body=b""))
        if "models" in self.path:
            self._send_json(_MODELS)
        else:
            self._send_json({}, 404)

    def do_POST(self) -> None:
        raw = body_of(self.headers, self.rfile)
        path = self.path.partition("?")[0]
        if path.endswith(_COUNTS):
            self._send_json({"input_tokens": 10, "totalTokens": 10})
            return
        body = _object(raw)
        api = next((name for name, (_, endings) in _APIS.items() if path.endswith(endings)), None)
        turn = Turn() if api is None else _APIS[api][0].read(body, path)
        steps: Sequence[Step] = () if api is None else self.model.script.next(turn)
        user_agent = self.headers.get("User-Agent") or ""
        serial = self.model.note(Request(api=api, path=path, user_agent=user_agent, turn=turn, steps=steps, body=raw))
        if api is None:
            self._send_json({}, 404)
        else:
            self._answer(_APIS[api][0].reply(steps, turn, serial))

    def _answer(self, reply: Reply) -> None:
        if reply.document is not None:
            self._send_json(reply.document)
            return
        text = "".join(_event(name, content) for name, content in reply.events)
        self._send(text.encode(), "text/event-stream")

    def _send_json(self, document: Mapping[str, Any], status: int = 200) -> None:
        self._send(json.dumps(document).encode(), "application/json", status)

    def _send(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def body_of(headers: Any, stream: BufferedIOBase) -> bytes:
    """Return the body of a request that may be sent in chunks or compressed."""
    if "chunked" in (headers.get("Transfer-Encoding") or ""):
        body = b"".join(iter(lambda: _chunk(stream), b""))
    else:
        body = stream.read(int(headers.get("Content-Length") or 0))
    return gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body


def _chunk(stream: BufferedIOBase) -> bytes:
    length = int(stream.readline().split(b";")[0].strip() or b"0", 16)
    chunk = stream.read(length)
    stream.readline()
    return chunk


def _object(raw: bytes) -> dict[str, Any]:
    try:
        found = json.loads(raw or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _event(name: str, content: Mapping[str, Any] | str) -> str:
    text = content if isinstance(content, str) else json.dumps(content)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"
