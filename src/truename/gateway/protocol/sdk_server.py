"""The SDK's server side, where it announces or admits something else than is meant here."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import INVALID_REQUEST
from starlette.responses import JSONResponse

from truename.gateway.protocol.entries import has_more_entries, too_many_entries
from truename.gateway.protocol.lines import id_at_ends
from truename.gateway.protocol.resumable import ResumableTransport
from truename.gateway.protocol.tracing import Traced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp.server.streamable_http import StreamableHTTPServerTransport
    from mcp_types import ServerCapabilities
    from starlette.types import Message, Receive, Scope, Send

    from truename.gateway.protocol.replay import Replay
    from truename.gateway.room import Share

__all__ = ["Sessions", "ViewServer"]


class ViewServer(Server[Any]):
    """The SDK's low-level server, announcing what ``offered`` says, and list changes on every transport.

    Over HTTP the SDK builds the handshake's capabilities itself, without asking for notification options; and it
    announces whatever there is a handler for.
    """

    offered: Callable[[str], bool]

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.middleware = [Traced() if isinstance(one, OpenTelemetryMiddleware) else one for one in self.middleware]

    def get_capabilities(self, *args: Any, **more: Any) -> ServerCapabilities:
        """Return the SDK's capabilities without those that nothing behind this server has."""
        found = super().get_capabilities(*args, **more)
        for name in ("prompts", "resources", "completions", "logging"):
            if not self.offered(name):
                setattr(found, name, None)
        return found

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> Any:
        """Build the options with all changes of lists announced."""
        chosen = notification_options or NotificationOptions(
            tools_changed=True, prompts_changed=True, resources_changed=True
        )
        return super().create_initialization_options(chosen, experimental_capabilities, extensions)


class Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions of one endpoint, bounded over all endpoints: ``beside`` are those of the others and these.

    ``replay`` keeps what was sent for clients that come back. A message of more than ``max_entries`` keys and items is
    refused before it is parsed.
    """

    beside: Iterable[Sessions] = ()
    replay: Replay
    max_entries: int
    share: Share

    @property
    def open_sessions(self) -> int:
        """How many sessions are open here."""
        return len(self._server_instances)

    def sessions_of(self, requestor: Any) -> int:
        """Return how many sessions of a principal are open here, whatever OAuth client began them."""
        who = _person(requestor)
        return sum(_person(owner) == who for owner in self._session_owners.values())

    async def _handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        # What comes here was read before, in one piece unless its client went away: who would be answered? The SDK
        # reports an exception, and whoever begins requests and leaves could fill a log.
        read = await receive()
        if read["type"] != "http.request" or read.get("more_body", False):
            return
        if await has_more_entries(read["body"], self.max_entries):
            await _refused(read["body"], self.max_entries)(scope, receive, send)
            return
        given = [read]

        async def again() -> Message:
            return given.pop() if given else await receive()

        await super()._handle_request(scope, again, send)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        here = (self, *(one for one in self.beside if one is not self))
        held = sum(one.sessions_of(requestor) for one in here)
        taken = sum(one.open_sessions for one in here)
        if not self.share.fits(held, taken, is_alone=requestor is None):
            return None
        number = uuid4().hex
        transport = self._server_instances[number] = ResumableTransport(
            self.replay,
            number,
            is_json_response_enabled=self.json_response,
            security_settings=self.security_settings,
            idle_timeout=self.session_idle_timeout,
        )
        if requestor is not None:
            self._session_owners[number] = requestor
        return transport


def _person(requestor: Any) -> tuple[object, object] | None:
    return None if requestor is None else (requestor["issuer"], requestor["subject"])


def _refused(body: bytes, most: int) -> JSONResponse:
    error = {"code": INVALID_REQUEST, "message": too_many_entries(most)}
    answer = {"jsonrpc": "2.0", "id": id_at_ends(body), "error": error}
    return JSONResponse(answer, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
