"""Everything but tools: prompts, resources, skills and completion, on the upstream connections that tools use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.errors import ResolutionError, TruenameError, excerpt
from truename.gateway.calls.forward import forward
from truename.gateway.endpoint.resource_subscriptions import ResourceSubscriptions
from truename.gateway.endpoint.skills import Skills
from truename.gateway.mcp.schema import METHODS
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.skills import SKILLS_CAPABILITIES
from truename.gateway.protocol.specification import INTERNAL_ERROR, INVALID_PARAMS
from truename.gateway.upstream.lists import KINDS
from truename.gateway.upstream_errors import UpstreamError
from truename.gateway.views.app_bridge import is_page
from truename.gateway.views.app_links import AppLinks
from truename.gateway.views.contexts import ContextRefused
from truename.gateway.views.prompts import wrong_prompt_text
from truename.gateway.views.resources import ResourcePlace, behind, is_behind
from truename.naming import resolve

if TYPE_CHECKING:
    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.resources import ResourceView
    from truename.gateway.views.view import View, ViewSpec
    from truename.policy import Context

__all__ = ["WORDS", "Primitives"]

Raw = dict[str, Any]
Answer = Callable[["Request"], Awaitable[Raw]]

# The handshake eras' code for what has INVALID_PARAMS in the stateless one.
_NOT_FOUND: Final = -32002
_MOST_TOLD: Final = 5
# What a method is about, for texts; what is not here is a request.
WORDS: Final[Mapping[str, str]] = {"tools/call": "tool", "prompts/get": "prompt", "resources/read": "resource"}
# Which lists have to be shown for a capability to be one of what is shown.
_SHOWN_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "prompts": ("prompts",),
    "resources": ("resources",),
    "completions": ("prompts", "resources"),
    **dict.fromkeys(SKILLS_CAPABILITIES, ("resources",)),
}


class Primitives:
    """Answers to the methods of one endpoint that are not about tools; ``spec_of`` tells the view of a request."""

    def __init__(
        self, registry: Registry, spec_of: Callable[[Request], ViewSpec], context_of: Callable[[Request], Context]
    ) -> None:
        self._registry = registry
        self._spec_of = spec_of
        self._context_of = context_of
        self.subscribing = ResourceSubscriptions(registry, self.place, spec_of)
        self._skills = Skills(registry, spec_of, context_of, self.place)
        self._answers: Final[Mapping[str, Answer]] = {
            "prompts/list": self._prompts,
            "prompts/get": self._prompt,
            "resources/list": self._resources,
            "resources/templates/list": self._resources,
            "resources/read": self._read,
            "completion/complete": self._complete,
            "resources/subscribe": self.subscribing.subscribe,
            "resources/unsubscribe": self.subscribing.unsubscribe,
            "logging/setLevel": self.subscribing.set_level,
            **dict.fromkeys(self._skills.answers, self._skills.answer),
        }

    def offered(self, capability: str, spec: ViewSpec) -> bool:
        """Tell whether a server that is shown has this."""
        sight, kinds = self._registry.sight(spec.limits), _SHOWN_BY.get(capability, ())
        return any(
            upstream.offers(capability) and (not kinds or any(sight.has(kind, key) for kind in kinds))
            for key, upstream in self._registry.servers_in(spec).items()
        )

    def answers(self, method: str) -> bool:
        """Tell whether this method is answered here."""
        return method in self._answers

    def passes(self, request: Request) -> bool:
        """Tell whether a request is of a method that the protocol doesn't know, and there is one server to judge it."""
        is_unknown = request.method not in METHODS and not self._skills.offers(request)
        return is_unknown and request.connection.may_request and self._only_server(request) is not None

    def _only_server(self, request: Request) -> Upstream | None:
        pool = self._registry.servers_in(self._spec_of(request))
        return next(iter(pool.values())) if len(pool) == 1 else None

    async def _pass(self, request: Request) -> Raw:
        upstream = self._only_server(request)
        assert upstream is not None  # noqa: S101 - the caller looked (`passes`)
        return await forward(request, upstream, request.method, request.params or {})

    async def answer(self, request: Request) -> Raw:
        """Return the raw result of a request. Raises `MCPError`: the server's own, or one that says what to do."""
        try:
            return await self._answers.get(request.method, self._pass)(request)
        except UpstreamError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error
        except ResolutionError as error:
            raise MCPError(INVALID_PARAMS, wrong_prompt_text(error)) from error
        except (TruenameError, ContextRefused) as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error

    async def _prompts(self, request: Request) -> Raw:
        return self._view(request).pages.page("prompts", _cursor(request))

    def _view(self, request: Request) -> View:
        self._registry.catch_up()
        self._registry.check_free(self._spec_of(request))
        try:
            return self._registry.prompts_in(self._spec_of(request), self._context_of(request))
        except ExceptionGroup as group:
            # Names that this view's style cannot have: one example says it.
            if isinstance(first := group.exceptions[0], TruenameError):
                raise first from group
            raise

    async def _prompt(self, request: Request) -> Raw:
        params = request.params or {}
        upstream, name = self._origin(request, str(params.get("name")))
        answering = forward(request, upstream, request.method, {**params, "name": name})
        answering = self._view(request).texts.prompt(upstream.key, params, answering)
        result = await self._registry.vetting.answers.over(upstream.key, answering)
        return self.links(request, upstream.key).result(result)

    def _origin(self, request: Request, name: str) -> tuple[Upstream, str]:
        """Return the server that has this prompt, and its own name for it. Raises `ResolutionError`."""
        view = self._view(request)
        id = resolve(name, view.table).id
        return self._registry.origin(view, id)

    def _resource_view(self, request: Request) -> ResourceView:
        self._registry.catch_up()
        return self._registry.resources_in(self._spec_of(request))

    async def _resources(self, request: Request) -> Raw:
        field = next(kind.field for kind in KINDS.values() if kind.method == request.method)
        return self._resource_view(request).pages[request.method].page(field, _cursor(request))

    async def _read(self, request: Request) -> Raw:
        params = request.params or {}
        uri = str(params.get("uri"))
        upstream, own = self.place(request, uri)
        try:
            answering = forward(request, upstream, request.method, {**params, "uri": own})
            result = await self._registry.vetting.answers.over(upstream.key, answering)
        except MCPError as error:
            if error.code != _NOT_FOUND or not request.connection.is_modern:
                raise
            raise MCPError(INVALID_PARAMS, error.message, {"uri": uri}) from error
        result = await self._skills.read(request, upstream, own, result)
        result = result if own == uri else _shown_as(uri, own, result)
        contents = result.get("contents")
        if not isinstance(contents, list) or not any(map(is_page, contents)):
            return result
        links = self.links(request, upstream.key)
        return {**result, "contents": [links.page(one) if is_page(one) else one for one in contents]}

    def links(self, request: Request, server: str) -> AppLinks:
        """Return what is shown of a server's apps: the tools of its pages are those that this request may see."""
        registry = self._registry
        spec, context = self._spec_of(request), self._context_of(request)

        def view() -> View:
            return registry.access.limited(registry.view(spec), context)

        return AppLinks(spec, server, view, registry.tool_search)

    def place(self, request: Request, uri: str) -> tuple[Upstream, str]:
        """Return the one server to which a URI leads, and its own URI. Raises `MCPError`."""
        places = self._resource_view(request).places(uri) or self._lone(request, uri)
        if len(places) == 1:
            return self._registry.pool[places[0].server], places[0].uri
        code = INVALID_PARAMS if request.connection.is_modern else _NOT_FOUND
        if not places:
            text = f"No server lists the resource {excerpt(uri)}, and it matches no template. List the resources."
            raise MCPError(code, text, {"uri": uri})
        told = ", ".join(excerpt(behind(place.server, uri))[1:-1] for place in places[:_MOST_TOLD])
        text = f"{excerpt(uri)} matches templates of several servers. Read one of these exactly: {told}"
        raise MCPError(INVALID_PARAMS, text, {"uri": uri})

    def _lone(self, request: Request, uri: str) -> tuple[ResourcePlace, ...]:
        """Return the only server that can have resources: what it doesn't list, it may have or refuse itself.

        One that is down may have any: what may be its own is not shown to another.
        """
        pool = self._registry.pool
        view = self._resource_view(request)
        having = [key for key in view.servers if not pool[key].lacks("resources")]
        is_free = not is_behind(uri) and not view.is_anothers(uri)
        return (ResourcePlace(having[0], uri),) if len(having) == 1 and is_free else ()

    async def _complete(self, request: Request) -> Raw:
        params = request.params or {}
        about = params.get("ref") or {}
        if about.get("type") == "ref/prompt":
            upstream, own = self._origin(request, str(about.get("name")))
            about = {**about, "name": own}
        else:
            upstream, own = self.place(request, str(about.get("uri")))
            about = {**about, "uri": own}
        return await forward(request, upstream, request.method, {**params, "ref": about})


def _cursor(request: Request) -> str | None:
    return (request.params or {}).get("cursor")


def _shown_as(uri: str, own: str, result: Raw) -> Raw:
    """Return what was read under the URI under which it was asked for; nothing else of it changes."""
    contents = result.get("contents")
    if not isinstance(contents, list):
        return result
    shown = [{**one, "uri": uri} if isinstance(one, dict) and one.get("uri") == own else one for one in contents]
    return {**result, "contents": shown}
