"""Write the paths at which the gateway serves; `truename.gateway.views.view.read_path` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MAIN", "SERVERS", "path_of", "servers_in"]

MAIN: Final = "/mcp"
SERVERS: Final = "/servers/"


def path_of(
    *,
    client: str | None = None,
    profile: str | None = None,
    context: str | None = None,
    search: bool = False,
    server: str | None = None,
    servers: Iterable[str] | None = None,
) -> str:
    """Return the path of a view: for a client, by a profile, in a context, searched, of one server or of several.

    Several servers are separated by commas; a comma in a key is escaped twice, because a path is unescaped before it
    is read.

    >>> path_of(client="cursor", server="My Server.io/x"), path_of(search=True, servers=["b/2", "a,1"])
    ('/mcp/for/cursor/only/My%20Server.io%2Fx', '/mcp/search/servers/a%252C1,b%2F2')
    """
    parts = [("/for/", client), ("/profile/", profile), ("/in/", context)]
    path = MAIN + "".join(f"{word}{quote(value, safe='')}" for word, value in parts if value is not None)
    path += "/search" if search else ""
    if server is not None:
        return f"{path}/only/{quote(server, safe='')}"
    if servers is None:
        return path
    keys = (key.replace("%", "%25").replace(",", "%2C") for key in sorted(servers))
    return f"{path}{SERVERS}{quote(','.join(keys), safe=',')}"


def servers_in(url: str) -> tuple[str, ...] | None:
    """Return the servers of an address of several, as `path_of` writes it; None for another address.

    >>> servers_in("http://127.0.0.1:8750/mcp/servers/a%252C1,b%2F2")
    ('a,1', 'b/2')
    """
    _, several, keys = url.rpartition(SERVERS)
    return tuple(unquote(key) for key in unquote(keys).split(",")) if several else None
