"""Putting the gateway into a client's own configuration: what that changes, planned before anything is touched.

By default each server of the client that the gateway has too keeps its key and goes to the gateway's address for that
server alone, where tools keep their own names: permissions and skills go on working. With ``one`` they all make room
for a single entry.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.clients.address import entry_for
from truename.clients.carrying import Move, beyond_text, carry
from truename.clients.choosing import OWN_SCOPES, Choice, Taken, choose, document_of, doubtful_forms, secrets_of, usable
from truename.clients.drafting import Draft
from truename.clients.foreseen import foreseen, to_know, unforeseen
from truename.clients.joining import Leaving, joined
from truename.clients.plan import Change, Note, Plan
from truename.clients.searching import crowded, lists_about, restricted, searched_beside_lists
from truename.clients.shapes import speaks_http
from truename.clients.table import config_files
from truename.clients.telling import lost_settings, other_files, stdio_notes, token_notes, way_of
from truename.documents import ABSENT, Document, Where, left_alone
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.clients.address import Address
    from truename.clients.find import Found
    from truename.clients.kept import KeptName
    from truename.clients.machine import Machine
    from truename.clients.table import ConfigFile
    from truename.clients.upcoming import NewNames

__all__ = ["Wish", "plan_connection"]

_REFUSING: Final = frozenset({"deny", "without"})
# Forms in which servers are a list, and not an object by their keys.
_LISTED: Final = frozenset({"continue", "vibe"})
# What a client wants at the top of a file that is new.
_HEADS: Final[dict[str, dict[str, Any]]] = {"continue": {"name": "Truename", "version": "1.0.0", "schema": "v1"}}


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is asked for: which client, one entry or one for each server, over what, under which key, in which files.

    ``search`` is whether its addresses search the tools.
    """

    client: str
    one: bool = False
    stdio: bool = False
    search: bool = False
    name: str = "tn"
    scopes: frozenset[str] = OWN_SCOPES


def plan_connection(machine: Machine, found: Iterable[Found], address: Address, wish: Wish, names: NewNames) -> Plan:
    """Return what to change in the files of one client; nothing is changed.

    ``names`` are the names at the new address, by the gateway's key of each server, as far as they are known.
    Raises `ConfigError` for a file that can't be used, a key that is taken, a client that keeps no file, and one with
    lists of tools that a search would go around.
    """
    mine = [one for one in found if one.file.client == wish.client]
    files = usable(mine, wish.scopes)
    choice = choose(files, address, machine)
    making = _Making(machine=machine, mine=mine, files=files, address=address, wish=wish, names=names, choice=choice)
    making.require_no_lists()
    return making.together() if wish.one else making.each()


