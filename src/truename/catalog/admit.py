"""Admit the tools that MCP servers list, each with one identity.

Everything here is hostile until checked: labels and names that can't be printed or are too long are refused, a name
listed twice is admitted once, and names that fold into one identity are told apart by a digest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.catalog.declared import UNDECLARED, Bindings, Owners, ServerIdentity
from truename.catalog.tool import AdmissionNotice, Origin, Tool
from truename.dialects import Reason
from truename.errors import DuplicateTool, InvalidName, TruenameError, excerpt
from truename.identity import MAX_FOREIGN, ToolId, component, dotted_component, told_apart

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Bindings", "admit", "entries_of", "label_of"]

_WHERE: Final = "a catalogue"
# No label has this character, so no label can be taken for the second server of another.
_REPEATED: Final = "\x1f"


class _AdmittedServer(NamedTuple):
    label: str
    id: str
    tools: Mapping[str, Mapping[str, Any]]


class _IdSpace(NamedTuple):
    """Where a server's tools stand in the space of ids, and the versions declared for single ones."""

    integration: str
    version: int
    declared: ServerIdentity


def admit(
    listings: Iterable[tuple[str, Any]],
    bound: Bindings,
    identities: Mapping[str, ServerIdentity],
    *,
    owners: Owners,
    strict: bool,
) -> tuple[list[Tool], tuple[AdmissionNotice, ...]]:
    """Return the tools of these servers in order, and what there is to report.

    ``bound`` holds identities given before, by (server id, upstream name): they are kept, present or not, and never
    given to another tool. ``identities`` are those that the operator declares, by server key. ``owners`` are the tools
    of all ids that were ever given, also of such that lead to another one now.

    With ``strict`` everything refused is raised as one `ExceptionGroup` of `InvalidName` and `DuplicateTool`;
    otherwise it is left out and reported.
    """
    refused: list[TruenameError] = []
    notices: list[AdmissionNotice] = []
    servers = [_listing(label, number, listing, refused, notices) for label, number, listing in _numbered(listings)]
    present = [server for server in servers if server is not None]
    places = _places(present, bound, identities)
    tools: list[Tool] = []
    given = {id: origin for origin, id in bound.items()}
    former = [id for id in owners if id not in given]
    for tool in (tool for server in present for tool in _tools(server, places[server.id], bound, former)):
        origin = tool.origin.server_id, tool.origin.name
        if given.setdefault(tool.id, origin) == origin:
            tools.append(tool)
        else:
            error = _second(tool, given[tool.id])
            refused.append(error)
            notices.append(AdmissionNotice("taken", tool.origin.server, tool.origin.name, str(error)))
    if refused and strict:
        message = f"{len(refused)} names can't be admitted; strict=False leaves their tools out and reports them"
        raise ExceptionGroup(message, refused)
    return tools, tuple(notices)


def _second(tool: Tool, owner: tuple[str, str]) -> DuplicateTool:
    """Return the refusal of a tool whose id is another server's: two servers share an integration and a version."""
    return DuplicateTool(
        existing=f"{label_of(owner[0])!r} ({owner[1]})",
        duplicate=f"{tool.origin.server!r} ({tool.origin.name})",
        name=str(tool.id),
        remedy="Give one of these servers another integration or version.",
    )


def entries_of(listing: Any) -> Iterable[Any] | None:
    """Return the entries of a list of tools, a tools/list result, its JSON-RPC response, or the SDK's own object."""
    if hasattr(listing, "model_dump"):
        listing = listing.model_dump(by_alias=True, exclude_none=True)
    while isinstance(listing, Mapping):
        listing = listing["result"] if "result" in listing else listing.get("tools")
    return listing if isinstance(listing, list | tuple) else None


def _numbered(listings: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, int, Any]]:
    seen: defaultdict[str, int] = defaultdict(int)
    for label, listing in listings:
        seen[label] += 1
        yield label, seen[label], listing


def _listing(
    label: str, number: int, listing: Any, refused: list[TruenameError], notices: list[AdmissionNotice]
) -> _AdmittedServer | None:
    def refuse(name: str, what: str, reasons: tuple[Reason, ...]) -> None:
        error = InvalidName(name=name, dialect=what, reasons=reasons)
        refused.append(error)
        notices.append(AdmissionNotice("invalid", label, name, str(error)))

    if reasons := _unfit(label):
        refuse(str(label), f"{_WHERE} (as a server key)", reasons)
        return None
    entries = entries_of(listing)
    if entries is None:
        refuse(label, _of(label), (Reason("type", "its listing is no list of tools"),))
        return None
    tools: dict[str, Mapping[str, Any]] = {}
    for entry in entries:
        definition = _definition(entry)
        name = definition.get("name")
        if not isinstance(name, str):
            reason = Reason("type", f"a tool's name is of type {type(name).__name__}, not text")
            refuse("", _of(label), (reason,))
        elif reasons := _unfit(name):
            refuse(name, _of(label), reasons)
        elif name in tools:
            notices.append(
                AdmissionNotice("duplicate", label, name, f"{label!r} lists {name!r} twice; the first is used")
            )
        else:
            tools[name] = definition
    return _AdmittedServer(label, label if number == 1 else f"{label}{_REPEATED}{number}", tools)


