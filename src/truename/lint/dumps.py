"""The tools of a dump as declarations: every entry of every list, admissible or not, twice or not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.catalog.admit import entries_of
from truename.catalog.read import read_listings
from truename.conventions import Declaration, Finding, Location, metadata_of
from truename.errors import ConfigError, excerpt
from truename.lint.positions import places_of
from truename.lint.upkeep import UPKEEP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["declared_by", "fault_of", "read_dump"]

Found = tuple[list[Declaration], list[Finding]]

_PLACE: Final = re.compile(r"line (\d{1,9}), column (\d{1,9})")
# A dump that is larger is read for its tools; where in it a name stands is of no use to anybody.
_MOST_PLACED: Final = 16 * 1024 * 1024
_PACKED: Final = b"\x1f\x8b"


def read_dump(path: Path, file: str) -> Found:
    """Read a dump. What can't be read is a finding, and so is an entry that has no name; it raises nothing."""
    try:
        listings = read_listings(path)
    except ConfigError as error:
        return [], [fault_of(error, file)]
    places = _places(path)
    return declared_by(listings, file, places)


def declared_by(listings: Sequence[tuple[str, Any]], file: str, places: Sequence[tuple[Any, int, int]] = ()) -> Found:
    """Return the declarations of the lists of servers, by label, and findings for entries without a name.

    ``places`` are names with their lines and columns, in the order of the entries.
    """
    entries = list(_entries(listings))
    fits = len(places) == len(entries)
    declarations: list[Declaration] = []
    findings: list[Finding] = []
    for number, (server, entry) in enumerate(entries):
        definition = entry if isinstance(entry, Mapping) else {"name": entry}
        name = definition.get("name")
        location = Location(file=file, key=server)
        if fits and places[number][0] == (name if isinstance(name, str) else None):
            location = Location(file=file, line=places[number][1], column=places[number][2], key=server)
        if isinstance(name, str):
            metadata = metadata_of(definition)
            declarations.append(
                Declaration(name=name, server=server, definition=definition, metadata=metadata, location=location)
            )
        else:
            findings.append(_nameless(server, location))
    return declarations, findings


def _entries(listings: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for server, listing in listings:
        for entry in entries_of(listing) or ():
            plain = hasattr(entry, "model_dump")
            yield str(server), entry.model_dump(by_alias=True, exclude_none=True) if plain else entry


def _nameless(server: str, location: Location) -> Finding:
    return Finding(
        rule=UPKEEP["unreadable_source"],
        fact=f"Server {excerpt(server)} lists a tool whose name is no text.",
        remedy="Give it a name, or take it out of the list; no client can call it.",
        location=location,
        server=server,
    )


def fault_of(error: ConfigError, file: str) -> Finding:
    """Return the finding that a file can't be read, at the line that its fault names."""
    place = _PLACE.fullmatch(error.key)
    line, column = (int(place[1]), int(place[2])) if place else (0, 0)
    where = f" at {error.key}" if error.key and place is None else ""
    return Finding(
        rule=UPKEEP["unreadable_source"],
        fact=f"The file can't be read: {error.problem}{where}.",
        remedy=error.remedy,
        location=Location(file=file, line=line, column=column),
    )


def _places(path: Path) -> Sequence[tuple[Any, int, int]]:
    try:
        if path.stat().st_size > _MOST_PLACED:
            return ()
        raw = path.read_bytes()
        return () if raw.startswith(_PACKED) else places_of(raw.decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return ()
