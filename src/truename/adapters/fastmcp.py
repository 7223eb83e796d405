"""FastMCP: a transform that gives the tools of mounted servers names that never clash, and a gate for their calls.

Without it (measured with 4.1.2) a mounted server's tools keep the names that it spells, or get a prefix that makes
other pairs equal; of two tools with one name, one answers for both. `mount` sets up all of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from fastmcp.server.providers.fastmcp_provider import FastMCPProvider
from fastmcp.server.transforms import Transform
from fastmcp.utilities.versions import dedupe_with_versions

from truename import resolve
from truename.adapters.fastmcp_gate import Gate
from truename.adapters.toolbox import ASK_ALL, NAMING, Toolbox, with_approvals
from truename.adapters.wire import NOBODY
from truename.conventions import catalog_of, implementations
from truename.errors import TruenameError
from truename.identity import definition_digest
from truename.policy import Caller

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from fastmcp import FastMCP
    from fastmcp.server.transforms import GetToolNext
    from fastmcp.tools.base import Tool
    from fastmcp.utilities.versions import VersionSpec

    from truename import Tool as Known
    from truename import ToolId
    from truename.adapters.toolbox import Naming
    from truename.adapters.wire import Offer
    from truename.policy import Policy

__all__ = ["Names", "mount", "register"]

Callers = Caller | Callable[[], Caller]


def mount(
    app: FastMCP[Any],
    servers: Mapping[str, FastMCP[Any]],
    *,
    naming: Naming = NAMING,
    policy: Policy = ASK_ALL,
    caller: Callers = NOBODY,
    endpoints: Mapping[str, str] | None = None,
    secret: bytes | None = None,
) -> Names:
    """Mount servers by key; all tools of ``app``, its own too, are listed and called under Truename's names.

    Its own tools count as those of a server whose key is its name. A call that the policy asks about is put to the
    client's user (elicitation, in both eras of the protocol). ``caller`` may be a function that is asked in every
    request, as who calls an app over HTTP differs: without it, what one user allows for ever holds for all.
    ``secret`` signs questions; several processes behind one address need the same.

    Raises `ValueError` for a key that is the app's name.

    >>> app = FastMCP("all")  # doctest: +SKIP
    >>> names = mount(app, {"docs": docs, "crm": create_proxy("https://crm.example/mcp")})  # doctest: +SKIP
    """
    names = Names(app, naming=naming, policy=policy, caller=caller, endpoints=endpoints)
    for key, server in servers.items():
        provider = FastMCPProvider(server)
        provider.add_transform(names.marking(key))
        app.add_provider(provider)
    app.add_transform(names)
    app.add_middleware(Gate(names, secret))
    return names


def register(app: FastMCP[Any], *sources: Callable[..., Any] | ModuleType) -> None:
    """Give a server all tools that these functions, and those of these modules, are declared as.

    They are declared with `truename.policy.tool`; their metadata travels in ``_meta``. Raises `DuplicateTool` for two
    of one name, before any is registered.

    >>> register(app, tools_module)  # doctest: +SKIP
    """
    catalog, functions = catalog_of(*sources), implementations(*sources)
    for one in catalog.values():
        name, definition = one.origin.name, one.definition
        meta = dict(one.metadata) or None
        app.tool(functions[name], name=name, description=definition.get("description"), meta=meta)


class _Marking(Transform):
    """Puts a mark in front of a server's names that no other server's names can have.

    The length of the key says where it ends; the token keeps servers that are mounted elsewhere from writing a mark.
    """

    def __init__(self, key: str) -> None:
        self.lead = f"{secrets.token_hex(16)}:{len(key)}:{key}:"

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        return [tool.model_copy(update={"name": self.lead + tool.name}) for tool in tools]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        if not name.startswith(self.lead):
            return None
        tool = await call_next(name.removeprefix(self.lead), version=version)
        return None if tool is None else tool.model_copy(update={"name": name})


class Names(Transform):
    """The tools of all servers under the names of one table, made anew from what they list now."""

    def __init__(
        self,
        app: FastMCP[Any],
        *,
        naming: Naming = NAMING,
        policy: Policy = ASK_ALL,
        caller: Callers = NOBODY,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        self._app, self._naming, self._caller, self._endpoints = app, naming, caller, endpoints or {}
        self._policy = with_approvals(policy)
        self._leads: dict[str, str] = {}
        self._as_marked: ContextVar[bool] = ContextVar("truename_as_marked", default=False)
        self._decided: ContextVar[Toolbox | None] = ContextVar("truename_decided", default=None)

    def marking(self, key: str) -> Transform:
        """Return the transform for the provider that brings the tools of this server."""
        if key == self._app.name or key in self._leads:
            message = f"the key {key!r} is taken: give each server one of its own"
            raise ValueError(message)
        marking = _Marking(key)
        self._leads[key] = marking.lead
        return marking

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools that the caller may see, in the table's order."""
        if self._as_marked.get():
            return tools
        marked = {tool.name: tool for tool in _newest(tools)}
        box = self._boxed([*marked.values()])
        return [_offered(marked[self._mark(box, offer.id)], offer, box) for offer in box.offered]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """Return the tool that a name leads to, by whatever spelling `resolve` takes; None if it leads to none."""
        decided = self._decided.get()
        box = decided or await self.box()
        try:
            id = resolve(name, box.names).id
        except TruenameError:
            return None
        if id is None or id not in {offer.id for offer in box.offered}:
            return None
        tool = await call_next(self._mark(box, id), version=version)
        if tool is None or (decided and not _is(tool, box.names.catalog[id])):
            return None
        return tool.model_copy(update={"name": box.names[id]})

    async def box(self) -> Toolbox:
        """Return names and policy as of now."""
        token = self._as_marked.set(True)
        try:
            tools = await self._app.list_tools(run_middleware=False)
        finally:
            self._as_marked.reset(token)
        return self._boxed(_newest(tools))

    @contextmanager
    def deciding(self, box: Toolbox) -> Iterator[None]:
        """Look names up in these, within the block: a call is run by the table under which it was decided on."""
        token = self._decided.set(box)
        try:
            yield
        finally:
            self._decided.reset(token)

    def _boxed(self, marked: Sequence[Tool]) -> Toolbox:
        listings: dict[str, list[dict[str, Any]]] = {key: [] for key in (*self._leads, self._app.name)}
        for tool in marked:
            key, name = self._origin(tool.name)
            listings[key].append(_definition(tool, name))
        names = self._naming.table(listings)
        caller = self._caller if isinstance(self._caller, Caller) else self._caller()
        return Toolbox(names=names, policy=self._policy, caller=caller, endpoints=self._endpoints)

    def _origin(self, marked: str) -> tuple[str, str]:
        for key, lead in self._leads.items():
            if marked.startswith(lead):
                return key, marked.removeprefix(lead)
        return self._app.name, marked

    def _mark(self, box: Toolbox, id: ToolId) -> str:
        origin = box.names.catalog[id].origin
        return self._leads.get(origin.server_id, "") + origin.name


def _offered(tool: Tool, offer: Offer, box: Toolbox) -> Tool:
    # An old name says what it is now; any other description is the server's own.
    told = {} if offer.key.name == box.names[offer.id] else {"description": offer.description}
    return tool.model_copy(update={"name": offer.key.name, **told})


def _is(tool: Tool, known: Known) -> bool:
    """Tell whether a tool is what was decided on, and no other version, or changed meanwhile."""
    return definition_digest(_definition(tool, known.origin.name)) == known.digest


def _definition(tool: Tool, name: str) -> dict[str, Any]:
    definition = tool.to_mcp_tool(name=name).model_dump(by_alias=True, exclude_none=True, mode="json")
    # A title that FastMCP makes from the name is nothing that the server said.
    return {word: value for word, value in definition.items() if word != "title" or tool.title}


def _newest(tools: Sequence[Tool]) -> Sequence[Tool]:
    return dedupe_with_versions(tools, lambda tool: tool.name)
