"""Adapt FastMCP: a transform that names the tools of mounted servers, and a middleware that gates their calls."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, get_args

from fastmcp.server.middleware import Middleware
from fastmcp.server.providers.fastmcp_provider import FastMCPProvider
from fastmcp.server.transforms import Transform
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from fastmcp.utilities.versions import dedupe_with_versions
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from truename import resolve
from truename.adapters.toolbox import ASK_ALL, NAMING, Toolbox, error_text, with_approvals
from truename.adapters.wire import NOBODY
from truename.conventions import catalog_of, implementations
from truename.errors import ApprovalRequired, NotAllowed, TruenameError, UnknownTool, excerpt
from truename.identity import definition_digest
from truename.policy import Caller, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from types import ModuleType

    from fastmcp import FastMCP
    from fastmcp.server.context import Context
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from fastmcp.server.transforms import GetToolNext
    from fastmcp.tools.base import Tool
    from fastmcp.utilities.versions import VersionSpec
    from mcp.types import CallToolRequestParams, InputRequests

    from truename import NameTable, ToolId
    from truename.adapters.reading import JsonObject
    from truename.adapters.toolbox import ToolboxNames
    from truename.policy import Call, Decision, Policy

__all__ = ["NameTableTransform", "mount", "register"]

_ASKED: Final = "approval"
_MODERN: Final = "2026-07-28"


class _StateSignature:
    """A signature of the state of an elicitation: FastMCP seals the state too, but equally for every tool."""

    def __init__(self, secret: bytes | None) -> None:
        self._secret = secret or secrets.token_bytes(32)

    def write(self, call: Call) -> str:
        return json.dumps([call.call_id, call.fingerprint, self._mac(call.call_id, call.fingerprint)])

    def read(self, state: str | None) -> tuple[str, str]:
        """Return call id and fingerprint; empty strings for a state that this object did not write."""
        try:
            call_id, fingerprint, mac = map(_text, json.loads(state or "[]"))
        except (ValueError, TypeError):
            return "", ""
        return (call_id, fingerprint) if hmac.compare_digest(mac, self._mac(call_id, fingerprint)) else ("", "")

    def _mac(self, *parts: str) -> str:
        return hmac.new(self._secret, json.dumps(parts).encode(), "sha256").hexdigest()


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isascii():
        raise TypeError
    return value


class CallGate(Middleware):
    """A middleware that runs a call, once at most, if the policy or the client's user allows it.

    The call id is that of the request; after an elicitation, that of the request that caused it.
    """

    def __init__(self, names: TruenameTransform, secret: bytes | None = None) -> None:
        self._names, self._seal = names, _StateSignature(secret)

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        """Run the call, ask the user, or return the reason for a refusal."""
        ctx = context.fastmcp_context
        if ctx is None:
            message = "FastMCP sets the context before a request comes to any middleware"
            raise RuntimeError(message)
        box = await self._names.box()
        call_id, asked_for = self._seal.read(ctx.request_state)
        request = context.message
        try:
            call = box.call(request.name, call_id or f"{ctx.session_id}/{ctx.request_id}", request.arguments or {})
            decision = box.decide(call)
            if decision.outcome == "ask" and (question := await self._ask_user(ctx, box, call, decision, asked_for)):
                return question
            with box.running(call), self._names.deciding(box):
                params = request.model_copy(update={"name": box.names[call.id], "arguments": dict(call.arguments)})
                return await call_next(context.copy(message=params))
        except TruenameError as error:
            return ToolResult(content=error_text(error), is_error=True)

    async def _ask_user(
        self, ctx: Context, box: Toolbox, call: Call, decision: Decision, asked_for: str
    ) -> ToolResult | None:
        """Record the user's decision; return an elicitation that has to go back to the client first."""
        form = _form(call, decision)
        if ctx.request_context is None or ctx.request_context.protocol_version < _MODERN:
            answer: object = await _elicited(ctx, form)
        elif asked_for == call.fingerprint:
            answer = (ctx.input_responses or {}).get(_ASKED)
        else:
            asks: InputRequests = {_ASKED: ElicitRequest(params=form)}
            return InputRequiredToolResult(
                InputRequiredResult(input_requests=asks, request_state=self._seal.write(call))
            )
        self._record_decision(box, call, decision, answer)
        return None

    @staticmethod
    def _record_decision(box: Toolbox, call: Call, decision: Decision, answer: object) -> None:
        if not isinstance(answer, ElicitResult) or answer.action == "cancel":
            raise ApprovalRequired(id=call.id, approval_key=str(call.id), call=call.call_id, decision=decision.reason)
        # The client sends this value; `Approvals` refuses an unknown scope.
        scope: Any = (answer.content or {}).get("scope", "call")
        if answer.action == "decline":
            box.reject(call, message="the user declined")
            raise NotAllowed(id=call.id, rule="rejected", decision="the user declined")
        box.approve(call, scope)


