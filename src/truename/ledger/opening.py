"""Open the store of a ledger: a state database, memory, or the journal of an earlier version, which is imported."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from truename.errors import LedgerError
from truename.files.lock import locked
from truename.files.private import make_private
from truename.ledger.journal import is_journal, read_journal
from truename.ledger.sql import SqlLedger
from truename.ledger.store import MemoryLedger
from truename.storage import PATIENCE, StateLocation

if TYPE_CHECKING:
    from pathlib import Path

    from truename.ledger.store import LedgerStore

__all__ = ["open_store"]


def open_store(where: StateLocation | Path, *, readonly: bool, patience: float | None = None) -> LedgerStore:
    """Open the store of a ledger in a file. Raises `LedgerError` as `Ledger.open` does."""
    location = StateLocation.of(where)
    path = location.path
    seconds = PATIENCE if patience is None else patience
    try:
        store = SqlLedger(location, readonly=readonly, patience=seconds)
    except LedgerError as error:
        # Only a file that is no database is looked into: closing it would end the locks of an open database.
        if path is None or error.code != "corrupt" or error.path != path or not is_journal(path):
            raise
        if readonly:
            return MemoryLedger(read_journal(path))
        _import_journal(path)
        store = SqlLedger(location, readonly=False, patience=seconds)
    former = location.former.get("ledger")
    if readonly and not store.is_begun and former is not None and former.exists():
        return open_store(former, readonly=True)
    return store


def _import_journal(path: Path) -> None:
    """Put a state database in the place of a journal, which is kept beside it. Raises `LedgerError`."""
    try:
        make_private(path.parent)
        with locked(path, shared=False):
            # Another process may have imported it meanwhile.
            if is_journal(path):
                _replace_by_database(path)
    except TimeoutError as error:
        raise LedgerError(code="busy", path=path) from error
    except OSError as error:
        raise LedgerError(code="unusable", path=path, reason=error.strerror or str(error)) from error


def _replace_by_database(path: Path) -> None:
    kept = path.with_name(f"{path.name}.journal")
    if kept.exists():
        raise LedgerError(code="unusable", path=path, reason=f"it is a journal, and {kept.name} is there already")
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    parts = [draft.with_name(draft.name + suffix) for suffix in ("", ".revision", "-wal", "-shm")]
    try:
        for part in parts:
            part.unlink(missing_ok=True)
        SqlLedger(StateLocation(draft, {"ledger": path}), readonly=False).close()
        shutil.copy2(path, kept)
        draft.replace(path)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)
