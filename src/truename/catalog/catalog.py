"""Represent a catalogue: an immutable mapping from identity to tool, in insertion order."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import ItemsView, Iterable, Iterator, Mapping, ValuesView
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, overload

from truename.catalog.admit import IdentityRecord, admit
from truename.catalog.declared import Bindings, Owners, ServerIdentity, identity_changes, identity_mismatch
from truename.catalog.read import read_listings
from truename.catalog.tool import AdmissionNotice, Origin, Tool
from truename.catalog.unknown import unknown_tool_id
from truename.dialects import Reason
from truename.errors import DuplicateTool, InvalidName
from truename.identity import ToolId, component, fold, is_name, lower_ascii

if TYPE_CHECKING:
    from collections.abc import Collection, Set
    from typing import Self

__all__ = ["BUILT_IN_ALIASES", "Catalog", "usable_aliases"]

BUILT_IN_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"salesforce": "sf", "quickbooks": "qb", "data-grout": "dg"}
)


def checked_aliases(aliases: Mapping[str, str]) -> dict[str, str]:
    """Return the aliases by integration. Raises `InvalidName` for an alias with characters that names cannot have.

    >>> checked_aliases({"Salesforce": "sf"})
    {'salesforce': 'sf'}
    """
    for alias in aliases.values():
        if not is_name(lower_ascii(alias)):
            reason = Reason("character", "an alias has letters, digits, '_' and '-' only")
            raise InvalidName(name=alias, dialect="an alias", reasons=(reason,))
    return {component(key).name: alias for key, alias in aliases.items()}


def usable_aliases(aliases: Mapping[str, str], integrations: Collection[str]) -> dict[str, str]:
    """Return the aliases that belong to one integration only and are not the name of an integration.

    >>> usable_aliases({"salesforce": "sf"}, {"salesforce", "sf"})
    {}
    """
    owners = Counter(aliases.values())
    return {
        integration: alias for integration, alias in aliases.items() if owners[alias] == 1 and alias not in integrations
    }


Other = TypeVar("Other")
Listings = Mapping[str, Any] | Iterable[tuple[str, Any]]


class Catalog(Mapping[ToolId, Tool]):
    """An immutable ``ToolId -> Tool`` mapping; an id can also be looked up by its text.

    For another id a look-up raises `UnknownToolId`, a `KeyError` that names the ids near to it.
    ``aliases`` are short names of integrations for wire names (None: the built-in table, ``{}``: none); keys are
    server keys in any case. Raises `InvalidName` for an alias with other characters than letters, digits, ``_`` and
    ``-``, and `DuplicateTool` for two tools with one id. ``notices`` report tools that were omitted or listed twice.

    >>> catalog = Catalog.of("salesforce@1/get_leads@1", "data-grout/prism.refract")
    >>> [str(id) for id in catalog]
    ['salesforce@1/get_leads@1', 'data-grout@1/prism.refract@1']
    """

    __slots__ = ("_by_text", "_named", "_of_server", "_tools", "aliases", "notices")

    aliases: Mapping[str, str]
    notices: tuple[AdmissionNotice, ...]

    def __init__(
        self,
        tools: Iterable[Tool],
        aliases: Mapping[str, str] | None = None,
        notices: tuple[AdmissionNotice, ...] = (),
    ) -> None:
        self._tools: dict[ToolId, Tool] = {}
        self._by_text: dict[str, Tool] = {}
        # The tools of each server, and those of each name (by fold).
        self._of_server: dict[str, tuple[ToolId, ...]] = {}
        self._named: dict[str, tuple[ToolId, ...]] = {}
        self._take((), tools)
        self.aliases = MappingProxyType(checked_aliases(BUILT_IN_ALIASES if aliases is None else aliases))
        self.notices = notices

    @classmethod
    def of(cls, *ids: ToolId | str, aliases: Mapping[str, str] | None = None) -> Self:
        """Build a catalogue from ids alone. Raises `InvalidToolId`, and `DuplicateTool` for an id given twice."""
        parsed = (id if isinstance(id, ToolId) else ToolId.parse(id) for id in ids)
        return cls((_bare(id) for id in parsed), aliases)

    @classmethod
    def from_mcp(
        cls,
        servers: Listings,
        aliases: Mapping[str, str] | None = None,
        bound: Bindings | None = None,
        *,
        identities: Mapping[str, ServerIdentity] | None = None,
        owners: Owners | None = None,
        strict: bool = True,
    ) -> Self:
        """Build a catalogue from the tools/list results of MCP servers.

        ``servers`` maps server keys to lists of tools or whole results. It may also be pairs of key and list: each pair
        is then a separate server, and keys may repeat. ``bound`` are the identities that a ledger has on record.
        ``owners`` (`Ledger.origins`) also has ids that tools had before `truename rename --ids`. No id in either is
        given to another tool. ``identities`` are those that the operator declares, by server key.

        Names that cannot be admitted (empty, not printable, over 1,024 characters), and tools whose id another server
        has, raise an `ExceptionGroup` of `InvalidName` and `DuplicateTool`. With ``strict=False``, as in the gateway
        and the commands, they are omitted and reported in `notices`. Ids on record that differ from the declared ones
        raise `LedgerError` (``identity_mismatch``); with ``strict=False`` the recorded ids are kept.

        >>> list(Catalog.from_mcp({"Weather": ["get_data"], "weather": ["get_data"]}))
        [ToolId('weather-a0bba638@1/get_data@1'), ToolId('weather@1/get_data@1')]
        >>> list(Catalog.from_mcp({"sf2": ["t"]}, identities={"sf2": ServerIdentity(integration="sf", version=2)}))
        [ToolId('sf@2/t@1')]
        """
        pairs = servers.items() if isinstance(servers, Mapping) else servers
        if strict and (changes := identity_changes(bound or {}, identities or {})):
            raise identity_mismatch(changes)
        tools, notices = admit(pairs, IdentityRecord(bound or {}, owners or {}), identities or {}, strict=strict)
        return cls(tools, aliases, notices)

    @classmethod
    def from_file(cls, path: str | Path, aliases: Mapping[str, str] | None = None, *, strict: bool = True) -> Self:
        """Read a dump: JSON or JSONL, also gzipped, of one server's tools or of many servers.

        Raises `ConfigError` for a file that cannot be read, and the errors of `from_mcp` for its content.
        """
        return cls.from_mcp(read_listings(Path(path)), aliases, strict=strict)

    def with_tools(self, tools: Iterable[Tool]) -> Self:
        """Return a copy with these tools added. Raises `DuplicateTool`."""
        return type(self)([*self._tools.values(), *tools], self.aliases, self.notices)

    def changed(self, gone: Iterable[ToolId], tools: Iterable[Tool]) -> tuple[Self, frozenset[ToolId]]:
        """Return a copy without some tools and with others, and the ids of all tools that are not the same in it.

        These are more than were given if a name is no longer that of several servers, or is now. A tool takes the place
        of the one with its id; it costs what changed, and a copy of the indexes. Raises `DuplicateTool`.

        >>> catalog = Catalog.from_mcp({"git": ["push"]})
        >>> more, changed = catalog.changed((), Catalog.from_mcp({"hg": ["push"]}).values())
        >>> sorted(map(str, changed)), len(catalog), len(more)
        (['git@1/push@1', 'hg@1/push@1'], 1, 2)
        """
        other: Self = object.__new__(type(self))
        other._tools, other._by_text = self._tools.copy(), self._by_text.copy()
        # Replaced, where that is needed, when their first entry is.
        other._of_server, other._named = self._of_server, self._named
        other.aliases, other.notices = self.aliases, ()
        return other, other._take(gone, tools)

    def _take(self, gone: Iterable[ToolId], tools: Iterable[Tool]) -> frozenset[ToolId]:
        """Let tools go and take others in; return the ids of all that are not the same now."""
        changed: set[ToolId] = set()
        added: defaultdict[str, list[ToolId]] = defaultdict(list)
        removed: defaultdict[str, set[ToolId]] = defaultdict(set)
        servers: defaultdict[str, tuple[list[ToolId], set[ToolId]]] = defaultdict(lambda: ([], set()))
        for id in gone:
            tool = self._tools.pop(id)
            del self._by_text[str(id)]
            removed[fold(tool.origin.name)].add(id)
            servers[tool.origin.server_id][1].add(id)
            changed.add(id)
        for tool in tools:
            id, origin = tool.id, tool.origin
            known = self._tools.get(id)
            if known is None:
                added[fold(origin.name)].append(id)
                servers[origin.server_id][0].append(id)
            elif id in changed or (known.origin.server_id, known.origin.name) != (origin.server_id, origin.name):
                raise DuplicateTool(
                    existing=f"{known.origin.server!r} ({known.origin.name})",
                    duplicate=f"{origin.server!r} ({origin.name})",
                    name=str(id),
                )
            elif known.origin.has_conflict is not origin.has_conflict:
                tool = replace(tool, origin=known.origin)  # noqa: PLW2901 - the same tool, with what is known of it here
            self._tools[id] = self._by_text[str(id)] = tool
            changed.add(id)
        if servers:
            # They may be another catalogue's.
            self._of_server, self._named = self._of_server.copy(), self._named.copy()
        for server, (new, old) in servers.items():
            self._put(self._of_server, server, new, old)
        for name in added.keys() | removed.keys():
            self._put(self._named, name, added.get(name, ()), removed.get(name, ()))
            changed.update(self._note_conflict(self._named.get(name, ())))
        return frozenset(changed)

    @staticmethod
    def _put(index: dict[str, tuple[ToolId, ...]], key: str, new: Iterable[ToolId], old: Collection[ToolId]) -> None:
        before = index.get(key, ())
        now = (*(tuple(id for id in before if id not in old) if old else before), *new)
        if now:
            index[key] = now
        else:
            index.pop(key, None)

    def _note_conflict(self, ids: tuple[ToolId, ...]) -> Iterator[ToolId]:
        """Note whether several servers have the name of these tools; yield those of which that was not known."""
        is_shared = len(ids) > 1 and len({self._tools[id].origin.server_id for id in ids}) > 1
        for id in ids:
            tool = self._tools[id]
            if tool.origin.has_conflict is not is_shared:
                origin = replace(tool.origin, has_conflict=is_shared)
                self._tools[id] = self._by_text[str(id)] = replace(tool, origin=origin)
                yield id

    def only(self, server_id: str) -> Self:
        """Return a catalogue of the tools of one server."""
        return type(self)(self.of_server(server_id), self.aliases)

    def of_server(self, server_id: str) -> tuple[Tool, ...]:
        """Return the tools of one server."""
        return tuple(self._tools[id] for id in self._of_server.get(server_id, ()))

    @property
    def servers(self) -> Set[str]:
        """The ids of the servers that have tools."""
        return self._of_server.keys()

    @property
    def digest(self) -> str:
        """The digest of all identities, origins and definitions; it does not depend on their order."""
        lines = sorted(f"{id} {t.origin.server_id!r} {t.origin.name!r} {t.digest}" for id, t in self._tools.items())
        return f"sha256:{hashlib.sha256(chr(10).join(lines).encode()).hexdigest()}"

    def conflicts(self, about: Iterable[ToolId] | None = None) -> dict[str, tuple[Tool, ...]]:
        """Return the names that several servers have (compared by fold), each with its tools.

        Of several spellings it is the first, small letters before capitals, in whatever order the tools came.

        ``about``: only the names of these tools, of which some may be gone.
        """
        there = self._tools.values() if about is None else (self._tools[id] for id in about if id in self._tools)
        names = dict.fromkeys(fold(tool.origin.name) for tool in there if tool.origin.has_conflict)
        groups = (tuple(self._tools[id] for id in self._named[name]) for name in names)
        return {min((tool.origin.name for tool in tools), key=str.swapcase): tools for tools in groups}

    def __getitem__(self, id: ToolId | str) -> Tool:
        found = self._by_text.get(id) if isinstance(id, str) else self._tools.get(id)
        if found is None:
            raise unknown_tool_id(id, self._tools)
        return found

    def __contains__(self, id: object) -> bool:
        return id in self._by_text if isinstance(id, str) else id in self._tools

    @overload
    def get(self, id: ToolId | str, default: None = None, /) -> Tool | None: ...

    @overload
    def get(self, id: ToolId | str, default: Other, /) -> Tool | Other: ...

    def get(self, id: ToolId | str, default: object = None, /) -> object:
        """Return the tool with an id, ``default`` if there is none."""
        return self._by_text.get(id, default) if isinstance(id, str) else self._tools.get(id, default)

    def items(self) -> ItemsView[ToolId, Tool]:
        """Return the pairs of id and tool; faster than the inherited method, which looks up each id."""
        return self._tools.items()

    def values(self) -> ValuesView[Tool]:
        """Return the tools."""
        return self._tools.values()

    def __iter__(self) -> Iterator[ToolId]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"<Catalog of {len(self)} tools>"


def _bare(id: ToolId) -> Tool:
    name = f"{id.suite}.{id.tool}" if id.suite else id.tool
    server_id = id.integration if id.integration_version == 1 else f"{id.integration}@{id.integration_version}"
    return Tool(id, Origin(id.integration, name, server_id), {"name": name})
