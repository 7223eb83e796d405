"""Tell which tools exist, under which names clients see them, and which names are old: nothing is started or asked."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from truename.clients.gateway_address import shown_by, table_together, tables_alone, tools_in_ledger
from truename.errors import InvalidToolId, ResolutionError, TruenameError
from truename.identity import ToolId
from truename.naming import resolve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from truename.clients.gateway_address import ShownAddress
    from truename.config import Config, ServerConfig
    from truename.ledger import Ledger
    from truename.naming import NameTable

__all__ = ["ExistingTools", "GatewayTools", "ReachedTools"]

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_REDIRECTED: Final = "redirected"
# A redirect may lead to a tool that was renamed again.
_MOST_STEPS: Final = 16
# What follows in an address are keys of servers, which may be any words.
_KEYS: Final = re.compile(r"/(?:only|servers)/")


@dataclass(frozen=True, kw_only=True)
class ReachedTools:
    """The tool names behind one server entry of a client: ``names`` has each with its server and its own name.

    ``former`` has old names with the present ones ("" if there is none), ``proposed`` those that a server probably
    renamed, as long as nobody decided. ``is_held`` tells of other texts whether they
    are names of the gateway too, for other clients or of its own tools; ``meaning`` returns the name of the tool that a
    text in another spelling means ("" if it means none).
    """

    names: Mapping[str, tuple[str, str]]
    former: Mapping[str, str] = field(default_factory=lambda: _NONE)
    proposed: Mapping[str, str] = field(default_factory=lambda: _NONE)
    is_held: Callable[[str], bool] = lambda _: False
    meaning: Callable[[str], str] = lambda _: ""


class GatewayTools:
    """The names at the gateway of one configuration, as its ledger has them; ``listed`` are tools by server.

    Without a ledger the names are computed, if the tools of all servers are known. ``proposals`` are old ids with the
    new names that servers probably gave them.
    """

    def __init__(
        self,
        config: Config,
        ledger: Ledger | None,
        listed: Mapping[str, Iterable[str]] | None = None,
        proposals: Mapping[ToolId, str] | None = None,
    ) -> None:
        self._config, self._ledger = config, ledger
        keys = [server.key for server in config.enabled]
        recorded = {} if ledger is None else tools_in_ledger(ledger)
        known = {**recorded, **{key: list(names) for key, names in (listed or {}).items()}}
        self.listed: Mapping[str, list[str]] = {key: known[key] for key in keys if key in known}
        self._is_whole = ledger is not None or len(self.listed) == len(keys)
        self._tables = cache(self._table)
        origins = ((_origin(ledger, str(id)), new) for id, new in (proposals or {}).items())
        self._proposed = {origin: new for origin, new in origins if origin is not None}

    @property
    def proposed(self) -> Mapping[str, Mapping[str, str]]:
        """The servers' own names that were probably renamed, with the new ones, by server."""
        found: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for (server, old), new in self._proposed.items():
            found[server][old] = new
        return found

    @property
    def former(self) -> Mapping[str, Mapping[str, str]]:
        """The servers' own old names with the present ones, by server: those that were renamed on record."""
        found: defaultdict[str, dict[str, str]] = defaultdict(dict)
        ledger = self._ledger
        for text in () if ledger is None else ledger.withdrawn:
            old, new = _origin(ledger, text), self._destination(ledger, text)
            if old is not None and new is not None and old[0] == new[0] and old[1] != new[1]:
                found[old[0]][old[1]] = new[1]
        return found

    def shown(self, entry: ServerConfig, dialect: str) -> ReachedTools | None:
        """Return what a client of this dialect sees behind an entry of the gateway; None if that is not known.

        A search view lists other tools than it can call, so its names are not known.
        """
        if _asks_for(entry, "search"):
            return None
        at = shown_by(entry)
        own = _asks_for(entry, "for")
        shared = {"canonical": "native", "detect": dialect}.get(self._config.settings.names, "universal")
        first, other = (dialect, shared) if own else (shared, dialect)
        tables = [self._tables(one, at.only) for one in dict.fromkeys((first, other))]
        found = [table for table in tables if table is not None]
        if not found:
            return None
        # In doubt the names of both tables are legal; the first is the one that the client gets.
        names = {wire: origin for table in reversed(found) for wire, origin in _by_wire(table, at)}
        return ReachedTools(
            names=names,
            former=dict(self._former(found[0], at)),
            proposed={wire: self._proposed[origin] for wire, origin in names.items() if origin in self._proposed},
            is_held=partial(self._is_held, at),
            meaning=partial(_meaning, found[0], at),
        )

    def _table(self, dialect: str, only: str | None) -> NameTable | None:
        if not self.listed or (only is None and not self._is_whole):
            return None
        try:
            if only is None:
                return table_together(self.listed, self._config, self._ledger, dialect=dialect)
            return tables_alone(self.listed, self._config, self._ledger, dialect=dialect).get(only)
        except (TruenameError, ExceptionGroup):
            return None

    def _former(self, table: NameTable, at: ShownAddress) -> Iterator[tuple[str, str]]:
        ledger = self._scoped(at)
        wires = {origin: wire for wire, origin in _by_wire(table, at)}
        for name, standing in () if ledger is None else ledger.withdrawn.items():
            origin = self._destination(ledger, name)
            new = "" if origin is None else wires.get(origin, "")
            # A redirect to a tool that no list had yet works, and has no name to propose; one that was undone, too.
            if (new or standing.status != _REDIRECTED) and new != name:
                yield name, new

    def _is_held(self, at: ShownAddress, name: str) -> bool:
        ledger = self._scoped(at)
        standing = None if ledger is None else ledger.standing(name)
        if standing is None:
            return False
        origin = None if standing.id is None else self._destination(ledger, str(standing.id))
        return origin is None or at.servers is None or origin[0] in at.servers

    def _scoped(self, at: ShownAddress) -> Ledger | None:
        if self._ledger is None or at.only is None:
            return self._ledger
        return self._ledger.scoped(f"only/{at.only}")

    def _destination(self, ledger: Ledger | None, text: str) -> tuple[str, str] | None:
        """Return the server and the own name of the tool that a withdrawn name or id leads to, None if to none."""
        for _ in range(_MOST_STEPS):
            standing = None if ledger is None else ledger.standing(text)
            if standing is None or standing.id is None or str(standing.id) == text:
                break
            text = str(standing.id)
        return _origin(ledger, text)


