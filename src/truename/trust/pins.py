"""Store pins: for each tool the trusted definition, those seen since, and those reviewed in `truename.lock`.

What is on record about a tool is read, and proved, when it is asked for: a gateway with thirty tools starts as fast
with a million pins of former ones.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from truename.config.watch import Watch
from truename.errors import ConfigError, InvalidToolId, StoreError
from truename.identity import ToolId, definition_digest
from truename.storage import (
    Schema,
    SharedStore,
    StateLocation,
    Transaction,
    import_tables,
    in_parts,
    insert,
    open_database,
    select,
    upsert,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from truename.catalog import Tool, Unfolded

K = TypeVar("K")
V = TypeVar("V")
Digests = Mapping[tuple[str, str], str]

__all__ = [
    "BY_LOCK",
    "NOTHING_REVIEWED",
    "SCHEMA",
    "KeptDefinitions",
    "PinRecord",
    "PinStore",
    "PinnedTool",
    "ReviewedDefinitions",
    "SeenDefinition",
    "check_pins",
    "digest_of",
    "pin_before",
]

Word = Literal["waiting", "rejected"]

# A key is a tool's id, or for a server's instructions the server's key behind a word that begins no id.
_PINS: Final = """
CREATE TABLE pin (
    key TEXT PRIMARY KEY, server TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, content TEXT NOT NULL,
    at TEXT NOT NULL, by TEXT NOT NULL
)
"""
_SEEN: Final = """
CREATE TABLE pin_seen (
    key TEXT NOT NULL, digest TEXT NOT NULL, server TEXT NOT NULL, name TEXT NOT NULL, content TEXT NOT NULL,
    word TEXT NOT NULL CHECK (word IN ('waiting', 'rejected')), at TEXT NOT NULL, by TEXT NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (key, digest)
)
"""
# By the index those that wait are counted.
SCHEMA: Final = Schema("pin", ((_PINS, _SEEN), ("CREATE INDEX pin_seen_word ON pin_seen (word)",)))
_import_former: Final = partial(import_tables, names={"pin": ("pin",), "pin_seen": ("pin_seen", "seen")})
_PIN_COLUMNS: Final = ("server", "name", "digest", "content", "at", "by")
_SEEN_COLUMNS: Final = ("key", "digest", "server", "name", "content", "word", "at", "by")
# A pin has no word and no number. Both tables are read in one statement, so that a definition which is accepted
# meanwhile is seen either before or after that.
_OF_PINS: Final = "SELECT key, digest, server, name, content, '' AS word, at, by, 0 AS number FROM pin"
_OF_SEEN: Final = "SELECT key, digest, server, name, content, word, at, by, number FROM pin_seen"
_ALL: Final = f"{_OF_PINS} UNION ALL {_OF_SEEN}"
_ANY: Final = select("pin", ("key",), then="LIMIT 1")
_WAITING: Final = "SELECT count(*) FROM pin_seen WHERE word = 'waiting'"
_OLDEST_WAITING: Final = (
    "SELECT key FROM pin_seen WHERE word = 'waiting' GROUP BY key ORDER BY min(at), min(number) LIMIT ?"
)
_NEXT_NUMBER: Final = "SELECT coalesce(max(number), 0) + 1 FROM pin_seen"
_NOTED: Final[Mapping[Word, str]] = {
    "waiting": insert("pin_seen", (*_SEEN_COLUMNS, "number"), "ON CONFLICT (key, digest) DO NOTHING"),
    "rejected": insert(
        "pin_seen",
        (*_SEEN_COLUMNS, "number"),
        "ON CONFLICT (key, digest) DO UPDATE SET word = excluded.word, at = excluded.at, by = excluded.by",
    ),
}
_UNSEEN: Final = "DELETE FROM pin_seen WHERE key = ? AND digest = ?"
_NONE_WAITS: Final = "DELETE FROM pin_seen WHERE key = ? AND word = 'waiting'"
_SEEN_AS: Final = "SELECT word, at, by FROM pin_seen WHERE key = ? AND digest = ?"
_PINNED_AS: Final = "SELECT digest, at, by FROM pin WHERE key = ?"
_TIDIED: Final = """
DELETE FROM pin_seen WHERE key = ? AND digest NOT IN
    (SELECT digest FROM pin_seen WHERE key = ? ORDER BY word = 'rejected' DESC, at DESC, number DESC LIMIT ?)
