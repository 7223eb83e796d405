"""What the change of a schema does to those who relied on it: narrowed, widened, or changed incompatibly.

Schemas are hostile: references may run in circles, depth and size have no end. The comparison follows each pair of
references once, goes down a bounded number of levels and looks at a bounded number of pairs; what is beyond is taken
for the worst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from truename.errors import excerpt
from truename.migration.effects import OUTPUT, Detail, Effect, Side, path_text
from truename.migration.forms import alternatives, followed, paired, unspoken
from truename.migration.terms import (
    alike,
    annotated,
    kind_of,
    of_bounds,
    of_enum,
    of_opaque,
    of_plain,
    of_type,
    refers,
)

__all__ = ["compare_schemas"]

Schema = Mapping[str, Any]
Path = tuple[str, ...]

_DEPTH: Final = 40
_PAIRS: Final = 20_000
_DETAILS: Final = 500
_TERMS: Final[tuple[Callable[[Schema, Schema], Iterator[tuple[str, Effect, str]]], ...]] = (
    of_type,
    of_enum,
    of_bounds,
    of_plain,
    of_opaque,
    annotated,
)
_TOO_MUCH: Final = "it is too large, too deep or too intricate to compare, and it changed"
_ELSEWHERE: Final = "it refers to definitions that changed, and can't be followed"
_DEFINITIONS: Final = ("$defs", "definitions")


def compare_schemas(old: object, new: object, side: Side) -> tuple[Detail, ...]:
    """Return every difference between two schemas of one tool, in the order of the new one; none if they are equal.

    ``old`` and ``new`` are JSON Schemas (JSON Schema 2020-12, with the older drafts' ``definitions``) or None. For an
    input, what was allowed has to stay allowed; for an output it is the other way round.

    >>> from truename.migration.effects import INPUT
    >>> old = {"type": "object", "properties": {"path": {"type": "string"}}}
    >>> new = {"type": "object", "properties": {"path": {"type": ["string", "null"]}}}
    >>> [str(one) for one in compare_schemas(old, new, INPUT)]
    ["inputSchema.properties.path: 'null' is allowed too"]
    >>> compare_schemas(old, new, OUTPUT)[0].breaking
    True
    """
    if alike(old, new):
        return ()
    if side is OUTPUT and not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return _whole_output(old, side)
    comparison = _Comparison(_rooted(old), _rooted(new), side)
    comparison.run()
    return tuple(comparison.details)


def _rooted(schema: object) -> Schema:
    given = schema if isinstance(schema, Mapping) else {}
    return given if "type" in given else {"type": "object", **given}


def _whole_output(old: object, side: Side) -> tuple[Detail, ...]:
    lost = isinstance(old, Mapping)
    fact = "the result has no schema any more" if lost else "the result has a schema now"
    effect = Effect.WIDENED if lost else Effect.NARROWED
    return (Detail(path=side.key, effect=effect, fact=fact, breaking=lost),)


class _Comparison:
    """One walk down two schemas, pair by pair."""

    def __init__(self, old: Schema, new: Schema, side: Side) -> None:
        self.details: list[Detail] = []
        self._old = old
        self._new = new
        self._side = side
        self._left = _PAIRS
        self._seen: set[tuple[str, str]] = set()
        self._waiting: list[tuple[Path, object, object]] = [((side.key,), old, new)]

    def run(self) -> None:
        # An own stack: the depth of a hostile schema must not be Python's.
        while self._waiting:
            if len(self.details) >= _DETAILS:
                # Whoever hides a difference behind hundreds of others gains nothing.
                self._tell((self._side.key,), Effect.CHANGED, f"it has over {_DETAILS} differences; others may follow")
                return
            path, old, new = self._waiting.pop()
            self._left -= 1
            if self._left < 0 or len(path) > _DEPTH:
                self._beyond(path, old, new)
            else:
                self._pair(path, old, new)

    def _beyond(self, path: Path, old: object, new: object) -> None:
        if not alike(old, new):
            self._tell(path, Effect.CHANGED, _TOO_MUCH)
        elif self._is_redefined and refers([old]):
            self._tell(path, Effect.CHANGED, _ELSEWHERE)

    @cached_property
    def _is_redefined(self) -> bool:
        """Whether the definitions have changed that a reference which can't be followed may lead to."""
        return any(not alike(self._old.get(key), self._new.get(key)) for key in _DEFINITIONS)

    def _pair(self, path: Path, old: object, new: object) -> None:
        old_reference, was = followed(old, self._old)
        new_reference, now = followed(new, self._new)
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
        """Tell whether these two references were compared before, and remember them."""
        if not old and not new:
            return False
        pair = (old or "/".join(path), new or "/".join(path))
        seen = pair in self._seen
        self._seen.add(pair)
        return seen

    def _several(self, path: Path, old: tuple[Schema, Any], new: tuple[Schema, Any]) -> None:
        pairs, gone, added = paired(old[1], new[1])
        for one in gone:
            self._tell(path, Effect.NARROWED, f"{_called(one)} is no longer allowed")
        for one in added:
            self._tell(path, Effect.WIDENED, f"{_called(one)} is allowed too")
        for keyword, effect, fact in annotated(old[0], new[0]):
            self._tell((*path, keyword), effect, fact)
        # Of several alternatives it is the whole that speaks.
        self._waiting += [
            (path, unspoken(was) if was is old[0] else was, unspoken(now) if now is new[0] else now)
            for (old_reference, was), (new_reference, now) in reversed(pairs)
            if not self._was_seen(path, old_reference, new_reference)
        ]

    def _single(self, path: Path, old: Schema, new: Schema) -> None:
        for compare in _TERMS:
            for keyword, effect, fact in compare(old, new):
                self._tell((*path, keyword), effect, fact)
        if self._is_redefined and (refers(old) or refers(new)):
            self._tell(path, Effect.CHANGED, _ELSEWHERE)
        self._items(path, old, new)
        self._additional(path, old, new)
        self._properties(path, old, new)

    def _properties(self, path: Path, old: Schema, new: Schema) -> None:
        before, after = _mapped(old, "properties"), _mapped(new, "properties")
        was_required, is_required = _required(old), _required(new)
        # What is new and required, or required and gone, is told as that; what nobody declared may be required, too.
        for name in sorted(is_required - was_required - (after.keys() - before.keys())):
            self._tell((*path, "required"), Effect.NARROWED, f"{excerpt(name)} is required now")
        for name in sorted(was_required - is_required - (before.keys() - after.keys())):
            self._tell((*path, "required"), Effect.WIDENED, f"{excerpt(name)} is optional now")
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
            self._tell(path, Effect.CHANGED, f"{excerpt(name)} is no longer in the result")
        elif closed:
            self._tell(path, Effect.NARROWED, f"{excerpt(name)} is no longer a parameter, and is refused")
        else:
            fact = f"{excerpt(name)} is no longer a parameter; where it is still given it may be ignored"
            self._tell(path, Effect.NARROWED, fact, breaking=False)

    def _added(self, path: Path, name: str, *, required: bool) -> None:
        if self._side is OUTPUT:
            self._tell(path, Effect.WIDENED, f"{excerpt(name)} is new in the result", breaking=False)
        elif required:
            self._tell(path, Effect.NARROWED, f"{excerpt(name)} is a new required parameter")
        else:
            self._tell(path, Effect.WIDENED, f"{excerpt(name)} is a new optional parameter")

    def _additional(self, path: Path, old: Schema, new: Schema) -> None:
        was, now = _others(old), _others(new)
        if isinstance(was, Mapping) and isinstance(now, Mapping):
            self._waiting.append(((*path, "additionalProperties"), was, now))
        elif was is not now and (now is False or was is True):
            self._tell((*path, "additionalProperties"), Effect.NARROWED, "others are refused, or have to fit a schema")
        elif was is not now:
            self._tell((*path, "additionalProperties"), Effect.WIDENED, "others are allowed too")

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

    def _tell(self, path: Path, effect: Effect, fact: str, *, breaking: bool | None = None) -> None:
        breaks = effect in self._side.breaking if breaking is None else breaking
        self.details.append(Detail(path=path_text(path), effect=effect, fact=fact, breaking=breaks))


def _required(schema: Schema) -> set[str]:
    names = schema.get("required")
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


def _others(schema: Schema) -> Any:
    """Return what is allowed beside the named properties: all, none, or what fits a schema."""
    allowed = schema.get("additionalProperties")
    return allowed if allowed is False or (isinstance(allowed, Mapping) and allowed) else True


def _mapped(schema: Schema, keyword: str) -> Mapping[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, Mapping) else {}


def _called(schema: Schema) -> str:
    title = schema.get("title")
    return excerpt(kind_of(schema) or (title if isinstance(title, str) else "") or "another form", 40)
