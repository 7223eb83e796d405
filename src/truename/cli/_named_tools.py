"""Check the names of tools in skills, agents and other files of clients against the tools that are known.

The tools are those of the sources and of what is named beside them: dumps, locks, and configurations, of which only
the recorded names are read. Nothing is started.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.cli._declared_tools import configuration_at, is_address, is_lock_file
from truename.cli._progress import busy
from truename.clients.existing_tools import ExistingTools, GatewayTools
from truename.clients.name_findings import JudgedFile, judge_files
from truename.clients.named_files import ProjectServers, find_named_files, is_named_file, read_named_file
from truename.errors import ConfigError
from truename.files.private import state_directory
from truename.files.user import at_home
from truename.ledger import open_ledger
from truename.lint import DeclaredTools
from truename.lint.declared import joined
from truename.lint.dumps import unreadable_file_finding
from truename.lint.source_files import is_excluded
from truename.migration import LOCK_FILE, apply
from truename.migration.lock import read_lock
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from truename.cli._declared_tools import DeclaredSources
    from truename.config import Config
    from truename.conventions import Finding
    from truename.identity import ToolId
    from truename.ledger import Ledger
    from truename.lint import LintReport
    from truename.migration import FileRewrite

__all__ = ["BesideSources", "CheckedNames", "SortedSources", "check_names", "correct", "sort_beside", "sort_sources"]

_UNCHECKED: Final = "unchecked_name"


class SortedSources(NamedTuple):
    """The sources that declare tools, and those whose names are checked; a directory is both."""

    declaring: tuple[str, ...]
    naming: tuple[str, ...]


def sort_sources(sources: Iterable[str]) -> SortedSources:
    """Sort sources by what they are: Markdown files and other files of clients declare no tools."""
    declaring: list[str] = []
    naming: list[str] = []
    for source in sources:
        path = None if is_address(source) else at_home(source)
        is_directory, is_names = _kinds(path)
        if not is_names:
            declaring.append(source)
        if is_directory or is_names:
            naming.append(source)
    return SortedSources(tuple(declaring), tuple(naming))


def _kinds(path: Path | None) -> tuple[bool, bool]:
    """Return whether a path is a directory, and whether it is a file that names tools."""
    try:
        return (False, False) if path is None else (path.is_dir(), path.is_file() and is_named_file(path))
    except (OSError, ValueError):
        return False, False


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


class BesideSources(NamedTuple):
    """What is named beside the sources: files with tools, locks, and configurations."""

    files: tuple[str, ...] = ()
    locks: tuple[Path, ...] = ()
    configs: tuple[Config, ...] = ()


def sort_beside(named: Sequence[str], configured: Sequence[str]) -> BesideSources:
    """Sort the sources named beside others on the command line, and in the settings: these need consent.

    Raises `UsageError` for a configuration without consent, and `ConfigError` for an invalid one.
    """
    files: list[str] = []
    locks: list[Path] = []
    configs: list[Config] = []
    for source, is_named in (*((one, True) for one in named), *((one, False) for one in configured)):
        path = at_home(source)
        if is_lock_file(path):
            locks.append(path)
        elif _is_file(path) and (config := configuration_at(source, is_named=is_named)) is not None:
            configs.append(config)
        else:
            files.append(source)
    return BesideSources(tuple(files), tuple(locks), tuple(configs))


@dataclass(frozen=True, kw_only=True)
class CheckedNames:
    """The findings about names in files, and the files in which some can be corrected."""

    declared: DeclaredTools = field(default_factory=DeclaredTools)
    correctable: tuple[JudgedFile, ...] = ()

    def corrections(self, report: LintReport) -> tuple[FileRewrite, ...]:
        """Return the changes that correct the old names whose findings count."""
        places: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        for finding in report.findings:
            if finding.location is not None:
                places[finding.location.file].add((finding.location.line, finding.location.column))
        found = (one.corrected(places.get(str(one.file.path), ())) for one in self.correctable)
        return tuple(one for one in found if one is not None)


def check_names(
    naming: Sequence[str], exclude: Sequence[str], taken: DeclaredSources, beside: BesideSources, base: Path
) -> CheckedNames:
    """Check the names in these files, and in the files below these directories, against all known tools.

    A ``truename.lock`` in ``base`` counts too. Raises `LedgerError` for a ledger that cannot be read.
    """
    if not naming:
        return CheckedNames()
    with busy("Checking the names of tools"), ExitStack() as stack:
        findings: list[Finding] = []
        tools = [(one.server, one.name) for one in (*taken.declared.declarations, *taken.peers)]
        automatic = (base / LOCK_FILE,) if (base / LOCK_FILE).is_file() else ()
        for path in dict.fromkeys((*beside.locks, *automatic)):
            try:
                tools += ((pin.server, pin.name) for pin in read_lock(path).tools)
            except ConfigError as error:
                findings.append(unreadable_file_finding(error, str(path)))
        listed: defaultdict[str, list[str]] = defaultdict(list)
        for server, name in tools:
            listed[server].append(name)
        gateways = [_gateway(one, listed, stack) for one in (*taken.configs, *beside.configs)]
        known = ExistingTools.of(tools, gateways)
        servers = ProjectServers(known.listed)
        files = _files(naming, exclude)
        explicit = {path for path, inside in files if inside is None}
        parts = [DeclaredTools(findings=tuple(findings))]
        correctable: list[JudgedFile] = []
        for one in judge_files((read_named_file(path, servers, inside) for path, inside in files), known, servers):
            file = str(one.file.path)
            problem = () if one.file.problem is None else (unreadable_file_finding(one.file.problem, file),)
            # In a directory without any known server, the user asked about something else.
            is_told = bool(known.listed) or one.file.path in explicit
            told = (finding for finding in one.findings if is_told or finding.rule.name != _UNCHECKED)
            parts.append(DeclaredTools(findings=(*problem, *told), files=(file,), names=one.names))
            # The texts of all other files are forgotten.
            correctable += [one] if one.edits else []
    return CheckedNames(declared=joined(parts), correctable=tuple(correctable))


def _gateway(config: Config, listed: Mapping[str, Sequence[str]], stack: ExitStack) -> GatewayTools:
    location = config.state_location()
    ledger: Ledger | None = None
    if location.has("ledger"):
        ledger = open_ledger(location, readonly=True)
        stack.callback(ledger.close)
    proposals: dict[ToolId, str] = {}
    if location.has("rename"):
        with RenameStore(location, readonly=True) as store:
            proposals = {one.old: one.name for one in store.proposals if one.old is not None}
    return GatewayTools(config, ledger, listed, proposals)


def _files(naming: Sequence[str], exclude: Sequence[str]) -> list[tuple[Path, Path | None]]:
    """Return each file once, with the directory in which it was found (None for one that was named).

    A link to a file that is there too, as ``CLAUDE.md`` to ``AGENTS.md``, is no other file.
    """
    paths = [at_home(source) for source in naming]
    found: list[tuple[Path, Path | None]] = [(path, None) for path in paths if not path.is_dir()]
    for directory in (path for path in paths if path.is_dir()):
        below = (file for file in find_named_files(directory) if not is_excluded(file, directory, exclude))
        found += ((file, directory) for file in below)
    once: dict[Path, tuple[Path, Path | None]] = {}
    for file, inside in sorted(found, key=lambda one: _is_link(one[0])):
        once.setdefault(_target(file), (file, inside))
    return list(once.values())


def _is_link(path: Path) -> bool:
    try:
        return path.is_symlink()
    except OSError:
        # Reading it will report the error.
        return False


def _target(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def correct(changes: Sequence[FileRewrite]) -> None:
    """Write the corrections, all or none; ``truename rename --undo`` restores the files.

    Raises `ConfigError` for a file that must not be replaced, several as an `ExceptionGroup`.
    """
    # A run that corrects nothing needs no directory for the originals.
    if changes:
        apply(changes, state_directory() / "migrations", note={"renames": {}, "ledger": False})
