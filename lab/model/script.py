"""What the model does: a plan of steps, and the place in it, which is the number of results that a client reports."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lab.model.turn import Offered, Step, Turn

__all__ = ["Approach", "Planner", "Script"]


class Planner(Protocol):
    """Says what to do with the tools that a client offers; asked once."""

    def __call__(self, offered: Sequence[Offered], /) -> Sequence[Step]:
        """Return the steps."""
        ...


class Approach(Protocol):
    """How a model gets at the tools of a client: they stand there, or have to be searched for."""

    def concerns(self, turn: Turn) -> bool:
        """Say whether a request belongs to the conversation; titles and summaries don't."""
        ...

    def opening(self, turn: Turn) -> Sequence[Step]:
        """Return the steps that bring the tools into sight."""
        ...

    def offered(self, turn: Turn) -> Sequence[Offered]:
        """Return the servers' tools that are in sight."""
        ...

    def call(self, step: Step) -> Step:
        """Return the step that calls a tool as this client has it called."""
        ...


class Script:
    """The plan of one conversation. Repeated requests do not advance it: the place is the number of results."""

    def __init__(self, approach: Approach, planner: Planner, batch: int = 1) -> None:
        self._approach, self._planner, self._batch = approach, planner, batch
        self._lock = Lock()
        self._base: int | None = None
        self._opening = 0
        self._planned = False
        self.plan: list[Step] = []
        self.seen: dict[str, Offered] = {}  # shown name and mark -> the tool, from all turns
        self.results: tuple[str, ...] = ()
        self.history: tuple[str, ...] = ()
        self.finished = False

    def next(self, turn: Turn) -> Sequence[Step]:
        """Return what the model does now; nothing means that it says that all is done."""
        with self._lock:
            if not self._approach.concerns(turn) and (self._base is None or not turn.results):
                return ()
            return self._next(turn)

    def _next(self, turn: Turn) -> Sequence[Step]:
        if self._base is None:
            self._base = len(turn.results)
            self.plan = self._numbered(self._approach.opening(turn))
            self._opening = len(self.plan)
        place = len(turn.results) - self._base
        if place < 0:
            return ()
        if place >= len(self.results):
            self.results, self.history = turn.results[self._base :], turn.history
        for tool in self._approach.offered(turn):
            self.seen.setdefault(f"{tool.mark} {tool.shown}", tool)
        if not self._planned and self.seen and place >= self._opening:
            self._planned = True
            self.plan += self._numbered([self._approach.call(step) for step in self._planner([*self.seen.values()])])
        self.finished = self._planned and place >= len(self.plan)
        return self.plan[place : place + (self._batch if place >= self._opening else 1)]

    def _numbered(self, steps: Sequence[Step]) -> list[Step]:
        return [step.numbered(number) for number, step in enumerate(steps, len(self.plan))]
