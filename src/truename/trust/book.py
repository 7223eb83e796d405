"""The book of pins: for each tool the definition that is trusted, and those that were seen since and wait for a word.

It is an SQLite file: several gateways and the command line write to it, each change whole or not at all. One that is
damaged is not begun anew: what it held was trusted, and nothing would tell a changed tool from a new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.errors import InvalidToolId
from truename.identity import ToolId, definition_digest
from truename.state import Schema, StateFile

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self

__all__ = ["PinBook", "Pinned", "Seen", "digest_of"]

Word = Literal["waiting", "rejected"]

# A key is a tool's id, or for a server's instructions the server's key behind a word that begins no id.
_PINS: Final = """
CREATE TABLE pin (
    key TEXT PRIMARY KEY, server TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, content TEXT NOT NULL,
    at TEXT NOT NULL, by TEXT NOT NULL
)
"""
_SEEN: Final = """
CREATE TABLE seen (
    key TEXT NOT NULL, digest TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL,
    word TEXT NOT NULL CHECK (word IN ('waiting', 'rejected')), at TEXT NOT NULL, by TEXT NOT NULL,
    PRIMARY KEY (key, digest)
)
"""
_SCHEMA: Final = Schema(1, (_PINS, _SEEN))
_NOTED: Final[Mapping[Word, str]] = {
    "waiting": "INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
    "rejected": "INSERT INTO seen VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO UPDATE SET word = excluded.word, at = excluded.at, by = excluded.by",
}
_TIDIED: Final = """
DELETE FROM seen WHERE key = ? AND rowid NOT IN
    (SELECT rowid FROM seen WHERE key = ? ORDER BY word = 'rejected' DESC, at DESC, rowid DESC LIMIT ?)
