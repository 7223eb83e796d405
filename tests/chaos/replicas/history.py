"""The history of a run: what clients, operators and the nemesis asked for, what came of it, and when.

Each operation is written when it is invoked and when it ends, as a line of JSON each. It ends with ``ok``, with
``fail`` (nothing happened), or with ``info`` (nobody knows, as when a connection was lost). One that never ended
counts as ``info``. Times are those of the system's monotonic clock, which no nemesis moves.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

__all__ = ["History", "Operation", "Outcome", "read_history"]

Outcome = Literal["ok", "fail", "info"]
_NEVER: Final = float("inf")
# What clients and operators do; all else is the nemesis, and looks at the machine.
_COUNTED: Final = frozenset({"call", "list", "grant", "accept"})


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One operation: ``what`` was asked of which replica (-1: none), by which process, and its ``answer``."""

    number: int
    process: str
    what: str
    replica: int = -1
    asked: Mapping[str, Any] = field(default_factory=dict)
    invoked: float = 0.0
    ended: float = _NEVER
    outcome: Outcome = "info"
    answer: Mapping[str, Any] = field(default_factory=dict)


class History:
    """Writes a history; ``count`` is how many operations of clients and operators have ended well."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", buffering=1024 * 1024)
        self._numbers = count(1)
        self.count = 0
        self._counted: set[int] = set()

    def invoke(self, process: str, what: str, replica: int = -1, **asked: object) -> int:
        """Write that an operation begins; return its number."""
        number = next(self._numbers)
        if what in _COUNTED:
            self._counted.add(number)
        self._write(type="invoke", number=number, process=process, what=what, replica=replica, asked=asked)
        return number

    def end(self, number: int, outcome: Outcome, **answer: object) -> None:
        """Write how an operation ended."""
        self.count += outcome == "ok" and number in self._counted
        self._counted.discard(number)
        self._write(type=outcome, number=number, answer=answer)

    def _write(self, **line: object) -> None:
        self._file.write(json.dumps({**line, "at": time.monotonic()}, separators=(",", ":")) + "\n")

    def flush(self) -> None:
        """Have all that was written in the file."""
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def read_history(lines: Iterable[str]) -> Iterator[Operation]:
    """Yield the operations of a history in the order in which they were invoked."""
    begun: dict[int, dict[str, Any]] = {}
    for text in lines:
        line = json.loads(text)
        at, kind = line.pop("at"), line.pop("type")
        if kind == "invoke":
            begun[line["number"]] = {**line, "invoked": at}
        else:
            begun[line["number"]] |= {"ended": at, "outcome": kind, "answer": line["answer"]}
    for operation in begun.values():
        yield Operation(**operation)
