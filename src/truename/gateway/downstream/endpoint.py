"""One endpoint: an MCP server, dual era, over a view of the hub.

The SDK answers the protocol (handshake, discovery, validation, envelopes); the results of tools/list and tools/call
are put in raw behind it, so that nothing of a definition or an answer is lost or reshaped.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    ListToolsResult,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from truename.config.addresses import MAIN
from truename.errors import ResolutionError, TruenameError, UnknownTool
from truename.gateway.downstream.accounts import accounted, note_meant, note_tool
from truename.gateway.downstream.audience import Audience
from truename.gateway.downstream.definition_guard import DefinitionGuard
from truename.gateway.downstream.leaving import passing
from truename.gateway.downstream.primitives import CACHE_HINTS, LATE_PLACEHOLDERS, PLACEHOLDERS, WORDS, Primitives
from truename.gateway.downstream.repeats import Repeats
from truename.gateway.downstream.tasks import TaskRequests
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.envelopes import Envelopes, enveloped, plain
from truename.gateway.protocol.sdk import CallNext, MCPError, Request, connection_of, is_modern
from truename.gateway.protocol.sdk_server import ViewServer
from truename.gateway.room import whose
from truename.gateway.running_calls import noted
from truename.gateway.trust.approving import session_of
from truename.gateway.upstream.fleet import own_version
from truename.gateway.views.contexts import CONTEXT_HEADER, CONTEXT_SAID, ContextRefused
from truename.gateway.views.instructions import instructions
from truename.gateway.views.near_names import near_names_ready
from truename.gateway.views.versions import Versions
from truename.gateway.views.wording import among, error_result, wrong_name_text
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp.server.context import HandlerResult

    from truename.gateway.hub import Hub
    from truename.gateway.views.view import Asked, View, ViewSpec
    from truename.naming import Resolution
    from truename.policy import Context

__all__ = ["Endpoint"]

log: Final = logging.getLogger("truename.gateway")


class Endpoint:
    """An MCP server for one path. ``choose`` tells the view of a request; ``spec`` is the view without one.

    ``asked`` is what the path asks for.
    """

    def __init__(self, hub: Hub, spec: ViewSpec, choose: Callable[[Request], ViewSpec], asked: Asked) -> None:
        self._hub = hub
        self._spec = spec
        self._choose = choose
        self.asked = asked
        self.audience = Audience(spec, hub.settings.max_sessions)
        self._repeats = Repeats()
        self._envelopes = Envelopes()
        self._primitives = Primitives(hub, choose, self._context_of)
        self._tasks = TaskRequests(hub, spec, choose)
        self.server = ViewServer(
            # Some clients take servers of one name and version for one, and VS Code puts the title in front of tools.
            f"{hub.settings.server_name}{asked.path.removeprefix(MAIN)}",
            title=asked.server or hub.settings.server_name,
            version=own_version(),
            on_list_tools=_no_tools,
            on_call_tool=_no_content,
            on_subscriptions_listen=self._listen,
            cache_hints=CACHE_HINTS,
            get_tool_input_schema=self._input_schema,
            **PLACEHOLDERS,
        )
        self.server.offered = partial(self._primitives.offered, spec=spec)
        for method, (params, answer) in LATE_PLACEHOLDERS.items():
            self.server.add_request_handler(method, params, answer)
        self.server.middleware.append(self._middleware)

    @property
    def profiles(self) -> tuple[str, ...] | None:
        """The profiles by which is seen here; None is everything."""
        return self._spec.profiles

    async def _middleware(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        return await accounted(ctx, self._hub.accounts, partial(self._passed, ctx, call_next))

    async def _passed(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        try:
            with passing(ctx, self._hub.traffic, self._hub.settings.server_name):
                return await self._routed(ctx, call_next)
        except UpstreamError as error:
            # The gateway is at its end.
            if ctx.method == "tools/call":
                return self._enveloped(ctx, error_result(noted(error)), {})
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        except TruenameError as error:
            # A header that asks for what there is not, say.
            raise MCPError(INVALID_PARAMS, str(error)) from error

    async def _routed(self, ctx: Request, call_next: CallNext) -> HandlerResult:
        await self._prepare(ctx)
        # What the SDK does not know, or somebody else is to judge.
        beside = self._tasks if self._tasks.answers(ctx) else self._primitives if self._primitives.passes(ctx) else None
        if beside is not None:
            return self._enveloped(ctx, await beside.answer(ctx), {})
        envelope = await self._envelopes.around(ctx, call_next)
        return envelope if ctx.request_id is None else await self._filled(ctx, envelope)

    async def _prepare(self, ctx: Request) -> None:
        """Have what is shown ready, beside the loop, before anything is looked up in it."""
        if ctx.request_id is None or ctx.method == "ping":
            return
        with suppress(TruenameError, ContextRefused):
            spec, context = self._choose(ctx), self._context_of(ctx)
            if ctx.method == "tools/call" and spec != self._spec:
                # The SDK asks for the schema there (`_input_schema`).
                await self._hub.prepare(self._spec, context)
            spec = replace(spec, kind="prompts") if ctx.method.startswith("prompts/") else spec
            await self._hub.prepare(spec, context)

    async def _filled(self, ctx: Request, envelope: HandlerResult) -> HandlerResult:
        """Put the answer into what the SDK made for it."""
        await self._prepare(ctx)
        match ctx.method:
            case "initialize" | "server/discover":
                if ctx.method == "initialize":
                    self.audience.join(connection_of(ctx))
                return self._introduced(ctx, self._tasks.announced(ctx, plain(envelope)))
            case "tools/list":
                return self._listed(ctx, plain(envelope))
            case "tools/call":
                return self._enveloped(ctx, await self._called(ctx), envelope)
            case method if self._primitives.answers(method):
                return self._enveloped(ctx, await self._primitives.answer(ctx), envelope)
            case _:
                pass
        return envelope

    def _introduced(self, ctx: Request, said: dict[str, Any]) -> dict[str, Any]:
        try:
            shown = self._hub.rights.limited(self._view(ctx), self._context_of(ctx))
        except (TruenameError, ExceptionGroup, ContextRefused):
            # What is listed here says what is wrong.
            return said
        said_by, servers = self._hub.vetting.instructions, self._hub.fleet_in(shown.spec)
        text = instructions(servers, said_by, shown, self._hub.settings)
        return {**said, "instructions": text} if text else said

    @staticmethod
    def _enveloped(ctx: Request, result: dict[str, Any], envelope: HandlerResult) -> dict[str, Any]:
        what = WORDS.get(ctx.method, "request")
        return enveloped(result, plain(envelope), modern=is_modern(ctx.protocol_version), what=what)

    async def _listen(self, request: Request, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        with self._hub.streams.place(whose(principal_of(request))) as found:
            if not found:
                raise MCPError(INTERNAL_ERROR, "Too many subscriptions are open. End one, or poll the list.")
            self._tasks.check_listening(request)
            wanted = params.notifications
            uris = wanted.resource_subscriptions or ()
            async with self._primitives.subscribing.watched(request, uris, self.audience.updated) as watched:
                # What is acknowledged is what will be told.
                honoured = wanted.model_copy(update={"resource_subscriptions": watched})
                return await self.audience.listen(request, params.model_copy(update={"notifications": honoured}))

    @property
    def _versions(self) -> Versions:
        return Versions(self._hub.settings.protocol)

    def _view(self, request: Request) -> View:
        spec = self._choose(request)
        self.audience.saw(connection_of(request), spec)
        # What an operator retired, or another gateway claimed, a moment ago counts now.
        self._hub.catch_up()
        try:
            return self._hub.view(spec)
        except ExceptionGroup as group:
            # Names that this view's style cannot have: one example says it.
            if isinstance(first := group.exceptions[0], TruenameError):
                raise first from group
            raise

    def _context_of(self, request: Request) -> Context:
        http = request.request
        said = () if http is None else tuple(http.headers.getlist(CONTEXT_HEADER))
        return self._hub.rights.contexts.asked(self.asked.context, said)

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
            return error_result(noted(error))
        except ContextRefused as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        return self._versions.on_result(await self._answered(request, view, context), view)

    async def _answered(self, request: Request, view: View, context: Context) -> dict[str, Any]:
        large, rights = self._hub.large, self._hub.rights
        shown = rights.limited(view, context)
        params = request.params or {}
        find = partial(self._meaning, view, params.get("_meta") or {})
        try:
            params = large.unwrapped(shown, params)
            await note_meant(view, params)
            if (own := await large.answer(shown, params, find)) is not None:
                self._repeats.over(request, view.spec)
                return own
            await near_names_ready(name := str(params.get("name")), view.table)
            id = find(name).id
            assert id is not None  # noqa: S101 - only passthrough has none
            note_tool(self._hub, view, id)
            rights.check_known(view, id, context, name)
            self._repeats.over(request, view.spec)
            upstream, own_name = self._hub.origin(view, id)
            who, session = principal_of(request), session_of(request)
            number, server = request.request_id, upstream.config
            judged = await rights.judge(
                view, id, context, params, number, principal=who, session=session, server=server
            )
            guard = DefinitionGuard(self._hub, view.table.catalog[id], partial(self._view, request), context, judged)

            async def run(said: Mapping[str, Any]) -> dict[str, Any]:
                await self._hub.accounts.admit()
                params = self._versions.without({**said, "name": own_name})
                repeatable = view.table.catalog[id].repeatable
                calling = self._tasks.call(request, upstream, params, repeatable, guard.check)
                answering = shown.texts.error(upstream.key, params, calling)
                answering = rights.recording.watch(judged[0], view, params, answering)
                return await self._hub.vetting.answers.over(upstream.key, answering)

            return await self._hub.approving.answer(request, *judged, params, run, still=guard.check_still)
        except ResolutionError as error:
            return self._wrong(request, noted(error), view, shown)
        except UpstreamError as error:
            log.warning("call of %s: %s", printable(str(params.get("name")), 100), error)
            return error_result(noted(error))
        except TruenameError as error:
            return error_result(noted(error))

    def _meaning(self, view: View, meta: Mapping[str, Any], name: str) -> Resolution:
        """Return the tool that a name means in a view. Raises `ResolutionError`.

        At an address of some servers a name means the same tool as at the address of all, or none: a spelling of a
        hidden server's tool must not lead to a tool with nearly the same name.
        """
        found = self._versions.resolve(name, view.table, meta)
        if view.spec.servers is not None:
            whole = self._hub.view(replace(view.spec, servers=None)).table
            try:
                is_same = self._versions.resolve(name, whole, meta).id == found.id
            except ResolutionError:
                is_same = False
            if not is_same:
                raise UnknownTool(text=name)
        return found

    def _wrong(self, request: Request, error: ResolutionError, view: View, shown: View) -> dict[str, Any]:
        """Return what is answered to a wrong name: only names that this session could call are told."""
        told = among(error, shown.by_name, frozenset(view.table.values()))
        times, large = self._repeats.again(request, view.spec, error.text), self._hub.large
        return error_result(told, wrong_name_text(told, large.listed(shown).by_name, times) + large.hint(shown))

    def _input_schema(self, name: str) -> Any:
        """Give the SDK the schema by which it checks ``Mcp-Param-*`` headers; None where there is none."""
        try:
            view = self._hub.view(self._spec)
            shown = self._hub.rights.limited(
                view, self._hub.rights.contexts.asked(self.asked.context, CONTEXT_SAID.get())
            )
            id = resolve(name, view.table).id
        except (TruenameError, ExceptionGroup, ContextRefused):
            return None
        # What is hidden has no arguments either.
        return view.mirrored(id) if id is not None and id in shown.by_id else None

    async def notify(self, views: frozenset[ViewSpec], others: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Tell the clients what changed: tools of these views, prompts and resources of these servers."""
        sight = self._hub.sight(self._spec.limits)
        await self.audience.notify(views, frozenset(one for one in others if sight.has(*one)))

    def close(self) -> None:
        """End the open subscriptions with the graceful last word that the protocol has for it."""
        self.audience.close()


async def _no_tools(_: Request, __: object) -> ListToolsResult:
    return ListToolsResult(tools=[])


async def _no_content(_: Request, __: object) -> CallToolResult:
    return CallToolResult(content=[])
