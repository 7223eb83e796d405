"""What becomes of a list of names in a client: shown, dropped, merged or refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from truename.dialects.legality import breaks
from truename.dialects.transformation import machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from truename.dialects.dialect import Dialect
    from truename.dialects.transformation import ClientSpelling

__all__ = ["SimulatedTool", "Simulation", "run"]

K = TypeVar("K", bound=Hashable)
_SCOPES = ("", "tool", "server", "request")  # each one includes those before it


@dataclass(frozen=True, slots=True)
class Simulation(Generic[K]):
    """What the model sees of a list of tools, and what its calls reach.

    Each name of the list is in exactly one of ``shown`` (name -> what the model sees, and calling it runs this
    tool), ``dropped`` (left out, lost in a merge, or shown under a name that runs another tool or none) and
    ``refused`` (those because of which the client or the provider fails). ``scope`` says what fails: a ``tool``, the
    whole ``server``, or the ``request``; names that fail only along with others count as dropped.
    ``merged``: shown name -> the names that became it, exact duplicates too. ``reaches``: shown name -> name run.
    ``seen``: shown name -> the names under whose description it stands before the model, as far as that is certain;
    there are several where a client sends equal names.
    """

    shown: Mapping[K, str]
    dropped: tuple[K, ...]
    merged: Mapping[str, tuple[K, ...]]
    refused: tuple[K, ...]
    scope: str
    reaches: Mapping[str, K]
    seen: Mapping[str, tuple[K, ...]]

    def winner(self, shown_name: str) -> K | None:
        """Return the name that a call of ``shown_name`` runs, None if it runs nothing that is certain."""
        return self.reaches.get(shown_name)


class SimulatedTool(NamedTuple, Generic[K]):
    """One listed tool: the key under which to report it, its server's key and its name."""

    key: K
    server: str
    name: str


class _Book(Generic[K]):
    """The findings so far; ``final`` holds the shown name of each entry, by the entry's place in memory."""

    def __init__(self, dialect: Dialect, servers: Iterable[str]) -> None:
        self.dialect, self.engine, self.limit = dialect, machine(dialect.mangling), dialect.known_length
        self.parts = self.engine.parts(servers)
        self.taken: set[str] = set()
        self.final: dict[int, str] = {}
        self.reaches: dict[str, SimulatedTool[K]] = {}
        self.seen: dict[str, list[SimulatedTool[K]]] = {}
        self.refused: list[SimulatedTool[K]] = []
        self.scope = ""
        self.listed: Mapping[tuple[str, str], SimulatedTool[K]] = {}

    def spell(self, entry: SimulatedTool[K]) -> ClientSpelling:
        """Return the entry's name as its client joins it, before it is shortened."""
        return self.engine.spell(entry.server, entry.name, self.parts.get(entry.server))

    def text(self, entry: SimulatedTool[K]) -> str | None:
        """Return what the model sees of the entry as long as no other becomes the same."""
        if self.engine.ignores(entry.server) or self.engine.refuses(entry.name):
            return None
        if entry.server in self.parts or self.dialect.mangling.after:
            return self.engine.finish(self.spell(entry), self.limit)
        return self.dialect.shown(entry.server, entry.name)

    def called(self, entry: SimulatedTool[K]) -> SimulatedTool[K] | None:
        """Return the tool that a call of the entry runs under the name that the client sends, None if none has it."""
        return self.listed.get((entry.server, self.engine.sends(entry.name))) if self.listed else entry

    def assign(self, entry: SimulatedTool[K], text: str) -> None:
        self.taken.add(text)
        self.final[id(entry)] = text
        self.reaches[text] = entry
        self.seen[text] = [entry]

    def refuse(self, group: Iterable[SimulatedTool[K]], scope: str) -> None:
        self.refused.extend(group)
        self.scope = max(self.scope, scope, key=_SCOPES.index)

    def failed(self, entry: SimulatedTool[K]) -> bool:
        """Say whether the entry goes down with something that was refused."""
        if self.scope == "server":
            return entry.server in {one.server for one in self.refused}
        return self.scope == "request"


