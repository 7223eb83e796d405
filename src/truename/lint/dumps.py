"""Read the tools of a dump as declarations, each with its position in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from truename.catalog.admit import entries_of
from truename.catalog.read import read_listings
from truename.conventions import Declaration, Finding, Location, metadata_of
from truename.errors import ConfigError, excerpt
from truename.lint.rules import UPKEEP

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["parse_declarations", "places_of", "read_dump", "unreadable_file_finding"]

_DECODER: Final = json.JSONDecoder()
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_NAME: Final = "name"
_INNER: Final = ("result", "tools")
_DEEPEST: Final = 8

# A name, and the offset of its first character.
Place = tuple[object, int]


def places_of(text: str) -> list[tuple[object, int, int]]:
    """Return the entries of a dump in order, each with its name, line and column.

    The formats are those of the dump reader. A broken text has no entries.
    """
    try:
        found = sorted(_whole(text), key=lambda place: place[1])
    except (ValueError, RecursionError, IndexError):
        return []
    entries: list[tuple[object, int, int]] = []
    line, start = 1, 0
    for name, offset in found:
        line += text.count("\n", start, offset)
        start = offset
        entries.append((name, line, offset - text.rfind("\n", 0, offset)))
    return entries


def _whole(text: str) -> Iterator[Place]:
    start = _skip(text, 0)
    _, end = _DECODER.raw_decode(text, start)
    yield from _entry_positions(text, start)
    start = _skip(text, end)
    # JSONL: one document on each line.
    while start < len(text):
        _, end = _DECODER.raw_decode(text, start)
        yield from _entry_positions(text, start)
        start = _skip(text, end)


def _entry_positions(text: str, start: int, depth: int = 0) -> Iterator[Place]:
    """Yield the entries in the value at this offset: one entry, or lists and objects that contain some."""
    if depth > _DEEPEST or text[start] not in "{[":
        return
    if text[start] == "[":
        for item in _items(text, start):
            if text[item] == '"':
                yield _DECODER.raw_decode(text, item)[0], item + 1
            elif text[item] == "{" and not any(key in _INNER for key, _ in _members(text, item)):
                yield _named(text, item)
            else:
                yield from _entry_positions(text, item, depth + 1)
        return
    members = dict(_members(text, start))
    inner = next((members[key] for key in _INNER if key in members), None)
    if inner is not None:
        yield from _entry_positions(text, inner, depth + 1)
    elif _NAME in members and text[members[_NAME]] == '"':
        yield _named(text, start)
    else:
        for value in members.values():
            yield from _entry_positions(text, value, depth + 1)


def _named(text: str, start: int) -> Place:
    at = dict(_members(text, start)).get(_NAME)
    if at is None or text[at] != '"':
        return None, start
    return _DECODER.raw_decode(text, at)[0], at + 1


def _items(text: str, start: int) -> Iterator[int]:
    offset = _skip(text, start + 1)
    while text[offset] != "]":
        yield offset
        _, end = _DECODER.raw_decode(text, offset)
        offset = _after_comma(text, end)


def _members(text: str, start: int) -> Iterator[tuple[str, int]]:
    offset = _skip(text, start + 1)
    while text[offset] != "}":
        key, end = _DECODER.raw_decode(text, offset)
        value = _skip(text, _skip(text, end) + 1)
        yield key, value
        _, end = _DECODER.raw_decode(text, value)
        offset = _after_comma(text, end)


def _after_comma(text: str, offset: int) -> int:
    offset = _skip(text, offset)
    return _skip(text, offset + 1) if text[offset] == "," else offset


def _skip(text: str, offset: int) -> int:
    found = _BLANK.match(text, offset)
    return found.end() if found else offset


Found = tuple[list[Declaration], list[Finding]]

_PLACE: Final = re.compile(r"line (\d{1,9}), column (\d{1,9})")
# Locations are not computed for larger dumps.
_MOST_PLACED: Final = 16 * 1024 * 1024
_PACKED: Final = b"\x1f\x8b"


def read_dump(path: Path, file: str) -> Found:
    """Read a dump. An unreadable dump or an entry without a name becomes a finding; nothing is raised."""
    try:
        listings = read_listings(path)
    except ConfigError as error:
        return [], [unreadable_file_finding(error, file)]
    places = _places(path)
    return parse_declarations(listings, file, places)


def parse_declarations(
    listings: Sequence[tuple[str, Any]], file: str, places: Sequence[tuple[object, int, int]] = ()
) -> Found:
    """Return the declarations in the lists of servers, by label, and findings for entries without a name.

    ``places`` are names with their lines and columns, in the order of the entries.
    """
    entries = [(str(server), entry) for server, listing in listings for entry in entries_of(listing) or ()]
    fits = len(places) == len(entries)
    declarations: list[Declaration] = []
    findings: list[Finding] = []
    for number, (server, given) in enumerate(entries):
        entry = given.model_dump(by_alias=True, exclude_none=True) if hasattr(given, "model_dump") else given
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
            finding = Finding(
                rule=UPKEEP["unreadable_source"],
                fact=f"Server {excerpt(server)} lists a tool whose name is not a string.",
                remedy="Name it, or remove it from the list; no client can call it.",
                location=location,
                server=server,
            )
            findings.append(finding)
    return declarations, findings


def unreadable_file_finding(error: ConfigError, file: str) -> Finding:
    """Return the finding for an unreadable file, at the line that the error names."""
    place = _PLACE.fullmatch(error.key)
    line, column = (int(place[1]), int(place[2])) if place else (0, 0)
    where = f" at {error.key}" if error.key and place is None else ""
    return Finding(
        rule=UPKEEP["unreadable_source"],
        fact=f"The file is not readable: {error.problem}{where}.",
        remedy=error.remedy,
        location=Location(file=file, line=line, column=column),
    )


def _places(path: Path) -> Sequence[tuple[object, int, int]]:
    try:
        if path.stat().st_size > _MOST_PLACED:
            return ()
        raw = path.read_bytes()
        return () if raw.startswith(_PACKED) else places_of(raw.decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError):
        return ()
