"""Plan the gateway's entry in a client's own configuration, before anything is touched."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from truename.clients.carrying import LeavingEntry, NameMove, beyond_text, carry, joined
from truename.clients.connection_notes import (
    crowded,
    foresee,
    lists_about,
    lost_settings,
    other_files,
    restricted,
    searched_beside_lists,
    stdio_notes,
    to_know,
    token_notes,
    unforeseen,
    way_of,
)
from truename.clients.gateway_address import WAY, ShownAddress, entry_for, shown_by
from truename.clients.kept_names import matches
from truename.clients.plan import ConnectionPlan, FileChange, PlanDraft, PlanNote
from truename.clients.selection import (
    OWN_SCOPES,
    SelectedServer,
    ServerSelection,
    choose,
    document_of,
    doubtful_forms,
    secrets_of,
    usable,
)
from truename.clients.server_entries import speaks_http
from truename.clients.table import config_files
from truename.editing import ABSENT, Document, KeyPath, cannot_edit, value_at
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.clients.connection_notes import ForeseenNames
    from truename.clients.find import FoundFile, Sighting
    from truename.clients.gateway_address import GatewayAddress, NewNames, UpcomingNames
    from truename.clients.kept_names import KeptName
    from truename.clients.machine import Machine
    from truename.clients.table import ConfigFile
    from truename.config import ServerConfig

__all__ = ["ConnectRequest", "Entries", "plan_connection"]

_LONGEST: Final = 200
# Paths and prose: a directory of projects may be called as a server is.
_PROSE: Final = re.compile(r"[/\\\s]")
# A hook's pattern that is about all tools of all servers holds for a common entry too.
_EVERYTHING: Final = frozenset({"", "mcp__"})
_PATTERN: Final = "matcher"
_JOIN: Final = "__"


def mentions(files: Sequence[FoundFile], key: str) -> bool:
    """Tell whether files may be about a server beyond its entry and the names that are known to be kept there.

    Clients keep lists that no table has. A text that has the key as a word is taken for a mention, and so is a hook
    whose pattern has the sign in it by which clients join key and name.
    """
    spelt = "|".join(re.escape(one) for one in {key, re.sub(r"[^A-Za-z0-9]", "_", key)})
    word = re.compile(rf"(?<![A-Za-z0-9])(?:{spelt})(?![A-Za-z0-9])", re.IGNORECASE)
    # One file is found once for each row that is about it.
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


def _texts(value: Any, where: KeyPath, entries: set[KeyPath]) -> Iterator[tuple[KeyPath, str]]:
    """Yield the texts of a tree, keys of objects too, with their places; those of servers' entries are left out."""
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
# In a file whose servers are a list, each entry has its key as a field.
_NAMING: Final = frozenset({"name"})
# Spelled out, these never let a later tool do more than it would have done.
_HARMLESS: Final = frozenset({"allow", "alias"})
_ONE_ENTRY: Final = (
    "Connect with --one: in one entry for all servers, each tool has a name of its own. Lists about whole servers or "
    "patterns then have the names of today's tools: a tool that comes later is not in them."
)
# Forms in which servers are a list, and not an object by their keys.
_LISTED: Final = frozenset({"continue", "vibe"})
# What a client wants at the top of a file that is new.
_HEADS: Final[dict[str, dict[str, Any]]] = {"continue": {"name": "Truename", "version": "1.0.0", "schema": "v1"}}


@dataclass(frozen=True, kw_only=True)
class ConnectRequest:
    """What is asked for: which client, which entries, over what, under which key, in which files.

    ``entries`` are one for ``each`` server, ``one`` for all servers of the client, one for ``all`` servers of the
    gateway, or what is ``best``: one for each, but a common one where the client would lose tools or confuse them.
    ``search`` is whether its addresses search the tools.
    """

    client: str
    entries: Entries = "best"
    stdio: bool = False
    search: bool = False
    name: str = "tn"
    scopes: frozenset[str] = OWN_SCOPES


def plan_connection(
    machine: Machine, found: Iterable[FoundFile], address: GatewayAddress, wish: ConnectRequest, names: UpcomingNames
) -> ConnectionPlan:
    """Return what to change in the files of one client; nothing is changed.

    ``names`` are those at the new addresses, as far as they are known.
    Raises `ConfigError` for a file that can't be used, a key that is taken, a client that keeps no file, and one with
    lists of tools that a search would go around.
    """
    mine = [one for one in found if one.file.client == wish.client]
    files = usable(mine, wish.scopes)
    choice = choose(files, address, machine)

    def making() -> _Making:
        return _Making(machine=machine, mine=mine, files=files, address=address, wish=wish, names=names, choice=choice)

    making().require_no_lists()
    if wish.entries in {"one", "all"}:
        return making().plan(choice.taken)
    single = making()
    joinable = [one for one in choice.taken if single.is_joinable(one)] if single.grants_nothing_in_common() else []
    if wish.entries == "each" or not joinable or not (lost := single.lost(())) or single.lost(joinable) >= lost:
        return single.plan(())
    return making().plan(joinable)


