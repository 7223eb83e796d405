"""One endpoint: an MCP server, dual era, over a view of the hub.

The SDK answers the protocol (handshake, discovery, validation, envelopes); the results of tools/list and tools/call
are put in raw behind it, so that nothing of a definition or an answer is lost or reshaped.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server.caching import CacheHint
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ListToolsResult,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from truename.errors import ResolutionError, TruenameError
from truename.gateway.contexts import CONTEXT_HEADER, ContextRefused
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.fleet import own_version
from truename.gateway.repeats import Repeats
from truename.gateway.sdk import (
    SERVER_INFO_META_KEY,
    CallNext,
    MCPError,
    Request,
    ViewServer,
    connection_of,
    is_modern,
)
from truename.gateway.versions import Versions
from truename.gateway.wording import among, error_result, wrong_name_text
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.connection import Connection
    from mcp.server.context import HandlerResult

    from truename.gateway.hub import Hub
    from truename.gateway.views import View, ViewSpec
    from truename.policy import Context

__all__ = ["Endpoint"]

log: Final = logging.getLogger("truename.gateway")

_NOTIFY_TIMEOUT: Final = 5.0
_VIEW_KEY: Final = "truename.view"
_INPUT_REQUIRED: Final = "input_required"


class Endpoint:
    """An MCP server for one path. ``choose`` tells the view of a request; ``spec`` is the view without one.

    ``context`` is the name of the context that stands in the path.
    """

    def __init__(
        self, hub: Hub, spec: ViewSpec, choose: Callable[[Request], ViewSpec], context: str | None = None
    ) -> None:
        self._hub = hub
        self._spec = spec
        self._choose = choose
        self._context = context
        self._versions = Versions(hub.settings.protocol)
        self._bus = InMemorySubscriptionBus()
        self._listeners = ListenHandler(self._bus, max_subscriptions=hub.settings.max_sessions)
        self._sessions: set[Connection] = set()
        self._repeats = Repeats()
        self._to_tell: set[ViewSpec] = set()
        self._telling = False
        self.server = ViewServer(
            hub.settings.server_name,
            version=own_version(),
            on_list_tools=_no_tools,
            on_call_tool=_no_content,
            on_subscriptions_listen=self._listen,
            cache_hints={"tools/list": CacheHint(ttl_ms=0, scope="private")},
            get_tool_input_schema=self._input_schema,
        )
        self.server.middleware.append(self._middleware)

    async def _middleware(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        envelope = await call_next(ctx)
        if ctx.request_id is None:
            return envelope
        match ctx.method:
            case "initialize":
                self._remember(connection_of(ctx))
            case "tools/list":
                return self._listed(ctx, _plain(envelope))
            case "tools/call":
                result = await self._called(ctx)
                return _enveloped(result, _plain(envelope), modern=is_modern(ctx.protocol_version))
            case _:
                pass
        return envelope

    async def _listen(self, request: Request, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        with self._hub.streams.place() as found:
            if not found:
                raise MCPError(INTERNAL_ERROR, "Too many subscriptions are open. End one, or poll the list.")
            return await self._listeners(request, params)

    def _remember(self, connection: Connection) -> None:
        self._sessions.add(connection)
        connection.exit_stack.callback(self._sessions.discard, connection)

    def _view(self, request: Request) -> View:
        spec = self._choose(request)
        connection_of(request).state[_VIEW_KEY] = spec
        # What an operator retired, or another gateway claimed, a moment ago counts now.
        self._hub.catch_up()
        try:
            return self._hub.view(spec)
        except ExceptionGroup as group:
            # Names that this view's style can't have: one example says it.
            if isinstance(first := group.exceptions[0], TruenameError):
                raise first from group
            raise

    def check_context(self, headers: tuple[str, ...]) -> None:
        """Raise `ContextRefused` for context headers that can't be followed here."""
        self._hub.rights.contexts.asked(self._context, headers)

    def _context_of(self, request: Request) -> Context:
        http = request.request
        said = () if http is None else tuple(http.headers.getlist(CONTEXT_HEADER))
        return self._hub.rights.contexts.asked(self._context, said)

    def _listed(self, request: Request, envelope: dict[str, Any]) -> dict[str, Any]:
        try:
            view = self._hub.rights.limited(self._view(request), self._context_of(request))
            tools, following = view.page((request.params or {}).get("cursor"))
        except (TruenameError, ContextRefused) as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, "Unknown cursor. List the tools without one.") from error
        page = self._versions.on_list({**envelope, "tools": tools}, view)
        return page if following is None else {**page, "nextCursor": following}

    async def _called(self, request: Request) -> dict[str, Any]:
        """Resolve, forward to exactly one server, and give back what it answers or what went wrong."""
        try:
            view, context = self._view(request), self._context_of(request)
        except TruenameError as error:
            return error_result(error)
        except ContextRefused as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        return self._versions.on_result(await self._answered(request, view, context), view)

    async def _answered(self, request: Request, view: View, context: Context) -> dict[str, Any]:
        params = request.params or {}
        name, meta = str(params.get("name")), params.get("_meta") or {}
        try:
            id = self._versions.resolve(name, view.table, meta).id
            self._repeats.over(request, view.spec)
            assert id is not None  # noqa: S101 - only passthrough has none
            self._hub.rights.enforce(view, id, context, params, request.request_id)
            upstream, own_name = self._hub.origin(view, id)
            wants_progress = "progressToken" in meta
            return await upstream.call(
                self._versions.without({**params, "name": own_name}),
                capabilities=_capabilities(request, meta),
                on_progress=request.session.report_progress if wants_progress else None,
            )
        except ResolutionError as error:
            return self._wrong(request, error, view, context)
        except UpstreamError as error:
            log.warning("call of %s: %s", printable(name, 100), error)
            return error_result(error)
        except TruenameError as error:
            return error_result(error)

    def _wrong(self, request: Request, error: ResolutionError, view: View, context: Context) -> dict[str, Any]:
        """Return what is answered to a wrong name: only names that this session could call are told."""
        shown = {str(tool["name"]): None for tool in self._hub.rights.limited(view, context).tools}
        told = among(error, shown, frozenset(view.table.values()))
        times = self._repeats.again(request, view.spec, error.text)
        return error_result(told, wrong_name_text(told, shown, times))

    def _input_schema(self, name: str) -> Any:
        """Give the SDK the schema by which it checks ``Mcp-Param-*`` headers; None where there is none."""
        try:
            view = self._hub.view(self._spec)
            id = resolve(name, view.table).id
        except TruenameError:
            return None
        return None if id is None else view.table.catalog[id].definition.get("inputSchema")

    async def notify(self, changed: frozenset[ViewSpec]) -> None:
        """Tell the clients of these views that their tools changed, in both eras; a slow one is not waited for long.

        What changes while that goes on is told after it, all at once.
        """
        self._to_tell |= changed
        if self._telling:
            return
        self._telling = True
        try:
            while self._to_tell:
                told, self._to_tell = frozenset(self._to_tell), set()
                await self._tell_all(told)
        finally:
            self._telling = False

    async def _tell_all(self, changed: frozenset[ViewSpec]) -> None:
        if self._spec in changed:
            await self._bus.publish(ToolsListChanged())
        async with anyio.create_task_group() as tasks:
            for connection in list(self._sessions):
                if connection.initialized.is_set() and connection.state.get(_VIEW_KEY, self._spec) in changed:
                    tasks.start_soon(_tell, connection)

    def close(self) -> None:
        """End the open subscriptions with the graceful last word that the protocol has for it."""
        self._listeners.close()


