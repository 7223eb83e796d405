"""Gather the input of `truename doctor`: clients' files, dumps, and the tools of servers that it may start."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.text import Text

from truename import dialects
from truename.catalog.read import read_listings
from truename.cli._declared_tools import is_address, server_at
from truename.cli._errors import UsageError, leaves, split, warn
from truename.cli._progress import busy
from truename.cli._questions import is_agreed, is_terminal
from truename.cli._rendering import say, shortened, show_hanging, styled
from truename.cli._sources import names_servers, read_configuration, server_entries
from truename.cli._workspace import ask_each_server
from truename.clients import Machine, config_files, find, read_source
from truename.clients.doctor import (
    RULES,
    ClientCase,
    ExaminedServer,
    ServerLists,
    StartableServer,
    cases_of,
    check_connectors,
    check_files,
    examine,
    find_startable,
    general_dialects,
    servers_of,
    would_start,
)
from truename.clients.doctor.connector_findings import configured_in
from truename.clients.doctor.file_findings import MASK, dotted, literal_secrets, masked
from truename.clients.installed_versions import InstalledClient, ask_version, installed_client
from truename.config import Config, ServerConfig, Settings, parse
from truename.config.files import decode, read_text
from truename.config.interpolate import VARIABLE, read_env_file, unset_problem
from truename.config.templates import LITERAL, translate, written
from truename.conventions import Finding, Location
from truename.editing import SourceLines
from truename.errors import ConfigError, TruenameError, excerpt
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.clients import FoundFile
    from truename.clients.doctor import DoctorReport, Identity
    from truename.config.connectors import ConfiguredEntry
    from truename.config.templates import Hole
    from truename.dialects import Dialect

__all__ = ["DoctorResult", "run_doctor", "show_plan"]

_STARTS: Final = frozenset({"command", "url", "httpUrl", "serverUrl", "transport"})
_TOML: Final = ".toml"
_IN_MEMORY: Final = Settings(state="memory")
# Clients that run parts of an entry in a shell.
_SHELLS: Final = ("crush", "crushrc")
_SHORTEST_SECRET: Final = 6
_KEY: Final = 32
_SET_IT: Final = "Set it where the gateway is started, or run `truename init --copy-secrets`."


@dataclass(frozen=True)
class ToolDump:
    """The list of tools of one server in a dump."""

    key: str
    tools: object = field(repr=False)
    path: Path


@dataclass(frozen=True, kw_only=True)
class DoctorInput:
    """Everything that the doctor examines.

    ``files`` belong to clients; ``listings`` are dumps; ``direct`` are servers of Truename's own configurations,
    ``addresses`` servers given by URL. ``searched``: the files were found by searching the machine, not named.
    """

    files: tuple[FoundFile, ...] = ()
    listings: tuple[ToolDump, ...] = ()
    direct: tuple[StartableServer, ...] = ()
    addresses: tuple[StartableServer, ...] = ()
    searched: bool = False
    project: str = ""


def read_input(sources: Sequence[str], project: Path | None, environ: Mapping[str, str] | None = None) -> DoctorInput:
    """Read the given sources or, without any, find the files of the clients on this machine. Starts nothing.

    Raises `UsageError` for a source that does not exist, and `ConfigError` for one in no known format.
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
        elif (path := _existing_file(source)).suffix.lower() == _TOML and _is_our_own(path):
            direct += _configured(path, environ)
        elif (dumped := _dumped(path)) is not None:
            listings += dumped
        else:
            files.append(read_source(path))
    return DoctorInput(
        files=tuple(files),
        listings=tuple(_with_unique_keys(listings)),
        direct=tuple(direct),
        addresses=tuple(addresses),
        project=str(machine.project),
    )


def _existing_file(source: str) -> Path:
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
    lines = SourceLines()
    entries = server_entries(decode(read_text(path), str(path), toml=True))
    places = {key: f"{table}.{dotted((key,))}" for table, key, _ in entries}
    shown = _as_written(path, config, os.environ if environ is None else environ)
    return [
        StartableServer(
            server=server,
            path=path,
            clients=(),
            of_project=False,
            written=shown.get(server.key) or replace(server, args=(MASK,) * len(server.args), url=server.url and MASK),
            location=lines.found(Location(file=str(path), key=places.get(server.key, ""))),
        )
        for server in config.enabled
    ]


