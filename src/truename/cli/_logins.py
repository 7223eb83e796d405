"""Share what the login commands have in common: the server, its vault, and the principal."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.vault import open_vault
from truename.cli._errors import UsageError
from truename.config.credentials import Login
from truename.errors import excerpt
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.config import Config, ServerConfig

__all__ = ["ForWhom", "ServerKey", "arranged", "login_of", "login_servers", "of_whom"]

ServerKey = Annotated[str, Parameter(help="The server, by its key in the configuration.")]
ForWhom = Annotated[
    str, Parameter(name="--for", show_default=False, help="Who it is for: a principal, as the journal names them.")
]


def of_whom(said: str) -> str:
    """Return the principal that is meant: whoever is at this machine, unless somebody is named."""
    if len(said) > 1_024 or not said.isprintable():
        raise UsageError(fact=f"{excerpt(said)} can't be a principal", advice="Write it as `truename logins` does.")
    return said or LOCAL.key


def login_servers(config: Config) -> dict[str, tuple[ServerConfig, Login]]:
    """Return the servers at which people log in."""
    return {server.key: (server, server.auth) for server in config.enabled if isinstance(server.auth, Login)}


def login_of(config: Config, key: str) -> tuple[str, Login]:
    """Return a server's address, and how one logs in there. Raises `UsageError`."""
    found = login_servers(config)
    if key not in found:
        known = ", ".join(map(excerpt, found)) or "none"
        raise UsageError(
            fact=f"server {excerpt(key)} does not use per-user login",
            advice=f'Servers with auth type "login": {known}.',
        )
    server, said = found[key]
    return server.url or "", said


@contextmanager
def arranged(config: Config, address: str, said: Login) -> Iterator[LoginRegistrations]:
    """Open the logins of a server. Raises `UsageError` where nothing is kept, `StoreError`, `ConfigError`."""
    if config.state_location().path is None:
        raise UsageError(fact="logins have no file to be stored in", advice="Name a configuration file.")
    with open_vault(config) as vault:
        yield LoginRegistrations(said, address, vault)
