"""Admit the tools that MCP servers list, and give each one identity.

All input is untrusted: labels and names that cannot be printed or are too long are refused, a name listed twice is
admitted once, and names that fold to one identity get a digest each, except one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from truename.catalog.declared import UNDECLARED, Bindings, Owners, ServerIdentity
from truename.catalog.tool import AdmissionNotice, Origin, Tool
from truename.dialects import Reason
from truename.errors import DuplicateTool, InvalidName, TruenameError, excerpt
from truename.identity import MAX_FOREIGN, ToolId, candidate_keys, component, dotted_component

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

__all__ = ["Bindings", "IdentityRecord", "RecordedIdentities", "admit", "entries_of", "label_of", "numbered_id"]

_WHERE: Final = "a catalogue"
# Labels cannot contain this character, so the id of a second server with one label equals no other label.
_REPEATED: Final = "\x1f"


class _AdmittedServer(NamedTuple):
    label: str
    id: str
    tools: Mapping[str, Mapping[str, Any]]


class RecordedIdentities(Protocol):
    """The identities on record, as `admit` asks for them: about what servers list, and not about what all ever had."""

    def bound(self, server: str, names: Collection[str], /) -> Mapping[str, ToolId]:
        """Return the identities of these tools of a server, by upstream name."""
        ...

    def origins(self, ids: Collection[ToolId], /) -> Mapping[ToolId, tuple[str, str]]:
        """Return the tools, as (server id, upstream name), that have these identities now."""
        ...

    def taken(self, server: str, ids: Collection[ToolId], /) -> Collection[tuple[str | None, str]]:
        """Return suite and tool of those ids that a server cannot give anew, in whatever version of the tool.

        It has such an id itself, or nobody has it any more. An id that another server has is not among them.
        """
        ...

    def servers_with(self, integration: str, /) -> Iterable[str]:
        """Return the servers that have, or had, an identity of this integration."""
        ...

    def last(self, server: str, version: int | None = None, /) -> ToolId | None:
        """Return the identity of the tool that a server listed last of those that have one; None if it has none.

        With ``version``, of the tools that have an identity of this version of their integration.
        """
        ...


class IdentityRecord:
    """Identities on record that are all in memory, indexed by what `admit` asks.

    ``bound`` are the recorded identities by (server id, upstream name); ``owners`` maps every id that was ever given to
    its tool, including ids that are redirected now.
    """

    def __init__(self, bound: Bindings, owners: Owners) -> None:
        self._by_server: defaultdict[str, dict[str, ToolId]] = defaultdict(dict)
        self._origins: dict[ToolId, tuple[str, str]] = {}
        # The last of each server's, and the last of each version of an integration.
        self._last: dict[tuple[str, int | None], ToolId] = {}
        self._servers: defaultdict[str, dict[str, None]] = defaultdict(dict)
        # The servers that cannot give a tool's id anew, whatever its version; None stands for all of them.
        self._taken: defaultdict[tuple[str, int, str | None, str], set[str | None]] = defaultdict(set)
        for (server, name), id in bound.items():
            self._by_server[server][name] = id
            self._origins[id] = server, name
            self._last[server, None] = self._last[server, id.integration_version] = id
            self._servers[id.integration][server] = None
            self._taken[_place(id)].add(server)
        for id in owners:
            if id not in self._origins:
                self._taken[_place(id)].add(None)

    def bound(self, server: str, names: Collection[str]) -> Mapping[str, ToolId]:
        """Return the identities of these tools of a server, by upstream name."""
        known = self._by_server.get(server, {})
        return {name: known[name] for name in names if name in known}

    def origins(self, ids: Collection[ToolId]) -> Mapping[ToolId, tuple[str, str]]:
        """Return the tools, as (server id, upstream name), that have these identities."""
        return {id: self._origins[id] for id in ids if id in self._origins}

    def taken(self, server: str, ids: Collection[ToolId]) -> set[tuple[str | None, str]]:
        """Return suite and tool of those ids that a server cannot give anew: its own, and former ones of anybody."""
        barred = {server, None}
        return {(id.suite, id.tool) for id in ids if not barred.isdisjoint(self._taken.get(_place(id), ()))}

    def servers_with(self, integration: str) -> Iterable[str]:
        """Return the servers that have an identity of this integration."""
        return self._servers.get(integration, ())

    def last(self, server: str, version: int | None = None) -> ToolId | None:
        """Return the last identity of a server; with ``version``, the last of this version of an integration."""
        return self._last.get((server, version))


def _place(id: ToolId) -> tuple[str, int, str | None, str]:
    return id.integration, id.integration_version, id.suite, id.tool


class _IdSpace(NamedTuple):
    """The integration and version of a server's tools, and the versions declared for single tools."""

    integration: str
    version: int
    declared: ServerIdentity


