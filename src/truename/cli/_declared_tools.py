"""Read tools from Python sources, dumps, git revisions, configurations and running servers."""

from __future__ import annotations

import re
import subprocess
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from posixpath import normpath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from truename.cli._errors import UsageError
from truename.cli._progress import busy
from truename.cli._rendering import say, styled
from truename.cli._sources import find_sources, find_unnamed, require_addresses
from truename.cli._workspace import ask_each_server
from truename.config import Config, ServerConfig, Settings
from truename.errors import TruenameError
from truename.files.user import at_home
from truename.lint import DeclaredTools, load_lint_configuration, read_declared
from truename.lint.declared import joined
from truename.lint.dumps import parse_declarations
from truename.lint.source_files import PYTHON
from truename.migration import LOCK_FILE, pins_of
from truename.migration.lock import read_lock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.conventions import Declaration, Finding
    from truename.migration import Pin

__all__ = [
    "DeclaredSources",
    "configuration_at",
    "is_address",
    "is_lock_file",
    "read_sources",
    "server_at",
    "tools_at",
    "tools_of",
]

_SCHEMES: Final = ("http://", "https://")
PREFIX: Final = "git:"
_FORM: Final = "Write it as git:REVISION:PATH, as in git:main:src."
_MOST: Final = 512 * 1024 * 1024
_SECONDS: Final = 120
_LONGEST_HEAD: Final = 200
# Regular files only: neither links nor submodules.
_ENTRY: Final = re.compile(rb"100[0-7]{3} blob ([0-9a-f]+) +([0-9]+)\t(.+)", re.DOTALL)
_UNREADABLE: Final = "unreadable_source"
_IN_MEMORY: Final = Settings(state="memory")
_LOCK: Final = ".lock"
_UPSTREAM: Final = "upstream_unavailable"
_MOST_ERRORS: Final = 5


def is_address(source: str) -> bool:
    """Return whether a SOURCE is a URL."""
    return source.lower().startswith(_SCHEMES)


def server_at(address: str) -> ServerConfig:
    """Return the server at a URL; its key is the host. Raises `UsageError`."""
    try:
        host = urlsplit(address).hostname
    except ValueError:
        host = None
    if not host:
        raise UsageError(fact=f"{address!r} is not a valid URL", advice="Write it as http://HOST:PORT/PATH.")
    return ServerConfig(key=host.replace(".", "-").replace(":", "-"), url=address, type="http")


class _File(NamedTuple):
    """A file in a git revision: its object id, its size, and its path below the requested one."""

    object: str
    size: int
    place: str


@contextmanager
def checked_out(source: str) -> Iterator[Path]:
    """Extract a file or directory of a git revision into a temporary directory, which is removed afterwards.

    The bytes are as committed: git attributes (``export-ignore``) and filters do not apply. Raises `UsageError` for
    an invalid SOURCE, and for a revision or path that git does not have.
    """
    revision, colon, path = source.removeprefix(PREFIX).partition(":")
    if not colon or not revision or not path or revision.startswith("-"):
        raise UsageError(fact=f"{source!r} is not a file in a git revision", advice=_FORM)
    if path.startswith("/"):
        raise UsageError(fact=f"the path in {source} is not relative", advice=_FORM)
    files = _files(revision, path, source)
    if sum(one.size for one in files) > _MOST:
        raise UsageError(fact=f"{source} is larger than {_MOST:,} bytes", advice="Name a smaller part of it.")
    # Each file after a header line, followed by a line end.
    content = _git(source, "cat-file", "--batch", asked=[one.object for one in files]) if files else b""
    with TemporaryDirectory(prefix="truename-") as directory:
        base = Path(directory).joinpath(*(part for part in PurePosixPath(path).parts if part != ".."))
        _unpack(files, content, base, source)
        yield base


