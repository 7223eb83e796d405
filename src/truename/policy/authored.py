"""What a tool's author says of it in its definition: in ``_meta``, or in its annotations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.policy.said import FIELDS, NOTHING_SAID, Said, read_fields, strictest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.catalog import Tool
    from truename.policy.metadata import Metadata

__all__ = ["META_PREFIX", "metadata_of", "said_in", "said_of", "written_metadata"]

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


def said_in(definition: Mapping[str, Any]) -> Said:
    """Return what a definition says of its tool, and what of that can't be read, by field."""
    words = list(_words(definition))
    return strictest(words) if words else NOTHING_SAID


def said_of(tool: Tool) -> Said:
    """Return what a tool's author says of it: where an earlier definition is shown, the stricter of both counts."""
    shown = said_in(tool.definition)
    return shown if tool.offered is None else strictest([shown, said_in(tool.offered)])


def written_metadata(metadata: Metadata) -> dict[str, Any]:
    """Return the keys of ``_meta`` that say this; what is at its default is left out.

    >>> from truename.policy import Metadata
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


def _words(definition: Mapping[str, Any]) -> Iterator[Said]:
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


def _limited(said: Said) -> Said:
    # An author who names no platform has said nothing about platforms; an operator has said all of them.
    return Said(values={name: value for name, value in said.values.items() if value not in _EMPTY}, faults=said.faults)


def _nested(table: object, place: str) -> Said:
    if isinstance(table, Mapping) and len(table) <= _MOST_FIELDS:
        return _limited(read_fields(table))
    fault = f"{place}.{_NESTED} is no object of at most {_MOST_FIELDS} fields"
    return Said(faults=dict.fromkeys(FIELDS, fault))
