"""`truename logins`: list the stored logins."""

from truename.cli._logins import login_servers, open_logins
from truename.cli._options import Configuration, JsonOutput
from truename.cli._rendering import print_json, print_table, show, utc_time
from truename.cli._sources import configuration

__all__ = ["logins"]


def logins(source: Configuration | None = None, /, *, as_json: JsonOutput = False) -> int:
    """List the principals that are logged in, by server."""
    config = configuration(source)
    found: list[dict[str, str]] = []
    for key, (server, said) in login_servers(config).items():
        with open_logins(config, server.url or "", said) as known:
            found += [
                {"server": key, "principal": principal, "issuer": issuer, "since": utc_time(at)}
                for principal, issuer, at in known.principals()
            ]
    if as_json:
        print_json({"logins": found})
    elif not found:
        show("Nobody is logged in. `truename login SERVER` logs you in.")
    else:
        print_table(["server", "principal", "issuer", "renewed"], [list(one.values()) for one in found])
    return 0
