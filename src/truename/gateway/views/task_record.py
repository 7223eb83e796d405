"""The tasks of principals in the state database: any gateway of the state, and a later process, finds them.

What is known in memory needs no look as long as no other gateway changed the record (`TaskRecord.changes`). Tasks of a
connection end with it, and stand nowhere else.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from truename.errors import StoreError
from truename.gateway.protocol.turns import in_thread
from truename.storage import Schema, insert, open_database, select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from truename.storage import Database, StateLocation, Transaction

__all__ = ["SCHEMA", "RecordedTask", "TaskRecord"]

log: Final = logging.getLogger("truename.gateway")
T = TypeVar("T")

SCHEMA: Final = Schema(
    "task",
    (
        (
            """
CREATE TABLE task (
    shown TEXT PRIMARY KEY, owner TEXT NOT NULL, server TEXT NOT NULL, address TEXT NOT NULL, id TEXT NOT NULL,
    is_isolated INTEGER NOT NULL, begun REAL NOT NULL, until REAL NOT NULL, number INTEGER NOT NULL
)
""",
            "CREATE INDEX task_owner ON task (owner, number)",
            "CREATE INDEX task_place ON task (server, id)",
        ),
        ("ALTER TABLE task ADD COLUMN run TEXT NOT NULL DEFAULT ''",),
    ),
)
FOR_EVER: Final = 1e18
"""The end of a task that its server keeps without one."""

_COLUMNS: Final = ("shown", "owner", "server", "address", "run", "id", "is_isolated", "begun", "until", "number")
_INSERT: Final = insert("task", _COLUMNS, then="ON CONFLICT (shown) DO NOTHING")
_FIND: Final = select("task", _COLUMNS, then="WHERE owner = ? AND shown = ? AND until > ?")
_OF: Final = select("task", _COLUMNS, then="WHERE owner = ? AND until > ? ORDER BY number")
_AT: Final = """
SELECT shown FROM task WHERE server = ? AND address = ? AND run = ? AND id = ? AND (is_isolated = 0 OR owner = ?)
"""
_AGAIN: Final = """
DELETE FROM task WHERE server = ? AND address = ? AND run = ? AND id = ? AND (is_isolated = 0 OR owner = ?)
"""
_NUMBER: Final = "SELECT coalesce(max(number), 0) + 1 FROM task"
_MOST: Final = "SELECT owner FROM task GROUP BY owner ORDER BY count(*) DESC, owner LIMIT 1"
_OLDEST: Final = "DELETE FROM task WHERE shown = (SELECT shown FROM task WHERE owner = ? ORDER BY number LIMIT 1)"


@dataclass(frozen=True, kw_only=True)
class RecordedTask:
    """A task as it is recorded; ``begun`` and ``until`` are in seconds since 1970.

    ``run`` is the run of the program that began it (`Transport.run`). ``is_isolated``: it runs on a connection that its
    owner has for themselves.
    """

    shown: str
    owner: str
    server: str
    address: str
    run: str
    id: str
    is_isolated: bool
    begun: float = 0.0
    until: float = FOR_EVER
    number: int = 0


class TaskRecord:
    """The record of tasks at a place, ``most`` at a time; without a place there is none (`is_kept`).

    While the database cannot be used, tasks that begin are known to their gateway alone; that is logged. What looks for
    tasks raises `StoreError` then.
    """

    def __init__(self, location: StateLocation | None, most: int, *, clock: Callable[[], float] = time.time) -> None:
        self._location = None if location is None or location.is_memory else location
        self._most = most
        self._clock = clock
        self._opening, self._counting = threading.Lock(), threading.Lock()
        self._file: Database | None = None
        self._changes = 0

    @property
    def is_kept(self) -> bool:
        """Whether there is a database."""
        return self._location is not None

    async def begin(self, wanted: RecordedTask, ttl: float | None, *, is_taken: bool) -> RecordedTask | None:
        """Record a task that a server began; ``ttl`` is in milliseconds, None for ever. None if it is not recorded.

        It is shown under the server's own id, unless that ``is_taken`` here or in the record.
        """
        return await self._away(None, partial(self._begin, wanted, ttl, is_taken=is_taken))

    def _begin(self, wanted: RecordedTask, ttl: float | None, *, is_taken: bool) -> RecordedTask:
        now = self._clock()
        until = FOR_EVER if ttl is None else now + ttl / 1000
        shown = f"{wanted.id}-{secrets.token_hex(8)}" if is_taken else wanted.id
        begun = self._recorded(wanted, shown, now, until)
        # Whoever reads the former owner's row at this moment must not count on it afterwards.
        self._count()
        return begun

    def _recorded(self, wanted: RecordedTask, shown: str, now: float, until: float) -> RecordedTask:
        with self._opened().change() as data:
            # Who gives an id anew has forgotten whose it was.
            data.execute(_AGAIN, _place(wanted))
            self._make_room(data, now)
            ((number,),) = data.execute(_NUMBER).fetchall()
            while True:
                row = (
                    *(shown, wanted.owner, wanted.server, wanted.address, wanted.run, wanted.id),
                    *(int(wanted.is_isolated), now, until, number),
                )
                if data.execute(_INSERT, row).rowcount:
                    return _task(row)
                shown = f"{wanted.id}-{secrets.token_hex(8)}"

    def _make_room(self, data: Transaction, now: float) -> None:
        data.execute("DELETE FROM task WHERE until <= ?", (now,))
        ((count,),) = data.execute("SELECT count(*) FROM task").fetchall()
        if count >= self._most:
            ((owner,),) = data.execute(_MOST).fetchall()
            data.execute(_OLDEST, (owner,))

    @property
    def hears_at_once(self) -> bool:
        """Whether `changes` knows of all that was committed: word of a database server takes some milliseconds."""
        return self._location is not None and self._location.url is None

    async def changes(self) -> int:
        """Return a number that is another one if a task began or others changed the record since the last call.

        As long as they did not, nothing is read for it. Raises `StoreError`.
        """
        # A file is at hand, and only it can be asked without waiting.
        file = self._file
        if file is None or file.path is None or file.is_behind():
            await in_thread(self._look)
        return self._changes

    def _look(self) -> None:
        if self._opened().has_news():
            self._count()

    def _count(self) -> None:
        with self._counting:
            self._changes += 1

    async def is_anothers(self, wanted: RecordedTask) -> bool:
        """Return whether a task is recorded under the same id at the same place. Raises `StoreError`."""
        return bool(await self._rows(_AT, *_place(wanted)))

    async def find(self, owner: str, shown: str) -> RecordedTask | None:
        """Return somebody's task by the id that they were shown."""
        rows = await self._rows(_FIND, owner, shown, self._clock())
        return _task(rows[0]) if rows else None

    async def of(self, owner: str) -> Sequence[RecordedTask]:
        """Return somebody's tasks, as they were begun."""
        return [*map(_task, await self._rows(_OF, owner, self._clock()))]

    async def _rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return await in_thread(lambda: self._opened().rows(query, *values))

    async def keep(self, owner: str, shown: str, until: float) -> None:
        """Record until when a task is kept."""
        await self._change("UPDATE task SET until = ? WHERE owner = ? AND shown = ?", until, owner, shown)

    async def forget(self, owner: str, shown: str) -> None:
        """Forget a task."""
        await self._change("DELETE FROM task WHERE owner = ? AND shown = ?", owner, shown)

    async def _change(self, statement: str, *values: object) -> None:
        def change() -> None:
            with self._opened().change() as data:
                data.execute(statement, values)

        await self._away(None, change)

    async def _away(self, otherwise: T, what: Callable[[], T]) -> T:
        if self._location is None:
            return otherwise
        try:
            return await in_thread(what)
        except StoreError as error:
            log.warning("Tasks cannot be recorded. %s", error)
            return otherwise

    def _opened(self) -> Database:
        with self._opening:
            self._file = self._file or open_database(self._location, SCHEMA)
            return self._file

    def close(self) -> None:
        """Close the database; nothing is recorded or found afterwards."""
        self._location = None
        if self._file is not None:
            self._file.close()


def _place(task: RecordedTask) -> tuple[str, ...]:
    return task.server, task.address, task.run, task.id, task.owner


def _task(row: Sequence[Any]) -> RecordedTask:
    values = dict(zip(_COLUMNS, row, strict=True))
    return RecordedTask(**{**values, "is_isolated": bool(values["is_isolated"])})