def _files(revision: str, path: str, source: str) -> list[_File]:
    here = _git(source, "rev-parse", "--show-prefix").decode("utf-8", "surrogateescape").removesuffix("\n")
    place = normpath(here + path)
    found = _git(source, "rev-parse", "--verify", f"{revision}:{'' if place == '.' else place}").decode().strip()
    kind, _, size = _git(source, "cat-file", "--batch-check=%(objecttype) %(objectsize)", asked=[found]).partition(b" ")
    if kind == b"blob":
        return [_File(found, int(size), "")]
    # --full-tree: the path is relative to the repository, not to the present directory.
    entries = _git(source, "ls-tree", "-r", "-z", "-l", "--full-tree", found).split(b"\0")
    matches = [match for entry in entries if (match := _ENTRY.fullmatch(entry))]
    return [_File(one[1].decode(), int(one[2]), one[3].decode("utf-8", "surrogateescape")) for one in matches]


def _unpack(files: Sequence[_File], content: bytes, base: Path, source: str) -> None:
    """Write the files; a revision may be hostile, so paths with ``..`` are skipped."""
    (base.parent if [one.place for one in files] == [""] else base).mkdir(parents=True, exist_ok=True)
    start = 0
    for one in files:
        head, _, _ = content[start : start + _LONGEST_HEAD].partition(b"\n")
        if not head.endswith(b" blob %d" % one.size):
            raise UsageError(fact=f"git lacks a file of {source}", advice="Fetch all objects: `git fetch --refetch`.")
        start += len(head) + 1
        target = base / one.place if one.place else base
        if ".." not in PurePosixPath(one.place).parts:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content[start : start + one.size])
            except OSError as error:
                fact = (
                    f"{one.place!r} of {source} cannot be written to a temporary directory ({error.strerror or error})"
                )
                raise UsageError(fact=fact, advice="Name a smaller part of it.") from error
        start += one.size + 1


def _git(source: str, *words: str, asked: Sequence[str] = ()) -> bytes:
    given = "".join(f"{one}\n" for one in asked).encode()
    try:
        done = subprocess.run(["git", *words], input=given, capture_output=True, check=True, timeout=_SECONDS)  # noqa: S603, S607 - no shell; git is wherever it is installed
    except FileNotFoundError as error:
        raise UsageError(fact="git is not installed", advice="Install it, or give a file.") from error
    except subprocess.TimeoutExpired as error:
        raise UsageError(fact=f"git timed out while reading {source}", advice="Give a file.") from error
    except subprocess.CalledProcessError as error:
        message = " ".join(error.stderr.decode("utf-8", "replace").split())[:200]
        raise UsageError(fact=f"git has no {source} ({message})", advice="Check the revision and the path.") from error
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class DeclaredSources:
    """The tools of all sources, the servers that failed, and whether the sources are more than single Python files.

    ``peers`` are tools that run together with these, for checks of clashes. ``configs`` are the configurations among
    the sources.
    """

    declared: DeclaredTools
    peers: tuple[Declaration, ...] = ()
    configs: tuple[Config, ...] = ()
    failed: tuple[str, ...] = ()
    is_whole: bool = True


def read_sources(
    sources: Sequence[str], exclude: Sequence[str], beside: Sequence[str] = (), *, named_by: Path | None = None
) -> DeclaredSources:
    """Read every source; the servers of configurations, and servers given by URL, are started and asked.

    ``named_by`` is the file that lists the sources if the command line does not: they need consent then. ``beside``
    are files with peers, for which only read errors are reported. Raises `UsageError` for a source that does not
    exist, and `ConfigError` for an invalid configuration.
    """
    addresses = {source: server_at(source) for source in sources if is_address(source)}
    if named_by is not None and addresses:
        require_addresses(tuple(addresses), named_by)
    configs = {source: configuration_at(source, is_named=named_by is None) for source in sources}
    # All files in one call: the keys of servers that they create depend on how many there are.
    with busy("Reading the tools"):
        parts = [read_declared([at_home(one) for one, config in configs.items() if not config], exclude=exclude)]
    failed: list[str] = []
    for source, config in configs.items():
        if config is not None:
            declared, down = _asked(config, source)
            parts.append(declared)
            failed += down
    is_whole = any(config is not None or Path(one).suffix not in PYTHON for one, config in configs.items())
    peers = read_declared([at_home(one) for one in beside])
    parts.append(DeclaredTools(findings=tuple(one for one in peers.findings if one.rule.name == _UNREADABLE)))
    return DeclaredSources(
        declared=joined(parts),
        peers=peers.declarations,
        configs=tuple(config for config in configs.values() if config is not None and config.path is not None),
        failed=tuple(failed),
        is_whole=is_whole,
    )


