"""Asking servers for their tools: what would be started is shown first, and nothing is without a word of consent."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from truename.cli.failure import split
from truename.cli.hanging import shortened, show_hanging
from truename.cli.rendering import output, say, styled
from truename.clients.doctor import RULES, Startable, would_start
from truename.clients.doctor.file_findings import MASK, literal_secrets, masked
from truename.config import Config, ServerConfig, Settings, parse
from truename.config.templates import LITERAL, translate, written
from truename.conventions import Finding
from truename.errors import ConfigError, TruenameError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.clients.doctor import Identity
    from truename.config.templates import Hole

__all__ = ["ask", "consented", "show_plan", "unavailable"]

_IN_MEMORY: Final = Settings(ledger="memory")
_YES: Final = ("y", "yes")
# What these clients themselves would run in a shell before they start anything.
_SHELLS: Final = ("crush", "crushrc")
_SHORTEST_SECRET: Final = 6
_KEY: Final = 32


def show_plan(plan: Sequence[Startable], *, most: int | None = None, error: bool = False) -> None:
    """Print exactly what would be started or connected, secrets masked; with ``most``, its first characters."""
    rows = []
    for one in plan:
        whose = f"  ({', '.join(one.clients)})" if one.clients else ""
        said = would_start(one.written or one.server)
        told = Text.assemble(
            styled(said if most is None else shortened(said, most)), styled(whose, "dim"), overflow="fold"
        )
        rows.append((styled(shortened(one.server.key, _KEY), "bold"), told))
    show_hanging(rows, indent=2, error=error)


def consented(plan: Sequence[Startable]) -> bool | None:
    """Show what would be started and ask; None where there is nothing to start, or nobody to ask."""
    if not plan or not (sys.stdin.isatty() and output(error=True).is_terminal):
        return None
    say("To see their tools, these servers would be started or connected:")
    show_plan(plan, error=True)
    say(styled("Start them? [y/N] ", "bold"))
    return sys.stdin.readline().strip().lower() in _YES


def ask(plan: Mapping[Identity, Startable]) -> tuple[dict[Identity, Any], list[Finding]]:
    """Start the servers, each once, and return what they list; one that fails is a finding and stops no other.

    Raises `ModuleNotFoundError` if the gateway's packages are not installed.
    """
    from truename.cli.live import UpstreamError, ask_each  # noqa: PLC0415 - starts the gateway's half of the package

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
        if isinstance(answer, UpstreamError):
            # Told by the key that its own file has, not by the one of this run.
            failures.append(_failed(plan[key], replace(answer, server=plan[key].server.key)))
        else:
            answers[key] = answer
    return answers, failures


def _filled(one: Startable) -> ServerConfig:
    """Return the server with its references replaced as its client writes them. Raises `ConfigError`."""
    server = one.server
    if one.shape in _SHELLS and any("`" in text for text in _texts(server)):
        raise _unfilled(one, "it has a command that only the client's shell would run")

    def ours(text: str | None) -> str:
        parts = translate(text or "", one.spelling or LITERAL)
        return written(parts, lambda hole: _refuse(one, hole))

    entry = {
        "command": ours(server.command),
        "args": [ours(text) for text in server.args],
        "env": {name: ours(text) for name, text in server.env.items()},
        "cwd": ours(server.cwd),
        "url": ours(server.url),
        "headers": {name: ours(text) for name, text in server.headers.items()},
        "type": server.type,
    }
    kept = {key: value for key, value in entry.items() if value}
    path = (one.path or Path("typed")).with_suffix(".json")
    found = parse(json.dumps({"mcpServers": {server.key: kept}}), path).servers[0]
    if found.unset:
        raise ConfigError(
            file=str(path),
            key=server.key,
            problem=_not_set(found.unset),
            remedy=f"Set it, or write ${{{found.unset[0]}:-default}}.",
        )
    return found


def _not_set(names: Sequence[str]) -> str:
    many = len(names) > 1
    return f"the environment variable{'s' * many} {', '.join(names)} {'are' if many else 'is'} not set"


def unavailable(plan: Iterable[Startable]) -> list[Finding]:
    """Return the findings about servers of Truename's own configurations that can't start as they are configured."""
    remedy = "Set it where the gateway is started, or run `truename init --copy-secrets`."
    return [
        _failed(
            one, ConfigError(file=str(one.path), key=one.server.key, problem=_not_set(one.server.unset), remedy=remedy)
        )
        for one in plan
        if one.server.unset
    ]


def _texts(server: ServerConfig) -> tuple[str, ...]:
    return (server.command or "", *server.args, *server.env.values(), server.url or "", *server.headers.values())


def _refuse(one: Startable, hole: Hole) -> str:
    raise _unfilled(one, f"{hole.said} is filled in by the client alone")


def _unfilled(one: Startable, problem: str) -> ConfigError:
    return ConfigError(
        file=str(one.path or ""), key=one.server.key, problem=problem, remedy="Start it by hand, and give a dump."
    )


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
    key = excerpt(one.server.key, 64)
    if isinstance(error, ConfigError):
        fact, remedy = f"Server {key} was not started: {error.problem}", error.remedy
    else:
        fact, remedy = split(str(error))
    if one.clients:
        fact = fact.replace(f"Server {key}", f"Server {key} of {' and '.join(one.clients)}", 1)
    return Finding(
        rule=RULES["server_failed"],
        fact=_without_secrets(f"{fact}.", one.server),
        remedy=_without_secrets(remedy or f"Start {key} by hand to see why.", one.server),
        location=one.location,
        server=one.server.key,
    )


def _without_secrets(text: str, server: ServerConfig) -> str:
    """Mask what the server was given: some repeat it as their last words."""
    given = [
        *server.env.values(),
        *server.headers.values(),
        *(leaf.text for leaf in literal_secrets(list(server.args))),
    ]
    for value in sorted((one for one in given if len(one) >= _SHORTEST_SECRET), key=len, reverse=True):
        text = text.replace(value, MASK)
    return masked(text)
