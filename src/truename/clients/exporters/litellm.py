"""Export to LiteLLM: ``tool_name_to_display_name`` of each server, through its API.

A display name replaces the whole name, so no prefix stays. LiteLLM reads the key from its database only, not from its
YAML file. Of two equal display names the first server's wins: the names of a table are all different, and a server
outside of the export that shows one of them is reported.
"""

from __future__ import annotations

import re
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
)
from truename.clients.exporters.export import Export, ExportedTool, InexpressibleTool
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.clients.exporters.api import SoughtServer
    from truename.clients.exporters.export import ExportSource
    from truename.ledger import Claim

__all__ = ["LITELLM", "LiteLlmApi", "litellm"]

LITELLM: Final = "litellm"
_FILE: Final = "display-names.json"
_FIELD: Final = "tool_name_to_display_name"
_SERVERS: Final = "/v1/mcp/server"
# What its API accepts, since Bedrock accepts no more.
_LEGAL: Final = re.compile(r"[a-zA-Z0-9_-]+")
_SEPARATOR: Final = "-"
_NOT_LEGAL: Final = "LiteLLM accepts letters, digits, '_' and '-' in a display name"


def litellm(source: ExportSource) -> tuple[Export, list[Claim]]:
    """Return the display names; they are the table's own, so nothing else is claimed."""
    tools: list[ExportedTool] = []
    left = [*source.shadowed()]
    for server, listed in source.by_server().items():
        prefix = source.known_as.get(server, server)
        for tool in listed:
            name, own = source.names[tool.id], tool.origin.name
            if _LEGAL.fullmatch(name):
                plain = f"{prefix}{_SEPARATOR}{own}"
                tools.append(
                    ExportedTool(id=tool.id, server=server, tool=own, name=name, written=name, listed=name, plain=plain)
                )
            else:
                left.append(InexpressibleTool(id=tool.id, server=server, tool=own, name=name, reason=_NOT_LEGAL))
    export = Export(gateway=LITELLM, tools=tuple(tools), left=tuple(left))
    return Export(gateway=LITELLM, tools=export.tools, left=export.left, documents={_FILE: export.values}), []


class LiteLlmApi:
    """The servers of LiteLLM's database: one request sets all display names of a server."""

    paths = (_SERVERS,)

    def state(self, listed: Mapping[str, object], servers: Sequence[SoughtServer]) -> GatewayState:
        """Return the servers. LiteLLM allows no ``-`` in a name, so a key is also found in another spelling."""
        rows = objects(listed[_SERVERS], _SERVERS)
        matched = match(rows, servers, ("server_name", "alias"))
        known = {key: str(row.get("alias") or row.get("server_name")) for key, row in matched.items()}
        return GatewayState(
            listed=MappingProxyType({_SERVERS: rows}),
            matched=MappingProxyType(matched),
            known_as=MappingProxyType(known),
        )

    def plan(self, export: Export, state: GatewayState) -> ApiPlan:
        """Return a request for each server whose display names differ."""
        rows = state.listed[_SERVERS]
        matched = state.matched
        left = [*_unmatched(export, matched), *_shown_elsewhere(export, rows, matched)]
        requests: list[ApiRequest] = []
        former: dict[str, dict[str, str | None]] = {}
        written: dict[str, dict[str, str | None]] = {}
        replaced: list[ReplacedName] = []
        for server, wanted in export.values.items():
            row = matched.get(server)
            if row is None or row.get("is_config") is True:
                continue
            present = _names(row)
            # Names of tools that the export does not know stay, unless they are names of the export.
            kept = {tool: name for tool, name in present.items() if tool not in wanted}
            changed = {tool: name for tool, name in kept.items() if name not in export.listed()} | dict(wanted)
            if changed != present:
                requests.append(_put(row, changed, server))
                tools = [tool for tool in {**present, **changed} if present.get(tool) != changed.get(tool)]
                former[_id(row)] = {tool: present.get(tool) for tool in tools}
                written[_id(row)] = {tool: changed.get(tool) for tool in tools}
                replaced += (
                    ReplacedName(server=server, tool=tool, former=present[tool], written=changed.get(tool))
                    for tool in tools
                    if tool in present
                )
        return ApiPlan(
            requests=tuple(requests),
            former=FormerValues(gateway=LITELLM, values=former, written=written),
            left=tuple(left),
            replaced=tuple(replaced),
        )

    def undo(self, former: FormerValues, state: GatewayState) -> RestorePlan:
        """Return a request for each server with a display name that the export set."""
        rows = {_id(row): row for row in state.listed[_SERVERS]}
        requests: list[ApiRequest] = []
        kept: list[str] = []
        for id, names in former.values.items():
            if id not in rows:
                kept.append(f"Server {excerpt(id)} is not there any more.")
                continue
            server, present = str(rows[id].get("server_name")), _names(rows[id])
            restored: dict[str, str | None] = {**present}
            for tool, name in names.items():
                now = present.get(tool)
                if now == former.written.get(id, {}).get(tool):
                    restored[tool] = name
                elif now != name:
                    kept.append(
                        f"Tool {excerpt(tool)} of {excerpt(server)} was renamed since: it stays {excerpt(str(now))}."
                    )
            wanted = {tool: name for tool, name in restored.items() if name is not None}
            if wanted != present:
                requests.append(_put(rows[id], wanted, server))
        return RestorePlan(requests=tuple(requests), kept=tuple(kept))

    def is_passing(self, id: str, name: str | None) -> bool:  # noqa: ARG002 - the signature of `GatewayApi`
        """Return False: one request sets all names of a server."""
        return False


def _unmatched(export: Export, matched: Mapping[str, Mapping[str, Any]]) -> Iterator[InexpressibleTool]:
    for server in export.values:
        if server not in matched:
            reason = "LiteLLM has no server that is only this one: add it through its API, under its own name"
            yield InexpressibleTool(server=server, tool="", reason=reason)
        elif matched[server].get("is_config") is True:
            reason = "it is in LiteLLM's file, which ignores display names: add it through the API instead"
            yield InexpressibleTool(server=server, tool="", reason=reason)


def _shown_elsewhere(
    export: Export, rows: Sequence[Mapping[str, Any]], matched: Mapping[str, Mapping[str, Any]]
) -> Iterator[InexpressibleTool]:
    ours, listed = [id(row) for row in matched.values()], export.listed()
    for row in rows:
        if id(row) in ours:
            continue
        for name in _names(row).values():
            if name in listed:
                one = listed[name]
                reason = f"server {excerpt(str(row.get('server_name')))} shows this name too, and the first one wins"
                yield InexpressibleTool(id=one.id, server=one.server, tool=one.tool, name=name, reason=reason)


def _names(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the display names of a server; an empty one is none, for LiteLLM as well."""
    names = row.get(_FIELD)
    found = names.items() if isinstance(names, dict) else ()
    return {str(tool): name for tool, name in found if isinstance(name, str) and name}


def _id(row: Mapping[str, Any]) -> str:
    in_path(row.get("server_id"), _SERVERS)
    return str(row["server_id"])


def _put(row: Mapping[str, Any], names: Mapping[str, str], server: str) -> ApiRequest:
    body = {"server_id": _id(row), _FIELD: dict(names)}
    return ApiRequest(method="PUT", path=_SERVERS, body=body, what=server)
