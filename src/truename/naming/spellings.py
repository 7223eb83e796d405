"""Find the tools of a table by any spelling of theirs: in all styles, with the server in front, as clients show them.

All spellings of a tool together are thirty texts. The index therefore holds only what its names end with, and what
names of its server look like; a text proposes tools by these, and the spellings of each proposed tool decide. A name is
never split to find its meaning. Absent tools are proposed by the ledger, which is asked for those that a text can mean:
of a million others nothing is read.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from weakref import ref

from truename.cache import LRUCache
from truename.catalog import label_of
from truename.identity import ToolId, ToolRef
from truename.naming.words import SNAKE, snake

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from truename.catalog import Catalog
    from truename.dialects import Dialect
    from truename.ledger import Ledger

__all__ = ["SpellingIndex", "folded", "plain_spellings", "server_forms", "server_spellings"]

Family = tuple[str, str | None, str]
# Nearly all texts have one tool; a set for each of them would take most of the memory.
Index = dict[str, ToolId | frozenset[ToolId]]
_NONE: Final[frozenset[ToolId]] = frozenset()
# Of absent tools, the ends of names that are asked for again: one text is looked up in several ways.
_REMEMBERED: Final = 1024
_ONE_SEPARATOR: Final = str.maketrans("-:. ", "____")
_RUN: Final = re.compile("__+")
# No style keeps these characters, the syntax of ids and their encodings, in a name.
_ID_SYNTAX: Final = re.compile(r"[/~%]+")
_NUMBER: Final = re.compile(r"_[0-9]+\Z")


def folded(text: str) -> str:
    r"""Fold a text for the last step of `resolve`: ignore case, and replace runs of ``-_:.`` and space by one ``_``.

    It keeps every other character, so it distinguishes more texts than `truename.identity.fold`, by which names are
    claimed. A letter outside ASCII never becomes an ASCII letter.

    >>> folded("Weather:get__Data"), folded("a%B"), folded("\u212a")
    ('weather_get_data', 'a%b', '\u212a')
    """
    plain = (text.lower() if text.isascii() else "".join(map(_lowered, text))).translate(_ONE_SEPARATOR)
    return _RUN.sub("_", plain) if "__" in plain else plain


def _lowered(character: str) -> str:
    lowered = character.lower()
    return character if lowered.isascii() and not character.isascii() else lowered


class _SpelledTool(NamedTuple):
    """A tool with the data for its spellings; ``number`` and ``prefix`` are those of the name that it holds."""

    id: ToolId
    server: str
    name: str
    held: str = ""
    prefix: str = ""
    number: int | None = None


class _HeldName(Protocol):
    """What the index asks of a tool's name: the text, the server's part that it begins with, and its number."""

    @property
    def name(self) -> str: ...
    @property
    def prefix(self) -> str: ...
    @property
    def number(self) -> int | None: ...


class _FoundTool(Protocol):
    @property
    def id(self) -> ToolId | None: ...


class SpelledTable(Protocol):
    """What the index asks of a name table."""

    catalog: Catalog
    ledger: Ledger | None
    dialect: Dialect
    server_name: str

    @property
    def whole(self) -> SpelledTable:
        """The table of all tools, of which this one may be a part."""
        ...

    @property
    def spellings(self) -> SpellingIndex:
        """The index of this table."""
        ...

    @property
    def exact(self) -> Mapping[str, _FoundTool]:
        """The tools by their names."""
        ...

    def assigned(self, id: ToolId) -> _HeldName:
        """Return a tool's name with its parts."""
        ...

    def __getitem__(self, id: ToolId) -> str: ...

    def __contains__(self, id: object) -> bool: ...

    def __iter__(self) -> Iterator[ToolId]: ...