class _Making:
    """One plan in the making."""

    def __init__(
        self,
        *,
        machine: Machine,
        mine: Sequence[Found],
        files: Sequence[Found],
        address: Address,
        wish: Wish,
        names: NewNames,
        choice: Choice,
    ) -> None:
        self._machine, self._mine, self._files = machine, mine, files
        self._address, self._wish, self._names, self._choice = address, wish, names, choice
        self._way = {"stdio": wish.stdio, "search": wish.search}
        self._is_searched = wish.search or address.config.settings.tool_search != "off"
        self._lists = tuple(lists_about(mine, choice))
        self._draft = Draft()
        self._notes = [*choice.notes, *doubtful_forms(files)]

    def require_no_lists(self) -> None:
        """Raise `ConfigError` where tools would be searched, and the client keeps lists of tools."""
        if self._is_searched and self._lists:
            raise searched_beside_lists(self._wish.client, self._lists, is_asked=self._wish.search)

    def each(self) -> Plan:
        """Give each server the address of its own."""
        taken = self._choice.taken
        for one in taken:
            server = self._address.server(one.key, one.upstream, file=one.found.file, **self._way)
            document, where = document_of(one.found), one.sighting.where
            entry = entry_for(server, one.found.file.shape, self._draft.value(document, where))
            what = f"server {one.key}"
            new = server.url or f"{server.command} {' '.join(server.args)}"
            change = Change(where=where, what=what, old=way_of(one), new=new)
            self._draft.enter(document, where, one.key, entry, change)
        self._carry([self._move(one, one.key) for one in taken], skipped=())
        self._notes += unforeseen(
            dict.fromkeys(one.key for one in taken if one.upstream not in self._names), answers=self._address.answers
        )
        return self._plan(taken, self._names_by_key())

    def together(self) -> Plan:
        """Give all servers one entry, in each place where there were any; in a client without one where it looks."""
        taken = [one for one in self._choice.taken if self._is_known(one)]
        containers: defaultdict[tuple[Any, Where], list[Taken]] = defaultdict(list)
        for one in taken:
            containers[one.sighting.path, one.sighting.where[:-1]].append(one)
        for (_, where), group in containers.items():
            self._join(group, where)
        if not self._choice.taken and not self._choice.already:
            self._begin()
        self._carry([self._move(one, self._wish.name) for one in taken], skipped=taken)
        everything = [wire for names in self._names.values() for wire in names.values()]
        return self._plan(taken, {self._wish.name: everything})

    def _names_by_key(self) -> dict[str, Iterable[str]]:
        """Return the names that the client is going to see, by its own key of each server at the gateway."""
        there = [(one.server.key, self._address.upstream(one.server)) for one in self._choice.already]
        upstreams = {key: one for key, one in there if one is not None}
        upstreams |= {one.key: one.upstream for one in self._choice.taken}
        return {key: self._names[one].values() for key, one in upstreams.items() if one in self._names}

    def _plan(self, taken: Sequence[Taken], shown: Mapping[str, Iterable[str]]) -> Plan:
        kinds = config_files(self._wish.client)
        steps = tuple(self._draft.steps())
        if steps:
            is_http = not self._wish.stdio and any(speaks_http(kind.shape) for kind in kinds)
            self._notes += token_notes(kinds, self._address) if is_http else stdio_notes(kinds)
        if kinds:
            self._notes += foreseen(kinds[0].dialect, shown, one=self._wish.one)
            if not self._is_searched:
                number = sum(len(tuple(names)) for names in shown.values())
                self._notes += crowded(kinds[0].dialect, number, has_lists=bool(self._lists))
        self._notes += other_files(self._mine, self._files)
        reload = next((one.found.file.reload for one in taken), kinds[0].reload if kinds else "")
        return Plan(
            client=self._wish.client,
            title=kinds[0].title if kinds else self._wish.client,
            steps=steps,
            notes=tuple(dict.fromkeys(self._notes)),
            servers=tuple(dict.fromkeys(one.key for one in taken)),
            already=tuple(dict.fromkeys(one.server.key for one in self._choice.already)),
            reload=reload,
            secrets=frozenset(secrets_of(sighting.server for one in self._mine for sighting in one.servers)),
        )

    def _move(self, one: Taken, new_key: str) -> Move:
        places = {(other.sighting.path, other.sighting.where) for other in self._choice.taken}
        stays = new_key != one.key and any(
            sighting.server.key == one.key and (sighting.path, sighting.where) not in places
            for found in self._mine
            for sighting in found.servers
        )
        names = self._names.get(one.upstream)
        return Move(key=one.key, new_key=new_key, names=names, stays=stays, dialect=one.found.file.dialect)

    def _is_known(self, one: Taken) -> bool:
        """Tell whether a server may go into the one entry: nothing that its client keeps about it would be lost."""
        move = self._move(one, self._wish.name)
        about = [kept for found in self._mine for kept in found.kept if carry(kept, [move]) != ((kept.text,), "")]
        refused = [kept for kept in about if kept.tool is None and kept.effect in _REFUSING]
        if refused:
            fact = f"{excerpt(one.key)} is refused by {refused[0].path}, so it stays as it is"
            self._notes.append(Note(kind="left", subject=one.key, fact=fact))
        elif (about or restricted(one.found, one.sighting)) and move.names is None:
            fact = f"{excerpt(one.key)} stays as it is: names of its tools are kept, and which it has is not known"
            to_do = to_know(answers=self._address.answers)
            advice = f"{to_do[:1].upper()}{to_do[1:]}, or give a list of them (--catalog DUMP)."
            self._notes.append(Note(kind="left", subject=one.key, fact=fact, advice=advice))
        else:
            return True
        return False

    def _join(self, group: Sequence[Taken], where: Where) -> None:
        found = group[0].found
        document, shape, name = document_of(found), found.file.shape, self._wish.name
        servers = []
        for one in group:
            place = one.sighting.where
            inside = [kept for kept in one.found.kept if kept.path == one.sighting.path and _is_below(kept, place)]
            servers.append(Leaving(self._move(one, name), self._draft.value(document, place), place, inside))
        for one in sorted(group, key=lambda one: str(one.sighting.where[-1]).zfill(9), reverse=True):
            place = one.sighting.where
            change = Change(where=place, what=f"server {one.key}", old=way_of(one))
            self._draft.enter(document, place, one.key, ABSENT, change)
        server = self._address.server(name, None, file=found.file, **self._way)
        if any(one.path == document.path and one.where[:-1] == where for one in self._choice.already):
            return
        entry = joined(entry_for(server, shape), servers, found.file)
        self._enter(document, where, entry, server.url or f"{server.command} {' '.join(server.args)}")
        self._notes += lost_settings(group, entry)

    def _begin(self) -> None:
        """Put the entry where the client looks for servers: it has none that could show the place."""
        found = next((one for one in self._files if "*" not in one.file.key), None)
        file = found.file if found else self._new_kind()
        server = self._address.server(self._wish.name, None, file=file, **self._way)
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
        self._enter(document, file.key, entry, server.url or str(server.command))

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

    def _enter(self, document: Document, where: Where, entry: dict[str, Any], new: str) -> None:
        holder = self._draft.value(document, where)
        name = self._wish.name
        listed = isinstance(holder, list)
        taken = any(isinstance(one, dict) and one.get("name") == name for one in holder) if listed else False
        if taken or (isinstance(holder, dict) and name in holder):
            raise left_alone(
                document.path, f"it has a server {excerpt(name)} already", "Choose another key with --name."
            )
        place = (*where, len(holder) if listed else name)
        self._draft.enter(document, place, name, entry, Change(where=place, what=f"server {name}", new=new))

    def _carry(self, moves: Sequence[Move], skipped: Sequence[Taken]) -> None:
        """Respell the names that the client keeps, the last of a list first: one may become several."""
        gone = [(one.sighting.path, one.sighting.where) for one in skipped]
        for found in self._mine:
            for kept in sorted(found.kept, key=_place, reverse=True):
                if not any(kept.path == path and _is_below(kept, where) for path, where in gone):
                    self._carry_name(found, kept, moves)

    def _carry_name(self, found: Found, kept: KeptName, moves: Sequence[Move]) -> None:
        texts, problem = carry(kept, moves)
        if texts != (kept.text,) and any(move.key == kept.server != move.new_key for move in moves):
            problem = problem or beyond_text(kept, None if found.document is None else found.document.value)
        subject = f"{kept.text} in {kept.path}"
        if problem:
            fact = f"{excerpt(kept.text)} in {kept.path} stays as it is: {problem}"
            self._notes.append(Note(kind="names", subject=subject, fact=fact, advice="Look at it by hand."))
        elif texts != (kept.text,):
            new = ", ".join(texts)
            if found.document is None or found.file.format == "markdown" or not self._is_mine(found):
                fact = f"{excerpt(kept.text)} in {kept.path} means nothing to this client any more"
                note = Note(kind="names", subject=subject, fact=fact, advice=f"Write {new} there.")
                self._notes.append(note)
                return
            try:
                change = Change(where=kept.where, what=f"name {kept.text}", old=kept.text, new=new)
                self._draft.respell(found.document, kept, texts, change)
            except ValueError as error:
                fact = f"{excerpt(kept.text)} in {kept.path} could not be carried over: {error}"
                self._notes.append(Note(kind="names", subject=subject, fact=fact, advice=f"Write {new} there."))

    def _is_mine(self, found: Found) -> bool:
        return found.file.scope in self._wish.scopes or ".local." in found.path.name


def _is_below(kept: KeptName, where: Where) -> bool:
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
