"""Whose turn it is: one process at a time adds to a journal, and nobody takes a half-written line for its end."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from truename.errors import LedgerError
from truename.ledger.lock import locked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["look", "turn"]

_TURN: Final = "turn"
# A process that was stopped in its turn costs the others no more than this; they say so, and try again.
_PATIENCE: Final = 5.0


@contextmanager
def turn(path: Path) -> Iterator[None]:
    """Keep the others that write to this journal waiting. Raises `LedgerError` (``busy``), `OSError`."""
    with locked(path / _TURN, shared=False, patience=_PATIENCE):
        yield


@contextmanager
def look(path: Path) -> Iterator[None]:
    """Look at how far a journal goes while nobody writes; after some seconds all the same."""
    with ExitStack() as stack:
        with suppress(LedgerError):
            stack.enter_context(locked(path / _TURN, shared=True, patience=_PATIENCE))
        yield
