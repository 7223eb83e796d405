"""The lock's word: definitions that people have reviewed (`truename.lock`) are pins before any was seen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from truename.config.watch import Watch
from truename.errors import ConfigError
from truename.migration import LOCK_FILE
from truename.migration.lock_file import read_lock
from truename.trust.book import Pinned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.catalog import Tool

    Digests = Mapping[tuple[str, str], str]

__all__ = ["BY_LOCK", "NOTHING_REVIEWED", "Reviewed", "pin_before"]

BY_LOCK: Final = LOCK_FILE
"""By whom a definition is trusted that the lock has, whatever the file is called."""
NOTHING_REVIEWED: Final[Digests] = MappingProxyType({})


class Reviewed:
    """The digests of a lock, by server's key and name; with None for a file there are none.

    Raises `ConfigError` for a lock that is not there or can't be read: what it should hold back would be trusted.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        # Before it is read: what is written meanwhile is news.
        self._watch = Watch(lambda: () if self._path is None else (self._path,))
        self.digests: Digests = NOTHING_REVIEWED if self._path is None else _read(self._path)

    @property
    def path(self) -> Path | None:
        """Where the lock is."""
        return self._path

    @property
    def unkeyed(self) -> int:
        """How many of its tools are of no server: no tool of a gateway is meant by them."""
        return sum(not server for server, _ in self.digests)

    def digest_of(self, tool: Tool) -> str | None:
        """Return what the lock says of a tool."""
        return self.digests.get((tool.origin.server_id, tool.origin.name))

    def refresh(self) -> bool:
        """Take in another lock once it is written, and tell whether it says anything else; a cheap look at the file.

        Raises `ConfigError`, once, for one that can't be read: what was read before counts on.
        """
        path = self._path
        if path is None or not self._watch.look():
            return False
        found = self._watch.read(lambda: _read(path))
        if found is None or found == self.digests:
            return False
        self.digests = found
        return True


def _read(path: Path) -> Digests:
    if not path.exists():
        remedy = f"Write it with `truename lock CONFIGURATION --file {path.name}`, or leave trust.lock out."
        raise ConfigError(file=str(path), key="", problem="there is no such lock", remedy=remedy)
    return MappingProxyType({pin.key: pin.digest for pin in read_lock(path).tools})


def pin_before(now: Pinned, kept: Pinned | None, reviewed: Digests) -> Pinned | None:
    """Return what a tool is held against: somebody's word, else the lock's, else what was there first.

    Its ``by`` says which. Of a definition that only the lock knows there is no more than the digest.
    """
    digest = None if now.id is None else reviewed.get((now.server, now.name))
    if digest is None or (kept is not None and kept.by not in {"", BY_LOCK}):
        return kept
    if kept is not None and kept.digest == digest:
        return replace(kept, by=BY_LOCK)
    return Pinned(id=now.id, server=now.server, name=now.name, digest=digest, content=None, at="", by=BY_LOCK)
