"""What is known of one call while it passes the steps of its path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.catalog import Tool
    from truename.gateway.mcp.requests import Request
    from truename.gateway.upstream.upstream import Upstream
    from truename.gateway.views.view import View
    from truename.policy import Call, Context, Decision
    from truename.policy.principal import Principal

__all__ = ["CallContext", "ResolvedCall"]


class CallContext(msgspec.Struct, frozen=True, kw_only=True):
    """A call whose view is chosen.

    ``view`` has all names of the view, ``shown`` is what the caller's context sees of it. ``params`` are the
    parameters as they are meant: of a call through ``call_tool`` those of the call inside.
    """

    request: Request
    principal: Principal
    context: Context
    view: View
    shown: View
    params: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name by which the tool is called."""
        return str(self.params.get("name"))

    @property
    def is_through_search(self) -> bool:
        """Whether the tool is called through ``call_tool``."""
        return self.name != (self.request.params or {}).get("name")


class ResolvedCall(CallContext, frozen=True, kw_only=True):
    """A call whose tool is found.

    ``own_name`` is what its server calls the tool. ``judged`` is the call as the policy sees it, None where nobody has
    to know of it; ``decision`` is what the policy says, None without one.
    """

    session: str
    tool: Tool
    upstream: Upstream
    own_name: str
    judged: Call | None = None
    decision: Decision | None = None
