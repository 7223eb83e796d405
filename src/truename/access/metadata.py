"""What an authorization server says of itself (RFC 8414, OpenID Connect Discovery), believed only of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from truename.access.fetching import FetchFault

if TYPE_CHECKING:
    from truename.access.fetching import Fetch

__all__ = ["endpoint_in", "metadata_of", "well_known"]

_OAUTH: Final = "/.well-known/oauth-authorization-server"
_OIDC: Final = "/.well-known/openid-configuration"


def well_known(issuer: str) -> tuple[str, ...]:
    """Return where an issuer's metadata may be, in the order in which MCP has clients look.

    >>> well_known("https://idp.example/tenant")[0]
    'https://idp.example/.well-known/oauth-authorization-server/tenant'
    >>> well_known("https://idp.example/")[-1]
    'https://idp.example/.well-known/openid-configuration'
    """
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = (f"{root}{_OAUTH}{path}", f"{root}{_OIDC}{path}")
    return (*inserted, f"{root}{path}{_OIDC}") if path else inserted


async def metadata_of(issuer: str, fetch: Fetch) -> dict[str, Any]:
    """Return the metadata of an issuer. Raises `FetchFault`.

    A document that names another issuer is none of this one's: else whoever can put a file on a host could speak for
    its tenants (RFC 8414 section 3.3).
    """
    problem = "it has no metadata"
    for url in well_known(issuer):
        answer = await fetch(url)
        if answer.status != 200:
            continue
        found = answer.document()
        if found.get("issuer") == issuer:
            return found
        problem = "its metadata names another issuer"
    message = f"{issuer}: {problem}"
    raise FetchFault(message)


def endpoint_in(metadata: dict[str, Any], name: str, issuer: str) -> str:
    """Return a URL of the metadata, which is HTTPS unless the issuer itself is not. Raises `FetchFault`."""
    url = metadata.get(name)
    plain = urlsplit(issuer).scheme == "http"
    if not isinstance(url, str) or not url.startswith(("https://", "http://") if plain else "https://"):
        message = f"{issuer}: its metadata has no usable {name}"
        raise FetchFault(message)
    return url
