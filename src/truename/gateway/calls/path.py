"""The path of a call of a tool: from the client's request to its answer, one step under another."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from truename.errors import InvalidCall, NotAllowed, ResolutionError, TruenameError, UnknownTool, excerpt
from truename.gateway.call_records import current_record, noted
from truename.gateway.calls.context import CallContext, ResolvedCall
from truename.gateway.calls.definition_guard import DefinitionGuard
from truename.gateway.calls.draining import AdmittedRequest
from truename.gateway.calls.forward import forward
from truename.gateway.calls.repeats import Repeats
from truename.gateway.elicitation.program_runs import ProgramRun
from truename.gateway.mcp.methods import check_request, in_envelope
from truename.gateway.mcp.requests import is_from_app_host
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import RepeatedKeyError, read_strictly, whole
from truename.gateway.protocol.routing_headers import param_headers, param_mismatch
from truename.gateway.protocol.specification import HEADER_MISMATCH, INVALID_PARAMS
from truename.gateway.trust.approving import Approval, session_of
from truename.gateway.upstream_errors import UpstreamError, printable
from truename.gateway.views.app_bridge import is_for
from truename.gateway.views.app_links import AppLinks
from truename.gateway.views.contexts import ContextRefused
from truename.gateway.views.near_names import near_names_ready
from truename.gateway.views.versions import Versions
from truename.gateway.views.wording import among, error_result, wrong_name_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from truename.gateway.calls.tasks import TaskRequests
    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.views.view import View
    from truename.identity import ToolId
    from truename.naming import Resolution
    from truename.policy import Context

__all__ = ["CallPath"]

log: Final = logging.getLogger("truename.gateway")

Raw = dict[str, Any]


class CallPath:
    """The path of the calls of one endpoint.

    ``chosen`` returns the context of a request, its view, and what the context sees of that; ``view_now`` returns the
    view later on. ``tasks`` has the tasks that calls begin. ``server`` is the gateway's own ``serverInfo``.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        chosen: Callable[[Request], Awaitable[tuple[Context, View, View]]],
        view_now: Callable[[Request], View],
        tasks: TaskRequests,
        server: Mapping[str, Any],
    ) -> None:
        self._registry = registry
        self._chosen = chosen
        self._view_now = view_now
        self._tasks = tasks
        self._server = server
        self._repeats = Repeats()

    async def answer(self, request: Request) -> Raw:
        """Admit a call, take the steps of its path, record it, and return its result.

        What keeps a call from being made, or its server from answering, is a result that says so. Raises `MCPError` as
        the server sent it, and for a request that the protocol does not allow.
        """
        registry = self._registry
        begun = registry.call_records.begin(request)
        try:
            try:
                with AdmittedRequest(request, registry.drain_tracker, registry.settings.server_name):
                    result = await self._steps(request)
            except UpstreamError as error:
                # The gateway is at its end.
                result = error_result(noted(error))
            result = in_envelope(request, result, self._server)
        except BaseException as error:
            if begun is not None:
                begun[0].raised(error)
            raise
        else:
            if begun is not None:
                begun[0].answered(result)
            return result
        finally:
            if begun is not None:
                registry.call_records.end(*begun)

    async def _steps(self, request: Request) -> Raw:
        check_request(request)
        try:
            call = await self._choose_view(request)
        except TruenameError as error:
            return error_result(noted(error))
        except ContextRefused as error:
            raise MCPError(INVALID_PARAMS, str(error)) from error
        try:
            call = await self._read(call)
            result = await self._own_tool(call)
            if result is None:
                resolved = await self._resolve(call)
                resolved = await self._decide(resolved)
                place = await self._registry.quotas.take(resolved.principal, self._registry.settings.quotas)
                try:
                    guard = DefinitionGuard(self._registry, resolved, partial(self._view_now, request))
                    approval = await self._approve(resolved, guard)
                    if isinstance(approval, Approval):
                        result = await self._forward(resolved, approval, guard)
                    else:
                        result = approval
                finally:
                    if place is not None:
                        place.release()
        except ResolutionError as error:
            result = self._wrong_name(call, noted(error))
        except UpstreamError as error:
            log.warning("call of %s: %s", printable(call.name, 100), error)
            result = error_result(noted(error))
        except TruenameError as error:
            result = error_result(noted(error))
        return self._versions.on_result(result, call.view)

    @property
    def _versions(self) -> Versions:
        return Versions(self._registry.settings.protocol)

    async def _choose_view(self, request: Request) -> CallContext:
        """Return the call in its view. Raises `TruenameError` for one that cannot be made, and `ContextRefused`."""
        context, view, shown = await self._chosen(request)
        return CallContext(
            request=request,
            principal=principal_of(request),
            context=context,
            view=view,
            shown=shown,
            params=request.params or {},
        )

    async def _read(self, call: CallContext) -> CallContext:
        """Return the call that is meant, where it was made through ``call_tool``.

        Arguments on which something depends are read out. Raises `InvalidCall`.
        """
        registry = self._registry
        params = registry.tool_search.unwrapped(call.shown, call.params)
        if registry.access.reads_arguments or registry.call_records.reads_arguments:
            params = _with_read_arguments(params)
        if (record := current_record()) is not None:
            spec = call.view.spec
            record.means(params)
            await record.digest_arguments()
            record.client = spec.caller
            record.view = spec.dialect if spec.only is None else f"{spec.dialect}/only/{spec.only}"
        return call if params is call.params else msgspec.structs.replace(call, params=params)

    async def _own_tool(self, call: CallContext) -> Raw | None:
        """Return the result of one of the gateway's own tools; None for a server's tool. Raises `InvalidCall`."""
        result = await self._registry.tool_search.answer(call.shown, call.params, partial(self._meaning, call))
        if result is not None:
            self._repeats.over(call.request, call.view.spec)
        return result

    async def _resolve(self, call: CallContext) -> ResolvedCall:
        """Find the tool. Raises `ResolutionError`, also for a tool that does not exist for this caller.

        Raises `NotAllowed` for a tool that is for apps alone, from a client that shows none.
        Headers that contradict the arguments are refused with `MCPError` (HEADER_MISMATCH).
        """
        registry, view, name = self._registry, call.view, call.name
        await near_names_ready(name, view.table)
        id = self._meaning(call, name).id
        tool = view.table.catalog[id]
        if (record := current_record()) is not None:
            record.found(tool, registry.vetting.digest_of(tool))
        registry.access.check_known(view, id, call.context, name)
        if not is_for("model", tool.definition):
            if not is_from_app_host(call.request):
                raise NotAllowed(id=id, rule="not_for_llm", decision="it is for apps, which this client does not show")
            if call.is_through_search:
                # Hosts keep it from their models, but not what models write into the arguments of another tool.
                raise NotAllowed(id=id, rule="not_for_llm", decision="it is for apps, which call it by its name")
        self._repeats.over(call.request, view.spec)
        params = self._with_checked_headers(call, id)
        upstream, own_name = registry.origin(view, id)
        return ResolvedCall(
            request=call.request,
            principal=call.principal,
            context=call.context,
            view=view,
            shown=call.shown,
            params=params,
            session=session_of(call.request),
            tool=tool,
            upstream=upstream,
            own_name=own_name,
        )

    def _with_checked_headers(self, call: CallContext, id: ToolId) -> Mapping[str, Any]:
        """Return the parameters; where headers repeat arguments (``x-mcp-header``), after a look at both.

        What is hidden has no arguments either. The headers of a call through ``call_tool`` are about that tool.
        """
        http, params = call.request.http, call.params
        if http is None or not call.request.connection.is_modern or id not in call.shown.by_id:
            return params
        schema = call.view.mirrored(id)
        if schema is None or call.is_through_search:
            return params
        params = _with_read_arguments(params)
        problem = param_mismatch(schema, params.get("arguments") or {}, param_headers(http.scope["headers"]))
        if problem is not None:
            raise MCPError(HEADER_MISMATCH, problem)
        return params

    async def _decide(self, call: ResolvedCall) -> ResolvedCall:
        """Have the policy decide, where there is one. Raises `NotAllowed` and `InvalidCall`."""
        judged, decision = await self._registry.access.judge(
            call.view,
            call.tool,
            call.context,
            call.params,
            call.request.id,
            principal=call.principal,
            session=call.session,
            server=call.upstream.config,
            shown=call.shown,
        )
        return call if judged is None else msgspec.structs.replace(call, judged=judged, decision=decision)

    async def _approve(self, call: ResolvedCall, guard: DefinitionGuard) -> Approval | Raw:
        """Return the approval of a call that may be made, or the result that asks somebody to decide on it.

        Raises `ApprovalRequired`, `NotAllowed`, `CallRepeated`, and the refusals of the guard of the tool's definition.
        """
        approve = self._registry.approving.approve
        return await approve(call.request, call.judged, call.decision, call.params, still=guard.check_still)

    async def _forward(self, call: ResolvedCall, approval: Approval, guard: DefinitionGuard) -> Raw:
        """Send the call to its server, and return the result after what is done with every outcome.

        Raises what `forward` raises, and the refusals of the guard of the tool's definition.
        """
        registry, upstream = self._registry, call.upstream
        outcome: Raw | Exception
        has_failed = True
        try:
            await registry.call_records.admit()
            own = self._versions.without({**approval.params, "name": call.own_name})
            sent = self._tasks.asked(call.request, upstream, own)
            run = ProgramRun()
            try:
                outcome = await forward(
                    call.request,
                    upstream,
                    "tools/call",
                    sent,
                    definition=registry.vetting.digest_of(call.tool),
                    repeatable=call.tool.repeatable,
                    before=guard.check,
                    run=run,
                )
                outcome = await self._tasks.begun(call.request, upstream, sent, outcome, run.reached)
            except (MCPError, TruenameError) as error:
                outcome = error
            except BaseException as error:
                registry.access.recording.write(call.judged, call.view, sent, error)
                raise
            outcome = await self._treated(call, sent, outcome)
            has_failed = isinstance(outcome, Exception)
        finally:
            await registry.approving.finish(approval, failed=has_failed)
        if isinstance(outcome, Exception):
            raise outcome
        outcome = AppLinks(call.view.spec, call.upstream.key, lambda: call.shown, registry.tool_search).result(outcome)
        if not approval.is_approved or call.judged is None:
            return outcome
        return await registry.approving.passed(call.judged, outcome)

    async def _treated(self, call: ResolvedCall, sent: Mapping[str, Any], outcome: Raw | Exception) -> Raw | Exception:
        """Return an outcome after what is done with each: its texts, the recording, the screening.

        Raises `UpstreamError` for a result that is withheld.
        """
        registry, server = self._registry, call.upstream.key
        screening = registry.vetting.answers
        outcome = call.shown.texts.outcome(server, sent, outcome)
        registry.access.recording.write(call.judged, call.view, sent, outcome)
        if screening.is_on:
            if not isinstance(outcome, Exception):
                # The client gets what was screened, not other bytes that decode to it.
                outcome = whole(outcome)
            await screening.look(server, outcome)
        return outcome

    def _meaning(self, call: CallContext, name: str) -> Resolution:
        """Return the tool that a name means in a view. Raises `ResolutionError`.

        At an address of some servers a name means the same tool as at the address of all, or none: a spelling of a
        hidden server's tool must not lead to a tool with nearly the same name.
        """
        view, meta = call.view, call.params.get("_meta") or {}
        found = self._known(name, view, meta)
        if view.spec.servers is not None:
            whole = self._registry.view(replace(view.spec, servers=None)).table
            try:
                is_same = self._versions.resolve(name, whole, meta).id == found.id
            except ResolutionError:
                is_same = False
            if not is_same:
                raise UnknownTool(text=name)
        return found

    def _known(self, name: str, view: View, meta: Mapping[str, Any]) -> Resolution:
        """Return what a name means. Raises `UnknownTool` (``unread``) where that cannot be known now."""
        try:
            found = self._versions.resolve(name, view.table, meta)
        except UnknownTool as error:
            if error.reason == "unknown":
                self._registry.check_read(name, None, view.table)
            if error.reason == "absent" and (new := self._registry.renames.proposed(error.id)) is not None:
                raise _renamed(error, view.table.get(new.id)) from error
            raise
        self._registry.check_read(name, found, view.table)
        return found

    def _wrong_name(self, call: CallContext, error: ResolutionError) -> Raw:
        """Return what is answered to a wrong name: only names that this caller could call are told."""
        view, shown, search = call.view, call.shown, self._registry.tool_search
        if isinstance(error, UnknownTool) and error.reason == "unread":
            return error_result(error)
        told = among(error, shown.by_name, frozenset(view.table.values()))
        times = self._repeats.again(call.request, view.spec, error.text)
        return error_result(told, wrong_name_text(told, search.listed(shown).by_name, times) + search.hint(shown))


def _renamed(error: UnknownTool, name: str | None) -> UnknownTool:
    """Return the refusal of an old name whose tool was probably renamed, to a tool with this name in the view."""
    return error if name is None else replace(error, reason="renamed", suggestions=(name,))


def _with_read_arguments(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters with the arguments read out: the server gets what was read.

    Raises `InvalidCall` for a key that occurs twice, of which each reader may take another.
    """
    arguments = params.get("arguments")
    if not isinstance(arguments, msgspec.Raw):
        return params
    try:
        return {**params, "arguments": read_strictly(arguments)}
    except RepeatedKeyError as error:
        raise InvalidCall(field="arguments", problem=f"has the key {excerpt(error.key)} twice") from error
