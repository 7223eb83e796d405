"""Suggest that entries of clients and of Truename's configuration are one connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.clients.doctor.cases import identity
from truename.clients.doctor.file_findings import location_of
from truename.clients.doctor.rules import RULES
from truename.clients.find import ClientServer
from truename.config.connectors import ConfiguredEntry, alike
from truename.conventions import Finding
from truename.editing import value_at
from truename.errors import excerpt
from truename.policy.registry_names import REGISTRY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from truename.clients import FoundFile
    from truename.clients.doctor.cases import StartableServer
    from truename.conventions import Location

__all__ = ["check_connectors", "configured_in", "named_entries"]

_SHOWN: Final = 4
_REGISTRY_NAME: Final = "registry_name"


def check_connectors(files: Sequence[FoundFile], own: Iterable[StartableServer] = ()) -> Iterator[Finding]:
    """Yield a finding for each group of entries, in clients' files or our own, that are probably one connector."""
    for found, shared in alike(configured_in(files, own)):
        yield Finding(
            rule=RULES["probably_one_connector"],
            fact=f"{named_entries(found)} are probably one connector: {shared}.",
            remedy="Remove all but one, unless they are different accounts; nothing is merged.",
            location=found[-1].location,
            server=found[-1].server.key,
        )


def configured_in(files: Sequence[FoundFile], own: Iterable[StartableServer] = ()) -> list[ConfiguredEntry]:
    """Return the entries of clients' files that have a command or a URL, each once, and our own."""
    found = {
        (one.path, one.where): _configured(file, one)
        for file in files
        for one in file.servers
        if one.server.command is not None or one.server.url is not None
    }
    return [*found.values(), *(entry for one in own if (entry := _own(one)) is not None)]


def named_entries(entries: Sequence[ConfiguredEntry]) -> str:
    """Return the keys of entries with their files and lines, the first few of many."""
    shown = [f"{excerpt(one.server.key, 64)} ({_place(one.location)})" for one in entries[:_SHOWN]]
    if len(entries) > _SHOWN:
        return f"{', '.join(shown)} and {len(entries) - _SHOWN:,} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _own(one: StartableServer) -> ConfiguredEntry | None:
    if one.location is None or one.path is None:
        return None
    entry = ClientServer(client="", scope="user", path=one.path, where=(one.server.key,), server=one.server)
    return ConfiguredEntry(
        server=one.server,
        location=one.location,
        beside=str(one.path),
        same=identity(entry),
        registry_name=one.server.registry_name,
    )


def _place(location: Location) -> str:
    return f"{location.file}:{location.line}" if location.line else location.file


def _configured(file: FoundFile, one: ClientServer) -> ConfiguredEntry:
    entry = None if file.document is None else value_at(file.document.value, one.where)
    said = entry.get(_REGISTRY_NAME) if isinstance(entry, dict) else None
    return ConfiguredEntry(
        server=one.server,
        location=location_of(file, one.where),
        # Entries of two projects in one file are never used together.
        beside=(str(one.path), one.where[:-1]),
        same=identity(one),
        registry_name=said if isinstance(said, str) and REGISTRY_NAME.fullmatch(said) else None,
    )
