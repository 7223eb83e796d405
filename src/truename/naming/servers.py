"""Servers' parts: what stands for each server in front of its tools' names.

A key says more than a reader needs: an organisation, "mcp", "server". They are left out unless two servers would then
have the same part. No part is another server's name: a permission for all tools of ``lark`` would match those of
``lark-all-dot``.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.identity import fold
from truename.naming.shorten import VERBS

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

__all__ = ["NOISE", "Key", "Overlap", "ServerPart", "ServerParts", "key_forms"]

Words = tuple[str, ...]
NOISE: Final = frozenset({"mcp", "server"})
# Words that say nothing of a server when they stand alone or at the end.
_VAGUE: Final = frozenset(
    {
        *("a", "advanced", "after", "all", "an", "and", "api", "app", "by", "client", "core", "data", "demo", "for"),
        *("from", "full", "in", "local", "my", "new", "of", "on", "plus", "private", "pro", "remote", "service"),
        *("test", "the", "to", "tool", "tools", "using", "with"),
    }
)
# No client has room for more words of a server in front of a tool's.
_MOST_WORDS: Final = 6


class Key(NamedTuple):
    """A server's key: ``text`` as the dialect spells it, or the operator's ``alias``, and its words.

    ``full`` are all words, ``own`` those of the last segment, ``organisation`` those in front of it, where the name of
    a person or a firm is one word. ``is_whole``: the style shows the key as it is, so nothing is left out of it.
    """

    text: str
    full: Words
    own: Words
    alias: str | None = None
    is_whole: bool = False
    organisation: Words = ()


class Overlap(NamedTuple):
    """What a server's part and a tool's name both say, in words.

    Either the last ``of_server`` words of the part are left out, or the first ``of_tool`` words of the name. ``said``
    is how many of the tool's first words the part says where it stands in full.
    """

    of_server: int
    of_tool: int
    said: int


class ServerPart(NamedTuple):
    """What stands for a server: the text, its words, the longer forms of the key, and the alias, if that is it."""

    text: str
    words: Words
    longer: tuple[str, ...] = ()
    alias: str | None = None

    def called(self, text: str) -> ServerPart:
        """Return the same server under a longer form of its key."""
        return ServerPart(text, tuple(fold(text).split("_")), (), self.alias)


def key_forms(own: Words, full: Words, organisation: Words = ()) -> tuple[Words, ...]:
    """Return the forms of a key, shortest first: without organisation and noise, with the one, with the other, whole.

    >>> [" ".join(form) for form in key_forms(("mcp", "git"), ("acme", "mcp", "git"), ("acme",))]
    ['git', 'acme git', 'mcp git', 'acme mcp git']
    """
    bare = _without_noise(own) or _without_noise(full) or full
    named = bare if bare[: len(organisation)] == organisation else organisation + bare
    return tuple(dict.fromkeys((bare, named, own if set(own) - NOISE else full, full)))


def _without_noise(words: Words) -> Words:
    return tuple(word for word in words if word not in NOISE)


class ServerParts:
    """The parts of all servers of a catalogue; a function of the set of their keys."""

    def __init__(self, keys: Mapping[Hashable, Key]) -> None:
        self._keys = keys
        forms = {key: _texts(key) for key in keys.values()}
        parts = {key: _part(key, forms[key], number) for key, number in _told_apart(forms).items()}
        self._parts = {server: parts[key] for server, key in keys.items()}
        self._owners: defaultdict[str, set[Key]] = defaultdict(set)
        for key, texts in forms.items():
            for text in texts:
                self._owners[fold(text)].add(key)
        self._longest = max((text.count("_") + 1 for text in self._owners), default=0)
        self._having = Counter(word for part in parts.values() for word in set(part.words))

    def __getitem__(self, server: Hashable) -> ServerPart:
        return self._parts[server]

    def shorter(self, server: Hashable) -> Iterator[Words]:
        """Yield shorter forms of a server's part, those first that have a word of no other server's.

        Of the organisation one word stays; then words go from the end; then a single word stands for all.
        """
        key, words = self._keys[server], self[server].words
        lead = len(key.organisation)
        short = words[:1] + words[lead:] if lead and words[:lead] == key.organisation else words
        shaved = [
            form[:end]
            for form, fewest in ((short, 2), (words, 1))
            for end in range(min(len(form), _MOST_WORDS), fewest - 1, -1)
            if form[:end] != words
        ]
        single = [(word,) for word in words[1 : 1 + _MOST_WORDS]]
        telling = [form for form in shaved if any(map(self._is_telling, form))]
        telling = telling or [form for form in single if self._is_telling(form[0])]
        for form in dict.fromkeys((*telling, *shaved)):
            if form[-1] not in _VAGUE and self._owners.get("_".join(form), set()) <= {key}:
                yield form

    def _is_telling(self, word: str) -> bool:
        return self._having[word] == 1 and not word.isdigit() and word not in _VAGUE

    def is_another_s(self, server: Hashable, name: str) -> bool:
        """Tell whether the longest server's name that this name begins with is not one of its own server's."""
        words = fold(name).split("_")
        for end in range(min(len(words), self._longest), 0, -1):
            if owners := self._owners.get("_".join(words[:end])):
                return self._keys[server] not in owners
        return False

    def overlap(self, part: ServerPart, tool: Words) -> Overlap | None:
        """Return what a server's part and a tool's name both say, or None.

        The part's last words may be the name's first, also run together; they are left out of the part. So is
        everything from the name's first word on, where that is a word of this server alone. A word that several
        servers have is left out of the name. A verb is no server's name.

        >>> parts = ServerParts({key: Key(key, (key, "search"), (key, "search")) for key in ("brave", "bing")})
        >>> tools = ("search", "web"), ("bravesearch",), ("brave", "web"), ("bing", "web")
        >>> found = [parts.overlap(parts["brave"].called("brave_search"), tool) for tool in tools]
        >>> [each and tuple(each) for each in found]
        [(1, 0, 1), (2, 0, 1), (2, 0, 0), None]
        """
        words, first = part.words, tool[0]
        # Nearly no tool's name begins so; what is below is for those that do.
        if not "".join(tool).startswith(words):
            return None
        heads = {head: number for number, head in enumerate(accumulate(tool), 1)}
        for start in range(len(words)):
            if said := heads.get("".join(words[start:])):
                return Overlap(len(words) - start, 0, said)
        if first not in words or first in VERBS or len(tool) == 1:
            return None
        if self._having[first] == 1:
            return Overlap(len(words) - words.index(first), 0, 0)
        return Overlap(0, 1, 1)


def _texts(key: Key) -> tuple[str, ...]:
    if key.alias is not None:
        return (key.text,)
    forms = tuple("_".join(form) for form in key_forms(key.own, key.full, key.organisation))
    if key.is_whole or forms[0] == "_".join(key.full):
        return (key.text,)
    return tuple(dict.fromkeys((*forms[:-1], key.text)))


def _part(key: Key, forms: tuple[str, ...], chosen: int) -> ServerPart:
    text = forms[chosen]
    return ServerPart(text, tuple(fold(text).split("_")), forms[chosen + 1 :], key.alias)


def _told_apart(forms: Mapping[Key, tuple[str, ...]]) -> dict[Key, int]:
    """Return which form each key has: the shortest, and a longer one for all keys that would have the same."""
    chosen = dict.fromkeys(forms, 0)
    while True:
        count = Counter(fold(forms[key][number]) for key, number in chosen.items())
        alike = [
            key
            for key, number in chosen.items()
            if number + 1 < len(forms[key]) and count[fold(forms[key][number])] > 1
        ]
        if not alike:
            return chosen
        for key in alike:
            chosen[key] += 1
