"""`truename logout`: revoke and delete the tokens for a server."""

import anyio

from truename.auth.network.fetch import FetchError
from truename.auth.network.web import web
from truename.auth.oauth import TokenResponse
from truename.auth.outbound.authorization import log_out
from truename.auth.outbound.discovery import LoginRegistrations
from truename.cli._audit import audited
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM
from truename.cli._logins import ForPrincipal, ServerKey, login_of, open_logins, principal_of
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, say, show, styled
from truename.cli._sources import configuration
from truename.config import Config
from truename.config.credentials import Login

__all__ = ["logout"]


def logout(
    server: ServerKey,
    source: Configuration | None = None,
    /,
    *,
    for_: ForPrincipal = "",
    as_json: JsonOutput = False,
) -> int:
    """Log out at a server: delete the tokens here, and revoke them at the issuer."""
    config = configuration(source)
    address, said = login_of(config, server)
    principal = principal_of(for_)
    with open_logins(config, address, said) as kept:
        whole = kept.of(principal)
        had = None if whole is None else kept.logins(whole).of(principal)
        # Deleted first, so that the tokens are not used again even if revoking fails.
        told = [] if had is None else [{"who": principal, "server": server}]
        with audited(config, "credential", "logged_out", told):
            kept.forget(principal)
    problem = None if had is None or whole is None else anyio.run(_revoked, kept, whole, had, config)
    if as_json:
        print_json({"server": server, "principal": principal, "logged_out": had is not None, "problem": problem})
    elif had is None:
        show(f"{principal} is not logged in at {server}.")
    else:
        show(styled("Logged out", "bold"), f" at {server}: the tokens of {principal} were deleted here.")
        if problem is not None:
            say(f"They may still be valid at the server: {problem}.")
    return EXIT_FINDINGS if had is None else EXIT_UPSTREAM if problem is not None else 0


async def _revoked(kept: LoginRegistrations, said: Login, had: TokenResponse, config: Config) -> str | None:
    """Revoke the tokens; return why that failed, None on success."""
    async with web(config.settings.allow_addresses) as fetch:
        try:
            is_known = await log_out(said, had, kept.within(fetch))
        except FetchError as error:
            return str(error)
    return None if is_known else "the authorization server does not support revocation"
