"""Authentication over HTTP: who sends a request, and the end of what they began when that is withdrawn."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import anyio
from starlette.responses import JSONResponse, Response

from truename.auth.inbound.authentication import Authenticated, AuthenticationFailure
from truename.gateway.background import background
from truename.gateway.http.response_stream import ABORT
from truename.gateway.protocol.callers import let_in

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from truename.auth.inbound.authentication import Authenticators, ProtectedResource

__all__ = ["AuthenticationMiddleware", "OpenRequest"]

CHECK_INTERVAL: Final = 1.0
_LISTEN: Final = (b"mcp-method", b"subscriptions/listen")
_NO_STORE: Final = {"cache-control": "no-store"}


class AuthenticationMiddleware:
    """Lets requests in, and answers those that need no letting in: the metadata of who may, and sign-in itself.

    ``pages`` is the application of sign-in, and ``is_page`` tells its paths.
    """

    def __init__(
        self,
        authenticators: Authenticators,
        resource: ProtectedResource,
        pages: ASGIApp | None = None,
        is_page: Callable[[str], bool] = lambda _: False,
    ) -> None:
        self._authenticators = authenticators
        self._resource = resource
        self._pages = pages
        self._is_page = is_page
        self._open: set[OpenRequest] = set()

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """End requests of those who are no longer let in, while the block lasts."""
        async with background() as tasks:
            tasks.start_soon(self._watch)
            yield

    def page(self, path: str) -> ASGIApp | None:
        """Return what answers a path that anybody may ask for; None if it is none of those."""
        if self._resource.issuers and self._resource.is_metadata(path):
            return JSONResponse(self._resource.metadata, headers={"cache-control": "public, max-age=300"})
        return self._pages if self._is_page(path) else None

    async def admit(self, scope: Scope) -> Authenticated | Response:
        """Find out who sends a request and write it there, or return what to answer."""
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

    @contextmanager
    def holding(
        self, admission: Authenticated, scope: Scope, send: Send, leads_here: Callable[[], bool] = lambda: True
    ) -> Iterator[OpenRequest | None]:
        """Have a request answered in this block, for as long as whoever sent it is let in; None if that is for ever.

        A stream ends, too, when its address leads who opened it elsewhere: what is told there is for others now.
        """
        is_stream = scope["method"] == "GET" or _LISTEN in scope["headers"]
        if admission.is_lasting and not is_stream:
            yield None
            return
        with anyio.CancelScope() as cancel:
            one = OpenRequest(admission, cancel, is_stream, leads_here, send)
            self._open.add(one)
            try:
                yield one
            finally:
                self._open.discard(one)

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
            now = time.time()
            for one in [one for one in self._open if one.is_over(now)]:
                one.cancel.cancel()


@dataclass(eq=False)
class OpenRequest:
    """A request that is being answered. A call that was begun in time may end; a stream would go on for ever."""

    admission: Authenticated
    cancel: anyio.CancelScope
    is_stream: bool
    leads_here: Callable[[], bool]
    to_client: Send
    has_begun: bool = False

    async def send(self, message: Message) -> None:
        """Send a part of the response."""
        self.has_begun = True
        await self.to_client(message)

    @property
    def is_broken_off(self) -> bool:
        """Whether it ended because whoever sent it is no longer let in."""
        return self.cancel.cancelled_caught

    def is_over(self, now: float) -> bool:
        """Tell whether whoever sent it is no longer let in."""
        until = self.admission.until
        is_late = self.is_stream and ((until is not None and now >= until) or not self.leads_here())
        return is_late or not self.admission.stands()
