"""What was arranged when people logged in at a server: which issuer it is, which client the gateway is there.

All of it is in the vault. The issuer that a server named is pinned for all at the first login: a server that names
another one later sends nobody there. Each registration is kept by issuer and redirect URI, and each login with the
client that it was made with: a refresh token is good for that client alone (RFC 6749 section 6).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from truename.access.fetching import Within
from truename.access.finding import Found
from truename.access.logins import Logins

if TYPE_CHECKING:
    from truename.access.fetching import Fetch
    from truename.access.granted import Granted
    from truename.access.vault import Vault
    from truename.config.credentials import Login

__all__ = ["Arrangements", "Registered"]

_ISSUER: Final = "truename:issuer"
_CLIENT: Final = "truename:client"
_WAY: Final = "truename:way"


@dataclass(frozen=True, kw_only=True)
class Registered:
    """A client that an authorization server gave the gateway, until then (seconds since 1970)."""

    client_id: str
    client_secret: str = field(default="", repr=False)
    until: float = math.inf


class Arrangements:
    """What was arranged for one server's logins, as its entry ``said`` they are. All methods raise `StoreError`."""

    def __init__(self, said: Login, address: str, vault: Vault) -> None:
        self.said = said
        self.address = address
        self._vault = vault
        # An entry that says something else now is another arrangement.
        self._way = json.dumps([_WAY, said.issuer, said.client_id, address])
        self._pin = json.dumps([_ISSUER, address])

    def within(self, fetch: Fetch) -> Fetch:
        """Return the network for its issuer: one that the server named leads nowhere nearer than the server is."""
        return fetch if self.said.issuer else Within(fetch, self.address)

    # The issuer

    def pinned(self) -> Found | None:
        """Return what the server named at the first login; its one issuer counts since."""
        kept = self._get(self._pin, "")
        if kept is None:
            return None
        return Found(issuers=(kept["issuer"],), resource=kept["resource"], scopes=tuple(kept["scopes"]))

    def _pin_to(self, whole: Login) -> None:
        kept = {"issuer": whole.issuer, "resource": whole.resource_of(self.address), "scopes": whole.scopes}
        self._put(self._pin, "", kept)

    # The client

    def client(self, issuer: str, redirect: str) -> Registered | None:
        """Return the gateway's registration at an issuer, for answers that come back there."""
        kept = self._get(_at(issuer), redirect)
        if kept is None:
            return None
        until = math.inf if kept["until"] is None else kept["until"]
        return Registered(client_id=kept["client_id"], client_secret=kept["client_secret"], until=until)

    def redirects(self, issuer: str) -> list[str]:
        """Return for which redirect URIs the gateway is registered there."""
        return [redirect for place, redirect, _ in self._vault.entries() if place == _at(issuer)]

    def keep_client(self, issuer: str, redirect: str, one: Registered) -> None:
        """Keep a registration in the place of the one before."""
        until = None if one.until == math.inf else one.until
        kept = {"client_id": one.client_id, "client_secret": one.client_secret, "until": until}
        self._put(_at(issuer), redirect, kept)

    def forget_client(self, whole: Login) -> None:
        """Forget a registration that is not known there any more."""
        for redirect in self.redirects(whole.issuer):
            if self._is(whole, redirect):
                self._vault.remove(_at(whole.issuer), redirect)

    def _is(self, whole: Login, redirect: str) -> bool:
        known = self.client(whole.issuer, redirect)
        return known is not None and known.client_id == whole.client_id

    # Each person's

    def of(self, principal: str) -> Login | None:
        """Return how somebody logged in, with all that was found out then; None for who has to log in first."""
        if self.said.is_whole:
            return self.said
        kept = self._get(self._way, principal)
        if kept is None:
            return None
        if not self.said.issuer:
            pinned = self.pinned()
            # Whoever logged in where nobody is sent any more does so anew.
            if pinned is None or pinned.issuers != (kept["issuer"],):
                return None
        return replace(
            self.said,
            issuer=kept["issuer"],
            client_id=kept["client_id"],
            client_secret=kept["client_secret"],
            resource=kept["resource"],
            scopes=tuple(kept["scopes"]),
        )

    def logins(self, whole: Login) -> Logins:
        """Return the logins that were made so."""
        return Logins(whole, self.address, self._vault)

    def keep(self, principal: str, whole: Login, had: Granted) -> None:
        """Keep somebody's login: their tokens, and what they are good with."""
        self.logins(whole).keep(principal, had)
        if self.said.is_whole:
            return
        if not self.said.issuer:
            self._pin_to(whole)
        kept = {name: getattr(whole, name) for name in ("issuer", "client_id", "client_secret", "scopes")}
        self._put(self._way, principal, {**kept, "resource": whole.resource_of(self.address)})

    def forget(self, principal: str) -> bool:
        """Forget somebody's login; tell whether there was one."""
        whole = self.of(principal)
        was_known = whole is not None and self.logins(whole).forget(principal)
        if not self.said.is_whole:
            self._vault.remove(self._way, principal)
        return was_known

    def principals(self) -> list[tuple[str, str, int]]:
        """Return who is logged in, at which issuer, and since when their tokens are these."""
        if self.said.is_whole:
            return [(who, self.said.issuer, at) for who, at in self.logins(self.said).principals()]
        known = [who for place, who, _ in self._vault.entries() if place == self._way]
        ways = [(who, whole) for who in known if (whole := self.of(who)) is not None]
        since = {who: dict(self.logins(whole).principals()) for who, whole in ways}
        return [(who, whole.issuer, since[who][who]) for who, whole in ways if who in since[who]]

    def _get(self, place: str, name: str) -> dict[str, Any] | None:
        raw = self._vault.get(place, name)
        return None if raw is None else json.loads(raw)

    def _put(self, place: str, name: str, kept: dict[str, Any]) -> None:
        self._vault.put(place, name, json.dumps({"schema": 1, **kept}).encode())


def _at(issuer: str) -> str:
    return json.dumps([_CLIENT, issuer])