def run(dialect: Dialect, entries: Sequence[SimulatedTool[K]]) -> Simulation[K]:
    """Return what the dialect's client or provider does with these tools, listed in this order."""
    if dialect.mangling.several and len({entry.server for entry in entries}) > 1:
        dialect = replace(dialect, mangling=replace(dialect.mangling, join=dialect.mangling.several))
    rules = dialect.mangling
    book: _Book[K] = _Book(dialect, [entry.server for entry in entries])
    if rules.sends:
        book.listed = {(entry.server, entry.name): entry for entry in reversed(entries)}
    admitted = [entry for entry in entries if not _refused(dialect, entry, book)]
    distinct = _without_copies(rules.duplicate, admitted, book)
    if rules.joined:
        distinct = _without_joined(rules.joined, distinct, book)
    groups: dict[str, list[SimulatedTool[K]]] = {}
    for entry in distinct:
        text = None if book.failed(entry) else book.text(entry)
        if text is not None:
            groups.setdefault(text, []).append(entry)
    book.taken = set(groups)
    for text, group in groups.items():
        _settle(_mode(dialect, group, book), text, group, book)
    if rules.twins:
        _settle_twins(rules.twins, book)
    if rules.after:
        _change_after(book)
    return _result(entries, admitted, book)


def _settle_twins(mode: str, book: _Book[K]) -> None:
    alike: dict[str, list[str]] = {}
    for text in book.reaches:
        alike.setdefault(book.engine.alike(text), []).append(text)
    for texts in (texts for texts in alike.values() if len(texts) > 1):
        group = [book.reaches[text] for text in texts]
        if mode.startswith("refuse-"):
            book.refuse(group, mode.removeprefix("refuse-"))
        book.reaches.update(dict.fromkeys(texts, group[-1]))


def _change_after(book: _Book[K]) -> None:
    change, by_name = book.engine.after, sorted(book.reaches.values(), key=lambda one: (one.server, one.name))
    first = {change(book.final[id(entry)]): entry for entry in reversed(by_name)}
    book.reaches, book.seen = first, {text: [entry] for text, entry in first.items()}
    book.final = {key: change(text) for key, text in book.final.items()}


def _refused(dialect: Dialect, entry: SimulatedTool[K], book: _Book[K]) -> bool:
    scope = book.engine.refuses(entry.name)
    if dialect.mangling.ignored and book.engine.ignores(entry.server):
        scope = dialect.mangling.ignored
    if scope in ("", "drop") and dialect.mangling.illegal and breaks(dialect, entry.server, entry.name):
        scope = dialect.mangling.illegal
    if scope in ("", "drop"):
        return False
    book.refuse([entry], scope)
    return True


def _without_copies(mode: str, entries: list[SimulatedTool[K]], book: _Book[K]) -> list[SimulatedTool[K]]:
    counts = Counter((entry.server, entry.name) for entry in entries)
    if mode in _RESPELL or len(counts) == len(entries):
        return entries
    if mode.startswith("refuse-"):
        book.refuse([one for one in entries if counts[one.server, one.name] > 1], mode.removeprefix("refuse-"))
        return [one for one in entries if counts[one.server, one.name] == 1]
    return _one_of_each(mode, entries, lambda one: (one.server, one.name))


def _without_joined(mode: str, entries: list[SimulatedTool[K]], book: _Book[K]) -> list[SimulatedTool[K]]:
    return _one_of_each(mode, entries, lambda one: book.spell(one).raw)


def _one_of_each(
    mode: str, entries: list[SimulatedTool[K]], key: Callable[[SimulatedTool[K]], Hashable]
) -> list[SimulatedTool[K]]:
    order = entries[::-1] if mode.endswith("last") else entries
    kept = {id(one) for one in {key(one): one for one in reversed(order)}.values()}
    return [one for one in entries if id(one) in kept]


def _mode(dialect: Dialect, group: list[SimulatedTool[K]], book: _Book[K]) -> str:
    rules = dialect.mangling
    if len({(entry.server, entry.name) for entry in group}) == 1:
        if len(group) > 1:
            return rules.duplicate
        return "same" if rules.equal == "same" else "first"
    if rules.cut and len({book.spell(entry).text for entry in group}) > 1:
        return rules.cut
    apart = len({entry.server for entry in group}) == len(group)
    return rules.across if apart and rules.across else rules.equal


def _settle(mode: str, text: str, group: list[SimulatedTool[K]], book: _Book[K]) -> None:
    if mode in _RESPELL:
        _RESPELL[mode](text, group, book)
        return
    book.final.update((id(entry), text) for entry in group)
    if mode.startswith("refuse-"):
        book.refuse(group, mode.removeprefix("refuse-"))
        return
    winner = _WINNER[mode](text, group)
    runs = book.called(winner) if winner is not None and book.engine.calls(text) else None
    if runs is not None:
        book.reaches[text] = runs
    book.seen[text] = group if mode in _ALL_SEEN else [one for one in (winner,) if one]