def admit(
    listings: Iterable[tuple[str, object]],
    record: RecordedIdentities,
    identities: Mapping[str, ServerIdentity],
    *,
    strict: bool,
    present: Iterable[str] = (),
) -> tuple[list[Tool], tuple[AdmissionNotice, ...]]:
    """Return the admitted tools of these servers in order, and notices about the others.

    The recorded identities are kept, whether the tool is present or not, and never given to another tool.
    ``identities`` are those that the operator declares, by server key. ``present`` are other servers that are there;
    the tools of each must be on record, or listed too.

    With ``strict``, the refused names are raised as one `ExceptionGroup` of `InvalidName` and `DuplicateTool`;
    otherwise their tools are omitted and reported.
    """
    refused: list[TruenameError] = []
    notices: list[AdmissionNotice] = []
    servers = [_listing(label, number, listing, refused, notices) for label, number, listing in _numbered(listings)]
    listed = [server for server in servers if server is not None]
    spaces = _id_spaces(listed, record, identities, present)
    tools: list[Tool] = []
    given: dict[ToolId, tuple[str, str]] = {}
    candidates = [tool for server in listed for tool in _tools(server, spaces[server.id], record)]
    owners = record.origins(dict.fromkeys(tool.id for tool in candidates))
    for tool in candidates:
        origin = tool.origin.server_id, tool.origin.name
        owner = owners.get(tool.id) or given.setdefault(tool.id, origin)
        if owner == origin:
            tools.append(tool)
        else:
            error = DuplicateTool(
                existing=f"{label_of(owner[0])!r} ({owner[1]})",
                duplicate=f"{tool.origin.server!r} ({tool.origin.name})",
                name=str(tool.id),
                remedy="Configure another integration or version for one of these servers.",
            )
            refused.append(error)
            notices.append(AdmissionNotice("taken", tool.origin.server, tool.origin.name, str(error)))
    if refused and strict:
        message = f"{len(refused)} names cannot be admitted; strict=False omits their tools and reports them"
        raise ExceptionGroup(message, refused)
    return tools, tuple(notices)


def entries_of(listing: object) -> Iterable[Any] | None:
    """Return the entries of a list of tools, a tools/list result, its JSON-RPC response, or the SDK's result object.

    Returns None if it is none of these.
    """
    if hasattr(listing, "model_dump"):
        listing = listing.model_dump(by_alias=True, exclude_none=True)
    while isinstance(listing, Mapping):
        listing = listing["result"] if "result" in listing else listing.get("tools")
    return listing if isinstance(listing, list | tuple) else None


def _numbered(listings: Iterable[tuple[str, object]]) -> Iterable[tuple[str, int, object]]:
    seen: defaultdict[str, int] = defaultdict(int)
    for label, listing in listings:
        seen[label] += 1
        yield label, seen[label], listing


def _listing(
    label: str, number: int, listing: object, refused: list[TruenameError], notices: list[AdmissionNotice]
) -> _AdmittedServer | None:
    def refuse(name: str, place: str, reasons: tuple[Reason, ...]) -> None:
        error = InvalidName(name=name, dialect=place, reasons=reasons)
        refused.append(error)
        notices.append(AdmissionNotice("invalid", label, name, str(error)))

    if reasons := _reasons_against(label):
        refuse(str(label), f"{_WHERE} (as a server key)", reasons)
        return None
    entries = entries_of(listing)
    if entries is None:
        refuse(label, _of(label), (Reason("type", "its listing is not a list of tools"),))
        return None
    tools: dict[str, Mapping[str, object]] = {}
    for entry in entries:
        definition = _definition(entry)
        name = definition.get("name")
        if not isinstance(name, str):
            reason = Reason("type", f"a tool's name is of type {type(name).__name__}, not text")
            refuse("", _of(label), (reason,))
        elif reasons := _reasons_against(name):
            refuse(name, _of(label), reasons)
        elif name in tools:
            notices.append(
                AdmissionNotice("duplicate", label, name, f"{label!r} lists {name!r} twice; the first is used")
            )
        else:
            tools[name] = definition
    return _AdmittedServer(label, numbered_id(label, number), tools)


def numbered_id(label: str, number: int) -> str:
    """Return the id of the first, second ... server of a catalogue that has this label."""
    return label if number == 1 else f"{label}{_REPEATED}{number}"


def label_of(server_id: str) -> str:
    """Return the label of a server from its id; they differ only if two servers have one label."""
    return server_id.partition(_REPEATED)[0]


def _of(label: str) -> str:
    return f"{_WHERE} (server {excerpt(label)})"


def _definition(entry: object) -> Mapping[str, object]:
    if isinstance(entry, str):
        return {"name": entry}
    if hasattr(entry, "model_dump"):
        entry = entry.model_dump(by_alias=True, exclude_none=True)
    return entry if isinstance(entry, Mapping) else {}


