"""Read the titles, descriptions and annotations with which the operator replaces the servers' own.

Clients see, and rules about calls use, the operator's texts and annotations; pins, digests and comparisons use the
server's own. Metadata about who may use a tool is read by `truename.policy.exposure`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.cache import LRUCache
from truename.catalog import Catalog, unfolded
from truename.catalog.globs import ById, glob_error, is_wild, may_meet, unversioned
from truename.conventions.characters import concealed
from truename.errors import ConfigErrors, config_error, excerpt, spelling_remedy
from truename.policy.lineage import no_lineage
from truename.policy.rules import HINTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Self

    from truename.catalog import Tool, Unfolded
    from truename.identity import ToolId
    from truename.policy.lineage import Lineage, LineageOf

    Words = Mapping[str, Any]

__all__ = ["LONGEST_DESCRIPTION", "LONGEST_TITLE", "Presentation"]

LONGEST_TITLE: Final = 256
LONGEST_DESCRIPTION: Final = 16_384
_MOST: Final = 10_000
# Each glob is compared with each other, and with every tool.
_MOST_SETS: Final = 64
_MOST_GLOBS: Final = 256
_MOST_REPORTED: Final = 20
MAX_CACHED: Final = 50_000
_NOTES: Final = "annotations"
_REMEDY: Final = "Correct it; a tool's presentation is used whole or not at all."
_NAMES: Final = "A tool's name is fixed in the table overrides."
# The value of each hint of the protocol that promises nothing; it allows fewer calls.
_STRICT: Final = MappingProxyType(
    {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
)


class _Presented(NamedTuple):
    """The operator's texts and annotations for a tool, and the keys of the table that they come from."""

    words: Words
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Presentation:
    """The operator's titles, descriptions and annotations of tools, by id or glob on ids.

    Fields are ``title``, ``description``, and ``annotations`` with the protocol's hints and a ``title``. An exact id
    overrides globs. Of several hints the strictest counts; different texts are refused if both could apply to one tool.
    ``is_partial``: some servers are absent, so an entry that matches no tool may match one of theirs.

    Raises `ConfigError` with the key, or an `ExceptionGroup` of them.

    >>> from truename import Catalog
    >>> tools = Catalog.from_mcp({"disk": [{"name": "tidy", "description": "Tidies up."}]})
    >>> own = Presentation({"disk/*": {"description": "Deletes files.", "annotations": {"readOnlyHint": False}}})
    >>> tool = own.over(tools)["disk@1/tidy@1"]
    >>> tool.shown["description"], tool.definition["description"], tool.digest == tools["disk@1/tidy@1"].digest
    ('Deletes files.', 'Tidies up.', True)
    """

    table: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    is_partial: bool = False
    _by_id: ById[Words] = field(init=False, repr=False, compare=False)
    _strict: LRUCache[frozenset[ToolId], Words] = field(
        default_factory=lambda: LRUCache(_MOST_SETS), init=False, repr=False, compare=False
    )
    _known: LRUCache[ToolId, _Presented] = field(
        default_factory=lambda: LRUCache(MAX_CACHED), init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "table", _read(self.table))
        object.__setattr__(self, "_by_id", ById(self.table))

    @classmethod
    def read(cls, table: object, file: str = "tools") -> Self:
        """Read the table of a configuration; errors name the file."""
        return cls(_read(table, file))

    def partly(self) -> Self:
        """Return a copy with ``is_partial`` set."""
        return replace(self, is_partial=True)

    def about(self, id: ToolId) -> Words:
        """Return the operator's texts and annotations for a tool; empty if there are none."""
        return self._found(id).words

    def keys(self, id: ToolId) -> tuple[str, ...]:
        """Return the keys of the table that apply to a tool, its own id first."""
        return self._found(id).keys

    def _found(self, id: ToolId) -> _Presented:
        if (known := self._known.get(id)) is None:
            named, globbed = self._by_id.about(id)
            words = _both(_strictest(entry for _, entry in globbed), _strictest(entry for _, entry in named))
            known = self._known[id] = _Presented(words, tuple(key for key, _ in (*named, *globbed)))
        return known

    def over(self, catalog: Catalog, lineage: LineageOf = no_lineage) -> Catalog:
        """Return a catalogue with the presentation applied to its tools; ids, definitions and digests do not change.

        An entry for an id that was accepted as a tool's former one (``lineage``) is about the tool too.
        """
        if not self._by_id:
            return catalog
        tools = [self._presented(tool, lineage(tool.id)) for tool in catalog.values()]
        if all(one is tool for one, tool in zip(tools, catalog.values(), strict=True)):
            return catalog
        return Catalog(tools, catalog.aliases, catalog.notices)

    def idle(self, catalog: Catalog) -> tuple[str, ...]:
        """Return the keys that match no tool of a catalogue; empty if some servers are absent."""
        if self.is_partial or not self.table:
            return ()
        used = {key for id in catalog for key in self.keys(id)}
        return tuple(key for key in self.table if key not in used)

    def _presented(self, tool: Tool, lineage: Lineage) -> Tool:
        words = self.about(tool.id)
        for old in lineage.same:
            words = _both(self.about(old), words)
        notes = self._strict_hints(unfolded(tool.id, tool.origin))
        if lineage.perhaps:
            notes = {**notes, **self._perhaps_strict(lineage.denied_as)}
        if notes:
            words = _both(MappingProxyType({_NOTES: notes}), words)
        return replace(tool, presented=words) if words else tool

    def _perhaps_strict(self, ids: frozenset[ToolId]) -> Words:
        # The new tools of one list share the set of those that they may be.
        if (known := self._strict.get(ids)) is None:
            known = self._strict[ids] = self._strict_hints(ids)
        return known

    def _strict_hints(self, ids: Iterable[ToolId | Unfolded]) -> Words:
        """Return the strict hints of entries for ids that a tool would have without folding or digests."""
        entries = (entry for id in ids for several in self._by_id.about(id) for entry in several)
        hints = ((name, value) for _, words in entries for name, value in words.get(_NOTES, {}).items())
        return {name: value for name, value in hints if name in _STRICT and value is _STRICT[name]}


