"""The definition that a call runs on: a call is made by the one that it was judged by, or judged again.

Between the judgement and the call a server may be started, come back, or announce that its tools changed. So the look
at its definition is taken last, when the server is there and the call is about to be sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.errors import ApprovalRequired, NotAllowed, UnknownTool
from truename.gateway.upstream_errors import UpstreamError
from truename.gateway.views.access_control import changed, is_current

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.gateway.calls.context import ResolvedCall
    from truename.gateway.registry import Registry
    from truename.gateway.upstream.known import Known
    from truename.gateway.views.view import View
    from truename.identity import ToolId
    from truename.policy import Call

__all__ = ["DefinitionGuard"]

_LATER: Final = "Try again later."
_OTHER: Final = "its definition on this connection differs from the admitted one"


class DefinitionGuard:
    """Guards one call: its tool is as it was judged, ``view`` returns what is shown now.

    A person's decision counts for the current definition only, and so a change that a server announced is read first.
    Without such a decision the call goes by what is done about drift.
    """

    def __init__(self, registry: Registry, call: ResolvedCall, view: Callable[[], View]) -> None:
        self._registry = registry
        self._tool = call.tool
        self._view = view
        self._context = call.context
        self._call, decision = call.judged, call.decision
        self._is_decided = decision is not None and (decision.outcome == "ask" or decision.grant is not None)

    async def check(self, server: Known) -> None:
        """Raise `TruenameError` for a call that may not be made on the definition that a server gives now."""
        id, own = self._tool.id, self._tool.origin.server
        # What is listed comes over the connection that all share, where a call may go over another one.
        shared = self._registry.pool.get(own)
        sources = [server]
        if shared is not None and shared is not server and shared.tools is not None:
            sources.append(shared)
        if self._is_decided:
            for one in sources:
                await self._settle(one)
        if all(map(self._is_current, sources)):
            return
        if shared is not None and shared in sources and not self._is_current(shared):
            await self._take_in(shared)
            await self._judge_again(id)
        if all(map(self._is_current, sources)):
            return
        if self._is_decided:
            raise changed(id, "" if self._call is None else self._call.call_id)
        if self._registry.settings.trust.of(own).drift != "warn":
            raise NotAllowed(id=id, rule="trust", decision=_OTHER, code="quarantined")

    async def check_still(self, call: Call) -> None:
        """Raise `TruenameError` for a call that somebody decided on meanwhile, and that may not be made any more."""
        server = self._registry.pool.get(call.origin.server)
        if server is not None:
            await self._settle(server)
            if not self._is_current(server):
                await self._take_in(server)
        view = self._view()
        if call.id not in view.table:
            raise UnknownTool(text=call.wire_name)
        upstream, _ = self._registry.origin(view, call.id)
        await self._registry.access.check_still(view, call, self._context, upstream.config)

    async def _settle(self, server: Known) -> None:
        """Read what a server announced. Where it cannot be read nobody knows what a decision would be about.

        That is no sign of the server's health: calls that nobody decided on go on.
        """
        try:
            await server.settle_announced()
        except UpstreamError as error:
            call = "" if self._call is None else self._call.call_id
            raise ApprovalRequired(id=self._tool.id, call=call, decision=str(error), remedy=_LATER) from error

    async def _take_in(self, server: Known) -> None:
        """Have the gateway look at what a server lists; once for a list, also where it cannot be taken."""
        if server.looked_at is not server.tools:
            server.looked_at = server.tools
            await self._registry.renew()

    async def _judge_again(self, id: ToolId) -> None:
        view = self._view()
        if id not in view.table:
            raise UnknownTool(text=str(id))
        self._tool = view.table.catalog[id]
        await self._registry.access.check_again(view, self._call, id, self._context)

    def _is_current(self, server: Known) -> bool:
        return is_current(self._tool, server.definition_of(self._tool.origin.name))
