"""The path of a call of a tool: from the client's request to its answer, one step under another."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from truename.errors import InvalidCall, ResolutionError, TruenameError, UnknownTool, excerpt
from truename.gateway.call_records import current_record, noted
from truename.gateway.calls.context import CallContext, ResolvedCall
from truename.gateway.calls.definition_guard import DefinitionGuard
from truename.gateway.calls.draining import AdmittedRequest
from truename.gateway.calls.forward import forward
from truename.gateway.calls.repeats import Repeats
from truename.gateway.faults import UpstreamError, printable
from truename.gateway.mcp.methods import check_request, in_envelope
from truename.gateway.protocol.callers import principal_of
from truename.gateway.protocol.json_text import RepeatedKeyError, read_strictly, whole
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.specification import INVALID_PARAMS
from truename.gateway.trust.approving import Approval, session_of
from truename.gateway.views.contexts import ContextRefused
from truename.gateway.views.near_names import near_names_ready
from truename.gateway.views.versions import Versions
from truename.gateway.views.wording import among, error_result, wrong_name_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.gateway.calls.tasks import TaskRequests
    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.views.view import View, ViewSpec
    from truename.naming import Resolution
    from truename.policy import Context

__all__ = ["CallPath"]

log: Final = logging.getLogger("truename.gateway")

Raw = dict[str, Any]


class CallPath:
    """The path of the calls of one endpoint.

    ``choose`` tells the view of a request, ``view_in`` returns it, ``context_of`` returns the request's context.
    ``tasks`` has the tasks that calls begin. ``server`` is the gateway's own ``serverInfo``.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        choose: Callable[[Request], ViewSpec],
        view_in: Callable[[Request, ViewSpec], View],
        context_of: Callable[[Request], Context],
        tasks: TaskRequests,
        server: Mapping[str, Any],
    ) -> None:
        self._registry = registry
        self._choose = choose
        self._view_in = view_in
        self._context_of = context_of
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
                result = await self._approve_and_forward(resolved)
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
        registry = self._registry
        spec, context = self._choose(request), self._context_of(request)
        if not registry.is_current(spec, context):
            await registry.prepare(spec, context)
        view = self._view_in(request, spec)
        return CallContext(
            request=request,
            principal=principal_of(request),
            context=context,
            view=view,
            shown=registry.access.limited(view, context),
            params=request.params or {},
        )

    def _view_now(self, request: Request) -> View:
        return self._view_in(request, self._choose(request))

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
            record.client = spec.client or ""
            record.view = spec.dialect if spec.only is None else f"{spec.dialect}/only/{spec.only}"
        return call if params is call.params else msgspec.structs.replace(call, params=params)

    async def _own_tool(self, call: CallContext) -> Raw | None:
        """Return the result of one of the gateway's own tools; None for a server's tool. Raises `InvalidCall`."""
        result = await self._registry.tool_search.answer(call.shown, call.params, partial(self._meaning, call))
        if result is not None:
            self._repeats.over(call.request, call.view.spec)
        return result

    async def _resolve(self, call: CallContext) -> ResolvedCall:
        """Find the tool. Raises `ResolutionError`, also for a tool that does not exist for this caller."""
        registry, view, name = self._registry, call.view, call.name
        await near_names_ready(name, view.table)
        id = self._meaning(call, name).id
        assert id is not None  # noqa: S101 - only passthrough has none
        tool = view.table.catalog[id]
        if (record := current_record()) is not None:
            record.found(tool, registry.vetting.digest_of(tool))
        registry.access.check_known(view, id, call.context, name)
        self._repeats.over(call.request, view.spec)
        upstream, own_name = registry.origin(view, id)
        return ResolvedCall(
            request=call.request,
            principal=call.principal,
            context=call.context,
            view=view,
            shown=call.shown,
            params=call.params,
            session=session_of(call.request),
            tool=tool,
            upstream=upstream,
            own_name=own_name,
        )

    async def _decide(self, call: ResolvedCall) -> ResolvedCall:
        """Have the policy decide, where there is one. Raises `NotAllowed` and `InvalidCall`."""
        judged, decision = await self._registry.access.judge(
            call.view,
            call.tool.id,
            call.context,
            call.params,
            call.request.id,
            principal=call.principal,
            session=call.session,
            server=call.upstream.config,
            shown=call.shown,
        )
        return call if judged is None else msgspec.structs.replace(call, judged=judged, decision=decision)

    async def _approve_and_forward(self, call: ResolvedCall) -> Raw:
        """Return the result of the call, or one that asks somebody to decide on it.

        Raises what approval raises (`ApprovalRequired`, `NotAllowed`, `CallRepeated`), what `forward` raises, and the
        refusals of the guard of the tool's definition.
        """
        registry, request = self._registry, call.request
        guard = DefinitionGuard(registry, call, partial(self._view_now, request))
        approving = registry.approving
        approval = await approving.approve(request, call.judged, call.decision, call.params, still=guard.check_still)
        if not isinstance(approval, Approval):
            return approval
        failed = True
        try:
            result = await self._forward(call, approval.params, guard)
            failed = False
        finally:
            await approving.finish(approval, failed=failed)
        if not approval.is_approved or call.judged is None:
            return result
        return approving.passed(call.judged, result)

    async def _forward(self, call: ResolvedCall, params: Mapping[str, Any], guard: DefinitionGuard) -> Raw:
        """Send the call to its server, and return the result after what is done with every outcome."""
        registry, upstream = self._registry, call.upstream
        access, screening = registry.access, registry.vetting.answers
        await registry.call_records.admit()
        sent = self._tasks.asked(call.request, upstream, self._versions.without({**params, "name": call.own_name}))
        outcome: Raw | Exception
        try:
            outcome = await forward(
                call.request, upstream, "tools/call", sent, repeatable=call.tool.repeatable, before=guard.check
            )
            outcome = self._tasks.begun(call.request, upstream, sent, outcome)
        except (MCPError, TruenameError) as error:
            outcome = error
        except BaseException as error:
            access.recording.write(call.judged, call.view, sent, error)
            raise
        outcome = call.shown.texts.outcome(upstream.key, sent, outcome)
        access.recording.write(call.judged, call.view, sent, outcome)
        if screening.is_on:
            if not isinstance(outcome, Exception):
                # The client reads what was looked at.
                outcome = whole(outcome)
            await screening.look(upstream.key, outcome)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def _meaning(self, call: CallContext, name: str) -> Resolution:
        """Return the tool that a name means in a view. Raises `ResolutionError`.

        At an address of some servers a name means the same tool as at the address of all, or none: a spelling of a
        hidden server's tool must not lead to a tool with nearly the same name.
        """
        view, meta = call.view, call.params.get("_meta") or {}
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

    def _wrong_name(self, call: CallContext, error: ResolutionError) -> Raw:
        """Return what is answered to a wrong name: only names that this caller could call are told."""
        view, shown, search = call.view, call.shown, self._registry.tool_search
        told = among(error, shown.by_name, frozenset(view.table.values()))
        times = self._repeats.again(call.request, view.spec, error.text)
        return error_result(told, wrong_name_text(told, search.listed(shown).by_name, times) + search.hint(shown))


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