def _strictest(entries: Iterable[Words]) -> Words:
    """Merge entries of equal precedence: the strictest of each hint; their texts are already known to be equal."""
    found: dict[str, object] = {}
    notes: dict[str, object] = {}
    for words in entries:
        found |= words
        for name, value in words.get(_NOTES, {}).items():
            notes[name] = _STRICT[name] if name in _STRICT and notes.get(name, value) is not value else value
    return {**found, **({_NOTES: notes} if notes else {})}


def _both(below: Words, above: Words) -> Words:
    notes = {**below.get(_NOTES, {}), **above.get(_NOTES, {})}
    return MappingProxyType({**below, **above, **({_NOTES: MappingProxyType(notes)} if notes else {})})


def _read(table: object, file: str = "tools") -> Mapping[str, Words]:
    if not isinstance(table, Mapping) or len(table) > _MOST:
        raise config_error(file, "tools", f"it is not a table of at most {_MOST:,} tools", _REMEDY)
    errors = ConfigErrors(file, _REMEDY)
    if sum(is_wild(str(key)) for key in table) > _MOST_GLOBS:
        errors.add("tools", f"it has more than {_MOST_GLOBS} globs", "Name tools by their ids.")
    read = {str(key): _entry(key, entry, errors) for key, entry in table.items()}
    if not len(errors):
        for key, problem in islice(_contradictions(read), _MOST_REPORTED):
            errors.add(key, problem, "Write the same text, or globs that cannot both match one tool.")
    errors.raise_any()
    return MappingProxyType(read)


def _entry(key: object, entry: object, errors: ConfigErrors) -> Words:
    where = f"tools.{excerpt(str(key))}"
    if problem := glob_error(key) if isinstance(key, str) else "it is not a text":
        errors.add(where, f"it cannot match any tool: {problem}")
    return MappingProxyType(_table(entry, where, _FIELDS, errors))


def _table(
    table: object, where: str, fields: Mapping[str, Callable[..., object]], errors: ConfigErrors
) -> dict[str, object]:
    """Read an object of these fields; null counts as omitted."""
    if not isinstance(table, Mapping) or len(table) > len(fields) * 8:
        errors.add(where, "it is not a table of fields")
        return {}
    found: dict[str, object] = {}
    for name, value in table.items():
        at = f"{where}.{excerpt(str(name))[1:-1]}"
        if name not in fields:
            remedy = _NAMES if name == "name" else spelling_remedy(name, fields)
            errors.add(at, "it is not a field of a tool's presentation", remedy)
        elif value is not None:
            found[name] = fields[name](value, at, errors)
    return found


def _title(value: object, where: str, errors: ConfigErrors) -> str:
    text = _text(value, where, errors, LONGEST_TITLE)
    if "\n" in text or "\r" in text or "\t" in text:
        errors.add(where, "it has more than one line")
    return text


def _text(value: object, where: str, errors: ConfigErrors, most: int) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > most:
        errors.add(where, f"it is not a text of 1 to {most:,} characters")
        return ""
    if problem := concealed(value):
        errors.add(where, problem)
    return value


def _hint(value: object, where: str, errors: ConfigErrors) -> bool:
    if not isinstance(value, bool):
        errors.add(where, "it is neither true nor false")
    return value is True


_ANNOTATIONS: Final[Mapping[str, Callable[..., object]]] = {**dict.fromkeys(HINTS, _hint), "title": _title}
_FIELDS: Final[Mapping[str, Callable[..., object]]] = {
    "title": _title,
    "description": lambda value, where, errors: _text(value, where, errors, LONGEST_DESCRIPTION),
    _NOTES: lambda value, where, errors: MappingProxyType(_table(value, where, _ANNOTATIONS, errors)),
}


def _contradictions(table: Mapping[str, Words]) -> Iterator[tuple[str, str]]:
    """Yield keys whose texts differ from those of an entry of equal precedence that could match the same tool."""
    for path in (("title",), ("description",), (_NOTES, "title")):
        texts = {key: text for key, words in table.items() if (text := _at(words, path)) is not None}
        for keys in _rivals(texts):
            for one, other in combinations(keys, 2):
                if texts[one] != texts[other] and may_meet(one, other):
                    where = f"tools.{excerpt(other)}.{'.'.join(path)}"
                    problem = f"its text differs from that of the entry {excerpt(one)}"
                    yield where, f"{problem}, which could match the same tool with equal precedence"


def _rivals(keys: Iterable[str]) -> Iterable[list[str]]:
    """Return groups of keys with equal precedence: all globs, and the ids of one tool's versions."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for key in keys:
        groups.setdefault(() if is_wild(key) else unversioned(key), []).append(key)
    return groups.values()


def _at(words: Words, path: tuple[str, ...]) -> str | None:
    found: Any = words
    for name in path:
        found = found.get(name, {})
    return found if isinstance(found, str) else None