def _reasons_against(text: object) -> tuple[Reason, ...]:
    if not isinstance(text, str):
        return (Reason("type", f"it is of type {type(text).__name__}, not text"),)
    if not text.strip():
        return (Reason("empty", "it is empty"),)
    if len(text) > MAX_FOREIGN:
        return (Reason("length", f"it has {len(text):,} characters, more than {MAX_FOREIGN:,}"),)
    bad = [i for i, character in enumerate(text) if not character.isprintable()]
    return tuple(Reason("character", f"U+{ord(text[i]):04X} at {i} cannot be printed") for i in bad[:5])


def _id_spaces(
    servers: Sequence[_AdmittedServer],
    record: RecordedIdentities,
    identities: Mapping[str, ServerIdentity],
    present: Iterable[str],
) -> dict[str, _IdSpace]:
    """Return the id space of each server by its id: as declared, else as recorded, else derived from its key.

    The same key always means the same integration. Two keys never lead to one integration unless the operator says so.
    """
    declared = {server.id: identities.get(server.label, UNDECLARED) for server in servers}
    known = {**{key: identities.get(key, UNDECLARED) for key in present}, **declared}
    derived = [id for id, identity in declared.items() if identity.integration is None]
    recorded = {id: last for id in derived if (last := record.last(id)) is not None}
    by_key = {server_id: id.integration for server_id, id in recorded.items()}
    keys = {id: component(id).name for id in derived if id not in recorded}
    by_key |= _distinct_keys(keys, lambda found: {key for key in found if _is_used(key, known, record)})
    return {
        server_id: _IdSpace(
            identity.integration or by_key[server_id],
            identity.version or (recorded[server_id].integration_version if server_id in recorded else 1),
            identity,
        )
        for server_id, identity in declared.items()
    }


def _is_used(integration: str, known: Mapping[str, ServerIdentity], record: RecordedIdentities) -> bool:
    """Return whether an integration is a server's already, and not because its operator declares it.

    An absent server, which is not ``known``, with a version other than 1 was declared; its integration may also belong
    to another server.
    """
    for server in record.servers_with(integration):
        identity = known.get(server)
        if identity is None or identity.integration is None:
            shown = record.last(server, 1 if identity is None else None)
            if shown is not None and shown.integration == integration:
                return True
    return False


def _tools(server: _AdmittedServer, space: _IdSpace, record: RecordedIdentities) -> Iterable[Tool]:
    bound = record.bound(server.id, server.tools.keys())
    keys = _new_keys([name for name in server.tools if name not in bound], server, space, record)
    for name, definition in server.tools.items():
        id = bound.get(name) or ToolId(*space[:2], *keys[name], space.declared.version_of(name))
        yield Tool(id, Origin(server.label, name, server.id), definition)


def _new_keys(
    names: Sequence[str], server: _AdmittedServer, space: _IdSpace, record: RecordedIdentities
) -> Mapping[str, tuple[str | None, str]]:
    """Return suite and key of each tool that has no identity on record."""
    by_suite: defaultdict[str | None, dict[str, str]] = defaultdict(dict)
    for name in names:
        part = dotted_component(name)
        by_suite[part.suite][name] = part.name

    def taken(suite: str | None, keys: Iterable[str]) -> set[str]:
        found = record.taken(server.id, [ToolId(*space[:2], suite, key, 1) for key in keys])
        return {key for _, key in found}

    return {
        name: (suite, key)
        for suite, plain_keys in by_suite.items()
        for name, key in _distinct_keys(plain_keys, partial(taken, suite), suite).items()
    }


def _distinct_keys(
    plain_keys: Mapping[str, str], taken: Callable[[Collection[str]], set[str]], suite: str | None = None
) -> dict[str, str]:
    """Give each verbatim text its own key.

    Of several texts with one plain key, the text that needed no change keeps it, and the others get digests.
    ``plain_keys`` maps the verbatim texts to their keys without a digest; ``taken`` returns those of some keys that are
    not available.
    """
    if not plain_keys:
        return {}
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for verbatim, key in plain_keys.items():
        groups[key].append(verbatim)
    used = taken(groups.keys())
    if not used and len(groups) == len(plain_keys):
        return dict(plain_keys)
    given: dict[str, str] = {}
    changed: list[tuple[str, str]] = []
    for key, verbatims in groups.items():
        unchanged = key if suite is None else f"{suite}.{key}"
        keeper = None
        if key not in used:
            keeper = unchanged if unchanged in verbatims else min(verbatims)
            given[keeper] = key
        changed += ((verbatim, key) for verbatim in verbatims if verbatim != keeper)
    used.update(given.values())
    # Nearly always the first digest is free: all of these are asked for at once.
    used |= taken({next(islice(candidate_keys(key, verbatim), 1, None)) for verbatim, key in changed})
    for verbatim, key in sorted(changed):
        candidates = (one for one in candidate_keys(key, verbatim) if one not in used)
        candidate = next(one for one in candidates if not taken({one}))
        used.add(candidate)
        given[verbatim] = candidate
    return given
