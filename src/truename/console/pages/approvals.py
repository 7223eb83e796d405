"""The page of approvals: the calls that wait for a decision, with their arguments, and the decisions so far."""

from __future__ import annotations

import hmac
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar, get_args

from anyio import to_thread
from starlette.responses import RedirectResponse

from truename.console.page import Page, PageRoute
from truename.console.refusals import RefusedError
from truename.console.secret_texts import hidden_arguments
from truename.policy import Scope
from truename.trust.approval_decisions import ApprovalDecisions
from truename.trust.approval_queue import about_grant, about_request

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from truename.console.page import PageRequest
    from truename.gateway import Gateway
    from truename.trust.approval_decisions import ListedApproval
    from truename.trust.approval_queue import PendingCall

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
_CHANGED: Final = "This call, or the definition of its tool, is not the one that the page showed. Look at it again."
_REVOKED: Final = "There is no such decision any more."
_MOST_WAITING: Final = 100
_MOST_DECISIONS: Final = 200


async def _show(asked: PageRequest) -> Page:
    if asked.gateway.config.state_location().is_memory:
        text = "This gateway keeps its state in memory, so only the calling client can be asked. Set state to a file."
        return Page(template="problem.html", title="Approvals", values={"text": text})
    return Page(template="approvals.html", title="Approvals", values=await asked.computed(partial(_values, asked)))


def _values(asked: PageRequest) -> dict[str, object]:
    config = asked.gateway.config
    with ApprovalDecisions(config) as found:
        waiting, decided = found.waiting(), found.decisions()
    hidden = config.settings.audit.hide
    return {
        "waiting": [
            (one, asked.mark(_shown(one)), hidden_arguments(one.arguments, hidden)) for one in waiting[:_MOST_WAITING]
        ],
        "count": len(waiting),
        "decided": decided[::-1][:_MOST_DECISIONS],
        "decided_count": len(decided),
        "scopes": _SCOPES,
    }


async def _decide(asked: PageRequest) -> Response:
    """Grant or deny a call. The decision is in the audit log before it counts, if that is required."""
    scope = _scope(asked.field("scope"))
    is_approved = {"grant": True, "deny": False}.get(asked.field("answer"))
    if is_approved is None or scope is None:
        raise RefusedError(400, "This form has no decision. Reload the page, and repeat.")
    async with asked.decides():
        return await _decide_now(asked, scope, is_approved=is_approved)


async def _decide_now(asked: PageRequest, scope: Scope, *, is_approved: bool) -> Response:
    gateway, key = asked.gateway, asked.path["key"]
    waiting, listed = await _with_decisions(gateway, lambda found: _pending(found, key))
    if waiting is None or listed is None:
        raise RefusedError(409, _GONE)
    if not hmac.compare_digest(asked.field("shown").encode(), asked.mark(_shown(listed)).encode()):
        raise RefusedError(409, _CHANGED)
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
        if grant is None:
            raise RefusedError(409, _GONE)
        record.update(about_grant(grant))
    return RedirectResponse(_HERE, 303)


async def _revoke(asked: PageRequest) -> Response:
    async with asked.decides():
        return await _revoke_now(asked)


async def _revoke_now(asked: PageRequest) -> Response:
    gateway, key = asked.gateway, asked.path["key"]
    known = await _with_decisions(gateway, lambda found: found.grant(key))
    if known is None:
        raise RefusedError(409, _REVOKED)
    record = {"what": "revoked", **about_grant(known), "by": asked.session.principal.key, "via": _VIA}
    async with gateway.audit.deciding("approval", record):
        if await _with_decisions(gateway, lambda found: found.revoke(key)) is None:
            raise RefusedError(409, _REVOKED)
    return RedirectResponse(_HERE, 303)


def _scope(text: str) -> Scope | None:
    return next((one for one in get_args(Scope) if one == text), None)


def _pending(found: ApprovalDecisions, key: str) -> tuple[PendingCall | None, ListedApproval | None]:
    waiting = found.pending(key)
    return waiting, None if waiting is None else found.listed_request(waiting)


def _shown(one: ListedApproval) -> list[str]:
    """Return what a form decides on: what the page shows of a pending call, with the arguments that it hides."""
    return [*(one.key, one.principal, one.arguments, one.wire_name, one.state), *map(str, one.subject), *one.scopes]


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
