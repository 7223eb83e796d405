"""Gather what `truename doctor` examines: client files, dumps, and the tools of servers that it may start."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from truename import dialects
from truename.catalog.read import read_listings
from truename.cli._declared_tools import is_address, server_at
from truename.cli._errors import UsageError, split
from truename.cli._reload import warn
from truename.cli._rendering import output, say, shortened, show_hanging, styled
from truename.cli._sources import names_servers, read_configuration
from truename.cli._workspace import without_gateway
from truename.clients import Machine, config_files, find, read_source
from truename.clients.doctor import (
    RULES,
    ClientCase,
    ExaminedServer,
    ServerLists,
    StartableServer,
    cases_of,
    check_files,
    examine,
    find_startable,
    general_dialects,
    servers_of,
    would_start,
)
from truename.clients.doctor.file_findings import MASK, dotted, literal_secrets, masked
from truename.config import Config, ServerConfig, Settings, parse
from truename.config.interpolate import VARIABLE, UnsetReference, read_env_file, unset_problem
from truename.config.templates import LITERAL, translate, written
from truename.conventions import Finding, Location
from truename.errors import ConfigError, TruenameError, excerpt
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.clients import FoundFile
    from truename.clients.doctor import DoctorReport, Identity
    from truename.config.templates import Hole
    from truename.dialects import Dialect

__all__ = ["DoctorResult", "look", "show_plan"]

_STARTS: Final = frozenset({"command", "url", "httpUrl", "serverUrl", "transport"})
_TOML: Final = ".toml"
_IN_MEMORY: Final = Settings(state="memory")
_YES: Final = ("y", "yes")
# What these clients themselves would run in a shell before they start anything.
_SHELLS: Final = ("crush", "crushrc")
_SHORTEST_SECRET: Final = 6
_KEY: Final = 32


@dataclass(frozen=True)
class ToolDump:
    """What a dump says that one server lists."""

    key: str
    tools: Any = field(repr=False)
    path: Path


@dataclass(frozen=True, kw_only=True)
class DoctorInput:
    """All that there is to look at.

    ``files`` belong to clients; ``listings`` are dumps; ``direct`` are servers of Truename's own configurations and
    of addresses that were named, by which no client is meant. ``searched`` tells that the machine was looked through.
    """

    files: tuple[FoundFile, ...] = ()
    listings: tuple[ToolDump, ...] = ()
    direct: tuple[StartableServer, ...] = ()
    addresses: tuple[StartableServer, ...] = ()
    searched: bool = False
    project: str = ""


def read_input(sources: Sequence[str], project: Path | None, environ: Mapping[str, str] | None = None) -> DoctorInput:
    """Read what is named, or find what the clients of this machine have. Starts nothing.

    Raises `UsageError` for a source that is not there, and `ConfigError` for one that is nothing of the kind.
    """
    machine = Machine.here(project)
    if not sources:
        return DoctorInput(files=find(machine), searched=True, project=str(machine.project))
    files: list[FoundFile] = []
    listings: list[ToolDump] = []
    direct: list[StartableServer] = []
    addresses: list[StartableServer] = []
    for source in sources:
        if is_address(source):
            addresses.append(StartableServer(server=server_at(source), path=None, clients=(), of_project=False))
        elif (path := _there(source)).suffix.lower() == _TOML and _is_our_own(path):
            direct += _configured(path, environ)
        elif (dumped := _dumped(path)) is not None:
            listings += dumped
        else:
            files.append(read_source(path))
    return DoctorInput(
        files=tuple(files),
        listings=tuple(_with_keys_of_their_own(listings)),
        direct=tuple(direct),
        addresses=tuple(addresses),
        project=str(machine.project),
    )


def _there(source: str) -> Path:
    path = at_home(source)
    try:
        found = path.is_file()
    except (OSError, ValueError):
        found = False
    if not found:
        raise UsageError(
            fact=f"file not found: {source}", advice="Give a dump, a configuration, or a server's http(s) address."
        )
    return path.absolute()


def _is_our_own(path: Path) -> bool:
    try:
        return names_servers(path)
    except ConfigError:
        return False


def _configured(path: Path, environ: Mapping[str, str] | None) -> list[StartableServer]:
    config = read_configuration(path, environ)
    warn(config.warnings)
    shown = _as_written(path, config, os.environ if environ is None else environ)
    return [
        StartableServer(
            server=server,
            path=path,
            clients=(),
            of_project=False,
            written=shown.get(server.key) or _masked(server),
            location=Location(file=str(path), key=dotted((server.key,))),
        )
        for server in config.enabled
    ]


def _as_written(path: Path, config: Config, environ: Mapping[str, str]) -> Mapping[str, ServerConfig]:
    """Return the servers with their references left in: what stands behind one may be a secret."""
    try:
        names = [*environ, *(read_env_file(Path(config.settings.env_file)) if config.settings.env_file else ())]
        again = read_configuration(path, {name: f"${{{name}}}" for name in names})
    except (ConfigError, ExceptionGroup):
        return {}
    return {server.key: server for server in again.enabled}


def _masked(server: ServerConfig) -> ServerConfig:
    return replace(server, args=(MASK,) * len(server.args), url=server.url and MASK)


def _dumped(path: Path) -> list[ToolDump] | None:
    """Return the lists of a dump, or None for a file that is none."""
    try:
        pairs = read_listings(path)
    except ConfigError:
        return None
    if any(isinstance(listing, dict) and listing.keys() & _STARTS for _, listing in pairs):
        return None
    if any(_is_entry(tool) for _, listing in pairs if isinstance(listing, list) for tool in listing):
        return None
    return [ToolDump(key, listing, path) for key, listing in pairs]


def _is_entry(tool: object) -> bool:
    return isinstance(tool, dict) and bool(tool.keys() & _STARTS) and "inputSchema" not in tool


def _with_keys_of_their_own(listings: Sequence[ToolDump]) -> Sequence[ToolDump]:
    """Give the keys that several lists have a number: a client can't have two servers of one key."""
    seen: dict[str, int] = {}
    told: list[ToolDump] = []
    for one in listings:
        seen[one.key] = number = seen.get(one.key, 0) + 1
        told.append(one if number == 1 else ToolDump(f"{one.key}_{number}", one.tools, one.path))
    return told


