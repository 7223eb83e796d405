"""One endpoint: an MCP server, dual era, over a view of the hub.

The SDK answers the protocol (handshake, discovery, validation, envelopes); the results of tools/list and tools/call
are put in raw behind it, so that nothing of a definition or an answer is lost or reshaped.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ListToolsResult,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from truename.errors import ResolutionError, TruenameError
from truename.gateway.contexts import CONTEXT_HEADER, ContextRefused
from truename.gateway.envelopes import enveloped, plain
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.fleet import own_version
from truename.gateway.forward import forward
from truename.gateway.primitives import CACHE_HINTS, LATE_PLACEHOLDERS, PLACEHOLDERS, WORDS, Primitives
from truename.gateway.repeats import Repeats
from truename.gateway.sdk import (
    CallNext,
    MCPError,
    Request,
    connection_of,
    is_modern,
)
from truename.gateway.sdk_server import ViewServer
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

    # A view whose tools changed, or the kind of another list that did.
    Change = ViewSpec | str

__all__ = ["Endpoint"]

log: Final = logging.getLogger("truename.gateway")

_NOTIFY_TIMEOUT: Final = 5.0
_VIEW_KEY: Final = "truename.view"
_EVENTS: Final[Mapping[str, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


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
        self._primitives = Primitives(hub, choose)
        self._to_tell: set[Change] = set()
        self._telling = False
        self.server = ViewServer(
            hub.settings.server_name,
            version=own_version(),
            on_list_tools=_no_tools,
            on_call_tool=_no_content,
            on_subscriptions_listen=self._listen,
            cache_hints=CACHE_HINTS,
            get_tool_input_schema=self._input_schema,
            **PLACEHOLDERS,
        )
        self.server.offered = self._primitives.offered
        for method, (params, answer) in LATE_PLACEHOLDERS.items():
            self.server.add_request_handler(method, params, answer)
        self.server.middleware.append(self._middleware)

    async def _middleware(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        if self._primitives.passes(ctx):
            return self._enveloped(ctx, await self._primitives.answer(ctx), {})
        envelope = await call_next(ctx)
        if ctx.request_id is None:
            return envelope
        match ctx.method:
            case "initialize":
                self._remember(connection_of(ctx))
            case "tools/list":
                return self._listed(ctx, plain(envelope))
            case "tools/call":
                return self._enveloped(ctx, await self._called(ctx), envelope)
            case method if self._primitives.answers(method):
                return self._enveloped(ctx, await self._primitives.answer(ctx), envelope)
            case _:
                pass
        return envelope

    @staticmethod
    def _enveloped(ctx: Request, result: dict[str, Any], envelope: HandlerResult) -> dict[str, Any]:
        what = WORDS.get(ctx.method, "request")
        return enveloped(result, plain(envelope), modern=is_modern(ctx.protocol_version), what=what)

    async def _listen(self, request: Request, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        with self._hub.streams.place() as found:
            if not found:
                raise MCPError(INTERNAL_ERROR, "Too many subscriptions are open. End one, or poll the list.")
            uris = params.notifications.resource_subscriptions or ()
            async with self._primitives.subscribing.watched(request, uris, self._updated):
                return await self._listeners(request, params)

    async def _updated(self, uri: str) -> None:
        await self._bus.publish(ResourceUpdated(uri=uri))

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
            view = self._hub.large.listed(view)
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
        try:
            with self._hub.traffic.call(self._hub.settings.server_name):
                return self._versions.on_result(await self._answered(request, view, context), view)
        except UpstreamError as error:
            return error_result(error)

    async def _answered(self, request: Request, view: View, context: Context) -> dict[str, Any]:
        large, shown = self._hub.large, self._hub.rights.limited(view, context)
        params = request.params or {}
        find = partial(self._versions.resolve, names=view.table, meta=params.get("_meta") or {})
        try:
            params = large.unwrapped(shown, params)
            if (own := await large.answer(shown, params, find)) is not None:
                self._repeats.over(request, view.spec)
                return own
            id = find(str(params.get("name"))).id
            self._repeats.over(request, view.spec)
            assert id is not None  # noqa: S101 - only passthrough has none
            self._hub.rights.enforce(view, id, context, params, request.request_id)
            upstream, own_name = self._hub.origin(view, id)
            params = self._versions.without({**params, "name": own_name})
            answering = forward(request, upstream, "tools/call", params)
            return await view.texts.error(upstream.key, params, answering)
        except ResolutionError as error:
            return self._wrong(request, error, view, shown)
        except UpstreamError as error:
            log.warning("call of %s: %s", printable(str(params.get("name")), 100), error)
            return error_result(error)
        except TruenameError as error:
            return error_result(error)

    def _wrong(self, request: Request, error: ResolutionError, view: View, shown: View) -> dict[str, Any]:
        """Return what is answered to a wrong name: only names that this session could call are told."""
        told = among(error, shown.by_name, frozenset(view.table.values()))
        times, large = self._repeats.again(request, view.spec, error.text), self._hub.large
        return error_result(told, wrong_name_text(told, large.listed(shown).by_name, times) + large.hint(shown))

    def _input_schema(self, name: str) -> Any:
        """Give the SDK the schema by which it checks ``Mcp-Param-*`` headers; None where there is none."""
        try:
            view = self._hub.view(self._spec)
            id = resolve(name, view.table).id
        except TruenameError:
            return None
        return None if id is None else view.table.catalog[id].definition.get("inputSchema")

    async def notify(self, views: frozenset[ViewSpec], others: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Tell the clients what changed, in both eras: tools of these views, prompts and resources of these servers.

        A slow client is not waited for long. What changes while that goes on is told after it, all at once.
        """
        self._to_tell |= views
        self._to_tell |= {kind for kind, server in others if self._spec.only in {None, server}}
        if self._telling:
            return
        self._telling = True
        try:
            while self._to_tell:
                told, self._to_tell = frozenset(self._to_tell), set()
                await self._tell_all(told)
        finally:
            self._telling = False

    async def _tell_all(self, changed: frozenset[Change]) -> None:
        for kind, event in _EVENTS.items():
            if (self._spec if kind == "tools" else kind) in changed:
                await self._bus.publish(event)
        async with anyio.create_task_group() as tasks:
            for connection in list(self._sessions):
                if connection.initialized.is_set():
                    tasks.start_soon(_tell, connection, self._kinds(connection, changed))

    def _kinds(self, connection: Connection, changed: frozenset[Change]) -> list[str]:
        view = connection.state.get(_VIEW_KEY, self._spec)
        return [kind for kind in _EVENTS if (view if kind == "tools" else kind) in changed]

    def close(self) -> None:
        """End the open subscriptions with the graceful last word that the protocol has for it."""
        self._listeners.close()


async def _tell(connection: Connection, kinds: list[str]) -> None:
    with anyio.move_on_after(_NOTIFY_TIMEOUT):
        for kind in kinds:
            await connection.notify(f"notifications/{kind}/list_changed", None)


async def _no_tools(_: Request, __: object) -> ListToolsResult:
    return ListToolsResult(tools=[])


async def _no_content(_: Request, __: object) -> CallToolResult:
    return CallToolResult(content=[])
