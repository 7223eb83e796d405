"""Represent an export: what is put into another gateway, the names that it will list, and what it cannot express."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.catalog import Tool
    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["Export", "ExportSource", "ExportedTool", "InexpressibleTool"]


_SAME_KEY: Final = "another server has this key too: give each its own key"


@dataclass(frozen=True, kw_only=True)
class ExportSource:
    """The input of an exporter: the name table, and the servers' entries by key, as in ``mcpServers``.

    ``known_as`` is the name that the gateway has for a server whose key differs; ``separator`` is what it writes
    between its prefix and a name, if that is a setting of the gateway.
    """

    names: NameTable
    entries: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    known_as: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None

    def by_server(self) -> Mapping[str, Sequence[Tool]]:
        """Return the tools of each server, servers and tools in the order of the table.

        Of several servers with one key, as of two sources, only the first is one: `shadowed` has the tools of others.
        """
        return {key: tools for key, tools, is_first in self._servers() if is_first}

    def shadowed(self) -> Iterator[InexpressibleTool]:
        """Yield the tools of servers whose key another server has: a gateway cannot tell them apart."""
        for key, tools, is_first in self._servers():
            for tool in () if is_first else tools:
                yield InexpressibleTool(
                    id=tool.id, server=key, tool=tool.origin.name, name=self.names[tool.id], reason=_SAME_KEY
                )

    def _servers(self) -> Iterator[tuple[str, Sequence[Tool], bool]]:
        found: dict[tuple[str, str], list[Tool]] = {}
        for id in self.names:
            tool = self.names.catalog[id]
            found.setdefault((tool.origin.server, tool.origin.server_id), []).append(tool)
        seen: set[str] = set()
        for (key, _), tools in found.items():
            yield key, tools, key not in seen
            seen.add(key)


@dataclass(frozen=True, kw_only=True)
class ExportedTool:
    """A tool that the gateway lists under ``listed``.

    ``name`` is its name in the table, ``written`` the text that is put into the gateway, ``plain`` the name that the
    gateway lists without it. ``listed`` is ``name``, in the spelling of the gateway, unless `is_second`.
    """

    id: ToolId
    server: str
    tool: str
    name: str
    written: str
    listed: str
    plain: str

    @property
    def is_second(self) -> bool:
        """Whether the gateway's prefix demands another name than the table's."""
        return fold(self.listed) != fold(self.name)


@dataclass(frozen=True, kw_only=True)
class InexpressibleTool:
    """A tool, or with an empty ``tool`` a whole server, that the gateway cannot show as wanted, and the reason."""

    server: str
    tool: str
    reason: str
    name: str = ""
    id: ToolId | None = None


@dataclass(frozen=True, kw_only=True)
class Export:
    """An export to one gateway: its tools, what it cannot express, the documents to write, and notes for the user.

    ``documents`` are JSON or YAML objects by their suggested file names. ``keys`` are the names that the servers have
    there, where the gateway writes them before the names of tools.
    """

    gateway: str
    tools: tuple[ExportedTool, ...] = ()
    left: tuple[InexpressibleTool, ...] = ()
    documents: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, Mapping[str, str]]:
        """The text to set for each tool, by server."""
        found: dict[str, dict[str, str]] = {}
        for one in self.tools:
            found.setdefault(one.server, {})[one.tool] = one.written
        return MappingProxyType(found)

    def without(self, left: Sequence[InexpressibleTool]) -> Export:
        """Return the export without the tools and servers that the gateway turned out not to express."""
        servers = {one.server for one in left if not one.tool}
        tools = {(one.server, one.tool) for one in left}
        kept = (one for one in self.tools if one.server not in servers and (one.server, one.tool) not in tools)
        return replace(self, tools=tuple(kept), left=(*self.left, *left))

    def listed(self) -> Mapping[str, ExportedTool]:
        """Return the tools by the name that the gateway lists."""
        return MappingProxyType({one.listed: one for one in self.tools})

    def second(self) -> Iterator[ExportedTool]:
        """Yield the tools that the gateway lists under another name than the table's."""
        return (one for one in self.tools if one.is_second)
