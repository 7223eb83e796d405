"""Export to ContextForge: ``custom_name`` of each tool, behind the slug of its gateway.

ContextForge lists ``SLUG SEPARATOR slug(custom_name)``. The slug of a gateway stays, so names are chosen that begin
with it. A slug has ContextForge's own separator for every run of other characters; names that differ in it only are one
name to the ledger, and to `resolve`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.clients.exporters.api import (
    ApiPlan,
    ApiRequest,
    FormerValues,
    GatewayState,
    ReplacedName,
    RestorePlan,
    in_path,
    match,
    objects,
    text_of,
)
from truename.clients.exporters.export import Export, ExportedTool, InexpressibleTool
from truename.clients.exporters.shapes import ShapedNames, choose_prefixes
from truename.errors import excerpt
from truename.identity import digest_of, fold

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.catalog import Tool
    from truename.clients.exporters.api import SoughtServer
    from truename.clients.exporters.export import ExportSource
    from truename.ledger import Claim

__all__ = ["CONTEXTFORGE", "ContextForgeApi", "contextforge", "slug"]

CONTEXTFORGE: Final = "contextforge"
_FILE: Final = "custom-names.json"
_GATEWAYS: Final = "/gateways?include_inactive=true&limit=0"
_TOOLS: Final = "/tools?include_inactive=true&limit=0"
_FIELD: Final = "custom_name"
_SEPARATOR: Final = "-"
_SEPARATORS: Final = ("--", "-", "_", ".")
_CONTRACTION: Final = re.compile(r"(\w)'(\w)")
_OTHERS: Final = re.compile(r"[\W_]+")
_LETTERS: Final = {"æ": "ae", "ß": "ss", "ø": "o"}
_NO_GATEWAY: Final = "ContextForge has no gateway that is only this server: register it there under its own name"
_NO_TOOL: Final = "ContextForge has no such tool of this gateway: refresh the gateway there"
_HELD: Final = "tool {} of this gateway has the name, and keeps it: rename or delete that one there"
_NO_SLUG: Final = "its gateway's name has no letter or digit that a slug keeps: give the gateway another name"


def slug(text: str, separator: str = _SEPARATOR) -> str:
    """Return the slug that ContextForge makes of a name.

    >>> slug("My Tools_2"), slug("getUser"), slug("天気")
    ('my-tools-2', 'getuser', '')
    """
    plain = _OTHERS.sub(separator, _CONTRACTION.sub(r"\1\2", text.lower())).strip(separator)
    for letter, letters in _LETTERS.items():
        plain = plain.replace(letter, letters)
    return unicodedata.normalize("NFKD", plain).encode("ascii", "ignore").decode()


def contextforge(source: ExportSource) -> tuple[Export, list[Claim]]:
    """Return the custom names, and the claims for the names that only ContextForge lists."""
    shaped = ShapedNames(source.names, CONTEXTFORGE)
    separator, servers = source.separator or _SEPARATOR, source.by_server()
    proposed = choose_prefixes(source.names, servers)
    tools: list[ExportedTool] = []
    left = [*source.shadowed()]
    for server, listed in servers.items():
        prefix = slug(source.known_as.get(server, proposed[server]), separator)
        for tool in listed:
            if prefix:
                tools.append(_exported(source, shaped, tool, prefix, separator))
            else:
                name = source.names[tool.id]
                one = InexpressibleTool(id=tool.id, server=server, tool=tool.origin.name, name=name, reason=_NO_SLUG)
                left.append(one)
    keys = MappingProxyType({server: source.known_as.get(server, proposed[server]) for server in servers})
    notes = tuple(_notes(keys, proposed, tools, source))
    export = Export(gateway=CONTEXTFORGE, tools=tuple(tools), left=tuple(left), keys=keys, notes=notes)
    return replace(export, documents={_FILE: export.values}), shaped.claims


def _notes(
    keys: Mapping[str, str], proposed: Mapping[str, str], tools: Sequence[ExportedTool], source: ExportSource
) -> Iterator[str]:
    second = Counter(one.server for one in tools if one.is_second)
    for server, name in keys.items():
        better = excerpt(proposed[server])
        if server not in source.known_as:
            if name != server:
                yield f"Register server {excerpt(server)} there under the name {better}, which begins its names."
        elif second[server] and fold(name) != fold(proposed[server]):
            yield (
                f"Gateway {excerpt(name)} gives {second[server]:,} tools another name than the table's; "
                f"one that is called {better} keeps more of them."
            )


def _exported(source: ExportSource, shaped: ShapedNames, tool: Tool, prefix: str, separator: str) -> ExportedTool:
    own, part = tool.origin.name, _OTHERS.sub("_", prefix)
    name = shaped.name(tool, part, separator)
    written = name.removeprefix(f"{part}_")
    return ExportedTool(
        id=tool.id,
        server=tool.origin.server,
        tool=own,
        name=source.names[tool.id],
        written=written,
        listed=f"{prefix}{separator}{slug(written, separator)}",
        plain=f"{prefix}{separator}{slug(own, separator)}",
    )


class ContextForgeApi:
    """The tools of ContextForge's database: one request sets the custom name of a tool."""

    paths = (_GATEWAYS, _TOOLS)

    def state(self, listed: Mapping[str, object], servers: Sequence[SoughtServer]) -> GatewayState:
        """Return gateways and tools; the separator is that of a listed name, between the two slugs."""
        gateways, tools = (objects(listed[path], path) for path in self.paths)
        for row in tools:
            in_path(row.get("id"), _TOOLS)
        matched = match(gateways, servers, ("name",))
        return GatewayState(
            listed=MappingProxyType({_GATEWAYS: gateways, _TOOLS: tools}),
            matched=MappingProxyType(matched),
            known_as=MappingProxyType({key: str(row.get("name")) for key, row in matched.items()}),
            separator=next((found for one in tools if (found := _separator(one))), None),
        )

    def plan(self, export: Export, state: GatewayState) -> ApiPlan:
        """Return a request for each tool whose custom name differs, in an order in which no two names are equal."""
        gateways = state.matched
        rows = {(_gateway(row), text_of(row, "originalName")): row for row in state.listed[_TOOLS]}
        changes: list[_CustomName] = []
        left = [
            InexpressibleTool(server=server, tool="", reason=_NO_GATEWAY)
            for server in export.values
            if server not in gateways
        ]
        for one in export.tools:
            if one.server not in gateways:
                continue
            row = rows.get((text_of(gateways[one.server], "id"), one.tool))
            if row is None:
                left.append(_inexpressible(one, _NO_TOOL))
            elif row.get("customName") != one.written:
                changes.append(_CustomName(row=row, name=one.written, tool=one))
        changes, blocked = _possible(changes, state)
        left += (_inexpressible(one.tool, reason) for one, reason in blocked if one.tool is not None)
        return ApiPlan(
            requests=tuple(_ordered(changes, state)),
            former=FormerValues(
                gateway=CONTEXTFORGE,
                values={one.id: {_FIELD: _custom(one.row)} for one in changes},
                written={one.id: {_FIELD: one.name} for one in changes},
            ),
            left=tuple(left),
            replaced=tuple(self._replaced(changes)),
        )

    def _replaced(self, changes: Sequence[_CustomName]) -> Iterator[ReplacedName]:
        for one in changes:
            former, own = _custom(one.row), text_of(one.row, "originalName")
            if one.tool is not None and former != own and not self.is_passing(one.id, former):
                yield ReplacedName(server=one.tool.server, tool=one.tool.tool, former=former, written=one.name)

    def undo(self, former: FormerValues, state: GatewayState) -> RestorePlan:
        """Return a request for each tool whose custom name the export set."""
        rows = {row["id"]: row for row in state.listed[_TOOLS]}
        changes: list[_CustomName] = []
        kept: list[str] = []
        for id, names in former.values.items():
            name = names.get(_FIELD)
            if id not in rows or name is None:
                kept.append(f"Tool {excerpt(id)} is not there any more.")
                continue
            now, what = _custom(rows[id]), excerpt(str(rows[id].get("originalName")))
            if now == former.written.get(id, {}).get(_FIELD) or self.is_passing(id, now):
                changes.append(_CustomName(row=rows[id], name=name))
            elif now != name:
                kept.append(f"Tool {what} was renamed since: it stays {excerpt(now)}.")
        possible, blocked = _possible([one for one in changes if _custom(one.row) != one.name], state)
        for one, reason in blocked:
            kept.append(
                f"Tool {excerpt(str(one.row.get('originalName')))} stays {excerpt(_custom(one.row))}: {reason}."
            )
        return RestorePlan(requests=tuple(_ordered(possible, state)), kept=tuple(kept))

    def is_passing(self, id: str, name: str | None) -> bool:
        """Return whether a name ends as those that `_ordered` gives in between."""
        return name is not None and name.endswith(_passing(id))


