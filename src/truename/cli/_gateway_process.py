"""Run the gateway for `truename serve`: start it, print names and addresses, and wait for the end."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sys
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import anyio
from anyio import to_thread

from truename import dialects
from truename.auth.inbound.authentication import asks_for_token
from truename.cli._comparison import client_outcomes, losses
from truename.cli._ending import report_end
from truename.cli._errors import UsageError, warn, warnings_of
from truename.cli._logs import log_to_stderr
from truename.cli._name_table import default_sentence, show_names, summary
from truename.cli._progress import Progress
from truename.cli._reload import Reloads
from truename.cli._rendering import print_json, say, show, show_hanging, styled
from truename.config import verify
from truename.config.addresses import MAIN, path_of, servers_in
from truename.gateway import (
    Gateway,
    ProgramSharing,
    WorkerGroup,
    background,
    check_listening,
    listening,
    reserve,
    serve_stdio,
    spare_collector,
)
from truename.telemetry.setup import export_traces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractContextManager
    from socket import socket
    from typing import Literal, TypeAlias

    from truename.catalog import Catalog
    from truename.cli._ending import Reason
    from truename.cli._options import LogFormat, LogLevel
    from truename.cli._worker import Worker
    from truename.config import Config
    from truename.config.watch import Reread
    from truename.gateway.http.app import MoreRoutes

    Signals = AsyncIterator[signal.Signals]
    ReportForm: TypeAlias = Literal["json", "all", "short"]

__all__ = ["run"]

_START_WAIT = 5.0
_OPTIONS = {"in": "context"}
# The segment of an address that has no value.
_ALONE = "search"
# So that the report at the start has at most 30 lines of 80 columns.
_FEW = 5
_MOST_CLIENTS = 4
_MOST_KEYS = 6
_CLIENTS = "claude-code, gemini-cli, codex-cli, cursor, ..."


def ending_signals() -> AbstractContextManager[Signals | None]:
    """Receive SIGINT, SIGTERM and SIGHUP (which may mean reload); None on Windows, where Ctrl-C raises instead."""
    if sys.platform == "win32":
        return contextlib.nullcontext()
    return anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Shutdown:
    """The shutdown of one run: drain on a signal, stop at once on a second.

    ``gateway`` is set once it exists; ``hang_up`` handles SIGHUP, and returns False if it means shutdown.
    """

    def __init__(self, hang_up: Callable[[], bool], *, as_json: bool, worker: Worker | None) -> None:
        self.gateway: Gateway | None = None
        self._hang_up = hang_up
        self._as_json = as_json
        self._worker = worker
        self._reason: Reason | None = None
        self._left = 0

    async def wait(self, signals: Signals | None, scope: anyio.CancelScope) -> None:
        """Wait for a signal, then for running calls, `drain_timeout` or a second signal; then cancel the scope."""
        if signals is None:
            return
        await self._wait_for_signal(signals)
        self._reason = "time"
        self._report_running()
        async with background() as draining:
            draining.start_soon(self._end_at_next, signals, scope)
            if self.gateway is not None:
                await self.gateway.drain()
        await self._end(scope)

    async def _end(self, scope: anyio.CancelScope) -> None:
        self._left = self._count()
        if self._left and self.gateway is not None:
            await self.gateway.break_off()
        scope.cancel()

    def _count(self) -> int:
        return 0 if self.gateway is None else self.gateway.unfinished

    async def _wait_for_signal(self, signals: Signals) -> None:
        while await anext(signals) == signal.SIGHUP and self._hang_up():
            pass

    async def _end_at_next(self, signals: Signals, scope: anyio.CancelScope) -> None:
        await self._wait_for_signal(signals)
        self._reason = "signal"
        await self._end(scope)

    def _report_running(self) -> None:
        if self.gateway is None or self._as_json or not (count := self._count()):
            return
        what = "the running call has" if count == 1 else f"the {count:,} running calls have"
        seconds = self.gateway.config.settings.drain_timeout
        where = "" if self._worker is None else f"worker {self._worker.number}: "
        with contextlib.suppress(OSError):
            say(
                f"{where}Shutting down when {what} ended, after {seconds:g} seconds at most; "
                "a second signal ends it at once."
            )

    def status(self) -> int:
        """Say how a signal ended the gateway, and return the exit status: 1 if calls were interrupted."""
        if self._reason is None:
            return 0
        if self._worker is None:
            return report_end(self._left, self._reason, as_json=self._as_json)
        self._worker.tell(broken_off=self._left, reason=self._reason)
        return 1 if self._left else 0


def run(
    config: Config,
    address: tuple[str, int] | None,
    path: str,
    *,
    only: str | None,
    servers: tuple[str, ...] | None,
    reread: Reread,
    logs: tuple[LogFormat, LogLevel] = ("text", "warning"),
    as_json: bool,
    verbose: bool = False,
    worker: Worker | None = None,
    has_console: bool = False,
) -> int:
    """Serve until Ctrl-C, SIGTERM, a closed terminal, or the end of standard input.

    Return the exit status: 0, or 1 if calls were interrupted. ``only`` is the one server that is started and shown,
    ``servers`` are those if there are several. ``reread`` reads the configuration again. ``verbose`` prints all names
    at the start, and how every client would treat the tools. ``worker`` is this process if a supervisor started it: it
    listens at the supervisor's socket, and only the first one reports. ``has_console`` serves the web console too.

    Raises `ConfigError` for invalid settings and an address that is in use, before anything is started.
    """
    log_to_stderr(*logs, worker=None if worker is None else worker.number)
    verify(config)
    if not as_json and (worker is None or worker.reports):
        warn(config.warnings)
    bound = _bound(config, address, worker)
    end_traces = export_traces(config.settings)
    reloads = Reloads(reread, config, as_json=as_json, worker=worker)
    shutdown = Shutdown(reloads.hang_up, as_json=as_json, worker=worker)
    gateway_run = _GatewayRun(
        config=config,
        bound=bound,
        path=path,
        only=only,
        servers=servers,
        report_form="json" if as_json else "all" if verbose else "short",
        reloads=reloads,
        shutdown=shutdown,
        worker=worker,
        has_console=has_console,
    )
    try:
        with contextlib.suppress(KeyboardInterrupt):
            anyio.run(
                gateway_run.serve_until_signal,
                # There is no wheel of it for some platforms.
                backend_options={"use_uvloop": find_spec("uvloop") is not None},
            )
    finally:
        if bound is not None:
            bound.close()
        if end_traces is not None:
            end_traces()
    return shutdown.status()


def _bound(config: Config, address: tuple[str, int] | None, worker: Worker | None) -> socket | None:
    """Return the socket to listen at; None over stdio. Raises `ConfigError`."""
    if worker is None:
        return None if address is None else reserve(config, *address)
    bound = worker.listening_socket()
    check_listening(config, bound.getsockname()[0])
    return bound


@dataclass(frozen=True, kw_only=True)
class _GatewayRun:
    """One run of the gateway: its configuration, where it listens (None: over stdio), and what was asked for."""

    config: Config
    bound: socket | None
    path: str
    only: str | None
    servers: tuple[str, ...] | None
    report_form: ReportForm
    reloads: Reloads
    shutdown: Shutdown
    worker: Worker | None
    has_console: bool

    async def serve_until_signal(self) -> None:
        """Serve until a signal cancels the scope, at whatever point, so that all server processes are ended."""
        # Signals are received until everything has ended: a second signal must not leave server processes behind.
        with ending_signals() as signals:
            async with background() as tasks:
                tasks.start_soon(self.shutdown.wait, signals, tasks.cancel_scope)
                await self._serve()

    async def _serve(self) -> None:
        keys = [server.key for server in self.config.enabled]
        started = [key for key in keys if self.only in {None, key} and (self.servers is None or key in self.servers)]
        # What the others would say of servers, the first worker says.
        is_quiet = self.worker is not None and self.worker.number != 1
        with Progress([] if is_quiet else started, is_quiet=is_quiet) as progress:
            # Clients connect at once and wait for their first list; slow servers are added later, with
            # notifications/tools/list_changed.
            async with (
                Gateway(
                    self.config,
                    on_event=progress.on_event,
                    wait=_START_WAIT,
                    is_early=True,
                    only=self.only,
                    servers=self.servers,
                    sharing=_sharing(self.config, self.bound, self.worker),
                ) as gateway,
                background() as tasks,
            ):
                self.shutdown.gateway = gateway
                tasks.start_soon(self.reloads.keep_up, gateway)
                if self.bound is None:
                    tasks.start_soon(_report_joined, gateway, self.path, self.report_form)
                    await serve_stdio(gateway, self.path)
                else:
                    await self._listen(gateway, self.bound)

    async def _listen(self, gateway: Gateway, bound: socket) -> None:
        worker, more = self.worker, _console(gateway) if self.has_console else None
        if worker is not None:
            worker.tell(begun=True)
        async with listening(gateway, bound=bound, workers=_group(worker), more=more) as url:
            await gateway.joined()
            if worker is not None:
                worker.tell(ready=True)
            if worker is None or worker.reports:
                is_everywhere = ip_address(bound.getsockname()[0]).is_unspecified
                await _report_listening(gateway, self.path, url, self.report_form, worker, is_everywhere=is_everywhere)
                if self.has_console and self.report_form != "json":
                    show(f"The web console is at {self.config.settings.access.public_url or url}/console.")
                    sys.stdout.flush()
            spare_collector()
            await anyio.sleep_forever()


def _sharing(config: Config, bound: socket | None, worker: Worker | None) -> ProgramSharing | None:
    """Return how programs are shared with other processes; over stdio, and with a state in memory, they are not."""
    if bound is None or config.state_location().is_memory:
        return None
    # The directory is of one supervisor.
    return ProgramSharing(None if worker is None else worker.directory)


def _console(gateway: Gateway) -> MoreRoutes:
    """Return the routes of the console. Raises `UsageError` where its packages are not installed."""
    if find_spec("jinja2") is None:
        raise UsageError(fact="the web console is not installed", advice="Run `pip install 'truename[console]'`.")
    from truename.console import console_routes  # noqa: PLC0415 - imports Jinja, which only the console needs

    return partial(console_routes, gateway)


def _group(worker: Worker | None) -> WorkerGroup | None:
    if worker is None:
        return None
    return WorkerGroup(number=worker.number, count=worker.count, directory=Path(worker.directory))


async def _report_listening(
    gateway: Gateway, path: str, url: str, report_form: ReportForm, worker: Worker | None, *, is_everywhere: bool
) -> None:
    if starting := _starting_servers(gateway):
        say(f"Serving at {url}. {starting}")
        await gateway.settle()
    if worker is not None:
        try:
            await to_thread.run_sync(worker.wait_for_others, abandon_on_cancel=True)
        finally:
            worker.wait_no_longer()
    await _report_start(gateway, path, url, report_form, worker)
    # In a pipe, the output would otherwise stay in the buffer.
    sys.stdout.flush()
    if is_everywhere:
        say("Listening on all interfaces; other machines use this machine's name in the URL.")


async def _report_joined(gateway: Gateway, path: str, report_form: ReportForm) -> None:
    await gateway.joined()
    await _report_start(gateway, path, None, report_form)
    spare_collector()


async def _report_start(
    gateway: Gateway, path: str, url: str | None, report_form: ReportForm, worker: Worker | None = None
) -> None:
    if report_form == "json":
        document = _document(gateway, path, url) | ({} if worker is None else {"workers": worker.count})
        if url is None:
            say(json.dumps(document))
        else:
            print_json(document)
        return
    error = url is None
    table = gateway.table(path)
    # In a thread, since the gateway already serves calls.
    compared = await to_thread.run_sync(client_outcomes, table.catalog) if report_form == "all" else None
    if report_form == "all" or len(table) <= _FEW:
        show("", error=error)
        show_names(table, compared, error=error)
    show("", error=error)
    show(styled(summary(table.catalog, table), "bold"), error=error)
    ledger = gateway.status().ledger
    where = "in memory only" if ledger is None else f"in {ledger}"
    show(f"Names are remembered {where}.", error=error)
    if worker is not None:
        show(f"{worker.count} workers serve it.", error=error)
    if sentence := default_sentence(gateway.config.settings.policy):
        show(sentence, error=error)
    if starting := _starting_servers(gateway):
        show(starting, error=error)
    if report_form == "short":
        for sentence in (await to_thread.run_sync(_of_installed, table.catalog))[:_MOST_CLIENTS]:
            show(styled(f"Without Truename, {sentence}.", "yellow"), error=error)
        show(
            styled("`truename names` shows all names, `truename doctor` how your clients treat tools.", "dim"),
            error=error,
        )
    show("", error=error)
    if url is None:
        _connect_stdio(gateway, path)
    else:
        _connect_http(gateway, url)


def _of_installed(catalog: Catalog) -> list[str]:
    """Return the losses of the clients on this machine without Truename, as sentences."""
    from truename.clients import Machine, find  # noqa: PLC0415 - costs 30 ms, after the gateway listens
    from truename.clients.selection import OWN_SCOPES  # noqa: PLC0415 - as above

    found = find(Machine.here())
    names = dict.fromkeys(one.file.dialect for one in found if one.file.scope in OWN_SCOPES)
    return losses(catalog, map(dialects.get, names))


def _starting_servers(gateway: Gateway) -> str:
    keys = [one.key for one in gateway.status().servers if one.state == "starting"]
    return f"Still starting, added when ready: {', '.join(keys)}." if keys else ""


def _connect_http(gateway: Gateway, url: str) -> None:
    settings, name = gateway.config.settings, gateway.table().server_name
    url = settings.access.public_url or url
    keys = [quote(server.key, safe="") for server in gateway.config.enabled]
    servers = ", ".join([*keys[:_MOST_KEYS], *(["..."] if len(keys) > _MOST_KEYS else [])])
    contexts, profiles = ", ".join(settings.contexts), ", ".join(settings.profiles)
    addresses = (
        ("/mcp", "for every client"),
        ("/mcp/for/CLIENT", f"names for one client: {_CLIENTS}"),
        ("/mcp/only/SERVER", f"one server, with its own names: {servers}"),
        *([("/mcp/servers/A,B", "some servers, with the names of /mcp")] if len(keys) > 1 else []),
        *([("/mcp/profile/NAME", f"the tools of a profile: {profiles}")] if profiles else []),
        *([("/mcp/in/CONTEXT", f"the tools of a context: {contexts}")] if contexts else []),
    )
    show_hanging((styled(url + path, "bold cyan"), styled(what)) for path, what in addresses)
    show("")
    asks = asks_for_token(gateway.config)
    header = ' --header "Authorization: Bearer $TRUENAME_TOKEN"' if asks else ""
    entry: dict[str, object] = {"type": "http", "url": f"{url}/mcp"}
    if asks:
        entry["headers"] = {"Authorization": "Bearer ${TRUENAME_TOKEN}"}
    show("Claude Code:  ", f"claude mcp add --transport http {shlex.quote(name)} {url}/mcp{header}")
    show("Others:       ", json.dumps({"mcpServers": {name: entry}}))
    if settings.access.oauth or settings.access.sign_in:
        show("Clients are told where to sign in when they connect.")
    show("")
    show("Ctrl-C ends it.")


def _connect_stdio(gateway: Gateway, path: str) -> None:
    # The absolute path, since a client may have another PATH than this shell.
    program = Path(sys.argv[0]).absolute()
    entry = {
        "command": str(program) if program.stem == "truename" else "truename",
        "args": ["serve", str(gateway.config.path), *_view_options(path)],
    }
    say("To connect a client:  ", json.dumps({"mcpServers": {gateway.table(path).server_name: entry}}))
    say("Serving over standard input and output.")


def _view_options(path: str) -> list[str]:
    """Return the options of `serve` that are equivalent to an address."""
    if several := servers_in(path):
        rest = _view_options(path.removesuffix(path_of(servers=several).removeprefix(MAIN)))
        return [*rest, *(text for key in several for text in ("--server", key))]
    options: list[str] = []
    words = iter(path.split("/")[2:])
    for word in words:
        options.append(f"--{_OPTIONS.get(word, word)}")
        if word != _ALONE:
            options.append(unquote(next(words)))
    return options


def _document(gateway: Gateway, path: str, url: str | None) -> dict[str, object]:
    report, policy = gateway.status(), gateway.config.settings.policy
    return {
        "url": None if url is None else f"{url}/mcp",
        "style": report.style,
        "policy": None if policy is None else {"rules": len(tuple(policy.rules)), "default": policy.default},
        "ledger": report.ledger,
        "servers": [
            {
                "key": one.key,
                "registry_name": one.registry_name,
                "state": one.state,
                "tools": one.tools,
                "seconds": one.seconds,
                "error": one.error,
            }
            for one in report.servers
        ],
        "warnings": warnings_of(gateway.config.warnings),
        "tools": [{"id": str(id), "name": name} for id, name in gateway.table(path).items()],
    }