def show_plan(plan: Sequence[StartableServer], *, most: int | None = None, error: bool = False) -> None:
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


def consented(plan: Sequence[StartableServer]) -> bool | None:
    """Show what would be started and ask; None where there is nothing to start, or nobody to ask."""
    if not plan or not (sys.stdin.isatty() and output(error=True).is_terminal):
        return None
    say("To see their tools, these servers would be started or connected:")
    show_plan(plan, error=True)
    say(styled("Start them? [y/N] ", "bold"))
    return sys.stdin.readline().strip().lower() in _YES


def ask(plan: Mapping[Identity, StartableServer]) -> tuple[dict[Identity, Any], list[Finding]]:
    """Start the servers, each once, and return what they list; one that fails is a finding and stops no other.

    Raises `ModuleNotFoundError` if the gateway's packages are not installed.
    """
    from truename.cli._servers import list_tools_of_each  # noqa: PLC0415 - the gateway is an optional extra

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
    lists = list_tools_of_each(Config(servers=tuple(server for _, server in ready.values()), settings=_IN_MEMORY))
    for name, (key, _) in ready.items():
        answer = lists[name]
        if not isinstance(answer, list):
            # Told by the key that its own file has, not by the one of this run.
            failures.append(_failed(plan[key], replace(answer, server=plan[key].server.key)))
        else:
            answers[key] = answer
    return answers, failures


def _filled(one: StartableServer) -> ServerConfig:
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
            problem=unset_problem(found.unset),
            remedy=found.unset[0].remedy,
        )
    return found


def unavailable(plan: Iterable[StartableServer]) -> list[Finding]:
    """Return the findings about servers of Truename's own configurations that can't start as they are configured."""
    return [
        _failed(
            one,
            ConfigError(
                file=str(one.path),
                key=one.server.key,
                problem=unset_problem(one.server.unset),
                remedy=_unset_remedy(one.server.unset[0]),
            ),
        )
        for one in plan
        if one.server.unset
    ]


def _unset_remedy(reference: UnsetReference) -> str:
    if VARIABLE.fullmatch(reference.name):
        return "Set it where the gateway is started, or run `truename init --copy-secrets`."
    return reference.remedy


def _texts(server: ServerConfig) -> tuple[str, ...]:
    return (server.command or "", *server.args, *server.env.values(), server.url or "", *server.headers.values())


def _refuse(one: StartableServer, hole: Hole) -> str:
    raise _unfilled(one, f"{hole.said} is filled in by the client alone")


def _unfilled(one: StartableServer, problem: str) -> ConfigError:
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


def _failed(one: StartableServer, error: TruenameError) -> Finding:
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


@dataclass(frozen=True, kw_only=True)
class DoctorResult:
    """What was looked at, what came of it, and the servers that were not asked: by leave, and of a project.

    ``declined``: a person was shown what would be started, and said no.
    """

    intake: DoctorInput
    report: DoctorReport
    unasked: tuple[StartableServer, ...] = ()
    of_project: tuple[StartableServer, ...] = ()
    asked: int = 0
    declined: bool = False


