"""`truename lock`: write a repository's tool names and digests to a file for review, and check them in CI."""

import os
import secrets
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from truename.cli._changes import plain, show_changes
from truename.cli._declared_tools import tools_of
from truename.cli._errors import EXIT_FINDINGS, UsageError
from truename.cli._options import JsonOutput
from truename.cli._progress import busy
from truename.cli._project_settings import settings_here
from truename.cli._rendering import print_json, say, show, styled
from truename.errors import ConfigError
from truename.files import copy_metadata, find_obstacle, sync_directory, write_new
from truename.files.user import at_home
from truename.migration import LOCK_FILE, Lock, ToolChanges, is_lock, stated_versions, version_parts
from truename.migration import diff as compare
from truename.migration.lock import parse_lock, read_lock_bytes

__all__ = ["lock"]

_MODE: Final = 0o644
_EVERY: Final = "*"
_MOST_FILES: Final = 1_000
_MOST: Final = 1024 * 1024
SCHEMA = "truename.lock/1"
_ADDRESSES = ("http://", "https://")
Source = Annotated[
    str,
    Parameter(
        help="A Python file, a directory of them, a dump of tools/list, a configuration, or an http(s) URL; "
        "default: the sources in the lock."
    ),
]
Check = Annotated[
    bool, Parameter(name="--check", show_default=False, help="Write nothing; exit status 1 if the lock is out of date.")
]
File = Annotated[Path, Parameter(name="--file", metavar="FILE", help="The lock file.")]
Protocol = Annotated[
    str | None,
    Parameter(
        name="--protocol",
        metavar="VERSION",
        help="The version of this set of tools, such as 0.3; default: as in the files, else as in the lock.",
    ),
]
Everything = Annotated[bool, Parameter(name="--all", show_default=False, help="Show every change.")]


class ExistingLock:
    """An existing lock: its bytes (None: the file does not exist), and its content unless it is invalid."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises `ConfigError` for one that cannot be read, or is not a lock."""
        self.path = path
        self.raw = read_lock_bytes(path) if os.path.lexists(path) else None
        self.lock: Lock | None = None
        self.fault: ConfigError | None = None
        if self.raw is not None:
            try:
                self.lock = parse_lock(self.raw, str(path))
            except ConfigError as error:
                self.fault = error

    @property
    def is_ours(self) -> bool:
        """Whether the file may be replaced: it does not exist, or begins like a lock."""
        return self.raw is None or is_lock(self.raw[:4096].decode("utf-8", "replace"))


def write_lock(before: ExistingLock, lock: Lock) -> None:
    """Replace the lock that was read. Raises `ConfigError`; nothing is written then."""
    path, raw = before.path, lock.text().encode()
    if raw == before.raw:
        return
    found = find_obstacle(path, before.raw)
    if found is not None:
        raise _error(path, found.problem, found.remedy or "Nothing was written.")
    temporary = path.with_name(f".{path.name[:100]}.truename-{secrets.token_hex(4)}")
    try:
        write_new(temporary, raw)
        if before.raw is None:
            temporary.chmod(_MODE)
        else:
            copy_metadata(temporary, path)
        temporary.replace(path)
    except OSError as error:
        raise _error(path, f"it cannot be written ({error.strerror or error})", "Nothing was changed.") from error
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(path.parent)


def _error(path: Path, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy=remedy)


def protocol_here() -> str:
    """Return the version in the files of ``migration.protocol.file``; "" if not set, or no file has one.

    Raises `ConfigError` for an invalid glob, `UsageError` if files have different versions.
    """
    settings = settings_here()
    if settings.protocol_file == _EVERY:
        return ""
    files = _files(settings.protocol_file)
    found = {version: file for file in files for version in stated_versions(_text(file), settings.protocol_pattern)}
    if len(found) > 1:
        versions = ", ".join(f"{version} ({file})" for version, file in sorted(found.items()))
        raise UsageError(
            fact=f"files have different protocol versions: {versions}",
            advice="Fix the files, or pass --protocol VERSION.",
        )
    return next(iter(found), "")


def _files(pattern: str) -> list[Path]:
    try:
        # The exception for an absolute or empty pattern depends on the version of Python.
        found = sorted(Path().glob(pattern))
    except (ValueError, NotImplementedError, IndexError) as error:
        problem, remedy = f"it is not a glob ({error})", 'Write it as in "docs/protocol.md".'
        raise ConfigError(
            file="truename.toml", key="migration.protocol.file", problem=problem, remedy=remedy
        ) from error
    return [file for file in found if file.is_file()][:_MOST_FILES]


