"""Read the metadata that authors and operators give a tool: who may use it, and where it works.

The fields, and who may say each, are in docs/gateway/contexts.md.
"""

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
    "declared_metadata",
    "metadata_of",
    "patch_in",
    "read_fields",
    "strictest",
    "written_metadata",
]


@dataclass(frozen=True, kw_only=True)
class Metadata:
    """The metadata of a tool; the defaults are those of a tool without metadata.

    ``is_for_llm`` False marks a deprecated tool or an implementation detail; ``is_recordable`` False keeps its calls
    out of recordings. ``platforms`` are in lower case, empty means all; ``app`` "" means every app. ``owner`` is a
    team. ``family`` groups tools independently of their names. ``parameter_platforms`` maps parameters to
    the platforms on which they work.
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
# The fields that restrict who sees a tool: if one cannot be read, the tool must be hidden.
LIMITS: Final = ("is_for_llm", "platforms", "app")


def _truth(value: object) -> bool:
    if type(value) is not bool:
        message = "it is neither true nor false"
        raise ValueError(message)
    return value


def _word(value: object) -> str:
    word = lower_ascii(value) if isinstance(value, str) and len(value) <= _LONGEST else ""
    if not _WORD.fullmatch(word):
        message = (
            f"{excerpt(value) if isinstance(value, str) else 'it'} is not a word of ASCII letters, digits, _ . and -"
        )
        raise ValueError(message)
    return word


def _word_list(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or len(value) > _MOST:
        message = f"it is not a list of at most {_MOST} words"
        raise ValueError(message)
    return tuple(dict.fromkeys(map(_word, value)))


def _label(value: object) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        message = f"it is not a printable text of at most {_LONGEST} characters"
        raise ValueError(message)
    return value


def _by_parameter(value: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or len(value) > _MOST_PARAMETERS:
        message = f"it is not an object of at most {_MOST_PARAMETERS:,} parameters"
        raise ValueError(message)
    return MappingProxyType({_label(name): _word_list(words) for name, words in value.items()})


# The reader of each field of `Metadata`: it returns the normalised value, or raises `ValueError` with a clause.
FIELDS: Final[Mapping[str, Callable[[object], object]]] = MappingProxyType(
    {
        "is_for_llm": _truth,
        "is_recordable": _truth,
        "platforms": _word_list,
        "app": lambda value: "" if value == "" else _word(value),
        "owner": _label,
        "family": _label,
        "parameter_platforms": _by_parameter,
    }
)


@dataclass(frozen=True, kw_only=True)
class MetadataPatch:
    """Values for some fields of `Metadata`, and the errors of fields that cannot be read, both by field."""

    values: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    errors: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    def over(self, below: MetadataPatch) -> MetadataPatch:
        """Merge two patches; fields of this one override those of ``below``."""
        errors = {name: fault for name, fault in below.errors.items() if name not in self.values}
        return MetadataPatch(values={**below.values, **self.values}, errors={**errors, **self.errors})

    @property
    def doubt(self) -> str:
        """The errors in fields that restrict who sees the tool, as a clause for people; "" if there are none."""
        return "; ".join(f"{name}: {self.errors[name]}" for name in LIMITS if name in self.errors)

    @property
    def metadata(self) -> Metadata:
        """The resulting metadata; a field with an error gets the most restrictive value."""
        known = {name: value for name, value in self.values.items() if name not in self.errors}
        if self.doubt:
            known["is_for_llm"] = False
        if "is_recordable" in self.errors:
            known["is_recordable"] = False
        return Metadata(**known)


NO_PATCH: Final = MetadataPatch()


def read_fields(table: Mapping[Any, object]) -> MetadataPatch:
    """Read the fields of `Metadata` from a table; null counts as omitted, and an unknown field is an error.

    >>> read_fields({"platforms": ["IOS"], "is_for_llm": "yes"})
    MetadataPatch(values={'platforms': ('ios',)}, errors={'is_for_llm': 'it is neither true nor false'})
    """
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for name, value in table.items():
        read = FIELDS.get(name) if isinstance(name, str) else None
        if read is None:
            errors[excerpt(str(name))[1:-1]] = "it is not a field of a tool's metadata"
        elif value is not None:
            try:
                values[name] = read(value)
            except ValueError as error:
                errors[name] = str(error)
    return MetadataPatch(values=values, errors=errors)


def strictest(patches: Iterable[MetadataPatch]) -> MetadataPatch:
    """Merge patches of equal precedence: of two different values, the one that shows the tool to fewer counts.

    Values that exclude each other (only ios, only android) are an error.

    >>> either = strictest([read_fields({"is_for_llm": True}), read_fields({"is_for_llm": False})])
    >>> either.metadata.is_for_llm
    False
    """
    return reduce(_both, patches, NO_PATCH)


def _both(one: MetadataPatch, other: MetadataPatch) -> MetadataPatch:
    values, errors = {**one.values}, {**one.errors, **other.errors}
    for name, value in other.values.items():
        if name not in values:
            values[name] = value
            continue
        try:
            values[name] = _NARROWER.get(name, lambda one, _: one)(values[name], value)
        except ValueError as error:
            errors[name] = str(error)
    return MetadataPatch(values=values, errors=errors)


def _all(one: bool, other: bool) -> bool:
    return one and other


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    # An empty list means all platforms.
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
    message = f"it is declared as {excerpt(one)[1:-1]} and as {excerpt(other)[1:-1]}"
    raise ValueError(message)


_NARROWER: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {"is_for_llm": _all, "is_recordable": _all, "platforms": _common, "app": _same}
)


META_PREFIX: Final = "dev.truename/"
_NESTED: Final = "truename"
# The keys of the fields in the vocabularies that authors use.
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


def metadata_of(definition: Mapping[str, object]) -> Metadata:
    """Return the metadata in a tool's definition (a tools/list entry).

    It is read from ``_meta``: keys such as ``dev.truename/is_for_llm``, a table ``truename`` with the fields of
    `Metadata`, and ``trailblaze/isForLlm``, ``isRecordable`` and ``supportedPlatforms``. It is also read from the
    annotations, where ``isForLlm``, ``isRecordable`` and ``platforms`` may have no prefix. If two values differ, the
    stricter one counts. Invalid metadata hides the tool and never raises; `patch_in` returns the errors
    (docs/gateway/contexts.md).

    >>> metadata_of({"name": "tap", "_meta": {"trailblaze/supportedPlatforms": ["IOS"]}}).platforms
    ('ios',)
    >>> metadata_of({"name": "tap", "_meta": {"dev.truename/platforms": "ios"}}).is_for_llm
    False
    """
    return patch_in(definition).metadata


def patch_in(definition: Mapping[str, object]) -> MetadataPatch:
    """Return the fields of metadata in a definition, with errors for those that cannot be read."""
    patches = list(_patches(definition))
    return strictest(patches) if patches else NO_PATCH


def declared_metadata(tool: Tool) -> MetadataPatch:
    """Return the metadata that a tool's author declares; if an earlier definition is shown, the stricter of both."""
    shown = patch_in(tool.definition)
    return shown if tool.offered is None else strictest([shown, patch_in(tool.offered)])


