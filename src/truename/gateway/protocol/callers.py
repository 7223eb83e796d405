"""Who sends a request: what the door found out, never what the request says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.policy.principal import LOCAL, Principal

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection
    from starlette.types import Scope

    from truename.auth.inbound.authentication import Authenticated
    from truename.gateway.mcp.requests import Request

__all__ = ["PRINCIPAL_KEY", "admission_of", "admitted", "first_header", "header_of", "let_in", "principal_of"]

PRINCIPAL_KEY: Final = "truename.principal"
_ADMISSION_KEY: Final = "truename.admission"
_INDEX_KEY: Final = "truename.headers"


def let_in(scope: Scope, admission: Authenticated) -> None:
    """Write into a request who sends it."""
    scope.setdefault("state", {}).update({PRINCIPAL_KEY: admission.principal, _ADMISSION_KEY: admission})


def admitted(scope: Scope) -> Authenticated:
    """Return how the sender of an HTTP request was authenticated. Raises `KeyError` for a request that was not."""
    found: Authenticated = scope["state"][_ADMISSION_KEY]
    return found


def principal_of(request: Request) -> Principal:
    """Return who sends a request: over standard input whoever started the gateway, over HTTP whom the door let in.

    Raises `KeyError` for a request over HTTP that came through no door.
    """
    http = request.http
    if http is None:
        return LOCAL
    found = http.scope["state"][PRINCIPAL_KEY]
    assert isinstance(found, Principal)  # noqa: S101 - nobody else writes there
    return found


def header_of(scope: Scope, name: bytes) -> bytes | None:
    """Return the first header with this name (in lower case); a request's headers are indexed once."""
    index: dict[bytes, bytes] | None = scope.get(_INDEX_KEY)
    if index is None:
        index = scope[_INDEX_KEY] = dict(reversed(scope["headers"]))
    return index.get(name)


def first_header(http: HTTPConnection | None, name: bytes) -> bytes | None:
    """Return the first header with this name (in lower case) of the HTTP request; None over standard input."""
    return None if http is None else header_of(http.scope, name)


def admission_of(request: Request) -> Authenticated | None:
    """Return how the sender of a request was let in; None over standard input."""
    http = request.http
    found: Authenticated | None = None if http is None else http.scope["state"].get(_ADMISSION_KEY)
    return found
