"""One case: a target is given chance, and what comes of it is judged. All engines judge by this."""

from __future__ import annotations

import logging
import signal
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    Target = Callable[[Random], None]

__all__ = ["Broken", "Finding", "Target", "judged", "must"]

_PATIENCE: Final = 5.0


class Broken(AssertionError):
    """A promise was broken: the answer is wrong, though nothing was raised."""


class TooSlow(BaseException):
    """A case worked longer than it may."""


@dataclass(frozen=True)
class Finding:
    """What went wrong; ``key`` is what two findings have in common that are one fault."""

    target: str
    text: str
    key: str


def must(holds: bool, promise: str) -> None:
    """Raise `Broken` unless a promise holds."""
    if not holds:
        raise Broken(promise)


def judged(name: str, target: Target, chance: Random) -> Finding | None:
    """Run one case; None if it ended as it may: with a right answer or a typed error, in time, and nothing logged."""
    try:
        with _patience(), _logged() as tracebacks:
            target(chance)
            must(not tracebacks, f"nothing unforeseen is logged: {''.join(tracebacks)[:300]}")
    except TooSlow as error:
        _, place = _told(error)
        return Finding(name, f"worked longer than {_PATIENCE:g} s: {_where(error)}", f"{name} slow {place}")
    except Exception as error:  # noqa: BLE001
        return None if _allowed(error) else Finding(name, *_told(error))
    return None


def _allowed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_allowed(one) for one in error.exceptions)
    # An error that cannot be told is no good error.
    return isinstance(error, TruenameError) and bool(str(error)) and len(str(error)) < 20_000


def _told(error: BaseException) -> tuple[str, str]:
    while isinstance(error, BaseExceptionGroup):
        error = next(one for one in error.exceptions if not _allowed(one))
    kind, said = type(error).__name__, str(error)
    text = f"{kind}: {ascii(said)[:400]} ({len(said):,} characters) at {_where(error) or 'no place'}"
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ascii(said)[:40]
    return text, f"{kind} {place} {said if isinstance(error, Broken) else ''}"


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno}" for frame in reversed(frames[-3:]))


@contextmanager
def _patience() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooSlow

    # Of work, not of waiting: what else the machine does is nobody's fault. Who waits has a patience of their own.
    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, _PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


class _Tracebacks(logging.Handler):
    """Keeps errors that are logged with a traceback: exceptions that nobody foresaw."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR and record.exc_info and record.exc_info[1] is not None:
            self.kept.append(f"{record.getMessage()} {_told(record.exc_info[1])[0]} ")


@contextmanager
def _logged() -> Iterator[list[str]]:
    ear, root = _Tracebacks(), logging.getLogger()
    root.addHandler(ear)
    try:
        yield ear.kept
    finally:
        root.removeHandler(ear)
