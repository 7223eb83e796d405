"""Export to ToolHive: overrides in the configuration of a virtual MCP server, and the operator's MCPToolConfig.

With ``conflictResolution: manual`` a virtual MCP server writes no prefix, and does not start if two tools have one
name. It applies overrides twice: a new name that is another overridden tool's own name, on the same server, is changed
again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.clients.exporters.export import Export, ExportedTool, InexpressibleTool
from truename.identity import digest_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.clients.exporters.export import ExportSource
    from truename.ledger import Claim

__all__ = ["TOOLHIVE", "TOOLHIVE_OPERATOR", "toolhive", "toolhive_operator"]

TOOLHIVE: Final = "toolhive"
TOOLHIVE_OPERATOR: Final = "toolhive-operator"
_API: Final = "toolhive.stacklok.dev/v1beta1"
_LONGEST_LABEL: Final = 63
_CHAIN: Final = "the new name is the own name of another renamed tool of this server, which ToolHive would rename again"
_REFERENCE: Final = "Name each MCPToolConfig in spec.toolConfigRef of its MCPServer, in the same namespace."
_MERGE: Final = (
    "Merge `aggregation` into the configuration of the virtual MCP server; `thv vmcp validate` checks the result."
)


def toolhive(source: ExportSource) -> tuple[Export, list[Claim]]:
    """Return the section ``aggregation`` of a virtual MCP server's configuration."""
    tools, left = _tools(source)
    workloads: list[dict[str, object]] = []
    for server, changes in _changes(tools).items():
        overrides = {tool: {"name": name} for tool, name in changes.items()}
        workloads.append({"workload": source.known_as.get(server, server), "overrides": overrides})
    aggregation = {"conflictResolution": "manual", "conflictResolutionConfig": {}, "tools": workloads}
    # Without any override, ToolHive refuses "manual".
    documents = {"vmcp.yaml": {"aggregation": aggregation}} if workloads else {}
    notes = (_MERGE,) if workloads else ()
    return Export(gateway=TOOLHIVE, tools=tools, left=left, documents=documents, notes=notes), []


def toolhive_operator(source: ExportSource) -> tuple[Export, list[Claim]]:
    """Return one MCPToolConfig for each server with renamed tools."""
    tools, left = _tools(source)
    documents: dict[str, Mapping[str, object]] = {}
    for server, changes in _changes(tools).items():
        name = _resource(source.known_as.get(server, server))
        overrides = {tool: {"name": new} for tool, new in changes.items()}
        documents[f"{name}.yaml"] = {
            "apiVersion": _API,
            "kind": "MCPToolConfig",
            "metadata": {"name": name},
            "spec": {"toolsOverride": overrides},
        }
    notes = (_REFERENCE,) if documents else ()
    return Export(gateway=TOOLHIVE_OPERATOR, tools=tools, left=left, documents=documents, notes=notes), []


def _tools(source: ExportSource) -> tuple[tuple[ExportedTool, ...], tuple[InexpressibleTool, ...]]:
    tools: list[ExportedTool] = []
    left = [*source.shadowed()]
    for server, listed in source.by_server().items():
        renamed = {tool.origin.name for tool in listed if tool.origin.name != source.names[tool.id]}
        for tool in listed:
            name, own = source.names[tool.id], tool.origin.name
            if name in renamed and name != own:
                left.append(InexpressibleTool(id=tool.id, server=server, tool=own, name=name, reason=_CHAIN))
            else:
                tools.append(
                    ExportedTool(id=tool.id, server=server, tool=own, name=name, written=name, listed=name, plain=own)
                )
    return tuple(tools), tuple(left)


def _changes(tools: tuple[ExportedTool, ...]) -> Mapping[str, Mapping[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for one in tools:
        if one.written != one.tool:
            found.setdefault(one.server, {})[one.tool] = one.written
    return found


def _resource(server: str) -> str:
    """Return a name of a Kubernetes resource: lower-case letters, digits and hyphens, one for each server."""
    plain = "".join(char if char.isascii() and char.isalnum() else "-" for char in server.lower()).strip("-")
    if plain == server and len(plain) < _LONGEST_LABEL - len("-tools"):
        return f"{plain}-tools"
    digest = digest_of(server, 8)
    kept = plain[: _LONGEST_LABEL - len(f"-{digest}-tools")].strip("-")
    return f"{kept or 'server'}-{digest}-tools"
