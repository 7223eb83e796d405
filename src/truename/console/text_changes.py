"""Show how a definition differs from another one: words of its texts, and lines of the whole.

A server may send texts that take minutes to compare word by word. Equal beginnings and ends are found first, and what
is left is compared only where that takes milliseconds; else it is shown as removed and added as a whole. Nothing is
left out of what changed.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Kind = Literal["same", "removed", "added", "gap"]

__all__ = ["ChangedPart", "changed_lines", "changed_words", "first_that_fit"]

T = TypeVar("T")

_WORDS: Final = re.compile(r"\w+\s*|[^\w\s]+\s*|\s+")
_CONTEXT: Final = 3
# Characters; a browser shows a page of as many at once.
_ROOM: Final = 500_000
# Pairs of equal words; the time to compare two texts grows with them.
_MOST_PAIRS: Final = 40_000


class ChangedPart(NamedTuple):
    """A part of a text: ``same``, ``removed`` or ``added``; ``gap`` stands for equal lines that are left out."""

    kind: Kind
    text: str


def first_that_fit(made: Iterable[T], parts: Callable[[T], Iterable[ChangedPart]]) -> list[T]:
    """Return the first things whose texts fit on a page together, and always the first one, whole.

    >>> first_that_fit("abc", lambda one: [ChangedPart("same", one * 300_000)])
    ['a', 'b']
    """
    found: list[T] = []
    room = _ROOM
    for one in made:
        found.append(one)
        room -= sum(len(part.text) for part in parts(one))
        if room <= 0:
            break
    return found


def changed_words(old: str, new: str) -> list[ChangedPart]:
    """Return a text in parts, of which each is in both texts or in one.

    >>> [(part.kind, part.text) for part in changed_words("read a file", "read any file")]
    [('same', 'read '), ('removed', 'a '), ('added', 'any '), ('same', 'file')]
    """
    before, after = (_WORDS.findall(text) for text in (old, new))
    return [ChangedPart(kind, "".join(words)) for kind, words in _compared(before, after)]


def changed_lines(old: Any, new: Any) -> list[ChangedPart]:
    """Return a definition as lines of JSON; equal lines far from a change are left out.

    >>> [(part.kind, part.text) for part in changed_lines({"a": 1}, {"a": 2})]
    [('same', '{'), ('removed', '  "a": 1'), ('added', '  "a": 2'), ('same', '}')]
    """
    runs = list(_compared(_lines(old), _lines(new)))
    parts: list[ChangedPart] = []
    for place, (kind, lines) in enumerate(runs):
        if kind != "same":
            parts += (ChangedPart(kind, line) for line in lines)
            continue
        head = _CONTEXT if place else 0
        tail = _CONTEXT if place < len(runs) - 1 else 0
        if len(lines) <= head + tail + 1:
            parts += (ChangedPart("same", line) for line in lines)
            continue
        parts += (ChangedPart("same", line) for line in lines[:head])
        parts.append(ChangedPart("gap", f"... {len(lines) - head - tail:,} equal lines"))
        parts += (ChangedPart("same", line) for line in lines[len(lines) - tail :])
    return parts


def _compared(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Kind, Sequence[str]]]:
    """Yield runs of equal, removed and added elements, none of them empty."""
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    end = next((at for at in range(most - start) if before[-1 - at] != after[-1 - at]), most - start)
    if start:
        yield "same", before[:start]
    yield from _middle(before[start : len(before) - end], after[start : len(after) - end])
    if end:
        yield "same", before[len(before) - end :]


def _middle(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[Kind, Sequence[str]]]:
    counts = Counter(after)
    is_quick = sum(counts[one] for one in before) <= _MOST_PAIRS
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False) if is_quick else None
    whole = [("replace", 0, len(before), 0, len(after))]
    for kind, a, b, c, d in whole if matcher is None else matcher.get_opcodes():
        if kind == "equal":
            yield "same", before[a:b]
            continue
        if a < b:
            yield "removed", before[a:b]
        if c < d:
            yield "added", after[c:d]


def _lines(content: Any) -> list[str]:
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=True, indent=2, sort_keys=True)
    return text.splitlines()