async def _tell(connection: Connection) -> None:
    with anyio.move_on_after(_NOTIFY_TIMEOUT):
        await connection.send_tool_list_changed()


async def _no_tools(_: Request, __: object) -> ListToolsResult:
    return ListToolsResult(tools=[])


async def _no_content(_: Request, __: object) -> CallToolResult:
    return CallToolResult(content=[])


def _capabilities(request: Request, meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what this client can be asked for; in the handshake eras there is no way to ask it yet."""
    said = meta.get(CLIENT_CAPABILITIES_META_KEY)
    return said if is_modern(request.protocol_version) and isinstance(said, dict) else {}


def _plain(envelope: HandlerResult) -> dict[str, Any]:
    return dict(envelope) if isinstance(envelope, dict) else {}


def _enveloped(result: Mapping[str, Any], envelope: Mapping[str, Any], *, modern: bool) -> dict[str, Any]:
    """Give a server's raw result the envelope of the client's era: the rest of it stays as it is."""
    body = dict(result)
    meta = body.pop("_meta", None)
    meta = dict(meta) if isinstance(meta, dict) else {}
    meta.pop(SERVER_INFO_META_KEY, None)
    if modern:
        body.setdefault("resultType", "complete")
        meta |= envelope.get("_meta") or {}
    elif body.pop("resultType", None) == _INPUT_REQUIRED:
        return {
            "content": [{"type": "text", "text": _CANNOT_ASK}],
            "isError": True,
        }
    return {**body, "_meta": meta} if meta else body


_CANNOT_ASK: Final = (
    "This tool wants to ask the user something, which this client's protocol version has no way for; "
    "nothing was done. Use another tool, or a client that speaks MCP 2026-07-28."
)
