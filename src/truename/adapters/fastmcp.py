"""FastMCP: a transform that gives the tools of mounted servers names that never clash, and a gate for their calls.

Without it (measured with 4.1.2) a mounted server's tools keep the names that it spells, or get a prefix that makes
other pairs equal; of two tools with one name, one answers for both. `mount` sets up all of it.
"""

from __future__ import annotations

import json
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
from truename.adapters.toolbox import ASK_ALL, NAMING, Toolbox, told, with_approvals
from truename.adapters.wire import NOBODY
from truename.errors import ApprovalRequired, NotAllowed, TruenameError, excerpt
from truename.policy import Caller, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fastmcp import FastMCP
    from fastmcp.server.context import Context
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from fastmcp.server.transforms import GetToolNext
    from fastmcp.tools.base import Tool
    from fastmcp.utilities.versions import VersionSpec
    from mcp.types import CallToolRequestParams

    from truename import ToolId
    from truename.adapters.toolbox import Naming
    from truename.policy import Call, Decision, Policy

__all__ = ["Gate", "Names", "mount"]

Callers = Caller | Callable[[], Caller]
_ASKED: Final = "approval"
_MODERN: Final = "2026-07-28"


def mount(
    app: FastMCP[Any],
    servers: Mapping[str, FastMCP[Any]],
    *,
    naming: Naming = NAMING,
    policy: Policy = ASK_ALL,
    caller: Callers = NOBODY,
    endpoints: Mapping[str, str] | None = None,
) -> Names:
    """Mount servers by key; all tools of ``app``, its own too, are listed and called under Truename's names.

    Its own tools count as those of a server whose key is its name. A call that the policy asks about is put to the
    client's user (elicitation, in both eras of the protocol). ``caller`` may be a function that is asked in every
    request, as who calls an app over HTTP differs: without it, what one user allows for ever holds for all.

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
    app.add_middleware(Gate(names))
    return names


class _Marking(Transform):
    """Puts a mark in front of a server's names that no other server's names can have: its length says where it ends."""

    def __init__(self, key: str) -> None:
        self.lead = f"{len(key)}:{key}:"

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
        return [marked[self._mark(box, offer.id)].model_copy(update={"name": offer.key.name}) for offer in box.offered]

    async def get_tool(self, name: str, call_next: GetToolNext, *, version: VersionSpec | None = None) -> Tool | None:
        """Return the tool that a name leads to, by whatever spelling `resolve` takes; None if it leads to none."""
        box = self._decided.get() or await self.box()
        try:
            id = resolve(name, box.names).id
        except TruenameError:
            return None
        if id is None or id not in {offer.id for offer in box.offered}:
            return None
        tool = await call_next(self._mark(box, id), version=version)
        return None if tool is None else tool.model_copy(update={"name": box.names[id]})

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
            definition = tool.to_mcp_tool(name=name).model_dump(by_alias=True, exclude_none=True, mode="json")
            # A title that FastMCP makes from the name is nothing that the server said.
            listings[key].append({word: value for word, value in definition.items() if word != "title" or tool.title})
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


class Gate(Middleware):
    """Takes the calls: each is run if the policy allows it or the client's user does, and once at most.

    The call id is the request's; where a user is asked in between, that of the request that asked.
    """

    def __init__(self, names: Names) -> None:
        self._names = names

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        """Run the call, ask for it, or say why not."""
        ctx = context.fastmcp_context
        assert ctx is not None  # noqa: S101 - FastMCP gives one to every call of a tool
        box = await self._names.box()
        state = _read_state(ctx.request_state)
        message = context.message
        try:
            call = box.call(message.name, state.get("call_id") or _call_id(ctx), message.arguments or {})
            decision = box.decide(call)
            if decision.outcome == "ask" and (question := await self._asked(ctx, box, call, decision, state)):
                return question
            with box.running(call), self._names.deciding(box):
                params = message.model_copy(update={"name": box.names[call.id], "arguments": dict(call.arguments)})
                return await call_next(context.copy(message=params))
        except TruenameError as error:
            return ToolResult(content=told(error), is_error=True)

    async def _asked(
        self, ctx: Context, box: Toolbox, call: Call, decision: Decision, state: Mapping[str, str]
    ) -> ToolResult | None:
        """Write down what the user decided; return the question where it has to go back to the client first."""
        form = _form(call, decision)
        if not _is_modern(ctx):
            answer: object = await _elicited(ctx, form)
        elif state.get("fingerprint") == call.fingerprint:
            answer = (ctx.input_responses or {}).get(_ASKED)
        else:
            own = json.dumps({"call_id": call.call_id, "fingerprint": call.fingerprint})
            asks = InputRequiredResult(input_requests={_ASKED: ElicitRequest(params=form)}, request_state=own)
            return InputRequiredToolResult(asks)
        self._decided(box, call, decision, answer)
        return None

    @staticmethod
    def _decided(box: Toolbox, call: Call, decision: Decision, answer: object) -> None:
        if not isinstance(answer, ElicitResult) or answer.action == "cancel":
            raise ApprovalRequired(id=call.id, approval_key=str(call.id), call=call.call_id, decision=decision.reason)
        scope = (answer.content or {}).get("scope", "call")
        if answer.action == "decline":
            box.reject(call, message="the user declined")
            raise NotAllowed(id=call.id, rule="rejected", decision="the user declined")
        box.approve(call, scope)  # type: ignore[arg-type] # checked there


def _newest(tools: Sequence[Tool]) -> Sequence[Tool]:
    return dedupe_with_versions(tools, lambda tool: tool.name)


def _is_modern(ctx: Context) -> bool:
    return ctx.request_context is not None and ctx.request_context.protocol_version >= _MODERN


def _call_id(ctx: Context) -> str:
    return f"{ctx.session_id}/{ctx.request_id}"


def _read_state(text: str | None) -> dict[str, str]:
    """Return what this gate sent along with a question; FastMCP seals it, so nobody else can have written it."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    ours = isinstance(found, dict) and found.keys() == {"call_id", "fingerprint"}
    return found if ours else {}


def _form(call: Call, decision: Decision) -> ElicitRequestFormParams:
    why = f" ({decision.reason})" if decision.reason else ""
    arguments = excerpt(json.dumps(call.arguments, ensure_ascii=False), 500)[1:-1]
    return ElicitRequestFormParams(
        message=f"May {call.id} of server {excerpt(call.origin.server)} be run{why} with {arguments}?",
        requested_schema={
            "type": "object",
            "properties": {
                "scope": {"type": "string", "title": "For which calls", "enum": [*get_args(Scope)], "default": "call"}
            },
        },
    )


async def _elicited(ctx: Context, form: ElicitRequestFormParams) -> ElicitResult | None:
    try:
        return await ctx.session.elicit(
            message=form.message, requested_schema=form.requested_schema, related_request_id=ctx.request_id
        )
    except Exception:  # noqa: BLE001 - a client that can't ask anybody: the call is told to need an approval
        return None
