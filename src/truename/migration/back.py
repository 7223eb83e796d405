"""Giving files back what they held: after a failure, after a kill, and when a migration is undone."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError
from truename.files import dress, read_plain, write_new
from truename.migration.look import Change
from truename.migration.originals import digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.migration.originals import Entry, Originals

__all__ = ["beside", "changed_since", "left_alone", "remove_empty", "reversed_changes", "take_back"]

BY_HAND: Final = "Nothing was changed; see to it, or leave it out (--exclude)."


def left_alone(path: Path, problem: str, remedy: str) -> ConfigError:
    """Build the error for a file that is not going to be changed."""
    return ConfigError(code="left_alone", file=str(path), key="", problem=problem, remedy=remedy)


def beside(path: Path, originals: Originals) -> Path:
    """Return where the new bytes of a file stand until it is replaced."""
    # Long names may begin alike, and have hardly room for more.
    return path.with_name(f".{path.name[:20]}-{digest(os.fsencode(path.name))[:16]}.truename-{originals.mark}")


def take_back(originals: Originals, begun: int | None = None) -> list[ConfigError]:
    """Give the files their bytes back that were changed already; what somebody changed since is left, and told.

    ``begun`` is how many of them may have been changed, None if a kill kept that from being known.
    """
    left: list[ConfigError] = []
    for number, entry in enumerate(originals.entries):
        try:
            beside(Path(entry.target), originals).unlink(missing_ok=True)
            if begun is None or number < begun:
                _give_back(entry, originals)
        except OSError as error:
            left.append(left_alone(Path(entry.path), f"it can't be given back ({error.strerror or error})", BY_HAND))
        except ConfigError as error:
            left.append(error)
    remove_empty(Path(made) for made in originals.made)
    return left


def _give_back(entry: Entry, originals: Originals) -> None:
    path, target = Path(entry.path), Path(entry.target)
    raw = originals.bytes_of(entry)
    here = _digest(path)
    if raw is not None and here != entry.before:
        if here is not None and here != entry.after:
            raise left_alone(
                path,
                "it was changed by somebody else meanwhile",
                f"{originals.directory} has its bytes; remove it to go on.",
            )
        _put(path, raw, target, originals)
    if (path != target or raw is None) and entry.after is not None and _digest(target) == entry.after:
        target.unlink()


def _put(path: Path, raw: bytes, like: Path, originals: Originals) -> None:
    new = beside(path, originals)
    new.unlink(missing_ok=True)
    write_new(new, raw)
    if like.exists():
        dress(new, like)
    os.replace(new, path)  # noqa: PTH105 - as above


def _digest(path: Path) -> str | None:
    try:
        return digest(read_plain(path))
    except FileNotFoundError:
        return None
    except OSError:
        # A link or a directory stands there now, which is nothing that a migration made.
        return ""


def changed_since(last: Originals) -> list[ConfigError]:
    """Return an error for every file that is no longer what a migration made of it."""
    return [
        left_alone(Path(entry.target), "it was changed since", "Nothing was changed; undo it by hand.")
        for entry in last.entries
        if _digest(Path(entry.target)) != entry.after or (entry.path != entry.target and os.path.lexists(entry.path))
    ]


def reversed_changes(last: Originals) -> list[Change]:
    """Return the changes that undo a migration. Raises `ConfigError` for originals that are damaged."""
    return [_reversed(last, entry) for entry in reversed(last.entries)]


def _reversed(last: Originals, entry: Entry) -> Change:
    current = None if entry.after is None else read_plain(Path(entry.target))
    return Change(path=Path(entry.target), before=current, after=last.bytes_of(entry), target=Path(entry.path))


def remove_empty(directories: Iterable[Path]) -> None:
    """Remove those of the directories in which nothing is, the innermost first."""
    for directory in sorted(directories, reverse=True):
        with contextlib.suppress(OSError):
            directory.rmdir()
