"""Which view a request gets on the main endpoint: by setting, by a header that asks, by detection where it may be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.gateway.protocol.callers import first_header
from truename.gateway.views.view import Asked, ViewSpec

if TYPE_CHECKING:
    from truename.config import Settings
    from truename.gateway.mcp.requests import Request

__all__ = ["CANONICAL", "UNIVERSAL", "fixed_view", "main_view", "view_for"]

CANONICAL: Final = ViewSpec("native", "canonical")
UNIVERSAL: Final = ViewSpec("universal")
_ANYTHING: Final = Asked()
# Headers by which a client asks; what it merely says of itself is another matter.
_ASKING: Final = (b"x-truename-dialect", b"x-openai-mode")


def view_for(dialect: str) -> ViewSpec:
    """Return the view of one client: its own dialect; ``native`` clients get canonical names."""
    return CANONICAL if dialect == CANONICAL.dialect else ViewSpec(dialect, client=dialect)


def fixed_view(asked: Asked, settings: Settings) -> ViewSpec:
    """Return the view that a path stands for (`views.read_path`), before anything of a request is known."""
    found = _named(asked, settings)
    if (found.profiles, found.search, found.servers) == (asked.profiles, asked.search, asked.servers):
        return found
    return replace(found, profiles=asked.profiles, search=asked.search, servers=asked.servers)


def _named(asked: Asked, settings: Settings) -> ViewSpec:
    if asked.server is not None:
        return ViewSpec("own", "on-conflict", only=asked.server, client=asked.client)
    if asked.client is not None:
        return view_for(asked.client)
    return CANONICAL if settings.names == "canonical" else UNIVERSAL


def main_view(request: Request, settings: Settings, asked: Asked = _ANYTHING) -> ViewSpec:
    """Return the view of a request to an address that names no client and no single server.

    A header that asks for a dialect is followed in every era. What a client says of itself is looked at only with
    ``names = "detect"`` and in the handshake eras: in 2026-07-28 a list must not vary by connection. A
    client that is not known gets canonical names.
    Raises `UnknownDialect` if the header asks for one that does not exist.
    """
    found = _main(request, settings)
    if (found.search, found.servers) == (asked.search, asked.servers):
        return found
    return replace(found, search=asked.search, servers=asked.servers)


def _main(request: Request, settings: Settings) -> ViewSpec:
    asked = _asking(request)
    if asked and (wanted := dialects.detect(headers=asked).dialect) is not None:
        return view_for(wanted.name)
    if settings.names != "detect" or request.connection.is_modern:
        return fixed_view(_ANYTHING, settings)
    client = request.connection.client
    headers = {} if request.http is None else request.http.headers
    detected = dialects.detect(client.name if client else None, headers).dialect
    if detected is None:
        return CANONICAL
    # A name that many clients send tells nothing about who it is.
    return UNIVERSAL if detected.name == UNIVERSAL.dialect else view_for(detected.name)


def _asking(request: Request) -> dict[str, str]:
    """Return the headers of a request that ask for a dialect; the first of each name counts."""
    found: dict[str, str] = {}
    for name in _ASKING:
        if (value := first_header(request.http, name)) is not None:
            found[name.decode("ascii")] = value.decode("latin-1")
    return found
