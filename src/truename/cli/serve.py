"""`truename serve`: run the gateway over stdio or HTTP."""

import os
import sys
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from cyclopts import Parameter

from truename.auth.network.listening import bind
from truename.catalog import identity_changes
from truename.cli import _completion
from truename.cli._client_rules import client_rules
from truename.cli._errors import UsageError
from truename.cli._options import Configuration, JsonOutput, LogFormat, LogLevel, NamingOptions
from truename.cli._sources import configuration, reread
from truename.cli._worker import Worker
from truename.cli._workspace import (
    check_option,
    gateway_needed,
    identity_mismatch,
    ledger_settings,
    style_mismatch,
    with_options,
    with_recorded_settings,
)
from truename.config import Config, Settings, verify
from truename.config.addresses import path_of
from truename.config.consent import ConsentStore
from truename.config.division import of_worker
from truename.config.watch import Reread
from truename.errors import ConfigError, LedgerError, excerpt
from truename.files.private import make_private
from truename.files.user import at_home
from truename.ledger import open_ledger

__all__ = ["serve"]

Http = Annotated[
    str | None,
    Parameter(
        name="--http",
        metavar="HOST:PORT",
        help="Serve over HTTP at HOST:PORT, such as 127.0.0.1:8750; default: over stdio.",
    ),
]
Names = Annotated[
    Literal["universal", "detect", "canonical"] | None,
    Parameter(name="--names", help="The names at /mcp: universal, those of the detected client, or canonical."),
]
Token = Annotated[
    str | None,
    Parameter(
        name="--token",
        metavar="TOKEN",
        env_var="TRUENAME_TOKEN",
        help="The bearer token that HTTP clients must send; required to listen on other interfaces than loopback.",
    ),
]
Certificate = Annotated[
    str | None,
    Parameter(
        name="--tls-cert",
        metavar="FILE",
        help="Over HTTP: serve over TLS, with the certificate in this PEM file, followed by those that issued it.",
    ),
]
Key = Annotated[
    str | None,
    Parameter(
        name="--tls-key",
        metavar="FILE",
        help="The certificate's private key (PEM); default: in the certificate's file.",
    ),
]
Workers = Annotated[
    str | None,
    Parameter(
        name="--workers",
        metavar="N",
        help="Over HTTP: serve with N processes on one port, or auto: one for each processor. They share the state.",
    ),
]
Console = Annotated[
    bool,
    Parameter(
        name="--console",
        negative=(),
        show_default=False,
        help="Over HTTP: serve the web console at /console; [console] in the configuration says who may use it.",
    ),
]
Client = Annotated[
    str | None,
    Parameter(
        name="--for",
        metavar="CLIENT",
        completer=_completion.clients,
        help="Over stdio: the client to present names for.",
    ),
]
Only = Annotated[
    str | None,
    Parameter(
        name="--only",
        metavar="SERVER",
        completer=_completion.servers,
        help="Over stdio: start and show only this server.",
    ),
]
Servers = Annotated[
    tuple[str, ...],
    Parameter(
        name="--server",
        metavar="SERVER",
        completer=_completion.servers,
        show_default=False,
        help="Over stdio: start and show this server, under the names of /mcp. May be repeated.",
    ),
]
Context = Annotated[
    str | None,
    Parameter(
        name="--context",
        metavar="CONTEXT",
        completer=_completion.contexts,
        help="Over stdio: the context of the client.",
    ),
]
Format = Annotated[
    LogFormat,
    Parameter(name="--log-format", help="The format of the log on standard error: text or JSON, one record per line."),
]
Level = Annotated[LogLevel, Parameter(name="--log-level", help="The lowest level of the gateway's own log records.")]
Search = Annotated[
    bool,
    Parameter(name="--search", negative=(), help="Over stdio: list few tools, and three tools to search the others."),
]
Verbose = Annotated[
    bool,
    Parameter(
        name="--verbose",
        negative=(),
        show_default=False,
        help="Show all names at the start, and how every client would treat the tools without Truename.",
    ),
]
_AS_IT_IS = NamingOptions()
_AUTO = "auto"
# Each one is a process of 70 MB, and more than processors gain nothing: a larger number is a slip.
_MOST_WORKERS = 256
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
    tls_cert: Certificate = None,
    tls_key: Key = None,
    workers: Workers = None,
    console: Console = False,
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
    if address is None and (tls_cert, tls_key) != (None, None):
        raise UsageError(
            fact="--tls-cert and --tls-key are for HTTP",
            advice="Add --http HOST:PORT, or leave them out: nothing crosses a network over stdio.",
        )
    if address is None and workers is not None:
        raise UsageError(
            fact="--workers is for HTTP",
            advice="Add --http HOST:PORT, or leave it out: over stdio one process serves one client.",
        )
    if address is None and console:
        raise UsageError(
            fact="--console is for HTTP", advice="Add --http HOST:PORT, and open its /console in a browser."
        )
    processes = 1 if workers is None else _processes(workers)
    if only is not None and server:
        raise UsageError(fact="--only and --server exclude each other", advice="Use --server alone for several.")
    if token is not None:
        check_option("--token", "token", token)

    # Before anything starts another process, which would inherit it.
    worker = Worker.here()

    def read(before: Config | None) -> tuple[Config, str]:
        config = configuration(source) if before is None else _again(before, source)
        path = _path(config, client, (only, server), context, search=search)
        settings = with_options(config.settings, making)
        settings = replace(
            settings,
            names=names or settings.names,
            state=making.state or settings.state,
            token=token or settings.token,
        )
        settings = _with_tls(settings, tls_cert, tls_key)
        config = replace(config, settings=settings)
        _agree(config, source, making)
        return config if worker is None else of_worker(config, worker.number, worker.count), path

    config, path = read(None)
    watched = () if source or config.path is None else (ConsentStore.here().file(config.path),)
    reading = Reread(lambda: read(config)[0], watched)
    if processes > 1 and worker is None and address is not None:
        return _supervise(config, address, processes, as_json=as_json)
    with gateway_needed():
        from truename.cli._gateway_process import run  # noqa: PLC0415 - the gateway and its web server, for this command only
    return run(
        config,
        address,
        path,
        only=only,
        servers=server or None,
        reread=reading,
        logs=(log_format, log_level),
        as_json=as_json,
        verbose=verbose,
        worker=worker,
        has_console=console,
    )


