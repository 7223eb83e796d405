"""Build the list of shown names, including old names that are still listed after a rename.

Half of the clients refuse a name that is no longer listed, the others go on sending it. A rename therefore keeps the
old name listed until a day that the operator sets.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from truename.errors import ResolutionError, excerpt
from truename.identity import ToolId, fold
from truename.naming.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.ledger import Ledger
    from truename.naming.table import NameTable

__all__ = ["ListedName", "former_names", "listing", "renamed", "utc_today"]


def utc_today() -> date:
    """Return today's date in UTC, in which the last day of an old name is counted."""
    return datetime.now(UTC).date()


class ListedName(NamedTuple):
    """A listed name and its tool; for an old name also the present name (``now``) and its last day (``until``)."""

    name: str
    id: ToolId
    now: str = ""
    until: str = ""


def listing(names: NameTable, today: date) -> tuple[ListedName, ...]:
    """Return the names listed on a day, in fixed order: the table's names, and old names that are still listed.

    An old name keeps its place, and is listed only in tables that showed it. One that is not legal in this dialect, or
    has the fold of another listed name, is omitted; calls of it still resolve.

    >>> from datetime import date
    >>> from truename import Catalog, Ledger, project
    >>> ledger = Ledger.memory()
    >>> names = project(Catalog.of("files/list_all"), "openai", ledger=ledger)
    >>> ledger.redirect("ls", "files_list_all", until="2027-02-01")
    >>> [one.name for one in listing(names, date(2027, 2, 1))], [one.name for one in listing(names, date(2027, 2, 2))]
    (['files_list_all', 'ls'], ['files_list_all'])
    """
    present = [ListedName(name, id) for id, name in names.items()]
    ledger, former = names.ledger, former_names(names, today)
    if ledger is None or not former:
        return tuple(present)
    # An old name that another tool held keeps that tool's place, so that nothing else in the list moves.
    places = {one.name: ledger.holder(fold(one.name)) or one.id for one in former}
    order = {id: rank for rank, id in enumerate(ledger.pinned(dict.fromkeys((*names, *places.values()))))}
    return tuple(sorted([*present, *former], key=lambda one: (order[places.get(one.name, one.id)], one.now != "")))


def former_names(names: NameTable, today: date) -> list[ListedName]:
    """Return the old names that are listed on a day; nearly always there are none."""
    return [] if names.ledger is None else list(_former(names, names.ledger, today.isoformat()))


def renamed(definition: Mapping[str, object], listed: ListedName) -> Mapping[str, Any]:
    """Return a tool's definition for its old name: a copy whose description begins with a note on the rename.

    >>> old = ListedName("ls", ToolId.parse("files/list"), now="files_list", until="2027-02-01")
    >>> renamed({"name": "files_list", "description": "List files."}, old)["description"]
    "Renamed to 'files_list'; this name is listed until 2027-02-01. List files."
    """
    if not listed.now:
        return definition
    description = definition.get("description")
    sentence = f"Renamed to {excerpt(listed.now)}; this name is listed until {listed.until}."
    text = f"{sentence} {description}" if isinstance(description, str) and description else sentence
    return {**definition, "description": text}


def _former(names: NameTable, ledger: Ledger, today: str) -> Iterator[ListedName]:
    dialect, key = names.dialect, names.server_name
    due = list(_due(ledger, dialect.name, today))
    taken = {fold(name) for name in names.exact} if due else set()
    for old, until in due:
        try:
            id = resolve(old, names).id
        except ResolutionError:
            continue
        if id is None or fold(old) in taken or dialect.check(old, key):
            continue
        taken.add(fold(old))
        yield ListedName(old, id, names[id], until)


def _due(ledger: Ledger, table: str, today: str) -> Iterator[tuple[str, str]]:
    for name, standing in list(ledger.withdrawn.items()):
        if standing.until < today:
            continue
        if "/" in name:
            held = ledger.held(table).get(ToolId.parse(name))
            if held is not None:
                yield held, standing.until
        elif ledger.shown_in(name, table):
            yield name, standing.until
