"""Gathering the faults of one configuration: all of them are told at once."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Faults", "fault", "nearest"]

_LONGEST_KEY: Final = 200
_LONGEST_WORD: Final = 100


def fault(file: str, key: str, problem: str, remedy: str) -> ConfigError:
    """Build the error; the text is one sentence of fact and one of what to do."""
    return ConfigError(file=file, key=key, problem=problem, remedy=remedy)


def nearest(word: object, known: Iterable[str]) -> str:
    """Return a remedy for a misspelt word.

    >>> nearest("tols", ["tools", "servers"]), nearest("x", ["tools", "servers"])
    ("Did you mean 'tools'?", 'Use one of: servers, tools.')
    """
    known = sorted(known)
    close = get_close_matches(str(word)[:_LONGEST_WORD], known, 1)
    return f"Did you mean {close[0]!r}?" if close else f"Use one of: {', '.join(known)}."


class Faults:
    """The faults of one file, in the order in which they were met; ``remedy`` is what to do where nothing else is."""

    def __init__(self, file: str, remedy: str = "") -> None:
        self._file = file
        self._remedy = remedy
        self._found: list[ConfigError] = []

    def add(self, key: str, problem: str, remedy: str = "") -> None:
        """Note one fault under the key where it stands."""
        # A hostile file has keys of megabytes; where a fault is can be seen from the beginning.
        self._found.append(fault(self._file, key[:_LONGEST_KEY], problem, remedy or self._remedy))

    def apart(self) -> Faults:
        """Return an empty list of faults of the same file, for what may turn out to be none."""
        return Faults(self._file, self._remedy)

    def take(self, other: Faults) -> None:
        """Note the faults of another list too."""
        self._found += other._found

    def adopt(self, error: Exception) -> None:
        """Note a fault, or a group of them, that another reader raised; what is none is raised on."""
        if isinstance(error, ExceptionGroup):
            for one in error.exceptions:
                self.adopt(one)
        elif isinstance(error, ConfigError):
            self.add(error.key, error.problem, error.remedy)
        else:
            raise error

    def all(self) -> tuple[ConfigError, ...]:
        """Return them, in the order in which they were met."""
        return tuple(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def raise_any(self) -> None:
        """Raise the fault, or all of them as an `ExceptionGroup`; nothing if there is none."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            message = f"{self._file} has {len(self._found)} faults"
            raise ExceptionGroup(message, self._found)
