"""Run the gateway for `truename serve`: start it, print names and addresses, and wait."""

from __future__ import annotations

import contextlib
import json
import shlex
import signal
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote

import anyio
from anyio import to_thread

from truename import dialects
from truename.auth.inbound.authentication import asks_for_token
from truename.cli._comparison import client_outcomes, losses
from truename.cli._logs import log_to_stderr
from truename.cli._progress import Progress
from truename.cli._reload import Reloads, warn, warnings_of
from truename.cli._rendering import print_json, say, say_json, show, show_hanging, styled
from truename.cli.names import by_default, listing, summary
from truename.clients import Machine, find
from truename.clients.selection import OWN_SCOPES
from truename.config import verify
from truename.config.addresses import MAIN, path_of, servers_in
from truename.gateway import Gateway, background, listening, reserve, serve_stdio, spare_collector
from truename.telemetry.setup import export_traces

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager
    from socket import socket
    from typing import Literal, TypeAlias

    from truename.catalog import Catalog
    from truename.cli._options import LogFormat, LogLevel
    from truename.config import Config
    from truename.config.watch import Reread

    Signals = AsyncIterator[signal.Signals]
    Telling: TypeAlias = Literal["json", "all", "short"]

__all__ = ["run"]

_REASONS: Final = {"time": "drain_timeout was over", "signal": "a second signal came"}
_PATIENCE = 5.0
_EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - what is asked for
_OPTIONS = {"in": "context"}
# The part of an address that has no value.
_ALONE = "search"
# So that a start is told in 30 lines of 80 columns.
_FEW = 5
_MOST_CLIENTS = 4
_MOST_KEYS = 6
_CLIENTS = "claude-code, gemini-cli, codex-cli, cursor, ..."


def ending_signals() -> AbstractContextManager[Signals | None]:
    """Receive the signals that end it; None where no event loop can, and Ctrl-C comes as `KeyboardInterrupt`."""
    if sys.platform == "win32":
        return contextlib.nullcontext()
    return anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ending:
    """The end of one run. ``gateway`` is set once there is one; ``hang_up`` takes SIGHUP, if that is not the end."""

    def __init__(self, hang_up: Callable[[], bool], *, as_json: bool) -> None:
        self.gateway: Gateway | None = None
        self._hang_up = hang_up
        self._as_json = as_json
        self._reason: str | None = None
        self._left = 0

    async def wait(self, signals: Signals | None, scope: anyio.CancelScope) -> None:
        """Cancel all when a signal says so and what runs has ended, or a second signal comes."""
        if signals is None:
            return
        await self._told(signals)
        self._reason = "time"
        self._say_what_runs()
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

    async def _told(self, signals: Signals) -> None:
        while await anext(signals) == signal.SIGHUP and self._hang_up():
            pass

    async def _end_at_next(self, signals: Signals, scope: anyio.CancelScope) -> None:
        await self._told(signals)
        self._reason = "signal"
        await self._end(scope)

    def _say_what_runs(self) -> None:
        if self.gateway is None or self._as_json or not (count := self._count()):
            return
        what = "the running call has" if count == 1 else f"the {count:,} running calls have"
        seconds = self.gateway.config.settings.drain_timeout
        with contextlib.suppress(OSError):
            say(f"Ending when {what} ended, in {seconds:g} seconds at the latest; at once at a second signal.")

    def status(self) -> int:
        """Say how it ended, if a signal ended it, and return the exit status: 1 where requests were broken off."""
        if self._reason is None:
            return 0
        # Where the terminal was closed there is nobody to tell.
        with contextlib.suppress(OSError):
            self._say_how(self._reason)
        return 1 if self._left else 0

    def _say_how(self, reason: str) -> None:
        if self._as_json:
            say_json({"ended": True, "broken_off": self._left})
        elif self._left:
            what = "1 call was" if self._left == 1 else f"{self._left:,} calls were"
            say(f"Ended. {what} broken off, as {_REASONS[reason]}: what they did is unknown.")
        else:
            say("Ended. No call was broken off.")


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
) -> int:
    """Serve until the end: Ctrl-C, SIGTERM, a closed terminal, or the end of standard input.

    Returns the exit status: 0, and 1 if calls had to be broken off. ``only`` is the one server that is shown and
    started, ``servers`` are those that are, where it is several. ``reread`` reads the configuration
    anew. ``verbose`` has all names shown at the start, and what every client would make of the tools.

    Raises `ConfigError` for settings that can't be and an address that can't be had, before anything is started.
    """
    log_to_stderr(*logs)
    verify(config)
    if not as_json:
        warn(config.warnings)
    bound = None if address is None else reserve(config, *address)
    end_traces = export_traces(config.settings)
    reloads = Reloads(reread, config, as_json=as_json)
    telling: Telling = "json" if as_json else "all" if verbose else "short"
    ending = Ending(reloads.hang_up, as_json=as_json)
    try:
        with contextlib.suppress(KeyboardInterrupt):
            anyio.run(
                partial(
                    _until_told,
                    config,
                    bound,
                    path,
                    only=only,
                    servers=servers,
                    telling=telling,
                    reloads=reloads,
                    ending=ending,
                )
            )
    finally:
        if bound is not None:
            bound.close()
        if end_traces is not None:
            end_traces()
    return ending.status()


