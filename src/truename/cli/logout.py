"""`truename logout`: revoke and delete the tokens for a server."""

import anyio

from truename.cli._audit import audited
from truename.cli._errors import EXIT_FINDINGS, EXIT_UPSTREAM
from truename.cli._logins import ForPrincipal, ServerKey, login_of, open_logins, principal_of, revoke_at_issuer
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, say, show, styled
from truename.cli._sources import configuration

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
    problem = None if had is None or whole is None else anyio.run(revoke_at_issuer, kept, whole, had, config)
    if as_json:
        print_json({"server": server, "principal": principal, "logged_out": had is not None, "problem": problem})
    elif had is None:
        show(f"{principal} is not logged in at {server}.")
    else:
        show(styled("Logged out", "bold"), f" at {server}: the tokens of {principal} were deleted here.")
        if problem is not None:
            say(f"They may still be valid at the server: {problem}.")
    return EXIT_FINDINGS if had is None else EXIT_UPSTREAM if problem is not None else 0