class SpellingIndex:
    """An index of the spellings of one table's tools, built at first use; absent tools are looked up in its ledger."""

    def __init__(self, table: SpelledTable) -> None:
        # The table has the index: together they would be let go of only when garbage is collected.
        self._of = ref(table)
        self._is_prepared = False
        # By fold: how the tools' own names end, wire names, and wire names that this client shows in an odd way.
        self._ends: Index = {}
        self._wires: Index = {}
        self._odd: Index = {}
        self._odd_texts: Index = {}
        # By fold: what may stand in front of a name, with the labels of the servers that it stands for.
        self._heads: dict[str, frozenset[str]] = {}
        self._servers: set[tuple[str, str]] = set()
        # By revision of the ledger, and how names end, by fold: the absent tools with such a name.
        self._absent: LRUCache[tuple[int, str], Collection[ToolId]] = LRUCache(_REMEMBERED)
        # The beginnings of names on record, and how many servers and integrations they were made of.
        self._odd_absent: tuple[int, Mapping[str, frozenset[ToolId]]] = (-1, {})
        self._absent_heads: tuple[tuple[int, int], frozenset[str]] = (0, 0), frozenset()

    @property
    def _table(self) -> SpelledTable:
        table = self._of()
        assert table is not None  # noqa: S101 - who asks has the table
        return table

    def prepare(self) -> None:
        """Build the indexes now; else the first search builds them (some hundredths of a second for 10,000 tools)."""
        if not self._is_prepared:
            self._add(self._table)
            # Set last, since another thread may search meanwhile.
            self._is_prepared = True

    def changed(self, table: SpelledTable, gone: Collection[ToolId], new: Collection[ToolId]) -> SpellingIndex:
        """Return the index of a table that was changed in part."""
        other = SpellingIndex(table)
        if not self._is_prepared:
            return other
        if not gone and not new:
            other.__dict__ |= self.__dict__ | {"_of": other._of}
            return other
        other._ends, other._wires = self._ends.copy(), self._wires.copy()
        other._odd, other._odd_texts = self._odd.copy(), self._odd_texts.copy()
        other._heads, other._servers = self._heads.copy(), self._servers.copy()
        other._add(new)
        other._is_prepared = True
        return other

    def _add(self, ids: Iterable[ToolId]) -> None:
        table = self._table
        prefix, suffix = table.dialect.frame(table.server_name)
        for id in ids:
            name = table[id]
            _put(self._wires, _end(name), id)
            shown = table.dialect.shown(table.server_name, name)
            if shown is not None and shown != f"{prefix}{name}{suffix}":
                _put(self._odd_texts, shown, id)
                _put(self._odd, folded(shown), id)
        self._add_own(ids)

    def _add_own(self, ids: Iterable[ToolId]) -> None:
        for named in (named for id in ids for named in self._spelled(id)):
            for text in _own_forms(named):
                _put(self._ends, _end(text), named.id)
            if (named.server, named.id.integration) not in self._servers:
                self._servers.add((named.server, named.id.integration))
                for head in self._heads_of(named):
                    self._heads[head] = self._heads.get(head, frozenset()) | {named.server}

    def _heads_of(self, named: _SpelledTool) -> Iterator[str]:
        """Yield what may stand in front of a tool's name, folded."""
        alias = self._table.catalog.aliases.get(named.id.integration)
        return _heads((named.server, *server_forms(named.id, named.server, alias)))

    def _spelled(self, id: ToolId) -> Iterator[_SpelledTool]:
        """Yield a tool with what its spellings are made of: twice where its server's label is not on record."""
        table = self._table
        tool = table.catalog.get(id)
        if tool is not None:
            one = table.assigned(id)
            yield _SpelledTool(id, tool.origin.server, tool.origin.name, one.name, one.prefix, one.number)
            return
        # All others are absent tools, which the ledger has on record, and which its reader may see.
        ledger = table.ledger
        origin = None if ledger is None else ledger.origin_of(id)
        assert ledger is not None and origin is not None  # noqa: S101, PT018 - see above
        held = ledger.held(table.dialect.name).get(id, "")
        # The ledger records an absent server's key and integration, but not its label.
        for label in dict.fromkeys((label_of(origin[0]), id.integration)):
            yield _SpelledTool(id, label, origin[1], held, *ledger.parts(held))

    def exact(self, text: str) -> Collection[ToolId]:
        """Return the tools that have this text, not folded, among the spellings that they accept.

        Each spelling of a further version ends with the number of its name. It has a spelling without the number only
        if no other version, hidden or not, has or had that spelling. Otherwise the spelling would change its meaning
        when the other version disappears, is hidden, or loses its name to a redirect. Where names have no numbers (ids
        are names too) all versions have it, but if the oldest of them is hidden, the others do not.
        """
        self.prepare()
        proposed = [named for id in self._proposed(folded(text)) for named in self._spelled(id)]
        is_own_name = any(named.name == text for named in proposed)
        return frozenset(id for named in proposed for id in self._meant_by(text, named, is_own_name=is_own_name))

    def belongs_to_older(self, text: str) -> bool:
        """Return whether a tool would have this spelling if no older version had it.

        Where the older version is hidden, `exact` finds neither, and no tool with the same fold is meant either.
        """
        self.prepare()
        proposed = (named for id in self._proposed(folded(text)) for named in self._spelled(id))
        is_own_name = self._is_own_name(text)
        return any(
            self._accepts(named, text, is_own_name=is_own_name)
            and not self._is_first(named, text, is_own_name=is_own_name)
            for named in proposed
        )

    def _meant_by(self, text: str, named: _SpelledTool, *, is_own_name: bool) -> Iterator[ToolId]:
        is_its_own = self._accepts(named, text, is_own_name=is_own_name)
        if is_its_own and self._is_first(named, text, is_own_name=is_own_name):
            yield named.id
        if named.number is not None and text.endswith(number := f"_{named.number}"):
            plain = text.removesuffix(number)
            if self._accepts(named, plain, is_own_name=self._is_own_name(plain)):
                yield named.id

    def _is_own_name(self, text: str) -> bool:
        return any(named.name == text for id in self._ending(_end(text)) for named in self._spelled(id))

    def _accepts(self, named: _SpelledTool, text: str, *, is_own_name: bool) -> bool:
        """Return whether a text is an exact spelling of a tool, and no adapted name that is another tool's own name."""
        if text == named.name:
            return True
        if is_own_name and text in _adapted(named.name):
            return False
        return text in _all_spellings(named, self._table.catalog.aliases.get(named.id.integration))

    def _is_first(self, named: _SpelledTool, text: str, *, is_own_name: bool) -> bool:
        """Return whether no older version that excludes this one, hidden or not, has this spelling."""

        def has_it(other: _SpelledTool) -> bool:
            return self._accepts(other, text, is_own_name=is_own_name)

        if named.number is None:
            return not self._is_of_hidden(named, has_it)
        whole = self._table.whole
        if whole is not self._table and named.id not in whole.spellings.exact(text):
            return False
        return not any(map(has_it, self.before(named)))

    def _is_of_hidden(self, named: _SpelledTool, has_it: Callable[[_SpelledTool], bool]) -> bool:
        """Return whether, of the versions with a spelling, one that is hidden is older than this one and all others."""
        whole = self._table.whole
        if whole is self._table:
            return False
        oldest = next(filter(has_it, whole.spellings.before(named)), None)
        return oldest is not None and oldest.id not in self

    def before(self, named: _SpelledTool) -> list[_SpelledTool]:
        """Return the older versions of a tool, in the table or absent; a name without a number is older than others."""
        mine = self._seniority(named)
        versions = (one for id in self.family(named.id) if id != named.id for one in self._spelled(id))
        older = (
            one for one in versions if (one.number is None and named.number is not None) or self._seniority(one) < mine
        )
        return sorted(older, key=self._seniority)

    def _seniority(self, named: _SpelledTool) -> tuple[bool, int, ToolId]:
        ledger = self._table.ledger
        is_later = ledger is None or ledger.first_version(named.id) != named.id
        return is_later, named.number or 0, named.id

    def shown_as(self, text: str) -> Collection[ToolId]:
        """Return the tools whose names this table's client shows as this text."""
        self.prepare()
        table = self._table
        prefix, suffix = table.dialect.frame(table.server_name)
        found = {id for id in _of(self._odd_texts, text) if id in table}
        if text.startswith(prefix) and text.endswith(suffix):
            named = table.exact.get(text[len(prefix) : len(text) - len(suffix)])
            if named is not None and named.id is not None:
                found.add(named.id)
        return {id for id in found if table.dialect.shown(table.server_name, table[id]) == text}

    def folded(self, text: str) -> Collection[ToolId]:
        """Return the tools that have a name or a spelling with the fold of this text."""
        self.prepare()
        key = folded(text)
        found = {id for id in self._named_like(key) if self._is_shown_like(id, key)}
        aliases = self._table.catalog.aliases
        for named in (named for id in self._proposed(key) for named in self._spelled(id)):
            alias = aliases.get(named.id.integration)
            number = _number(named)
            has_it = partial(_is_loosely, key=key, alias=alias)
            if has_it(named) and not self._is_of_hidden(named, has_it):
                found.add(named.id)
            for one in _all_spellings(named, alias):
                for spelled in {one, one + number}:
                    if folded(spelled) == key:
                        found.update(self.exact(spelled))
        return found

    def _named_like(self, key: str) -> Iterator[ToolId]:
        """Yield tools whose wire name, or what this client shows of it, may have this fold."""
        yield from _of(self._odd, key)
        suffix = folded(self._table.dialect.frame(self._table.server_name)[1])
        for plain in {key, key.removesuffix(suffix)}:
            yield from _of(self._wires, plain.lstrip("_"))
            for at in _separators(plain):
                yield from _of(self._wires, plain[at + 1 :])

    def _is_shown_like(self, id: ToolId, key: str) -> bool:
        table = self._table
        if id not in table:
            return False
        name = table[id]
        shown = table.dialect.shown(table.server_name, name)
        return folded(name) == key or (shown is not None and folded(shown) == key)

    def _proposed(self, key: str) -> dict[ToolId, None]:
        """Return the tools that may have a spelling with this fold: the ends of some are theirs, and the beginning."""
        heads, absent_heads = self._heads, self._heads_of_absent()
        parts: list[tuple[str | None, str]] = []
        for plain in dict.fromkeys((key, _NUMBER.sub("", key))):
            parts.append((None, plain.lstrip("_")))
            parts += ((plain[:at], plain[at + 1 :]) for at in _separators(plain))
        parts = [(head, end) for head, end in parts if head is None or head in heads or head in absent_heads]
        absent = self._absent_ending({end for head, end in parts if head is None or head in absent_heads})
        found: dict[ToolId, None] = {}
        for head, end in parts:
            labels = None if head is None else heads.get(head, frozenset())
            for id in self._present_ending(end):
                if labels is None or self._table.catalog[id].origin.server in labels:
                    found[id] = None
            for id in absent.get(end, ()):
                if head is None or any(head in self._heads_of(named) for named in self._spelled(id)):
                    found[id] = None
        return found

    def _heads_of_absent(self) -> frozenset[str]:
        """Return what may stand in front of the names of tools on record, folded."""
        ledger = self._table.ledger
        if ledger is None:
            return frozenset()
        servers, integrations = tuple(ledger.servers()), tuple(ledger.integrations())
        known, heads = self._absent_heads
        if known != (len(servers), len(integrations)):
            names = (*map(label_of, servers), *integrations)
            aliases = self._table.catalog.aliases
            forms = (*names, *map(snake, names), *(aliases.get(one, "") for one in integrations))
            heads = frozenset(_heads(filter(None, forms)))
            self._absent_heads = (len(servers), len(integrations)), heads
        return heads

    def _ending(self, end: str) -> list[ToolId]:
        """Return the tools, in the table or absent, of which a name ends with this fold."""
        return [*self._present_ending(end), *self._absent_ending((end,))[end]]

    def _present_ending(self, end: str) -> list[ToolId]:
        # What is gone since the index was made is found as all that is absent.
        return [id for id in _of(self._ends, end) if id in self._table]

    def _absent_ending(self, ends: Collection[str]) -> Mapping[str, Collection[ToolId]]:
        """Return the absent tools of which names end with these folds; the ledger is asked for all of them at once."""
        table, ledger = self._table, self._table.ledger
        if ledger is None:
            return dict.fromkeys(ends, ())
        revision = ledger.revision
        known = {end: self._absent.get((revision, end)) for end in ends}
        found = {end: ids for end, ids in known.items() if ids is not None}
        if len(found) < len(known):
            odd = self._oddly_ending(revision)
            new = {end: set(odd.get(end, ())) for end in known if end not in found}
            for end, id in self._ends_of(ledger.alike(new, table.dialect.name)):
                if end in new:
                    new[end].add(id)
            for end, ids in new.items():
                found[end] = self._absent[revision, end] = ids
        return found

    def _oddly_ending(self, revision: int) -> Mapping[str, frozenset[ToolId]]:
        """Return the absent tools with names that the ledger does not find by their ends, by these ends."""
        known, odd = self._odd_absent
        if known != revision:
            table = self._table
            ends: defaultdict[str, set[ToolId]] = defaultdict(set)
            for end, id in self._ends_of(() if table.ledger is None else table.ledger.oddly_named(table.dialect.name)):
                ends[end].add(id)
            odd = {end: frozenset(ids) for end, ids in ends.items()}
            self._odd_absent = revision, odd
        return odd

    def _ends_of(self, ids: Iterable[ToolId]) -> Iterator[tuple[str, ToolId]]:
        """Yield the ends of the names of those of these tools that are absent."""
        for named in (named for id in ids if self.is_absent(id) for named in self._spelled(id)):
            for text in _own_forms(named):
                yield _end(text), named.id

    def family(self, tool: ToolId | ToolRef) -> list[ToolId]:
        """Return all versions of a tool, in the table or absent."""
        self.prepare()
        wanted = tool.integration, tool.suite, tool.tool
        return [id for id in self._ending(_end(tool.tool)) if id.family == wanted]

    def __contains__(self, id: ToolId) -> bool:
        return id in self._table or self.is_absent(id)

    def is_absent(self, id: ToolId) -> bool:
        """Return whether a tool is recorded, for the reader of the table's ledger, and not in the table."""
        table, ledger = self._table, self._table.ledger
        origin = None if ledger is None or id in table else ledger.origins().get(id)
        if ledger is None or origin is None:
            return False
        # A ledger scope for one server does not contain the others.
        return not ledger.scope or origin[0] in table.catalog.servers


