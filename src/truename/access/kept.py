"""A small file of ours that processes share: read when it has changed, replaced whole under a lock."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, TypeVar

from truename.errors import LedgerError, StoreError
from truename.files.durable import read_own, sync_directory, write_new
from truename.files.private import make_private
from truename.ledger.lock import locked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["Kept"]

T = TypeVar("T")
_LARGEST: Final = 16 * 1024 * 1024
_SCHEMA: Final = 1
# Which file it is, as far as a look at it says: each one that is put in place is another file.
_Seen = tuple[int, int, int]


class Kept(Generic[T]):
    """What a JSON file holds, as values: ``read`` makes them of its content, ``write`` the content of them.

    Without a path it is kept in memory only. All methods raise `StoreError`: ``corrupt`` (what ``read`` does not
    take is), ``newer``, ``busy``, ``unusable``. A file that was there and is gone is ``unusable`` too: what was
    revoked in it would be good again.
    """

    def __init__(
        self,
        path: Path | None,
        read: Callable[[dict[str, Any]], T],
        write: Callable[[T], dict[str, Any]],
    ) -> None:
        self.path = path
        self._read = read
        self._write = write
        self._lock = threading.RLock()
        self._seen: _Seen | None = None
        self._value = read({})

    @property
    def exists(self) -> bool:
        """Whether anything was ever kept; what can't be looked at, or leads nowhere, counts as something."""
        if self.path is None or self._seen is not None:
            return self._seen is not None
        try:
            self.path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    def now(self) -> T:
        """Return what is kept now, for looking only: it costs a look at the file."""
        if self.path is None:
            return self._value
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if self._seen is None:
                return self._value
            self._fail("it was there, and is gone")
        except OSError as error:
            self._fail(error.strerror or str(error), error)
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen != self._seen:
            with self._lock:
                self._value = self._load(self.path)
                self._seen = seen
        return self._value

    @contextmanager
    def change(self) -> Iterator[T]:
        """Keep everybody else out; what is done to the value is kept when the block ends well."""
        with self._lock:
            if self.path is None:
                draft = self._read(self._write(self._value))
                yield draft
                self._value = draft
                return
            with self._alone(self.path):
                # Values are made anew, so that a block that fails has changed nothing.
                draft = self._read(self._write(self.now()))
                yield draft
                self._replace(self.path, draft)

    def _load(self, path: Path) -> T:
        try:
            content = json.loads(read_own(path, _LARGEST))
        except OSError as error:
            self._fail(error.strerror or str(error), error)
        except (ValueError, RecursionError) as error:
            self._corrupt("it is not JSON", error)
        if not isinstance(content, dict) or not isinstance(schema := content.pop("schema", None), int):
            self._corrupt("it is no file of Truename's")
        if schema > _SCHEMA:
            problem = f"it was written by a newer Truename (schema {schema})"
            raise StoreError(file=str(path), key="schema", problem=problem, remedy="Upgrade Truename.", code="newer")
        try:
            return self._read(content)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            self._corrupt("it holds what can't be understood", error)

    @contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        try:
            make_private(path.parent)
            lock = locked(path, shared=False)
            lock.__enter__()
        except LedgerError as error:
            problem, remedy = "another process has its lock", "Wait for it, or end it, and try again."
            raise StoreError(file=str(path), key="", problem=problem, remedy=remedy, code="busy") from error
        except OSError as error:
            self._fail(error.strerror or str(error), error)
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def _replace(self, path: Path, value: T) -> None:
        raw = json.dumps({"schema": _SCHEMA, **self._write(value)}, indent=1, sort_keys=True).encode()
        if len(raw) > _LARGEST:
            problem, remedy = "it would be larger than 16 MiB", "Revoke what is not needed."
            raise StoreError(file=str(path), key="", problem=problem, remedy=remedy, code="full")
        draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
        try:
            draft.unlink(missing_ok=True)
            write_new(draft, raw)
            draft.replace(path)
            sync_directory(path.parent)
            found = path.stat()
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            self._fail(error.strerror or str(error), error)
        self._value, self._seen = value, (found.st_ino, found.st_mtime_ns, found.st_size)

    def _corrupt(self, problem: str, cause: Exception | None = None) -> NoReturn:
        remedy = "Restore it from a copy; nothing was changed."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="corrupt") from cause

    def _fail(self, problem: str, cause: OSError | None = None) -> NoReturn:
        remedy = "Check the path and the disk; nobody is let in by it meanwhile."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="unusable") from cause
