"""Register OAuth clients (RFC 7591), and read clients whose id is the URL of a metadata document.

Registrations are not stored: a client's id is its signed registration. So registrations cannot fill a store, and every
gateway that has the key knows the client. All clients are public: PKCE proves that a code belongs to a client, and
there are no client secrets to keep.
"""

from __future__ import annotations

import hashlib
import json
import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import anyio
from mcp.server.auth.provider import RegistrationError
from mcp.shared.auth import InvalidRedirectUriError, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl, ValidationError

from truename.auth.jwt import Invalid
from truename.auth.network.addresses import NetworkZone
from truename.auth.network.fetch import FetchError
from truename.auth.oauth import is_document
from truename.cache import TTLCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from truename.auth.authorization_server.tokens import TokenIssuer
    from truename.auth.network.fetch import Fetch, FetchedDocument

__all__ = [
    "RegisteredClient",
    "RegisteredClients",
    "digest_of_client",
    "printable_name",
    "redirect_error",
]

# A URL parser may map different texts to one URL, so the texts themselves are compared.
_LOOPBACK: Final = re.compile(r"(http://(?:127\.0\.0\.1|\[::1\]|localhost))(?::[0-9]{1,5})?((?:[/?].*)?)", re.DOTALL)
_AS_SENT: ContextVar[tuple[str, ...]] = ContextVar("redirect_uris_as_sent", default=())
_LONGEST: Final = 2_048
_MOST_URIS: Final = 10
_LONGEST_NAME: Final = 80
MAX_DOCUMENTS: Final = 256
_KEPT: Final = 300.0
_AT_ONCE: Final = 32
_AT_ONE_HOST: Final = 2
# The authentication method of public clients, which have no secret (RFC 7591).
_PUBLIC: Final = "none"


class RegisteredClient(OAuthClientInformationFull):
    """A client in the SDK's form, with the redirect and scope rules of this gateway."""

    offered: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        """Return the redirect URI of a request; `takes` has checked its text before the SDK parsed it.

        Raises `InvalidRedirectUriError`. The URI is required: without it, the request of one client could use the URI
        of another.
        """
        wanted = str(AnyUrl(str(redirect_uri))) if redirect_uri is not None else ""
        if redirect_uri is not None and any(_is_same(str(AnyUrl(own)), wanted) for own in self.registered):
            return redirect_uri
        message = "redirect_uri is not one that the client registered"
        raise InvalidRedirectUriError(message)

    def takes(self, redirect_uri: str) -> bool:
        """Return whether a redirect URI is registered, up to the port of a loopback address (RFC 8252)."""
        return any(_is_same(own, redirect_uri) for own in self.registered)

    def validate_scope(self, requested_scope: str | None) -> list[str]:
        """Return the requested scopes that exist; all scopes if none is requested (RFC 6749 section 3.3)."""
        asked = (requested_scope or "").split(" ")
        return [scope for scope in self.offered if scope in asked] or list(self.offered)


def _is_same(own: str, wanted: str) -> bool:
    here, there = _LOOPBACK.fullmatch(own), _LOOPBACK.fullmatch(wanted)
    return own == wanted or (here is not None and there is not None and here.groups() == there.groups())


def _spelled(uris: Sequence[str]) -> list[str]:
    """Return redirect URIs in the spelling that the SDK uses in its responses."""
    return [str(uri) for uri in OAuthClientMetadata.model_validate({"redirect_uris": uris}).redirect_uris or ()]


