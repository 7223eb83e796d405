"""The page of approvals: the calls that wait for a decision, with their arguments, and the decisions so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar, get_args

from anyio import to_thread
from starlette.responses import RedirectResponse

from truename.console.page import Page, PageRoute, RefusedError
from truename.policy import Scope
from truename.trust.approval_decisions import ApprovalDecisions
from truename.trust.approval_queue import about_grant, about_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from truename.console.page import PageRequest
    from truename.gateway import Gateway

__all__ = ["ROUTES"]

Found = TypeVar("Found")
_HERE: Final = "/console/approvals"
_VIA: Final = "console"
_SCOPES: Final = {
    "call": "this call only",
    "arguments": "each call with these arguments",
    "session": "all calls in its session",
    "always": "all calls of this tool",
}
_GONE: Final = "This call does not wait any more: somebody decided on it, or its time is over."
_MOST_DECISIONS: Final = 200


async def _show(asked: PageRequest) -> Page:
    if asked.gateway.config.state_location().is_memory:
        text = "This gateway keeps its state in memory, so only the calling client can be asked. Set state to a file."
        return Page(template="problem.html", title="Approvals", values={"text": text})
    waiting, decided = await _with_decisions(asked.gateway, lambda found: (found.waiting(), found.decisions()))
    values = {"waiting": waiting, "decided": decided[::-1][:_MOST_DECISIONS], "scopes": _SCOPES}
    return Page(template="approvals.html", title="Approvals", values=values)


async def _decide(asked: PageRequest) -> Response:
    """Grant or deny a call. The decision is in the audit log before it counts, if that is required."""
    gateway, scope = asked.gateway, asked.field("scope")
    is_approved = {"grant": True, "deny": False}.get(asked.field("answer"))
    if is_approved is None or scope not in get_args(Scope):
        raise RefusedError(400, "This form has no decision. Reload the page, and repeat.")
    waiting = await _with_decisions(gateway, lambda found: found.pending(asked.path["key"]))
    if waiting is None:
        raise RefusedError(409, _GONE)
    if scope not in waiting.scopes:
        raise RefusedError(400, "The client of this call has no session; choose another scope.")
    by = asked.session.principal.key
    record = {
        "what": "granted" if is_approved else "denied",
        **about_request(waiting),
        "covers": scope,
        "by": by,
        "via": _VIA,
    }
    async with gateway.audit.deciding("approval", record):
        grant = await _with_decisions(
            gateway,
            lambda found: found.decide(
                waiting, scope, approved=is_approved, by=by, message=asked.field("message")[:1_000]
            ),
        )
        record.update(about_grant(grant))
    return RedirectResponse(_HERE, 303)


async def _revoke(asked: PageRequest) -> Response:
    gateway, key = asked.gateway, asked.path["key"]
    known = await _with_decisions(gateway, lambda found: found.grant(key))
    if known is None:
        raise RefusedError(409, "There is no such decision any more.")
    record = {"what": "revoked", **about_grant(known), "by": asked.session.principal.key, "via": _VIA}
    async with gateway.audit.deciding("approval", record):
        await _with_decisions(gateway, lambda found: found.revoke(key))
    return RedirectResponse(_HERE, 303)


async def _with_decisions(gateway: Gateway, do: Callable[[ApprovalDecisions], Found]) -> Found:
    def done() -> Found:
        with ApprovalDecisions(gateway.config) as decisions:
            return do(decisions)

    return await to_thread.run_sync(done)


ROUTES: Final = (
    PageRoute("GET", "/approvals", "viewer", _show),
    PageRoute("POST", "/approvals/{key}/decision", "approver", _decide),
    PageRoute("POST", "/approvals/{key}/revocation", "operator", _revoke),
)