def _processes(text: str) -> int:
    if sys.platform == "win32":
        raise UsageError(
            fact="--workers needs Linux or macOS",
            advice="On Windows one process serves; run several gateways on ports of their own.",
        )
    from truename.cli._supervisor import cores  # noqa: PLC0415 - for this option only

    if text == _AUTO:
        return min(cores(), _MOST_WORKERS)
    # A number of thousands of digits is none for `int`.
    if not (text.isascii() and text.isdigit() and (digits := text.lstrip("0"))):
        raise UsageError(
            fact=f"--workers {excerpt(text)} is not a number of processes",
            advice="Write a number from 1 on, or auto for one process for each processor.",
        )
    if len(digits) > len(str(_MOST_WORKERS)) or int(digits) > _MOST_WORKERS:
        usable = "1 processor" if cores() == 1 else f"{cores()} processors"
        raise UsageError(
            fact=f"--workers {excerpt(text)} is more than {_MOST_WORKERS} processes",
            advice=f"Write auto for one process for each processor: here the gateway may use {usable}.",
        )
    return int(digits)


def _supervise(config: Config, address: tuple[str, int], processes: int, *, as_json: bool) -> int:
    """Serve with several processes. Raises `UsageError` for a state that they cannot share, `ConfigError`."""
    verify(config)
    if config.state_location().is_memory:
        raise UsageError(
            fact="workers cannot share a state in memory",
            advice="Set state to a file or to a PostgreSQL database, or leave --workers out.",
        )
    from truename.cli._supervisor import Supervisor  # noqa: PLC0415 - for this option only

    with bind(*address) as bound:
        return Supervisor(
            words=sys.argv[1:], bound=bound, count=processes, reload=config.settings.reload, as_json=as_json
        ).run()


def _with_tls(settings: Settings, certificate: str | None, key: str | None) -> Settings:
    """Return the settings with the files of these options; a certificate comes with its own key."""
    named = [None if path is None else str(at_home(path).absolute()) for path in (certificate, key)]
    if certificate is not None:
        return replace(settings, tls_certificate=named[0], tls_key=named[1])
    return settings if key is None else replace(settings, tls_key=named[1])


def _again(before: Config, source: str | None) -> Config:
    """Read a configuration again from the same file. Raises `ConfigError` if the file no longer exists."""
    if before.path is None or not before.path.is_file():
        problem = "it no longer exists, or is not a regular file"
        raise ConfigError(file=str(before.path), key="", problem=problem, remedy="Restore it, or restart the gateway.")
    return reread(before.path, source)


def _agree(config: Config, source: str | None, making: NamingOptions) -> None:
    """Check, before anything starts, that the ledger is writable and agrees with the settings and the declared ids.

    Raises `UsageError`, `LedgerError`.
    """
    location = config.state_location()
    if location.is_memory:
        return
    if location.path is not None:
        _require_directory(location.path)
    ledger = open_ledger(location, readonly=True) if location.has("ledger") else None
    if ledger is not None and (changes := identity_changes(ledger.bindings(), config.identities)):
        raise identity_mismatch(changes, source, making.state)
    recorded = None if ledger is None else ledger.settings
    if recorded is not None:
        other = ledger_settings(with_recorded_settings(config.settings, recorded), recorded.style)
        if not recorded.same(other):
            raise style_mismatch(recorded, other, [source] if source else [], making.state)


def _require_directory(path: Path) -> None:
    try:
        make_private(path.parent)
    except OSError as error:
        raise LedgerError(code="unusable", path=path, reason=error.strerror or str(error)) from error
    if not os.access(path.parent, os.W_OK):
        raise LedgerError(code="unusable", path=path, reason="its directory is not writable")


def _path(config: Config, client: str | None, asked_for: Asked, context: str | None, *, search: bool) -> str:
    only, several = asked_for
    if context is not None:
        _require(context, "context", list(config.settings.contexts), config)
    known = [server.key for server in config.enabled]
    wanted = several if only is None else (only,)
    # If one of several servers was removed from the configuration, the others are still served.
    if wanted and not {*wanted} & {*known}:
        _require(wanted[0], "server", known, config)
    named = None if client is None else client_rules(client).name
    return path_of(client=named, context=context, search=search, server=only, servers=several or None)


def _require(wanted: str, what: str, known: list[str], config: Config) -> None:
    if wanted not in known:
        close = get_close_matches(wanted, known, 3)
        hint = f"Did you mean {' or '.join(map(excerpt, close))}?" if close else f"It has {', '.join(known) or 'none'}."
        raise UsageError(fact=f"{config.path} has no {what} {excerpt(wanted)}", advice=hint)


def _address(text: str) -> tuple[str, int]:
    if "://" in text:
        wanted_form = urlsplit(text).netloc or "127.0.0.1:8750"
        raise UsageError(fact=f"{excerpt(text)} is a URL", advice=f"Write HOST:PORT: --http {wanted_form}")
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise UsageError(fact=f"{excerpt(text)} is not HOST:PORT", advice="Write it as in --http 127.0.0.1:8750.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)
