"""Export to FastMCP's configuration: ``mcpServers.SERVER.tools.TOOL.name``, behind the server's key.

FastMCP writes the key and ``_`` in front of each name if the configuration has several servers. The configuration is
ours to write, so the keys are chosen to fit the names.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from truename.clients.exporters.export import Export, ExportedTool, InexpressibleTool
from truename.clients.exporters.shapes import ShapedNames, choose_prefixes
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.catalog import Tool
    from truename.clients.exporters.export import ExportSource
    from truename.ledger import Claim

__all__ = ["FASTMCP", "fastmcp"]

FASTMCP: Final = "fastmcp"
_FILE: Final = "fastmcp.json"
_URLS: Final = ("url", "httpUrl", "serverUrl")
_KINDS: Final = {"sse": "sse"}
_REFERENCE: Final = "${"


def fastmcp(source: ExportSource) -> tuple[Export, list[Claim]]:
    """Return the configuration, and the claims for the names that only FastMCP lists."""
    servers = source.by_server()
    others = [key for key in source.entries if key not in servers]
    several = len(servers) + len(others) > 1
    prefixes = choose_prefixes(source.names, servers) if several else dict.fromkeys(servers, "")
    shaped = ShapedNames(source.names, FASTMCP)
    tools: list[ExportedTool] = []
    entries: dict[str, dict[str, object]] = {}
    left = [*source.shadowed()]
    for server, listed in servers.items():
        prefix = prefixes[server]
        exported = [_exported(source, shaped, tool, server, prefix) for tool in listed]
        tools += exported
        changes = {one.tool: {"name": one.written} for one in exported if one.written != one.tool}
        entry = _entry(source.entries.get(server, {}))
        if not entry:
            reason = "the source has no entry with its command or url: add them to the configuration"
            left.append(InexpressibleTool(server=server, tool="", reason=reason))
        entries[prefix or server] = entry | ({"tools": changes} if changes else {})
    for key in others:
        reason = "its tools are not known, so FastMCP lists them under their own names"
        left.append(InexpressibleTool(server=key, tool="", reason=reason))
        entries[_free(key, entries)] = _entry(source.entries[key])
    export = Export(
        gateway=FASTMCP,
        tools=tuple(tools),
        left=tuple(left),
        documents={_FILE: {"mcpServers": entries}},
        keys={server: prefix or server for server, prefix in prefixes.items()},
        notes=tuple(_notes(prefixes if several else {}, entries)),
    )
    return export, shaped.claims


def _exported(source: ExportSource, shaped: ShapedNames, tool: Tool, server: str, prefix: str) -> ExportedTool:
    name, own = source.names[tool.id], tool.origin.name
    listed = shaped.name(tool, prefix) if prefix else name
    return ExportedTool(
        id=tool.id,
        server=server,
        tool=own,
        name=name,
        written=listed.removeprefix(f"{prefix}_") if prefix else listed,
        listed=listed,
        plain=f"{prefix}_{own}" if prefix else own,
    )


def _entry(entry: Mapping[str, object]) -> dict[str, object]:
    """Return an entry in FastMCP's form: ``transport`` for ``type``; other keys of ours mean nothing there."""
    command = entry.get("command")
    if isinstance(command, str):
        kept = {name: entry[name] for name in ("command", "args", "env", "cwd") if entry.get(name)}
        return {"transport": "stdio", **kept}
    url = next((entry[name] for name in _URLS if isinstance(entry.get(name), str)), None)
    if url is None:
        return {}
    kind = str(entry.get("type") or entry.get("transport") or "").lower()
    headers = {"headers": entry["headers"]} if entry.get("headers") else {}
    return {"transport": _KINDS.get(kind, "http"), "url": url, **headers}


def _free(key: str, entries: Mapping[str, object]) -> str:
    number, free = 2, key
    while free in entries:
        free, number = f"{key}_{number}", number + 1
    return free


def _notes(prefixes: Mapping[str, str], entries: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    for server, prefix in prefixes.items():
        if server != prefix:
            key = excerpt(prefix)
            yield f"Server {excerpt(server)} has the key {key} there, which FastMCP writes before its names."
    if any(_REFERENCE in json.dumps(entry) for entry in entries.values()):
        yield "FastMCP does not replace ${...}: write the values into the file, which only you should be able to read."