def _as_sent(body: bytes) -> tuple[str, ...]:
    """Return the redirect URIs of a registration as it spells them; none for a body that the SDK refuses itself."""
    try:
        uris = json.loads(body)["redirect_uris"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return tuple(uri for uri in uris if isinstance(uri, str)) if isinstance(uris, list) else ()


def redirect_error(uri: str, schemes: tuple[str, ...]) -> str | None:
    """Return why a redirect URI is not acceptable, or None if it is."""
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError:
        return "it is not a URL"
    if len(uri) > _LONGEST or not uri.isascii() or not uri.isprintable() or " " in uri or "\\" in uri or "#" in uri:
        return "it is not a URL that a redirect can go to"
    if "@" in parts.netloc or "*" in parts.netloc:
        return "its host contains '@' or '*'"
    is_here = _LOOPBACK.fullmatch(uri) is not None
    if is_here or parts.scheme in schemes or (parts.scheme == "https" and parts.hostname):
        return None
    return "it is neither https, nor http on a loopback address"


def printable_name(name: str | None) -> str:
    """Return the name that a client gave itself, without unprintable characters and cut to fit the page."""
    text = "".join(letter for letter in name or "" if letter.isprintable())
    return text[:_LONGEST_NAME].strip()


def digest_of_client(client_id: str) -> str:
    """Return a short name for a client: its id if that is a URL, else a digest of its id."""
    known = client_id if is_document(client_id) and len(client_id) <= 256 else ""
    return known or "client-" + hashlib.sha256(client_id.encode()).hexdigest()[:16]


class RegisteredClients:
    """The OAuth clients: registers them, and looks them up by id."""

    def __init__(
        self,
        issued: TokenIssuer,
        fetch: Fetch,
        *,
        issuer: str,
        scopes: tuple[str, ...],
        schemes: tuple[str, ...],
        clock: Callable[[], float],
    ) -> None:
        self._issued = issued
        self._fetch = fetch
        self._issuer = issuer
        self._scopes = scopes
        self._schemes = schemes
        self._clock = clock
        # An entry is a tuple, for it may say that there is no client.
        self._documents: TTLCache[str, tuple[RegisteredClient | None]] = TTLCache(MAX_DOCUMENTS, _KEPT, clock)
        self._limit = anyio.CapacityLimiter(_AT_ONCE)
        self._hosts: WeakValueDictionary[str, anyio.CapacityLimiter] = WeakValueDictionary()

    @contextmanager
    def registering(self, body: bytes) -> Iterator[None]:
        """Pass the redirect URIs of a request to `register` as the body spells them; the SDK does not."""
        before = _AS_SENT.set(_as_sent(body))
        try:
            yield
        finally:
            _AS_SENT.reset(before)

    def register(self, asked: OAuthClientInformationFull) -> None:
        """Assign an id to a client and make it a public client. Raises `RegistrationError`."""
        spelled = [str(uri) for uri in asked.redirect_uris or ()]
        uris = list(_AS_SENT.get() or spelled)
        if problem := self._wrong_uris(uris):
            raise RegistrationError("invalid_redirect_uri", problem)
        if _spelled(uris) != spelled:
            raise RegistrationError("invalid_redirect_uri", "redirect_uris are ambiguous for URL parsers")
        name = printable_name(asked.client_name)
        asked.token_endpoint_auth_method = _PUBLIC
        asked.client_secret = asked.client_secret_expires_at = None
        asked.client_name = name or None
        asked.scope = " ".join(self._scopes) or None
        for unused in ("client_uri", "logo_uri", "contacts", "tos_uri", "policy_uri", "jwks_uri", "jwks"):
            setattr(asked, unused, None)
        asked.software_id = asked.software_version = None
        asked.grant_types, asked.response_types = ["authorization_code", "refresh_token"], ["code"]
        asked.client_id = self._issued.sign("client+jwt", self._issuer, {"uris": uris, "name": name}, None)

    async def takes(self, client_id: object, redirect_uri: object) -> bool | None:
        """Return whether a client registered this redirect URI; None for an unknown client."""
        client = await self.get(client_id) if isinstance(client_id, str) else None
        return None if client is None else isinstance(redirect_uri, str) and client.takes(redirect_uri)

    async def get(self, client_id: str) -> RegisteredClient | None:
        """Return the client with this id, or None."""
        if is_document(client_id):
            if (known := self._documents.get(client_id)) is not None:
                return known[0]
            # Anybody may name a slow host: only the clients of that host wait for it.
            own = self._hosts.setdefault(urlsplit(client_id).hostname or "", anyio.CapacityLimiter(_AT_ONE_HOST))
            async with own, self._limit:
                if (known := self._documents.get(client_id)) is not None:
                    return known[0]
                try:
                    found = self._read(client_id, await self._fetch(client_id, named_by=NetworkZone.PUBLIC))
                except FetchError:
                    found = None
            self._documents.put(client_id, (found,), until=self._clock() + (_KEPT if found is not None else _KEPT / 10))
            return found
        try:
            said = self._issued.read("client+jwt", self._issuer, client_id)
        except Invalid:
            return None
        uris = list(said["uris"])
        # The registration response has the SDK's spelling, which the client may use too.
        return self._client(client_id, uris, str(said["name"]), also=_spelled(uris))

    def _client(self, client_id: str, uris: list[str], name: str, also: Sequence[str] = ()) -> RegisteredClient | None:
        # A setting that changed since the registration applies to old clients too.
        if self._wrong_uris(uris):
            return None
        try:
            return RegisteredClient(
                client_id=client_id,
                redirect_uris=[AnyUrl(uri) for uri in uris],
                client_name=name or None,
                token_endpoint_auth_method=_PUBLIC,
                offered=self._scopes,
                registered=(*uris, *also),
            )
        except ValidationError:
            return None

    def _wrong_uris(self, uris: list[str]) -> str | None:
        if not 0 < len(uris) <= _MOST_URIS or sum(map(len, uris)) > _LONGEST:
            return f"send 1 to {_MOST_URIS} redirect_uris"
        return next((problem for uri in uris if (problem := redirect_error(uri, self._schemes))), None)

    def _read(self, url: str, answer: FetchedDocument) -> RegisteredClient | None:
        if answer.status != 200 or len(answer.body) > 64 * 1024:
            return None
        said: Mapping[str, object] = answer.document()
        uris, name, method = said.get("redirect_uris"), said.get("client_name"), said.get("token_endpoint_auth_method")
        # A document that names another client id is not valid for this one, and a published secret is not a secret.
        if said.get("client_id") != url or "client_secret" in said or method not in (None, "none"):
            return None
        if not isinstance(uris, list) or not all(isinstance(uri, str) for uri in uris):
            return None
        return self._client(url, uris, printable_name(name) if isinstance(name, str) else "")
