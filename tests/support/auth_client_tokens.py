"""Test support: client tokens, used by tests of several modules."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from truename.auth.network.fetch import FetchedDocument, FetchError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tests.auth.authority import Authority


SECRET = "cl13nt-canary"


class Guarded:
    """A server that takes tokens of one authorization server only, and keeps what it was shown."""

    def __init__(self, app: ASGIApp, idp: Authority) -> None:
        self._app = app
        self._idp = idp
        self.shown: list[str] = []
        self.calls: list[str] = []
        self.also: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            said = dict(scope["headers"]).get(b"authorization", b"").decode()
            self.shown.append(said)
            if scope["method"] == "POST":
                # The handshake versions have no header that says the method.
                body, receive = await _whole(receive)
                if json.loads(body or b"{}").get("method") == "tools/call":
                    self.calls.append(said)
            good = {f"Bearer {token.access_token}" for token in self._idp.tokens if not token.revoked}
            if said not in good | self.also:
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)


async def _whole(receive: Receive) -> tuple[bytes, Receive]:
    """Return the body of a request, and what gives it once more."""
    messages = [await receive()]
    while messages[-1].get("more_body"):
        messages.append(await receive())
    body = b"".join(message.get("body", b"") for message in messages)

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return body, again


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Said:
    """An authorization server that answers as it is told."""

    def __init__(self, answer: Any, status: int = 200) -> None:
        self.body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.status = status
        self.forms: list[Any] = []

    async def __call__(self, url: str, **asked: Any) -> FetchedDocument:
        self.forms.append({"url": url, **asked})
        return FetchedDocument(self.status, self.body)

    async def network_zone(self, url: str) -> Any:
        raise FetchError(url)
