"""The tools at one time: of a lock, of sources and dumps, of servers that are asked, or of a revision in git."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.cli.declaring import take
from truename.cli.failure import UsageFault
from truename.cli.rendering import say, styled
from truename.cli.revisions import PREFIX, checked_out
from truename.files.user import at_home
from truename.lint import configured_at, read_declared
from truename.migration import LOCK_FILE, pinned
from truename.migration.lock import read_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.conventions import Finding, Location
    from truename.lint import DeclaredTools
    from truename.migration import Pin

__all__ = ["tools_at", "tools_of"]

_LOCK: Final = ".lock"
_UNREADABLE: Final = "unreadable_source"
_UPSTREAM: Final = "upstream_unavailable"
_TOLD: Final = 5


def tools_at(source: str) -> tuple[Pin, ...]:
    """Return the tools of one side of a comparison: a lock, or whatever else `tools_of` reads.

    Raises `UsageFault`, `ConfigError`, and an error of exit status 3 where a server failed: a side of which a part is
    missing would be compared as if that had been removed.
    """
    if source.startswith(PREFIX):
        with checked_out(source) as path:
            return read_lock(path, source).tools if _is_lock(path) else _of_files(path, source)
    path = at_home(source)
    return read_lock(path).tools if _is_lock(path) else tools_of([source])


def tools_of(sources: Sequence[str], *, named_by: Path | None = None) -> tuple[Pin, ...]:
    """Return the tools of sources, dumps, configurations and addresses together; raises as `tools_at` does.

    ``named_by`` is the file that names the sources where no command line does: they need consent then.
    """
    taken = take(sources, configured_at(Path.cwd()).settings.exclude, named_by=named_by)
    _check(taken.declared)
    if taken.failed:
        failed = ", ".join(taken.failed)
        raise UsageFault(fact=f"{failed} could not be asked", advice="Start it by hand to see why.", code=_UPSTREAM)
    return pinned(taken.declared.declarations)


def _is_lock(path: Path) -> bool:
    return path.suffix == _LOCK or path.name == LOCK_FILE


def _of_files(path: Path, source: str) -> tuple[Pin, ...]:
    declared = read_declared([path], exclude=configured_at(Path.cwd()).settings.exclude)
    # Where they lie while they are looked at is nobody's concern.
    told = [replace(one, location=_called(one.location, path, source)) for one in declared.findings]
    _check(replace(declared, findings=tuple(told)))
    return tuple(replace(pin, location=None) for pin in pinned(declared.declarations))


def _called(place: Location | None, path: Path, source: str) -> Location | None:
    return place and replace(place, file=place.file.replace(str(path), source, 1))


def _check(declared: DeclaredTools) -> None:
    """Raise `UsageFault` for a file that can't be read: its tools would count as removed."""
    unreadable = [one for one in declared.findings if one.rule.name == _UNREADABLE]
    for one in unreadable[1:_TOLD]:
        say(styled("error: ", "bold red"), styled(f"{one.location}: {one.fact}"))
    if unreadable:
        first = unreadable[0]
        raise UsageFault(fact=_told(first), advice=first.remedy)
    for one in declared.findings:
        say(styled("note: ", "yellow"), styled(f"{_told(one)}."))


def _told(finding: Finding) -> str:
    return f"{finding.location}: {finding.fact.removesuffix('.')}"
