"""The one place for what the MCP SDK (2.3) leaves private, provisional or surprising."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp.client._probe import negotiate_auto
from mcp.client.session import ClientSession, MessageHandlerFnT
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.server.context import CallNext, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
    mcp_param_headers,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    Implementation,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.server.connection import Connection
    from mcp.server.streamable_http import StreamableHTTPServerTransport
    from mcp.shared.dispatcher import CallOptions, ProgressFnT

__all__ = [
    "FAULT_KEY",
    "MODERN_PROTOCOL_VERSIONS",
    "SERVER_INFO_META_KEY",
    "CallNext",
    "MCPError",
    "RawSession",
    "Request",
    "Sessions",
    "ViewServer",
    "connection_of",
    "fault_of",
    "is_modern",
    "session_forgotten",
    "stream_lost",
    "transport_fault",
]

Request = ServerRequestContext[Any, Any]

FAULT_KEY: Final = "dev.truename/transport-fault"
# What belongs to one connection and is written anew for the next one.
_CONNECTION_META: Final = frozenset(
    {
        PROTOCOL_VERSION_META_KEY,
        CLIENT_INFO_META_KEY,
        CLIENT_CAPABILITIES_META_KEY,
        "progressToken",
        "progress_token",
    }
)
# The SDK's HTTP client answers for a stream that broke with a JSON-RPC error of these texts.
_STREAM_LOST: Final = ("SSE stream ended", "SSE stream failed", "Connection closed")


def is_modern(version: str | None) -> bool:
    """Tell whether a protocol version belongs to the stateless era (2026-07-28 and later)."""
    return version in MODERN_PROTOCOL_VERSIONS


def transport_fault(secret: str, kind: str, detail: str) -> dict[str, Any]:
    """Build the data of an error that our own transport answers with; the secret keeps servers from faking one."""
    return {FAULT_KEY: secret, "kind": kind, "detail": detail}


def fault_of(error: MCPError, secret: str) -> tuple[str, str] | None:
    """Return kind and detail if this error comes from our own transport, not from the server."""
    data = error.data
    if isinstance(data, dict) and secret and data.get(FAULT_KEY) == secret:
        return str(data["kind"]), str(data["detail"])
    return None


def stream_lost(error: MCPError) -> bool:
    """Tell whether the SDK made this error up because an answer's stream broke off."""
    return error.code == -32000 and error.message.startswith(_STREAM_LOST)


def session_forgotten(error: MCPError) -> bool:
    """Tell whether the server no longer knows our session (HTTP 404): the request was not run."""
    return error.code == INVALID_REQUEST and error.message == "Session terminated"


class RawSession:
    """A client session that forwards raw dictionaries: definitions and results pass as the server sent them."""

    def __init__(self, session: ClientSession, dispatcher: JSONRPCDispatcher[Any], identity: Implementation) -> None:
        self._session = session
        self._dispatcher = dispatcher
        self._identity = identity.model_dump(by_alias=True, mode="json", exclude_none=True)

    @classmethod
    @asynccontextmanager
    async def over(
        cls,
        streams: TransportStreams,
        identity: Implementation,
        on_message: MessageHandlerFnT,
    ) -> AsyncIterator[RawSession]:
        """Run a session over these streams until the block ends (in one task, as anyio demands)."""
        dispatcher: JSONRPCDispatcher[Any] = JSONRPCDispatcher(streams[0], streams[1])
        async with ClientSession(dispatcher=dispatcher, client_info=identity, message_handler=on_message) as session:
            yield cls(session, dispatcher, identity)

    async def negotiate(self, *, probe: bool) -> None:
        """Agree on a protocol: the newest, or without the probe the handshake at once."""
        if probe:
            await negotiate_auto(self._session)
        else:
            await self._session.initialize()

    @property
    def version(self) -> str:
        """The negotiated protocol version."""
        return self._session.protocol_version or ""

    @property
    def modern(self) -> bool:
        """Whether the server speaks the stateless era."""
        return is_modern(self.version)

    @property
    def lists_tools(self) -> bool:
        """Whether the server says that it has tools."""
        capabilities = self._session.server_capabilities
        return capabilities is not None and capabilities.tools is not None

    @property
    def announces_changes(self) -> bool:
        """Whether the server says that it tells when its tools change."""
        capabilities = self._session.server_capabilities
        return bool(capabilities and capabilities.tools and capabilities.tools.list_changed)

    async def send(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        header_map: Mapping[tuple[str, ...], str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
    ) -> dict[str, Any]:
        """Send one request as it is, but for what belongs to the connection. Raises `MCPError`.

        ``capabilities`` are those of the client on whose behalf it is sent; ``header_map`` says which arguments are
        mirrored in HTTP headers.
        """
        body = dict(params)
        meta = {key: value for key, value in (body.pop("_meta", None) or {}).items() if key not in _CONNECTION_META}
        options: CallOptions = {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.version}}
        if self.modern:
            meta[PROTOCOL_VERSION_META_KEY] = self.version
            meta[CLIENT_INFO_META_KEY] = self._identity
            meta[CLIENT_CAPABILITIES_META_KEY] = dict(capabilities or {})
            options["headers"] |= _routing_headers(method, body, header_map or {})
        if meta:
            body["_meta"] = meta
        if on_progress is not None:
            options["on_progress"] = on_progress
        return await self._dispatcher.send_raw_request(method, body, options)

    async def listen(self, on_event: Callable[[], None]) -> None:
        """Follow the changes of the tools in the stateless era until the server's stream ends.

        ``on_event`` is called when the stream is open, and at every change.
        """
        try:
            async with listen(self._session, tools_list_changed=True) as subscription:
                on_event()
                async for _ in subscription:
                    on_event()
        except (SubscriptionLost, ListenNotSupportedError, MCPError):
            return


def _routing_headers(
    method: str, params: Mapping[str, Any], header_map: Mapping[tuple[str, ...], str]
) -> dict[str, str]:
    headers = {MCP_METHOD_HEADER: method}
    name = params.get("name")
    if method == "tools/call" and isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
        arguments = params.get("arguments")
        if isinstance(arguments, Mapping):
            headers |= mcp_param_headers(header_map, arguments)
    return headers


class ViewServer(Server[Any]):
    """The SDK's low-level server, announcing list changes on every transport.

    Over HTTP the SDK builds the handshake's capabilities itself, without asking for notification options.
    """

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> Any:
        """Build the options with tools/list_changed announced."""
        chosen = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(chosen, experimental_capabilities, extensions)


class Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions of one endpoint, bounded over all endpoints: ``beside`` are those of the others and these."""

    beside: Iterable[Sessions] = ()

    @property
    def open_sessions(self) -> int:
        """How many sessions are open here."""
        return len(self._server_instances)

    def _admit_session(self, requestor: Any) -> StreamableHTTPServerTransport | None:
        others = sum(one.open_sessions for one in self.beside if one is not self)
        if self.max_sessions is not None and others + self.open_sessions >= self.max_sessions:
            return None
        return super()._admit_session(requestor)


def connection_of(request: Request) -> Connection:
    """Return the connection behind a request: a session in the handshake eras, one exchange in the stateless one."""
    return request.session._connection  # noqa: SLF001 - the SDK gives handlers no public way to it