async def _until_told(
    config: Config,
    bound: socket | None,
    path: str,
    *,
    only: str | None,
    servers: tuple[str, ...] | None,
    telling: Telling,
    reloads: Reloads,
    ending: Ending,
) -> None:
    """Serve; a signal cancels all of it, at whatever point it is, so that every server's processes are ended."""
    # Received until all is over, or a second signal would leave servers alone half-way through their end.
    with ending_signals() as signals:
        async with background() as tasks:
            tasks.start_soon(ending.wait, signals, tasks.cancel_scope)
            await _serve(
                config, bound, path, only=only, servers=servers, telling=telling, reloads=reloads, ending=ending
            )


async def _serve(
    config: Config,
    bound: socket | None,
    path: str,
    *,
    only: str | None,
    servers: tuple[str, ...] | None,
    telling: Telling,
    reloads: Reloads,
    ending: Ending,
) -> None:
    with Progress([server.key for server in config.enabled if _is_started(server.key, only, servers)]) as progress:
        # Clients wait for the first answer; servers that are slow to start join by list_changed.
        async with (
            Gateway(config, on_event=progress.on_event, wait=_PATIENCE, only=only, servers=servers) as gateway,
            background() as tasks,
        ):
            ending.gateway = gateway
            tasks.start_soon(reloads.keep_up, gateway)
            if bound is None:
                await _introduce(gateway, path, None, telling)
                spare_collector()
                await serve_stdio(gateway, path)
            else:
                async with listening(gateway, bound=bound) as url:
                    if late := _late(gateway):
                        say(f"Serving at {url}. {late}")
                        await gateway.settle()
                    await _introduce(gateway, path, url, telling)
                    # Nothing else is printed for long, and in a pipe it would wait for more.
                    sys.stdout.flush()
                    if bound.getsockname()[0] in _EVERYWHERE:
                        say("It listens on all interfaces; other machines use this machine's name instead.")
                    spare_collector()
                    await anyio.sleep_forever()


async def _introduce(gateway: Gateway, path: str, url: str | None, telling: Telling) -> None:
    if telling == "json":
        document = _document(gateway, path, url)
        if url is None:
            say(json.dumps(document))
        else:
            print_json(document)
        return
    error = url is None
    table = gateway.table(path)
    # Calls come in already: what every client would do is found out beside the loop.
    compared = await to_thread.run_sync(client_outcomes, table.catalog) if telling == "all" else None
    if telling == "all" or len(table) <= _FEW:
        show("", error=error)
        listing(table, compared, error=error)
    show("", error=error)
    show(styled(summary(table.catalog, table), "bold"), error=error)
    ledger = gateway.status().ledger
    where = "in memory only" if ledger is None else f"in {ledger}"
    show(f"Names are remembered {where}.", error=error)
    if said := by_default(gateway.config.settings.policy):
        show(said, error=error)
    if late := _late(gateway):
        show(late, error=error)
    if telling == "short":
        for sentence in (await to_thread.run_sync(_of_installed, table.catalog))[:_MOST_CLIENTS]:
            show(styled(f"Without Truename, {sentence}.", "yellow"), error=error)
        show(
            styled("`truename names` shows all names, `truename doctor` what your clients make of them.", "dim"),
            error=error,
        )
    show("", error=error)
    if url is None:
        _connect_stdio(gateway, path)
    else:
        _connect_http(gateway, url)


