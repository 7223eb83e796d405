"""Which task an id means to whom.

Ids are the servers' own, and two servers may give the same. A client sees the server's own where no other task that is
known here has it, and else one that is made for it; either leads to one task of one server, and only for who began it.
Those of principals are in the state database besides (`TaskRecord`).
"""

from __future__ import annotations

import math
import secrets
import time
from collections import Counter
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Final

from truename.gateway.views.task_record import FOR_EVER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping
    from typing import Any

    from truename.gateway.views.task_record import RecordedTask

    Told = Callable[[Mapping[str, Any]], Awaitable[None]]

__all__ = ["LONGEST_ID", "Task", "TaskPlace", "Tasks"]

# Of a server's own id, in characters: it is kept, and sent back with each question about the task.
LONGEST_ID: Final = 1_024


@dataclass(frozen=True)
class TaskPlace:
    """Where a task runs: a server, the client whose own its connection is (None: all share it), and its own id.

    ``address`` is a digest of how the server is reached: another one may take its place in the configuration. ``run``
    is the run of the program (`Transport.run`): each run counts anew, and so does that of another gateway.
    """

    server: str
    address: str
    run: str
    connection: Hashable | None
    id: str


@dataclass
class Task:
    """A task as it is known here: whose it is, the id that is shown, and until when (`time.monotonic`).

    ``number`` is higher than that of any task begun before; ``told`` is called with what its server tells unasked.
    ``is_recorded`` is whether it stands in the record, and ``seen`` what `TaskRecord.changes` returned before it was
    found there to be its owner's.
    """

    owner: Hashable
    shown: str
    place: TaskPlace
    number: int
    begun: float
    until: float = math.inf
    told: Told | None = None
    is_recorded: bool = False
    seen: int = -1


class Tasks:
    """The tasks of all clients, ``most`` at a time: who has the most of them loses the one that was begun first."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._numbers = count(1)
        self._shown: dict[tuple[Hashable, str], Task] = {}
        # How many have an id. Two owners may have the same by different gateways.
        self._names: Counter[str] = Counter()
        self._places: dict[TaskPlace, Task] = {}
        self._of: dict[Hashable, dict[str, Task]] = {}

    def __len__(self) -> int:
        return len(self._shown)

    def begin(self, owner: Hashable, place: TaskPlace, ttl: float | None = None) -> Task:
        """Note a task that a server began for somebody; ``ttl`` is in milliseconds, None for ever.

        A server that gives an id anew has forgotten whose it was.
        """
        self._clear(place)
        shown = place.id
        while self.is_shown(shown):
            shown = f"{place.id}-{secrets.token_hex(8)}"
        task = self._added(Task(owner, shown, place, next(self._numbers), self._clock()))
        self.keep(task, ttl)
        return task

    def is_shown(self, id: str, except_at: TaskPlace | None = None) -> bool:
        """Return whether a task is shown under an id; the one at a place does not count."""
        other = None if except_at is None else self._places.get(except_at)
        return self._names[id] > (1 if other is not None and other.shown == id else 0)

    def adopt(self, owner: Hashable, place: TaskPlace, recorded: RecordedTask, now: float) -> Task:
        """Note a task that stands in the record, which was read at ``now``; the one that is known, if it is here."""
        known = self._shown.get((owner, recorded.shown))
        if known is not None and known.place == place:
            known.is_recorded = True
            return known
        self._clear(place)
        if known is not None:
            self.forget(known)
        apart = self._clock() - now
        until = math.inf if recorded.until >= FOR_EVER else recorded.until + apart
        task = Task(owner, recorded.shown, place, recorded.number, recorded.begun + apart, until, is_recorded=True)
        return self._added(task)

    def _clear(self, place: TaskPlace) -> None:
        if (before := self._places.get(place)) is not None:
            self.forget(before)
        if len(self._shown) >= self._most:
            self._make_room()

    def _added(self, task: Task) -> Task:
        self._shown[task.owner, task.shown] = self._places[task.place] = task
        self._of.setdefault(task.owner, {})[task.shown] = task
        self._names[task.shown] += 1
        return task

    def keep(self, task: Task, ttl: float | None) -> None:
        """Keep a task for so many milliseconds from its beginning, as its server says now. It is never less."""
        until = math.inf if ttl is None else task.begun + ttl / 1000
        task.until = max(until, task.until) if task.until < math.inf else until

    def find(self, owner: Hashable, shown: str) -> Task | None:
        """Return the task that an id means to somebody; None: it is over, nobody's, or another's."""
        task = self._of.get(owner, {}).get(shown)
        if task is not None and task.until < self._clock():
            self.forget(task)
            return None
        return task

    def at(self, place: TaskPlace) -> Task | None:
        """Return the task that runs there."""
        return self._places.get(place)

    def of(self, owner: Hashable) -> tuple[Task, ...]:
        """Return somebody's tasks, as they were begun."""
        return tuple(sorted(self._living(self._of.get(owner, {})), key=lambda task: task.number))

    def _living(self, tasks: dict[str, Task]) -> Iterator[Task]:
        now = self._clock()
        return (task for task in tasks.values() if task.until >= now)

    def forget(self, task: Task) -> None:
        """Forget a task: its id means nothing any more."""
        if self._shown.get((task.owner, task.shown)) is not task:
            return
        del self._shown[task.owner, task.shown], self._places[task.place], self._of[task.owner][task.shown]
        self._names[task.shown] -= 1
        if not self._names[task.shown]:
            del self._names[task.shown]
        if not self._of[task.owner]:
            del self._of[task.owner]

    def forget_all(self, owner: Hashable) -> None:
        """Forget all tasks of somebody who is gone."""
        for task in list(self._of.get(owner, {}).values()):
            self.forget(task)

    def _make_room(self) -> None:
        now = self._clock()
        for task in [task for task in self._shown.values() if task.until < now]:
            self.forget(task)
        if len(self._shown) >= self._most:
            most = max(self._of.values(), key=len)
            self.forget(next(iter(most.values())))