def _as_written(path: Path, config: Config, environ: Mapping[str, str]) -> Mapping[str, ServerConfig]:
    """Return the servers with unresolved references, since the values may be secret."""
    try:
        names = [*environ, *(read_env_file(Path(config.settings.env_file)) if config.settings.env_file else ())]
        again = read_configuration(path, {name: f"${{{name}}}" for name in names})
    except (ConfigError, ExceptionGroup):
        return {}
    return {server.key: server for server in again.enabled}


def _dumped(path: Path) -> list[ToolDump] | None:
    """Return the lists of a dump, or None if the file is not a dump."""
    try:
        pairs = read_listings(path)
    except ConfigError:
        return None
    if any(isinstance(listing, dict) and listing.keys() & _STARTS for _, listing in pairs):
        return None
    tools = [tool for _, listing in pairs if isinstance(listing, list) for tool in listing if isinstance(tool, dict)]
    if any(tool.keys() & _STARTS and "inputSchema" not in tool for tool in tools):
        return None
    return [ToolDump(key, listing, path) for key, listing in pairs]


def _with_unique_keys(listings: Sequence[ToolDump]) -> Sequence[ToolDump]:
    """Append a number to keys that several lists share: a client cannot have two servers with one key."""
    seen: dict[str, int] = {}
    unique: list[ToolDump] = []
    for one in listings:
        seen[one.key] = number = seen.get(one.key, 0) + 1
        unique.append(one if number == 1 else ToolDump(f"{one.key}_{number}", one.tools, one.path))
    return unique


def show_plan(plan: Sequence[StartableServer], *, most: int | None = None, error: bool = False) -> None:
    """Print the commands that would be started and the URLs that would be connected, with secrets masked.

    ``most`` limits the number of characters of each.
    """
    rows = []
    for one in plan:
        whose = f"  ({', '.join(one.clients)})" if one.clients else ""
        command = would_start(one.written or one.server)
        text = Text.assemble(
            styled(command if most is None else shortened(command, most)), styled(whose, "dim"), overflow="fold"
        )
        rows.append((styled(shortened(one.server.key, _KEY), "bold"), text))
    show_hanging(rows, indent=2, error=error)


def ask_consent(plan: Sequence[StartableServer]) -> bool | None:
    """Show what would be started and ask for consent; None if there is nothing to start, or no terminal."""
    if not plan or not is_terminal():
        return None
    say("To list their tools, the doctor would start or connect to these servers:")
    show_plan(plan, error=True)
    return is_agreed("Start them? [y/N] ")


def start_and_list(
    plan: Mapping[Identity, StartableServer],
) -> tuple[dict[Identity, Sequence[object]], list[Finding]]:
    """Start each server once and return its tools; a server that fails becomes a finding.

    Raises `UsageError` if the gateway's packages are not installed.
    """
    failures: list[Finding] = []
    ready: dict[str, tuple[Identity, ServerConfig]] = {}
    for key, one in plan.items():
        try:
            server = _filled(one)
        except (TruenameError, ExceptionGroup) as error:
            first = next(leaves(error))
            if not isinstance(first, TruenameError):
                raise first from error
            failures.append(_failed(one, first))
        else:
            name = _free(server.key, ready)
            ready[name] = key, replace(server, key=name)
    answers: dict[Identity, Sequence[object]] = {}
    lists = ask_each_server(Config(servers=tuple(server for _, server in ready.values()), settings=_IN_MEMORY))
    for name, (key, _) in ready.items():
        answer = lists[name]
        if isinstance(answer, TruenameError):
            # Reported under the key in its own file, not under the unique key of this run.
            failures.append(_failed(plan[key], replace(answer, server=plan[key].server.key)))
        else:
            answers[key] = answer
    return answers, failures


def _filled(one: StartableServer) -> ServerConfig:
    """Return the server with references resolved in its client's syntax. Raises `ConfigError`."""
    server = one.server
    texts = (server.command or "", *server.args, *server.env.values(), server.url or "", *server.headers.values())
    if one.shape in _SHELLS and any("`" in text for text in texts):
        raise _unfilled(one, "it has a command substitution that only the client's shell runs")

    def refuse(hole: Hole) -> str:
        raise _unfilled(one, f"only the client can fill in {hole.said}")

    def ours(text: str | None) -> str:
        return written(translate(text or "", one.spelling or LITERAL), refuse)

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
    """Return findings about servers of Truename's own configurations that lack environment variables."""
    findings: list[Finding] = []
    for one in plan:
        if one.server.unset:
            first = one.server.unset[0]
            remedy = _SET_IT if VARIABLE.fullmatch(first.name) else first.remedy
            problem = unset_problem(one.server.unset)
            error = ConfigError(file=str(one.path), key=one.server.key, problem=problem, remedy=remedy)
            findings.append(_failed(one, error))
    return findings


