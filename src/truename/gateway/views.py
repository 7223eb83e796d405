"""Views: what one endpoint shows. A dialect and a style over all servers, or one server alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

from truename import dialects
from truename.errors import UnknownDialect, excerpt

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from truename.dialects import Dialect
    from truename.naming import NameTable

__all__ = ["MAIN", "META_PREFIX", "Asked", "UnknownView", "View", "ViewSpec", "described", "only_path", "read_path"]

MAIN: Final = "/mcp"
META_PREFIX: Final = "dev.truename/"
# The official Python client refuses events of over 1 MiB, and answers of the handshake eras come as events.
_PAGE_BYTES: Final = 768 * 1024
_CURSOR: Final = "page-"
_FOR: Final = "/for/"
_ONLY: Final = "/only/"


@dataclass(frozen=True)
class ViewSpec:
    """Which names to show: a dialect, a style (None: the ledger's), and the one server that is shown, if it is one.

    ``client`` is who asks, where the address says so.
    """

    dialect: str
    style: str | None = None
    only: str | None = None
    client: str | None = None

    @property
    def rules(self) -> Dialect:
        """What its names have to be."""
        return dialects.get(self.dialect) if self.only is None else dialects.own(self.client, self.only)

    @property
    def scope(self) -> str:
        """The naming scope in the ledger."""
        return "" if self.only is None else f"only/{self.only}"


@dataclass(frozen=True)
class View:
    """A compiled view: its name table, and the descriptors of tools/list in pinned order.

    One page holds all of them, unless that would be more than clients accept in one message.
    """

    spec: ViewSpec
    table: NameTable
    tools: tuple[Mapping[str, Any], ...]

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        starts, size = [0], 0
        for index, tool in enumerate(self.tools):
            length = len(json.dumps(tool))
            if size and size + length > _PAGE_BYTES:
                starts.append(index)
                size = 0
            size += length
        return tuple(starts)

    def page(self, cursor: str | None) -> tuple[list[Mapping[str, Any]], str | None]:
        """Return a page and the cursor of the next one. Raises `ValueError` for a cursor that is none of ours."""
        number = 0 if cursor is None else int(cursor.removeprefix(_CURSOR))
        if number < 0 or (cursor is not None and cursor != f"{_CURSOR}{number}") or number >= len(self._starts):
            raise ValueError(cursor)
        bounds = (*self._starts, len(self.tools))
        following = f"{_CURSOR}{number + 1}" if number + 1 < len(self._starts) else None
        return list(self.tools[bounds[number] : bounds[number + 1]]), following


class UnknownView(LookupError):
    """A path leads to no endpoint; the text says which there are."""


class Asked(NamedTuple):
    """What a path asks for: the names of a client (None: whoever it is), of one server (None: of all)."""

    client: str | None = None
    server: str | None = None


def only_path(server: str) -> str:
    """Return the path of one server.

    >>> only_path("My Server.io/x")
    '/mcp/only/My%20Server.io%2Fx'
    """
    return MAIN + _ONLY + quote(server, safe="")


def read_path(path: str, servers: Collection[str]) -> Asked:
    """Return what a path asks for. Raises `UnknownView` with suggestions.

    >>> read_path("/mcp/for/Claude Code/only/git", ["git"])
    Asked(client='claude-code', server='git')
    """
    if path.rstrip("/") == MAIN:
        return Asked()
    rest = path.removeprefix(MAIN)
    if rest == path or not rest.startswith((_FOR, _ONLY)):
        message = f"There is nothing at {excerpt(path)}. Use {MAIN}, {MAIN}{_FOR}CLIENT or {MAIN}{_ONLY}SERVER."
        raise UnknownView(message)
    if rest.startswith(_ONLY):
        return Asked(server=_server(rest.removeprefix(_ONLY), servers))
    # No client has a slash in its name, so the first one ends it.
    client, slash, server = rest.removeprefix(_FOR).partition("/")
    if f"/{server}".startswith(_ONLY):
        return Asked(_dialect(client), _server(f"/{server}".removeprefix(_ONLY), servers))
    return Asked(_dialect(client + slash.rstrip("/") + server))


def _dialect(name: str) -> str:
    try:
        return dialects.get(name).name
    except UnknownDialect as error:
        raise UnknownView(str(error)) from error


def _server(asked: str, servers: Collection[str]) -> str:
    for key in (asked, asked.rstrip("/"), unquote(asked)):
        if key in servers:
            return key
    close = get_close_matches(asked, servers, 3)
    hint = f"Did you mean {', '.join(map(repr, close))}?" if close else f"Known are: {', '.join(sorted(servers))}."
    message = f"No server is known as {excerpt(asked)}. {hint}"
    raise UnknownView(message)


def described(table: NameTable, openai: Dialect, universal: NameTable | None) -> tuple[Mapping[str, Any], ...]:
    """Return the descriptors of a table: the server's definitions with their wire names, and the two other names.

    ``openai_name`` is the wire name where OpenAI accepts it, else the universal one (seed 000).
    """
    described = []
    for id, wire in table.items():
        definition = table.catalog[id].definition
        flat = wire if universal is None or not openai.check(wire) else universal[id]
        names = {"openai_name": flat, "canonical_name": str(id)}
        meta = definition.get("_meta")
        meta = dict(meta) if isinstance(meta, dict) else {}
        meta |= {f"{META_PREFIX}{key}": name for key, name in names.items()}
        described.append({**definition, "name": wire, **names, "_meta": meta})
    return tuple(described)
