"""Asking servers for their tools: what would be started is shown first, and nothing is without a word of consent."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.cli.failure import split
from truename.cli.rendering import output, printable, say, show, styled
from truename.config import Config, ServerConfig, Settings, parse
from truename.doctor import RULES, Startable, would_start
from truename.errors import ConfigError, TruenameError, excerpt
from truename.policy import Finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.doctor import Identity

__all__ = ["ask", "consented", "show_plan"]

_IN_MEMORY: Final = Settings(ledger="memory")
_YES: Final = ("y", "yes")
# What these clients themselves would run in a shell before they start anything.
_SHELLS: Final = ("crush", "crushrc")
_SUBSTITUTED: Final = ("$(", "`")


def show_plan(plan: Sequence[Startable], *, error: bool = False) -> None:
    """Print exactly what would be started or connected, secrets masked."""
    width = max((len(printable(one.server.key)) for one in plan), default=0)
    for one in plan:
        whose = f"  ({', '.join(one.clients)})" if one.clients else ""
        key = styled(f"{printable(one.server.key):{width}}", "bold")
        show("  ", key, f"  {would_start(one.server)}", styled(whose, "dim"), error=error)


def consented(plan: Sequence[Startable]) -> bool:
    """Show what would be started and ask; without a terminal the answer is no."""
    if not plan or not (sys.stdin.isatty() and output(error=True).is_terminal):
        return False
    say("To see their tools, these servers would be started or connected:")
    show_plan(plan, error=True)
    say(styled("Start them? [y/N] ", "bold"))
    return sys.stdin.readline().strip().lower() in _YES


def ask(plan: Mapping[Identity, Startable]) -> tuple[dict[Identity, Any], list[Finding]]:
    """Start the servers, each once, and return what they list; one that fails is a finding and stops no other.

    Raises `ModuleNotFoundError` if the gateway's packages are not installed.
    """
    from truename.cli.live import ask_each  # noqa: PLC0415 - starts the gateway's half of the package

    failures: list[Finding] = []
    ready: dict[str, tuple[Identity, ServerConfig]] = {}
    for key, one in plan.items():
        try:
            server = _filled(one)
        except (TruenameError, ExceptionGroup) as error:
            failures.append(_failed(one, _first(error)))
        else:
            name = _free(server.key, ready)
            ready[name] = key, replace(server, key=name)
    answers: dict[Identity, Any] = {}
    lists = ask_each(Config(servers=tuple(server for _, server in ready.values()), settings=_IN_MEMORY))
    for name, (key, _) in ready.items():
        answer = lists[name]
        if isinstance(answer, TruenameError):
            failures.append(_failed(plan[key], answer))
        else:
            answers[key] = answer
    return answers, failures


def _filled(one: Startable) -> ServerConfig:
    """Return the server with its references replaced, by the reader of configurations. Raises `ConfigError`."""
    server = one.server
    texts = [server.command or "", *server.args, *server.env.values(), server.url or "", *server.headers.values()]
    if one.shape in _SHELLS and any(mark in text for text in texts for mark in _SUBSTITUTED):
        problem = "it has a command that only the client's shell would run"
        raise ConfigError(
            file=str(one.path or ""), key=server.key, problem=problem, remedy="Start it by hand, and give a dump."
        )
    entry = {
        "command": server.command,
        "args": list(server.args),
        "env": dict(server.env),
        "cwd": server.cwd,
        "url": server.url,
        "headers": dict(server.headers),
        "type": server.type,
    }
    kept = {key: value for key, value in entry.items() if value}
    return parse(
        json.dumps({"mcpServers": {server.key: kept}}), (one.path or Path("typed")).with_suffix(".json")
    ).servers[0]


def _free(key: str, taken: Iterable[str]) -> str:
    """Return a key that no other server of this run has: two clients may call different servers alike."""
    name, number = key, 1
    while name in taken:
        number += 1
        name = f"{key} ({number})"
    return name


def _first(error: BaseException) -> TruenameError:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TruenameError):
        return error
    raise error


def _failed(one: Startable, error: TruenameError) -> Finding:
    key, whose = excerpt(one.server.key, 64), f" ({', '.join(one.clients)})" if one.clients else ""
    if isinstance(error, ConfigError):
        fact, remedy = f"Server {key} was not started: {error.problem}", error.remedy
    else:
        fact, remedy = split(str(error))
    return Finding(
        rule=RULES["server-failed"],
        fact=f"{fact}{whose}.",
        remedy=remedy or f"Start {key} by hand to see why.",
        location=one.location,
        server=one.server.key,
    )