class _ClientFilter:
    """Which clients are meant: those of --for, or all. Raises `UnknownDialect`."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = tuple(name.strip().lower() for name in names)
        self._dialects = tuple(dict.fromkeys(found for name in self._names if (found := _dialect(name)) is not None))

    def only(self, intake: DoctorInput) -> DoctorInput:
        """Return what is there of these clients. Raises `UsageError` where nothing is."""
        if not self._names:
            return intake
        files = tuple(found for found in intake.files if not found.file.client or self._means(found))
        if intake.searched and not files:
            hows = [file.how for name in self._names for file in config_files(name) if file.how]
            raise UsageError(
                fact=f"no configuration of {' or '.join(self._names)} was found",
                advice=" ".join(hows)
                or "`truename doctor` shows those that are there; give a file or a dump for others.",
            )
        return replace(intake, files=files)

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """Those that were named, also by the name of a client whose dialect they are."""
        of_clients = (dialects.get(file.dialect) for name in self._names for file in config_files(name)[:1])
        return tuple(dict.fromkeys([*self._dialects, *of_clients]))

    def _means(self, found: FoundFile) -> bool:
        return found.file.client in self._names or found.file.dialect in {one.name for one in self._dialects}


def _dialect(name: str) -> Dialect | None:
    """Return the dialect of this name; none for a client that has files but no row of its own."""
    return None if config_files(name) else dialects.get(name)


def look(
    sources: Sequence[str], clients: Sequence[str], project: Path | None, *, start: bool, may_ask: bool
) -> DoctorResult:
    """Take in what is named or found, ask the servers that may be asked, and examine all of it.

    ``start`` is leave to start servers, ``may_ask`` to ask a person for it. Raises `UsageError`, `UnknownDialect`, and
    what is wrong with a configuration of Truename's own.
    """
    wanted = _ClientFilter(clients)
    intake = wanted.only(read_input(sources, project))
    answers, left = _dumped_answers(intake)
    plan = {key: one for key, one in find_startable(intake.files).items() if key not in answers}
    held = {key: one for key, one in plan.items() if intake.searched and one.of_project}
    own = {key: one for key, one in plan.items() if key not in held}
    own |= {("direct", str(one.path), one.server.key): one for one in intake.direct if not one.server.unset}
    named = {("address", one.server.url): one for one in intake.addresses}
    # An address that was typed is asked for its tools: that is what it was typed for.
    leave = start or (consented(tuple(own.values())) if may_ask else None)
    agreed = {**own, **named} if leave else named
    told, failures = _asked(agreed) if agreed else ({}, [])
    failures += unavailable(intake.direct)
    answers |= told
    cases = list(cases_of(intake.files, answers, intake.project))
    # Dumps beside the files of a client are meant for that client.
    meant = wanted.dialects or tuple(dict.fromkeys(case.dialect for case in cases)) or general_dialects()
    cases += _general(intake, left, answers, meant)
    of_nobody = [found for found in intake.files if not found.file.client]
    return DoctorResult(
        intake=intake,
        report=examine(cases, [*failures, *check_files(of_nobody, dialects.get("universal"))]),
        unasked=tuple(one for key, one in own.items() if key not in agreed),
        of_project=tuple(held.values()),
        asked=len(agreed),
        declined=leave is False,
    )


def _dumped_answers(intake: DoctorInput) -> tuple[dict[Identity, Any], tuple[ToolDump, ...]]:
    """Take dumps as the answers of the configured servers of the same keys; the other dumps are left."""
    by_key = {one.key: one for one in intake.listings}
    plan = find_startable(intake.files)
    answers = {key: by_key[one.server.key].tools for key, one in plan.items() if one.server.key in by_key}
    used = {one.server.key for one in plan.values()}
    return answers, tuple(one for one in intake.listings if one.key not in used)


def _asked(plan: Mapping[Identity, StartableServer]) -> tuple[dict[Identity, Any], list[Finding]]:
    try:
        return ask(plan)
    except ModuleNotFoundError as error:
        raise without_gateway(error) from error


def _general(
    intake: DoctorInput, left: Iterable[ToolDump], answers: Mapping[Identity, Any], wanted: Sequence[Dialect]
) -> list[ClientCase]:
    """Return the cases of tools that belong to no certain client: all of them together, in each dialect."""
    servers = [ExaminedServer.listing(one.key, one.tools, Location(file=str(one.path))) for one in left]
    servers += servers_of(intake.files, answers)
    for kind, several in (("direct", intake.direct), ("address", intake.addresses)):
        for one in several:
            key = (kind, one.server.url) if kind == "address" else (kind, str(one.path), one.server.key)
            if key in answers:
                servers.append(ExaminedServer.listing(one.server.key, answers[key], one.location, config=one.server))
    if not servers:
        return []
    lists = ServerLists(servers)
    beside = " (dumps)" if any(found.file.client for found in intake.files) else ""
    return [ClientCase(dialect=one, lists=lists, title=f"{one.title}{beside}") for one in wanted]
