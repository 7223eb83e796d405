"""A definition that changed, for people: which words, which parameters; nothing of it reaches a terminal as it is."""

from __future__ import annotations

import difflib
import re
import textwrap
from typing import TYPE_CHECKING, Any, Final

from truename.conventions.rules.characters import INVISIBLE
from truename.migration import LOCK_FILE
from truename.migration.definitions import compare_definitions
from truename.trust import SeenDefinition
from truename.trust.pins import BY_LOCK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.conventions import Finding
    from truename.trust import PinnedTool

__all__ = ["change_of", "lines_of", "pin_row", "plain_pin", "titled", "when"]

_SHOWN: Final = 12
_BY_NOBODY: Final = {"trusted": "first sight", "waiting": "", "rejected": "[trust]"}
_LONGEST_NAME: Final = 64
_STRUCTURED: Final = ("inputSchema", "outputSchema", "annotations")
_WORDS: Final = re.compile(r"\S+|\s+")
_LONGEST: Final = 20_000
_AROUND: Final = 40
_WIDTH: Final = 100


def when(at: str) -> str:
    """Return a time as people read it."""
    return at.replace("T", " ").removesuffix("+00:00")


def titled(one: PinnedTool) -> str:
    """Return the key, with what its server calls a tool where the id does not say it."""
    if one.id is None:
        return f"{_printable(one.key)} ({'instructions' if one.content else 'no instructions'})"
    return str(one.id) if one.name == one.id.tool else f"{one.id} ({_printable(one.name[:_LONGEST_NAME])})"


def pin_row(one: PinnedTool) -> list[str]:
    """Return the row of a table."""
    return [
        _word(one),
        titled(one),
        when(one.at),
        _printable(one.by) or _BY_NOBODY[_word(one)],
        one.digest[7 : 7 + _SHOWN],
    ]


def plain_pin(one: PinnedTool) -> dict[str, Any]:
    """Return an entry of JSON output."""
    return {
        "tool": one.key,
        "server": one.server,
        "name": one.name,
        "state": _word(one),
        "digest": one.digest,
        "at": one.at,
        "by": one.by,
    }


def _word(one: PinnedTool) -> str:
    return one.word if isinstance(one, SeenDefinition) else "trusted"


def change_of(one: SeenDefinition, before: PinnedTool | None, findings: Sequence[Finding]) -> dict[str, Any]:
    """Return a change as JSON: both definitions, each difference, and what rules say of it."""
    return {
        **plain_pin(one),
        "before": None if before is None else before.content,
        "after": one.content,
        "differences": [
            {"path": detail.path, "effect": detail.effect.value, "fact": detail.fact, "breaking": detail.breaking}
            for detail in _details(one, before)
        ],
        "findings": [{"rule": found.rule.name, "code": found.rule.code, "fact": found.fact} for found in findings],
    }


def _details(one: SeenDefinition, before: PinnedTool | None) -> tuple[Any, ...]:
    if before is None or not isinstance(before.content, dict) or not isinstance(one.content, dict):
        return ()
    return compare_definitions(before.content, one.content)


def lines_of(one: SeenDefinition, before: PinnedTool | None, findings: Sequence[Finding] = ()) -> Iterator[str]:
    """Yield what there is to read: what rules say, texts word by word, and of the rest each difference."""
    yield from (f"{found.rule.name}: {_printable(found.fact)}" for found in findings)
    yield from _changes(one, before)


def _changes(one: SeenDefinition, before: PinnedTool | None) -> Iterator[str]:
    if one.content is None or (before is not None and before.content is None):
        if one.content is None or before is None or before.by != BY_LOCK:
            yield "The definition was too large to be kept; only its digest is known."
            return
        yield f"{LOCK_FILE} has another definition, and of that only the digest. This one says:"
        yield from _whole(one.content)
        return
    if before is None:
        yield "It was never trusted. It says:"
        yield from _whole(one.content)
        return
    if isinstance(one.content, str):
        yield from _worded("instructions", str(before.content), one.content)
        return
    texts = [key for key in ("title", "description") if before.content.get(key) != one.content.get(key)]
    for key in texts:
        yield from _worded(key, _text(before.content, key), _text(one.content, key))
    for detail in _details(one, before):
        if detail.path not in texts:
            yield f"{detail}{' (breaking)' if detail.breaking else ''}"
    yield from _reworded(before.content, one.content)


