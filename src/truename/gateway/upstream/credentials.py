"""The gateway's credentials at its servers: its own, shared by all, or each person's, for nobody else's connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.auth.outbound.discovery import DiscoveredIssuerTokens, LoginRegistrations
from truename.auth.outbound.logins import Logins, UserTokens
from truename.auth.outbound.tokens import ClientTokens, ExchangedTokens, TokenExchanges
from truename.auth.vault import open_vault
from truename.cache import LRUCache
from truename.config import Config
from truename.config.credentials import Login, TokenExchange
from truename.gateway.upstream.showing import LastChallenges

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.auth.network.web import Web
    from truename.auth.outbound.tokens import ServerCredential, TokenCaller
    from truename.auth.vault import Vault
    from truename.config import ServerConfig
    from truename.config.credentials import Auth

__all__ = ["Credentials"]

# Entries of configurations that are no more, and people who went, go first.
_MOST: Final = 10_000
_MOST_SERVERS: Final = 100


class Credentials:
    """Credentials by server, client and person.

    ``config`` says where logins are kept, ``allowed`` are networks in which authorization servers may be in any case.
    """

    def __init__(self, allowed: Iterable[str] = (), config: Config | None = None) -> None:
        self.shown = LastChallenges()
        self._allowed = tuple(allowed)
        self._config = config
        self._web: Web | None = None
        self._vault: Vault | None = None
        self._known: LRUCache[tuple[str, Auth, str], ServerCredential] = LRUCache(_MOST)
        self._exchanges: LRUCache[tuple[str, TokenExchange], TokenExchanges] = LRUCache(_MOST_SERVERS)

    def of(self, server: ServerConfig, principal: str, caller: TokenCaller | None = None) -> ServerCredential | None:
        """Return what a server is shown on a connection of this person; None where its entry says nothing of that.

        ``caller`` is how they were let in, on a connection of their own. Raises `StoreError` and `ConfigError` for a
        vault that cannot be opened.
        """
        if server.auth is None or server.url is None:
            return None
        if isinstance(server.auth, TokenExchange) and caller is not None:
            return ExchangedTokens(self._exchanges_at(server.url, server.auth), caller)
        key = server.url, server.auth, principal if isinstance(server.auth, Login) else ""
        if (found := self._known.get(key)) is None:
            found = self._known[key] = self._made(server.auth, server.url, principal)
        return found

    def _made(self, auth: Auth, address: str, principal: str) -> ServerCredential:
        if not isinstance(auth, Login):
            return ClientTokens(auth.own if isinstance(auth, TokenExchange) else auth, address, self._network())
        self._vault = self._vault or open_vault(self._config or Config())
        if not auth.is_whole:
            return DiscoveredIssuerTokens(
                LoginRegistrations(auth, address, self._vault), principal, fetch=self._network()
            )
        return UserTokens(auth, address, principal, logins=Logins(auth, address, self._vault), fetch=self._network())

    def _exchanges_at(self, address: str, auth: TokenExchange) -> TokenExchanges:
        """Return what was exchanged for a server: it outlives connections, and is each caller's by their very token."""
        if (found := self._exchanges.get((address, auth))) is None:
            found = self._exchanges[address, auth] = TokenExchanges(auth, address, self._network())
        return found

    def _network(self) -> Web:
        from truename.auth.network.web import Web  # noqa: PLC0415 - imports httpx2, which only servers with an `auth` need

        self._web = self._web or Web(self._allowed)
        return self._web

    async def close(self) -> None:
        """Close the vault, and the connections to authorization servers."""
        if self._vault is not None:
            self._vault.close()
        if self._web is not None:
            await self._web.close()