def _unfilled(one: StartableServer, problem: str) -> ConfigError:
    return ConfigError(
        file=str(one.path or ""),
        key=one.server.key,
        problem=problem,
        remedy="Start it by hand, and pass a dump of its tools.",
    )


def _free(key: str, taken: Iterable[str]) -> str:
    """Return a key that is unique in this run: two clients may use one key for different servers."""
    name, number = key, 1
    while name in taken:
        number += 1
        name = f"{key} ({number})"
    return name


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
    """Mask the secrets that the server was given: some servers print them when they fail."""
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
    """The doctor's input and report, and the servers that were not asked.

    ``unasked`` lack consent (``declined``: it was refused on the terminal), ``of_project`` are configured only by a
    project's file. ``asked`` is the number of servers that were asked. ``installed`` are the clients that were found,
    by name, with their versions. ``registered`` are the entries that have a name in the MCP registry.
    """

    intake: DoctorInput
    report: DoctorReport
    unasked: tuple[StartableServer, ...] = ()
    of_project: tuple[StartableServer, ...] = ()
    asked: int = 0
    declined: bool = False
    installed: Mapping[str, InstalledClient] = field(default_factory=dict)
    registered: tuple[ConfiguredEntry, ...] = ()


class _ClientFilter:
    """A filter by the clients of ``--for``; without any, all pass. Raises `UnknownDialect`."""

    def __init__(self, names: Sequence[str]) -> None:
        given = [name.strip().lower() for name in names]
        # Names of npm's packages begin with @ too.
        parts = [(name[:1] + name[1:].partition("@")[0], name[1:].partition("@")) for name in given]
        self._names = tuple(dict.fromkeys(name for name, _ in parts))
        self._versions = {name: version for name, (_, mark, version) in parts if mark}
        # The name of a client with files selects by file.
        others = (dialects.get(self._versioned(name, name)) for name in self._names if not config_files(name))
        self._dialects = tuple(dict.fromkeys(others))
        # Its first word selects too: claude is Claude Code as well as Claude Desktop, as for `truename connect`.
        self._first_words = tuple(f"{name}-" for name in self._names if not config_files(name))

    def _versioned(self, dialect: str, name: str) -> str:
        return f"{dialect}@{self._versions[name]}" if name in self._versions else dialect

    def versions(self, files: Iterable[FoundFile]) -> dict[str, str]:
        """Return the versions that were given, by client."""
        given = {name: version for name, version in self._versions.items() if config_files(name)}
        by_dialect = {one.client: one.release for one in self._dialects if one.release}
        found = {one.file.client: by_dialect[one.file.dialect] for one in files if one.file.dialect in by_dialect}
        return {**found, **given}

    def only(self, intake: DoctorInput) -> DoctorInput:
        """Keep the files of these clients. Raises `UsageError` if there are none."""
        if not self._names:
            return intake
        meant = {"", *self._names}
        spoken = {one.client for one in self._dialects}
        files = tuple(
            one
            for one in intake.files
            if one.file.client in meant or one.file.dialect in spoken or one.file.client.startswith(self._first_words)
        )
        if intake.searched and not files:
            hows = [file.how for name in self._names for file in config_files(name) if file.how]
            raise UsageError(
                fact=f"no configuration of {' or '.join(self._searched())} was found",
                advice=" ".join(hows)
                or "`truename doctor` lists the clients that were found; for others pass a file or a dump.",
            )
        return replace(intake, files=files)

    def _searched(self) -> tuple[str, ...]:
        """Return the clients whose files were looked for, or the name where it stands for a dialect alone."""
        known = tuple(dict.fromkeys(file.client for file in config_files()))
        begun = ([one for one in known if one.startswith(f"{name}-")] for name in self._names)
        pairs = zip(self._names, begun, strict=True)
        return tuple(one for name, more in pairs for one in ([name] if name in known else more or [name]))

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """The dialects of the clients that were named."""
        of_clients = (
            dialects.get(self._versioned(file.dialect, name)) for name in self._names for file in config_files(name)[:1]
        )
        return tuple(dict.fromkeys([*self._dialects, *of_clients]))