def _asks_for(entry: ServerConfig, word: str) -> bool:
    """Return whether an entry asks for such a view, by a step of its address or an option of its command."""
    if entry.url is None:
        return any(arg == f"--{word}" or arg.startswith(f"--{word}=") for arg in entry.args)
    return word in _KEYS.split(urlsplit(entry.url).path)[0].split("/")


def _origin(ledger: Ledger | None, text: str) -> tuple[str, str] | None:
    """Return the server and the own name of the tool with this id; None if the text is no id, or never was listed."""
    try:
        return None if ledger is None else ledger.origin_of(ToolId.parse(text))
    except InvalidToolId:
        return None


def _by_wire(table: NameTable, at: ShownAddress) -> Iterator[tuple[str, tuple[str, str]]]:
    for id, wire in table.items():
        origin = table.catalog[id].origin
        if _is_shown(origin.server, at):
            yield wire, (origin.server, origin.name)


def _meaning(table: NameTable, at: ShownAddress, text: str) -> str:
    """Return the name of the tool that a text means at the gateway in any spelling; "" if it means none."""
    try:
        found = resolve(text, table, on_unknown="passthrough")
    except ResolutionError:
        return ""
    known = None if found.id is None else table.catalog.get(found.id)
    return "" if known is None or not _is_shown(known.origin.server, at) else table.get(known.id, "")


def _is_shown(server: str, at: ShownAddress) -> bool:
    return at.only in {None, server} and (at.servers is None or server in at.servers)


@dataclass(frozen=True, kw_only=True)
class ExistingTools:
    """All known tools: by the key of their server, or ``unkeyed`` if the source does not tell it.

    ``former`` are servers' own old names with the present ones, ``proposed`` those that were probably renamed, and
    ``gateways`` the gateways whose names are known.
    """

    listed: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    unkeyed: frozenset[str] = frozenset()
    former: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    proposed: Mapping[str, Mapping[str, str]] = field(default_factory=lambda: MappingProxyType({}))
    gateways: tuple[GatewayTools, ...] = ()

    @classmethod
    def of(cls, tools: Iterable[tuple[str, str]], gateways: Iterable[GatewayTools] = ()) -> ExistingTools:
        """Return the tools, given as pairs of server key ("" if unknown) and name, and those of gateways.

        >>> ExistingTools.of([("git", "log"), ("", "search")]).unkeyed
        frozenset({'search'})
        """
        gateways = tuple(gateways)
        found: defaultdict[str, set[str]] = defaultdict(set)
        for server, name in tools:
            found[server].add(name)
        former: defaultdict[str, dict[str, str]] = defaultdict(dict)
        proposed: defaultdict[str, dict[str, str]] = defaultdict(dict)
        for gateway in gateways:
            for server, names in gateway.listed.items():
                found[server].update(names)
            for server, renamed in gateway.former.items():
                former[server].update(renamed)
            for server, probable in gateway.proposed.items():
                proposed[server].update(probable)
        unkeyed = frozenset(found.pop("", ()))
        return cls(
            listed={server: frozenset(names) for server, names in found.items()},
            unkeyed=unkeyed,
            former=former,
            proposed=proposed,
            gateways=gateways,
        )

    def at(self, server: str) -> ReachedTools | None:
        """Return the tools of a server that a client reaches itself; None if they are not known."""
        names = self.listed.get(server)
        if names is None:
            return None
        return ReachedTools(
            names={name: (server, name) for name in names},
            former=self.former.get(server, _NONE),
            proposed=self.proposed.get(server, _NONE),
        )

    def behind(self, entry: ServerConfig, dialect: str) -> ReachedTools | None:
        """Return what a client sees behind its entry of a gateway; None if it is not known.

        An entry does not say of which configuration its gateway is, so each name of any gateway exists.
        """
        shown = (gateway.shown(entry, dialect) for gateway in self.gateways)
        found = [one for one in shown if one is not None]
        return _together(found) if len(found) > 1 else next(iter(found), None)


def _together(several: Sequence[ReachedTools]) -> ReachedTools:
    """Return the tools of several gateways; of two tools with one name, that of the first."""
    names = {name: tool for one in reversed(several) for name, tool in one.names.items()}
    former = {old: new for one in reversed(several) for old, new in one.former.items() if old not in names}
    proposed = {
        name: new
        for one in reversed(several)
        for name, new in one.proposed.items()
        if all(name in other.proposed for other in several if name in other.names)
    }
    return ReachedTools(
        names=names,
        former=former,
        proposed=proposed,
        is_held=lambda name: any(one.is_held(name) for one in several),
        meaning=lambda text: next((name for one in several if (name := one.meaning(text))), ""),
    )
