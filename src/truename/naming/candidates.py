"""Generate the candidate names of a tool, best first, without checking which names are taken."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from copy import copy
from functools import cached_property
from itertools import accumulate, count
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog import usable_aliases
from truename.dialects.dialect import name_context
from truename.identity import digest_of, fold
from truename.naming.client_prefixes import has_client_affixes
from truename.naming.words import (
    VERBS,
    distinguishing_words,
    drop_words,
    prefix_words,
    snake,
    split,
    without_fillers,
    words,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Mapping

    from truename.catalog import Catalog, Tool
    from truename.dialects import Dialect
    from truename.identity import ToolId
    from truename.naming.style import Style

__all__ = ["NameCandidate", "NameGenerator", "ServerKeyWords", "ServerParts", "key_forms"]

Words = tuple[str, ...]
NOISE: Final = frozenset({"mcp", "server"})
# Words that do not identify a server if they are alone or at the end.
_VAGUE: Final = frozenset(
    {
        *("a", "advanced", "after", "all", "an", "and", "api", "app", "by", "client", "core", "data", "demo", "for"),
        *("from", "full", "in", "local", "my", "new", "of", "on", "plus", "private", "pro", "remote", "service"),
        *("test", "the", "to", "tool", "tools", "using", "with"),
    }
)
# No client leaves room for more words of a server before a tool's name.
_MOST_WORDS: Final = 6


class ServerKeyWords(NamedTuple):
    """A server's key, split into words.

    ``text`` is the key as the dialect spells it, or the operator's ``alias``. ``full`` are all its words, ``own`` those
    of the last path segment, ``organisation`` those before it; the name of a person or company counts as one word.
    ``is_whole``: the style shows the full key, so no word is omitted.
    """

    text: str
    full: Words
    own: Words
    alias: str | None = None
    is_whole: bool = False
    organisation: Words = ()


class WordOverlap(NamedTuple):
    """The words that a server's part and a tool's name share.

    Either the last ``of_server`` words of the part are omitted, or the first ``of_tool`` words of the name. ``shared``
    is how many of the tool's first words the full part contains.
    """

    of_server: int
    of_tool: int
    shared: int


class ServerPart(NamedTuple):
    """The part of a name that identifies the server.

    It consists of the text and its words; ``longer`` are the longer forms of the key, ``alias`` is set if it is one.
    """

    text: str
    words: Words
    longer: tuple[str, ...] = ()
    alias: str | None = None

    def with_text(self, text: str) -> ServerPart:
        """Return the part of the same server with another form of its key."""
        return ServerPart(text, tuple(fold(text).split("_")), (), self.alias)


def key_forms(own: Words, full: Words, organisation: Words = ()) -> tuple[Words, ...]:
    """Return the forms of a key, shortest first.

    These are the key without organisation and noise words ("mcp", "server"), with organisation only, with noise words
    only, and the full key.

    >>> [" ".join(form) for form in key_forms(("mcp", "git"), ("acme", "mcp", "git"), ("acme",))]
    ['git', 'acme git', 'mcp git', 'acme mcp git']
    """
    bare = _without_noise(own) or _without_noise(full) or full
    named = bare if bare[: len(organisation)] == organisation else organisation + bare
    return tuple(dict.fromkeys((bare, named, own if set(own) - NOISE else full, full)))


def _without_noise(words: Words) -> Words:
    return tuple(word for word in words if word not in NOISE)


class ServerParts:
    """The server parts of all servers of a catalogue, computed from the set of their keys."""

    def __init__(self, keys: Mapping[Hashable, ServerKeyWords]) -> None:
        self._keys = keys
        forms = {key: _texts(key) for key in keys.values()}
        parts = {key: _part(key, forms[key], number) for key, number in _distinct_forms(forms).items()}
        self._parts = {server: parts[key] for server, key in keys.items()}
        self._owners: defaultdict[str, set[ServerKeyWords]] = defaultdict(set)
        for key, texts in forms.items():
            for text in texts:
                self._owners[fold(text)].add(key)
        self._longest = max((text.count("_") + 1 for text in self._owners), default=0)
        self._having = Counter(word for part in parts.values() for word in set(part.words))

    def __getitem__(self, server: Hashable) -> ServerPart:
        return self._parts[server]

    def shorter(self, server: Hashable) -> Iterator[Words]:
        """Yield shorter forms of a server's part; forms with a word that no other server has come first.

        The organisation is reduced to one word, then words are removed from the end, then one single word remains.
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
        unique = [form for form in shaved if any(map(self._is_unique, form))]
        unique = unique or [form for form in single if self._is_unique(form[0])]
        for form in dict.fromkeys((*unique, *shaved)):
            if form[-1] not in _VAGUE and self._owners.get("_".join(form), set()) <= {key}:
                yield form

    def _is_unique(self, word: str) -> bool:
        return self._having[word] == 1 and not word.isdigit() and word not in _VAGUE

    def begins_like_another_server(self, server: Hashable, name: str) -> bool:
        """Return whether the longest server name at the start of a name is only other servers'."""
        words = fold(name).split("_")
        for end in range(min(len(words), self._longest), 0, -1):
            if owners := self._owners.get("_".join(words[:end])):
                return self._keys[server] not in owners
        return False

    def overlap(self, part: ServerPart, tool: Words) -> WordOverlap | None:
        """Return the words that a server's part and a tool's name share; None if they share none.

        If the part's last words are the name's first words (also written as one word), they are omitted from the part.
        If the name's first word is a word of this server only, the part is omitted from that word on. If several
        servers have the word, it is omitted from the name. A verb never counts as a server's word.

        >>> words = {key: (key, "search") for key in ("brave", "bing")}
        >>> parts = ServerParts({key: ServerKeyWords(key, both, both) for key, both in words.items()})
        >>> tools = ("search", "web"), ("bravesearch",), ("brave", "web"), ("bing", "web")
        >>> found = [parts.overlap(parts["brave"].with_text("brave_search"), tool) for tool in tools]
        >>> [each and tuple(each) for each in found]
        [(1, 0, 1), (2, 0, 1), (2, 0, 0), None]
        """
        words, first = part.words, tool[0]
        # A quick test: hardly any tool's name begins with a word of its server.
        if not "".join(tool).startswith(words):
            return None
        heads = {head: number for number, head in enumerate(accumulate(tool), 1)}
        for start in range(len(words)):
            if shared := heads.get("".join(words[start:])):
                return WordOverlap(len(words) - start, 0, shared)
        if first not in words or first in VERBS or len(tool) == 1:
            return None
        if self._having[first] == 1:
            return WordOverlap(len(words) - words.index(first), 0, 0)
        return WordOverlap(0, 1, 1)