def written_metadata(metadata: Metadata) -> dict[str, Any]:
    """Return the keys of ``_meta`` for this metadata, without fields that have their default.

    >>> from truename.conventions import Metadata
    >>> written_metadata(Metadata(platforms=("ios",), is_for_llm=False))
    {'dev.truename/is_for_llm': False, 'dev.truename/platforms': ['ios']}
    """
    plain = type(metadata)()
    changed = {name: value for name in FIELDS if (value := getattr(metadata, name)) != getattr(plain, name)}
    return {f"{META_PREFIX}{name}": _as_json(value) for name, value in changed.items()}


def _as_json(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return {name: list(words) for name, words in value.items()} if isinstance(value, Mapping) else value


def _patches(definition: Mapping[str, Any]) -> Iterator[MetadataPatch]:
    for place, vocabularies in _PLACES.items():
        table = definition.get(place)
        if not isinstance(table, Mapping):
            continue
        for vocabulary in vocabularies:
            given = {name: table[key] for key, name in vocabulary.items() if key in table}
            if given:
                yield _without_empty(read_fields(given))
        if table.get(_NESTED) is not None:
            yield _nested(table[_NESTED], place)


def _without_empty(patch: MetadataPatch) -> MetadataPatch:
    # An author's empty list of platforms counts as omitted; an operator's means all platforms.
    return MetadataPatch(
        values={name: value for name, value in patch.values.items() if value not in _EMPTY}, errors=patch.errors
    )


def _nested(table: object, place: str) -> MetadataPatch:
    if isinstance(table, Mapping) and len(table) <= _MOST_FIELDS:
        return _without_empty(read_fields(table))
    fault = f"{place}.{_NESTED} is not an object of at most {_MOST_FIELDS} fields"
    return MetadataPatch(errors=dict.fromkeys(FIELDS, fault))
