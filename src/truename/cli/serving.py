"""What `truename serve` does with a gateway: starts it, says what it shows and how to connect, and waits."""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import anyio
from anyio import to_thread

from truename import dialects
from truename.cli.comparison import fates, losses
from truename.cli.ending import Ending, ending_signals
from truename.cli.hanging import show_hanging
from truename.cli.logs import log_to_stderr
from truename.cli.names import by_default, listing, summary
from truename.cli.progress import Progress
from truename.cli.reloading import Reloads, warn, warnings_of
from truename.cli.rendering import print_json, say, show, styled
from truename.clients import Machine, find
from truename.clients.selection import OWN_SCOPES
from truename.config import verify
from truename.config.addresses import MAIN, path_of, servers_in
from truename.gateway import Gateway, background, listening, reserve, serve_stdio, spare_collector, traces_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from socket import socket
    from typing import Literal, TypeAlias

    from truename.catalog import Catalog
    from truename.cli.options import LogFormat, LogLevel
    from truename.config import Config
    from truename.config.watch import Reread

    # How the start is told: to programs, whole, or in a few lines.
    Telling: TypeAlias = Literal["json", "all", "short"]

__all__ = ["run"]

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
    end_traces = traces_of(config.settings)
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
    compared = await to_thread.run_sync(fates, table.catalog) if telling == "all" else None
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
    asks = gateway.config.asks_for_token
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
