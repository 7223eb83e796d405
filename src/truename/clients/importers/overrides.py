"""Convert another gateway's renames to overrides: legal, unique names by tool id."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename import dialects
from truename.catalog import Catalog
from truename.clients.importers.reading import left
from truename.errors import InvalidName, excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.clients.importers.reading import ImportedConfig, ImportedRename
    from truename.conventions import Finding

    # (file, key in that file) -> the server's key in the new configuration.
    Keys = Mapping[tuple[str, str], str]

__all__ = ["UNIVERSAL", "OverrideNames", "names_of"]

UNIVERSAL: Final = "universal"


@dataclass(frozen=True, kw_only=True)
class OverrideNames:
    """Overrides by tool id, aliases by server, and findings for names that cannot be kept."""

    overrides: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    left: tuple[Finding, ...] = ()


def names_of(imports: Iterable[ImportedConfig], keys: Keys, server_name: str) -> OverrideNames:
    """Convert renames to overrides by tool id, with a finding for each name that cannot be kept.

    A name is not kept if it is not legal in the universal dialect (as one with capitals), or another tool has it.
    """
    imports = tuple(imports)
    ids = _ids(imports, keys)
    named: dict[str, str] = {}
    holders: dict[str, str] = {}
    findings: list[Finding] = []
    for imported in imports:
        for rename in imported.renames:
            id = ids.get((keys.get((imported.file, rename.server), ""), rename.tool))
            problem = _problem(rename, id, server_name, holders)
            if problem is None and id is not None:
                holders[fold(rename.name)] = id
                named[id] = rename.name
            else:
                whose = f"{excerpt(rename.tool)} of {excerpt(rename.server)}"
                fact = f"Tool {whose} cannot be called {excerpt(rename.name)}: {problem or 'it has no id'}."
                at, server = rename.where, rename.server
                findings.append(left("rename", fact, file=imported.file, where=at, server=server, tools=(rename.tool,)))
    aliases, unfit = _aliases(imports, keys)
    return OverrideNames(overrides=MappingProxyType(named), aliases=MappingProxyType(aliases), left=(*findings, *unfit))


def _ids(imports: Iterable[ImportedConfig], keys: Keys) -> dict[tuple[str, str], str]:
    listed: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for imported in imports:
        for rename in imported.renames:
            if (imported.file, rename.server) in keys:
                listed[keys[imported.file, rename.server]][rename.tool] = None
    catalog = Catalog.from_mcp({key: list(tools) for key, tools in listed.items()}, strict=False)
    return {(tool.origin.server, tool.origin.name): str(id) for id, tool in catalog.items()}


def _problem(rename: ImportedRename, id: str | None, server_name: str, holders: Mapping[str, str]) -> str | None:
    if id is None:
        return "its server was not imported"
    if reasons := dialects.get(UNIVERSAL).check(rename.name, server_name):
        return "; ".join(reason.text for reason in reasons)
    if (holder := holders.get(fold(rename.name), id)) != id:
        return f"{holder} already has that name"
    return None


def _aliases(imports: Iterable[ImportedConfig], keys: Keys) -> tuple[dict[str, str], list[Finding]]:
    aliases: dict[str, str] = {}
    findings: list[Finding] = []
    for imported in imports:
        for server, alias in imported.aliases.items():
            try:
                key = keys[imported.file, server]
                Catalog.of(aliases={key: alias.name})
            except (KeyError, InvalidName, ExceptionGroup):
                fact = f"Server {excerpt(server)} cannot have the short name {excerpt(alias.name)}."
                findings.append(left("rename", fact, file=imported.file, where=alias.where, server=server))
            else:
                aliases[key] = alias.name
    return aliases, findings
