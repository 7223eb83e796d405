"""What a token endpoint gives, and how a client proves itself there (RFC 6749 sections 2.3 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from truename.access.fetching import FetchFault
from truename.access.introspection import basic

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.access.fetching import Fetched
    from truename.access.keys import Speaker

__all__ = ["Client", "Granted", "TokenRefused", "granted", "proven", "revoked"]

_LONGEST: Final = 16 * 1024
# For how long a token is good whose server does not say it, and when a new one is asked for.
_ASSUMED: Final = 300.0
_MOST_SECONDS: Final = 10 * 365 * 86_400.0
_EARLY: Final = 60.0
_EARLY_SHARE: Final = 0.1


class TokenRefused(FetchFault):
    """The token endpoint said no; ``error`` is its code, "" where it gave none that can be shown."""

    def __init__(self, status: int, error: str) -> None:
        super().__init__(f"the authorization server gives no token (HTTP {status}{', ' if error else ''}{error})")
        self.error = error


class Client(Protocol):
    """A client of an authorization server."""

    @property
    def client_id(self) -> str: ...  # noqa: D102 - the name says it
    @property
    def client_secret(self) -> str: ...  # noqa: D102 - the name says it


@dataclass(frozen=True)
class Granted:
    """An access token, until when it is shown, and what it is renewed with, "" for nothing."""

    token: str = field(default="", repr=False)
    until: float = float("-inf")
    refresh: str = field(default="", repr=False)


def proven(client: Client, metadata: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return what a client adds to a form and to the headers, in the way that the metadata has, else as Basic."""
    if not client.client_secret:
        return {"client_id": client.client_id}, {}
    ways = metadata.get("token_endpoint_auth_methods_supported")
    if isinstance(ways, list) and "client_secret_basic" not in ways and "client_secret_post" in ways:
        return {"client_id": client.client_id, "client_secret": client.client_secret}, {}
    return {}, {"authorization": basic(client.client_id, client.client_secret)}


def granted(answer: Fetched, now: float) -> Granted:
    """Return what a token endpoint gave. Raises `FetchFault` (`TokenRefused`)."""
    said = answer.document()
    if answer.status != 200:
        raise TokenRefused(answer.status, _error_in(said))
    token, lasting, refresh = said.get("access_token"), said.get("expires_in", _ASSUMED), said.get("refresh_token", "")
    if not _is_token(token):
        message = "the authorization server gives what is no access token"
        raise FetchFault(message)
    if str(said.get("token_type", "")).lower() != "bearer":
        message = "the authorization server gives a token that is no bearer token"
        raise FetchFault(message)
    if isinstance(lasting, bool) or not isinstance(lasting, int | float) or not 0 < lasting <= _MOST_SECONDS:
        lasting = _ASSUMED
    until = now + lasting - min(_EARLY, lasting * _EARLY_SHARE)
    return Granted(str(token), until, str(refresh) if _is_token(refresh) else "")


async def revoked(client: Client, had: Granted, speaker: Speaker) -> bool:
    """Have the authorization server revoke tokens (RFC 7009); False if it knows no way to. Raises `FetchFault`."""
    metadata = await speaker.metadata()
    if "revocation_endpoint" not in metadata:
        return False
    more, headers = proven(client, metadata)
    for token in filter(None, (had.refresh, had.token)):
        answer = await speaker.ask("revocation_endpoint", None, {"token": token, **more}, headers)
        if answer.status != 200:
            message = f"the authorization server does not revoke it (HTTP {answer.status})"
            raise FetchFault(message)
    return True


def _is_token(token: object) -> bool:
    is_short = isinstance(token, str) and 0 < len(token) <= _LONGEST
    return is_short and isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token


def _error_in(said: Mapping[str, Any]) -> str:
    """Return the error's code, if it is one: what else the server says may repeat what it was sent."""
    error = said.get("error")
    is_code = isinstance(error, str) and error.isascii() and error.replace("_", "").isalpha() and len(error) <= 40
    return str(error) if is_code else ""