def _heads(forms: Iterable[str]) -> Iterator[str]:
    """Yield what may stand in front of a name, with these forms of its server, folded."""
    return (folded(text).rstrip("_") for form in forms for text in (form, f"mcp_{form}"))


def _put(index: Index, key: str, id: ToolId) -> None:
    had = index.setdefault(key, id)
    if isinstance(had, frozenset):
        # Indexes that were copied share their sets.
        index[key] = had | {id}
    elif had != id:
        index[key] = frozenset((had, id))


def _of(index: Index, key: str) -> Collection[ToolId]:
    found = index.get(key, _NONE)
    return (found,) if isinstance(found, ToolId) else found


def _end(text: str) -> str:
    """Return the fold of a text as it stands behind a separator, of which two are one."""
    return folded(text).lstrip("_")


def _separators(key: str) -> Iterator[int]:
    at = key.find("_", 1)
    while at >= 0:
        yield at
        at = key.find("_", at + 1)


def _own_forms(named: _SpelledTool) -> Iterator[str]:
    """Yield what the spellings of a tool consist of, or end with behind a form of its server's name and a separator."""
    name = named.name
    yield name
    if not SNAKE.fullmatch(name):
        yield from _adapted(name)
        yield _ID_SYNTAX.sub("_", name)
        yield snake(name)
    if named.id.tool != name:
        yield named.id.tool
    if (rest := _rest(named)) and rest != name:
        yield rest


