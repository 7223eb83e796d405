"""`truename serve`: the gateway, over standard input and output or over HTTP."""

from dataclasses import replace
from typing import Annotated, Literal

from cyclopts import Parameter

from truename.cli.failure import UsageFault
from truename.cli.options import Aliases, Configuration, JsonOutput, ServerName, StyleName
from truename.cli.scene import configured, without_gateway
from truename.cli.sources import configuration
from truename.config import Config

__all__ = ["serve"]

Http = Annotated[
    str | None, Parameter(name="--http", help="Serve over HTTP at HOST:PORT, as 127.0.0.1:8750 (otherwise over stdio).")
]
Names = Annotated[
    Literal["universal", "detect", "canonical"] | None,
    Parameter(name="--names", help="Which names /mcp has: universal for all, by the client detected, or canonical."),
]
LedgerFile = Annotated[
    str | None, Parameter(name="--ledger", help="The file to remember names in, or `memory`; else one a configuration.")
]
Token = Annotated[
    str | None,
    Parameter(
        name="--token",
        env_var="TRUENAME_TOKEN",
        help="What HTTP clients must send as a bearer token; needed to listen on more than this machine.",
    ),
]
Client = Annotated[str | None, Parameter(name="--for", help="Over stdio: the client whose own dialect is spoken.")]
Only = Annotated[str | None, Parameter(name="--only", help="Over stdio: the one server that is shown.")]


def serve(
    source: Configuration | None = None,
    /,
    *,
    http: Http = None,
    style: StyleName = None,
    server_name: ServerName = None,
    names: Names = None,
    alias: Aliases = (),
    ledger: LedgerFile = None,
    token: Token = None,
    client: Client = None,
    only: Only = None,
    as_json: JsonOutput = False,
) -> int:
    """Run the gateway: one MCP server in front of all servers of a configuration, until Ctrl-C or end of input."""
    address = None if http is None else _address(http)
    if address is not None and (client is not None or only is not None):
        raise UsageFault(
            fact="--for and --only are for stdio",
            advice="Over HTTP use the paths /mcp/for/CLIENT and /mcp/only/SERVER.",
        )
    path = _path(client, only)
    config = configuration(source)
    settings = configured(config.settings, style=style, server_name=server_name, aliases=alias)
    settings = replace(
        settings, names=names or settings.names, ledger=ledger or settings.ledger, token=token or settings.token
    )
    return _run(replace(config, settings=settings), address, path, as_json=as_json)


def _run(config: Config, address: tuple[str, int] | None, path: str, *, as_json: bool) -> int:
    try:
        from truename.cli.serving import run  # noqa: PLC0415 - the gateway and its web server, for this command only
    except ModuleNotFoundError as error:
        raise without_gateway(error) from error
    return run(config, address, path, as_json=as_json)


def _path(client: str | None, only: str | None) -> str:
    if client is not None and only is not None:
        raise UsageFault(fact="--for and --only exclude each other", advice="Choose one of them.")
    if client is not None:
        return f"/mcp/for/{client}"
    return "/mcp" if only is None else f"/mcp/only/{only}"


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageFault(fact=f"{text!r} is not HOST:PORT", advice="Write it as in --http 127.0.0.1:8750.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)
