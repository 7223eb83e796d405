"""Sign-in put together from its settings: its pages, and the way in for whoever went through them."""

from __future__ import annotations

import os
import secrets
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Final

from truename.access.sign_in.clients import Clients
from truename.access.sign_in.desk import Desk
from truename.access.sign_in.issued import Issued, signing_key
from truename.access.sign_in.pages import CALLBACK, Pages
from truename.access.sign_in.provider import Provider
from truename.access.sign_in.recognizing import Recognizer
from truename.access.sign_in.sessions import SESSIONS, VAULT, Sessions
from truename.access.sign_in.signed_in import SignedIn
from truename.access.sign_in.visits import Visits
from truename.access.vault import Vault, vault_keys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from truename.access.events import OnAccess
    from truename.access.fetching import Fetch
    from truename.config import Config, SignIn

__all__ = ["sign_in"]

_KEY: Final = "vault.key"


@contextmanager
def sign_in(
    config: Config,
    settings: SignIn,
    *,
    issuer: str,
    resource: str,
    fetch: Fetch,
    clock: Callable[[], float],
    tell: OnAccess,
) -> Iterator[tuple[SignedIn, Pages]]:
    """Have sign-in while the block lasts. Raises `StoreError` and `ConfigError`."""
    directory = config.access_path()
    with ExitStack() as stack:
        vault = stack.enter_context(_vault(directory))
        sessions = Sessions(None if directory is None else directory / SESSIONS, clock)
        stack.callback(sessions.close)
        issued = Issued(signing_key(vault), issuer, clock)
        visits = Visits(clock)
        provider = Provider(settings, issuer + CALLBACK, fetch, clock)
        desk = Desk(
            settings,
            issuer=issuer,
            resource=resource,
            clients=Clients(
                issued,
                fetch,
                issuer=issuer,
                scopes=settings.scopes,
                schemes=settings.redirect_schemes,
                clock=clock,
            ),
            issued=issued,
            provider=provider,
            visits=visits,
            sessions=sessions,
            vault=vault,
            clock=clock,
            tell=tell,
        )
        pages = Pages(desk, config.settings.server_name, Recognizer(provider, settings.vouches, visits))
        yield SignedIn(issued, sessions, issuer=issuer, resource=resource), pages


def _vault(directory: Path | None) -> Vault:
    if directory is None:
        return Vault(None, [secrets.token_bytes(32)])
    return Vault(directory / VAULT, vault_keys(os.environ, directory / _KEY))
