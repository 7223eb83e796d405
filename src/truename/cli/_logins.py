"""Options and lookups that the login commands share: the server, its stored logins, the principal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truename.auth.network.fetch import FetchError
from truename.auth.network.web import web
from truename.auth.outbound.authorization import log_out
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.vault import open_vault
from truename.cli import _completion
from truename.cli._errors import UsageError
from truename.config.credentials import Login
from truename.errors import excerpt
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.auth.oauth import TokenResponse
    from truename.config import Config, ServerConfig

__all__ = ["ForPrincipal", "ServerKey", "login_of", "login_servers", "open_logins", "principal_of", "revoke_at_issuer"]

ServerKey = Annotated[
    str, Parameter(completer=_completion.servers, help="The server, by its key in the configuration.")
]
ForPrincipal = Annotated[
    str,
    Parameter(
        name="--for",
        metavar="PRINCIPAL",
        show_default=False,
        help="The principal that the login is for, as in the audit log; else you.",
    ),
]


def principal_of(text: str) -> str:
    """Return the principal: the user of this machine unless one is given. Raises `UsageError`."""
    if len(text) > 1_024 or not text.isprintable():
        raise UsageError(fact=f"{excerpt(text)} is not a principal", advice="`truename logins` shows how to write one.")
    return text or LOCAL.key


def login_servers(config: Config) -> dict[str, tuple[ServerConfig, Login]]:
    """Return the enabled servers with per-user login."""
    return {server.key: (server, server.auth) for server in config.enabled if isinstance(server.auth, Login)}


def login_of(config: Config, key: str) -> tuple[str, Login]:
    """Return a server's URL and its login settings. Raises `UsageError`."""
    found = login_servers(config)
    if key not in found:
        known = ", ".join(map(excerpt, found)) or "none"
        raise UsageError(
            fact=f"server {excerpt(key)} does not use per-user login",
            advice=f'Servers with auth type "login": {known}.',
        )
    server, settings = found[key]
    return server.url or "", settings


@contextmanager
def open_logins(config: Config, address: str, settings: Login) -> Iterator[LoginRegistrations]:
    """Open the stored logins of a server. Raises `UsageError` if there is no store, `StoreError`, `ConfigError`."""
    if config.state_location().is_memory:
        raise UsageError(fact="logins have no file to be stored in", advice="Name a configuration file.")
    with open_vault(config) as vault:
        yield LoginRegistrations(settings, address, vault)


async def revoke_at_issuer(kept: LoginRegistrations, said: Login, had: TokenResponse, config: Config) -> str | None:
    """Revoke the tokens of a login at its issuer; return why that failed, None on success."""
    async with web(config.settings.allow_addresses) as fetch:
        try:
            is_known = await log_out(said, had, kept.within(fetch))
        except FetchError as error:
            return str(error)
    return None if is_known else "the authorization server does not support revocation"
