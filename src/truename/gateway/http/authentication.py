"""Authentication over HTTP: who sends a request, and the end of what they began when that is withdrawn."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio
from starlette.responses import JSONResponse, Response

from truename.auth.inbound.authentication import Authenticated, AuthenticationFailure
from truename.gateway.background import LoopTurn, background
from truename.gateway.cancellation import Cancellation
from truename.gateway.http.response_stream import ABORT
from truename.gateway.protocol.callers import header_of, let_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import TracebackType

    from starlette.types import Message, Receive, Scope, Send

    from truename.auth.inbound.authentication import Authenticators, ProtectedResource
    from truename.policy.principal import Principal

__all__ = ["AuthenticationMiddleware", "OpenRequest", "is_stream"]

CHECK_INTERVAL: Final = 1.0
_METHOD: Final = b"mcp-method"
_LISTEN: Final = b"subscriptions/listen"
_NO_STORE: Final = {"cache-control": "no-store"}


class AuthenticationMiddleware:
    """Authenticates the senders of requests, and ends what they began when that is withdrawn."""

    def __init__(self, authenticators: Authenticators, resource: ProtectedResource) -> None:
        self._authenticators = authenticators
        self._resource = resource
        self._open: set[OpenRequest] = set()
        self._turn = LoopTurn()
        self._are_open = False

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """End requests of those who are no longer let in, while the block lasts."""
        async with background() as tasks:
            tasks.start_soon(self._watch)
            yield

    async def metadata(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the metadata of the protected resource (RFC 9728)."""
        answer = JSONResponse(self._resource.metadata, headers={"cache-control": "public, max-age=300"})
        await answer(scope, receive, send)

    async def admit(self, scope: Scope) -> Authenticated | Response:
        """Find out who sends a request and write it there, or return what to answer."""
        if self._turn.is_new():
            # The first token that is made asks for one from the next turn of the loop on.
            self._are_open = self._authenticators.are_open
        if self._are_open:
            let_in(scope, self._authenticators.local)
            return self._authenticators.local
        values = [value.decode("latin-1") for key, value in scope["headers"] if key == b"authorization"]
        found = await self._authenticators.admit(values)
        if isinstance(found, AuthenticationFailure):
            return self._refused(found)
        let_in(scope, found)
        return found

    def _refused(self, refusal: AuthenticationFailure) -> Response:
        said = {"error": refusal.error or refusal.text}
        if refusal.error:
            said["error_description"] = refusal.text
        answer = JSONResponse(said, refusal.status, headers=_NO_STORE)
        if refusal.status in {400, 401, 403}:
            answer.headers["www-authenticate"] = self._resource.challenge(refusal)
        return answer

    def holding(
        self, admission: Authenticated, send: Send, leads_here: Callable[[], bool] | None = None
    ) -> OpenRequest:
        """Return a block that is cancelled when its request's sender loses access: a token is revoked or expires.

        ``leads_here`` is for a stream, None for any other request: a stream is also cancelled when it is False, because
        its path is now another profile's, and its events are not for this client.
        """
        return OpenRequest(admission, send, leads_here, self._open)

    async def end(self, request: OpenRequest, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request that was broken off; within its response, the connection is closed."""
        answer = await self.admit(scope)
        if isinstance(answer, Response) and not request.has_begun:
            await answer(scope, receive, send)
        elif ABORT in scope:
            scope[ABORT]()

    async def _watch(self) -> None:
        while True:
            await anyio.sleep(CHECK_INTERVAL)
            if self._open:
                await self._authenticators.refresh()
            now = time.time()
            for one in [one for one in self._open if one.is_over(now) or self._is_barred(one)]:
                one.cancellation.cancel()

    def _is_barred(self, request: OpenRequest) -> bool:
        return not self._authenticators.are_open and self._authenticators.is_barred(request.principal)


def is_stream(scope: Scope) -> bool:
    """Return whether a request opens a stream that has no end of its own."""
    return scope["method"] == "GET" or header_of(scope, _METHOD) == _LISTEN


class OpenRequest:
    """A request that is being answered. A call that was begun in time may end; a stream would go on for ever."""

    def __init__(
        self, admission: Authenticated, send: Send, leads_here: Callable[[], bool] | None, among: set[OpenRequest]
    ) -> None:
        self.cancellation = Cancellation()
        self.has_begun = False
        self._admission = admission
        self._send = send
        self._leads_here = leads_here
        self._among = among

    def __enter__(self) -> OpenRequest:
        self._among.add(self)
        self.cancellation.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._among.discard(self)
        return self.cancellation.__exit__(kind, error, trace)

    @property
    def principal(self) -> Principal:
        """Who sent it."""
        return self._admission.principal

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        self.has_begun = True
        await self._send(message)

    def is_over(self, now: float) -> bool:
        """Tell whether whoever sent it is no longer let in."""
        until = self._admission.until
        if self._leads_here is not None and ((until is not None and now >= until) or not self._leads_here()):
            return True
        return not self._admission.stands()
