"""Merge three versions of a plain value: undo our own edit in a value that others have changed since."""

from __future__ import annotations

import json
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.editing.syntax import KeyPath

__all__ = ["ABSENT", "MergedValue", "is_same_value", "merge", "value_at"]


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


# The value of a missing key; None stands for null, which is a value.
ABSENT: Final = _Absent()


class MergedValue(NamedTuple):
    """A merged value, and the paths that both sides changed differently: there ``theirs`` is kept."""

    value: Any
    contested: tuple[KeyPath, ...]


def merge(base: object, mine: object, theirs: object, where: KeyPath = ()) -> MergedValue:
    """Return ``theirs`` with the change from ``base`` to ``mine`` applied.

    Objects are merged key by key. Lists are merged item by item whatever their positions, or by ``name`` where every
    item is an object with a unique name.

    >>> merge({"a": 2}, {"a": 1}, {"a": 2, "b": 3}).value
    {'a': 1, 'b': 3}
    >>> merge(["new"], ["old"], ["theirs", "new"]).value
    ['theirs', 'old']
    """
    if is_same_value(theirs, base) or is_same_value(theirs, mine):
        return MergedValue(mine, ())
    if is_same_value(mine, base):
        return MergedValue(theirs, ())
    if isinstance(base, dict) and isinstance(mine, dict) and isinstance(theirs, dict):
        merged, contested = _merge_objects(base, mine, theirs, where)
        return MergedValue(merged, contested)
    if isinstance(base, list) and isinstance(mine, list) and isinstance(theirs, list):
        named = [names for one in (base, mine, theirs) if (names := _by_name(one)) is not None]
        if len(named) == 3:
            merged, contested = _merge_objects(named[0], named[1], named[2], where)
            return MergedValue(list(merged.values()), contested)
        return _merge_lists(base, mine, theirs, where)
    return MergedValue(theirs, (where,))


def value_at(value: Any, where: KeyPath) -> Any:
    """Return the value at a path, or `ABSENT`."""
    for key in where:
        listed = isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value)
        if not listed and not (isinstance(value, dict) and key in value):
            return ABSENT
        value = value[key]
    return value


def is_same_value(one: object, other: object) -> bool:
    """Return whether two values are equal as JSON; the order of an object's keys is ignored."""
    # Compared as text because True == 1 in Python, while a file distinguishes them.
    return one is other or (one is not ABSENT and other is not ABSENT and _text(one) == _text(other))


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)


def _merge_objects(
    base: dict[str, object], mine: dict[str, object], theirs: dict[str, object], where: KeyPath
) -> tuple[dict[str, object], tuple[KeyPath, ...]]:
    merged: dict[str, object] = {}
    contested: list[KeyPath] = []
    for key in dict.fromkeys([*theirs, *mine]):
        was, wanted, now = (one.get(key, ABSENT) for one in (base, mine, theirs))
        value, fought = merge(was, wanted, now, (*where, key))
        contested += fought
        if value is not ABSENT:
            merged[key] = value
    return merged, tuple(contested)


def _by_name(items: list[object]) -> dict[str, object] | None:
    named: dict[str, object] = {
        item["name"]: item for item in items if isinstance(item, dict) and isinstance(item.get("name"), str)
    }
    return named if len(named) == len(items) else None


def _merge_lists(base: list[object], mine: list[object], theirs: list[object], where: KeyPath) -> MergedValue:
    merged = list(theirs)
    contested: list[KeyPath] = []
    ours, former = [_text(item) for item in base], [_text(item) for item in mine]
    for tag, i, to_i, j, to_j in SequenceMatcher(a=ours, b=former, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        pairs = [(slice(n, n + 1), slice(j + n - i, j + n - i + 1)) for n in range(i, to_i)]
        for left, right in pairs if to_i - i == to_j - j else [(slice(i, to_i), slice(j, to_j))]:
            before = base[left.start - 1] if left.start else ABSENT
            if not _swap(merged, base[left], mine[right], before):
                contested.append(where)
    return MergedValue(merged, tuple(contested))


def _swap(items: list[object], out: Sequence[object], back: Sequence[object], before: object) -> bool:
    """Replace the items ``out`` with the items ``back``; return whether any of ``out`` was found."""
    texts = [_text(item) for item in items]
    places = sorted({texts.index(_text(item)) for item in out if _text(item) in texts})
    if out and not places:
        return False
    if places:
        at = places[0]
    else:
        at = texts.index(_text(before)) + 1 if before is not ABSENT and _text(before) in texts else len(items)
    for place in reversed(places):
        del items[place]
    left = {_text(item) for item in items}
    items[at:at] = [item for item in back if _text(item) not in left]
    return True