def _reworded(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts inside of schemas and annotations that came or changed, whole: models read them too."""
    was = dict(_inner(old))
    for path, text in _inner(new):
        if was.get(path) != text:
            yield from _worded(path, was.get(path, ""), text)


def _inner(content: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what is said in words inside of schemas and annotations, with its paths, as far as there is room."""
    left: list[tuple[str, Any]] = [(key, content[key]) for key in reversed(_STRUCTURED) if key in content]
    room = _LONGEST
    while left and room > 0:
        path, value = left.pop()
        room -= 1
        if isinstance(value, str) and len(value.split()) > 1:
            yield path, value
        elif isinstance(value, dict):
            left += [(f"{path}.{_printable(str(key))}", one) for key, one in reversed(value.items())]
        elif isinstance(value, list):
            left += [(f"{path}[{number}]", one) for number, one in reversed([*enumerate(value)])]


def _text(content: Mapping[str, Any], key: str) -> str:
    value = content.get(key)
    return value if isinstance(value, str) else ""


def _whole(content: object) -> Iterator[str]:
    if isinstance(content, str):
        yield _printable(content)
    elif isinstance(content, dict):
        for key in ("title", "description"):
            if text := _text(content, key):
                yield f"{key}: {_printable(text)}"
        schema = content.get("inputSchema")
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if isinstance(properties, dict) and properties:
            yield f"parameters: {', '.join(_printable(str(name)) for name in list(properties)[:50])}"
        yield from (f"{path}: {_printable(text[:_LONGEST])}" for path, text in _inner(content))


def _worded(key: str, old: str, new: str) -> Iterator[str]:
    """Yield the words that went as [-words-] and those that came as {+words+}, with a little of what is around."""
    parts = [
        _cut(gone) if kind == "equal" else (f"[-{gone}-]" if gone else "") + (f"{{+{come}+}}" if come else "")
        for kind, gone, come in _merged(*(_WORDS.findall(_printable(text[:_LONGEST])) for text in (old, new)))
    ]
    yield f"{key}:"
    yield from textwrap.wrap("".join(parts), _WIDTH, initial_indent="    ", subsequent_indent="    ")
    if max(len(old), len(new)) > _LONGEST:
        yield f"    ... and more beyond {_LONGEST:,} characters"


def _merged(before: list[str], after: list[str]) -> list[tuple[str, str, str]]:
    """Return what stayed, went and came, in order; two changes with nothing but a space between them are one."""
    merged: list[tuple[str, str, str]] = []
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, come = "".join(before[a:b]), "".join(after[c:d])
        is_gap = kind == "equal" and not gone.strip() and bool(merged)
        if merged and merged[-1][0] == "changed" and (kind != "equal" or is_gap):
            merged[-1] = ("changed", merged[-1][1] + gone, merged[-1][2] + come)
        else:
            merged.append(("equal" if kind == "equal" else "changed", gone, come))
    return merged


def _cut(text: str) -> str:
    return text if len(text) <= 2 * _AROUND + 5 else f"{text[:_AROUND]} ... {text[-_AROUND:]}"


def _printable(text: str) -> str:
    """Return text in which everything that a terminal or a reader would not see is written out."""
    return "".join(c if c.isprintable() and c.isascii() else ascii(c)[1:-1] if not _is_plain(c) else c for c in text)


def _is_plain(character: str) -> bool:
    is_seen = character.isprintable() and INVISIBLE.fullmatch(character) is None
    return is_seen and (character.isalnum() or character in "–—‘’“”…·•→€£°")