class _Making:
    """One plan in the making."""

    def __init__(
        self,
        *,
        machine: Machine,
        mine: Sequence[FoundFile],
        files: Sequence[FoundFile],
        address: GatewayAddress,
        wish: ConnectRequest,
        names: UpcomingNames,
        choice: ServerSelection,
    ) -> None:
        self._machine, self._mine, self._files = machine, mine, files
        self._address, self._wish, self._names, self._choice = address, wish, names, choice
        self._way = {"stdio": wish.stdio, "search": wish.search}
        self._is_searched = wish.search or address.config.settings.tool_search != "off"
        self._lists = tuple(lists_about(mine, choice))
        self._kinds = config_files(wish.client)
        self._draft = PlanDraft()
        # Common entries that are there already, under whatever key.
        self._commons = [one for one in choice.already if shown_by(one.server).only is None]
        self._name = self._commons[0].server.key if self._commons else wish.name
        self._notes = [*choice.notes, *doubtful_forms(files)]

    def require_no_lists(self) -> None:
        """Raise `ConfigError` where tools would be searched, and the client keeps lists of tools."""
        if self._is_searched and self._lists:
            raise searched_beside_lists(self._wish.client, self._lists, is_asked=self._wish.search)

    def is_joinable(self, one: SelectedServer) -> bool:
        """Tell whether a server can share an entry so that no list of its client means less, today or tomorrow.

        What names single tools follows them. A denial, question or hook for a glob, and a list of what alone is
        offered, would be spelled out as they stand today: tools that come later would not be in them.
        """
        if one.upstream not in self._names.together or self._has_settings(one):
            return False
        move = self._joining(one)
        names = move.names or {}
        if mentions(self._mine, one.key):
            return False
        for found in self._mine:
            for kept in found.kept:
                if not matches(kept, one.key, None):
                    continue
                texts, problem = carry(kept, [move])
                if problem or not self._can_respell(found) or beyond_text(kept, _value(found)):
                    return False
                if kept.effect not in _HARMLESS and (kept.tool not in names or len(texts) != 1):
                    return False
        return True

    def _has_settings(self, one: SelectedServer) -> bool:
        """Tell whether an entry says more than the way to its server, and which single tools are left out."""
        former = value_at(document_of(one.found).value, one.sighting.where)
        follows = {kind.path[0] for kind in one.found.file.entry if kind.effect != "only"}
        return not isinstance(former, dict) or bool(former.keys() - WAY - follows - _NAMING)

    def grants_nothing_in_common(self) -> bool:
        """Tell whether a server that joins the common entry gets nothing that was meant for others.

        The client may trust that entry, or keep a permission for all of its tools, from an earlier connection.
        """
        known = {wire for one in self._commons for wire in self._common(shown_by(one.server).servers)}
        kept = [one for found in self._mine for one in found.kept if matches(one, self._name, None)]
        settings = (self._draft.value(document_of(found), one.where) for found, one in self._commons_found())
        is_alone = {one.server.key for one in self._met()} <= {self._name} and len(self._commons) < 2
        is_read = not any(found.problem for found in self._mine)
        is_plain = all((WAY | _NAMING).issuperset(one) for one in settings)
        return is_alone and is_read and is_plain and all(one.tool in known for one in kept)

    def _met(self) -> Iterator[Sighting]:
        """Yield the common entries in all files of the client, also in those that are not changed."""
        for found in self._mine:
            for one in found.servers:
                if self._address.is_met(one.server) and shown_by(one.server).only is None:
                    yield one

    def _commons_found(self) -> Iterator[tuple[FoundFile, Sighting]]:
        return ((found, one) for found in self._files for one in found.servers if one in self._commons)

    def lost(self, joined: Sequence[SelectedServer]) -> int:
        """Return how many tools the client could not call for certain, if these servers shared an entry."""
        return sum(one.count for one in self._foreseen(joined))

    def _foreseen(self, joined: Sequence[SelectedServer]) -> list[ForeseenNames]:
        return foresee(self._kinds[0].dialect, self._shown(joined)) if self._kinds else []

    def _shown(self, joined: Sequence[SelectedServer]) -> dict[str, list[str]]:
        """Return the names that the client is going to see, by its own keys."""
        shown: dict[str, list[str]] = {}
        for sighting in self._choice.already:
            there = shown_by(sighting.server)
            shown[sighting.server.key] = self._common(there.servers) if there.only is None else self._own(there.only)
        for one in self._choice.taken:
            if one not in joined:
                shown[one.key] = self._own(one.upstream)
        if joined or self._wish.entries == "all":
            shown[self._name] = self._common(self._servers(joined))
        return {key: names for key, names in shown.items() if names}

    def _own(self, upstream: str) -> list[str]:
        return list(self._names.alone.get(upstream, {}).values())

    def _common(self, upstreams: Iterable[str] | None) -> list[str]:
        names = self._names.together
        return [wire for key in (names if upstreams is None else upstreams) for wire in names.get(key, {}).values()]

    def _servers(self, joined: Iterable[SelectedServer]) -> tuple[str, ...] | None:
        """Return the servers that the common entry is to show, with those that it shows already; None for all.

        In another file it shows the same: of two entries with one key, clients see the nearest alone.
        """
        there = [shown_by(one.server).servers for one in self._commons]
        if self._wish.entries == "all" or None in there:
            return None
        known = [key for keys in there for key in keys or ()]
        return tuple(dict.fromkeys((*known, *(one.upstream for one in joined))))

    def plan(self, joining: Sequence[SelectedServer]) -> ConnectionPlan:
        """Give these servers one entry, and each other one the address of its own."""
        joined = [one for one in joining if self._is_known(one)]
        single = [one for one in self._choice.taken if one not in joining]
        for one in single:
            self._enter_single(one)
        containers: defaultdict[tuple[Any, KeyPath], list[SelectedServer]] = defaultdict(list)
        for one in joined:
            containers[one.sighting.path, one.sighting.where[:-1]].append(one)
        common = ShownAddress(servers=self._servers(joined))
        for (_, where), group in containers.items():
            self._join(group, where, common)
        is_first = not self._choice.taken and not self._choice.already
        if is_first and self._wish.entries in {"one", "all"}:
            self._begin()
        moves = [*map(self._joining, joined), *(self._move(one, one.key, self._names.alone) for one in single)]
        self._carry(moves, skipped=joined)
        untold = dict.fromkeys(one.key for one in single if one.upstream not in self._names.alone)
        self._notes += unforeseen(untold, answers=self._address.answers)
        return self._plan(joined, single)

    def _enter_single(self, one: SelectedServer) -> None:
        server = self._address.server(one.key, ShownAddress(only=one.upstream), file=one.found.file, **self._way)
        document, where = document_of(one.found), one.sighting.where
        entry = entry_for(server, one.found.file.shape, self._draft.value(document, where))
        change = FileChange(where=where, what=f"server {one.key}", old=way_of(one), new=_told(server))
        self._draft.enter(document, where, one.key, entry, change)

    def _plan(self, joined: Sequence[SelectedServer], single: Sequence[SelectedServer]) -> ConnectionPlan:
        kinds, taken = self._kinds, [*joined, *single]
        steps = tuple(self._draft.steps())
        if steps:
            is_http = not self._wish.stdio and any(speaks_http(kind.shape) for kind in kinds)
            self._notes += token_notes(kinds, self._address) if is_http else stdio_notes(kinds)
        if joined and self._wish.entries == "best":
            self._notes += self._why_joined(joined)
        self._notes += [
            PlanNote(kind="names", subject=one.rules.name, fact=one.text, advice=self._against_losses())
            for one in self._foreseen(joined)
            if one.count
        ]
        if kinds and not self._is_searched:
            number = sum(map(len, self._shown(joined).values()))
            self._notes += crowded(kinds[0].dialect, number, has_lists=bool(self._lists))
        self._notes += other_files(self._mine, self._files)
        reload = next((one.found.file.reload for one in taken), kinds[0].reload if kinds else "")
        return ConnectionPlan(
            client=self._wish.client,
            title=kinds[0].title if kinds else self._wish.client,
            steps=steps,
            notes=tuple(dict.fromkeys(self._notes)),
            servers=tuple(dict.fromkeys(one.key for one in taken)),
            joined=tuple(dict.fromkeys(one.key for one in joined)),
            upstreams=tuple(dict.fromkeys(one.upstream for one in taken)),
            already=tuple(dict.fromkeys(one.server.key for one in self._choice.already)),
            reload=reload,
            secrets=frozenset(secrets_of(sighting.server for one in self._mine for sighting in one.servers)),
        )

    def _why_joined(self, joined: Sequence[SelectedServer]) -> Iterator[PlanNote]:
        keys = dict.fromkeys(one.key for one in joined)
        for foreseen in self._foreseen(()):
            if foreseen.count:
                told = f"{', '.join(map(excerpt, keys))} share one entry, {excerpt(self._name)}"
                fact = f"{told}. With an entry for each, {foreseen.text}"
                yield PlanNote(kind="info", subject=self._name, fact=fact, advice="--each keeps an entry for each.")

    def _against_losses(self) -> str:
        """Return what to do about tools that are lost; "" where there is nothing."""
        if self._wish.entries in {"one", "all"}:
            return ""
        if self._choice.already and not self._choice.taken:
            return f"`truename disconnect {self._wish.client}`, and connect it again: a common entry can end that."
        return _ONE_ENTRY

    def _joining(self, one: SelectedServer) -> NameMove:
        return self._move(one, self._name, self._names.together)

    def _move(self, one: SelectedServer, new_key: str, names: NewNames) -> NameMove:
        places = {(other.sighting.path, other.sighting.where) for other in self._choice.taken}
        stays = new_key != one.key and any(
            sighting.server.key == one.key and (sighting.path, sighting.where) not in places
            for found in self._mine
            for sighting in found.servers
        )
        shown = names.get(one.upstream)
        return NameMove(key=one.key, new_key=new_key, names=shown, stays=stays, dialect=one.found.file.dialect)

    def _is_known(self, one: SelectedServer) -> bool:
        """Tell whether a server may go into the one entry: nothing that its client keeps about it would be lost."""
        move = self._joining(one)
        about = [kept for found in self._mine for kept in found.kept if carry(kept, [move]) != ((kept.text,), "")]
        refused = [kept for kept in about if kept.tool is None and kept.effect in _REFUSING]
        if refused:
            fact = f"{excerpt(one.key)} is refused by {refused[0].path}, so it stays as it is"
            self._notes.append(PlanNote(kind="left", subject=one.key, fact=fact))
        elif any(restricted(found, common) for found, common in self._commons_found()):
            fact = f"{excerpt(one.key)} stays as it is: {excerpt(self._name)} says which tools it offers"
            advice = "Add its tools there by hand, or connect it with --each."
            self._notes.append(PlanNote(kind="left", subject=one.key, fact=fact, advice=advice))
        elif (about or restricted(one.found, one.sighting)) and move.names is None:
            fact = f"{excerpt(one.key)} stays as it is: names of its tools are kept, and which it has is not known"
            to_do = to_know(answers=self._address.answers)
            advice = f"{to_do[:1].upper()}{to_do[1:]}, or give a list of them (--catalog DUMP)."
            self._notes.append(PlanNote(kind="left", subject=one.key, fact=fact, advice=advice))
        else:
            return True
        return False

    def _join(self, group: Sequence[SelectedServer], where: KeyPath, common: ShownAddress) -> None:
        found = group[0].found
        document, shape, name = document_of(found), found.file.shape, self._name
        servers = []
        for one in group:
            place = one.sighting.where
            inside = [kept for kept in one.found.kept if kept.path == one.sighting.path and _is_below(kept, place)]
            servers.append(LeavingEntry(self._joining(one), self._draft.value(document, place), place, inside))
        server = self._address.server(name, common, file=found.file, **self._way)
        there = [one for one in self._commons if (one.path, one.where[:-1]) == (document.path, where)]
        for sighting in there:
            former = self._draft.value(document, sighting.where)
            entry = joined(entry_for(server, shape, former), servers, found.file)
            change = FileChange(
                where=sighting.where, what=f"server {name}", old=_told(sighting.server), new=_told(server)
            )
            self._draft.enter(document, sighting.where, name, entry, change)
        for one in sorted(group, key=lambda one: str(one.sighting.where[-1]).zfill(9), reverse=True):
            place = one.sighting.where
            change = FileChange(where=place, what=f"server {one.key}", old=way_of(one))
            self._draft.enter(document, place, one.key, ABSENT, change)
        if not there:
            entry = joined(entry_for(server, shape), servers, found.file)
            self._enter(document, where, entry, _told(server))
        self._notes += lost_settings(group, entry)

    def _begin(self) -> None:
        """Put the entry where the client looks for servers: it has none that could show the place."""
        found = next((one for one in self._files if "*" not in one.file.key), None)
        file = found.file if found else self._new_kind()
        server = self._address.server(self._name, ShownAddress(), file=file, **self._way)
        if self._wish.entries == "one":
            fact = f"{file.title} has no servers of its own, so the entry shows all servers of the gateway"
            self._notes.append(PlanNote(kind="info", subject=self._name, fact=fact))
        if found is not None:
            document = document_of(found)
        else:
            path = file.target(self._machine)
            if path is None:
                raise _without_file(self._wish.client, file)
            document = Document.empty(path, file.format)
            for key, value in _HEADS.get(file.client, {}).items():
                self._draft.put(document, (key,), value)
        entry = entry_for(server, file.shape)
        if file.shape in _LISTED and self._draft.value(document, file.key) in (ABSENT, None):
            self._draft.put(document, file.key, [])
        self._enter(document, file.key, entry, _told(server))

    def _new_kind(self) -> ConfigFile:
        kinds = config_files(self._wish.client)
        usable_kinds = [
            kind
            for kind in kinds
            if kind.scope in self._wish.scopes and not kind.legacy and "*" not in kind.key and kind.format != "shell"
        ]
        if not usable_kinds:
            raise _without_file(self._wish.client, kinds[0] if kinds else None)
        return next((kind for kind in usable_kinds if kind.target(self._machine)), usable_kinds[0])

    def _enter(self, document: Document, where: KeyPath, entry: dict[str, Any], new: str) -> None:
        holder = self._draft.value(document, where)
        name = self._name
        listed = isinstance(holder, list)
        taken = any(isinstance(one, dict) and one.get("name") == name for one in holder) if listed else False
        if taken or (isinstance(holder, dict) and name in holder):
            raise cannot_edit(
                document.path, f"it has a server {excerpt(name)} already", "Choose another key with --name."
            )
        place = (*where, len(holder) if listed else name)
        self._draft.enter(document, place, name, entry, FileChange(where=place, what=f"server {name}", new=new))

    def _carry(self, moves: Sequence[NameMove], skipped: Sequence[SelectedServer]) -> None:
        """Respell the names that the client keeps, the last of a list first: one may become several."""
        gone = [(one.sighting.path, one.sighting.where) for one in skipped]
        for found in self._mine:
            for kept in sorted(found.kept, key=_place, reverse=True):
                if not any(kept.path == path and _is_below(kept, where) for path, where in gone):
                    self._carry_name(found, kept, moves)

    def _carry_name(self, found: FoundFile, kept: KeptName, moves: Sequence[NameMove]) -> None:
        texts, problem = carry(kept, moves)
        if texts != (kept.text,) and any(move.key == kept.server != move.new_key for move in moves):
            problem = problem or beyond_text(kept, _value(found))
        subject = f"{kept.text} in {kept.path}"
        if problem:
            fact = f"{excerpt(kept.text)} in {kept.path} stays as it is: {problem}"
            self._notes.append(PlanNote(kind="names", subject=subject, fact=fact, advice="Look at it by hand."))
        elif texts != (kept.text,):
            new = ", ".join(texts)
            if found.document is None or not self._can_respell(found):
                fact = f"{excerpt(kept.text)} in {kept.path} means nothing to this client any more"
                note = PlanNote(kind="names", subject=subject, fact=fact, advice=f"Write {new} there.")
                self._notes.append(note)
                return
            try:
                change = FileChange(where=kept.where, what=f"name {kept.text}", old=kept.text, new=new)
                self._draft.respell(found.document, kept, texts, change)
            except ValueError as error:
                fact = f"{excerpt(kept.text)} in {kept.path} could not be carried over: {error}"
                self._notes.append(PlanNote(kind="names", subject=subject, fact=fact, advice=f"Write {new} there."))

    def _can_respell(self, found: FoundFile) -> bool:
        is_mine = found.file.scope in self._wish.scopes or ".local." in found.path.name
        return is_mine and found.document is not None and found.file.format != "markdown"


def _told(server: ServerConfig) -> str:
    """Return the way to a server in one line, for people."""
    return server.url or " ".join([server.command or "", *server.args])


def _value(found: FoundFile) -> Any:
    return None if found.document is None else found.document.value


def _is_below(kept: KeptName, where: KeyPath) -> bool:
    return kept.where[: len(where)] == where


def _place(kept: KeptName) -> list[tuple[int, str, int]]:
    return [(0, "", step) if isinstance(step, int) else (1, step, 0) for step in kept.where]


def _without_file(client: str, file: ConfigFile | None) -> ConfigError:
    how = file.how if file is not None else ""
    return ConfigError(
        code="left_alone",
        file=client,
        key="",
        problem="it keeps its servers in no file that can be changed",
        remedy=how or "Add the gateway's address by hand.",
    )