def _text(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_MOST).decode("utf-8", "replace")


def lock(
    *sources: Source,
    check: Check = False,
    file: File = Path(LOCK_FILE),
    protocol: Protocol = None,
    as_json: JsonOutput = False,
    everything: Everything = False,
) -> int:
    """Write the names and digests of this repository's tools for review; --check verifies that they are current."""
    before = ExistingLock(at_home(file))
    known = _known(before, sources, check=check)
    if protocol is not None:
        version_parts(protocol)
    told = sources or tuple(_from_here(one, before.path) for one in known.sources)
    wanted = Lock.of(
        tools_of(told, named_by=None if sources else before.path),
        [_from_lock(one, before.path) for one in told],
        protocol_here() or known.protocol if protocol is None else protocol,
    )
    with busy("Comparing the tools with the lock"):
        changes = compare(known.tools, wanted.tools)
        # Compared as text: `changes` ignores the key of a single server, and edited lines with a correct digest.
        is_true = wanted.text() == replace(known, sources=wanted.sources).text()
    if not check:
        write_lock(before, wanted)
    if as_json:
        print_json(_document(before, wanted, changes, known, is_true=is_true, check=check))
    else:
        _print(before, wanted, changes, known, is_true=is_true, check=check, everything=everything)
    return EXIT_FINDINGS if check and not is_true else 0


def _known(before: ExistingLock, sources: tuple[str, ...], *, check: bool) -> Lock:
    """Return the existing lock, or an empty one if none is needed. Raises `UsageError`, `ConfigError`."""
    if before.fault is not None:
        if check or not sources or not before.is_ours:
            raise before.fault
        say(styled("note: ", "yellow"), styled(f"{before.fault} It is replaced, without a comparison."))
        return Lock()
    if before.lock is None and check:
        raise UsageError(fact=f"{before.path} does not exist", advice="`truename lock SOURCE...` creates it.")
    if not sources and (before.lock is None or not before.lock.sources):
        raise UsageError(fact=f"no SOURCE was given, and {before.path} has none", advice="Run `truename lock src`.")
    return before.lock or Lock()


def _from_lock(source: str, path: Path) -> str:
    """Return a source's path relative to the lock's directory, the same on every machine."""
    if source.lower().startswith(_ADDRESSES):
        return source
    return Path(os.path.relpath(at_home(source), path.absolute().parent)).as_posix()


def _from_here(source: str, path: Path) -> str:
    return source if source.lower().startswith(_ADDRESSES) else os.path.relpath(path.absolute().parent / source)


def _print(
    before: ExistingLock,
    wanted: Lock,
    changes: ToolChanges,
    known: Lock,
    *,
    is_true: bool,
    check: bool,
    everything: bool,
) -> None:
    if before.lock is not None:
        show_changes(changes, everything=everything)
        for told in _beside(known, wanted, is_told=bool(changes) or is_true):
            show(told)
    tools = f"{len(wanted.tools):,} tool{'' if len(wanted.tools) == 1 else 's'}"
    if not check:
        show(styled(f"{before.path} has {tools}. Review and commit it with the change.", "bold"))
    elif not is_true:
        show(f"{before.path} is out of date. If all changes are intended, `truename lock` updates it for review.")
    else:
        show(f"{before.path} is current: {tools}.")


def _beside(known: Lock, wanted: Lock, *, is_told: bool) -> Iterator[str]:
    """Yield the differences that are not about tools: server keys, protocol version, edited lines."""
    servers = [", ".join(sorted({repr(pin.server) for pin in one.tools if pin.server})) for one in (known, wanted)]
    if known.tools and wanted.tools and servers[0] != servers[1]:
        yield f"The server is {servers[1] or 'none'}; the lock has {servers[0] or 'none'}."
    elif wanted.protocol == known.protocol and not is_told:
        yield "A line of the lock was edited by hand."
    if wanted.protocol != known.protocol:
        yield f"The protocol version is {wanted.protocol or 'none'}; the lock has {known.protocol or 'none'}."


def _document(
    before: ExistingLock, wanted: Lock, changes: ToolChanges, known: Lock, *, is_true: bool, check: bool
) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "file": str(before.path),
        "sources": list(wanted.sources),
        "tools": len(wanted.tools),
        "protocol": {"old": known.protocol, "new": wanted.protocol},
        "is_true": is_true,
        "written": not check,
        **plain(changes),
    }
