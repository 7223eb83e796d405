"""Where people log in at a server, as the server itself says it (RFC 9728), believed only of itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.access.addresses import AddressRefused, host_of
from truename.access.challenge import METADATA
from truename.access.fetching import FetchFault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.access.fetching import Fetch, Fetched

__all__ = ["Found", "covers", "found_at", "said_in"]

_MOST: Final = 10
_MOST_SCOPES: Final = 50
_LONGEST: Final = 2_048
_LONGEST_CHALLENGE: Final = 8_192
# A request that runs nothing and opens no session; who has no token is refused before it is looked at.
_PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_ACCEPT: Final = {"accept": "application/json, text/event-stream"}
# A parameter of a challenge (RFC 9110 section 11.2); a quoted text is taken whole, whatever it says.
_PARAMETER: Final = re.compile(r"""([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))""")
_SCOPE: Final = re.compile(r"[!#-\[\]-~]{1,256}")


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a server says: its authorization servers, in its order, and for what its tokens are asked for."""

    issuers: tuple[str, ...]
    resource: str
    scopes: tuple[str, ...] = ()


async def found_at(address: str, fetch: Fetch) -> Found:
    """Ask a server where one logs in. Raises `FetchFault`.

    What its 401 names is looked at (RFC 9728 section 5.1), else where the metadata of its address has to be, and that
    of its host. ``fetch`` is to go no nearer than the server is (`Within`).
    """
    said = said_in((await fetch(address, document=_PING, headers=_ACCEPT)).challenges)
    named = said.get("resource_metadata")
    for url in _places(address) if named is None else (named,):
        if not _is_usable(url, address):
            break
        answer = await fetch(url)
        if answer.status == 200:
            return _read(answer, address, said.get("scope", ""))
    message = "the server does not say where to log in (RFC 9728)"
    raise FetchFault(message)


def said_in(challenges: Iterable[str]) -> Mapping[str, str]:
    r"""Return the parameters of challenges, the first of each name.

    >>> said_in(['Bearer error="see scope=all", scope="a b"', "Basic realm=x"])
    {'error': 'see scope=all', 'scope': 'a b', 'realm': 'x'}
    """
    found: dict[str, str] = {}
    for challenge in challenges:
        for name, quoted, plain in _PARAMETER.findall(challenge[:_LONGEST_CHALLENGE]):
            found.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) or plain)
    return found


def covers(resource: str, address: str) -> bool:
    """Tell whether a resource is what is found at an address: the address itself, or what it is a part of.

    >>> covers("https://a.example", "https://a.example/mcp"), covers("https://a.example/m", "https://a.example/mcp")
    (True, False)
    """
    if resource == address:
        return True
    try:
        here, there = urlsplit(address), urlsplit(resource)
        origins = [(one.scheme, one.hostname, one.port or _PORTS.get(one.scheme)) for one in (here, there)]
    except ValueError:
        return False
    is_plain = not there.query and not there.fragment and "@" not in there.netloc
    path = there.path.rstrip("/")
    return origins[0] == origins[1] and is_plain and (here.path == path or here.path.startswith(f"{path}/"))


_PORTS: Final[Mapping[str, int]] = {"https": 443, "http": 80}


def _places(address: str) -> tuple[str, ...]:
    parts = urlsplit(address)
    root, path = f"{parts.scheme}://{parts.netloc}{METADATA}", parts.path.rstrip("/")
    return (f"{root}{path}", root) if path else (root,)


def _is_usable(url: object, address: str) -> bool:
    """Tell whether a server may name this: what is encrypted, unless its own address, which you wrote, is not."""
    ways = {"https", "http"} if address.startswith("http://") else {"https"}
    try:
        return _is_plain(url) and host_of(str(url))[0] in ways
    except AddressRefused:
        return False


def _is_plain(text: object) -> bool:
    return isinstance(text, str) and len(text) <= _LONGEST and text.isascii() and text.isprintable()


def _read(answer: Fetched, address: str, asked: str) -> Found:
    said = answer.document()
    resource = said.get("resource")
    if not isinstance(resource, str) or not _is_plain(resource) or not covers(resource, address):
        # Else one server could have tokens made for another (RFC 9728 section 3.3).
        message = "what the server says of where to log in is another server's"
        raise FetchFault(message)
    issuers = tuple(one for one in _listed(said, "authorization_servers") if _is_issuer(one, address))[:_MOST]
    if not issuers:
        message = "the server names no authorization server that can be used"
        raise FetchFault(message)
    scopes = asked.split() or _listed(said, "scopes_supported")
    fit = tuple(one for one in scopes if isinstance(one, str) and _SCOPE.fullmatch(one))
    return Found(issuers=issuers, resource=resource, scopes=fit[:_MOST_SCOPES])


def _listed(said: Mapping[str, Any], name: str) -> list[Any]:
    found = said.get(name)
    return found if isinstance(found, list) else []


def _is_issuer(url: object, address: str) -> bool:
    # An issuer has neither query nor fragment (RFC 8414 section 2).
    return _is_usable(url, address) and not set("?#@\\ ") & set(str(url))
