"""The SDK's transport for a session over streamable HTTP, such that a client goes on with a stream that broke off."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from mcp.server.streamable_http import GET_STREAM_KEY, EventMessage, StreamableHTTPServerTransport
from mcp_types import INTERNAL_ERROR, ErrorData, JSONRPCError
from sse_starlette import EventSourceResponse
from starlette.requests import Request

from truename.gateway.protocol.event_response import EventResponse, with_names
from truename.gateway.traffic import count_on

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp.server.streamable_http import SSEEvent
    from starlette.types import Send

    from truename.gateway.protocol.replay import Replay

__all__ = ["ResumableTransport"]

# Milliseconds after which a client shall come back.
_RETRY: Final = 500
# After the end of the gateway; many try twice only, and one failure has Gemini CLI hear of no change any more.
_RETRY_LATER: Final = 10_000
_GONE: Final = (
    "The events after this Last-Event-ID belong to another session or are no longer stored: go on without it. A call "
    "without a result may have been run."
)
_DONE: Final = "This stream has ended: its request was answered."
_ALLOWED: Final = {"allow": "GET, POST, DELETE"}
_LOST: Final = (
    "The gateway was restarted while this request was being answered. Whether it took effect is unknown; check before "
    "you repeat it."
)
_MOST_LOST: Final = 1_000
_LONGEST_NUMBER: Final = 17
_STREAM: Final = {"cache-control": "no-cache, no-transform", "connection": "keep-alive"}


class _Listening(EventSourceResponse):
    """A stream of what is said outside of requests; at its end its client is told when to listen again.

    That is no event, so a client that does not know the field reads nothing.
    """

    def __init__(self, content: AsyncIterator[Any], **more: Any) -> None:
        super().__init__(_ending(content), **more)


async def _ending(events: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for event in events:
        yield event
    yield f"retry: {_RETRY_LATER}\r\n".encode()


class ResumableTransport(StreamableHTTPServerTransport):
    """Keeps what it sends, and gives it to who comes back with ``Last-Event-ID``.

    The SDK's own way leaves a gap between what it gives again and what comes after that: an answer that falls into it
    never arrives.
    """

    def __init__(self, replay: Replay, mcp_session_id: str, *, is_resumed: bool = False, **more: Any) -> None:
        self._events = replay.session(self._is_live)
        self._is_resumed = is_resumed
        # Of another process: requests whose clients were told that they are lost.
        self._lost: set[str] = set()
        self.on_listening: Callable[[], None] | None = None
        super().__init__(mcp_session_id, event_store=self._events, retry_interval=_RETRY, **more)
        self._request_streams = _Streams(self._listened)
        # A message is written once, for the client and for the memory.
        self._create_event_data = self._written  # type: ignore[method-assign]

    _handle_post_request = with_names(
        StreamableHTTPServerTransport._handle_post_request,  # noqa: SLF001 - its own, but for the kind of response
        EventSourceResponse=EventResponse,
    )

    _handle_get_request = with_names(
        StreamableHTTPServerTransport._handle_get_request,  # noqa: SLF001 - as above
        EventSourceResponse=_Listening,
    )

    @property
    def is_in_use(self) -> bool:
        """Whether a request is being answered, or a stream is open."""
        return self._requests_in_flight > 0

    def _listened(self) -> None:
        """Tell, once, that the client listens to what is said outside of its requests."""
        tell, self.on_listening = self.on_listening, None
        if tell is not None:
            tell()

    def _is_live(self, key: str) -> bool:
        return key in self._request_streams

    def _written(self, event_message: EventMessage) -> SSEEvent:
        text = self._events.text(event_message.event_id)
        if text is None:
            return super()._create_event_data(event_message)
        return {"event": "message", "data": text, "id": event_message.event_id}

    async def _replay_events(self, last_event_id: str, request: Request, send: Send) -> None:
        position = self._events.after(last_event_id)
        if position is None and self._is_resumed and (key := self._events.elsewhere(last_event_id)) is not None:
            await self._gone_on(key, last_event_id, request, send)
            return
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
            following: AsyncIterator[Any] = self._events.following(position)
        else:
            following = _ending(self._events.following(position))
        headers = {**_STREAM, "mcp-session-id": str(self.mcp_session_id)}
        await EventSourceResponse(following, headers=headers)(request.scope, request.receive, send)

    async def _gone_on(self, key: str, last_event_id: str, request: Request, send: Send) -> None:
        """Answer who comes back for a stream of the process before: what it was to tell is gone with that."""
        scope = request.scope
        if key == GET_STREAM_KEY:
            fresh = {**scope, "headers": [one for one in scope["headers"] if one[0] != b"last-event-id"]}
            await self._handle_get_request(Request(fresh, request.receive), send)
        elif key in self._lost:
            refused = self._create_error_response(_DONE, HTTPStatus.METHOD_NOT_ALLOWED, headers=_ALLOWED)
            await refused(scope, request.receive, send)
        else:
            if len(self._lost) < _MOST_LOST:
                self._lost.add(key)
            # The client's number, if it was one: in a string of digits it is told apart nowhere else.
            id = int(key) if key.isdecimal() and len(key) < _LONGEST_NUMBER else key
            error = JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=INTERNAL_ERROR, message=_LOST))
            text = error.model_dump_json(by_alias=True, exclude_unset=True)
            event = {"event": "message", "data": text, "id": last_event_id}
            headers = {**_STREAM, "mcp-session-id": str(self.mcp_session_id)}
            await EventSourceResponse(_one(event), headers=headers)(scope, request.receive, send)

    async def terminate(self) -> None:
        """End the session, and let go of what was kept for its client."""
        self._events.close()
        await super().terminate()


class _Streams(dict[Any, Any]):
    """The streams that are being sent, by request; ``listened`` is called when that of none has begun."""

    def __init__(self, listened: Callable[[], None]) -> None:
        super().__init__()
        self._listened = listened

    def __setitem__(self, key: Any, stream: Any) -> None:
        super().__setitem__(key, stream)
        if key == GET_STREAM_KEY:
            self._listened()


async def _one(event: dict[str, str]) -> AsyncIterator[dict[str, str]]:
    yield event
