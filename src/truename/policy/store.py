"""Keep decisions: the `ApprovalStore` protocol, in memory and in a file."""

from __future__ import annotations

import json
import os
import secrets
import stat
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, NoReturn, Protocol, get_args

from truename.errors import InvalidToolId, StoreError, excerpt
from truename.files.lock import locked
from truename.files.private import make_private
from truename.identity import ToolId
from truename.policy.grants import MAX_CALLS, MAX_GRANTS, CallRecord, Grant, PlainBook, Scope, Subject, Where

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from contextlib import AbstractContextManager

    from truename.policy.grants import Book

__all__ = ["ApprovalStore", "FileStore", "MemoryStore", "read_book", "written_book"]

# The second has grants that end; a book without any is written as before, for older versions to read.
SCHEMA: Final = 2
_PLAIN: Final = 1
MAX_BYTES: Final = 64 * 1024 * 1024
_WHAT: Final = "truename-approvals"
_REVISION: Final = "revision"
# How much of a file is read to see whether it changed.
HEAD: Final = 128
_LONGEST: Final = 8 * 1024
_SUBJECT: Final = ("digest", "shape", "server", "name", "endpoint")
_TEXTS: Final = ("principal", "agent", "session", "call_id", "arguments", "message", "by", "at", "wire_name", "until")
_STATES: Final = ("seen", "running", "done", "failed")
# A limit that is missing would make a grant cover more than was decided.
_NEEDED: Final[Mapping[Scope, tuple[str, ...]]] = {
    "call": ("call_id", "arguments"),
    "arguments": ("arguments",),
    "session": ("session",),
    "always": (),
}


def written_book(book: PlainBook, file: str) -> bytes:
    """Return a book as it is kept. Raises `StoreError` (``full``) if it could not be read again.

    Its first bytes are other ones each time, so that who looks at them knows whether it changed.
    """
    schema = SCHEMA if any(grant.until for grant in book.grants()) else _PLAIN
    grants = ",\n".join(map(_written_grant, book.grants()))
    calls = ",\n".join(map(_written_call, book.calls()))
    # One entry a line, so that people can compare two files.
    raw = (
        f'{{\n"{_WHAT}": {schema},\n"{_REVISION}": "{secrets.token_hex(8)}",\n'
        f'"grants": [\n{grants}\n],\n"calls": [\n{calls}\n]\n}}\n'
    ).encode()
    if len(raw) > MAX_BYTES:
        _refuse(file, "", f"it would be larger than {MAX_BYTES:,} bytes", "full", "Revoke what is not needed.")
    return raw


def read_book(raw: bytes, file: str) -> PlainBook:
    """Read a book. Raises `StoreError`: ``newer``, or ``corrupt`` with the field that is wrong."""
    content = _content(raw, file)
    schema = content.get(_WHAT)
    if type(schema) is not int or schema < 1:
        _refuse(file, _WHAT, "it holds no approvals of Truename")
    if schema > SCHEMA:
        problem = f"it was written by a newer Truename (schema {schema})"
        _refuse(file, _WHAT, problem, "newer", "Upgrade Truename; nothing was changed.")
    top = _JsonObject(content, "", file)
    grants = [_grant(entry) for entry in top.entries("grants", MAX_GRANTS)]
    calls = [_call(entry) for entry in top.entries("calls", MAX_CALLS)]
    top.only({_WHAT, _REVISION, "grants", "calls"})
    for what, keys in (("grants", [grant.key for grant in grants]), ("calls", [record.where for record in calls])):
        if len(set(keys)) < len(keys):
            _refuse(file, what, "one of them stands twice")
    return PlainBook(grants, calls)


def _content(raw: bytes, file: str) -> Mapping[str, Any]:
    if len(raw) > MAX_BYTES:
        _refuse(file, "", f"it is larger than {MAX_BYTES:,} bytes")
    try:
        content = json.loads(raw, object_pairs_hook=lambda pairs: _unique(pairs, file))
    except (RecursionError, UnicodeDecodeError) as error:
        _refuse(file, "", f"it is no JSON ({type(error).__name__})")
    except ValueError as error:
        _refuse(file, f"line {getattr(error, 'lineno', 1)}", f"it is no JSON ({getattr(error, 'msg', error)})")
    if not isinstance(content, dict):
        _refuse(file, "", "it holds no approvals of Truename")
    return content


