"""One endpoint: an MCP server, in all protocol versions, over a view of the registry."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from truename import __version__
from truename.config.addresses import MAIN
from truename.errors import TruenameError
from truename.gateway.calls.draining import AdmittedRequest
from truename.gateway.calls.path import CallPath
from truename.gateway.calls.tasks import TaskRequests
from truename.gateway.endpoint.audience import Audience
from truename.gateway.endpoint.primitives import WORDS, Primitives
from truename.gateway.mcp.methods import announced, check_request, discovered, in_envelope, initialized, negotiated
from truename.gateway.mcp.requests import is_from_app_host
from truename.gateway.protocol.callers import first_header, principal_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.operations import timed
from truename.gateway.protocol.specification import INTERNAL_ERROR, INVALID_PARAMS
from truename.gateway.protocol.tracing import request_span
from truename.gateway.quota import whose
from truename.gateway.upstream_errors import UpstreamError
from truename.gateway.views.contexts import CONTEXT_HEADER, ContextRefused
from truename.gateway.views.instructions import instructions
from truename.gateway.views.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from truename.gateway.mcp.requests import Request
    from truename.gateway.protocol.tracing import RequestSpan
    from truename.gateway.registry import Registry
    from truename.gateway.views.view import Asked, View, ViewSpec
    from truename.policy import Context

__all__ = ["Endpoint"]

_CONTEXT: Final = CONTEXT_HEADER.encode()
_INTRODUCTIONS: Final = frozenset({"initialize", "server/discover"})


class Endpoint:
    """An MCP server for one path. ``choose`` tells the view of a request; ``spec`` is the view without one.

    ``asked`` is what the path asks for.
    """

    def __init__(self, registry: Registry, spec: ViewSpec, choose: Callable[[Request], ViewSpec], asked: Asked) -> None:
        self._registry = registry
        self._spec = spec
        self._choose = choose
        self.asked = asked
        self.audience = Audience(spec, registry.settings.max_sessions)
        self._primitives = Primitives(registry, choose, self._context_of)
        self._tasks = TaskRequests(registry, spec, choose, self._primitives.links)
        self._server = {
            # Some clients take servers of one name and version for one, and VS Code puts the title in front of tools.
            "name": f"{registry.settings.server_name}{asked.path.removeprefix(MAIN)}",
            "title": asked.server or registry.settings.server_name,
            "version": __version__,
        }
        self._calls = CallPath(
            registry,
            chosen=self._chosen,
            view_now=self._view,
            tasks=self._tasks,
            server=self._server,
        )
        self.offered = partial(self._primitives.offered, spec=spec)
        # What is not here is about prompts and resources.
        self._answers: Mapping[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            "ping": _pong,
            "server/discover": self._discovered,
            "tools/list": self._listed,
            "subscriptions/listen": self._listen,
        }

    @property
    def profiles(self) -> tuple[str, ...] | None:
        """The profiles by which is seen here; None is everything."""
        return self._spec.profiles

    def answer(self, request: Request) -> Awaitable[Mapping[str, Any]]:
        """Return the result of a request, to be awaited at once. Raises `MCPError`."""
        span = request_span(request)
        answering: Awaitable[Mapping[str, Any]]
        if request.method == "tools/call":
            answering = self._calls.answer(request)
        else:
            answering, timer = self._admitted(request), self._registry.call_records.timer
            answering = answering if timer is None else timed(request.method, answering, timer)
        return answering if span is None else _within(span, answering)

    async def _admitted(self, request: Request) -> Mapping[str, Any]:
        """Answer any request but a call of a tool."""
        try:
            with AdmittedRequest(request, self._registry.drain_tracker, self._registry.settings.server_name):
                return await self._routed(request)
        except UpstreamError as error:
            # The gateway is at its end.
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        except TruenameError as error:
            # A header that asks for what there is not, say.
            raise MCPError(INVALID_PARAMS, str(error)) from error

    async def _routed(self, request: Request) -> Mapping[str, Any]:
        await self._prepare(request)
        if self._tasks.answers(request):
            return self._enveloped(request, await self._tasks.answer(request))
        if self._primitives.passes(request):
            # The protocol does not know it: the one server here judges it.
            return self._enveloped(request, await self._primitives.answer(request))
        check_request(request)
        if request.method == "initialize":
            return self._initialized(request)
        answer = self._answers.get(request.method, self._primitives.answer)
        return self._enveloped(request, await answer(request))

    def _initialized(self, request: Request) -> dict[str, Any]:
        version, client = negotiated(request.params)
        self.audience.join(request.connection)
        said = initialized(version, self._server, announced(self.offered))
        result = self._introduced(request, self._tasks.announced(request, said))
        request.connection.agree(version, client)
        return result

    async def _prepare(self, request: Request) -> None:
        """Have what is shown ready, beside the loop, before anything is looked up in it."""
        if request.method == "ping":
            return
        with suppress(TruenameError, ContextRefused):
            spec, context = self._choose(request), self._context_of(request)
            if request.method in _INTRODUCTIONS and not self._must_wait(spec):
                return
            spec = replace(spec, kind="prompts") if request.method.startswith("prompts/") else spec
            if not self._registry.is_current(spec, context):
                await self._registry.prepare(spec, context)

    def _must_wait(self, spec: ViewSpec) -> bool:
        """Tell whether an introduction waits for servers that are starting: for the instructions that one may give.

        Without them a client connects at once.
        """
        registry = self._registry
        if registry.joined.is_set():
            return True
        servers = registry.servers_in(spec).values()
        return registry.settings.server_instructions > 0 and any(one.may_instruct for one in servers)

    async def _discovered(self, request: Request) -> dict[str, Any]:
        said = discovered(announced(self.offered))
        return self._introduced(request, self._tasks.announced(request, said))

    def _introduced(self, request: Request, said: dict[str, Any]) -> dict[str, Any]:
        if not self._registry.joined.is_set():
            return said
        try:
            shown = self._registry.access.limited(self._view(request), self._context_of(request))
        except (TruenameError, ExceptionGroup, ContextRefused):
            # What is listed here says what is wrong.
            return said
        said_by, servers = self._registry.vetting.instructions, self._registry.servers_in(shown.spec)
        text = instructions(servers, said_by, shown, self._registry.settings)
        return {**said, "instructions": text} if text else said

    def _enveloped(self, request: Request, result: Mapping[str, Any]) -> dict[str, Any]:
        return in_envelope(request, result, self._server, WORDS.get(request.method, "request"))

    async def _listen(self, request: Request) -> dict[str, Any]:
        with self._registry.streams.place(whose(principal_of(request))) as found:
            if not found:
                raise MCPError(INTERNAL_ERROR, "Too many subscriptions are open. End one, or poll the list.")
            self._tasks.check_listening(request)
            wanted = (request.params or {})["notifications"]
            uris = wanted.get("resourceSubscriptions") or ()
            with suppress(TruenameError, ExceptionGroup):
                # Its client may have listed at another replica: only a view that there is here can be seen to change.
                self._registry.view(self._spec)
            async with self._primitives.subscribing.watched(request, uris, self.audience.updated) as watched:
                return await self.audience.listen(request, {**wanted, "resourceSubscriptions": watched})

    @property
    def _versions(self) -> Versions:
        return Versions(self._registry.settings.protocol)

    def _view(self, request: Request) -> View:
        return self._view_in(request, self._choose(request))

    def _view_in(self, request: Request, spec: ViewSpec) -> View:
        self.audience.saw(request.connection, spec)
        # What an operator retired, or another gateway claimed, a moment ago counts now.
        self._registry.catch_up()
        self._registry.check_free(spec)
        try:
            return self._registry.view(spec)
        except ExceptionGroup as group:
            # Names that this view's style cannot have: one example says it.
            if isinstance(first := group.exceptions[0], TruenameError):
                raise first from group
            raise

    async def _chosen(self, request: Request) -> tuple[Context, View, View]:
        """Return a request's context, its view of tools, and what the context sees of that; made first if need be.

        Raises `TruenameError` for a view that cannot be made, and `ContextRefused`.
        """
        registry, spec, context = self._registry, self._choose(request), self._context_of(request)
        ready = registry.ready(spec, context)
        if ready is None:
            await registry.prepare(spec, context)
            view = self._view_in(request, spec)
            return context, view, registry.access.limited(view, context)
        self.audience.saw(request.connection, spec)
        return context, *ready

    def _context_of(self, request: Request) -> Context:
        http = request.http
        is_said = first_header(http, _CONTEXT) is not None
        said = tuple(http.headers.getlist(CONTEXT_HEADER)) if http is not None and is_said else ()
        return self._registry.access.contexts.asked(self.asked.context, said)

    async def _listed(self, request: Request) -> dict[str, Any]:
        try:
            view = self._registry.access.limited(self._view(request), self._context_of(request))
            search = self._registry.tool_search
            view = search.listed_with_apps(view) if is_from_app_host(request) else search.listed(view)
            tools, following = view.page_json((request.params or {}).get("cursor"))
        except (TruenameError, ContextRefused) as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, "Unknown cursor. List the tools without one.") from error
        page = self._versions.on_list({"tools": msgspec.Raw(tools)}, view)
        return page if following is None else {**page, "nextCursor": following}

    async def notify(self, views: frozenset[ViewSpec], others: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Tell the clients what changed: tools of these views, prompts and resources of these servers."""
        sight = self._registry.sight(self._spec.limits)
        await self.audience.notify(views, frozenset(one for one in others if sight.has(*one)))

    def close(self) -> None:
        """End the open subscriptions with the graceful last word that the protocol has for it."""
        self.audience.close()


async def _within(span: RequestSpan, answering: Awaitable[Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return await answering
    except Exception as error:
        span.failed(error)
        raise
    finally:
        span.end()


async def _pong(_: Request) -> dict[str, Any]:
    return {}
