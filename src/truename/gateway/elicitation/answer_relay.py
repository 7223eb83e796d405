"""Answers that reach another gateway than the one whose call waits for them: the state database carries them there.

A call that asks while it runs is in one process, and its client comes back to any. Whoever gets the answer writes it
into the database and waits for the outcome; the owner of the call takes it, once, and writes what came of it. Both are
sealed with the key that gateways of one state share. Where an owner does not take an answer in time, the answer is
withdrawn, and it is certain that it was not used. Whether that owner has ended or was only stopped is not known, so the
client is told to repeat the answer, and never to make the call anew: the call may still wait, until its state expires.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio

from truename.errors import ConfigError
from truename.gateway.elicitation.request_states import STATE
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INTERNAL_ERROR, INVALID_PARAMS, REQUEST_TIMEOUT
from truename.gateway.protocol.turns import in_thread
from truename.storage import Schema, insert, open_database

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from anyio.abc import TaskGroup

    from truename.gateway.elicitation.request_states import RequestStates
    from truename.storage import Database, StateLocation

    Take = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]

__all__ = ["SCHEMA", "AnswerRelay"]

log: Final = logging.getLogger("truename.gateway")

SCHEMA: Final = Schema(
    "relayed_answer",
    (
        (
            # `beats` counts the signs of life of an owner that took the answer.
            """