def _form(call: Call, decision: Decision) -> ElicitRequestFormParams:
    why = f" ({decision.reason})" if decision.reason else ""
    arguments = excerpt(json.dumps(call.arguments, ensure_ascii=False), 500)[1:-1]
    return ElicitRequestFormParams(
        message=f"Allow {call.id} of server {excerpt(call.origin.server)} to run{why} with {arguments}?",
        requested_schema={
            "type": "object",
            "properties": {
                "scope": {"type": "string", "title": "Applies to", "enum": [*get_args(Scope)], "default": "call"}
            },
        },
    )


async def _elicited(ctx: Context, form: ElicitRequestFormParams) -> ElicitResult | None:
    try:
        return await ctx.session.elicit(
            message=form.message, requested_schema=form.requested_schema, related_request_id=ctx.request_id
        )
    except Exception:  # noqa: BLE001 - whatever fails, nobody has allowed the call: its approval stays pending
        return None


Callers = Caller | Callable[[], Caller]


def mount(
    app: FastMCP[Any],
    servers: Mapping[str, FastMCP[Any]],
    *,
    naming: ToolboxNames = NAMING,
    policy: Policy = ASK_ALL,
    caller: Callers = NOBODY,
    endpoints: Mapping[str, str] | None = None,
    secret: bytes | None = None,
) -> TruenameTransform:
    """Mount servers by key; all tools of ``app``, its own too, are listed and called under Truename's names.

    The app's own tools belong to a server whose key is the app's name. If the policy asks about a call, the client's
    user is asked (elicitation, in both eras of the protocol). ``caller`` may be a function that is called for every
    request, since an app over HTTP has several callers: without it, an approval of one user applies to all. ``secret``
    signs elicitations; several processes behind one URL need the same.

    Raises `ValueError` for a key that is the app's name.

    >>> app = FastMCP("all")  # doctest: +SKIP
    >>> names = mount(app, {"docs": docs, "crm": create_proxy("https://crm.example/mcp")})  # doctest: +SKIP
    """
    names = TruenameTransform(app, naming=naming, policy=policy, caller=caller, endpoints=endpoints)
    for key, server in servers.items():
        provider = FastMCPProvider(server)
        provider.add_transform(names.marking(key))
        app.add_provider(provider)
    app.add_transform(names)
    app.add_middleware(CallGate(names, secret))
    return names


def register(app: FastMCP[Any], *sources: Callable[..., Any] | ModuleType) -> None:
    """Register all tools declared by some functions, and by the functions of some modules.

    They are declared with `truename.policy.tool`; their metadata goes to ``_meta``. Raises `DuplicateTool` for two of
    one name, before any is registered.

    >>> register(app, tools_module)  # doctest: +SKIP
    """
    catalog, functions = catalog_of(*sources), implementations(*sources)
    for one in catalog.values():
        name, definition = one.origin.name, one.definition
        meta = dict(one.metadata) or None
        app.tool(functions[name], name=name, description=definition.get("description"), meta=meta)


