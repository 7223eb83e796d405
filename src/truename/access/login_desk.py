"""The desk of logins: who is to log in at which server, by a page of the gateway that only they are sent to.

Somebody could send their own link to another, who would log in with it: the other's tokens would be theirs then. So
the one at the browser has to be the one who was asked, and the identity provider of sign-in says who that is. Without
sign-in there are links on a loopback address alone, where nobody else can follow one.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.access.arrangements import Arrangements
from truename.access.authorizing import LoginRequest, login_request
from truename.access.events import AccessEvent, ignore_access
from truename.access.fetching import FetchFault, Web
from truename.access.logins import login_vault
from truename.access.registering import way_back
from truename.access.sign_in.held import Held, Shared
from truename.access.site import site_of
from truename.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Mapping
    from pathlib import Path

    from truename.access.events import OnAccess
    from truename.access.granted import Granted
    from truename.access.sign_in.recognizing import Recognizer
    from truename.access.vault import Vault
    from truename.config.credentials import Login
    from truename.policy.principal import Principal

__all__ = ["CALLBACK", "ROOT", "Attempt", "LoginDesk"]

ROOT: Final = "/login/"
CALLBACK: Final = "/login/callback"
_SECONDS: Final = 600.0
_LOOK_EVERY: Final = 0.5
_MOST_BEGUN: Final = 20
_ANOTHERS: Final = "the answer is another authorization server's"
_TOO_OFTEN: Final = "this login was begun too often; call again in ten minutes"
_GONE: Final = "this login is not known: it took too long, was finished before, or was begun in another browser"


@dataclass(eq=False, kw_only=True)
class Attempt:
    """Somebody is to log in at a server. Who has the ``link`` gets to its page; ``id`` may be known to anybody."""

    server: str
    principal: Principal
    kept: Arrangements
    before: Granted | None
    link: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    id: str = field(default_factory=lambda: secrets.token_hex(16))
    over: anyio.Event = field(default_factory=anyio.Event)
    begun: int = 0
    # Sessions whose user is being asked.
    questions: dict[Hashable, anyio.Event] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _Visit:
    """Somebody is at the authorization server; ``browser`` is a digest of their browser's cookie."""

    attempt: Attempt
    request: LoginRequest
    browser: str


class LoginDesk:
    """Knows who is asked to log in, and sends them there and back. ``here`` is the gateway's address.

    ``recognizer`` tells who sits at a browser, None where there is no sign-in; ``is_near`` says that the gateway can be
    reached from this machine alone; ``tell`` is told of each login that was made here.
    """

    def __init__(
        self,
        here: str,
        directory: Path,
        *,
        recognizer: Recognizer | None = None,
        is_near: bool = False,
        allowed: Iterable[str] = (),
        clock: Callable[[], float] = time.time,
        tell: OnAccess = ignore_access,
    ) -> None:
        self.here = here
        self._tell = tell
        self.recognizer = recognizer
        self._is_near = is_near
        self._directory = directory
        self._allowed = tuple(allowed)
        self._clock = clock
        self._web: Web | None = None
        self._vault: Vault | None = None
        self._open: Shared[Attempt] = Shared(_SECONDS, clock)
        self._links: Held[Attempt] = Held(_SECONDS, clock)
        self._visits: Held[_Visit] = Held(_SECONDS, clock)

    def recognizes(self, principal: Principal) -> bool:
        """Tell whether it can be found out that this is who sits at a browser."""
        return self.recognizer is not None and principal.issuer == self.recognizer.vouches

    def attempt(self, server: str, said: Login, address: str, principal: Principal) -> Attempt | None:
        """Return the login that somebody is to make, the same one while it is open; None where no page may be shown.

        Raises `StoreError` and `ConfigError`.
        """
        if not self._is_near and not self.recognizes(principal):
            return None
        if (known := self.open(said, address, principal)) is not None:
            return known
        self._vault = self._vault or login_vault(self._directory)
        kept = Arrangements(said, address, self._vault)
        found = Attempt(server=server, principal=principal, kept=kept, before=_tokens(kept, principal))
        self._open.put((address, said, principal.key), found, whose=principal.key)
        self._links.put(found.link, found, whose=principal.key)
        return found

    def open(self, said: Login, address: str, principal: Principal) -> Attempt | None:
        """Return the login that somebody was asked to make, if it is not over."""
        found = self._open.look((address, said, principal.key))
        return None if found is None or found.over.is_set() else found

    def url(self, attempt: Attempt) -> str:
        """Return the address of its page, which is for nobody else."""
        return f"{self.here}{ROOT}{attempt.link}"

    def at(self, link: str) -> Attempt | None:
        """Return the login of a link."""
        found = self._links.look(link)
        return None if found is None or found.over.is_set() else found

    async def wait(self, attempt: Attempt, seconds: float) -> bool:
        """Wait until somebody logged in, here or by the command line; tell whether they did."""
        with anyio.move_on_after(seconds):
            while not attempt.over.is_set() and not self._is_made(attempt):
                with anyio.move_on_after(_LOOK_EVERY):
                    await attempt.over.wait()
        return attempt.over.is_set()

    async def begin(self, attempt: Attempt, browser: str) -> str:
        """Return where the browser with this cookie is sent. Raises `FetchFault` and `StoreError`."""
        attempt.begun += 1
        if attempt.begun > _MOST_BEGUN:
            # Each time the authorization server is asked several things.
            raise FetchFault(_TOO_OFTEN)
        self._web = self._web or Web(self._allowed)
        site = await site_of(attempt.kept, self._web, clock=self._clock)
        back = way_back(attempt.kept.said, site.said.issuer, self.here + CALLBACK)
        request = await login_request(site, back)
        visit = _Visit(attempt=attempt, request=request, browser=_digest(browser))
        self._visits.put(request.state, visit, whose=attempt.principal.key)
        return request.url

    async def finish(self, answer: Mapping[str, str], browser: str, path: str) -> Attempt:
        """Keep the tokens of who came back there with this answer. Raises `FetchFault` and `StoreError`."""
        visit = self._visits.look(state := answer.get("state", ""))
        if visit is None or not hmac.compare_digest(visit.browser, _digest(browser)):
            raise FetchFault(_GONE)
        if visit.request.redirect != self.here + path:
            raise FetchFault(_ANOTHERS)
        self._visits.take(state)
        attempt, request = visit.attempt, visit.request
        tokens = await request.tokens(answer)
        # Two may have begun before the first of them pinned where to log in.
        pinned = None if attempt.kept.said.issuer else attempt.kept.pinned()
        if pinned is not None and pinned.issuers != (request.said.issuer,):
            raise FetchFault(_GONE)
        attempt.kept.keep(attempt.principal.key, request.said, tokens)
        self._tell(AccessEvent(what="logged_in", principal=attempt.principal.key, server=attempt.server))
        self._links.take(attempt.link)
        attempt.over.set()
        return attempt

    def _is_made(self, attempt: Attempt) -> bool:
        try:
            found = _tokens(attempt.kept, attempt.principal)
        except StoreError:
            return False
        if found is not None and found != attempt.before:
            attempt.over.set()
        return attempt.over.is_set()

    async def close(self) -> None:
        """Close the vault, and the connections to authorization servers."""
        if self._vault is not None:
            self._vault.close()
        if self._web is not None:
            await self._web.close()


def _tokens(kept: Arrangements, principal: Principal) -> Any:
    whole = kept.of(principal.key)
    return None if whole is None else kept.logins(whole).of(principal.key)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
