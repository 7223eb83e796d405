"""Generate the candidate names of a tool, best first, without regard to other tools."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from functools import cached_property
from itertools import accumulate, count
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.catalog import usable_aliases
from truename.identity import digest_of, fold
from truename.naming.client_prefixes import framed_edges
from truename.naming.words import VERBS, drop_words, prefix_words, snake, split, telling_words, without_fillers, words

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from truename.catalog import Catalog, Tool
    from truename.dialects import Dialect
    from truename.naming.style import Style

__all__ = ["NameCandidate", "NameGenerator", "ServerKeyWords", "ServerParts", "key_forms"]

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


class ServerKeyWords(NamedTuple):
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


class WordOverlap(NamedTuple):
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

    def __init__(self, keys: Mapping[Hashable, ServerKeyWords]) -> None:
        self._keys = keys
        forms = {key: _texts(key) for key in keys.values()}
        parts = {key: _part(key, forms[key], number) for key, number in _told_apart(forms).items()}
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

    def overlap(self, part: ServerPart, tool: Words) -> WordOverlap | None:
        """Return what a server's part and a tool's name both say, or None.

        The part's last words may be the name's first, also run together; they are left out of the part. So is
        everything from the name's first word on, where that is a word of this server alone. A word that several
        servers have is left out of the name. A verb is no server's name.

        >>> words = {key: (key, "search") for key in ("brave", "bing")}
        >>> parts = ServerParts({key: ServerKeyWords(key, both, both) for key, both in words.items()})
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
                return WordOverlap(len(words) - start, 0, said)
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


def _told_apart(forms: Mapping[ServerKeyWords, tuple[str, ...]]) -> dict[ServerKeyWords, int]:
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


_LEAST_SERVER_ROOM: Final = 32
_LEAST_TOOL_ROOM: Final = 8
_DIGEST_ROOM: Final = 5
_MOST_OTHERS: Final = 32
_ANY: Final = 10_000
_VERSIONS: Final = frozenset({"v1"})
_FALLBACK: Final = "tool"
_SEPARATORS: Final = "_-."
_TOOLS_WORDS: Final = "shortened to the tool's own words"
_ID_SYNTAX: Final = re.compile(r"[/~%]+")
_HYPHENS: Final = re.compile(r"-{2,}")
_VERBATIM, _ADAPTED, _TRANSLITERATED, _SAID_ONCE, _GIVES_WAY = range(5)


class NameCandidate(NamedTuple):
    """One wish: the text, the server's part that it begins with (with separator), and how it came about.

    ``rank`` 0 is a plain form with the tool's own name verbatim; 1 has it adapted (case, separators), 2 transliterated;
    3 and 4 give way to all plain forms: a word that server and tool share is left out, or the name is shortened.
    """

    text: str
    prefix: str = ""
    rank: int = 0
    how: str = "as declared"
    shortened: bool = False


