"""What somebody said of a tool: some fields of its metadata, each read strictly, and how several such words add up."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.errors import excerpt
from truename.identity import lower_ascii
from truename.policy.metadata import Metadata

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FIELDS", "LIMITS", "NOTHING_SAID", "Said", "read_fields", "strictest"]

_MOST: Final = 64
_MOST_PARAMETERS: Final = 1_024
_LONGEST: Final = 256
_WORD: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
# The fields that keep a tool from somebody: where one can't be read, nobody knows for whom the tool is.
LIMITS: Final = ("is_for_llm", "platforms", "app")


def _truth(value: object) -> bool:
    if type(value) is not bool:
        message = "it is neither true nor false"
        raise ValueError(message)
    return value


def _word(value: object) -> str:
    word = lower_ascii(value) if isinstance(value, str) and len(value) <= _LONGEST else ""
    if not _WORD.fullmatch(word):
        message = f"{excerpt(value) if isinstance(value, str) else 'it'} is no word of ASCII letters, digits, _ . and -"
        raise ValueError(message)
    return word


def _words(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) > _MOST:
        message = f"it is no list of at most {_MOST} words"
        raise ValueError(message)
    return tuple(dict.fromkeys(map(_word, value)))


def _optional_word(value: object) -> str:
    return "" if value == "" else _word(value)


def _label(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        message = f"it is no text of at most {_LONGEST} characters that can be printed"
        raise ValueError(message)
    return value


def _by_parameter(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or len(value) > _MOST_PARAMETERS:
        message = f"it is no object of at most {_MOST_PARAMETERS:,} parameters"
        raise ValueError(message)
    return MappingProxyType({_label(name): _words(words) for name, words in value.items()})


# One reader a field of `Metadata`: it returns the value as it is kept, or raises `ValueError` with a clause for people.
FIELDS: Final[Mapping[str, Callable[[object], Any]]] = MappingProxyType(
    {
        "is_for_llm": _truth,
        "is_recordable": _truth,
        "platforms": _words,
        "app": _optional_word,
        "owner": _label,
        "family": _label,
        "parameter_platforms": _by_parameter,
    }
)


@dataclass(frozen=True, kw_only=True)
class Said:
    """The fields of `Metadata` that somebody said, and the faults of those that can't be read, by field."""

    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    faults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def over(self, below: Said) -> Said:
        """Return both, where each field that is said here goes before what is said below."""
        faults = {name: fault for name, fault in below.faults.items() if name not in self.values}
        return Said(values={**below.values, **self.values}, faults={**faults, **self.faults})

    @property
    def doubt(self) -> str:
        """Why nobody knows for whom the tool is, in a clause for people; "" if that is clear."""
        return "; ".join(f"{name}: {self.faults[name]}" for name in LIMITS if name in self.faults)

    @property
    def metadata(self) -> Metadata:
        """The metadata that this makes; with a fault, what shows and records the least."""
        known = {name: value for name, value in self.values.items() if name not in self.faults}
        if self.doubt:
            known["is_for_llm"] = False
        if "is_recordable" in self.faults:
            known["is_recordable"] = False
        return Metadata(**known)


NOTHING_SAID: Final = Said()


def read_fields(table: Mapping[Any, object]) -> Said:
    """Read fields under their own names; null is not said. A name that is no field is a fault, too.

    >>> read_fields({"platforms": ["IOS"], "is_for_llm": "yes"})
    Said(values={'platforms': ('ios',)}, faults={'is_for_llm': 'it is neither true nor false'})
    """
    values: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for name, value in table.items():
        read = FIELDS.get(name) if isinstance(name, str) else None
        if read is None:
            faults[excerpt(str(name))[1:-1]] = "it is no field of a tool's metadata"
        elif value is not None:
            try:
                values[name] = read(value)
            except ValueError as error:
                faults[name] = str(error)
    return Said(values=values, faults=faults)


def strictest(words: Iterable[Said]) -> Said:
    """Return several words of equal weight as one: of two that differ, what shows the tool to fewer.

    Words that leave nobody (one says ios, one android) contradict each other, which is a fault.

    >>> either = strictest([read_fields({"is_for_llm": True}), read_fields({"is_for_llm": False})])
    >>> either.metadata.is_for_llm
    False
    """
    return reduce(_both, words, NOTHING_SAID)


def _both(one: Said, other: Said) -> Said:
    values, faults = {**one.values}, {**one.faults, **other.faults}
    for name, value in other.values.items():
        if name not in values:
            values[name] = value
            continue
        try:
            values[name] = _NARROWER.get(name, _first)(values[name], value)
        except ValueError as error:
            faults[name] = str(error)
    return Said(values=values, faults=faults)


def _first(one: Any, _: Any) -> Any:
    return one


def _all(one: bool, other: bool) -> bool:
    return one and other


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    # None is all of them.
    if not one or not other:
        return one or other
    if not (common := tuple(word for word in one if word in other)):
        _contradict(", ".join(one), ", ".join(other))
    return common


def _same(one: str, other: str) -> str:
    if one and other and one != other:
        _contradict(one, other)
    return one or other


def _contradict(one: str, other: str) -> None:
    message = f"it is said to be {excerpt(one)[1:-1]} and {excerpt(other)[1:-1]}"
    raise ValueError(message)


_NARROWER: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {"is_for_llm": _all, "is_recordable": _all, "platforms": _common, "app": _same}
)