"""
_PIN: Final = upsert("pin", ("key",), _PIN_COLUMNS)
_FOLLOWED: Final = (
    """
INSERT INTO pin (key, server, name, digest, content, at, by)
SELECT ?, server, name, digest, content, at, by FROM pin WHERE key = ? ON CONFLICT DO NOTHING
""",
    """
INSERT INTO pin_seen (key, digest, server, name, content, word, at, by, number)
SELECT ?, digest, server, name, content, word, at, by, number FROM pin_seen WHERE key = ?
ON CONFLICT DO NOTHING
""",
)
# Of one tool: a server that says something new each time fills no disk.
_MOST_SEEN: Final = 20
_LONGEST: Final = 1024 * 1024
_SERVER: Final = "server:"


@dataclass(frozen=True, kw_only=True)
class PinnedTool:
    """A trusted definition of a tool (if ``id`` is None: a server's instructions), since when, and by whom.

    ``by`` is "" if it was trusted on first use.
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
        """The key of the pin: the tool's id, or ``server:`` and the server's key."""
        return _SERVER + self.server if self.id is None else str(self.id)


@dataclass(frozen=True, kw_only=True)
class SeenDefinition(PinnedTool):
    """A definition that was seen and is not pinned: it is pending (``waiting``), or was rejected."""

    word: Word = "waiting"


class KeptDefinitions(NamedTuple):
    """What is on record under one key: the pin, and by digest the definitions seen since, oldest first.

    ``damage`` is the error about a row that is not what was stored: then nothing of that key is used. ``places`` say
    when each of ``seen`` was seen, and its number.
    """

    pin: PinnedTool | None = None
    seen: Mapping[str, SeenDefinition] = MappingProxyType({})
    damage: StoreError | None = None
    places: tuple[tuple[str, int], ...] = ()


_NOTHING: Final = KeptDefinitions()


class _Kept(Mapping[K, V]):
    """What a store has of one kind, by key. Looking one up reads the rows of its key; all else reads everything."""

    __slots__ = ("_all", "_any", "_get")

    def __init__(
        self, get: Callable[[Any], V | None], all_: Callable[[], Mapping[K, V]], any_: Callable[[], bool]
    ) -> None:
        self._get, self._all, self._any = get, all_, any_

    def __getitem__(self, key: K) -> V:
        found = self._get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[K]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __bool__(self) -> bool:
        return self._any()

    def __repr__(self) -> str:
        return repr(self._all())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


class PinStore(SharedStore):
    """The pins of one gateway, in a database that processes share; without a file (None), in memory.

    All methods raise `StoreError`: ``corrupt``, ``newer`` (of a later version), ``busy``, ``unusable``. May be used
    from several threads.
    """

    def __init__(
        self,
        where: StateLocation | Path | str | None = None,
        *,
        now: Callable[[], str] = _now,
        readonly: bool = False,
    ) -> None:
        self._now = now
        # Between threads: what one reads is not put in place of what another one read later.
        self._reading, self._taking = threading.RLock(), threading.Lock()
        # By key, of those that were asked for; of all keys if it is whole.
        self._kept: dict[str, KeptDefinitions] = {}
        self._is_whole = False
        # What was on record of those that changed, from the first time on that somebody asks for it.
        self._former: dict[str, KeptDefinitions] | None = None
        self._waiting = 0
        self._pins: Mapping[str, PinnedTool] = _Kept(self._pin_of, self._all_pins, self._has_pins)
        self._seen: Mapping[tuple[str, str], SeenDefinition] = _Kept(self._seen_of, self._all_seen, self._has_seen)
        super().__init__(open_database(where, SCHEMA, readonly=readonly, import_former=_import_former))

    def pins(self) -> Mapping[str, PinnedTool]:
        """Return the pins by key, as they are now. To look one up reads, at most, what is on record about its key.

        Raises `StoreError` (``corrupt``) for a pin that is not what was trusted, when it is looked up.
        """
        return self._pins

    def seen(self) -> Mapping[tuple[str, str], SeenDefinition]:
        """Return the definitions that were seen and are not pinned, by key and digest, oldest first; see `pins`."""
        return self._seen

    def about(self, key: str) -> KeptDefinitions:
        """Return what is on record under a key. Raises `StoreError` for what is damaged."""
        return self._of(key)

    @property
    def waiting(self) -> int:
        """The number of definitions that are pending."""
        return self._waiting

    def pending(self, most: int) -> list[SeenDefinition]:
        """Return the definitions that are pending, oldest first, of at most so many keys.

        Only what is on record about these keys is read; one whose record is damaged is left out (`damages`).
        """
        if not self._file.is_begun:
            return []
        with self._reading:
            keys = [key for (key,) in self._file.rows(_OLDEST_WAITING, most)]
            damaged = self.expect(keys)
            found = [
                (place, one)
                for key in keys
                if key not in damaged
                for place, one in zip(self._kept[key].places, self._kept[key].seen.values(), strict=True)
                if one.word == "waiting"
            ]
        return [one for _, one in sorted(found, key=itemgetter(0))]

    def expect(self, keys: Iterable[str]) -> Mapping[str, StoreError]:
        """Read at once what is on record about these keys, and return an error for each that is damaged or unread."""
        wanted = dict.fromkeys(keys)
        with self._reading:
            missing = [key for key in wanted if not self._is_known(key)]
            unread: dict[str, StoreError] = {}
            try:
                if missing:
                    self._kept |= self._read(missing)
            except StoreError as error:
                unread = dict.fromkeys(missing, error)
            kept = {key: self._kept.get(key, _NOTHING) for key in wanted}
        return unread | {key: one.damage for key, one in kept.items() if one.damage is not None}

    def take_changes(self) -> list[tuple[KeptDefinitions, KeptDefinitions]]:
        """Return what was on record, and what is now, of keys that were asked for and changed since the last call."""
        # The loop asks this, and does not wait for a thread that reads.
        with self._taking:
            former, self._former = self._former, {}
            return [(before, self._kept[key]) for key, before in (former or {}).items()]

    def damages(self) -> tuple[str, ...]:
        """Prove all that is on record, and return a sentence for each key whose definitions are not what was stored."""
        with self._reading:
            self._read_whole()
            return tuple(str(one.damage) for one in self._kept.values() if one.damage is not None)

    def _of(self, key: str) -> KeptDefinitions:
        found = self._kept.get(key)
        if found is None:
            unread = self.expect((key,)).get(key)
            found = self._kept.get(key, KeptDefinitions(damage=unread))
        if found.damage is not None:
            raise found.damage
        return found

    def _pin_of(self, key: str) -> PinnedTool | None:
        return self._of(key).pin

    def _seen_of(self, place: tuple[str, str]) -> SeenDefinition | None:
        key, digest = place
        return self._of(key).seen.get(digest)

    def _has_pins(self) -> bool:
        with self._reading:
            is_known = any(one.pin is not None for one in self._kept.values())
            return is_known or (self._file.is_begun and bool(self._file.rows(_ANY)))

    def _has_seen(self) -> bool:
        return bool(self._all_seen())

    def _all_pins(self) -> dict[str, PinnedTool]:
        return {key: one.pin for key, one in self._all().items() if one.pin is not None}

    def _all_seen(self) -> dict[tuple[str, str], SeenDefinition]:
        found = [
            (place, (key, digest), one)
            for key, kept in self._all().items()
            for place, (digest, one) in zip(kept.places, kept.seen.items(), strict=True)
        ]
        return {name: one for _, name, one in sorted(found, key=itemgetter(0))}

    def _all(self) -> Mapping[str, KeptDefinitions]:
        """Return all that is on record. Raises `StoreError` for what is damaged."""
        with self._reading:
            self._read_whole()
            return {key: self._of(key) for key in self._kept}

    def _read_whole(self) -> None:
        if not self._is_whole:
            self._kept |= self._read(None)
            self._is_whole = True

    def _read_again(self) -> None:
        """Read what is on record now about all keys that were asked for."""
        with self._reading:
            self._is_current = False
            if self._file.is_begun:
                kept = self._read(None if self._is_whole else list(self._kept))
                self._put({key: kept.get(key, _NOTHING) for key in self._kept.keys() | kept.keys()})
                self._count()
            self._is_current = True

    def _put(self, kept: Mapping[str, KeptDefinitions]) -> None:
        """Take in what is on record, and keep in mind what was before."""
        with self._taking:
            for key, now in kept.items():
                before = self._kept.get(key, _NOTHING if self._is_whole else None)
                if self._former is not None and before is not None and before is not now:
                    self._former.setdefault(key, before)
            self._kept |= kept

    def _is_known(self, key: str) -> bool:
        """Return whether it was read what is on record about a key, be it nothing."""
        return self._is_whole or key in self._kept

    def _count(self) -> None:
        ((self._waiting,),) = self._file.rows(_WAITING)

    def _read(self, keys: Sequence[str] | None) -> dict[str, KeptDefinitions]:
        """Return what is on record about these keys, about all that have something without them."""
        found: dict[str, list[tuple[Any, ...]]] = {key: [] for key in keys or ()}
        for row in self._rows(keys):
            found.setdefault(row[0], []).append(row)
        return {key: self._read_one(key, rows) for key, rows in found.items()}

    def _rows(self, keys: Sequence[str] | None) -> Iterator[tuple[Any, ...]]:
        if not self._file.is_begun:
            return
        if keys is None:
            yield from self._file.rows(_ALL)
            return
        for part in in_parts(keys):
            among = f"WHERE key IN ({', '.join('?' * len(part))})"
            yield from self._file.rows(f"{_OF_PINS} {among} UNION ALL {_OF_SEEN} {among}", *part, *part)

    def _read_one(self, key: str, rows: list[tuple[Any, ...]]) -> KeptDefinitions:
        """Prove the rows of one key."""
        known = self._kept.get(key, _NOTHING)
        pin: PinnedTool | None = None
        seen: dict[str, SeenDefinition] = {}
        places: list[tuple[str, int]] = []
        try:
            for row in sorted(rows, key=itemgetter(6, 8)):
                if not row[5]:
                    pin = self._pin(row, known.pin)
                    continue
                seen[row[1]] = self._seen_definition(row, known.seen.get(row[1]))
                places.append((row[6], row[8]))
        except StoreError as error:
            return KeptDefinitions(damage=error)
        found = KeptDefinitions(pin, seen, None, tuple(places))
        # Nearly all are the same objects; to compare two definitions takes much longer.
        same = pin is known.pin and [*map(id, seen.values())] == [*map(id, known.seen.values())]
        return known if same and known.damage is None and key in self._kept else found

    def trust(self, what: Iterable[PinnedTool], *, by: str = "") -> None:
        """Pin these definitions in place of the pins of the same keys; they are no longer pending.

        If nobody decided (``by`` is ""), keys that another process changed since this one read them are skipped.
        """
        at = self._now()
        pins = {one.key: one for one in what}
        rows = {key: (key, one.server, one.name, one.digest, self._written(one), at, by) for key, one in pins.items()}
        with self._change() as (data, is_current):
            if not by:
                kept = [key for key, row in rows.items() if self._is_as_read(data, key, row[3], is_current=is_current)]
                rows = {key: rows[key] for key in kept}
            data.executemany(_PIN, rows.values())
            data.executemany(_UNSEEN, [(key, row[3]) for key, row in rows.items()])
            if by:
                # Who said a word saw what waited. What is offered still, comes again.
                data.executemany(_NONE_WAITS, [(key,) for key in rows])
        with self._reading:
            if by or not is_current:
                self._read_again()
                return
            made = {key: self._as_pinned(pins[key], row) for key, row in rows.items() if self._is_known(key)}
            self._put({key: _trusted(self._kept.get(key, _NOTHING), pin) for key, pin in made.items()})
            self._count()

    def note(self, what: Iterable[PinnedTool], word: Word = "waiting", *, by: str = "") -> None:
        """Record definitions that are not pinned.

        One that is recorded already keeps its state, unless it is rejected now. The last 20 of each tool are kept.
        """
        at = self._now()
        rows = [(one.key, one.digest, one.server, one.name, self._written(one), word, at, by) for one in what]
        with self._change() as (data, is_current):
            ((number,),) = data.execute(_NEXT_NUMBER).fetchall()
            data.executemany(_NOTED[word], [(*row, number + place) for place, row in enumerate(rows)])
            for key in {row[0] for row in rows}:
                data.execute(_TIDIED, (key, key, _MOST_SEEN))
        with self._reading:
            if not is_current:
                self._read_again()
                return
            self._put(self._read(list(filter(self._is_known, dict.fromkeys(row[0] for row in rows)))))
            self._count()

    def review(self, one: PinnedTool, *, accepted: bool, by: str) -> bool:
        """Pin or reject a definition; return False, and do nothing, if it is not on record as `one` any more."""
        return self.review_all([one], accepted=accepted, by=by) == [True]

    def review_all(self, what: Sequence[PinnedTool], *, accepted: bool, by: str) -> list[bool]:
        """Pin or reject definitions, each if it is on record still as it is given; return which were.

        A `SeenDefinition` has to be pending or rejected as it says, another one to be the pin and not rejected. Of two
        processes that review one definition at once, one does.
        """
        at, done = self._now(), list[bool]()
        with self._change() as (data, _):
            for one in what:
                done.append(self._is_on_record(data, one))
                if done[-1]:
                    self._reviewed(data, one, self._written(one), at, by, accepted=accepted)
        with self._reading:
            self._read_again()
        return done

    @staticmethod
    def _is_on_record(data: Transaction, one: PinnedTool) -> bool:
        seen = data.execute(_SEEN_AS, (one.key, one.digest)).fetchone()
        if isinstance(one, SeenDefinition):
            return bool(seen == (one.word, one.at, one.by))
        pin = data.execute(_PINNED_AS, (one.key,)).fetchone()
        return seen is None and bool(pin == (one.digest, one.at, one.by))

    @staticmethod
    def _reviewed(data: Transaction, one: PinnedTool, written: str, at: str, by: str, *, accepted: bool) -> None:
        if accepted:
            data.execute(_PIN, (one.key, one.server, one.name, one.digest, written, at, by))
            data.execute(_UNSEEN, (one.key, one.digest))
            data.execute(_NONE_WAITS, (one.key,))
            return
        ((number,),) = data.execute(_NEXT_NUMBER).fetchall()
        row = (one.key, one.digest, one.server, one.name, written, "rejected", at, by, number)
        data.execute(_NOTED["rejected"], row)
        data.execute(_TIDIED, (one.key, one.key, _MOST_SEEN))

    def follow(self, moves: Iterable[tuple[ToolId, ToolId]]) -> None:
        """Copy the pins and observations of tools to their new ids, given as ``(old, new)``.

        A new id keeps what it has already. The old ids keep theirs too: another gateway may still use them.
        """
        rows = [(str(new), str(old)) for old, new in moves]
        with self._change() as (data, _):
            for statement in _FOLLOWED:
                data.executemany(statement, rows)
        self._read_again()

    def forget(self, keys: Iterable[str]) -> None:
        """Delete the pins and observations of these keys. The next definition of each is trusted on first use."""
        rows = [(key,) for key in keys]
        with self._change() as (data, _):
            data.executemany("DELETE FROM pin WHERE key = ?", rows)
            data.executemany("DELETE FROM pin_seen WHERE key = ?", rows)
        self._read_again()

    @contextmanager
    def _change(self) -> Iterator[tuple[Transaction, bool]]:
        """Change the file; tell too whether the pins in memory are those in the file, as nobody else wrote."""
        with self._file.change() as data:
            yield data, self._is_current and not self._file.is_behind()

    @staticmethod
    def _as_pinned(one: PinnedTool, row: tuple[str, ...]) -> PinnedTool:
        *_, content, at, by = row
        return PinnedTool(
            id=one.id,
            server=one.server,
            name=one.name,
            digest=one.digest,
            content=None if content == "null" else one.content,
            at=at,
            by=by,
        )

    def _is_as_read(self, data: Transaction, key: str, digest: str, *, is_current: bool) -> bool:
        if is_current and not self._is_known(key):
            return True
        pinned = data.execute("SELECT digest FROM pin WHERE key = ?", (key,)).fetchone()
        word = data.execute("SELECT word FROM pin_seen WHERE key = ? AND digest = ?", (key, digest)).fetchone()
        # Of a key that nobody asked for nothing was read.
        kept = self._kept.get(key, _NOTHING)
        before, seen = kept.pin, kept.seen.get(digest)
        return (pinned, word) == (before and (before.digest,), seen and (seen.word,))

    def _pin(self, row: tuple[Any, ...], known: PinnedTool | None) -> PinnedTool:
        key, digest, server, name, content, _, at, by, _ = row
        # Each is proved once: a list has thousands, and a word changes one.
        if known is not None and (server, name, digest, at, by) == _told(known):
            return known
        return PinnedTool(server=server, name=name, at=at, by=by, **self._checked(key, server, digest, content))

    def _seen_definition(self, row: tuple[Any, ...], known: SeenDefinition | None) -> SeenDefinition:
        key, digest, server, name, content, word, at, by, _ = row
        if known is not None and (server, name, digest, at, by, word) == (*_told(known), known.word):
            return known
        return SeenDefinition(
            server=server, name=name, at=at, by=by, word=word, **self._checked(key, server, digest, content)
        )

    def _checked(self, key: str, server: str, digest: str, content: str) -> dict[str, Any]:
        """Read a row. Refuses one whose digest does not match, which would be shown as if it had been trusted."""
        try:
            id = None if key == _SERVER + server else ToolId.parse(key)
            read = json.loads(content)
        except (InvalidToolId, ValueError, RecursionError):
            self._file.refuse(f"the entry {key!r} is none")
        if read is not None and digest_of(read) != digest:
            self._file.refuse(f"the definition of {key!r} is not the one that was trusted")
        return {"id": id, "digest": digest, "content": read}

    @staticmethod
    def _written(one: PinnedTool) -> str:
        try:
            content = json.dumps(one.content, ensure_ascii=True, separators=(",", ":"))
        except (ValueError, RecursionError, TypeError):
            return "null"
        # Without it the digest still tells that something changed, though not what.
        return content if len(content) <= _LONGEST and digest_of(json.loads(content)) == one.digest else "null"


def _told(one: PinnedTool) -> tuple[str, ...]:
    return one.server, one.name, one.digest, one.at, one.by


def _trusted(kept: KeptDefinitions, pin: PinnedTool) -> KeptDefinitions:
    """Return what is on record once a definition is pinned, by nobody: it is pending no longer."""
    left = [
        (place, one) for place, one in zip(kept.places, kept.seen.values(), strict=True) if one.digest != pin.digest
    ]
    return KeptDefinitions(pin, {one.digest: one for _, one in left}, None, tuple(place for place, _ in left))


def check_pins(location: StateLocation) -> tuple[str, ...]:
    """Prove all pins and seen definitions, and return a sentence for each key of which some are not what was stored."""
    with PinStore(location, readonly=True) as book:
        return book.damages()


def digest_of(content: object) -> str:
    """Return the digest of a definition, or of a text as if it were a description."""
    return definition_digest(content if isinstance(content, Mapping) else {"description": content})


BY_LOCK: Final = "truename.lock"
"""The value of ``by`` for a definition that is trusted because the lock has it, whatever the file's name."""
NOTHING_REVIEWED: Final[Digests] = MappingProxyType({})


class ReviewedDefinitions:
    """The digests of a lock, by server's key and tool's name; none without a file.

    Raises `ConfigError` for a lock that is missing or cannot be read: tools that it should hold back would be trusted.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path)
        # Before it is read: what is written meanwhile is news.
        self._watch = Watch(lambda: () if self._path is None else (self._path,))
        self.digests: Digests = NOTHING_REVIEWED if self._path is None else _read(self._path)

    @property
    def path(self) -> Path | None:
        """The path of the lock; None without one."""
        return self._path

    @property
    def unkeyed(self) -> int:
        """How many tools of the lock belong to no server; they match no tool of a gateway."""
        return sum(not server for server, _ in self.digests)

    def digest_of(self, tool: Tool) -> str | None:
        """Return the digest that the lock has for a tool; None if it has none."""
        return self.digests.get((tool.origin.server_id, tool.origin.name))

    def refresh(self) -> bool:
        """Read the lock again if the file changed, and return whether the digests changed. Cheap if the file did not.

        Raises `ConfigError`, once, for a lock that cannot be read; the former digests stay in force.
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
        raise ConfigError(file=str(path), key="", problem="the lock does not exist", remedy=remedy)
    from truename.migration.lock import read_lock  # noqa: PLC0415 - the package costs 40 ms, and few have a lock

    return MappingProxyType({pin.key: pin.digest for pin in read_lock(path).tools})


def pin_before(now: PinnedTool, kept: PinnedTool | None, reviewed: Digests) -> PinnedTool | None:
    """Return the pin that a tool is compared with: a person's decision, else the lock, else the first definition seen.

    Its ``by`` says which. A definition that only the lock has is known by its digest only.
    """
    digest = None if now.id is None else reviewed.get((now.server, now.name))
    if digest is None or (kept is not None and kept.by not in {"", BY_LOCK}):
        return kept
    if kept is not None and kept.digest == digest:
        return replace(kept, by=BY_LOCK)
    return PinnedTool(id=now.id, server=now.server, name=now.name, digest=digest, content=None, at="", by=BY_LOCK)


class PinRecord(NamedTuple):
    """Pins by key, definitions that were seen and are not pinned by key and digest, and the digests of the lock."""

    pins: Mapping[str, PinnedTool]
    seen: Mapping[tuple[str, str], SeenDefinition]
    reviewed: Digests

    def pin(self, now: PinnedTool, plain: Sequence[Unfolded]) -> PinnedTool | None:
        """Return the pin of a tool: under its id, else that of the same tool of the same server under a plain id."""
        if (found := self.pins.get(now.key)) is not None or not plain:
            return found
        known = (self.pins.get(str(one)) for one in plain)
        return next((one for one in known if one is not None and _is_same(one, now)), None)

    def said_before(self, now: PinnedTool, plain: Sequence[Unfolded]) -> SeenDefinition | None:
        """Return the record of exactly this definition: under its id, else its rejection under a plain id."""
        if (found := self.seen.get((now.key, now.digest))) is not None or not plain:
            return found
        known = (self.seen.get((str(one), now.digest)) for one in plain)
        return next((one for one in known if one is not None and one.word == "rejected" and _is_same(one, now)), None)


def _is_same(one: PinnedTool, now: PinnedTool) -> bool:
    return (one.server, one.name) == (now.server, now.name)
