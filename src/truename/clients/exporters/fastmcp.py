"""Export to FastMCP's configuration: ``mcpServers.SERVER.tools.TOOL.name``, behind the server's key.

FastMCP writes the key and ``_`` in front of each name if the configuration has several servers. The configuration is
ours to write, so the keys are chosen to fit the names.

An entry may be FastMCP's own: its settings stay, so nothing that it hides becomes visible, and only its names change.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from truename.clients.exporters.export import Export, ExportedTool, InexpressibleTool
from truename.clients.exporters.shapes import ShapedNames, choose_prefixes
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from truename.catalog import Tool
    from truename.clients.exporters.export import ExportSource
    from truename.ledger import Claim

__all__ = ["FASTMCP", "fastmcp"]

FASTMCP: Final = "fastmcp"
_FILE: Final = "fastmcp.json"
_URLS: Final = ("url", "httpUrl", "serverUrl")
_KINDS: Final = {"sse": "sse"}
_REFERENCE: Final = "${"
_TOOLS: Final = "tools"
_NAME: Final = "name"
_TAGS: Final = ("include_tags", "exclude_tags")


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
        prefix, given = prefixes[server], source.entries.get(server, {})
        disabled = _disabled(given)
        exported = [
            _exported(source, shaped, tool, server, prefix) for tool in listed if tool.origin.name not in disabled
        ]
        tools += exported
        entry = _entry(given)
        if not entry:
            reason = "the source has no entry with its command or url: add them to the configuration"
            left.append(InexpressibleTool(server=server, tool="", reason=reason))
        changes = _changes(given, exported)
        entries[prefix or server] = entry | ({_TOOLS: changes} if changes else {})
    for key in others:
        reason = "its tools are not known, so its entry gets no names"
        left.append(InexpressibleTool(server=key, tool="", reason=reason))
        own = _tables(source.entries[key])
        entries[_free(key, entries)] = _entry(source.entries[key]) | ({_TOOLS: own} if own else {})
    export = Export(
        gateway=FASTMCP,
        tools=tuple(tools),
        left=tuple(left),
        documents={_FILE: {"mcpServers": entries}},
        keys={server: prefix or server for server, prefix in prefixes.items()},
        notes=(*_notes(prefixes if several else {}, entries), *_own_notes(source, tools)),
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
    """Return an entry in FastMCP's form, without ``tools``: ``transport`` for ``type``, no key of ours alone."""
    tags = {name: entry[name] for name in _TAGS if isinstance(entry.get(name), list)}
    command = entry.get("command")
    if isinstance(command, str):
        kept = {name: entry[name] for name in ("command", "args", "env", "cwd") if entry.get(name)}
        return {"transport": "stdio", **kept, **tags}
    url = next((entry[name] for name in _URLS if isinstance(entry.get(name), str)), None)
    if url is None:
        return {}
    kind = str(entry.get("type") or entry.get("transport") or "").lower()
    headers = {"headers": entry["headers"]} if entry.get("headers") else {}
    # A table is our own form of `auth`.
    auth = {"auth": entry["auth"]} if isinstance(entry.get("auth"), str) else {}
    return {"transport": _KINDS.get(kind, "http"), "url": url, **headers, **auth, **tags}


def _tables(entry: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return what an entry of FastMCP changes in tools; ``tools`` of other clients is a list."""
    tools = entry.get(_TOOLS)
    found = tools.items() if isinstance(tools, dict) else ()
    return {tool: dict(change) for tool, change in found if isinstance(change, dict)}


def _disabled(entry: Mapping[str, object]) -> list[str]:
    return [tool for tool, change in _tables(entry).items() if change.get("enabled") is False]


def _changes(entry: Mapping[str, object], exported: Sequence[ExportedTool]) -> dict[str, dict[str, object]]:
    """Return the entry's own changes with the exported names instead of its own."""
    changes = {
        tool: {word: value for word, value in change.items() if word != _NAME}
        for tool, change in _tables(entry).items()
    }
    for one in exported:
        if one.written != one.tool:
            changes[one.tool] = {**changes.get(one.tool, {}), _NAME: one.written}
    return {tool: change for tool, change in changes.items() if change}


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


def _own_notes(source: ExportSource, tools: Sequence[ExportedTool]) -> Iterator[str]:
    """Yield how entries that are FastMCP's own differ from the export."""
    for server in source.by_server():
        entry, key = source.entries.get(server, {}), excerpt(server)
        if disabled := _disabled(entry):
            verb = "it stays" if len(disabled) == 1 else "they stay"
            yield f"Server {key} disables {', '.join(map(excerpt, disabled))} in its entry; {verb} disabled."
        own = {tool: change[_NAME] for tool, change in _tables(entry).items() if _NAME in change}
        replaced = [one for one in tools if one.server == server and own.get(one.tool, one.written) != one.written]
        if replaced:
            names = "1 name" if len(replaced) == 1 else f"{len(replaced)} names"
            advice = "`truename import` takes such names over"
            yield f"Server {key} has {names} in its entry that the table's replace: {advice}."
        for tags in (name for name in _TAGS if isinstance(entry.get(name), list)):
            yield f"Server {key} keeps {tags}: `--check` reports tools that it hides as missing."
