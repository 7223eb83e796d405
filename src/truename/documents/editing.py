"""From a wanted value to the fewest edits of a file's text, and those edits as a list that can be kept."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from truename.documents.merging import ABSENT, reached, same
from truename.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from truename.documents.document import Document
    from truename.documents.spans import Where

__all__ = ["edited", "edits", "replayed"]


def edited(document: Document, wanted: Any) -> Document:
    """Return the document with this value, every part of its text that says the same already left as it is.

    Raises `ConfigError` (``left_alone``) if the text can't be brought to say it.
    """
    changed = _towards(document, wanted, ())
    if not same(changed.value, wanted):
        raise ConfigError(
            code="left_alone",
            file=str(document.path),
            key="",
            problem="its text can't be changed in place to say what is wanted",
            remedy="Nothing was changed; make the change by hand.",
        )
    return changed


def edits(before: Any, after: Any, where: Where = ()) -> list[tuple[Where, Any]]:
    """Return what leads from one value to the other: places with their new values, `ABSENT` for what is taken out.

    >>> edits({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}})
    [(('a',), ABSENT), (('b', 'c'), 3)]
    """
    if same(before, after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            edit
            for key in dict.fromkeys([*before, *after])
            for edit in edits(before.get(key, ABSENT), after.get(key, ABSENT), (*where, key))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [edit for place, (one, other) in enumerate(pairs) for edit in edits(one, other, (*where, place))]
    return [(where, after)]


def replayed(before: Any, changes: Iterable[tuple[Where, Any]]) -> Any:
    """Return the value with these edits made. Raises `TypeError` for edits that belong to another value."""
    value = before
    for where, after in changes:
        value = _with(value, where, after)
    return value


def _with(value: Any, where: Where, new: Any) -> Any:
    if not where:
        return new
    key, rest = where[0], where[1:]
    if isinstance(value, list) and isinstance(key, int) and key <= len(value):
        items = value[key : key + 1] or [ABSENT]
        return [*value[:key], *_present(_with(items[0], rest, new)), *value[key + 1 :]]
    if value is ABSENT or value is None:
        value = {}
    if not isinstance(value, dict) or not isinstance(key, str):
        message = f"there is no place {key!r}"
        raise TypeError(message)
    changed = {**value, key: _with(value.get(key, ABSENT), rest, new)}
    return {name: one for name, one in changed.items() if one is not ABSENT}


def _present(item: Any) -> list[Any]:
    return [] if item is ABSENT else [item]


def _towards(document: Document, wanted: Any, where: Where) -> Document:
    current = reached(document.value, where)
    if same(current, wanted):
        return document
    if isinstance(current, dict) and isinstance(wanted, dict):
        return _object(document, current, wanted, where)
    if isinstance(current, list) and isinstance(wanted, list):
        return _list(document, current, wanted, where)
    return document.with_value(where, wanted)


def _object(document: Document, current: dict[str, Any], wanted: dict[str, Any], where: Where) -> Document:
    # First what is new, so that no object is empty for a moment and loses its form.
    for key, value in wanted.items():
        document = _towards(document, value, (*where, key))
    for key in current:
        if key not in wanted:
            document = document.without((*where, key))
    return document


def _list(document: Document, current: list[Any], wanted: list[Any], where: Where) -> Document:
    steps = _steps(current, wanted)
    if any(tag == "insert" and i < len(current) for tag, i, *_ in steps):
        return document.with_value(where, wanted)
    for tag, i, to_i, j, to_j in reversed(steps):
        shared = min(to_i - i, to_j - j)
        for place in range(to_i - 1, i + shared - 1, -1):
            document = document.without((*where, place))
        if tag == "insert" or (to_j - j > shared and to_i == len(current)):
            for place in range(shared, to_j - j):
                document = document.with_value((*where, i + place), wanted[j + place])
        for place in range(shared):
            document = _towards(document, wanted[j + place], (*where, i + place))
    if not same(reached(document.value, where), wanted):
        return document.with_value(where, wanted)
    return document


def _steps(current: Sequence[Any], wanted: Sequence[Any]) -> list[tuple[str, int, int, int, int]]:
    matcher = SequenceMatcher(a=[repr(one) for one in current], b=[repr(one) for one in wanted], autojunk=False)
    return [step for step in matcher.get_opcodes() if step[0] != "equal"]