@dataclass(frozen=True, kw_only=True)
class _CustomName:
    """A tool there, and the custom name that it gets; the exported tool, if it is one's name that is set."""

    row: Mapping[str, Any]
    name: str
    tool: ExportedTool | None = None

    @property
    def id(self) -> str:
        return str(self.row["id"])


def _inexpressible(one: ExportedTool, reason: str) -> InexpressibleTool:
    return InexpressibleTool(id=one.id, server=one.server, tool=one.tool, name=one.name, reason=reason)


def _gateway(row: Mapping[str, Any]) -> str | None:
    return text_of(row, "gatewayId")


def _separator(row: Mapping[str, Any]) -> str | None:
    name, before, after = row.get("name"), row.get("gatewaySlug"), row.get("customNameSlug")
    if not (isinstance(name, str) and isinstance(before, str) and isinstance(after, str) and before and after):
        return None
    return next((one for one in _SEPARATORS if name == f"{before}{one}{after}"), None)


def _custom(row: Mapping[str, Any]) -> str:
    return text_of(row, "customName") or str(row.get("originalName"))


def _possible(
    changes: Sequence[_CustomName], state: GatewayState
) -> tuple[list[_CustomName], list[tuple[_CustomName, str]]]:
    """Return the changes that can be made, and the others with the reason: a tool has the name and keeps it."""
    holders = {_key(row, _custom(row)): row for row in state.listed[_TOOLS]}
    left, blocked = list(changes), list[tuple[_CustomName, str]]()
    while True:
        moving = {one.id for one in left}
        first = {_key(one.row, one.name): one for one in reversed(left)}
        found: list[tuple[_CustomName, str]] = []
        for one in left:
            key = _key(one.row, one.name)
            holder = holders.get(key)
            if holder is not None and holder["id"] not in moving:
                found.append((one, _HELD.format(excerpt(str(holder.get("originalName"))))))
            elif first[key] is not one:
                found.append((one, _HELD.format(excerpt(str(first[key].row.get("originalName"))))))
        if not found:
            return left, blocked
        blocked += found
        blocking = {id(one) for one, _ in found}
        left = [one for one in left if id(one) not in blocking]