def _rest(named: _SpelledTool) -> str:
    """Return the part of the name that a tool holds behind its server's part, without a number; "" without one."""
    if not named.prefix or not named.held.startswith(named.prefix):
        return ""
    rest = named.held[len(named.prefix) :]
    return rest if named.number is None else rest.removesuffix(f"_{named.number}")


def _all_spellings(named: _SpelledTool, alias: str | None) -> Iterator[str]:
    """Yield the plain spellings, and the held name with its prefix replaced by the server's other names."""
    id, server = named.id, named.server
    yield from plain_spellings(id, server, named.name, alias)
    if named.prefix and named.held.startswith(named.prefix):
        rest = _rest(named)
        for part in server_forms(id, server, None):
            yield f"{part}_{rest}"


def plain_spellings(id: ToolId, server: str, name: str, alias: str | None) -> Iterator[str]:
    """Yield the tool's exact names in all styles: its own name, and its own name after each form of the server's.

    >>> from truename.identity import ToolId
    >>> list(plain_spellings(ToolId.parse("weather/get"), "Weather", "get", None))
    ['get', 'Weather:get', 'weather_get', 'mcp_weather__get', 'mcp_weather_get']
    """
    yield from dict.fromkeys((name, *_adapted(name)))
    yield from server_spellings(name, id, server, alias)


