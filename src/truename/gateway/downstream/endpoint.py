"""One endpoint: an MCP server, in all protocol versions, over a view of the registry."""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS

from truename.config.addresses import MAIN
from truename.errors import ResolutionError, TruenameError, UnknownTool
from truename.gateway.call_records import noted
from truename.gateway.downstream.audience import Audience
from truename.gateway.downstream.definition_guard import DefinitionGuard
from truename.gateway.downstream.leaving import passing
from truename.gateway.downstream.primitives import WORDS, Primitives
from truename.gateway.downstream.recorded import accounted, note_meant, note_tool
from truename.gateway.downstream.repeats import Repeats
from truename.gateway.downstream.tasks import TaskRequests
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.mcp.methods import announced, check_request, discovered, in_envelope, initialized, negotiated
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.tracing import traced_request
from truename.gateway.quota import whose
from truename.gateway.trust.approving import session_of
from truename.gateway.upstream.server_pool import own_version
from truename.gateway.views.contexts import CONTEXT_HEADER, CONTEXT_SAID, ContextRefused
from truename.gateway.views.instructions import instructions
from truename.gateway.views.near_names import near_names_ready
from truename.gateway.views.versions import Versions
from truename.gateway.views.wording import among, error_result, wrong_name_text
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.views.view import Asked, View, ViewSpec
    from truename.naming import Resolution
    from truename.policy import Context

__all__ = ["Endpoint"]