def _texts(key: ServerKeyWords) -> tuple[str, ...]:
    if key.alias is not None:
        return (key.text,)
    forms = tuple("_".join(form) for form in key_forms(key.own, key.full, key.organisation))
    if key.is_whole or forms[0] == "_".join(key.full):
        return (key.text,)
    return tuple(dict.fromkeys((*forms[:-1], key.text)))


def _part(key: ServerKeyWords, forms: tuple[str, ...], chosen: int) -> ServerPart:
    text = forms[chosen]
    return ServerPart(text, tuple(fold(text).split("_")), forms[chosen + 1 :], key.alias)


def _distinct_forms(forms: Mapping[ServerKeyWords, tuple[str, ...]]) -> dict[ServerKeyWords, int]:
    """Choose the form of each key: the shortest, or a longer one if several keys would have the same form."""
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


_LEAST_SERVER_ROOM: Final = 32
_LEAST_TOOL_ROOM: Final = 8
_DIGEST_ROOM: Final = 5
_MOST_OTHERS: Final = 32
_ANY: Final = 10_000
_VERSIONS: Final = frozenset({"v1"})
_FALLBACK: Final = "tool"
_SEPARATORS: Final = "_-."
_NO_AFFIXES: Final = (False, False)
_TOOLS_WORDS: Final = "shortened to the tool's own words"
_ID_SYNTAX: Final = re.compile(r"[/~%]+")
_HYPHENS: Final = re.compile(r"-{2,}")
_VERBATIM, _ADAPTED, _TRANSLITERATED, _SHARED_WORD_OMITTED, _SHORTENED = range(5)


class NameCandidate(NamedTuple):
    """A candidate name of a tool.

    ``prefix`` is the server's part at its start, with separator; ``how`` describes the derivation. ``rank`` 0: a plain
    form with the tool's own name verbatim; 1: the name adapted (case, separators); 2: transliterated. Ranks 3 and 4 are
    claimed after all plain forms: a word that server and tool share is omitted (3), or the name is shortened (4).
    """

    text: str
    prefix: str = ""
    rank: int = 0
    how: str = "as declared"
    shortened: bool = False


