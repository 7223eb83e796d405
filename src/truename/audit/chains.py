"""Find the chains of an audit directory, and a chain for a writer: each writer has one of its own.

The first gateway of a state in a file writes its chain into the directory itself, others into folders of it that are
named after their machine. With a state that machines share, each has a folder.
"""

from __future__ import annotations

import re
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain as joined
from typing import TYPE_CHECKING, Final

from truename.audit.head import HEAD, anchor_file, segments
from truename.audit.log import AuditLog
from truename.errors import StoreError
from truename.files import absolute
from truename.files.private import make_private, open_plain, write_new

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.config.audit import Audit
    from truename.storage import StateLocation

__all__ = ["ChainPlace", "chains_of", "command_chain", "directory_id", "host_name", "open_chain"]

_ID_FILE: Final = "directory.id"
_ID: Final = re.compile(r"[0-9a-f]{32}")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,79}")
_MOST_WRITERS: Final = 1_000


@dataclass(frozen=True)
class ChainPlace:
    """The place of one chain: the audit directory, and the name of its folder there (``""``: the directory itself)."""

    directory: Path
    name: str = ""

    @property
    def path(self) -> Path:
        """The folder with the chain's files."""
        return self.directory / self.name if self.name else self.directory

    @property
    def anchor(self) -> Path:
        """The file in this user's state directory with the end of the chain."""
        return anchor_file(self.path)

    @cached_property
    def directory_id(self) -> str:
        """The id of the audit directory, "" if it has none."""
        return directory_id(self.directory)

    @cached_property
    def host(self) -> str:
        """The name of this machine."""
        return host_name()


def host_name() -> str:
    """Return the name of this machine, as the names of chains have it."""
    plain = re.sub(r"[^a-z0-9]+", "-", socket.gethostname().lower()).strip("-")[:60].strip("-")
    return plain or "machine"


def directory_id(path: Path) -> str:
    """Return the id of an audit directory, which moves and is copied with it; "" if it has none."""
    try:
        with open_plain(path / _ID_FILE) as file:
            found = file.read(64).decode("ascii", "replace").strip()
    except OSError:
        return ""
    return found if _ID.fullmatch(found) else ""


def make_directory_id(path: Path) -> None:
    """Give an audit directory its id, if it has none. A directory that cannot be written has none."""
    with suppress(OSError):
        make_private(path)
        write_new(path / _ID_FILE, f"{secrets.token_hex(16)}\n".encode())


def chains_of(directory: Path) -> tuple[ChainPlace, ...]:
    """Return the chains of an audit directory, that of the directory itself first. Raises `OSError`."""
    names = ("", *sorted(entry.name for entry in directory.iterdir() if _NAME.fullmatch(entry.name)))
    places = (ChainPlace(directory, name) for name in names)
    return tuple(place for place in places if place.path.is_dir() and _has_chain(place.path))


def _has_chain(path: Path) -> bool:
    return (path / HEAD).exists() or bool(segments(path))


def open_chain(settings: Audit, location: StateLocation) -> tuple[AuditLog, ChainPlace]:
    """Open the first chain that no other gateway writes, or a new one. Raises `StoreError`."""
    directory, key = settings.directory, None if settings.key is None else settings.key.encode()
    make_directory_id(directory)
    for place in _candidates(absolute(directory), location):
        try:
            return AuditLog(place.path, key, max_bytes=settings.max_segment, anchor=place.anchor), place
        except StoreError as error:
            if error.code != "busy":
                raise
            refused = error
    raise refused


def _candidates(directory: Path, location: StateLocation) -> Iterator[ChainPlace]:
    """Yield the places of chains for a gateway on this machine, in the order in which they are tried.

    On a file system that machines share, a lock may not reach the other machine: they never try the same place.
    """
    named = (ChainPlace(directory, f"{host_name()}-{number}") for number in range(1, _MOST_WRITERS))
    yield from joined(() if location.url is not None else (ChainPlace(directory),), named)


def command_chain(settings: Audit, location: StateLocation) -> tuple[AuditLog, ChainPlace]:
    """Open the chain of this machine's commands, to which several may append in turns. Raises `StoreError`."""
    directory, key = settings.directory, None if settings.key is None else settings.key.encode()
    make_directory_id(directory)
    place = ChainPlace(absolute(directory), "" if location.url is None else f"{host_name()}-commands")
    return AuditLog.beside(place.path, key, max_bytes=settings.max_segment, anchor=place.anchor), place
