"""`truename serve`: the gateway, over standard input and output or over HTTP."""

import os
from dataclasses import replace
from difflib import get_close_matches
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from cyclopts import Parameter

from truename import dialects
from truename.catalog import identity_changes
from truename.cli._errors import UsageError
from truename.cli._options import Configuration, JsonOutput, LogFormat, LogLevel, NamingOptions
from truename.cli._sources import configuration, reread
from truename.cli._workspace import adopted, check_option, configured, mismatch, moved, wanted, without_gateway
from truename.config import Config
from truename.config.addresses import path_of
from truename.config.consent import ConsentStore
from truename.config.watch import Reread
from truename.errors import ConfigError, LedgerError, excerpt
from truename.files.private import make_private
from truename.ledger import open_ledger

__all__ = ["serve"]

Http = Annotated[
    str | None, Parameter(name="--http", help="Serve over HTTP at HOST:PORT, as 127.0.0.1:8750 (otherwise over stdio).")
]
Names = Annotated[
    Literal["universal", "detect", "canonical"] | None,
    Parameter(name="--names", help="Names at /mcp: universal, those of the detected client, or canonical."),
]
Token = Annotated[
    str | None,
    Parameter(
        name="--token",
        env_var="TRUENAME_TOKEN",
        help="What HTTP clients must send as a bearer token; needed to listen on more than this machine.",
    ),
]
Client = Annotated[str | None, Parameter(name="--for", help="Over stdio: the client to present names for.")]
Only = Annotated[str | None, Parameter(name="--only", help="Over stdio: the one server that is started and shown.")]
Servers = Annotated[
    tuple[str, ...],
    Parameter(
        name="--server",
        show_default=False,
        help="Over stdio: a server that is started and shown, under the names that all have. May be repeated.",
    ),
]
Context = Annotated[str | None, Parameter(name="--context", help="Over stdio: the context that the client runs in.")]
Format = Annotated[
    LogFormat,
    Parameter(name="--log-format", help="How standard error tells what happens: one line or JSON object each."),
]
Level = Annotated[
    LogLevel, Parameter(name="--log-level", help="From which level on the gateway's own log messages are shown.")
]
Search = Annotated[
    bool,
    Parameter(name="--search", negative=(), help="Over stdio: list few tools, and three to search the others with."),
]
Verbose = Annotated[
    bool,
    Parameter(
        name="--verbose",
        negative=(),
        show_default=False,
        help="Show all names at the start, and what every client would make of the tools without Truename.",
    ),
]
_AS_IT_IS = NamingOptions()
# One server alone, or several.
Asked: TypeAlias = tuple[str | None, tuple[str, ...]]


def serve(
    source: Configuration | None = None,
    /,
    *,
    http: Http = None,
    names: Names = None,
    making: NamingOptions = _AS_IT_IS,
    token: Token = None,
    client: Client = None,
    only: Only = None,
    server: Servers = (),
    context: Context = None,
    search: Search = False,
    log_format: Format = "text",
    log_level: Level = "warning",
    as_json: JsonOutput = False,
    verbose: Verbose = False,
) -> int:
    """Run the gateway: one MCP server in front of all servers of a configuration, until Ctrl-C or end of input."""
    address = None if http is None else _address(http)
    if address is not None and (client, only, server, context, search) != (None, None, (), None, False):
        raise UsageError(
            fact="--for, --only, --server, --context and --search are for stdio",
            advice="Over HTTP use the paths /mcp/for/CLIENT, /mcp/in/CONTEXT, /mcp/search, /mcp/only/SERVER and "
            "/mcp/servers/SERVER,SERVER.",
        )
    if only is not None and server:
        raise UsageError(fact="--only and --server exclude each other", advice="Use --server alone for several.")
    if token is not None:
        check_option("--token", "token", token)

    def read(before: Config | None) -> tuple[Config, str]:
        config = configuration(source) if before is None else _again(before, source)
        path = _path(config, client, (only, server), context, search=search)
        settings = configured(config.settings, making)
        settings = replace(
            settings,
            names=names or settings.names,
            state=making.state or settings.state,
            token=token or settings.token,
        )
        config = replace(config, settings=settings)
        _agree(config, source, making)
        return config, path

    config, path = read(None)
    logs = log_format, log_level
    watched = () if source or config.path is None else (ConsentStore.here().file(config.path),)
    reading = Reread(lambda: read(config)[0], watched)
    return _run(config, address, path, (only, server), reading, logs=logs, as_json=as_json, verbose=verbose)