class NameGenerator:
    """A generator of names for the tools of one catalogue in one dialect and style; it depends on no mutable state."""

    def __init__(
        self, catalog: Catalog, dialect: Dialect, style: Style, server_name: str, former: tuple[str, ...] = ()
    ) -> None:
        """Create the generator; ``former`` are earlier server names, which clients used in their affixes."""
        self.catalog = catalog
        self.dialect = dialect
        self.style = style
        self.server_name = server_name
        self._own_words = tuple((name, fold(name).partition("_")[0]) for name in dict.fromkeys((server_name, *former)))
        # The filler must not be a word of the gateway's name: for a gateway `tool`, `tool_search` looks prefixed.
        taken = {word for name in (server_name, *former) for word in fold(name).split("_")}
        self._only_word = self._own_words[0][1] if len(self._own_words) == 1 else ""
        self._word = next(word for n in count(1) if (word := f"{_FALLBACK}{n if n > 1 else ''}") not in taken)
        room = dialect.room(server_name)
        self.room = _ANY if room is None else room
        self.is_legal = name_context(dialect, server_name).accepts
        self._snake = dialect.words == "snake"
        self._single_hyphens = dialect.words == "single-hyphens"
        self._parts: dict[tuple[str, str], tuple[ServerPart, ...]] = {}
        self._distinguishing_of: dict[str, Mapping[tuple[str, ...], frozenset[str]]] = {}
        self._illegal: re.Pattern[str] | None = None
        if dialect.chars is not None:
            self._illegal = re.compile(f"[^{re.escape(''.join(sorted(dialect.chars)))}]+")
        self.separator = self._legal_or_underscore(style.separator)
        self._dot = self._legal_or_underscore(style.dot)
        # The style on-conflict writes the unchanged label before the colon.
        self._verbatim_server = self._illegal is None or self.separator == ":"

    def _legal_or_underscore(self, text: str) -> str:
        return "_" if self._illegal is not None and self._illegal.search(text) else text

    def first_candidate(self, tool: Tool) -> NameCandidate:
        """Return the first of a tool's candidates, which nearly all tools get."""
        if self.style.spelling == "readable" and self.style.prefix != "always":
            return self._bare(tool, self.room)
        return self.candidates(tool)[0]

    def candidates(self, tool: Tool) -> tuple[NameCandidate, ...]:
        """Return the names that the style prefers for this tool, best first; never empty."""
        if self.style.spelling == "canonical":
            return (NameCandidate(str(tool.id), how="the canonical id"),)
        if self.style.spelling == "verbatim":
            return (NameCandidate(tool.origin.name),)
        if self.style.prefix == "always":
            return self._prefixed(tool)
        bare = self._bare(tool, self.room)
        return (bare, *self._prefixed(tool)) if self.style.prefix == "on-conflict" else (bare,)

    def fit_with_suffix(self, tool: Tool, suffix: str) -> NameCandidate:
        """Return the name with this suffix, shortened as far as necessary."""
        candidate = self._best(tool, self.room - len(suffix))
        name = candidate.text.rstrip("_") + suffix
        # The filler word, if one is needed, takes room too.
        if more := len(self.with_filler(name)) - len(name):
            candidate = self._best(tool, self.room - len(suffix) - more)
        # A name that was cut ends with these digits already.
        text = candidate.text.removesuffix(suffix[:_DIGEST_ROOM]) if len(suffix) >= _DIGEST_ROOM else candidate.text
        return candidate._replace(text=self.with_filler(text.rstrip("_") + suffix))

    def _best(self, tool: Tool, room: int) -> NameCandidate:
        return next(self._prefixed_forms(tool, room)) if self.style.prefix == "always" else self._bare(tool, room)

    def fallbacks(self, tool: Tool) -> Iterator[NameCandidate]:
        """Yield names with other words of the server's key, best first, for a tool whose candidates are all taken."""
        if self.style.spelling != "readable" or self.style.prefix == "never":
            return
        server = self._servers[_server_of(tool)]
        for text in server.longer:
            yield from self._plain_forms(tool, server.with_text(text), self.room)
        if not self._plain_forms(tool, server, self.room):
            yield from self._shorter_forms(tool, self.room)

    def tool_text(self, tool: Tool) -> str:
        """Return the tool's own part of a name, legal in this dialect except for its length."""
        name = tool.origin.name
        if self._snake:
            text = snake(name)
        else:
            # Remove the syntax of ids and their encodings, with which a name could be read as another tool's id.
            name = self._hyphenated(_ID_SYNTAX.sub("_", name))
            text = name.replace(".", self._dot) if self._dot != "." else name
            if self._illegal is not None and self._illegal.search(text):
                joined = self._illegal.sub("_", text) if text.isascii() else "_".join(split(text))
                text = joined.strip("_")
            first, last = self.dialect.first, self.dialect.last
            if first is not None and text[:1] not in first:
                text = text.lstrip(_SEPARATORS)
            if last is not None and text[-1:] not in last:
                text = text.rstrip(_SEPARATORS)
        return text if text.strip(_SEPARATORS) else f"{_FALLBACK}_{digest_of(str(tool.id), 4)}"

    def _hyphenated(self, text: str) -> str:
        return _HYPHENS.sub("-", text) if self._single_hyphens else text

    def over(self, catalog: Catalog, changed: Iterable[ToolId]) -> NameGenerator:
        """Return the generator for a catalogue in which these tools are gone, new or others.

        What is known of its servers is kept if they are the same.
        """
        other: NameGenerator = copy(self)
        known = self.__dict__.get("_servers")
        for made in ("_servers", "_aliases"):
            other.__dict__.pop(made, None)
        other.catalog = catalog
        other._parts, other._distinguishing_of = {}, {}
        if known is not None and catalog.aliases == self.catalog.aliases and self._has_same_servers(catalog, changed):
            other.__dict__["_servers"] = known
            other._parts = self._parts
        return other

    def _has_same_servers(self, catalog: Catalog, changed: Iterable[ToolId]) -> bool:
        """Return whether each server that changed has a tool of each of its integrations, as it had."""
        before = self.catalog
        then = {_server_of(before[id]) for id in changed if id in before}
        now = {_server_of(catalog[id]) for id in changed if id in catalog}
        return all(
            any(_server_of(tool) == server for tool in tools.of_server(server[0]))
            for servers, tools in ((now - then, before), (then - now, catalog))
            for server in servers
        )

    @cached_property
    def _aliases(self) -> Mapping[str, str]:
        return usable_aliases(self.catalog.aliases, {id.integration for id in self.catalog})

    @cached_property
    def _servers(self) -> ServerParts:
        """The server part of each server."""
        tools = {_server_of(tool): tool for tool in self.catalog.values()}
        return ServerParts({server: self._key(tool) for server, tool in tools.items()})

    def _key(self, tool: Tool) -> ServerKeyWords:
        label, integration = tool.origin.server, tool.id.integration
        # A key that became a lossy id is spelled with its own words, since a digest means nothing to a reader.
        plain = integration if label.lower() == integration else label
        full = words(plain) or words(integration)
        before, _, segment = plain.rstrip("/").rpartition("/")
        own = words(segment) or full
        alias = self._aliases.get(integration)
        text = self._legal(alias if alias is not None else label if self._verbatim_server else plain)
        if self.with_filler(text) != text and self.with_filler(own[0]) == own[0]:
            text = "_".join(own)
        is_whole = self._verbatim_server or bool(self.style.lead)
        # The name of a person or company stays one word.
        organisation = tuple(word for word in words(before.lower()) if word not in NOISE)
        return ServerKeyWords(text or "_".join(full), full, own, alias, is_whole, organisation)

    def _legal(self, shown: str) -> str:
        if self._snake:
            return snake(shown)
        shown = self._hyphenated(_ID_SYNTAX.sub("_", shown))
        if self._illegal is None:
            return shown
        return self._illegal.sub("_", shown).strip("_") if shown.isascii() else ""

    def _bare(self, tool: Tool, room: int) -> NameCandidate:
        text = self.with_filler(self.tool_text(tool))
        how = "the tool's own name" if text == tool.origin.name else "the tool's own name, adapted to the client"
        if len(text) <= room:
            return NameCandidate(text, rank=self._rank(tool, text), how=how)
        return NameCandidate(self._fit_tool(tool, text, room), rank=_SHORTENED, how="shortened", shortened=True)

    @staticmethod
    def _rank(tool: Tool, text: str) -> int:
        """Rank a plain form, so that a look-alike never gets a name that is another tool's own name."""
        own = tool.origin.name
        if text == own:
            return _VERBATIM
        return _ADAPTED if own.isascii() else _TRANSLITERATED

    def with_filler(self, text: str) -> str:
        """Add the filler word to a name with an illegal first character, or that looks as if it had client affixes."""
        first = self.dialect.first
        if first is not None and text[:1] not in first:
            text = f"{self._word}_{text}"
        found = self.has_client_affixes(text)
        if found is _NO_AFFIXES:
            return text
        begins, ends = found
        if ends:
            text = f"{text}_{self._word}"
            begins, _ = self.has_client_affixes(text)
        return f"{self._word}_{text}" if begins else text

    def has_client_affixes(self, text: str) -> tuple[bool, bool]:
        """Return whether a name begins with a client's prefix, and whether it ends with a client's suffix."""
        lowered = text.lower()
        # A quick test: hardly any name contains the gateway's own name, and only such names can have affixes.
        if self._only_word not in lowered:
            return _NO_AFFIXES
        edges = [has_client_affixes(text, name) for name, word in self._own_words if word in lowered]
        return any(begins for begins, _ in edges), any(ends for _, ends in edges)

    def _prefixed(self, tool: Tool) -> tuple[NameCandidate, ...]:
        """Return the forms with the full server part that fit; if none does, the best shorter form."""
        plain = self._plain_forms(tool, self._servers[_server_of(tool)], self.room)
        return plain or (next(self._shorter_forms(tool, self.room), None) or self._last_form(tool, self.room),)

    def _prefixed_forms(self, tool: Tool, room: int) -> Iterator[NameCandidate]:
        yield from self._plain_forms(tool, self._servers[_server_of(tool)], room)
        yield from self._shorter_forms(tool, room)
        yield self._last_form(tool, room)

    def _last_form(self, tool: Tool, room: int) -> NameCandidate:
        """Return a name that always fits, with a digest if necessary."""
        name = self._fit_tool(tool, self.with_filler(self.tool_text(tool)), room)
        server = self._servers[_server_of(tool)]
        prefix = f"{self.style.lead}{server.text}{self.separator}"
        left = room - len(prefix) - _DIGEST_ROOM
        if left < _LEAST_TOOL_ROOM or not self._servers.begins_like_another_server(_server_of(tool), name):
            return NameCandidate(name, "", _SHORTENED, _TOOLS_WORDS, shortened=True)
        rest = prefix_words(self._rest(server, self._split(tool)), left)
        name = self.with_filler(f"{prefix}{'_'.join(rest)}_{digest_of(str(tool.id), 4)}")
        return NameCandidate(name, prefix, _SHORTENED, "shortened, with a digest of its id", shortened=True)

    def _plain_forms(self, tool: Tool, server: ServerPart, room: int) -> tuple[NameCandidate, ...]:
        """Return the names with this server part that fit: without the words that both share, and in full."""
        text = self.tool_text(tool)
        prefix = f"{self.style.lead}{server.text}{self.separator}"
        short = self._without_shared_words(tool, server, text)
        found = () if short is None or len(short.text) > room else (short,)
        name = self.with_filler(prefix + text)
        if len(name) > room:
            return found
        how = f"alias {server.alias} for {tool.id.integration}" if server.alias else f"the server's name, {server.text}"
        rank = self._rank(tool, text) if short is None else _SHARED_WORD_OMITTED
        return (*found, NameCandidate(name, prefix, rank, how))

    def _without_shared_words(self, tool: Tool, server: ServerPart, text: str) -> NameCandidate | None:
        folded = fold(text)
        if not folded.replace("_", "").startswith(server.words):
            # Hardly any tool's name begins with a word of its server.
            return None
        own = tuple(folded.split("_"))
        overlap = self._overlap(server, own)
        if overlap is None:
            return None
        prefix, rest = "".join(f"{word}_" for word in server.words[: len(server.words) - overlap.of_server]), text
        if overlap.of_tool:
            prefix, rest = f"{server.text}_", text.lstrip(_SEPARATORS)[len(own[0]) :].lstrip(_SEPARATORS)
        name = self.with_filler(prefix + rest)
        if self._servers.begins_like_another_server(_server_of(tool), name):
            return None
        how = f"without a word of {server.text}" if prefix else f"the tool's name already begins with {server.text}"
        return NameCandidate(name, prefix, _SHARED_WORD_OMITTED, how)

    def _overlap(self, server: ServerPart, tool: tuple[str, ...]) -> WordOverlap | None:
        found = None if self.style.lead else self._servers.overlap(server, tool)
        # Any other separator marks the end of the server's part, so that part must be complete or absent.
        return found if found is None or self.separator == "_" or found.of_server == len(server.words) else None

    def _shorter_forms(self, tool: Tool, room: int) -> Iterator[NameCandidate]:
        """Yield shorter names that fit: first with fewer words of the server, then with fewer words of the tool.

        No such name begins with another server's name.
        """
        server = _server_of(tool)
        for text, prefix, how in self._shortened(tool, room):
            name = self.with_filler(prefix + text)
            if len(name) <= room and not self._servers.begins_like_another_server(server, name):
                yield NameCandidate(name, prefix, _SHORTENED, how, shortened=True)

    def _shortened(self, tool: Tool, room: int) -> Iterator[tuple[str, str, str]]:
        """Yield shorter names as tool's part, server's part and derivation, best first."""
        server, text, own = self._servers[_server_of(tool)], self.tool_text(tool), self._split(tool)
        keep, lead, separator = self._distinguishing(tool.origin.server_id, own), self.style.lead, self.separator
        parts = self._parts_of(tool) if room >= _LEAST_SERVER_ROOM else (server,)
        for part in parts:
            prefix, rest = f"{lead}{part.text}{separator}", self._rest(part, own)
            how = f"the server's part shortened to {part.text}"
            if part is not server:
                yield text if rest == own else "_".join(rest), prefix, how
            yield "_".join(without_fillers(rest, keep)), prefix, "without articles" if part is server else how
        for shown in (text, "_".join(without_fillers(own, keep))):
            yield shown, "", _TOOLS_WORDS
        if (dropped := drop_words(own, room, keep)) is not None:
            yield "_".join(dropped), "", _TOOLS_WORDS
        for part in parts:
            prefix = f"{lead}{part.text}{separator}"
            for dropped in _dropped_variants(self._rest(part, own), room - len(prefix), keep):
                yield "_".join(dropped), prefix, f"shortened behind {part.text}"

    def _parts_of(self, tool: Tool) -> tuple[ServerPart, ...]:
        """Return the server parts that may be used in a shorter name of this tool, longest first."""
        key = _server_of(tool)
        if key not in self._parts:
            server = self._servers[key]
            forms = () if server.alias else self._servers.shorter(key)
            self._parts[key] = (server, *(server.with_text("_".join(form)) for form in forms))
        return self._parts[key]

    def _rest(self, part: ServerPart, own: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tool's words without those that the server part before them already contains."""
        overlap = self._overlap(part, tuple(map(str.lower, own)))
        return own if overlap is None else own[overlap.shared :] or own

    def _fit_tool(self, tool: Tool, text: str, room: int) -> str:
        if len(text) <= room:
            return text
        own = self._split(tool)
        keep, digest = self._distinguishing(tool.origin.server_id, own), digest_of(str(tool.id), 4)
        left = room
        while True:
            shorter = drop_words(own, left, keep)
            if shorter is None:
                shorter = (*prefix_words(own, left - _DIGEST_ROOM), digest)
            name = self.with_filler("_".join(shorter))
            # The filler word, if one is needed, takes room too.
            if (excess := len(name) - room) <= 0 or (left := left - excess) <= _DIGEST_ROOM:
                return name

    def _split(self, tool: Tool) -> tuple[str, ...]:
        own = words(tool.origin.name) if self._snake else split(tool.origin.name)
        return own or (_FALLBACK,)

    def _distinguishing(self, server_id: str, own: tuple[str, ...]) -> frozenset[str]:
        """Return the words that distinguish a tool from its siblings; articles do not count."""
        if server_id not in self._distinguishing_of:
            self._distinguishing_of[server_id] = distinguishing_words(
                without_fillers(self._split(tool), _VERSIONS) for tool in self.catalog.of_server(server_id)
            )
        return self._distinguishing_of[server_id].get(without_fillers(own, _VERSIONS), frozenset())


def _dropped_variants(own: tuple[str, ...], room: int, keep: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield a tool's words with some dropped to fit: the best choice, then variants that keep one more word."""
    for further in (None, *reversed(own[1:-1][-_MOST_OTHERS:])):
        kept = keep if further is None else keep | {further.lower()}
        if (dropped := drop_words(own, room, kept)) is not None:
            yield dropped


def _server_of(tool: Tool) -> tuple[str, str]:
    return tool.origin.server_id, tool.id.integration
