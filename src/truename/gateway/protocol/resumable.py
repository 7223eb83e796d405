"""The SDK's transport for a session over streamable HTTP, such that a client goes on with a stream that broke off."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from mcp.server.streamable_http import GET_STREAM_KEY, EventMessage, StreamableHTTPServerTransport
from sse_starlette import EventSourceResponse

from truename.gateway.protocol.event_response import EventResponse, with_names
from truename.gateway.traffic import count_on

if TYPE_CHECKING:
    from mcp.server.streamable_http import SSEEvent
    from starlette.requests import Request
    from starlette.types import Send

    from truename.gateway.protocol.replay import Replay

__all__ = ["ResumableTransport"]

# Milliseconds after which a client shall come back.
_RETRY: Final = 500
_GONE: Final = (
    "The events after this Last-Event-ID are of another session, or are not kept any more: go on without it. A call "
    "whose answer is missing may have been run."
)
_DONE: Final = "There is no more of this stream: its request was answered."
_ALLOWED: Final = {"allow": "GET, POST, DELETE"}
_STREAM: Final = {"cache-control": "no-cache, no-transform", "connection": "keep-alive"}


class ResumableTransport(StreamableHTTPServerTransport):
    """Keeps what it sends, and gives it to who comes back with ``Last-Event-ID``.

    The SDK's own way leaves a gap between what it gives again and what comes after that: an answer that falls into it
    never arrives.
    """

    def __init__(self, replay: Replay, mcp_session_id: str, **more: Any) -> None:
        self._events = replay.session(self._is_live)
        super().__init__(mcp_session_id, event_store=self._events, retry_interval=_RETRY, **more)
        # A message is written once, for the client and for the memory.
        self._create_event_data = self._written  # type: ignore[method-assign]

    _handle_post_request = with_names(
        StreamableHTTPServerTransport._handle_post_request,  # noqa: SLF001 - its own, but for the kind of response
        EventSourceResponse=EventResponse,
    )

    def _is_live(self, key: str) -> bool:
        return key in self._request_streams

    def _written(self, event_message: EventMessage) -> SSEEvent:
        text = self._events.text(event_message.event_id)
        if text is None:
            return super()._create_event_data(event_message)
        return {"event": "message", "data": text, "id": event_message.event_id}

    async def _replay_events(self, last_event_id: str, request: Request, send: Send) -> None:
        position = self._events.after(last_event_id)
        if position is None:
            refused = self._create_error_response(_GONE, HTTPStatus.BAD_REQUEST)
            await refused(request.scope, request.receive, send)
            return
        if self._events.is_done(position):
            # After an empty stream some clients would ask for the next one.
            refused = self._create_error_response(_DONE, HTTPStatus.METHOD_NOT_ALLOWED, headers=_ALLOWED)
            await refused(request.scope, request.receive, send)
            return
        if (live := self._events.live_key(position)) is not None:
            # The client has lost that connection, though it is not noticed here yet.
            self.close_sse_stream(live)
        if position.stream.key != GET_STREAM_KEY:
            count_on(request.scope)
        headers = {**_STREAM, "mcp-session-id": str(self.mcp_session_id)}
        following = self._events.following(position)
        await EventSourceResponse(following, headers=headers)(request.scope, request.receive, send)

    async def terminate(self) -> None:
        """End the session, and let go of what was kept for its client."""
        self._events.close()
        await super().terminate()