class _Marking(Transform):
    """A prefix for the names of one server's tools, unique to this server.

    The length of the key marks where it ends; the random token prevents servers that are mounted elsewhere from forging
    a prefix.
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


class TruenameTransform(Transform):
    """The tools of all servers under the names of one table, which is built anew from their current lists."""

    def __init__(
        self,
        app: FastMCP[Any],
        *,
        naming: ToolboxNames = NAMING,
        policy: Policy = ASK_ALL,
        caller: Callers = NOBODY,
        endpoints: Mapping[str, str] | None = None,
    ) -> None:
        self._app, self._naming, self._caller, self._endpoints = app, naming, caller, endpoints or {}
        self._policy = with_approvals(policy)
        self._leads: dict[str, str] = {}
        self._as_marked: ContextVar[bool] = ContextVar("truename_as_marked", default=False)
        self._decided_box: ContextVar[Toolbox | None] = ContextVar("truename_decided", default=None)

    def marking(self, key: str) -> Transform:
        """Return the transform for the provider of this server's tools."""
        if key == self._app.name or key in self._leads:
            message = f"the key {key!r} is already used: give each server its own key"
            raise ValueError(message)
        marking = _Marking(key)
        self._leads[key] = marking.lead
        return marking

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools that the caller may see, in the order of the table."""
        if self._as_marked.get():
            return tools
        marked = {tool.name: tool for tool in _newest(tools)}
        box = self._boxed([*marked.values()])
        offered: list[Tool] = []
        for offer in box.offered:
            # An old name has a description that names the new one; any other description is the server's own.
            former = {} if offer.key.name == box.names[offer.id] else {"description": offer.description}
            tool = marked[self._mark(box, offer.id)]
            offered.append(tool.model_copy(update={"name": offer.key.name, **former}))
        return offered

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """Return the tool that `resolve` finds for a name; None if there is none that the caller may see."""
        decided = self._decided_box.get()
        box = decided or await self.box()
        try:
            id = resolve(name, box.names).id
        except TruenameError:
            return None
        if id is None or id not in {offer.id for offer in box.offered}:
            return None
        tool = await call_next(self._mark(box, id), version=version)
        if tool is None:
            return None
        known = box.names.catalog[id]
        # The tool must have the definition that was decided on: it may have changed meanwhile.
        if decided and definition_digest(_definition(tool, known.origin.name)) != known.digest:
            return None
        return tool.model_copy(update={"name": box.names[id]})

    async def box(self) -> Toolbox:
        """Return the current names and policy."""
        token = self._as_marked.set(True)
        try:
            tools = await self._app.list_tools(run_middleware=False)
        finally:
            self._as_marked.reset(token)
        return self._boxed(_newest(tools))

    @contextmanager
    def deciding(self, box: Toolbox) -> Iterator[None]:
        """Use these names within the block: a call runs under the table with which it was decided."""
        token = self._decided_box.set(box)
        try:
            yield
        finally:
            self._decided_box.reset(token)

    def _boxed(self, marked: Sequence[Tool]) -> Toolbox:
        listings: dict[str, list[JsonObject]] = {key: [] for key in (*self._leads, self._app.name)}
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


class NameTableTransform(Transform):
    """The names of a table for the tools of a FastMCP server that combines others, as a proxy of an MCPConfig does.

    ``namespaces`` are the prefixes with which the tools of each server arrive; by default the server's key, unless the
    table has one server only. A tool that the table does not have keeps its name, unless the table knows that name: a
    name of the table never means another tool.

    >>> proxy = create_proxy({"mcpServers": {"docs": {...}, "crm": {...}}})  # doctest: +SKIP
    >>> proxy.add_transform(NameTableTransform(names))  # doctest: +SKIP
    """

    def __init__(self, names: NameTable, *, namespaces: Mapping[str, str] | None = None) -> None:
        self._names = names
        origins = {id: names.catalog[id].origin for id in names}
        keys = {origin.server for origin in origins.values()}
        prefixes = {key: key for key in keys} if namespaces is None and len(keys) > 1 else namespaces or {}
        self._arriving = {
            id: f"{prefixes[one.server]}_{one.name}" if prefixes.get(one.server) else one.name
            for id, one in origins.items()
        }
        self._ids = {name: id for id, name in self._arriving.items()}

    async def list_tools(self, tools: Sequence[Tool]) -> Sequence[Tool]:
        """Return the tools under the names of the table, in the order in which they arrive."""
        shown: list[Tool] = []
        for tool in tools:
            id = self._ids.get(tool.name)
            if id is not None:
                shown.append(tool.model_copy(update={"name": self._names[id]}))
            elif self._is_free(tool.name):
                shown.append(tool)
        return shown

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """Return the tool that `resolve` finds for a name; a name that the table does not know is passed on."""
        try:
            id = resolve(name, self._names).id
        except UnknownTool as error:
            return await call_next(name, version=version) if error.reason == "unknown" else None
        except TruenameError:
            return None
        tool = await call_next(self._arriving[id], version=version)
        return None if tool is None else tool.model_copy(update={"name": self._names[id]})

    def _is_free(self, name: str) -> bool:
        """Return whether the table does not know a name, in no spelling."""
        try:
            resolve(name, self._names)
        except UnknownTool as error:
            return error.reason == "unknown"
        except TruenameError:
            return False
        return False


def _definition(tool: Tool, name: str) -> JsonObject:
    definition = tool.to_mcp_tool(name=name).model_dump(by_alias=True, exclude_none=True, mode="json")
    # A title that FastMCP derives from the name does not come from the server.
    return {word: value for word, value in definition.items() if word != "title" or tool.title}


def _newest(tools: Sequence[Tool]) -> Sequence[Tool]:
    return dedupe_with_versions(tools, lambda tool: tool.name)