def _unique(pairs: list[tuple[str, Any]], file: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            _refuse(file, excerpt(key)[1:-1], "it stands twice")
        found[key] = value
    return found


class _JsonObject:
    """One object of the file with its place; each getter refuses what is not of its kind."""

    def __init__(self, values: object, where: str, file: str) -> None:
        self._where, self._file = where, file
        if not isinstance(values, dict):
            self.wrong("", "it is no object")
        self._values = dict(values)

    def wrong(self, name: str, problem: str) -> NoReturn:
        place = f"{self._where}.{name}" if self._where and name else self._where or name
        _refuse(self._file, place, problem)

    def only(self, known: set[str]) -> None:
        for name in self._values.keys() - known:
            self.wrong(excerpt(name)[1:-1], "it is no field of this schema")

    def entries(self, name: str, most: int) -> Iterator[_JsonObject]:
        values = self._values.get(name)
        if not isinstance(values, list) or len(values) > most:
            self.wrong(name, f"it is no list of at most {most:,}")
        for number, value in enumerate(values):
            yield _JsonObject(value, f"{name}[{number}]", self._file)

    def text(self, name: str, among: tuple[str, ...] = ()) -> str:
        value = self._values.get(name, "")
        if not isinstance(value, str) or len(value) > _LONGEST:
            self.wrong(name, f"it is no text of at most {_LONGEST:,} characters")
        if among and value not in among:
            self.wrong(name, f"{excerpt(value)} is none of {', '.join(among)}")
        return value

    def needed(self, name: str) -> None:
        if not self._values.get(name):
            self.wrong(name, "it is missing")

    def truth(self, name: str) -> bool:
        value = self._values.get(name)
        if not isinstance(value, bool):
            self.wrong(name, "it is neither true nor false")
        return value

    def id(self, name: str) -> ToolId:
        value = self.text(name)
        try:
            found = ToolId.parse(value)
        except InvalidToolId as error:
            self.wrong(name, f"{excerpt(value)} is no tool id: {error.reason}")
        if str(found) != value:
            self.wrong(name, f"{excerpt(value)} is not written as ids are")
        return found


def _kept(texts: Mapping[str, str]) -> dict[str, str]:
    for name, value in texts.items():
        if len(value) > _LONGEST:
            _refuse("approvals", name, f"it has more than {_LONGEST:,} characters", "full", "Use a shorter one.")
    return {name: value for name, value in texts.items() if value}


@lru_cache(maxsize=MAX_GRANTS)
def _written_grant(grant: Grant) -> str:
    texts = {name: getattr(grant.subject, name) for name in _SUBJECT} | {name: getattr(grant, name) for name in _TEXTS}
    kept = {"key": grant.key, "approved": grant.approved, "scope": grant.scope, "id": str(grant.subject.id)}
    return json.dumps({**kept, **_kept(texts)})


def _grant(entry: _JsonObject) -> Grant:
    entry.only({"key", "approved", "scope", "id", *_SUBJECT, *_TEXTS})
    scope: Scope = entry.text("scope", get_args(Scope))  # type: ignore[assignment]
    for name in ("key", "digest", *_NEEDED[scope]):
        entry.needed(name)
    if (until := entry.text("until")) and not _is_time(until):
        entry.wrong("until", f"{excerpt(until)} is no time in UTC, as 2026-11-22T12:00:00+00:00")
    return Grant(
        key=entry.text("key"),
        approved=entry.truth("approved"),
        scope=scope,
        subject=Subject(entry.id("id"), *(entry.text(name) for name in _SUBJECT)),
        **{name: entry.text(name) for name in _TEXTS},
    )


def _is_time(text: str) -> bool:
    """Whether a text is a time in the one form in which times can be compared as texts."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds") == text
    except (ValueError, OverflowError):
        return False


@lru_cache(maxsize=MAX_CALLS)
def _written_call(record: CallRecord) -> str:
    texts = {**record.where._asdict(), "arguments": record.arguments, "state": record.state, "at": record.at}
    return json.dumps({"id": str(record.id), **_kept(texts)})


def _call(entry: _JsonObject) -> CallRecord:
    entry.only({"id", "arguments", "state", "at", *Where._fields})
    for name in ("call_id", "arguments"):
        entry.needed(name)
    state: Any = entry.text("state", _STATES)
    where = Where(*(entry.text(name) for name in Where._fields))
    return CallRecord(
        where=where, id=entry.id("id"), arguments=entry.text("arguments"), state=state, at=entry.text("at")
    )


def _refuse(
    file: str,
    key: str,
    problem: str,
    code: str = "corrupt",
    remedy: str = "Restore the file from a copy; nothing was changed.",
) -> NoReturn:
    raise StoreError(file=file, key=key, problem=problem, remedy=remedy, code=code)


# No clock of a file system is coarser.
_TICK: Final = 2_000_000_000


class ApprovalStore(Protocol):
    """Where decisions are kept."""

    def read(self) -> Book:
        """Return what is kept now, for looking only."""
        ...

    def change(self) -> AbstractContextManager[Book]:
        """Keep everybody else out; what is done to the book is kept when the block ends well, all of it or nothing."""
        ...


class MemoryStore:
    """A store that is forgotten with its process."""

    def __init__(self) -> None:
        self._book = PlainBook()
        self._lock = threading.RLock()

    def read(self) -> PlainBook:
        """Return what is kept now, for looking only."""
        return self._book

    @contextmanager
    def change(self) -> Iterator[Book]:
        """Keep other threads out; all or nothing."""
        with self._lock:
            draft = self._book.copy()
            yield draft
            self._book = draft


class _FileState(NamedTuple):
    """What a look at a file says. Of two that were put in place one after the other, size and time may be equal."""

    size: int
    modified: int
    head: bytes

    @classmethod
    def of(cls, file: BinaryIO) -> _FileState:
        found = os.fstat(file.fileno())
        file.seek(0)
        return cls(found.st_size, found.st_mtime_ns, file.read(HEAD))


class _PathState(NamedTuple):
    """What a look at a path says, which costs less than to open it."""

    device: int
    number: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, found: os.stat_result) -> _PathState:
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)

    def is_settled(self, now: int) -> bool:
        """Tell whether whatever is put in place from ``now`` on (nanoseconds since 1970) looks otherwise.

        Until then one of the same size may have the same times, and even the number of one before it.
        """
        return max(self.modified, self.changed) < now - _TICK


class FileStore:
    """A store in a JSON file that threads and processes share.

    All methods raise `StoreError`: ``corrupt`` with the field that is wrong (the file stays as it is), ``newer``,
    ``busy``, ``unusable``, ``full``. A file that was there and is gone is ``unusable`` too: rejections, and which
    calls ran, would be forgotten with it. ``patience`` is how many seconds to wait for another process.
    """

    def __init__(self, path: str | Path, *, patience: float = 15.0) -> None:
        # A link and another working directory lead to the same file, the same lock and the same calls.
        self.path = Path(os.path.realpath(path))
        self._patience = patience
        self._lock = threading.RLock()
        self._book = PlainBook()
        self._seen: _FileState | None = None
        self._look: _PathState | None = None
        self.read()

    def read(self) -> PlainBook:
        """Return what is kept now, for looking only."""
        with self._lock:
            return self._fresh()

    @contextmanager
    def change(self) -> Iterator[Book]:
        """Keep other threads and processes out; all or nothing."""
        with self._lock, self._alone():
            draft = self._fresh().copy()
            yield draft
            seen = self._write(draft)
            self._book, self._seen = draft, seen

    def _fresh(self) -> PlainBook:
        try:
            found = os.stat(self.path)  # noqa: PTH116 - it is asked before each call
            if self._look is not None and _PathState.of(found) == self._look:
                return self._book
            if not stat.S_ISREG(found.st_mode):
                self._unusable("it is no file")
            now = time.time_ns()
            with self.path.open("rb") as file:
                seen, look = _FileState.of(file), _PathState.of(os.fstat(file.fileno()))
                raw = b"" if seen == self._seen else seen.head + file.read(MAX_BYTES)
        except FileNotFoundError:
            if self._seen is None:
                return self._book
            self._unusable("it was there, and is gone")
        except OSError as error:
            self._unusable(error.strerror or str(error), error)
        if seen != self._seen:
            self._book, self._seen = read_book(raw, str(self.path)), seen
        self._look = look if look.is_settled(now) else None
        return self._book

    @contextmanager
    def _alone(self) -> Iterator[None]:
        try:
            make_private(self.path.parent)
            lock = locked(self.path, shared=False, patience=self._patience)
            lock.__enter__()
        except TimeoutError as error:
            problem, remedy = "another process has its lock", "Wait for it, or end it, and try again."
            raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="busy") from error
        except OSError as error:
            self._unusable(error.strerror or str(error), error)
        try:
            yield
        finally:
            lock.__exit__(None, None, None)

    def _write(self, book: PlainBook) -> _FileState:
        raw = written_book(book, str(self.path))
        draft = self.path.with_name(f".{self.path.name}.{os.getpid()}.draft")
        try:
            # One that a killed process left, or that somebody laid out, is neither written through nor its mode kept.
            draft.unlink(missing_ok=True)
            with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "w+b") as file:
                file.write(raw)
                file.flush()
                os.fsync(file.fileno())
                seen = _FileState.of(file)
            draft.replace(self.path)
            _settle(self.path.parent)
        except OSError as error:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            self._unusable(error.strerror or str(error), error)
        return seen

    def _unusable(self, problem: str, cause: OSError | None = None) -> NoReturn:
        remedy = "Check the path and the disk; nothing was recorded."
        raise StoreError(file=str(self.path), key="", problem=problem, remedy=remedy, code="unusable") from cause


def _settle(directory: Path) -> None:
    # Without it a loss of power could bring the old file back, and with it a call that was run would be run again.
    with suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