def _same(text: str, group: list[SimulatedTool[K]]) -> SimulatedTool[K] | None:
    return next((entry for entry in reversed(group) if entry.name == text), None)


_WINNER: Mapping[str, Callable[[str, list[SimulatedTool[Any]]], SimulatedTool[Any] | None]] = {
    "both-first": lambda _, group: group[0],
    "both-last": lambda _, group: group[-1],
    "first": lambda _, group: group[0],
    "greatest": lambda _, group: max(group, key=lambda entry: (entry.server, entry.name)),
    "last": lambda _, group: group[-1],
    "race": lambda _text, _group: None,
    "same": _same,
    "unknown": lambda _text, _group: None,
}


_ALL_SEEN = frozenset({"both-first", "both-last", "same"})


def _free(spellings: Iterable[str], taken: set[str]) -> str:
    return next(text for text in spellings if text not in taken)


def _by_digest(_text: str, group: list[SimulatedTool[K]], book: _Book[K]) -> None:
    for entry in sorted(group, key=lambda one: (one.server, one.name)):
        spelling = book.spell(entry)
        tries = (book.engine.digested(spelling, book.limit, salt) for salt in count())
        book.assign(entry, _free(tries, book.taken))


def _by_number(text: str, group: list[SimulatedTool[K]], book: _Book[K]) -> None:
    book.assign(group[0], text)
    for entry in group[1:]:
        spellings = (book.engine.whole(f"{text}_{number}") for number in count(2))
        book.assign(entry, _free(spellings, book.taken))


def _by_last_character(text: str, group: list[SimulatedTool[K]], book: _Book[K]) -> None:
    book.assign(group[0], text)
    for entry in group[1:]:
        spellings = (text[: -len(str(number))] + str(number) for number in count(2))
        book.assign(entry, _free(spellings, book.taken))


def _by_prefix(text: str, group: list[SimulatedTool[K]], book: _Book[K]) -> None:
    room = (book.limit or 0) - len(text)
    for entry in group:
        book.assign(entry, f"{entry.server[: room - 1]}_{text}" if room > 1 else text)


_RESPELL: Mapping[str, Callable[[str, list[SimulatedTool[Any]], _Book[Any]], None]] = {
    "hash": _by_digest,
    "last-character": _by_last_character,
    "number": _by_number,
    "prefix": _by_prefix,
}


def _result(entries: Sequence[SimulatedTool[K]], admitted: list[SimulatedTool[K]], book: _Book[K]) -> Simulation[K]:
    alive = {text: one for text, one in book.reaches.items() if not book.failed(one)}
    reaches = {text: one.key for text, one in alive.items()}
    shown: dict[K, str] = {}
    for text, one in alive.items():
        if book.final.get(id(one)) == text:
            shown.setdefault(one.key, text)
    refused = dict.fromkeys(entry.key for entry in book.refused)
    return Simulation(
        shown=MappingProxyType({entry.key: shown[entry.key] for entry in entries if entry.key in shown}),
        dropped=tuple(dict.fromkeys(e.key for e in entries if e.key not in shown and e.key not in refused)),
        merged=MappingProxyType(_merged(admitted, book)),
        refused=tuple(refused),
        scope=book.scope,
        reaches=MappingProxyType(reaches),
        seen=MappingProxyType(_seen(book)),
    )


def _seen(book: _Book[K]) -> dict[str, tuple[K, ...]]:
    alive = ((text, [one for one in group if not book.failed(one)]) for text, group in book.seen.items())
    return {text: tuple(dict.fromkeys(one.key for one in group)) for text, group in alive if group}


def _merged(admitted: list[SimulatedTool[K]], book: _Book[K]) -> dict[str, tuple[K, ...]]:
    by_key = {entry.key: book.final[id(entry)] for entry in admitted if id(entry) in book.final}
    became: dict[str, list[K]] = {}
    for entry in admitted:
        text = book.final.get(id(entry), by_key.get(entry.key))
        if text is not None:
            became.setdefault(text, []).append(entry.key)
    return {text: tuple(keys) for text, keys in became.items() if len(keys) > 1}