def label_of(server_id: str) -> str:
    """Return the label of a server by its id: they differ only where two servers have one label."""
    return server_id.partition(_REPEATED)[0]


def _of(label: str) -> str:
    return f"{_WHERE} (server {excerpt(label)})"


def _definition(entry: Any) -> Mapping[str, Any]:
    if isinstance(entry, str):
        return {"name": entry}
    if hasattr(entry, "model_dump"):
        entry = entry.model_dump(by_alias=True, exclude_none=True)
    return entry if isinstance(entry, Mapping) else {}


def _unfit(text: object) -> tuple[Reason, ...]:
    if not isinstance(text, str):
        return (Reason("type", f"it is of type {type(text).__name__}, not text"),)
    if not text.strip():
        return (Reason("empty", "it is empty"),)
    if len(text) > MAX_FOREIGN:
        return (Reason("length", f"it has {len(text):,} characters, more than {MAX_FOREIGN:,}"),)
    bad = [i for i, character in enumerate(text) if not character.isprintable()]
    return tuple(Reason("character", f"U+{ord(text[i]):04X} at {i} can't be printed") for i in bad[:5])


def _places(
    servers: Sequence[_AdmittedServer], bound: Bindings, identities: Mapping[str, ServerIdentity]
) -> dict[str, _IdSpace]:
    """Return by server id where its tools stand: as declared, else as on record, else by its key.

    The same key is the same integration for ever. Two keys never give one integration; an operator may.
    """
    declared = {server.id: identities.get(server.label, UNDECLARED) for server in servers}
    recorded = {
        server_id: id
        for (server_id, _), id in bound.items()
        # A server that is not here and had another version was declared: its integration may be another's, too.
        if (declared[server_id].integration is None if server_id in declared else id.integration_version == 1)
    }
    wanted = {
        server.id: component(server.id).name
        for server in servers
        if server.id not in recorded and declared[server.id].integration is None
    }
    by_key = {server_id: id.integration for server_id, id in recorded.items()}
    by_key |= _told_apart(wanted, set(by_key.values()))
    return {
        server_id: _IdSpace(
            said.integration or by_key[server_id],
            said.version or (recorded[server_id].integration_version if server_id in recorded else 1),
            said,
        )
        for server_id, said in declared.items()
    }


def _tools(server: _AdmittedServer, place: _IdSpace, bound: Bindings, former: Iterable[ToolId]) -> Iterable[Tool]:
    parts = {name: dotted_component(name) for name in server.tools if (server.id, name) not in bound}
    taken: defaultdict[str | None, set[str]] = defaultdict(set)
    own = (id for (server_id, _), id in bound.items() if server_id == server.id)
    for id in (*own, *former):
        if (id.integration, id.integration_version) == place[:2]:
            taken[id.suite].add(id.tool)
    by_suite: defaultdict[str | None, dict[str, str]] = defaultdict(dict)
    for name, part in parts.items():
        by_suite[part.suite][name] = part.name
    keys = {
        name: (suite, key)
        for suite, wanted in by_suite.items()
        for name, key in _told_apart(wanted, taken[suite], suite).items()
    }
    for name, definition in server.tools.items():
        id = bound.get((server.id, name)) or ToolId(*place[:2], *keys[name], place.declared.version_of(name))
        yield Tool(id, Origin(server.label, name, server.id), definition)


def _told_apart(wanted: Mapping[str, str], taken: set[str], suite: str | None = None) -> dict[str, str]:
    """Give each verbatim text a key of its own: the one that needed no change keeps it, the others carry a digest."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for verbatim, key in wanted.items():
        groups[key].append(verbatim)
    if not taken and len(groups) == len(wanted):
        return dict(wanted)
    given: dict[str, str] = {}
    used = set(taken)
    changed: list[tuple[str, str]] = []
    for key, verbatims in groups.items():
        unchanged = key if suite is None else f"{suite}.{key}"
        keeper = None
        if key not in used:
            keeper = unchanged if unchanged in verbatims else min(verbatims)
            given[keeper] = key
        changed += ((verbatim, key) for verbatim in verbatims if verbatim != keeper)
    used.update(given.values())
    for verbatim, key in sorted(changed):
        candidate = next(one for one in told_apart(key, verbatim) if one not in used)
        used.add(candidate)
        given[verbatim] = candidate
    return given
