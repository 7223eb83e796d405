"""Implement OAuth with an issuer: metadata (RFC 8414), client authentication, PKCE (RFC 7636), tokens."""

from __future__ import annotations

import hashlib
import logging
from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import quote_plus, urlsplit

import anyio

from truename.auth.network.fetch import FetchError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.auth.network.fetch import Fetch, FetchedDocument

__all__ = [
    "S256",
    "IssuerClient",
    "TokenRefused",
    "TokenResponse",
    "basic",
    "challenge_of",
    "client_authentication",
    "endpoint_in",
    "fetch_metadata",
    "is_document",
    "parse_token_response",
    "revoke_tokens",
    "well_known",
]

S256: Final = "S256"


def challenge_of(verifier: str) -> str:
    """Return the PKCE challenge of a verifier (RFC 7636 section 4.2).

    >>> challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM'
    """
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


_OAUTH: Final = "/.well-known/oauth-authorization-server"
_OIDC: Final = "/.well-known/openid-configuration"


def well_known(issuer: str) -> tuple[str, ...]:
    """Return the URLs of an issuer's metadata, in the order in which MCP clients must try them.

    >>> well_known("https://idp.example/tenant")[0]
    'https://idp.example/.well-known/oauth-authorization-server/tenant'
    >>> well_known("https://idp.example/")[-1]
    'https://idp.example/.well-known/openid-configuration'
    """
    parts = urlsplit(issuer)
    root, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    inserted = (f"{root}{_OAUTH}{path}", f"{root}{_OIDC}{path}")
    return (*inserted, f"{root}{path}{_OIDC}") if path else inserted


