"""Checked access to the fields of one object of a configuration: each getter notes a fault and goes on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from truename.config.interpolate import interpolate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.errors import ConfigErrors

__all__ = ["Fields"]


class Fields:
    """One object of the file: where it stands, and its values, interpolated on the way out."""

    def __init__(self, values: Mapping[str, Any], where: str, environ: Mapping[str, str], faults: ConfigErrors) -> None:
        self._values = values
        self._where = where
        self._environ = environ
        self.faults = faults

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def nested(self, name: str, wanted: str) -> Fields | None:
        """Return the fields of an object inside, or None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.wrong(name, wanted)
            return None
        return Fields(value, self.where(name), self._environ, self.faults)

    def raw(self, name: str) -> object:
        """Return a value as it stands, for a reader that judges it by itself."""
        return self._values.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def is_list(self, name: str) -> bool:
        """Tell whether a field holds a list."""
        return isinstance(self._values.get(name), list)

    def where(self, name: str) -> str:
        """Return the path of a field, for messages."""
        return f"{self._where}.{name}" if self._where else name

    def wrong(self, name: str, wanted: str) -> None:
        """Note that a field is not what it has to be."""
        kind = _kind(self._values.get(name))
        self.faults.add(self.where(name), f"it is {kind}, not {wanted}", f"Write {wanted}.")

    def text(self, name: str) -> str | None:
        """Return a text, or None where there is none or none that can be used."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            self.wrong(name, "a text")
            return None
        before = len(self.faults)
        filled = self._fill(value, self.where(name))
        return filled if len(self.faults) == before else None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; numbers are accepted as their text."""
        value = self._values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(_plain(item) for item in value):
            self.wrong(name, "a list of texts")
            return ()
        return tuple(self._fill(_said(item), f"{self.where(name)}[{i}]") for i, item in enumerate(value))

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object of texts; numbers and truth values are accepted as their text, null leaves one out."""
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict) or not all(item is None or _plain(item) for item in value.values()):
            self.wrong(name, "an object of texts")
            return {}
        return {
            key: self._fill(_said(item), f"{self.where(name)}.{key}") for key, item in value.items() if item is not None
        }

    def number(self, name: str, *, least: float = 0.0, inclusive: bool = False) -> float | None:
        """Return a finite number above the least (or that), or None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        good = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not good or value < least or (value == least and not inclusive):
            self.wrong(name, f"a number of at least {least:g}" if inclusive else f"a number above {least:g}")
            return None
        return float(value)

    def whole(self, name: str, *, least: int = 1, most: int | None = None) -> int | None:
        """Return a whole number of at least this, or None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            self.wrong(name, f"a whole number above {least - 1}" if least else "a whole number, 0 or above")
            return None
        if most is not None and value > most:
            self.wrong(name, f"a whole number of at most {most:,}")
            return None
        return value

    def truth(self, name: str) -> bool:
        """Return a truth value; absent is false."""
        value = self._values.get(name)
        if value is not None and not isinstance(value, bool):
            self.wrong(name, "true or false")
        return value is True

    def _fill(self, value: str, where: str) -> str:
        filled = interpolate(value, self._environ, self.faults, where)
        if "\0" in filled:
            self.faults.add(where, "it holds a NUL character", "Remove it.")
        return filled


def _plain(value: object) -> bool:
    return isinstance(value, str | int | float)


def _said(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: object) -> str:
    if isinstance(value, str):
        return "a text"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else type(value).__name__
