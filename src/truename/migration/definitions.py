"""Compare two definitions of one tool: schemas, texts and hints, or only their digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from truename.errors import excerpt
from truename.identity.definition import DIGESTED_FIELDS
from truename.migration.schema_changes import (
    INPUT,
    OUTPUT,
    AffectedSide,
    Alternative,
    ChangeDetail,
    ChangeEffect,
    alternatives,
    compare_bounds,
    compare_enum,
    compare_opaque,
    compare_plain,
    compare_texts,
    compare_type,
    equal_json,
    has_unresolved_reference,
    kind_of,
    pair_alternatives,
    path_text,
    resolve_references,
    without_texts,
)
from truename.policy.rules import HINTS

if TYPE_CHECKING:
    from truename.migration.lock import Pin

__all__ = ["compare_definitions", "compare_pins", "compare_schemas"]

Schema = Mapping[str, object]
Path = tuple[str, ...]

_DEPTH: Final = 40
_PAIRS: Final = 20_000
_DETAILS: Final = 500
_TERMS: Final[tuple[Callable[[Schema, Schema], Iterator[tuple[str, ChangeEffect, str]]], ...]] = (
    compare_type,
    compare_enum,
    compare_bounds,
    compare_plain,
    compare_opaque,
    compare_texts,
)
_TOO_MUCH: Final = "it changed, and is too large, too deep or too complex to compare"
_ELSEWHERE: Final = "it refers to changed definitions in a way that cannot be followed"
_DEFINITIONS: Final = ("$defs", "definitions")


def compare_schemas(old: object, new: object, side: AffectedSide) -> tuple[ChangeDetail, ...]:
    """Return every difference between two schemas of one tool, in the order of the new one; none if they are equal.

    ``old`` and ``new`` are JSON Schemas (2020-12, with the older drafts' ``definitions``) or None. An input must still
    allow every value that it allowed; an output must not produce new ones.

    >>> from truename.migration.schema_changes import INPUT
    >>> old = {"type": "object", "properties": {"path": {"type": "string"}}}
    >>> new = {"type": "object", "properties": {"path": {"type": ["string", "null"]}}}
    >>> [str(one) for one in compare_schemas(old, new, INPUT)]
    ["inputSchema.properties.path: 'null' is now allowed"]
    >>> compare_schemas(old, new, OUTPUT)[0].breaking
    True
    """
    if equal_json(old, new):
        return ()
    if side is OUTPUT and not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        lost = isinstance(old, Mapping)
        fact = "the result no longer has a schema" if lost else "the result now has a schema"
        effect = ChangeEffect.WIDENED if lost else ChangeEffect.NARROWED
        return (ChangeDetail(path=side.key, effect=effect, fact=fact, breaking=lost),)
    comparison = _Comparison(_rooted(old), _rooted(new), side)
    comparison.run()
    return tuple(comparison.details)


def _rooted(schema: object) -> Schema:
    given = schema if isinstance(schema, Mapping) else {}
    return given if "type" in given else {"type": "object", **given}


class _Comparison:
    """A comparison of two schemas, pair by pair."""

    def __init__(self, old: Schema, new: Schema, side: AffectedSide) -> None:
        self.details: list[ChangeDetail] = []
        self._old = old
        self._new = new
        self._side = side
        self._left = _PAIRS
        self._seen: set[tuple[str, str]] = set()
        self._waiting: list[tuple[Path, object, object]] = [((side.key,), old, new)]

    def run(self) -> None:
        # With its own stack, so that a deep hostile schema cannot exhaust Python's.
        while self._waiting:
            if len(self.details) >= _DETAILS:
                # Reported, so that nobody can hide a difference behind hundreds of others.
                self._tell(
                    (self._side.key,),
                    ChangeEffect.CHANGED,
                    f"it has over {_DETAILS} differences; the others are not listed",
                )
                return
            path, old, new = self._waiting.pop()
            self._left -= 1
            if self._left < 0 or len(path) > _DEPTH:
                self._beyond(path, old, new)
            else:
                self._pair(path, old, new)

    def _beyond(self, path: Path, old: object, new: object) -> None:
        if not equal_json(old, new):
            self._tell(path, ChangeEffect.CHANGED, _TOO_MUCH)
        elif self._is_redefined and has_unresolved_reference([old]):
            self._tell(path, ChangeEffect.CHANGED, _ELSEWHERE)

    @cached_property
    def _is_redefined(self) -> bool:
        """Whether definitions changed to which an unresolvable reference may lead."""
        return any(not equal_json(self._old.get(key), self._new.get(key)) for key in _DEFINITIONS)

    def _pair(self, path: Path, old: object, new: object) -> None:
        old_reference, was = resolve_references(old, self._old)
        new_reference, now = resolve_references(new, self._new)
        if self._was_seen(path, old_reference, new_reference):
            return
        before, after = alternatives(was, self._old), alternatives(now, self._new)
        if before is None or after is None:
            self._beyond(path, was, now)
        elif before == [("", was)] and after == [("", now)]:
            self._single(path, was, now)
        else:
            self._several(path, (was, before), (now, after))

    def _was_seen(self, path: Path, old: str, new: str) -> bool:
        """Return whether these two references were compared before, and remember them."""
        if not old and not new:
            return False
        pair = (old or "/".join(path), new or "/".join(path))
        seen = pair in self._seen
        self._seen.add(pair)
        return seen

    def _several(
        self, path: Path, old: tuple[Schema, list[Alternative]], new: tuple[Schema, list[Alternative]]
    ) -> None:
        pairs, gone, added = pair_alternatives(old[1], new[1])
        for one in gone:
            self._tell(path, ChangeEffect.NARROWED, f"{_called(one)} is no longer allowed")
        for one in added:
            self._tell(path, ChangeEffect.WIDENED, f"{_called(one)} is now allowed")
        for keyword, effect, fact in compare_texts(old[0], new[0]):
            self._tell((*path, keyword), effect, fact)
        # Of alternatives, the texts of the whole schema are compared.
        self._waiting += [
            (path, without_texts(was) if was is old[0] else was, without_texts(now) if now is new[0] else now)
            for (old_reference, was), (new_reference, now) in reversed(pairs)
            if not self._was_seen(path, old_reference, new_reference)
        ]

    def _single(self, path: Path, old: Schema, new: Schema) -> None:
        for compare in _TERMS:
            for keyword, effect, fact in compare(old, new):
                self._tell((*path, keyword), effect, fact)
        if self._is_redefined and (has_unresolved_reference(old) or has_unresolved_reference(new)):
            self._tell(path, ChangeEffect.CHANGED, _ELSEWHERE)
        self._items(path, old, new)
        self._additional(path, old, new)
        self._properties(path, old, new)

    def _properties(self, path: Path, old: Schema, new: Schema) -> None:
        before, after = _schema_mapping(old, "properties"), _schema_mapping(new, "properties")
        was_required, is_required = _required(old), _required(new)
        # Parameters that are new and required, or required and removed, are reported as such; undeclared ones may be
        # required too.
        for name in sorted(is_required - was_required - (after.keys() - before.keys())):
            self._tell((*path, "required"), ChangeEffect.NARROWED, f"{excerpt(name)} is now required")
        for name in sorted(was_required - is_required - (before.keys() - after.keys())):
            self._tell((*path, "required"), ChangeEffect.WIDENED, f"{excerpt(name)} is now optional")
        for name in before:
            if name not in after:
                self._removed((*path, "properties", name), name, closed=new.get("additionalProperties") is False)
        for name in after:
            if name not in before:
                self._added((*path, "properties", name), name, required=name in is_required)
        both = [name for name in after if name in before]
        self._waiting += [((*path, "properties", name), before[name], after[name]) for name in reversed(both)]

    def _removed(self, path: Path, name: str, *, closed: bool) -> None:
        if self._side is OUTPUT:
            self._tell(path, ChangeEffect.CHANGED, f"{excerpt(name)} is no longer in the result")
        elif closed:
            self._tell(path, ChangeEffect.NARROWED, f"{excerpt(name)} is no longer a parameter, and is refused")
        else:
            fact = f"{excerpt(name)} is no longer a parameter; a value for it may be ignored"
            self._tell(path, ChangeEffect.NARROWED, fact, breaking=False)

    def _added(self, path: Path, name: str, *, required: bool) -> None:
        if self._side is OUTPUT:
            self._tell(path, ChangeEffect.WIDENED, f"{excerpt(name)} is new in the result", breaking=False)
        elif required:
            self._tell(path, ChangeEffect.NARROWED, f"{excerpt(name)} is a new required parameter")
        else:
            self._tell(path, ChangeEffect.WIDENED, f"{excerpt(name)} is a new optional parameter")

    def _additional(self, path: Path, old: Schema, new: Schema) -> None:
        was, now = _others(old), _others(new)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            self._waiting.append(((*path, "additionalProperties"), was, now))
        elif was is not now and (now is False or was is True):
            self._tell(
                (*path, "additionalProperties"),
                ChangeEffect.NARROWED,
                "additional properties are refused, or must fit a schema",
            )
        elif was is not now:
            self._tell((*path, "additionalProperties"), ChangeEffect.WIDENED, "additional properties are now allowed")

    def _items(self, path: Path, old: Schema, new: Schema) -> None:
        for keyword in ("items", "prefixItems"):
            was, now = old.get(keyword), new.get(keyword)
            if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
                places = reversed(range(len(now)))
                self._waiting += [((*path, keyword, str(place)), was[place], now[place]) for place in places]
            elif isinstance(was, list) or isinstance(now, list):
                self._beyond((*path, keyword), was, now)
            elif was is not None or now is not None:
                self._waiting.append(((*path, keyword), was, now))

    def _tell(self, path: Path, effect: ChangeEffect, fact: str, *, breaking: bool | None = None) -> None:
        breaks = effect in self._side.breaking if breaking is None else breaking
        self.details.append(ChangeDetail(path=path_text(path), effect=effect, fact=fact, breaking=breaks))


def _required(schema: Schema) -> set[str]:
    names = schema.get("required")
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _others(schema: Schema) -> Schema | bool:
    """Return the additional properties that are allowed: all, none, or those that fit a schema."""
    allowed = schema.get("additionalProperties")
    return allowed if allowed is False or (isinstance(allowed, Mapping) and allowed) else True


def _schema_mapping(schema: Schema, keyword: str) -> Mapping[str, object]:
    value = schema.get(keyword)
    return value if isinstance(value, Mapping) else {}


def _called(schema: Schema) -> str:
    title = schema.get("title")
    return excerpt(kind_of(schema) or (title if isinstance(title, str) else "") or "another form", 40)


# The values of hints with which a tool may be called without asking.
_HARMLESS: Final = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_LOST: Final = {
    "readOnlyHint": "it is no longer read-only",
    "destructiveHint": "it may now be destructive",
    "idempotentHint": "it is no longer idempotent",
    "openWorldHint": "it may now interact with external systems",
}
_SHOWN: Final = 60


def compare_definitions(old: Mapping[str, object], new: Mapping[str, object]) -> tuple[ChangeDetail, ...]:
    """Return every difference between two definitions (tools/list entries) except their names.

    Losing a promise of an MCP hint (such as read-only) is breaking, since approvals and policies relied on it.

    >>> old, new = {"annotations": {"readOnlyHint": True}}, {"annotations": {"title": "Read"}}
    >>> [(one.path, one.breaking) for one in compare_definitions(old, new)]
    [('annotations.readOnlyHint', True), ('annotations.title', False)]
    """
    found = [
        *compare_schemas(old.get(INPUT.key), new.get(INPUT.key), INPUT),
        *compare_schemas(old.get(OUTPUT.key), new.get(OUTPUT.key), OUTPUT),
        *_texts((), old, new, ("title", "description")),
        *_annotations(_mapped(old), _mapped(new)),
    ]
    return tuple(found) or tuple(_unexplained(old, new))


def compare_pins(old: Pin, new: Pin) -> tuple[ChangeDetail, ...]:
    """Return every difference between two pins; without their definitions, compare parameters and digests."""
    if old.definition is not None and new.definition is not None:
        return compare_definitions(old.definition, new.definition)
    found = tuple(_parameters(old.parameters, new.parameters))
    if found or old.digest == new.digest:
        return found
    if old.schema == new.schema:
        fact = "a title, the description or an annotation changed"
        return (ChangeDetail(path="description", effect=ChangeEffect.RESTATED, fact=fact, breaking=False),)
    fact = "a schema changed, and only its digest is recorded: treated as breaking"
    return (ChangeDetail(path=INPUT.key, effect=ChangeEffect.CHANGED, fact=fact, breaking=True),)


def _parameters(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[ChangeDetail]:
    was, now = ({one.removesuffix("?"): one.endswith("?") for one in several} for several in (old, new))
    for name, optional in was.items():
        if name not in now:
            yield _parameter(name, ChangeEffect.NARROWED, "is no longer a parameter")
        elif optional is not now[name]:
            effect = ChangeEffect.NARROWED if optional else ChangeEffect.WIDENED
            yield _parameter(name, effect, "is now required" if optional else "is now optional")
    for name, optional in now.items():
        if name not in was:
            effect = ChangeEffect.WIDENED if optional else ChangeEffect.NARROWED
            yield _parameter(name, effect, f"is a new {'optional' if optional else 'required'} parameter")


def _parameter(name: str, effect: ChangeEffect, fact: str) -> ChangeDetail:
    path = path_text((INPUT.key, "properties", name))
    return ChangeDetail(path=path, effect=effect, fact=f"{excerpt(name)} {fact}", breaking=effect in INPUT.breaking)


def _mapped(definition: Mapping[str, object]) -> Mapping[str, object]:
    annotations = definition.get("annotations")
    return annotations if isinstance(annotations, Mapping) else {}


def _annotations(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[ChangeDetail]:
    for name, read in HINTS.items():
        was, now = read(old), read(new)
        # The read-only hint decides the defaults of the other hints.
        if was is not now and (name in old or name in new):
            # For a tool that only reads, the other hints do not matter.
            lost = was is _HARMLESS[name] and not HINTS["readOnlyHint"](new)
            fact = _LOST[name] if lost else f"it is {str(now).lower()}; it was {str(was).lower()}"
            path = path_text(("annotations", name))
            yield ChangeDetail(path=path, effect=ChangeEffect.RESTATED, fact=fact, breaking=lost)
    others = sorted({key for key in (*old, *new) if isinstance(key, str)} - HINTS.keys())
    yield from _texts(("annotations",), old, new, others)


def _texts(
    path: tuple[str, ...], old: Mapping[str, object], new: Mapping[str, object], keys: Iterable[str]
) -> Iterator[ChangeDetail]:
    for key in keys:
        was, now = old.get(key), new.get(key)
        if not equal_json(was, now):
            fact = "it is new" if was is None else "it is missing now" if now is None else "it changed"
            if isinstance(was, str) and isinstance(now, str):
                fact = f"it is {_around(now, was)}; it was {_around(was, now)}"
            where = path_text((*path, key))
            yield ChangeDetail(path=where, effect=ChangeEffect.RESTATED, fact=fact, breaking=False)


def _around(text: str, other: str) -> str:
    """Return the part of a text at its first difference from the other."""
    place = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    start = max(place - _SHOWN // 3, 0) if place > _SHOWN // 2 else 0
    piece = text[start : start + _SHOWN]
    return f"{'...' if start else ''}{excerpt(piece, _SHOWN)}{'...' if len(text) > start + _SHOWN else ''}"


def _unexplained(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[ChangeDetail]:
    """Yield changes that only a digest shows: the title of a schema, or null instead of a missing field."""
    for key in DIGESTED_FIELDS:
        if key != "name" and ((key in old) is not (key in new) or not equal_json(old.get(key), new.get(key))):
            fact = "its notation changed, but not its meaning"
            yield ChangeDetail(path=key, effect=ChangeEffect.RESTATED, fact=fact, breaking=False)