async def fetch_metadata(issuer: str, fetch: Fetch) -> dict[str, object]:
    """Fetch the metadata of an issuer. Raises `FetchError`.

    A document that names another issuer is refused: otherwise somebody who can put a file on a host could speak for its
    tenants (RFC 8414 section 3.3).
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
    raise FetchError(message)


def endpoint_in(metadata: dict[str, object], name: str, issuer: str) -> str:
    """Return a URL of the metadata, which must be HTTPS unless the issuer itself is not. Raises `FetchError`."""
    url = metadata.get(name)
    plain = urlsplit(issuer).scheme == "http"
    if not isinstance(url, str) or not url.startswith(("https://", "http://") if plain else "https://"):
        message = f"{issuer}: its metadata has no usable {name}"
        raise FetchError(message)
    return url


log: Final = logging.getLogger("truename.auth")


_HOUR: Final = 3_600.0


class IssuerClient:
    """A client of one issuer: fetches its metadata at first use, and keeps it for an hour."""

    def __init__(self, issuer: str, fetch: Fetch, clock: Callable[[], float]) -> None:
        self.issuer = issuer
        self._fetch = fetch
        self._clock = clock
        self._known: dict[str, object] = {}
        self._until = 0.0
        self._lock = anyio.Lock()

    async def metadata(self) -> dict[str, Any]:
        """Return the issuer's metadata. Raises `FetchError`."""
        async with self._lock:
            if self._clock() >= self._until:
                self._known = await fetch_metadata(self.issuer, self._fetch)
                self._until = self._clock() + _HOUR
            return self._known

    async def endpoint(self, name: str, typed: str | None) -> str:
        """Return the URL that the operator configured, else the one in the metadata. Raises `FetchError`."""
        return typed or endpoint_in(await self.metadata(), name, self.issuer)

    async def ask(
        self, name: str, typed: str | None, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> FetchedDocument:
        """Send a request to an endpoint, which may not be in a nearer zone than the issuer. Raises `FetchError`."""
        url = await self.endpoint(name, typed)
        if typed is not None:
            return await self._fetch(url, form=form, headers=headers)
        return await self._fetch(url, named_by=await self._fetch.network_zone(self.issuer), form=form, headers=headers)


def basic(client_id: str, client_secret: str) -> str:
    """Return the Authorization header of a client (RFC 6749 section 2.3.1: each part is URL-encoded first).

    >>> basic("a:b", "c")
    'Basic YSUzQWI6Yw=='
    """
    pair = f"{quote_plus(client_id)}:{quote_plus(client_secret)}"
    return f"Basic {b64encode(pair.encode()).decode()}"


_LONGEST: Final = 16 * 1024
# The lifetime of a token whose server does not state it; renewal starts `_EARLY` seconds, or a share of the lifetime,
# before the end.
_ASSUMED: Final = 300.0
_MOST_SECONDS: Final = 10 * 365 * 86_400.0
_EARLY: Final = 60.0
_EARLY_SHARE: Final = 0.1


class TokenRefused(FetchError):
    """The token endpoint refused; ``error`` is its error code, "" if it sent none that can be shown."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(f"the authorization server refuses a token (HTTP {status}{', ' if error else ''}{error})")
        self.error = error


class OAuthClient(Protocol):
    """The credentials of a client of an authorization server."""

    @property
    def client_id(self) -> str: ...
    @property
    def client_secret(self) -> str: ...


@dataclass(frozen=True)
class TokenResponse:
    """An access token, the time until which to use it, and its refresh token ("" for none)."""

    token: str = field(default="", repr=False)
    until: float = float("-inf")
    refresh: str = field(default="", repr=False)


def client_authentication(client: OAuthClient, metadata: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the form fields and headers that authenticate a client, by a method of the metadata, else with Basic."""
    if not client.client_secret:
        return {"client_id": client.client_id}, {}
    ways = metadata.get("token_endpoint_auth_methods_supported")
    if isinstance(ways, list) and "client_secret_basic" not in ways and "client_secret_post" in ways:
        return {"client_id": client.client_id, "client_secret": client.client_secret}, {}
    return {}, {"authorization": basic(client.client_id, client.client_secret)}


def parse_token_response(answer: FetchedDocument, now: float) -> TokenResponse:
    """Parse the response of a token endpoint. Raises `FetchError` (`TokenRefused`)."""
    said = answer.document()
    if answer.status != 200:
        # Only an error code is shown: other text may repeat the request.
        error = said.get("error")
        is_code = isinstance(error, str) and error.isascii() and error.replace("_", "").isalpha() and len(error) <= 40
        raise TokenRefused(answer.status, str(error) if is_code else "")
    token, lasting, refresh = said.get("access_token"), said.get("expires_in", _ASSUMED), said.get("refresh_token", "")
    if not _is_token(token):
        message = "the authorization server sends no usable access token"
        raise FetchError(message)
    if str(said.get("token_type", "")).lower() != "bearer":
        message = "the authorization server sends a token that is not a bearer token"
        raise FetchError(message)
    if isinstance(lasting, bool) or not isinstance(lasting, int | float) or not 0 < lasting <= _MOST_SECONDS:
        lasting = _ASSUMED
    until = now + lasting - min(_EARLY, lasting * _EARLY_SHARE)
    return TokenResponse(str(token), until, str(refresh) if _is_token(refresh) else "")


async def revoke_tokens(client: OAuthClient, had: TokenResponse, issuer_client: IssuerClient) -> bool:
    """Revoke tokens (RFC 7009); return False if the server has no revocation endpoint. Raises `FetchError`."""
    metadata = await issuer_client.metadata()
    if "revocation_endpoint" not in metadata:
        return False
    more, headers = client_authentication(client, metadata)
    for token in filter(None, (had.refresh, had.token)):
        answer = await issuer_client.ask("revocation_endpoint", None, {"token": token, **more}, headers)
        if answer.status != 200:
            message = f"the authorization server refuses to revoke a token (HTTP {answer.status})"
            raise FetchError(message)
    return True


def _is_token(token: object) -> bool:
    is_short = isinstance(token, str) and 0 < len(token) <= _LONGEST
    return is_short and isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token


def is_document(client_id: str) -> bool:
    """Return whether a client id is the URL of a metadata document (SEP-991: https, with a path)."""
    if not client_id.startswith("https://") or not client_id.isascii() or not client_id.isprintable():
        return False
    try:
        parts = urlsplit(client_id)
    except ValueError:
        return False
    segments = parts.path.split("/")
    plain = not parts.fragment and "@" not in parts.netloc and "#" not in client_id and len(client_id) <= 2_048
    return bool(parts.hostname) and plain and parts.path not in {"", "/"} and not {".", ".."} & set(segments)
