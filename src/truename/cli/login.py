"""`truename login`: log in at a server with the browser, and store the tokens."""

from typing import Annotated

import anyio
from cyclopts import Parameter

from truename.auth.network.fetch import FetchError
from truename.auth.network.web import web
from truename.auth.outbound.authorization import log_in
from truename.cli._audit import audited
from truename.cli._errors import EXIT_UPSTREAM
from truename.cli._logins import ForPrincipal, ServerKey, login_of, open_logins, principal_of
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, say, show, styled
from truename.cli._sources import configuration
from truename.config import Config
from truename.config.credentials import Login

__all__ = ["login"]

Port = Annotated[
    int, Parameter(name="--port", metavar="PORT", help="The local port for the redirect of the browser; 0: any.")
]
NewIssuer = Annotated[
    bool, Parameter(name="--new-issuer", negative="", help="Accept a different issuer than at the first login.")
]
Seconds = Annotated[
    float, Parameter(name="--timeout", metavar="SECONDS", help="The time to wait for the browser, in seconds.")
]


def login(
    server: ServerKey,
    source: Configuration | None = None,
    /,
    *,
    for_: ForPrincipal = "",
    port: Port = 0,
    timeout: Seconds = 300.0,
    new_issuer: NewIssuer = False,
    as_json: JsonOutput = False,
) -> int:
    """Log in at a server with the browser."""
    config = configuration(source)
    address, said = login_of(config, server)
    principal = principal_of(for_)

    def tell(url: str) -> None:
        if as_json:
            print_json({"url": url})
        else:
            say("Open this address in a browser on this machine, and log in there:")
            show(url)

    async def entered(said: Login, config: Config) -> None:
        with open_logins(config, address, said) as kept:
            async with web(config.settings.allow_addresses) as fetch:
                had = await log_in(kept, fetch, tell, port=port, seconds=timeout, may_move=new_issuer)
            with audited(config, "credential", "logged_in", [{"who": principal, "server": server}]):
                kept.keep(principal, *had)

    try:
        anyio.run(entered, said, config)
    except FetchError as error:
        if as_json:
            print_json({"server": server, "principal": principal, "logged_in": False, "problem": str(error)})
        else:
            say(styled("Not logged in: ", "bold"), f"{error}.")
        return EXIT_UPSTREAM
    if as_json:
        print_json({"server": server, "principal": principal, "logged_in": True})
    else:
        say(styled("Logged in", "bold"), f" at {server}, for {principal}. Running gateways know it at the next call.")
    return 0
