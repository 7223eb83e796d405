"""Show how a definition differs from another one: words of its texts, and lines of the whole."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ChangedPart", "changed_lines", "changed_words"]

_WORDS: Final = re.compile(r"\s+|\w+|[^\w\s]+")
_LONGEST: Final = 20_000
_CONTEXT: Final = 3


class ChangedPart(NamedTuple):
    """A part of a text: ``same``, ``removed`` or ``added``; ``gap`` stands for lines that are left out."""

    kind: Literal["same", "removed", "added", "gap"]
    text: str


def changed_words(old: str, new: str) -> list[ChangedPart]:
    """Return a text in parts, of which each is in both texts or in one; only the first 20,000 characters of each.

    >>> [(part.kind, part.text) for part in changed_words("read a file", "read any file")]
    [('same', 'read '), ('removed', 'a'), ('added', 'any'), ('same', ' file')]
    """
    before, after = (_WORDS.findall(text[:_LONGEST]) for text in (old, new))
    return [part for part in _compared(before, after, "") if part.text]


def changed_lines(old: Any, new: Any) -> list[ChangedPart]:
    """Return a definition as lines of JSON; lines far from a change are left out."""
    before, after = (_lines(content) for content in (old, new))
    parts: list[ChangedPart] = []
    groups = difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_CONTEXT)
    for number, group in enumerate(groups):
        if number or group[0][1]:
            parts.append(ChangedPart("gap", "..."))
        for kind, a, b, c, d in group:
            if kind == "equal":
                parts += (ChangedPart("same", line) for line in before[a:b])
            else:
                parts += (ChangedPart("removed", line) for line in before[a:b])
                parts += (ChangedPart("added", line) for line in after[c:d])
    return parts


def _compared(before: Sequence[str], after: Sequence[str], joint: str) -> Iterator[ChangedPart]:
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind == "equal":
            yield ChangedPart("same", joint.join(before[a:b]))
        else:
            yield ChangedPart("removed", joint.join(before[a:b]))
            yield ChangedPart("added", joint.join(after[c:d]))


def _lines(content: Any) -> list[str]:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=True, indent=2, sort_keys=True)
    return text[: 10 * _LONGEST].splitlines()
