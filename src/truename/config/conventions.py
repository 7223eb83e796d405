"""Find a team's convention: in truename.toml or pyproject.toml, in this directory or the nearest above it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.config.files import decode, read_text
from truename.conventions import read_convention
from truename.errors import config_error

if TYPE_CHECKING:
    from truename.conventions import Convention

__all__ = ["FoundConvention", "convention_in", "find_convention"]

_TABLE: Final = "convention"
_OWN: Final = ((_TABLE,), ("truename", _TABLE))
# Where the table may stand in each file, in the order in which the files of one directory are looked at.
_PLACES: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "truename.toml": _OWN,
    "pyproject.toml": (("tool", "truename", _TABLE),),
}
_TAIL: Final = ("preset", "categories", "apps", "platforms", "owners", "reserved")
_DEEPEST: Final = 64
# Likely misspellings: conventions, Convention.
_NEAR: Final = 0.85


@dataclass(frozen=True, kw_only=True)
class FoundConvention:
    """A convention and where it was found; ``section`` is the path of its table in the file."""

    convention: Convention
    file: Path
    section: str


def find_convention(start: Path | str = ".") -> FoundConvention | None:
    """Return the convention for this file or directory: the nearest upwards, None if there is none.

    A ``truename.toml`` without ``[convention]`` and a ``pyproject.toml`` without ``[tool.truename.convention]`` are
    skipped. Raises `ConfigError`, or an `ExceptionGroup` of them, for a file that cannot be read: it might hold one.
    """
    path = Path(start).absolute()
    directories = (path, *path.parents) if path.is_dir() else tuple(path.parents)
    for directory in directories[:_DEEPEST]:
        for name in _PLACES:
            if (directory / name).is_file() and (found := convention_in(directory / name)) is not None:
                return found
    return None


def convention_in(file: Path | str) -> FoundConvention | None:
    """Return the convention in this file, None if it has no such table. Raises the errors of `find_convention`.

    Any TOML file may be given; only ``pyproject.toml`` has the table under ``tool.truename``.
    """
    path = Path(file)
    places = _PLACES.get(path.name, _OWN)
    content = decode(read_text(path), str(path), toml=True)
    found = {place: table for place in places if (table := _table(content, place, path)) is not None}
    if len(found) > 1:
        where = " and at ".join(map(".".join, found))
        raise config_error(str(path), ".".join(places[1]), f"a convention is at {where}", "Keep one of them.")
    if not found:
        _refuse_stray(content, places[0], path)
        return None
    ((place, table),) = found.items()
    return FoundConvention(convention=read_convention(table, str(path)), file=path, section=".".join(place))


def _table(content: Mapping[str, Any], place: tuple[str, ...], path: Path) -> object:
    found: Any = content
    for key in place:
        if not isinstance(found, Mapping):
            raise config_error(str(path), ".".join(place), "it is not in a table", f"Write [{'.'.join(place)}].")
        found = found.get(key)
        if found is None:
            return None
    return found


def _refuse_stray(content: Mapping[str, Any], place: tuple[str, ...], path: Path) -> None:
    """Report a convention outside its table: skipped silently, everybody would believe that it is checked."""
    found = _table(content, place[:-1], path) if len(place) > 1 else content
    above, where = found if isinstance(found, Mapping) else {}, ".".join(place)
    if slips := get_close_matches(_TABLE, above, 1, _NEAR):
        key, problem, remedy = slips[0], "nothing reads a table of this name", f"Did you mean [{where}]?"
    elif stray := [key for key in _TAIL if key in above]:
        problem = f"it belongs to a convention, which has a table of its own here: {where}"
        key, remedy = stray[0], f"Move it below [{where}]."
    else:
        return
    raise config_error(str(path), ".".join((*place[:-1], key)), problem, remedy)
