"""What a plan changes in files: found out and held ready, before anything is written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from truename.catalog.globs import fits
from truename.errors import MigrationError, excerpt
from truename.migration.look import Change, Left, Look, Seen
from truename.migration.protocol import DEFAULT_PATTERN, Protocol
from truename.migration.tree import HISTORY, Found, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from truename.migration.functions import ReadFunctions
    from truename.migration.plan import Plan

__all__ = ["Survey", "survey"]


@dataclass(frozen=True, kw_only=True)
class Survey:
    """The changes, ready to be made; what is left over; how many files were read, and which patterns were excluded.

    ``taken`` are places where a new name stood before, in files that change: it means something else, or a rename that
    was made in part.
    """

    changes: tuple[Change, ...]
    leftovers: tuple[Left, ...]
    files: int
    excluded: tuple[str, ...]
    protocol: Protocol | None = None
    taken: tuple[Left, ...] = ()

    @property
    def edits(self) -> int:
        """How many places change."""
        return sum(len(change.edits) for change in self.changes)

    @property
    def moved(self) -> tuple[Change, ...]:
        """The files that get another name."""
        return tuple(change for change in self.changes if change.path != change.target)

    @property
    def is_clean(self) -> bool:
        """Whether no file has an old name any more."""
        return not self.changes and not self.leftovers

    def with_file(self, path: Path, text: str) -> Survey:
        """Return the survey with a new file that is made together with the changes."""
        made = Change(path=path, before=None, after=text.encode(), target=path)
        return replace(self, changes=(*self.changes, made))


def survey(
    plan: Plan,
    paths: Sequence[Path],
    *,
    exclude: Iterable[str] = HISTORY,
    skip: Iterable[Path] = (),
    rename_files: bool = False,
    count_up: bool = False,
    pattern: str = DEFAULT_PATTERN,
    pattern_file: str = "*",
    functions: ReadFunctions | None = None,
    on_file: Callable[[int, int], None] | None = None,
) -> Survey:
    """Read all files and say what a plan changes in them. Nothing is written.

    ``exclude`` are patterns as `walk` has them, ``skip`` files and directories. ``rename_files`` moves files whose own
    name has an old name. ``count_up`` raises the protocol version that files matching the glob ``pattern_file`` state,
    if any name changes: a second run counts nothing up. ``functions`` reads the functions of a text that are tools:
    where one gives a tool its name, the declaration gets the new one. ``on_file`` is told how many files were read, of
    how many.

    Raises `MigrationError` for a plan with refusals, a path where nothing is, a file that can't be read, two files
    that would become one, two protocol versions. What is not UTF-8 is reported as left over, if it has an old name.
    """
    excluded = tuple(exclude)
    news = tuple(plan.renames.values())
    look = Look(
        plan.lexicon(), news, rename_files=rename_files, pattern=pattern if count_up else "", functions=functions
    )
    found = _without_second_names(tuple(walk(paths, excluded, skip)))
    if rename_files:
        look = look.with_moves(each.path.name for each in found)
    seen: list[Seen] = []
    for number, each in enumerate(found, 1):
        one = look.into(each)
        seen += [one] if one.change or one.left or one.versions else []
        if on_file is not None:
            on_file(number, len(found))
    changes = [one.change for one in seen if one.change is not None]
    stating = [one for one in seen if one.versions and fits(pattern_file, one.path.as_posix())] if changes else []
    protocol = _protocol(stating, pattern)
    if protocol is not None:
        counted = {one.path: look.counted_up(one, protocol) for one in stating}
        rest = [one.change for one in seen if one.path not in counted]
        changes = [change for change in (*rest, *counted.values()) if change is not None]
    _check_apart(changes)
    return Survey(
        changes=tuple(sorted(changes, key=lambda change: change.path)),
        leftovers=tuple(left for one in seen for left in one.left),
        files=len(found),
        excluded=excluded,
        protocol=protocol,
        taken=tuple(left for one in seen if one.change is not None for left in one.taken),
    )


def _without_second_names(found: tuple[Found, ...]) -> tuple[Found, ...]:
    """Leave links out that lead to files which are looked into themselves: they change with those."""
    if not any(each.is_link for each in found):
        return found
    real = {each.path.resolve() for each in found if not each.is_link}
    return tuple(each for each in found if not each.is_link or each.path.resolve() not in real)


def _protocol(stating: Sequence[Seen], pattern: str) -> Protocol | None:
    """Return the step from the version that all files state. Raises `MigrationError` if they differ."""
    places = {version: one.path for one in stating for version in one.versions}
    if not places:
        return None
    if len(places) > 1:
        told = " and ".join(f"{version} in {places[version]}" for version in sorted(places)[:3])
        raise MigrationError(
            problem=f"the protocol version is {told}",
            remedy="Make them one first, or name the file that counts (protocol.file).",
        )
    return Protocol.after(next(iter(places)), pattern=pattern)


def _check_apart(changes: Iterable[Change]) -> None:
    """Raise `MigrationError` where a file would take another's place."""
    moved = [change for change in changes if change.target != change.path]
    taken: dict[Path, Path] = {}
    for change in moved:
        other = taken.setdefault(change.target, change.path)
        if other != change.path or change.target.exists():
            there = f"{excerpt(change.target.name)}, where there is a file already"
            raise MigrationError(
                file=str(change.path), problem=f"it would become {there}", remedy="Move one of them by hand first."
            )