def configuration_at(source: str, *, is_named: bool) -> Config | None:
    """Return the configuration that a SOURCE is; None for a file or directory. Raises `UsageError` if it is missing."""
    if is_address(source):
        return Config(servers=(server_at(source),), settings=_IN_MEMORY)
    path = at_home(source)
    try:
        is_directory, is_there = path.is_dir(), path.exists()
    except (OSError, ValueError):
        is_directory = is_there = False
    if not is_there:
        raise UsageError(
            fact=f"file not found: {source}",
            advice="Give a Python file, a directory, a dump, a configuration, or a server's http(s) address.",
        )
    if is_directory or path.suffix in PYTHON or not path.is_file():
        return None
    return find_sources([source])[0].config if is_named else find_unnamed(path).config


def _asked(config: Config, source: str) -> tuple[DeclaredTools, list[str]]:
    failed: list[str] = []
    lists: list[tuple[str, Sequence[object]]] = []
    for key, answer in ask_each_server(config).items():
        if isinstance(answer, TruenameError):
            failed.append(key)
            say(styled("error: ", "bold red"), styled(str(answer)))
        else:
            lists.append((key, answer))
    declarations, findings = parse_declarations(lists, source)
    by_server = config.identities
    known = tuple(
        replace(one, identity=by_server[one.server]) if one.server in by_server else one for one in declarations
    )
    return DeclaredTools(declarations=known, findings=tuple(findings), files=(source,)), failed


def tools_at(source: str) -> tuple[Pin, ...]:
    """Return the tools of one side of a comparison: a lock, or any source that `tools_of` reads.

    Raises `UsageError`, `ConfigError`, and an error with exit status 3 if a server failed: its tools would otherwise
    count as removed.
    """
    if source.startswith(PREFIX):
        with checked_out(source) as path:
            if is_lock_file(path):
                return read_lock(path, source).tools
            declared = read_declared([path], exclude=load_lint_configuration(Path.cwd()).settings.exclude)
            # The paths of the temporary directory are replaced by the SOURCE.
            findings = (
                replace(one, location=replace(one.location, file=one.location.file.replace(str(path), source, 1)))
                if one.location
                else one
                for one in declared.findings
            )
            _check(replace(declared, findings=tuple(findings)))
            return tuple(replace(pin, location=None) for pin in pins_of(declared.declarations))
    path = at_home(source)
    return read_lock(path).tools if is_lock_file(path) else tools_of([source])


def tools_of(sources: Sequence[str], *, named_by: Path | None = None) -> tuple[Pin, ...]:
    """Return the tools of several sources. Raises as `tools_at` does.

    ``named_by`` is the file that lists the sources if the command line does not: they need consent then.
    """
    taken = read_sources(sources, load_lint_configuration(Path.cwd()).settings.exclude, named_by=named_by)
    _check(taken.declared)
    if taken.failed:
        failed = ", ".join(taken.failed)
        raise UsageError(
            fact=f"could not list the tools of {failed}", advice="Start it by hand to see why.", code=_UPSTREAM
        )
    with busy("Computing the digests of the tools"):
        return pins_of(taken.declared.declarations)


def is_lock_file(path: Path) -> bool:
    """Return whether a path is that of a lock, by its name."""
    return path.suffix == _LOCK or path.name == LOCK_FILE


def _check(declared: DeclaredTools) -> None:
    """Raise `UsageError` for an unreadable file, since its tools would count as removed; print other findings."""
    unreadable = [one for one in declared.findings if one.rule.name == _UNREADABLE]
    for one in unreadable[1:_MOST_ERRORS]:
        say(styled("error: ", "bold red"), styled(f"{one.location}: {one.fact}"))
    if unreadable:
        first = unreadable[0]
        raise UsageError(fact=_one_line(first), advice=first.remedy)
    for one in declared.findings:
        say(styled("note: ", "yellow"), styled(f"{_one_line(one)}."))


def _one_line(finding: Finding) -> str:
    return f"{finding.location}: {finding.fact.removesuffix('.')}"
