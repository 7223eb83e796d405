"""A recording: the calls of recordable tools, one line of JSON each, to be run again later (seed 003).

A line names its tool by identity, so that a recording outlives renames. Arguments are written down as they were: what
is secret in them is in the file, which is readable by its owner alone.
"""

from __future__ import annotations

import json
import os
import stat
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.errors import ConfigError, InvalidCall, InvalidToolId, StoreError, TruenameError, excerpt
from truename.identity import ToolId
from truename.policy import Context, Exposure
from truename.policy.arguments import arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from truename.policy import Call

__all__ = ["MAX_RECORDING", "BrokenLine", "RecordedCall", "Recorder", "read_recording"]

MAX_RECORDING: Final = 256 * 1024 * 1024
_FORMAT: Final = 1
# Arguments of the longest call, escaped at their worst, and what stands around them.
_LONGEST_LINE: Final = 64 * 1024 * 1024
_TEXTS: Final = ("name", "server", "tool", "call_id", "digest", "catalog", "protocol", "at")
_PLAIN: Final = Exposure()
_UNKNOWN: Final = Context()


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One call of a recording: its tool and arguments, the name that was used, and what it was called in.

    ``server`` and ``tool`` are the origin, ``digest`` is of the tool's definition then, ``catalog`` of all that there
    was, ``protocol`` the version that was spoken, ``at`` when (UTC, ISO 8601); "" is unknown.
    """

    id: ToolId
    arguments: Mapping[str, Any] = field(hash=False)
    context: Context = _UNKNOWN
    name: str = ""
    server: str = ""
    tool: str = ""
    call_id: str = ""
    digest: str = ""
    catalog: str = ""
    protocol: str = ""
    at: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, kw_only=True)
class BrokenLine:
    """A line that is no call: cut off by a kill (only the last one ever is, or one before a new start), or damaged."""

    line: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}"


class Recorder:
    """Writes calls to a file, appending, from any thread; one write a call, nothing is kept open by a reader.

    ``exposure`` is the operator's word on what is recordable; without it the author's counts. ``max_bytes`` is how
    large the file may grow. A line that a killed process left half-written is ended, so that it spoils no other.

    Raises `StoreError` (``unusable``) for a path that is no file, or can't be written.
    """

    def __init__(
        self,
        path: str | Path,
        exposure: Exposure | None = None,
        *,
        max_bytes: int = MAX_RECORDING,
        now: Callable[[], str] = lambda: datetime.now(UTC).isoformat(timespec="milliseconds"),
    ) -> None:
        self._path, self._exposure, self._max, self._now = Path(path), exposure or _PLAIN, max_bytes, now
        self._lock = threading.Lock()
        self._file = _opened(self._path)
        self._torn = _is_torn(self._file)

    def write(self, call: Call, *, catalog: str = "", protocol: str = "") -> bool:
        """Write a call down if its tool is recordable, and tell whether it is.

        ``catalog`` is the catalogue's digest, ``protocol`` the version of the team's protocol. Raises `StoreError`:
        ``unusable``, or ``full``; the call itself is not concerned.
        """
        if not self._exposure.metadata_of(call).is_recordable:
            return False
        line = json.dumps(self._plain(call, catalog, protocol)).encode() + b"\n"
        with self._lock:
            self._append(line)
        return True

    def judge_by(self, exposure: Exposure) -> None:
        """Have another operator's word on what is recordable from now on."""
        self._exposure = exposure

    def close(self) -> None:
        """Close the file; what was written is in it already."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _plain(self, call: Call, catalog: str, protocol: str) -> dict[str, Any]:
        context = call.caller.context
        texts = (call.wire_name, call.origin.server, call.origin.name, call.call_id, call.digest, catalog, protocol)
        return {
            "truename": _FORMAT,
            "id": str(call.id),
            "arguments": call.arguments,
            "context": {"platform": context.platform, "app": context.app, "origin": context.origin},
            **{name: text for name, text in zip(_TEXTS, (*texts, self._now()), strict=True) if text},
        }

    def _append(self, line: bytes) -> None:
        if self._file < 0:
            _refuse(self._path, "it was closed", "unusable")
        try:
            if os.fstat(self._file).st_size + len(line) > self._max:
                _refuse(self._path, f"it would be larger than {self._max:,} bytes", "full", "Begin another file.")
            # What could be written of the line before must not spoil this one.
            line = b"\n" + line if self._torn else line
            written = os.write(self._file, line)
        except OSError as error:
            _refuse(self._path, f"it can't be written ({error.strerror or error})", "unusable")
        self._torn = written < len(line) and (self._torn or written > 0)
        if written < len(line):
            _refuse(self._path, "the disk is full", "unusable")


def _opened(path: Path) -> int:
    try:
        found = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
    except OSError as error:
        _refuse(path, f"it can't be opened ({error.strerror or error})", "unusable")
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            _refuse(path, "it is no file", "unusable")
    except BaseException:
        os.close(found)
        raise
    return found


def _is_torn(file: int) -> bool:
    """Tell whether the last line has no end. The file is appended to, wherever this leaves its position."""
    if not os.lseek(file, 0, os.SEEK_END):
        return False
    os.lseek(file, -1, os.SEEK_END)
    return os.read(file, 1) != b"\n"


def _refuse(path: Path, problem: str, code: str, remedy: str = "Check the path and the disk.") -> NoReturn:
    raise StoreError(file=str(path), key="", problem=problem, remedy=remedy, code=code)


def read_recording(path: str | Path) -> Iterator[RecordedCall | BrokenLine]:
    """Read a recording, line by line. What is no call is a `BrokenLine` at its place, and the next one is read.

    Raises `StoreError`: ``unusable`` for a file that can't be read, ``newer`` for a line of a later format.
    """
    where = Path(path)
    try:
        if not where.is_file():
            _refuse(where, "it is no file", "unusable", "Give the path of a recording.")
        with where.open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if line.strip():
                    yield _entry(line, number, where)
    except OSError as error:
        _refuse(where, f"it can't be read ({error.strerror or error})", "unusable")


def _entry(line: bytes, number: int, path: Path) -> RecordedCall | BrokenLine:
    try:
        return _call(json.loads(line), number, path)
    except (ValueError, RecursionError) as error:
        if not line.endswith(b"\n"):
            problem = "it has no end: whoever wrote it was stopped there, or it is too long"
        else:
            known = isinstance(error, TruenameError | _NoCall)
            problem = str(error) if known else f"it is no JSON ({type(error).__name__})"
        return BrokenLine(line=number, problem=problem)


class _NoCall(ValueError):
    """A line that is JSON, and no call."""


def _call(plain: object, number: int, path: Path) -> RecordedCall:
    if not isinstance(plain, dict) or type(plain.get("truename")) is not int or plain["truename"] < 1:
        message = "it is no call of a recording"
        raise _NoCall(message)
    if plain["truename"] > _FORMAT:
        problem = f"line {number} was written by a newer Truename (format {plain['truename']})"
        _refuse(path, problem, "newer", "Upgrade Truename.")
    texts = {name: _text(plain, name) for name in _TEXTS}
    try:
        id, context = ToolId.parse(_text(plain, "id")), _context(plain.get("context"))
        arguments = arguments_of(plain.get("arguments"))
    except (InvalidToolId, InvalidCall, ConfigError) as error:
        raise _NoCall(str(error)) from error
    return RecordedCall(id=id, arguments=arguments, context=context, line=number, **texts)


def _text(plain: Mapping[str, Any], name: str) -> str:
    value = plain.get(name, "")
    if not isinstance(value, str):
        message = f"{name} is of type {type(value).__name__}, not text"
        raise _NoCall(message)
    return value


def _context(plain: object) -> Context:
    if not isinstance(plain, dict) or plain.keys() - {"platform", "app", "origin"}:
        message = f"{excerpt(str(plain))} is no context"
        raise _NoCall(message)
    return Context(**plain)
