"""What differs between two definitions of one tool: schemas, texts and hints; or what digests alone tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.errors import excerpt
from truename.identity.definition import DIGESTED_FIELDS
from truename.migration.effects import INPUT, OUTPUT, Detail, Effect, path_text
from truename.migration.schemas import compare_schemas
from truename.migration.terms import alike
from truename.policy.rules import HINTS

if TYPE_CHECKING:
    from truename.migration.pins import Pin

__all__ = ["compare_definitions", "compare_pins"]

# What a hint says of a tool that may be called without asking.
_HARMLESS: Final = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
_LOST: Final = {
    "readOnlyHint": "it changes something now, and was called read-only",
    "destructiveHint": "it may destroy something now, and was said not to",
    "idempotentHint": "a second call does more now, and was said to do nothing",
    "openWorldHint": "it reaches outside now, and was said not to",
}
_SHOWN: Final = 60


def compare_definitions(old: Mapping[str, Any], new: Mapping[str, Any]) -> tuple[Detail, ...]:
    """Return every difference between two definitions (tools/list entries) but that of their names.

    A hint of the Model Context Protocol that was a promise (read-only) and is none any more is breaking: approvals
    and policies went by it.

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


def compare_pins(old: Pin, new: Pin) -> tuple[Detail, ...]:
    """Return every difference between two pins; where a definition is not at hand, by parameters and digests."""
    if old.definition is not None and new.definition is not None:
        return compare_definitions(old.definition, new.definition)
    found = tuple(_parameters(old.parameters, new.parameters))
    if found or old.digest == new.digest:
        return found
    if old.schema == new.schema:
        fact = "a title, the description or an annotation changed"
        return (Detail(path="description", effect=Effect.RESTATED, fact=fact, breaking=False),)
    fact = "a schema changed, and only its digest is on record: taken for the worst"
    return (Detail(path=INPUT.key, effect=Effect.CHANGED, fact=fact, breaking=True),)


def _parameters(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[Detail]:
    was, now = ({one.removesuffix("?"): one.endswith("?") for one in several} for several in (old, new))
    for name, optional in was.items():
        if name not in now:
            yield _parameter(name, Effect.NARROWED, "is no longer a parameter")
        elif optional is not now[name]:
            effect = Effect.NARROWED if optional else Effect.WIDENED
            yield _parameter(name, effect, "is required now" if optional else "is optional now")
    for name, optional in now.items():
        if name not in was:
            effect = Effect.WIDENED if optional else Effect.NARROWED
            yield _parameter(name, effect, f"is a new {'optional' if optional else 'required'} parameter")


def _parameter(name: str, effect: Effect, fact: str) -> Detail:
    path = path_text((INPUT.key, "properties", name))
    return Detail(path=path, effect=effect, fact=f"{excerpt(name)} {fact}", breaking=effect in INPUT.breaking)


def _mapped(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    annotations = definition.get("annotations")
    return annotations if isinstance(annotations, Mapping) else {}


def _annotations(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Detail]:
    for name, read in HINTS.items():
        was, now = read(old), read(new)
        # Read-only or not decides what the others are where nothing is said of them.
        if was is not now and (name in old or name in new):
            # Of a tool that only reads, nothing else is asked.
            lost = was is _HARMLESS[name] and not HINTS["readOnlyHint"](new)
            fact = _LOST[name] if lost else f"it is {str(now).lower()}; it was {str(was).lower()}"
            path = path_text(("annotations", name))
            yield Detail(path=path, effect=Effect.RESTATED, fact=fact, breaking=lost)
    others = sorted({key for key in (*old, *new) if isinstance(key, str)} - HINTS.keys())
    yield from _texts(("annotations",), old, new, others)


def _texts(path: tuple[str, ...], old: Mapping[str, Any], new: Mapping[str, Any], keys: Any) -> Iterator[Detail]:
    for key in keys:
        was, now = old.get(key), new.get(key)
        if not alike(was, now):
            where = path_text((*path, key))
            yield Detail(path=where, effect=Effect.RESTATED, fact=_restated(was, now), breaking=False)


def _restated(was: object, now: object) -> str:
    if not isinstance(was, str) or not isinstance(now, str):
        return "it is new" if was is None else "it is gone" if now is None else "it changed"
    return f"it is {_around(now, was)}; it was {_around(was, now)}"


def _around(text: str, other: str) -> str:
    """Return the piece of a text in which it begins to differ from the other."""
    place = next((i for i, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), min(len(text), len(other)))
    start = max(place - _SHOWN // 3, 0) if place > _SHOWN // 2 else 0
    piece = text[start : start + _SHOWN]
    return f"{'...' if start else ''}{excerpt(piece, _SHOWN)}{'...' if len(text) > start + _SHOWN else ''}"


def _unexplained(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Detail]:
    """Return what no comparison tells apart and a digest does: the title of a schema, null for nothing."""
    for key in DIGESTED_FIELDS:
        if key != "name" and ((key in old) is not (key in new) or not alike(old.get(key), new.get(key))):
            fact = "it is written otherwise, and says the same"
            yield Detail(path=key, effect=Effect.RESTATED, fact=fact, breaking=False)
