"""Export to ContextForge: ``custom_name`` of each tool, behind the slug of its gateway.

ContextForge lists ``SLUG SEPARATOR slug(custom_name)``. The slug of a gateway stays, so names are chosen that begin
with it. A slug has ContextForge's own separator for every run of other characters; names that differ in it only are one
name to the ledger, and to `resolve`.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.clients.exporters.api import ApiPlan, ApiRequest, FormerValues, GatewayState, in_path, match, objects
from truename.clients.exporters.export import Export, ExportedTool, InexpressibleTool
from truename.clients.exporters.shapes import ShapedNames, choose_prefixes
from truename.errors import ConfigError, excerpt
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
_SEPARATOR: Final = "-"
_SEPARATORS: Final = ("--", "-", "_", ".")
_CONTRACTION: Final = re.compile(r"(\w)'(\w)")
_OTHERS: Final = re.compile(r"[\W_]+")
_LETTERS: Final = {"æ": "ae", "ß": "ss", "ø": "o"}
_NO_GATEWAY: Final = "ContextForge has no gateway of this name, or several: register it there"
_NO_TOOL: Final = "ContextForge has no such tool of this gateway: refresh the gateway there"
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
        rows = {(row.get("gatewayId"), row.get("originalName")): row for row in state.listed[_TOOLS]}
        changes: list[tuple[Mapping[str, Any], str]] = []
        left = [
            InexpressibleTool(server=server, tool="", reason=_NO_GATEWAY)
            for server in export.values
            if server not in gateways
        ]
        for one in export.tools:
            if one.server not in gateways:
                continue
            row = rows.get((gateways[one.server].get("id"), one.tool))
            if row is None:
                left.append(
                    InexpressibleTool(id=one.id, server=one.server, tool=one.tool, name=one.name, reason=_NO_TOOL)
                )
            elif row.get("customName") != one.written:
                changes.append((row, one.written))
        former = {str(row["id"]): _custom(row) for row, _ in changes}
        return ApiPlan(
            requests=tuple(_ordered(changes, state)),
            former=FormerValues(gateway=CONTEXTFORGE, values=former),
            left=tuple(left),
        )

    def undo(self, former: FormerValues, state: GatewayState) -> tuple[ApiRequest, ...]:
        """Return a request for each tool whose custom name is not the former one; others are gone."""
        rows = {row.get("id"): row for row in state.listed[_TOOLS]}
        wanted = [(rows[id], name) for id, name in former.values.items() if id in rows]
        for row, name in wanted:
            if not isinstance(name, str) or not name:
                raise ConfigError(
                    file="the undo file", key=f"values.{row.get('id')}", problem="it is no name", remedy="Give another."
                )
        return tuple(_ordered([(row, name) for row, name in wanted if row.get("customName") != name], state))


def _separator(row: Mapping[str, Any]) -> str | None:
    name, before, after = row.get("name"), row.get("gatewaySlug"), row.get("customNameSlug")
    if not (isinstance(name, str) and isinstance(before, str) and isinstance(after, str) and before and after):
        return None
    return next((one for one in _SEPARATORS if name == f"{before}{one}{after}"), None)


def _custom(row: Mapping[str, Any]) -> str:
    return str(row.get("customName") or row.get("originalName"))


def _ordered(changes: Sequence[tuple[Mapping[str, Any], str]], state: GatewayState) -> Iterator[ApiRequest]:
    """Yield requests so that each name is free when a tool gets it; tools that swap names get one in between first."""
    taken = {_key(row, _custom(row)): row.get("id") for row in state.listed[_TOOLS]}
    left = list(changes)
    while left:
        ready = [(row, name) for row, name in left if taken.get(_key(row, name), row.get("id")) == row.get("id")]
        if not ready:
            row, name = left[0]
            between = f"{name}_{digest_of(str(row.get('id')), 8)}"
            _move(taken, row, between)
            yield _put(row, between)
            continue
        for row, name in ready:
            _move(taken, row, name)
            yield _put(row, name)
        left = [one for one in left if one not in ready]


def _move(taken: dict[tuple[object, str], object], row: Mapping[str, Any], name: str) -> None:
    for key in [key for key, id in taken.items() if id == row.get("id")]:
        del taken[key]
    taken[_key(row, name)] = row.get("id")


def _key(row: Mapping[str, Any], name: str) -> tuple[object, str]:
    return row.get("gatewayId"), fold(name)


def _put(row: Mapping[str, Any], name: str) -> ApiRequest:
    path = f"/tools/{in_path(row.get('id'), _TOOLS)}"
    return ApiRequest(method="PUT", path=path, body={"custom_name": name}, what=str(row.get("originalName")))
