"""Read metadata that authors and operators give a tool: who may use it, and where it works (seed 003)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.errors import excerpt
from truename.identity import lower_ascii

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.catalog import Tool

__all__ = [
    "FIELDS",
    "LIMITS",
    "META_PREFIX",
    "NO_PATCH",
    "Metadata",
    "MetadataPatch",
    "metadata_of",
    "read_fields",
    "said_in",
    "said_of",
    "strictest",
    "written_metadata",
]


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The metadata of one tool; the defaults are those of a tool that says nothing.

    ``is_for_llm`` False is a deprecated tool or an implementation detail; ``is_recordable`` False keeps its calls out
    of recordings. ``platforms`` are in lower case, none is all of them; ``app`` "" is every app. ``owner`` is a team.
    ``family`` groups tools (seed 002) without a name being split. ``parameter_platforms`` says which parameters are
    for some of the platforms only.
    """

    is_for_llm: bool = True
    is_recordable: bool = True
    platforms: tuple[str, ...] = ()
    app: str = ""
    owner: str = ""
    family: str = ""
    parameter_platforms: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}), hash=False)


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


def _word_list(value: object) -> tuple[str, ...]:
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
    return MappingProxyType({_label(name): _word_list(words) for name, words in value.items()})


# One reader a field of `Metadata`: it returns the value as it is kept, or raises `ValueError` with a clause for people.
FIELDS: Final[Mapping[str, Callable[[object], Any]]] = MappingProxyType(
    {
        "is_for_llm": _truth,
        "is_recordable": _truth,
        "platforms": _word_list,
        "app": _optional_word,
        "owner": _label,
        "family": _label,
        "parameter_platforms": _by_parameter,
    }
)


@dataclass(frozen=True, kw_only=True)
class MetadataPatch:
    """The fields of `Metadata` that somebody said, and the faults of those that can't be read, by field."""

    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    faults: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def over(self, below: MetadataPatch) -> MetadataPatch:
        """Return both, where each field that is said here goes before what is said below."""
        faults = {name: fault for name, fault in below.faults.items() if name not in self.values}
        return MetadataPatch(values={**below.values, **self.values}, faults={**faults, **self.faults})

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


NO_PATCH: Final = MetadataPatch()


def read_fields(table: Mapping[Any, object]) -> MetadataPatch:
    """Read fields under their own names; null is not said. A name that is no field is a fault, too.

    >>> read_fields({"platforms": ["IOS"], "is_for_llm": "yes"})
    MetadataPatch(values={'platforms': ('ios',)}, faults={'is_for_llm': 'it is neither true nor false'})
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
    return MetadataPatch(values=values, faults=faults)


def strictest(words: Iterable[MetadataPatch]) -> MetadataPatch:
    """Return several words of equal weight as one: of two that differ, what shows the tool to fewer.

    Words that leave nobody (one says ios, one android) contradict each other, which is a fault.

    >>> either = strictest([read_fields({"is_for_llm": True}), read_fields({"is_for_llm": False})])
    >>> either.metadata.is_for_llm
    False
    """
    return reduce(_both, words, NO_PATCH)


def _both(one: MetadataPatch, other: MetadataPatch) -> MetadataPatch:
    values, faults = {**one.values}, {**one.faults, **other.faults}
    for name, value in other.values.items():
        if name not in values:
            values[name] = value
            continue
        try:
            values[name] = _NARROWER.get(name, _first)(values[name], value)
        except ValueError as error:
            faults[name] = str(error)
    return MetadataPatch(values=values, faults=faults)


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


META_PREFIX: Final = "dev.truename/"
_NESTED: Final = "truename"
# Where a field stands, by the author's vocabulary; trailblaze's is that of seed 003's origin.
_TRAILBLAZE: Final = {"isForLlm": "is_for_llm", "isRecordable": "is_recordable", "supportedPlatforms": "platforms"}
_OURS: Final = {f"{META_PREFIX}{name}": name for name in FIELDS}
_THEIRS: Final = {f"trailblaze/{word}": name for word, name in _TRAILBLAZE.items()}
_SEED: Final = {"isForLlm": "is_for_llm", "isRecordable": "is_recordable", "platforms": "platforms"}
_PLACES: Final[Mapping[str, tuple[Mapping[str, str], ...]]] = {
    "_meta": (_OURS, _THEIRS),
    "annotations": (_OURS, _THEIRS, _SEED),
}


_MOST_FIELDS: Final = 64
_EMPTY: Final = ("", ())


def metadata_of(definition: Mapping[str, Any]) -> Metadata:
    """Return what a definition (a tools/list entry) says of its tool.

    It is read from ``_meta``, as ``dev.truename/is_for_llm``, as a table ``truename`` with the fields of `Metadata`,
    and as ``trailblaze/isForLlm``, ``isRecordable`` and ``supportedPlatforms``; and likewise from the annotations,
    where ``isForLlm``, ``isRecordable`` and ``platforms`` may stand plain. Where two places differ, the stricter
    counts. What can't be read hides the tool and never raises; `said_in` tells the faults. Source: seed 003.

    >>> metadata_of({"name": "tap", "_meta": {"trailblaze/supportedPlatforms": ["IOS"]}}).platforms
    ('ios',)
    >>> metadata_of({"name": "tap", "_meta": {"dev.truename/platforms": "ios"}}).is_for_llm
    False
    """
    return said_in(definition).metadata


def said_in(definition: Mapping[str, Any]) -> MetadataPatch:
    """Return what a definition says of its tool, and what of that can't be read, by field."""
    words = list(_words(definition))
    return strictest(words) if words else NO_PATCH


def said_of(tool: Tool) -> MetadataPatch:
    """Return what a tool's author says of it: where an earlier definition is shown, the stricter of both counts."""
    shown = said_in(tool.definition)
    return shown if tool.offered is None else strictest([shown, said_in(tool.offered)])


def written_metadata(metadata: Metadata) -> dict[str, Any]:
    """Return the keys of ``_meta`` that say this; what is at its default is left out.

    >>> from truename.conventions import Metadata
    >>> written_metadata(Metadata(platforms=("ios",), is_for_llm=False))
    {'dev.truename/is_for_llm': False, 'dev.truename/platforms': ['ios']}
    """
    plain = type(metadata)()
    said = {name: value for name in FIELDS if (value := getattr(metadata, name)) != getattr(plain, name)}
    return {f"{META_PREFIX}{name}": _as_json(value) for name, value in said.items()}


def _as_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return {name: list(words) for name, words in value.items()} if isinstance(value, Mapping) else value


def _words(definition: Mapping[str, Any]) -> Iterator[MetadataPatch]:
    for place, vocabularies in _PLACES.items():
        table = definition.get(place)
        if not isinstance(table, Mapping):
            continue
        for vocabulary in vocabularies:
            said = {name: table[word] for word, name in vocabulary.items() if word in table}
            if said:
                yield _limited(read_fields(said))
        if table.get(_NESTED) is not None:
            yield _nested(table[_NESTED], place)


def _limited(said: MetadataPatch) -> MetadataPatch:
    # An author who names no platform has said nothing about platforms; an operator has said all of them.
    return MetadataPatch(
        values={name: value for name, value in said.values.items() if value not in _EMPTY}, faults=said.faults
    )


def _nested(table: object, place: str) -> MetadataPatch:
    if isinstance(table, Mapping) and len(table) <= _MOST_FIELDS:
        return _limited(read_fields(table))
    fault = f"{place}.{_NESTED} is no object of at most {_MOST_FIELDS} fields"
    return MetadataPatch(faults=dict.fromkeys(FIELDS, fault))