def _of_installed(catalog: Catalog) -> list[str]:
    """Return what the clients on this machine would make of the tools without Truename."""
    found = find(Machine.here())
    names = dict.fromkeys(one.file.dialect for one in found if one.file.scope in OWN_SCOPES)
    return losses(catalog, map(dialects.get, names))


def _late(gateway: Gateway) -> str:
    keys = [one.key for one in gateway.status().servers if one.state == "starting"]
    return f"Still starting, to join when ready: {', '.join(keys)}." if keys else ""


def _connect_http(gateway: Gateway, url: str) -> None:
    settings, name = gateway.config.settings, gateway.table().server_name
    url = settings.access.public_url or url
    keys = [quote(server.key, safe="") for server in gateway.config.enabled]
    servers = ", ".join([*keys[:_MOST_KEYS], *(["..."] if len(keys) > _MOST_KEYS else [])])
    contexts = ", ".join(settings.contexts)
    addresses = (
        ("/mcp", "for every client"),
        ("/mcp/for/CLIENT", f"a client's own dialect: {_CLIENTS}"),
        ("/mcp/only/SERVER", f"one server, its own names: {servers}"),
        *([("/mcp/servers/A,B", "some servers, their names as at /mcp")] if len(keys) > 1 else []),
        *([("/mcp/in/CONTEXT", f"what is for a context: {contexts}")] if contexts else []),
    )
    show_hanging((styled(url + path, "bold cyan"), styled(what)) for path, what in addresses)
    show("")
    asks = asks_for_token(gateway.config)
    header = ' --header "Authorization: Bearer $TRUENAME_TOKEN"' if asks else ""
    entry: dict[str, Any] = {"type": "http", "url": f"{url}/mcp"}
    if asks:
        entry["headers"] = {"Authorization": "Bearer ${TRUENAME_TOKEN}"}
    show("Claude Code:  ", f"claude mcp add --transport http {shlex.quote(name)} {url}/mcp{header}")
    show("Others:       ", json.dumps({"mcpServers": {name: entry}}))
    if settings.access.oauth or settings.access.sign_in:
        show("Clients are told where to sign in when they come.")
    show("")
    show("Ctrl-C ends it.")


def _connect_stdio(gateway: Gateway, path: str) -> None:
    # A client has another PATH than this shell, so the program is named in full.
    program = Path(sys.argv[0]).absolute()
    entry = {
        "command": str(program) if program.stem == "truename" else "truename",
        "args": ["serve", str(gateway.config.path), *_view_options(path)],
    }
    say("To connect a client:  ", json.dumps({"mcpServers": {gateway.table(path).server_name: entry}}))
    say("Serving over standard input and output.")


def _is_started(key: str, only: str | None, servers: tuple[str, ...] | None) -> bool:
    return only in (None, key) and (servers is None or key in servers)


def _view_options(path: str) -> list[str]:
    """Return the options that stand for an address, as they were given."""
    if several := servers_in(path):
        rest = _view_options(path.removesuffix(path_of(servers=several).removeprefix(MAIN)))
        return [*rest, *(text for key in several for text in ("--server", key))]
    words = iter(path.split("/")[2:])
    return [text for word in words for text in (f"--{_OPTIONS.get(word, word)}", *map(unquote, _value(word, words)))]


def _value(word: str, words: Iterator[str]) -> list[str]:
    return [] if word == _ALONE else [next(words)]


def _document(gateway: Gateway, path: str, url: str | None) -> dict[str, Any]:
    report, policy = gateway.status(), gateway.config.settings.policy
    return {
        "url": None if url is None else f"{url}/mcp",
        "style": report.style,
        "policy": None if policy is None else {"rules": len(tuple(policy.rules)), "default": policy.default},
        "ledger": None if report.ledger is None else str(report.ledger),
        "servers": [
            {"key": one.key, "state": one.state, "tools": one.tools, "seconds": one.seconds, "error": one.error}
            for one in report.servers
        ],
        "warnings": warnings_of(gateway.config.warnings),
        "tools": [{"id": str(id), "name": name} for id, name in gateway.table(path).items()],
    }
