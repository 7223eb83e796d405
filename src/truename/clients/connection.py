"""Plan the changes that connect a client to the gateway. Planning changes no file."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from truename.clients.connection_notes import (
    crowded_notes,
    former_address,
    how_to_list_tools,
    limiting_names,
    limits_offered_tools,
    lost_setting_notes,
    other_file_notes,
    predict_losses,
    search_bypasses_lists,
    stdio_notes,
    token_notes,
    unapplied_rule_notes,
    unverified_notes,
)
from truename.clients.gateway_address import ADDRESS_FIELDS, ShownAddress, entry_for, shown_by
from truename.clients.kept_names import matches
from truename.clients.name_translation import LeavingEntry, NameMove, carry, join_lists, why_not_respelled
from truename.clients.plan import ConnectionPlan, FileChange, PlanDraft, PlanNote
from truename.clients.selection import (
    OWN_SCOPES,
    SelectedServer,
    ServerSelection,
    document_of,
    doubtful_form_notes,
    editable_files,
    secrets_of,
    select_servers,
)
from truename.clients.server_entries import speaks_http
from truename.clients.table import config_files
from truename.editing import ABSENT, Document, KeyPath, cannot_edit, value_at
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.clients.connection_notes import PredictedLosses
    from truename.clients.find import ClientServer, FoundFile
    from truename.clients.gateway_address import GatewayAddress, NewNames, UpcomingNames
    from truename.clients.kept_names import KeptName
    from truename.clients.machine import Machine
    from truename.clients.table import ConfigFile
    from truename.config import ServerConfig

__all__ = ["ConnectRequest", "Entries", "plan_connection"]

_LONGEST: Final = 200
# Paths and prose are skipped: a directory may have the name of a server.
_PROSE: Final = re.compile(r"[/\\\s]")
# A hook's pattern for all tools of all servers still applies to a common entry.
_EVERYTHING: Final = frozenset({"", "mcp__"})
_PATTERN: Final = "matcher"
_JOIN: Final = "__"


def is_mentioned(files: Sequence[FoundFile], key: str) -> bool:
    """Return whether files may mention a server in places that ``table.json`` does not list.

    A text that contains the server's key as a word counts as a mention, and so does the pattern of a hook that
    contains the separator of key and tool name.
    """
    spelt = "|".join(re.escape(one) for one in {key, re.sub(r"[^A-Za-z0-9]", "_", key)})
    word = re.compile(rf"(?<![A-Za-z0-9])(?:{spelt})(?![A-Za-z0-9])", re.IGNORECASE)
    # A file is found once for each row of the table that matches it.
    known = {(kept.path, kept.where) for found in files for kept in found.kept}
    entries = {(one.path, one.where) for found in files for one in found.servers}
    values = {found.path: found.document.value for found in files if found.document is not None}
    for path, value in values.items():
        for where, text in _texts(value, (), {place for file, place in entries if file == path}):
            if (path, where) in known or len(text) > _LONGEST or _PROSE.search(text):
                continue
            is_pattern = _PATTERN in where and _JOIN in text and text.strip("^.*$") not in _EVERYTHING
            if is_pattern or word.search(text):
                return True
    return False


def _texts(value: object, where: KeyPath, entries: set[KeyPath]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the strings of a value, including keys of objects, with their paths; server entries are skipped."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        place = (*where, key)
        if place in entries:
            continue
        if isinstance(key, str):
            yield place, key
        if isinstance(item, str):
            yield place, item
        yield from _texts(item, place, entries)


Entries: TypeAlias = Literal["best", "each", "one", "all"]

_REFUSING: Final = frozenset({"deny", "without"})
# In files whose servers are a list, each entry holds its key in this field.
_NAMING: Final = frozenset({"name"})
# As a list of today's tools, these effects never give a later tool more permission than before.
_HARMLESS: Final = frozenset({"allow", "alias"})
_ONE_ENTRY: Final = (
    "Connect with --one: in one entry for all servers, each tool has a unique name. Lists for whole servers or "
    "patterns then name today's tools; tools added later are not in them."
)
# Forms of entries whose servers are a list, not an object by key.
_LISTED: Final = frozenset({"continue", "vibe"})
# Top-level fields that a client requires in a new file.
_HEADS: Final[dict[str, dict[str, object]]] = {"continue": {"name": "Truename", "version": "1.0.0", "schema": "v1"}}


@dataclass(frozen=True, kw_only=True)
class ConnectRequest:
    """A request to connect a client: how many entries, which transport, under which key, in files of which scopes.

    ``entries`` is ``each`` (one entry per server), ``one`` (one for all servers of the client), ``all`` (one for all
    servers of the gateway) or ``best``: one per server, except that servers share an entry where the client would
    lose or confuse tools. ``name`` is the key of the common entry; ``search`` uses addresses with tool search.
    """

    client: str
    entries: Entries = "best"
    stdio: bool = False
    search: bool = False
    name: str = "tn"
    scopes: frozenset[str] = OWN_SCOPES


def plan_connection(
    machine: Machine, found: Iterable[FoundFile], address: GatewayAddress, request: ConnectRequest, names: UpcomingNames
) -> ConnectionPlan:
    """Plan the changes that connect one client; nothing is changed.

    ``names`` are the tool names at the new addresses, as far as they are known. Raises `ConfigError` for a file that
    cannot be changed, a key that is taken, a client that has no configuration file, and a client with lists of tools
    that tool search would bypass.
    """
    client_files = [one for one in found if one.file.client == request.client]
    files = editable_files(client_files, request.scopes)
    choice = select_servers(files, address, machine)

    def new_builder() -> _PlanBuilder:
        return _PlanBuilder(
            machine=machine,
            client_files=client_files,
            files=files,
            address=address,
            request=request,
            names=names,
            choice=choice,
        )

    new_builder().require_no_lists()
    if request.entries in {"one", "all"}:
        return new_builder().plan(choice.selected)
    separate = new_builder()
    joinable = (
        [one for one in choice.selected if separate.is_joinable(one)] if separate.grants_nothing_in_common() else []
    )
    if (
        request.entries == "each"
        or not joinable
        or not (lost := separate.count_lost(()))
        or separate.count_lost(joinable) >= lost
    ):
        return separate.plan(())
    return new_builder().plan(joinable)


class _PlanBuilder:
    """A builder of one plan."""

    def __init__(
        self,
        *,
        machine: Machine,
        client_files: Sequence[FoundFile],
        files: Sequence[FoundFile],
        address: GatewayAddress,
        request: ConnectRequest,
        names: UpcomingNames,
        choice: ServerSelection,
    ) -> None:
        self._machine, self._client_files, self._files = machine, client_files, files
        self._address, self._request, self._names, self._choice = address, request, names, choice
        self._transport = {"stdio": request.stdio, "search": request.search}
        self._is_searched = request.search or address.config.settings.tool_search != "off"
        self._lists = tuple(limiting_names(client_files, choice))
        self._kinds = config_files(request.client)
        self._draft = PlanDraft()
        # Existing entries that show several servers of the gateway, under any key.
        self._common_entries = [one for one in choice.already if shown_by(one.server).only is None]
        self._name = self._common_entries[0].server.key if self._common_entries else request.name
        self._notes = [*choice.notes, *doubtful_form_notes(files)]

    def require_no_lists(self) -> None:
        """Raise `ConfigError` if tool search would bypass the client's lists of tools."""
        if self._is_searched and self._lists:
            raise search_bypasses_lists(self._request.client, self._lists, is_asked=self._request.search)

    def is_joinable(self, one: SelectedServer) -> bool:
        """Return whether a server can share an entry without weakening any list of its client.

        Lists of single tools can be translated. A deny, ask or hook rule for a glob, and a list of offered tools,
        would become a list of today's tools, and would not cover tools that are added later.
        """
        if one.upstream not in self._names.together or self._has_other_fields(one):
            return False
        move = self._move_to_common(one)
        names = move.names or {}
        if is_mentioned(self._client_files, one.key):
            return False
        for found in self._client_files:
            for kept in found.kept:
                if not matches(kept, one.key, None):
                    continue
                texts, problem = carry(kept, [move])
                if problem or not self._can_respell(found) or why_not_respelled(kept, _file_value(found)):
                    return False
                if kept.effect not in _HARMLESS and (kept.tool not in names or len(texts) != 1):
                    return False
        return True

    def _has_other_fields(self, one: SelectedServer) -> bool:
        """Return whether an entry has fields that a common entry cannot take over."""
        former = value_at(document_of(one.found).value, one.client_server.where)
        follows = {kind.path[0] for kind in one.found.file.entry if kind.effect != "only"}
        return not isinstance(former, dict) or bool(former.keys() - ADDRESS_FIELDS - follows - _NAMING)

    def grants_nothing_in_common(self) -> bool:
        """Return whether a server that joins the common entry gains no permission that was meant for others.

        After an earlier connection the client may trust that entry, or hold a permission for all of its tools.
        """
        known = {wire for one in self._common_entries for wire in self._common_names(shown_by(one.server).servers)}
        kept = [one for found in self._client_files for one in found.kept if matches(one, self._name, None)]
        settings = (self._draft.value(document_of(found), one.where) for found, one in self._files_with_common_entry())
        # The keys of common entries in all files of the client, including files that are not to be changed.
        keys = {
            one.server.key
            for found in self._client_files
            for one in found.servers
            if self._address.points_here(one.server) and shown_by(one.server).only is None
        }
        is_alone = keys <= {self._name} and len(self._common_entries) < 2
        is_read = not any(found.problem for found in self._client_files)
        is_plain = all((ADDRESS_FIELDS | _NAMING).issuperset(one) for one in settings)
        return is_alone and is_read and is_plain and all(one.tool in known for one in kept)

    def _files_with_common_entry(self) -> Iterator[tuple[FoundFile, ClientServer]]:
        return ((found, one) for found in self._files for one in found.servers if one in self._common_entries)

    def count_lost(self, joined: Sequence[SelectedServer]) -> int:
        """Return how many tools the client could not reliably call if these servers shared an entry."""
        return sum(one.count for one in self._predict_losses(joined))

    def _predict_losses(self, joined: Sequence[SelectedServer]) -> list[PredictedLosses]:
        return predict_losses(self._kinds[0].dialect, self._shown_names(joined)) if self._kinds else []

    def _shown_names(self, joined: Sequence[SelectedServer]) -> dict[str, list[str]]:
        """Return the tool names that the client is going to see, by its own server keys."""
        shown: dict[str, list[str]] = {}
        for client_server in self._choice.already:
            there = shown_by(client_server.server)
            shown[client_server.server.key] = (
                self._common_names(there.servers) if there.only is None else self._own_names(there.only)
            )
        for one in self._choice.selected:
            if one not in joined:
                shown[one.key] = self._own_names(one.upstream)
        if joined or self._request.entries == "all":
            shown[self._name] = self._common_names(self._common_servers(joined))
        return {key: names for key, names in shown.items() if names}

    def _own_names(self, upstream: str) -> list[str]:
        return list(self._names.alone.get(upstream, {}).values())

    def _common_names(self, upstreams: Iterable[str] | None) -> list[str]:
        names = self._names.together
        return [wire for key in (names if upstreams is None else upstreams) for wire in names.get(key, {}).values()]

    def _common_servers(self, joined: Iterable[SelectedServer]) -> tuple[str, ...] | None:
        """Return the servers that the common entry shows, including those that it shows already; None for all.

        The entry is the same in every file: of two entries with one key, clients use only the nearest.
        """
        there = [shown_by(one.server).servers for one in self._common_entries]
        if self._request.entries == "all" or None in there:
            return None
        known = [key for keys in there for key in keys or ()]
        return tuple(dict.fromkeys((*known, *(one.upstream for one in joined))))

    def plan(self, joining: Sequence[SelectedServer]) -> ConnectionPlan:
        """Return the plan in which these servers share one entry and each other server keeps its own."""
        joined = [one for one in joining if self._may_join(one)]
        separate = [one for one in self._choice.selected if one not in joining]
        for one in separate:
            self._enter_separately(one)
        containers: defaultdict[tuple[object, KeyPath], list[SelectedServer]] = defaultdict(list)
        for one in joined:
            containers[one.client_server.path, one.client_server.where[:-1]].append(one)
        common = ShownAddress(servers=self._common_servers(joined))
        for (_, where), group in containers.items():
            self._join_group(group, where, common)
        is_first = not self._choice.selected and not self._choice.already
        if is_first and self._request.entries in {"one", "all"}:
            self._add_first_entry()
        moves = [*map(self._move_to_common, joined), *(self._move(one, one.key, self._names.alone) for one in separate)]
        self._replace_kept_names(moves, skipped=joined)
        if self._request.entries == "all":
            self._notes += unapplied_rule_notes(self._client_files, self._added_servers(), self._name, _HARMLESS)
        unlisted = dict.fromkeys(one.key for one in separate if one.upstream not in self._names.alone)
        self._notes += unverified_notes(unlisted, answers=self._address.answers)
        return self._plan(joined, separate)

    def _added_servers(self) -> Iterator[str]:
        """Yield the servers of the gateway that the client did not have."""
        shown = [shown_by(one.server) for one in self._choice.already]
        known = {one.upstream for one in self._choice.selected} | {one.only for one in shown}
        known.update(key for one in shown if one.only is None for key in one.servers or ())
        return (one.key for one in self._address.config.enabled if one.key not in known)

    def _enter_separately(self, one: SelectedServer) -> None:
        server = self._address.server(one.key, ShownAddress(only=one.upstream), file=one.found.file, **self._transport)
        document, where = document_of(one.found), one.client_server.where
        entry = entry_for(server, one.found.file.shape, self._draft.value(document, where))
        change = FileChange(
            where=where, what=f"server {one.key}", old=former_address(one), new=_address_or_command(server)
        )
        self._draft.enter(document, where, one.key, entry, change)

    def _plan(self, joined: Sequence[SelectedServer], separate: Sequence[SelectedServer]) -> ConnectionPlan:
        kinds, selected = self._kinds, [*joined, *separate]
        steps = tuple(self._draft.steps())
        if steps:
            is_http = not self._request.stdio and any(speaks_http(kind.shape) for kind in kinds)
            self._notes += token_notes(kinds, self._address) if is_http else stdio_notes(kinds)
        if joined and self._request.entries == "best":
            self._notes += self._joined_notes(joined)
        self._notes += [
            PlanNote(kind="names", subject=one.rules.name, fact=one.text, advice=self._advice_about_losses())
            for one in self._predict_losses(joined)
            if one.count
        ]
        if kinds and not self._is_searched:
            number = sum(map(len, self._shown_names(joined).values()))
            self._notes += crowded_notes(kinds[0].dialect, number, has_lists=bool(self._lists))
        self._notes += other_file_notes(self._client_files, self._files)
        reload = next((one.found.file.reload for one in selected), kinds[0].reload if kinds else "")
        return ConnectionPlan(
            client=self._request.client,
            title=kinds[0].title if kinds else self._request.client,
            steps=steps,
            notes=tuple(dict.fromkeys(self._notes)),
            servers=tuple(dict.fromkeys(one.key for one in selected)),
            joined=tuple(dict.fromkeys(one.key for one in joined)),
            upstreams=tuple(dict.fromkeys(one.upstream for one in selected)),
            already=tuple(dict.fromkeys(one.server.key for one in self._choice.already)),
            reload=reload,
            secrets=frozenset(
                secrets_of(client_server.server for one in self._client_files for client_server in one.servers)
            ),
        )

    def _joined_notes(self, joined: Sequence[SelectedServer]) -> Iterator[PlanNote]:
        keys = dict.fromkeys(one.key for one in joined)
        for foreseen in self._predict_losses(()):
            if foreseen.count:
                servers = f"{', '.join(map(excerpt, keys))} share one entry, {excerpt(self._name)}"
                fact = f"{servers}. With one entry per server: {foreseen.text}"
                yield PlanNote(kind="info", subject=self._name, fact=fact, advice="--each keeps one entry per server.")

    def _advice_about_losses(self) -> str:
        """Return the advice about lost tools; "" if there is none."""
        if self._request.entries in {"one", "all"}:
            return ""
        if self._choice.already and not self._choice.selected:
            return f"`truename disconnect {self._request.client}` and connect it again: a common entry can avoid that."
        return _ONE_ENTRY

    def _move_to_common(self, one: SelectedServer) -> NameMove:
        return self._move(one, self._name, self._names.together)

    def _move(self, one: SelectedServer, new_key: str, names: NewNames) -> NameMove:
        places = {(other.client_server.path, other.client_server.where) for other in self._choice.selected}
        stays = new_key != one.key and any(
            client_server.server.key == one.key and (client_server.path, client_server.where) not in places
            for found in self._client_files
            for client_server in found.servers
        )
        shown = names.get(one.upstream)
        return NameMove(key=one.key, new_key=new_key, names=shown, stays=stays, dialect=one.found.file.dialect)

    def _may_join(self, one: SelectedServer) -> bool:
        """Return whether a server may join the common entry without losing a rule of its client; note why not."""
        move = self._move_to_common(one)
        about = [
            kept for found in self._client_files for kept in found.kept if carry(kept, [move]) != ((kept.text,), "")
        ]
        refused = [kept for kept in about if kept.tool is None and kept.effect in _REFUSING]
        if refused:
            fact = f"{excerpt(one.key)} is denied by {refused[0].path}, so it was left unchanged"
            self._notes.append(PlanNote(kind="left", subject=one.key, fact=fact))
        elif any(limits_offered_tools(found, common) for found, common in self._files_with_common_entry()):
            fact = f"{excerpt(one.key)} was left unchanged: {excerpt(self._name)} limits the tools that it offers"
            advice = "Add its tools there by hand, or connect it with --each."
            self._notes.append(PlanNote(kind="left", subject=one.key, fact=fact, advice=advice))
        elif (about or limits_offered_tools(one.found, one.client_server)) and move.names is None:
            fact = (
                f"{excerpt(one.key)} was left unchanged: the client has lists of its tools, and its tools are unknown"
            )
            to_do = how_to_list_tools(answers=self._address.answers)
            advice = f"{to_do[:1].upper()}{to_do[1:]}, or pass a list of them (--catalog DUMP)."
            self._notes.append(PlanNote(kind="left", subject=one.key, fact=fact, advice=advice))
        else:
            return True
        return False

    def _join_group(self, group: Sequence[SelectedServer], where: KeyPath, common: ShownAddress) -> None:
        found = group[0].found
        document, shape, name = document_of(found), found.file.shape, self._name
        servers = []
        for one in group:
            place = one.client_server.where
            inside = [kept for kept in one.found.kept if kept.path == one.client_server.path and _is_below(kept, place)]
            servers.append(LeavingEntry(self._move_to_common(one), self._draft.value(document, place), place, inside))
        server = self._address.server(name, common, file=found.file, **self._transport)
        there = [one for one in self._common_entries if (one.path, one.where[:-1]) == (document.path, where)]
        for client_server in there:
            former = self._draft.value(document, client_server.where)
            entry = join_lists(entry_for(server, shape, former), servers, found.file)
            change = FileChange(
                where=client_server.where,
                what=f"server {name}",
                old=_address_or_command(client_server.server),
                new=_address_or_command(server),
            )
            self._draft.enter(document, client_server.where, name, entry, change)
        for one in sorted(group, key=lambda one: str(one.client_server.where[-1]).zfill(9), reverse=True):
            place = one.client_server.where
            change = FileChange(where=place, what=f"server {one.key}", old=former_address(one))
            self._draft.enter(document, place, one.key, ABSENT, change)
        if not there:
            entry = join_lists(entry_for(server, shape), servers, found.file)
            self._add_entry(document, where, entry, _address_or_command(server))
        self._notes += lost_setting_notes(group, entry)

    def _add_first_entry(self) -> None:
        """Add the common entry to the file where the client looks for servers; it has no server yet."""
        found = next((one for one in self._files if "*" not in one.file.key), None)
        file = found.file if found else self._kind_of_new_file()
        server = self._address.server(self._name, ShownAddress(), file=file, **self._transport)
        if self._request.entries == "one":
            fact = f"{file.title} has no servers, so the entry shows all servers of the gateway"
            self._notes.append(PlanNote(kind="info", subject=self._name, fact=fact))
        if found is not None:
            document = document_of(found)
        else:
            path = file.target(self._machine)
            if path is None:
                raise _without_file(self._request.client, file)
            document = Document.empty(path, file.format)
            for key, value in _HEADS.get(file.client, {}).items():
                self._draft.put(document, (key,), value)
        entry = entry_for(server, file.shape)
        if file.shape in _LISTED and self._draft.value(document, file.key) in (ABSENT, None):
            self._draft.put(document, file.key, [])
        self._add_entry(document, file.key, entry, _address_or_command(server))

    def _kind_of_new_file(self) -> ConfigFile:
        kinds = config_files(self._request.client)
        usable_kinds = [
            kind
            for kind in kinds
            if kind.scope in self._request.scopes and not kind.legacy and "*" not in kind.key and kind.format != "shell"
        ]
        if not usable_kinds:
            raise _without_file(self._request.client, kinds[0] if kinds else None)
        return next((kind for kind in usable_kinds if kind.target(self._machine)), usable_kinds[0])

    def _add_entry(self, document: Document, where: KeyPath, entry: dict[str, object], new: str) -> None:
        holder, name = self._draft.value(document, where), self._name
        listed = isinstance(holder, list)
        taken = [one.get("name") for one in holder if isinstance(one, dict)] if listed else holder
        if isinstance(taken, list | dict) and name in taken:
            earlier = (
                f"If an earlier `truename connect` wrote it, run `truename disconnect {self._request.client}` first"
            )
            raise cannot_edit(
                document.path,
                f"it already has a server {excerpt(name)}",
                f"{earlier}; else choose another key with --name.",
            )
        place = (*where, len(holder) if listed else name)
        self._draft.enter(document, place, name, entry, FileChange(where=place, what=f"server {name}", new=new))

    def _replace_kept_names(self, moves: Sequence[NameMove], skipped: Sequence[SelectedServer]) -> None:
        """Replace the tool names in the client's files, from the end of each list, since one may become several."""
        gone = [(one.client_server.path, one.client_server.where) for one in skipped]
        for found in self._client_files:
            for kept in sorted(found.kept, key=_sort_key, reverse=True):
                if not any(kept.path == path and _is_below(kept, where) for path, where in gone):
                    self._replace_kept_name(found, kept, moves)

    def _replace_kept_name(self, found: FoundFile, kept: KeptName, moves: Sequence[NameMove]) -> None:
        texts, problem = carry(kept, moves)
        if texts != (kept.text,) and any(move.key == kept.server != move.new_key for move in moves):
            problem = problem or why_not_respelled(kept, _file_value(found))
        subject = f"{kept.text} in {kept.path}"
        if problem:
            fact = f"{excerpt(kept.text)} in {kept.path} was left unchanged: {problem}"
            self._notes.append(PlanNote(kind="names", subject=subject, fact=fact, advice="Check it by hand."))
        elif texts != (kept.text,):
            new = ", ".join(texts)
            if found.document is None or not self._can_respell(found):
                fact = f"{excerpt(kept.text)} in {kept.path} matches no tool of this client any more"
                note = PlanNote(kind="names", subject=subject, fact=fact, advice=f"Replace it with {new}.")
                self._notes.append(note)
                return
            try:
                change = FileChange(where=kept.where, what=f"name {kept.text}", old=kept.text, new=new)
                self._draft.respell(found.document, kept, texts, change)
            except ValueError as error:
                fact = f"{excerpt(kept.text)} in {kept.path} could not be replaced: {error}"
                self._notes.append(PlanNote(kind="names", subject=subject, fact=fact, advice=f"Replace it with {new}."))

    def _can_respell(self, found: FoundFile) -> bool:
        is_mine = found.file.scope in self._request.scopes or ".local." in found.path.name
        return is_mine and found.document is not None and found.file.format != "markdown"


def _address_or_command(server: ServerConfig) -> str:
    """Return the URL or command line of a server."""
    return server.url or " ".join([server.command or "", *server.args])


def _file_value(found: FoundFile) -> object:
    return None if found.document is None else found.document.value


def _is_below(kept: KeptName, where: KeyPath) -> bool:
    return kept.where[: len(where)] == where


def _sort_key(kept: KeptName) -> list[tuple[int, str, int]]:
    return [(0, "", step) if isinstance(step, int) else (1, step, 0) for step in kept.where]


def _without_file(client: str, file: ConfigFile | None) -> ConfigError:
    how = file.how if file is not None else ""
    return ConfigError(
        code="left_alone",
        file=client,
        key="",
        problem="it has no configuration file that can be changed",
        remedy=how or "Add the gateway's address by hand.",
    )