log: Final = logging.getLogger("truename.gateway")


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
        self._repeats = Repeats()
        self._primitives = Primitives(registry, choose, self._context_of)
        self._tasks = TaskRequests(registry, spec, choose)
        self._server = {
            # Some clients take servers of one name and version for one, and VS Code puts the title in front of tools.
            "name": f"{registry.settings.server_name}{asked.path.removeprefix(MAIN)}",
            "title": asked.server or registry.settings.server_name,
            "version": own_version(),
        }
        self.offered = partial(self._primitives.offered, spec=spec)
        # What is not here is about prompts and resources.
        self._answers: Mapping[str, Callable[[Request], Awaitable[dict[str, Any]]]] = {
            "ping": _pong,
            "server/discover": self._discovered,
            "tools/list": self._listed,
            "tools/call": self._called,
            "subscriptions/listen": self._listen,
        }

    @property
    def profiles(self) -> tuple[str, ...] | None:
        """The profiles by which is seen here; None is everything."""
        return self._spec.profiles

    async def answer(self, request: Request) -> Mapping[str, Any]:
        """Return the result of a request. Raises `MCPError`, and `pydantic.ValidationError` for its parameters."""
        return await traced_request(request, self._recorded)

    async def _recorded(self, request: Request) -> Mapping[str, Any]:
        return await accounted(request, self._registry.call_records, partial(self._passed, request))

    async def _passed(self, request: Request) -> Mapping[str, Any]:
        try:
            with passing(request, self._registry.drain_tracker, self._registry.settings.server_name):
                return await self._routed(request)
        except UpstreamError as error:
            # The gateway is at its end.
            if request.method == "tools/call":
                return self._enveloped(request, error_result(noted(error)))
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
        said = initialized(version, self._server, announced(version, self.offered))
        result = self._introduced(request, self._tasks.announced(request, said))
        request.connection.agree(version, client)
        return result

    async def _prepare(self, request: Request) -> None:
        """Have what is shown ready, beside the loop, before anything is looked up in it."""
        if request.method == "ping":
            return
        with suppress(TruenameError, ContextRefused):
            spec, context = self._choose(request), self._context_of(request)
            spec = replace(spec, kind="prompts") if request.method.startswith("prompts/") else spec
            await self._registry.prepare(spec, context)

    async def _discovered(self, request: Request) -> dict[str, Any]:
        said = discovered(announced(request.protocol_version, self.offered))
        return self._introduced(request, self._tasks.announced(request, said))

    def _introduced(self, request: Request, said: dict[str, Any]) -> dict[str, Any]:
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
            async with self._primitives.subscribing.watched(request, uris, self.audience.updated) as watched:
                return await self.audience.listen(request, {**wanted, "resourceSubscriptions": watched})

    @property
    def _versions(self) -> Versions:
        return Versions(self._registry.settings.protocol)

    def _view(self, request: Request) -> View:
        spec = self._choose(request)
        self.audience.saw(request.connection, spec)
        # What an operator retired, or another gateway claimed, a moment ago counts now.
        self._registry.catch_up()
        try:
            return self._registry.view(spec)
        except ExceptionGroup as group:
            # Names that this view's style cannot have: one example says it.
            if isinstance(first := group.exceptions[0], TruenameError):
                raise first from group
            raise

    def _context_of(self, request: Request) -> Context:
        http = request.http
        said = () if http is None else tuple(http.headers.getlist(CONTEXT_HEADER))
        return self._registry.access.contexts.asked(self.asked.context, said)

    async def _listed(self, request: Request) -> dict[str, Any]:
        try:
            view = self._registry.access.limited(self._view(request), self._context_of(request))
            view = self._registry.tool_search.listed(view)
            tools, following = view.page((request.params or {}).get("cursor"))
        except (TruenameError, ContextRefused) as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, "Unknown cursor. List the tools without one.") from error
        page = self._versions.on_list({"tools": tools}, view)
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
        large, access = self._registry.tool_search, self._registry.access
        shown = access.limited(view, context)
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
            note_tool(self._registry, view, id)
            access.check_known(view, id, context, name)
            self._repeats.over(request, view.spec)
            upstream, own_name = self._registry.origin(view, id)
            who, session = principal_of(request), session_of(request)
            number, server = request.id, upstream.config
            judged = await access.judge(
                view, id, context, params, number, principal=who, session=session, server=server
            )
            guard = DefinitionGuard(
                self._registry, view.table.catalog[id], partial(self._view, request), context, judged
            )

            async def run(said: Mapping[str, Any]) -> dict[str, Any]:
                await self._registry.call_records.admit()
                params = self._versions.without({**said, "name": own_name})
                repeatable = view.table.catalog[id].repeatable
                calling = self._tasks.call(request, upstream, params, repeatable, guard.check)
                answering = shown.texts.error(upstream.key, params, calling)
                answering = access.recording.watch(judged[0], view, params, answering)
                return await self._registry.vetting.answers.over(upstream.key, answering)

            return await self._registry.approving.answer(request, *judged, params, run, still=guard.check_still)
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
            whole = self._registry.view(replace(view.spec, servers=None)).table
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
        times, large = self._repeats.again(request, view.spec, error.text), self._registry.tool_search
        return error_result(told, wrong_name_text(told, large.listed(shown).by_name, times) + large.hint(shown))

    def schema_of(self, name: str) -> Any:
        """Return the input schema that ``Mcp-Param-*`` headers are checked against, None for a tool without one."""
        try:
            view = self._registry.view(self._spec)
            shown = self._registry.access.limited(
                view, self._registry.access.contexts.asked(self.asked.context, CONTEXT_SAID.get())
            )
            id = resolve(name, view.table).id
        except (TruenameError, ExceptionGroup, ContextRefused):
            return None
        # What is hidden has no arguments either.
        return view.mirrored(id) if id is not None and id in shown.by_id else None

    async def notify(self, views: frozenset[ViewSpec], others: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Tell the clients what changed: tools of these views, prompts and resources of these servers."""
        sight = self._registry.sight(self._spec.limits)
        await self.audience.notify(views, frozenset(one for one in others if sight.has(*one)))

    def close(self) -> None:
        """End the open subscriptions with the graceful last word that the protocol has for it."""
        self.audience.close()


async def _pong(_: Request) -> dict[str, Any]:
    return {}
