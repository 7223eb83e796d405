"""Shortening: which words of a name go first when it has to fit.

The order was measured on real catalogues: what carries the meaning is the tool's part, so every character comes out
of the server's part first; then whole words from the middle of the tool's, never the first (the verb), the last, or
one that tells the tool from a sibling. Words are never chopped and vowels never stripped: that costs more tokens, not
fewer.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["drop_words", "prefix_words", "server_variants", "telling_words"]

_NOISE: Final = frozenset({"mcp", "server"})
_FILLERS: Final = frozenset({"a", "an", "the", "of", "for", "by", "in", "on", "to", "with", "and", "or", "is", "if"})

# No client has room for more words; of a longer name the ends are kept and the rest may go.
_MOST_WORDS: Final = 32

Words = tuple[str, ...]


def server_variants(own: Words, full: Words) -> Iterator[Words]:
    """Yield ever shorter forms of the server's part: without organisation, without "mcp" and "server", shaved.

    ``own`` are the words of the key's last segment, ``full`` those of the whole key.

    >>> list(server_variants(("server", "github", "pro"), ("acme", "server", "github", "pro")))[1:]
    [('server', 'github', 'pro'), ('github', 'pro'), ('github',)]
    """
    yield full
    if own != full:
        yield own
    bare = tuple(word for word in own if word.lower() not in _NOISE) or own
    for end in range(len(bare), 0, -1):
        if bare[:end] != own:
            yield bare[:end]


def drop_words(words: Words, room: int, keep: frozenset[str] = frozenset()) -> Words | None:
    """Return the words that are left when enough middle ones are dropped to fit, or None if that can't be done.

    >>> drop_words(("create", "or", "update", "a", "custom", "property"), 22, frozenset({"update"}))
    ('create', 'update', 'property')
    """
    left = list(words)
    middle = [i for i in range(1, len(words) - 1) if words[i].lower() not in keep]
    centre = (len(words) - 1) / 2
    middle.sort(key=lambda i: (words[i].lower() not in _FILLERS, abs(i - centre)))
    length = len("_".join(words))
    for i in middle:
        if length <= room:
            break
        length -= len(words[i]) + 1
        left[i] = ""
    return tuple(word for word in left if word) if length <= room else None


def prefix_words(words: Words, room: int) -> Words:
    """Return as many whole words from the front as fit; one that is too long by itself is cut."""
    kept: list[str] = []
    for word in words:
        if len("_".join([*kept, word])) > room:
            break
        kept.append(word)
    return tuple(kept) or (words[0][:room],)


def telling_words(siblings: Iterable[Words]) -> dict[Words, frozenset[str]]:
    """Return, for each tool's words, those that tell it from a sibling which differs in that one word.

    >>> telling_words([("get", "all", "users"), ("get", "new", "users")])[("get", "all", "users")]
    frozenset({'all'})
    """
    lists = [each for each in dict.fromkeys(siblings) if len(each) <= _MOST_WORDS]
    # Hashes, not the word lists themselves: a hostile server's would fill the memory.
    without: Counter[int] = Counter()
    for each in lists:
        without.update({hash(each), *_leaving_one_out(each)})
    return {
        each: frozenset(
            word.lower() for word, key in zip(each, _leaving_one_out(each), strict=True) if without[key] > 1
        )
        for each in lists
    }


def _leaving_one_out(words: Words) -> Iterator[int]:
    return (hash(words[:i] + words[i + 1 :]) for i in range(len(words)))