CREATE TABLE relayed_answer (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, answer TEXT NOT NULL, outcome TEXT NOT NULL, beats INTEGER NOT NULL,
    is_unwanted INTEGER NOT NULL, until REAL NOT NULL
)
""",
            "CREATE INDEX relayed_answer_owner ON relayed_answer (owner)",
        ),
    ),
)
_COLUMNS: Final = ("id", "owner", "answer", "outcome", "beats", "is_unwanted", "until")
_GIVE: Final = insert("relayed_answer", _COLUMNS, then="ON CONFLICT (id) DO NOTHING")
_ASKED: Final = "SELECT id, answer, is_unwanted FROM relayed_answer WHERE owner = ? AND outcome = ''"
_TAKE: Final = "UPDATE relayed_answer SET beats = 1 WHERE id = ? AND beats = 0 AND is_unwanted = 0"
_BEAT: Final = "UPDATE relayed_answer SET beats = beats + 1 WHERE id = ?"
_END: Final = "UPDATE relayed_answer SET outcome = ? WHERE id = ?"
_DROP: Final = "UPDATE relayed_answer SET is_unwanted = 1 WHERE id = ?"
_WITHDRAW: Final = "DELETE FROM relayed_answer WHERE id = ? AND beats = 0"
# The id stays: an answer is given once.
_COLLECT: Final = "UPDATE relayed_answer SET answer = '', outcome = '-' WHERE id = ?"
_LOOK_EVERY: Final = 0.05
_BEAT_EVERY: Final = 2.0
TAKEN_WITHIN: Final = 5.0
"""Seconds within which an owner that lives takes an answer."""

SILENT_FOR: Final = 10.0
"""Seconds without a sign of life after which nobody waits longer for an owner that took an answer."""

_KIND: Final = "relay"
_LASTS: Final = 86_400.0
_NOBODY: Final = "No call waits with this requestState: its gateway process has ended. Call again without requestState."
_NOT_TAKEN: Final = (
    "The gateway process whose call waits for this answer does not answer now, so the answer was not used. The call "
    "may still wait: repeat the same answer with the same requestState. It is refused once that has expired."
)
_GONE: Final = (
    "The gateway process that runs this call took the answer and does not answer any more: it has stopped or ended. "
    "What the call did is unknown; check before you repeat it."
)
_UNUSABLE: Final = "The answer cannot be passed on to the call that waits for it, so it was not used. Try again later."
_UNKNOWN: Final = "The gateway cannot use its state now; whether the call that waits for this answer got it is unknown."


@dataclass(eq=False)
class _Given:
    """An answer that this process passed on: when its owner last gave a sign of life, and the outcome."""

    beats: int = 0
    since: float = field(default_factory=time.monotonic)
    outcome: str = ""
    changed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def silence(self) -> float:
        """How many seconds ago its owner gave a sign of life."""
        return time.monotonic() - self.since


class AnswerRelay:
    """The answers that the gateways at one place pass on to one another; ``take`` has an answer taken by its call here.

    Without a place there is no other gateway. It runs among ``tasks``, while anything can come (``is_needed``).
    """

    def __init__(
        self,
        tasks: TaskGroup,
        location: StateLocation | None,
        states: RequestStates,
        *,
        take: Take,
        is_needed: Callable[[], bool],
    ) -> None:
        self.owner = secrets.token_hex(8)
        self._tasks = tasks
        self._location = None if location is None or location.is_memory else location
        self._states = states
        self._take = take
        self._is_needed = is_needed
        self._opening = threading.Lock()
        self._database: Database | None = None
        self._given: dict[str, _Given] = {}
        self._taken: dict[str, anyio.CancelScope] = {}
        self._is_watching = False

    def watch(self) -> None:
        """Look for answers from now on."""
        if self._location is not None and not self._is_watching:
            self._is_watching = True
            self._tasks.start_soon(self._watch)

    async def pass_on(self, owner: str, id: str, answer: dict[str, Any]) -> dict[str, Any] | None:
        """Have the owner of a call take an answer, and return the outcome; None if the answer was given before.

        Raises `MCPError` where the owner does not answer, or the database cannot be used.
        """
        if self._location is None:
            raise MCPError(INVALID_PARAMS, _NOBODY)
        sealed = await self._states.sealed(_KIND, ["answer", id], answer, lasts=_LASTS)
        row = id, owner, sealed, "", 0, 0, time.time() + _LASTS
        if not await self._changed(_GIVE, row, otherwise=_UNUSABLE):
            return None
        given = self._given[id] = _Given()
        self.watch()
        try:
            await self._waited(id, given)
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._changed(_DROP, (id,))
            raise
        finally:
            del self._given[id]
        opened = await self._states.opened(_KIND, ["outcome", id], {STATE: given.outcome})
        await self._changed(_COLLECT, (id,))
        return {} if opened is None else opened.content

    async def _waited(self, id: str, given: _Given) -> None:
        while not given.outcome:
            given.changed = anyio.Event()
            with anyio.move_on_after(1.0):
                await given.changed.wait()
            if given.outcome or given.silence < (SILENT_FOR if given.beats else TAKEN_WITHIN):
                continue
            if given.beats:
                # This process may be the one that was stopped.
                with suppress(ConfigError):
                    await self._look(is_due=True)
                if given.outcome or given.silence < SILENT_FOR:
                    continue
                raise MCPError(REQUEST_TIMEOUT, _GONE)
            # An owner that takes it at this moment goes on with it.
            if await self._changed(_WITHDRAW, (id,), otherwise=_UNKNOWN):
                raise MCPError(REQUEST_TIMEOUT, _NOT_TAKEN)
            given.since = time.monotonic()

    async def _watch(self) -> None:
        beat = needed = time.monotonic()
        try:
            while True:
                if self._given or self._taken or self._is_needed():
                    needed = time.monotonic()
                # An answer that another gateway got at the same moment as the last one here comes a little later.
                elif time.monotonic() > needed + 2 * TAKEN_WITHIN:
                    return
                await anyio.sleep(_LOOK_EVERY)
                is_due = time.monotonic() >= beat + _BEAT_EVERY
                with suppress(ConfigError):
                    await self._look(is_due=is_due)
                if is_due:
                    beat = time.monotonic()
        finally:
            self._is_watching = False

    async def _look(self, *, is_due: bool) -> None:
        taken = tuple(self._taken) if is_due else ()
        waiting = tuple(self._given)
        asked, states = await in_thread(partial(self._read, taken, waiting, is_due=is_due))
        for id, beats, outcome in states:
            given = self._given.get(id)
            if given is not None and (beats, outcome) != (given.beats, given.outcome):
                given.beats, given.outcome, given.since = beats, outcome, time.monotonic()
                given.changed.set()
        for id, answer, is_unwanted in asked:
            if id in self._taken:
                if is_unwanted:
                    self._taken[id].cancel()
            elif not is_unwanted and await self._changed(_TAKE, (id,)):
                self._taken[id] = anyio.CancelScope()
                self._tasks.start_soon(self._answered, id, answer)

    def _read(
        self, taken: tuple[str, ...], waiting: tuple[str, ...], *, is_due: bool
    ) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        database = self._opened()
        for id in taken:
            # Whoever waits reads it when it is due: nobody has to be woken for it.
            database.write_uncounted(_BEAT, id)
        if not database.has_news() and not is_due:
            return [], []
        query = "SELECT id, beats, outcome FROM relayed_answer WHERE id = ?"
        return database.rows(_ASKED, self.owner), [row for id in waiting for row in database.rows(query, id)]

    async def _answered(self, id: str, sealed: str) -> None:
        """Have the call take an answer, and write what came of it."""
        try:
            with self._taken[id]:
                opened = await self._states.opened(_KIND, ["answer", id], {STATE: sealed})
                outcome = await self._take(id, {} if opened is None else opened.content)
                text = await self._states.sealed(_KIND, ["outcome", id], outcome, lasts=_LASTS)
                await self._changed(_END, (text, id))
        except MCPError as error:
            log.warning("An answer that came by another gateway got no outcome. %s", error)
        finally:
            del self._taken[id]

    async def _changed(self, statement: str, values: tuple[object, ...], *, otherwise: str = "") -> int:
        """Execute a statement in a transaction of its own, and return the number of rows that it changed.

        Raises `MCPError` with a text, if there is one, while the database cannot be used.
        """

        def change() -> int:
            with self._opened().change() as data:
                if statement == _GIVE:
                    data.execute("DELETE FROM relayed_answer WHERE until < ?", (time.time(),))
                return data.execute(statement, values).rowcount

        try:
            return await in_thread(change)
        except ConfigError as error:
            log.warning("An answer for another gateway cannot be passed on. %s", error)
            if otherwise:
                raise MCPError(INTERNAL_ERROR, otherwise) from error
            return 0

    def _opened(self) -> Database:
        with self._opening:
            self._database = self._database or open_database(self._location, SCHEMA)
            return self._database

    def close(self) -> None:
        """Close the database."""
        if self._database is not None:
            self._database.close()
            self._database = None