def _ordered(changes: Sequence[_CustomName], state: GatewayState) -> Iterator[ApiRequest]:
    """Yield requests so that each name is free when a tool gets it; tools that swap names get one in between first.

    The names are of no tool that keeps its name: see `_possible`.
    """
    taken = {_key(row, _custom(row)): row["id"] for row in state.listed[_TOOLS]}
    held: defaultdict[object, set[tuple[object, str]]] = defaultdict(set)
    for key, holder in taken.items():
        held[holder].add(key)

    def put(row: Mapping[str, Any], name: str) -> ApiRequest:
        id, new = row["id"], _key(row, name)
        for former in held.pop(id, ()):
            del taken[former]
        taken[new] = id
        held[id].add(new)
        path = f"/tools/{in_path(id, _TOOLS)}"
        return ApiRequest(method="PUT", path=path, body={_FIELD: name}, what=str(row.get("originalName")))

    left = list(changes)
    while left:
        ready = [one for one in left if taken.get(_key(one.row, one.name), one.id) == one.id]
        if not ready:
            first = left[0]
            free = (f"{first.name}{more or ''}{_passing(first.id)}" for more in count())
            between = next(name for name in free if _key(first.row, name) not in taken)
            yield put(first.row, between)
            continue
        yield from (put(one.row, one.name) for one in ready)
        done = {one.id for one in ready}
        left = [one for one in left if one.id not in done]


def _passing(id: str) -> str:
    return f"_{digest_of(id, 8)}"


def _key(row: Mapping[str, Any], name: str) -> tuple[object, str]:
    return _gateway(row), fold(name)