def server_spellings(name: str, id: ToolId, server: str, alias: str | None) -> Iterator[str]:
    """Yield a name prefixed with the tool's server: its label and a colon, and the forms of the other styles."""
    yield f"{server}:{name}"
    adapted = _ID_SYNTAX.sub("_", name)
    own = dict.fromkeys((adapted, *_in_words(adapted)))
    for part in server_forms(id, server, alias):
        for tool in own:
            yield f"{part}_{tool}"
            yield f"mcp_{part}__{tool}"
            yield f"mcp_{part}_{tool}"


def _loose_spellings(named: _SpelledTool, alias: str | None) -> Iterator[str]:
    """Yield spellings that are only compared by fold, so that they make a text ambiguous rather than wrong."""
    words = snake(named.name)
    yield named.id.tool
    yield words
    for part in server_forms(named.id, named.server, alias):
        yield f"{part}_{words}"
        yield f"mcp_{part}_{words}"
        yield f"{part}_{named.id.tool}"


def _number(named: _SpelledTool) -> str:
    return "" if named.number is None else f"_{named.number}"


def _is_loosely(named: _SpelledTool, key: str, alias: str | None) -> bool:
    number = _number(named)
    return any(folded(one + number) == key for one in _loose_spellings(named, alias))


def _adapted(name: str) -> tuple[str, ...]:
    """Return the forms that the styles make of a tool's own name."""
    plain = _ID_SYNTAX.sub("_", name)
    return (*_in_words(plain), plain.replace(".", "__"))


def _in_words(name: str) -> tuple[str, ...]:
    """Return a name in snake case and without dots; nothing for a name that would have to be transliterated."""
    return tuple(text for text in (snake(name), name.replace(".", "_")) if text) if name.isascii() else ()


def server_forms(id: ToolId, server: str, alias: str | None) -> Iterator[str]:
    """Yield the forms of a server in names; the label itself only if it is not the integration in other case."""
    parts = (id.integration, snake(server), server if server.lower() != id.integration else "", alias or "")
    yield from (part for part in dict.fromkeys(parts) if part)