def run_doctor(
    sources: Sequence[str],
    clients: Sequence[str],
    project: Path | None,
    *,
    start: bool,
    may_ask: bool,
    run_clients: bool = False,
) -> DoctorResult:
    """Read the input, list the tools of the servers that may be started, and examine everything.

    ``start`` is consent to start servers; ``may_ask`` allows asking for it on the terminal; ``run_clients`` is consent
    to run clients with ``--version``. Raises `UsageError`,
    `UnknownDialect`, and `ConfigError` for an invalid configuration of Truename.
    """
    wanted = _ClientFilter(clients)
    # A version that no client can have is refused before anything is started.
    meant_by_name = wanted.dialects
    with busy("Reading the files"):
        intake = wanted.only(read_input(sources, project))
        given = wanted.versions(intake.files)
        installed = _installed(intake, given, Machine.here(project), run_clients=run_clients)
    answers, left = _dumped_answers(intake)
    plan = {key: one for key, one in find_startable(intake.files).items() if key not in answers}
    held = {key: one for key, one in plan.items() if intake.searched and one.of_project}
    own = {key: one for key, one in plan.items() if key not in held}
    own |= {("direct", str(one.path), one.server.key): one for one in intake.direct if not one.server.unset}
    named = {("address", one.server.url): one for one in intake.addresses}
    # A URL on the command line is consent to ask that server.
    consent = start or (ask_consent(tuple(own.values())) if may_ask else None)
    agreed = {**own, **named} if consent else named
    lists, failures = start_and_list(agreed) if agreed else ({}, [])
    failures += unavailable(intake.direct)
    answers |= lists
    versions = {name: one.version for name, one in installed.items() if one.version} | given
    cases = list(cases_of(intake.files, answers, intake.project, versions))
    # Dumps that are given with a client's files are examined for that client.
    meant = meant_by_name or tuple(dict.fromkeys(case.dialect for case in cases)) or general_dialects()
    cases += _general(intake, left, answers, meant)
    of_nobody = [found for found in intake.files if not found.file.client]
    with busy("Checking the tools of each client"):
        about_files = check_files(of_nobody, dialects.get("universal"))
        report = examine(cases, [*failures, *about_files, *check_connectors(intake.files, intake.direct)])
    return DoctorResult(
        intake=intake,
        report=report,
        unasked=tuple(one for key, one in own.items() if key not in agreed),
        of_project=tuple(held.values()),
        asked=len(agreed),
        declined=consent is False,
        installed=installed,
        registered=tuple(one for one in configured_in(intake.files, intake.direct) if one.registry_name),
    )


def _installed(
    intake: DoctorInput, given: Mapping[str, str], machine: Machine, *, run_clients: bool
) -> dict[str, InstalledClient]:
    """Return the installed clients among those whose files were found by searching; a given version is not looked for.

    A file that was named on the command line may be from another machine.
    """
    names = dict.fromkeys(one.file.client for one in intake.files) if intake.searched else {}
    found = {name: installed_client(name, machine) for name in names if name not in given}
    there = {name: one for name, one in found.items() if one is not None}
    if run_clients:
        return {name: one if one.version else ask_version(one, machine.home) for name, one in there.items()}
    return there


def _dumped_answers(intake: DoctorInput) -> tuple[dict[Identity, object], tuple[ToolDump, ...]]:
    """Use dumps as the answers of configured servers with the same keys; return the other dumps too."""
    by_key = {one.key: one for one in intake.listings}
    plan = find_startable(intake.files)
    answers = {key: by_key[one.server.key].tools for key, one in plan.items() if one.server.key in by_key}
    used = {one.server.key for one in plan.values()}
    return answers, tuple(one for one in intake.listings if one.key not in used)


def _general(
    intake: DoctorInput, left: Iterable[ToolDump], answers: Mapping[Identity, object], wanted: Sequence[Dialect]
) -> list[ClientCase]:
    """Return one case per dialect with the tools that no client configures: other dumps, and files or URLs given."""
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