def _again(before: Config, source: str | None) -> Config:
    """Read a configuration that was read before: from the same file, if it is one still."""
    if before.path is None or not before.path.is_file():
        problem = "it is not there, or is no file"
        raise ConfigError(file=str(before.path), key="", problem=problem, remedy="Put it back, or start serve anew.")
    return reread(before.path, source)


def _agree(config: Config, source: str | None, making: NamingOptions) -> None:
    """See, before anything starts, that the ledger can be used and has names of this make, for these ids.

    Raises `UsageError`, `LedgerError`.
    """
    location = config.state_location()
    path = location.path
    if path is None:
        return
    try:
        make_private(path.parent)
        ledger = open_ledger(location, readonly=True) if location.has("ledger") else None
    except OSError as error:
        raise LedgerError(code="unusable", path=path, reason=error.strerror or str(error)) from error
    if not os.access(path.parent, os.W_OK):
        raise LedgerError(code="unusable", path=path, reason="its directory can't be written")
    if ledger is not None and (changes := identity_changes(ledger.bindings(), config.identities)):
        raise moved(changes, source, making.state)
    recorded = None if ledger is None else ledger.settings
    if recorded is not None:
        other = wanted(adopted(config.settings, recorded), recorded.style)
        if not recorded.same(other):
            raise mismatch(recorded, other, [source] if source else [], making.state)


def _run(
    config: Config,
    address: tuple[str, int] | None,
    path: str,
    asked: Asked,
    reading: Reread,
    *,
    logs: tuple[LogFormat, LogLevel],
    as_json: bool,
    verbose: bool,
) -> int:
    try:
        from truename.cli._gateway_process import run  # noqa: PLC0415 - the gateway and its web server, for this command only
    except ModuleNotFoundError as error:
        raise without_gateway(error) from error
    only, several = asked
    servers = several or None
    return run(
        config, address, path, only=only, servers=servers, reread=reading, logs=logs, as_json=as_json, verbose=verbose
    )


def _path(config: Config, client: str | None, asked_for: Asked, context: str | None, *, search: bool) -> str:
    only, several = asked_for
    if context is not None:
        _require(context, "context", list(config.settings.contexts), config)
    known = [server.key for server in config.enabled]
    wanted = several if only is None else (only,)
    # Of several servers, one that was taken away must not stop the others.
    if wanted and not {*wanted} & {*known}:
        _require(wanted[0], "server", known, config)
    named = None if client is None else dialects.get(client).name
    return path_of(client=named, context=context, search=search, server=only, servers=several or None)


def _require(wanted: str, what: str, known: list[str], config: Config) -> None:
    if wanted not in known:
        close = get_close_matches(wanted, known, 3)
        hint = f"Did you mean {' or '.join(map(excerpt, close))}?" if close else f"It has {', '.join(known) or 'none'}."
        raise UsageError(fact=f"no {what} of {config.path} is known as {excerpt(wanted)}", advice=hint)


def _address(text: str) -> tuple[str, int]:
    if "://" in text:
        wanted_form = urlsplit(text).netloc or "127.0.0.1:8750"
        raise UsageError(fact=f"{excerpt(text)} is a URL", advice=f"Write HOST:PORT: --http {wanted_form}")
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError(fact=f"{excerpt(text)} is not HOST:PORT", advice="Write it as in --http 127.0.0.1:8750.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)
