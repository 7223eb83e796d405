"""What a fault of a transport is called, and what to do about it: one row a kind."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING, Final

from truename.gateway.protocol.writable import DEEPEST
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CODES", "explained"]

ALLOW: Final = "If it is meant, add its network to allow_addresses."
_EXPLAINED: Final[Mapping[str, tuple[str, str]]] = {
    "unreachable": ("cannot be reached", "Check that it runs and that its address is right."),
    "refused": ("refused the request", "Check its address and the credentials under headers."),
    "too_large": ("returned a result that is too large, which was dropped", "Ask for less, or raise max_result."),
    "too_deep": (f"returned a result of more than {DEEPEST} nested levels, which clients cannot read", "Ask for less."),
    "lost": ("closed the connection before it answered", ""),
    "forgotten": ("was restarted; nothing was run", "Repeat the call."),
    "unconfirmed": (
        "runs once for all gateways, and the state database does not confirm that it still runs here; nothing was run",
        "Try again when the state database answers.",
    ),
    "withheld": (
        "runs once for all gateways, and the state database does not confirm that the answer is still to be passed on",
        "",
    ),
    "protocol": (
        "violated the protocol",
        "Check that it is an MCP server, or report it to its authors.",
    ),
    "login": ("needs a login", "Log in with `truename login SERVER --for WHO` where the gateway runs, and call again."),
    "caller": (
        "needs the caller's own access token",
        "Authenticate with an access token of the authorization server in its auth; other callers have none.",
    ),
    "credential": ("could not be sent an access token", "Check the entry's auth, and its authorization server."),
    "address": ("is not contacted", ALLOW),
    "redirected": (
        "redirects to another address",
        "If that is the right server, configure its address; to allow the redirect, add the host to allow_redirects.",
    ),
}
# A session that the server no longer knows is a lost connection, of which more is known.
_CALLED: Final[Mapping[str, str]] = {"forgotten": "lost", "too_deep": "too_large", "unconfirmed": "busy"}
CODES: Final[Mapping[str, str]] = {"address": "address_refused", "login": "login_required", "caller": "login_required"}


def explained(server: str, kind: str, detail: str, remedy: str = "") -> UpstreamError:
    """Return the error for a fault; ``remedy`` is what to do where the kind does not say that."""
    problem, own_remedy = _EXPLAINED[kind]
    return UpstreamError(
        server=server,
        kind=_CALLED.get(kind, kind),
        problem=f"{problem} ({printable(detail, 200)})" if detail else problem,
        remedy=own_remedy.replace("SERVER", quote(printable(server))) or remedy,
        code=CODES.get(kind, UpstreamError.code),
    )
