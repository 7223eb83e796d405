"""The one place for what the MCP SDK (2.3) leaves private, provisional or surprising."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp.client._probe import negotiate_auto
from mcp.client.subscriptions import ListenNotSupportedError, ResourceUpdated, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    Implementation,
)
from mcp_types.jsonrpc import URL_ELICITATION_REQUIRED
from mcp_types.methods import SPEC_CLIENT_METHODS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from truename.gateway.protocol.answering import AnsweringSession
from truename.gateway.protocol.json_text import read_out
from truename.gateway.protocol.marking import FAULT_KEY, fault_of, transport_fault
from truename.gateway.protocol.own_meta import without_own_meta
from truename.gateway.protocol.wire import Wire

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams
    from mcp.client.session import ClientSession, MessageHandlerFnT
    from mcp.shared.dispatcher import ProgressFnT

    from truename.gateway.mcp.requests import Request
    from truename.gateway.protocol.wire import Carrier
    from truename.gateway.questions.elicitation import ElicitationRouter

__all__ = [
    "FAULT_KEY",
    "MODERN_PROTOCOL_VERSIONS",
    "SERVER_INFO_META_KEY",
    "SPEC_CLIENT_METHODS",
    "TASKS_EXTENSION",
    "TASKS_VERSION",
    "URL_ELICITATION_REQUIRED",
    "MCPError",
    "RawSession",
    "declared_by",
    "fault_of",
    "is_modern",
    "transport_fault",
]

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
_LISTED: Final = ("tools", "prompts", "resources")
# By method, the parameter that a header repeats: the SDK's, and those of the extension for tasks.
_NAMED: Final = {**NAME_BEARING_METHODS, **dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")}
# The one handshake version, and the extension since, that have tasks.
TASKS_VERSION: Final = "2025-11-25"
TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"


def is_modern(version: str | None) -> bool:
    """Tell whether a protocol version belongs to the stateless era (2026-07-28 and later)."""
    return version in MODERN_PROTOCOL_VERSIONS


class RawSession:
    """A client session that forwards raw dictionaries: definitions and results pass as the server sent them."""

    def __init__(
        self,
        session: ClientSession,
        dispatcher: Wire,
        identity: Implementation,
        questions: ElicitationRouter,
    ) -> None:
        self.questions = questions
        # Who measures is given the method and what is waited for, and gives that back.
        self.timed: Callable[[str, Awaitable[dict[str, Any]]], Awaitable[dict[str, Any]]] | None = None
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
        questions: ElicitationRouter,
        carrier: Carrier | None = None,
    ) -> AsyncIterator[RawSession]:
        """Run a session over these streams until the block ends (in one task, as anyio demands).

        ``carrier`` is the transport's own way for what `send` sends, if it has one.
        """
        dispatcher = Wire(streams, carrier)
        session = AnsweringSession(dispatcher=dispatcher, client_info=identity, message_handler=on_message)
        session.declares, session.relayed = questions.declares, questions.relayed
        async with session:
            yield cls(session, dispatcher, identity, questions)

    def next_number(self) -> int:
        """Return the id for a request that is sent next, for who has to know it before (``number`` of `send`)."""
        return self._dispatcher._allocate_id()  # noqa: SLF001 - an id of one's own could meet one of the SDK's

    @property
    def is_lost(self) -> bool:
        """Whether the connection is gone, so that what `send` raises is no answer of the server."""
        return self._dispatcher.is_lost

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

    def offers(self, capability: str) -> bool:
        """Whether the server says that it has this (``tools``, ``prompts``, ``resources``, ``completions``...)."""
        return getattr(self._session.server_capabilities, capability, None) is not None

    @property
    def tasks(self) -> Mapping[str, Any] | None:
        """What the server says of tasks, in the way of its era; None if it has none."""
        said = self._session.server_capabilities
        if said is None or (not self.modern and self.version != TASKS_VERSION):
            return None
        if self.modern:
            return (said.extensions or {}).get(TASKS_EXTENSION)
        return None if said.tasks is None else said.tasks.model_dump(by_alias=True, mode="json", exclude_none=True)

    @property
    def instructions(self) -> str:
        """What the server says of its use."""
        return self._session.instructions or ""

    @property
    def announces_changes(self) -> bool:
        """Whether the server says that it tells when one of its lists changes."""
        capabilities = self._session.server_capabilities
        return any(getattr(getattr(capabilities, kind, None), "list_changed", None) for kind in _LISTED)

    async def send(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        header_map: Mapping[tuple[str, ...], str] | None = None,
        capabilities: Mapping[str, Any] | None = None,
        on_progress: ProgressFnT | None = None,
        number: int | None = None,
    ) -> dict[str, Any]:
        """Send one request as it is, but for what belongs to the connection. Raises `MCPError`.

        ``capabilities`` are those of the client on whose behalf it is sent; ``header_map`` says which arguments are
        mirrored in HTTP headers.
        """
        body = dict(params)
        meta = {key: value for key, value in (body.pop("_meta", None) or {}).items() if key not in _CONNECTION_META}
        headers = {MCP_PROTOCOL_VERSION_HEADER: self.version}
        if self.modern:
            meta[PROTOCOL_VERSION_META_KEY] = self.version
            meta[CLIENT_INFO_META_KEY] = self._identity
            meta[CLIENT_CAPABILITIES_META_KEY] = dict(capabilities or {})
            headers |= _routing_headers(method, body, header_map or {})
        if meta:
            body["_meta"] = meta
        own = self.next_number() if number is None else number
        sent = self._dispatcher.forward(method, body, number=own, headers=headers, on_progress=on_progress)
        try:
            result = await (sent if self.timed is None else self.timed(method, sent))
        except MCPError as error:
            if without_own_meta(error.data) is error.data:
                raise
            raise MCPError(error.code, error.message, without_own_meta(error.data)) from error
        # What a server says of its tools there is read, before it is left out of what clients are shown.
        return result if method == "tools/list" else without_own_meta(result)

    async def listen(self, on_event: Callable[[], None]) -> None:
        """Follow the changes of the lists in the stateless era until the server's stream ends.

        ``on_event`` is called when the stream is open, and at every change.
        """
        try:
            async with listen(
                self._session,
                tools_list_changed=self.offers("tools"),
                prompts_list_changed=self.offers("prompts"),
                resources_list_changed=self.offers("resources"),
            ) as subscription:
                on_event()
                async for _ in subscription:
                    on_event()
        except (SubscriptionLost, ListenNotSupportedError, MCPError):
            return

    async def listen_to(
        self, uris: tuple[str, ...], on_open: Callable[[], None], on_update: Callable[[str], Awaitable[None]]
    ) -> None:
        """Follow the changes of single resources in the stateless era until the server's stream ends."""
        try:
            async with listen(self._session, resource_subscriptions=uris) as subscription:
                on_open()
                async for event in subscription:
                    if isinstance(event, ResourceUpdated):
                        await on_update(str(event.uri))
        except (SubscriptionLost, ListenNotSupportedError, MCPError):
            return


def _routing_headers(
    method: str, params: Mapping[str, Any], header_map: Mapping[tuple[str, ...], str]
) -> dict[str, str]:
    headers = {MCP_METHOD_HEADER: method}
    name = params.get(_NAMED.get(method, ""))
    if isinstance(name, str):
        headers[MCP_NAME_HEADER] = encode_header_value(name)
    if method == "tools/call":
        arguments = read_out(params.get("arguments")) if header_map else None
        if isinstance(arguments, Mapping):
            headers |= mcp_param_headers(header_map, arguments)
    return headers


def declared_by(request: Request) -> Mapping[str, Any]:
    """Return the client's capabilities as a request of the stateless era states them."""
    meta = (request.params or {}).get("_meta")
    said = meta.get(CLIENT_CAPABILITIES_META_KEY) if isinstance(meta, Mapping) else None
    return said if isinstance(said, Mapping) else {}