class NameGenerator:
    """Spells tools of one catalogue for one dialect in one style; pure, and bound to nothing that changes."""

    def __init__(
        self, catalog: Catalog, dialect: Dialect, style: Style, server_name: str, former: tuple[str, ...] = ()
    ) -> None:
        """Bind the speller; ``former`` are server names under which clients framed these names before."""
        self.catalog = catalog
        self.dialect = dialect
        self.style = style
        self.server_name = server_name
        self._own_words = tuple((name, fold(name).partition("_")[0]) for name in dict.fromkeys((server_name, *former)))
        # A word that is not the gateway's own either: `tool_search` is a name that clients frame for a gateway `tool`.
        taken = {word for name in (server_name, *former) for word in fold(name).split("_")}
        self._word = next(word for n in count(1) if (word := f"{_FALLBACK}{n if n > 1 else ''}") not in taken)
        room = dialect.room(server_name)
        self.room = _ANY if room is None else room
        self._snake = dialect.words == "snake"
        self._single_hyphens = dialect.words == "single-hyphens"
        self._aliases = usable_aliases(catalog.aliases, {id.integration for id in catalog})
        self._parts: dict[tuple[str, str], tuple[ServerPart, ...]] = {}
        self._told: dict[str, Mapping[tuple[str, ...], frozenset[str]]] = {}
        self._illegal: re.Pattern[str] | None = None
        if dialect.chars is not None:
            self._illegal = re.compile(f"[^{re.escape(''.join(sorted(dialect.chars)))}]+")
        self.separator = self._legal_or_underscore(style.separator)
        self._dot = self._legal_or_underscore(style.dot)
        # Seed 004 writes the label as it is in front of its colon.
        self._verbatim_server = self._illegal is None or self.separator == ":"

    def _legal_or_underscore(self, text: str) -> str:
        return "_" if self._illegal is not None and self._illegal.search(text) else text

    def wishes(self, tool: Tool) -> tuple[NameCandidate, ...]:
        """Return the spellings that the style wants for this tool, best first; never empty."""
        if self.style.spelling == "canonical":
            return (NameCandidate(str(tool.id), how="the canonical id"),)
        if self.style.spelling == "verbatim":
            return (NameCandidate(tool.origin.name),)
        if self.style.prefix == "always":
            return self._prefixed(tool)
        bare = self._bare(tool, self.room)
        return (bare, *self._prefixed(tool)) if self.style.prefix == "on-conflict" else (bare,)

    def fitted(self, tool: Tool, suffix: str) -> NameCandidate:
        """Return the name with this suffix, shortened as far as it must be."""
        wish = self._best(tool, self.room - len(suffix))
        name = wish.text.rstrip("_") + suffix
        # A word that has to stand there takes room too.
        if more := len(self.led(name)) - len(name):
            wish = self._best(tool, self.room - len(suffix) - more)
        # A name that was cut has these digits already.
        text = wish.text.removesuffix(suffix[:_DIGEST_ROOM]) if len(suffix) >= _DIGEST_ROOM else wish.text
        return wish._replace(text=self.led(text.rstrip("_") + suffix))

    def _best(self, tool: Tool, room: int) -> NameCandidate:
        return next(self._prefixed_forms(tool, room)) if self.style.prefix == "always" else self._bare(tool, room)

    def others(self, tool: Tool) -> Iterator[NameCandidate]:
        """Yield spellings with other words of the server's key, for a tool whose wishes are all taken; best first."""
        if self.style.spelling != "readable" or self.style.prefix == "never":
            return
        server = self._servers[_server_of(tool)]
        for text in server.longer:
            yield from self._plain_forms(tool, server.called(text), self.room)
        if next(self._plain_forms(tool, server, self.room), None) is None:
            yield from self._shorter_forms(tool, self.room)

    def tool_text(self, tool: Tool) -> str:
        """Return the tool's own part, legal in this dialect but for its length."""
        name = tool.origin.name
        if self._snake:
            text = snake(name)
        else:
            # These three are the syntax of ids and their encodings: with them a name could read as another tool's id.
            name = self._hyphenated(_ID_SYNTAX.sub("_", name))
            text = name.replace(".", self._dot) if self._dot != "." else name
            if self._illegal is not None and self._illegal.search(text):
                joined = self._illegal.sub("_", text) if text.isascii() else "_".join(split(text))
                text = joined.strip("_")
            text = self._trimmed(text)
        return text if text.strip(_SEPARATORS) else f"{_FALLBACK}_{digest_of(str(tool.id), 4)}"

    def _hyphenated(self, text: str) -> str:
        return _HYPHENS.sub("-", text) if self._single_hyphens else text

    def _trimmed(self, text: str) -> str:
        """Take off separators at the edges that may not stand there."""
        first, last = self.dialect.first, self.dialect.last
        if first is not None and text[:1] not in first:
            text = text.lstrip(_SEPARATORS)
        if last is not None and text[-1:] not in last:
            text = text.rstrip(_SEPARATORS)
        return text

    @cached_property
    def _servers(self) -> ServerParts:
        """What stands for each server in front of its tools' names."""
        tools = {_server_of(tool): tool for tool in self.catalog.values()}
        return ServerParts({server: self._key(tool) for server, tool in tools.items()})

    def _key(self, tool: Tool) -> ServerKeyWords:
        label, integration = tool.origin.server, tool.id.integration
        # A key that became a lossy id is spelled from its own words: a digest says nothing to a reader.
        plain = integration if label.lower() == integration else label
        full = words(plain) or words(integration)
        before, _, segment = plain.rstrip("/").rpartition("/")
        own = words(segment) or full
        alias = self._aliases.get(integration)
        text = self._legal(alias if alias is not None else label if self._verbatim_server else plain)
        if self.led(text) != text and self.led(own[0]) == own[0]:
            text = "_".join(own)
        is_whole = self._verbatim_server or bool(self.style.lead)
        # Names of people and firms stay one word.
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
        text = self.led(self.tool_text(tool))
        how = "the tool's own name" if text == tool.origin.name else "the tool's own name, adapted to the client"
        if len(text) <= room:
            return NameCandidate(text, rank=self._rank(tool, text), how=how)
        return NameCandidate(self._fit_tool(tool, text, room), rank=_GIVES_WAY, how="shortened", shortened=True)

    @staticmethod
    def _rank(tool: Tool, text: str) -> int:
        """Rank a plain form: a look-alike never takes the name of a tool that is called so itself."""
        own = tool.origin.name
        if text == own:
            return _VERBATIM
        return _ADAPTED if own.isascii() else _TRANSLITERATED

    def led(self, text: str) -> str:
        """Put a word where a name must not begin or end so: at a wrong first character, or at a client's own frame."""
        first = self.dialect.first
        if first is not None and text[:1] not in first:
            text = f"{self._word}_{text}"
        begins, ends = self.framed(text)
        if ends:
            text = f"{text}_{self._word}"
            begins, _ = self.framed(text)
        return f"{self._word}_{text}" if begins else text

    def framed(self, text: str) -> tuple[bool, bool]:
        """Tell whether a name begins, and whether it ends, like one that a client has framed."""
        lowered = text.lower()
        # Nearly no name has the gateway's own in it; the look at the frames is for those that do.
        edges = [framed_edges(text, name) for name, word in self._own_words if word in lowered]
        return any(begins for begins, _ in edges), any(ends for _, ends in edges)

    def _prefixed(self, tool: Tool) -> tuple[NameCandidate, ...]:
        """Return the forms with the server's whole part that fit; else the best of the shorter ones."""
        plain = tuple(self._plain_forms(tool, self._servers[_server_of(tool)], self.room))
        return plain or (next(self._shorter_forms(tool, self.room), None) or self._last_form(tool, self.room),)

    def _prefixed_forms(self, tool: Tool, room: int) -> Iterator[NameCandidate]:
        yield from self._plain_forms(tool, self._servers[_server_of(tool)], room)
        yield from self._shorter_forms(tool, room)
        yield self._last_form(tool, room)

    def _last_form(self, tool: Tool, room: int) -> NameCandidate:
        """Return a name that always fits, with a digest if it must be."""
        name = self._fit_tool(tool, self.led(self.tool_text(tool)), room)
        server = self._servers[_server_of(tool)]
        prefix = f"{self.style.lead}{server.text}{self.separator}"
        left = room - len(prefix) - _DIGEST_ROOM
        if left < _LEAST_TOOL_ROOM or not self._servers.is_another_s(_server_of(tool), name):
            return NameCandidate(name, "", _GIVES_WAY, _TOOLS_WORDS, shortened=True)
        rest = prefix_words(self._rest(server, self._split(tool)), left)
        name = self.led(f"{prefix}{'_'.join(rest)}_{digest_of(str(tool.id), 4)}")
        return NameCandidate(name, prefix, _GIVES_WAY, "shortened, with a digest of its id", shortened=True)

    def _plain_forms(self, tool: Tool, server: ServerPart, room: int) -> Iterator[NameCandidate]:
        """Yield the names with a server's part in front that fit: without words that both share, and in full."""
        text = self.tool_text(tool)
        prefix = f"{self.style.lead}{server.text}{self.separator}"
        short = self._said_once(tool, server, text)
        if short is not None and len(short.text) <= room:
            yield short
        name = self.led(prefix + text)
        if len(name) <= room:
            how = (
                f"alias {server.alias} for {tool.id.integration}"
                if server.alias
                else f"the server's name, {server.text}"
            )
            rank = self._rank(tool, text) if short is None else _SAID_ONCE
            yield NameCandidate(name, prefix, rank, how)

    def _said_once(self, tool: Tool, server: ServerPart, text: str) -> NameCandidate | None:
        own = tuple(fold(text).split("_"))
        overlap = self._overlap(server, own)
        if overlap is None:
            return None
        prefix, rest = "".join(f"{word}_" for word in server.words[: len(server.words) - overlap.of_server]), text
        if overlap.of_tool:
            prefix, rest = f"{server.text}_", text.lstrip(_SEPARATORS)[len(own[0]) :].lstrip(_SEPARATORS)
        name = self.led(prefix + rest)
        if self._servers.is_another_s(_server_of(tool), name):
            return None
        how = f"a word of {server.text} left out" if prefix else f"the tool's name already begins with {server.text}"
        return NameCandidate(name, prefix, _SAID_ONCE, how)

    def _overlap(self, server: ServerPart, tool: tuple[str, ...]) -> WordOverlap | None:
        found = None if self.style.lead else self._servers.overlap(server, tool)
        # Any other separator says where the server's part ends, so that part stays whole.
        return found if found is None or self.separator == "_" or found.of_server == len(server.words) else None

    def _shorter_forms(self, tool: Tool, room: int) -> Iterator[NameCandidate]:
        """Yield names that fit where the whole does not: the server's words go first, then the tool's.

        None reads as a tool of another server.
        """
        server = _server_of(tool)
        for text, prefix, how in self._shortened(tool, room):
            name = self.led(prefix + text)
            if len(name) <= room and not self._servers.is_another_s(server, name):
                yield NameCandidate(name, prefix, _GIVES_WAY, how, shortened=True)

    def _shortened(self, tool: Tool, room: int) -> Iterator[tuple[str, str, str]]:
        """Yield the tool's part, the server's part and how they came about, best first."""
        server, text, own = self._servers[_server_of(tool)], self.tool_text(tool), self._split(tool)
        keep, lead, separator = self._telling(tool.origin.server_id, own), self.style.lead, self.separator
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
            for dropped in _droppings(self._rest(part, own), room - len(prefix), keep):
                yield "_".join(dropped), prefix, f"shortened behind {part.text}"

    def _parts_of(self, tool: Tool) -> tuple[ServerPart, ...]:
        """Return what may stand for the tool's server in a name that has to be shorter, longest first."""
        key = _server_of(tool)
        if key not in self._parts:
            server = self._servers[key]
            forms = () if server.alias else self._servers.shorter(key)
            self._parts[key] = (server, *(server.called("_".join(form)) for form in forms))
        return self._parts[key]

    def _rest(self, part: ServerPart, own: tuple[str, ...]) -> tuple[str, ...]:
        """Return the tool's words without those that the server's part in front of them says."""
        overlap = self._overlap(part, tuple(map(str.lower, own)))
        return own if overlap is None else own[overlap.said :] or own

    def _fit_tool(self, tool: Tool, text: str, room: int) -> str:
        if len(text) <= room:
            return text
        own = self._split(tool)
        shorter = drop_words(own, room, self._telling(tool.origin.server_id, own))
        if shorter is not None:
            return self.led("_".join(shorter))
        digest = digest_of(str(tool.id), 4)
        return self.led(f"{'_'.join(prefix_words(own, room - _DIGEST_ROOM))}_{digest}")

    def _split(self, tool: Tool) -> tuple[str, ...]:
        own = words(tool.origin.name) if self._snake else split(tool.origin.name)
        return own or (_FALLBACK,)

    def _telling(self, server_id: str, own: tuple[str, ...]) -> frozenset[str]:
        """Return the words that tell a tool from a sibling; articles don't."""
        if server_id not in self._told:
            self._told[server_id] = telling_words(
                without_fillers(self._split(tool), _VERSIONS) for tool in self._siblings[server_id]
            )
        return self._told[server_id].get(without_fillers(own, _VERSIONS), frozenset())

    @cached_property
    def _siblings(self) -> Mapping[str, list[Tool]]:
        servers: dict[str, list[Tool]] = {}
        for tool in self.catalog.values():
            servers.setdefault(tool.origin.server_id, []).append(tool)
        return servers


def _droppings(own: tuple[str, ...], room: int, keep: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Yield what is left of a tool's words when some are dropped: the best choice, then others that keep one more."""
    for further in (None, *reversed(own[1:-1][-_MOST_OTHERS:])):
        kept = keep if further is None else keep | {further.lower()}
        if (dropped := drop_words(own, room, kept)) is not None:
            yield dropped


def _server_of(tool: Tool) -> tuple[str, str]:
    return tool.origin.server_id, tool.id.integration