"""
_FOLLOWED: Final = (
    "INSERT OR IGNORE INTO pin SELECT ?, server, name, digest, content, at, by FROM pin WHERE key = ?",
    "INSERT OR IGNORE INTO seen SELECT ?, digest, server, name, content, word, at, by FROM seen WHERE key = ?",
)
# Of one tool: a server that says something new each time fills no disk.
_MOST_SEEN: Final = 20
_LONGEST: Final = 1024 * 1024
_SERVER: Final = "server:"


@dataclass(frozen=True, kw_only=True)
class Pinned:
    """What is trusted: a tool's definition (or, where ``id`` is None, a server's instructions), since when, by whom.

    ``by`` is "" where it was trusted because it was there first.
    """

    id: ToolId | None
    server: str
    name: str
    digest: str
    content: Any
    at: str
    by: str = ""

    @property
    def key(self) -> str:
        """Under what it is kept."""
        return _SERVER + self.server if self.id is None else str(self.id)


@dataclass(frozen=True, kw_only=True)
class Seen(Pinned):
    """What was seen instead of it, or before it was trusted: it waits for a word, or was rejected."""

    word: Word = "waiting"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class PinBook:
    """The pins of one gateway, in a file that processes share; None is a book that ends with its process.

    All methods raise `StoreError`: ``corrupt``, ``newer`` (of a later version), ``busy``, ``unusable``. May be used
    from several threads.
    """

    def __init__(self, path: str | Path | None = None, *, now: Callable[[], str] = _now) -> None:
        self._file = StateFile(path, _SCHEMA)
        self._now = now
        self._known: dict[tuple[Any, ...], Pinned] = {}
        self._pins: dict[str, Pinned] = {}
        self._seen: dict[tuple[str, str], Seen] = {}
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path | None:
        """Where it is kept."""
        return self._file.path

    def refresh(self) -> bool:
        """Take in what other processes wrote, and tell whether there was anything: a cheap look at the file."""
        if not self._file.has_news():
            return False
        self._read()
        return True

    def has_news(self) -> bool:
        """Tell, without taking it in and without waiting, whether another process wrote something."""
        return self._file.is_behind()

    def _read(self) -> None:
        # Each row is proved once: a book has thousands, and a word changes one.
        known, self._known = self._known, {}
        for row in self._file.rows("SELECT * FROM pin"):
            self._known[row] = known.get(row) or self._pin(row)
        self._pins = {pin.key: pin for pin in self._known.values()}
        found = map(self._waiting, self._file.rows("SELECT * FROM seen ORDER BY at, rowid"))
        self._seen = {(one.key, one.digest): one for one in found}

    def pins(self) -> Mapping[str, Pinned]:
        """Return all that is trusted, by its key."""
        return self._pins

    def seen(self) -> Mapping[tuple[str, str], Seen]:
        """Return what was seen besides, by key and digest, in the order of its coming."""
        return self._seen

    def trust(self, what: Iterable[Pinned], *, by: str = "") -> None:
        """Pin these, in the place of what was pinned before; they wait no longer.

        Without anybody's word (``by``) those are left out about which another process wrote since this one looked.
        """
        at = self._now()
        rows = [(one.key, one.server, one.name, one.digest, self._written(one), at, by) for one in what]
        with self._change() as data:
            if not by:
                rows = [row for row in rows if self._is_as_read(data, row[0], row[3])]
            data.executemany("INSERT OR REPLACE INTO pin VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            data.executemany("DELETE FROM seen WHERE key = ? AND digest = ?", [(row[0], row[3]) for row in rows])
            if by:
                # Who said a word saw what waited. What is offered still, comes again.
                data.executemany("DELETE FROM seen WHERE key = ? AND word = 'waiting'", [row[:1] for row in rows])

    def note(self, what: Iterable[Pinned], word: Word = "waiting", *, by: str = "") -> None:
        """Write down what was seen instead of a pin; one that was seen before keeps its word unless it is rejected.

        Of each tool the last 20 are kept.
        """
        at = self._now()
        rows = [(one.key, one.digest, one.server, one.name, self._written(one), word, at, by) for one in what]
        with self._change() as data:
            data.executemany(_NOTED[word], rows)
            for key in {row[0] for row in rows}:
                data.execute(_TIDIED, (key, key, _MOST_SEEN))

    def follow(self, moves: Iterable[tuple[ToolId, ToolId]]) -> None:
        """Have tools keep their pins, and what was said of them, under new ids, ``(old, new)``.

        What a new id has already stays. The old ids keep theirs: another gateway may go by them still.
        """
        rows = [(str(new), str(old)) for old, new in moves]
        with self._change() as data:
            for statement in _FOLLOWED:
                data.executemany(statement, rows)

    def forget(self, keys: Iterable[str]) -> None:
        """Forget all about these: what comes next is trusted because it is there first."""
        rows = [(key,) for key in keys]
        with self._change() as data:
            data.executemany("DELETE FROM pin WHERE key = ?", rows)
            data.executemany("DELETE FROM seen WHERE key = ?", rows)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        with self._file.change() as data:
            yield data
        self._read()

    def _is_as_read(self, data: sqlite3.Connection, key: str, digest: str) -> bool:
        pinned = data.execute("SELECT digest FROM pin WHERE key = ?", (key,)).fetchone()
        word = data.execute("SELECT word FROM seen WHERE key = ? AND digest = ?", (key, digest)).fetchone()
        before, seen = self._pins.get(key), self._seen.get((key, digest))
        return (pinned, word) == (before and (before.digest,), seen and (seen.word,))

    def _pin(self, row: tuple[Any, ...]) -> Pinned:
        key, server, name, digest, content, at, by = row
        return Pinned(server=server, name=name, at=at, by=by, **self._checked(key, server, digest, content))

    def _waiting(self, row: tuple[Any, ...]) -> Seen:
        key, digest, server, name, content, word, at, by = row
        return Seen(server=server, name=name, at=at, by=by, word=word, **self._checked(key, server, digest, content))

    def _checked(self, key: str, server: str, digest: str, content: str) -> dict[str, Any]:
        """Read a row strictly: a definition that is not of its digest would be shown as if it had been trusted."""
        try:
            id = None if key == _SERVER + server else ToolId.parse(key)
            read = json.loads(content)
        except (InvalidToolId, ValueError, RecursionError):
            self._file.refuse(f"the entry {key!r} is none")
        if read is not None and digest_of(read) != digest:
            self._file.refuse(f"the definition of {key!r} is not the one that was trusted")
        return {"id": id, "digest": digest, "content": read}

    @staticmethod
    def _written(one: Pinned) -> str:
        try:
            content = json.dumps(one.content, ensure_ascii=True, separators=(",", ":"))
        except (ValueError, RecursionError, TypeError):
            return "null"
        # Without it the digest still tells that something changed, though not what.
        return content if len(content) <= _LONGEST and digest_of(json.loads(content)) == one.digest else "null"


def digest_of(content: object) -> str:
    """Return the digest of a definition, or of a text as if it were a description."""
    return definition_digest(content if isinstance(content, Mapping) else {"description": content})
