"""The page of calls: the last ones through this process, newest first, with filters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from truename.console.page import Page, PageRoute
from truename.policy.call import Outcome

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from truename.console.page import PageRequest
    from truename.policy.call import CallEvent

__all__ = ["ROUTES"]

_MOST: Final = 100
_LONGEST: Final = 200


@dataclass(frozen=True, kw_only=True)
class CallFilter:
    """What calls have to have: parts of texts, an outcome, and at least so many milliseconds."""

    principal: str = ""
    server: str = ""
    tool: str = ""
    outcome: str = ""
    slower_than: float = 0.0

    @classmethod
    def of(cls, query: QueryParams) -> CallFilter:
        """Read a filter; what cannot be read filters nothing."""
        slower = query.get("slower", "")[:10]
        return cls(
            principal=query.get("principal", "")[:_LONGEST],
            server=query.get("server", "")[:_LONGEST],
            tool=query.get("tool", "")[:_LONGEST],
            outcome=query.get("outcome", ""),
            slower_than=float(slower) if slower.isdecimal() else 0.0,
        )

    def fits(self, call: CallEvent) -> bool:
        """Return whether a call has all of it."""
        server = "" if call.origin is None else call.origin.server
        return (
            self.principal in call.principal.key
            and self.outcome in {"", call.outcome}
            and self.server in {"", server}
            and call.seconds * 1_000 >= self.slower_than
            and (self.tool in call.wire_name or self.tool in str(call.id or ""))
        )


async def _show(asked: PageRequest) -> Page:
    wanted = CallFilter.of(asked.query)
    values = {
        "wanted": wanted,
        "calls": await asked.computed(lambda: asked.calls.matching(wanted.fits, _MOST)),
        "count": asked.calls.count,
        "most": _MOST,
        "outcomes": [one for one in get_args(Outcome) if one != "begun"],
        "servers": list(asked.gateway.registry.pool),
        "query": str(asked.query),
    }
    return Page(template="calls.html", title="Calls", values=values)


ROUTES: Final = (PageRoute("GET", "/calls", "viewer", _show),)
