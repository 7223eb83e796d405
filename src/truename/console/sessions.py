"""Know a browser again: a session is a sealed cookie, which any gateway of the state opens.

A browser sends the cookies of a host to all its ports, so their names tell the gateways of a host apart: those of one
state have one name, and those of another state have another one.

The session of somebody who logged in with an access token has that token inside, so it ends with the token. Nothing is
stored: to log out is to delete the cookie.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from truename.auth.inbound.authentication import Authenticated
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from truename.auth.inbound.authentication import Authenticators
    from truename.auth.sealed_values import SealedValues

__all__ = ["BrowserSession", "BrowserSessions", "SessionTooLargeError", "cookie_name"]

_PURPOSE: Final = "console"
_COOKIE: Final = "truename-console"
_LETTERS: Final = 8
_ROOM: Final = 4_096
_TOO_LARGE: Final = (
    "You are known, but your session does not fit into a cookie: your access token is too long, or you have "
    "too many groups. Log in with a token of `truename token add`."
)


def cookie_name(values: SealedValues, what: str, *, is_secure: bool) -> str:
    """Return the name of a cookie of the console. ``values`` has to be open; ``is_secure``: browsers come over TLS."""
    name = f"{what}-{values.mark('cookie', what)[:_LETTERS]}"
    # With this prefix a browser takes the cookie from this host over TLS only, for all paths.
    return f"__Host-{name}" if is_secure else name


class SessionTooLargeError(Exception):
    """A session that a browser would not keep; the text says to the person why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class BrowserSession:
    """A browser whose person is known. ``secret`` is in its cookie only; forms prove with it that they are ours."""

    principal: Principal
    secret: str = field(repr=False)

    @property
    def csrf(self) -> str:
        """The token that forms of this session carry."""
        return hmac.digest(self.secret.encode(), b"console form", "sha256").hex()

    def is_own_form(self, token: str) -> bool:
        """Return whether a form carries the token of this session."""
        return hmac.compare_digest(token.encode(), self.csrf.encode())


class BrowserSessions:
    """The sessions of the console. ``values`` has to be open; ``is_secure`` is whether browsers come over TLS."""

    def __init__(self, values: SealedValues, authenticators: Authenticators, *, is_secure: bool) -> None:
        self._values = values
        self._authenticators = authenticators
        self._is_secure = is_secure
        self.cookie = cookie_name(values, _COOKIE, is_secure=is_secure)

    async def find(self, request: Request) -> BrowserSession | None:
        """Return the session of a request; None if its person is unknown, or is let in no more."""
        value = self._values.opened(_PURPOSE, [], request.cookies.get(self.cookie, ""))
        if value is None:
            return None
        content = value.content
        if (token := content.get("token")) is not None:
            admission = await self._authenticators.admit([f"Bearer {token}"])
            principal = admission.principal if isinstance(admission, Authenticated) else None
        else:
            principal = _principal(content)
        if principal is None or (not content.get("token") and self._is_stale(principal, content)):
            return None
        return BrowserSession(principal=principal, secret=content["secret"])

    def _is_stale(self, principal: Principal, content: dict[str, object]) -> bool:
        # Whoever needed no credentials has to show some as soon as there are any.
        was_open, is_open = content.get("open") is True, self._authenticators.are_open
        return was_open is not is_open or (not is_open and self._authenticators.is_barred(principal))

    def begin_with_token(self, response: Response, token: str, seconds: float) -> None:
        """Begin the session of somebody who showed an access token. Raises `SessionTooLargeError` if it is too long."""
        self._begin(response, {"token": token}, seconds)

    def begin(self, response: Response, principal: Principal, seconds: float) -> BrowserSession:
        """Begin the session of somebody whom the identity provider, or a gateway without credentials, knows.

        Raises `SessionTooLargeError` for somebody with too many groups.
        """
        content = {
            "name": principal.name,
            "issuer": principal.issuer,
            "groups": sorted(principal.groups),
            "scopes": sorted(principal.scopes),
            "open": self._authenticators.are_open,
        }
        return BrowserSession(principal=principal, secret=self._begin(response, content, seconds))

    def _begin(self, response: Response, content: dict[str, object], seconds: float) -> str:
        secret = secrets.token_urlsafe(32)
        sealed = self._values.seal(_PURPOSE, [], {**content, "secret": secret}, lasts=seconds)
        if len(self.cookie) + len(sealed) > _ROOM:
            # A browser would drop it without a word, and ask to log in again.
            raise SessionTooLargeError(_TOO_LARGE)
        response.set_cookie(
            self.cookie,
            sealed,
            max_age=int(seconds),
            path="/",
            httponly=True,
            secure=self._is_secure,
            # A page elsewhere may link here, but no request that it makes has the cookie, except by a click on a link.
            samesite="lax",
        )
        return secret

    def end(self, response: Response) -> None:
        """Log a browser out."""
        response.delete_cookie(self.cookie, path="/", httponly=True, secure=self._is_secure, samesite="lax")


def _principal(content: dict[str, object]) -> Principal:
    groups, scopes = content["groups"], content["scopes"]
    assert isinstance(groups, list)  # noqa: S101 - `begin` sealed it
    assert isinstance(scopes, list)  # noqa: S101 - as above
    name, issuer = str(content["name"]), str(content["issuer"])
    return Principal(name=name, issuer=issuer, groups=frozenset(groups), scopes=frozenset(scopes))
