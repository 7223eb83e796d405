"""Record calls as JSON lines, and replay each with the tool that has its identity now."""

from __future__ import annotations

import json
import os
import secrets
import stat
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from truename.errors import (
    ConfigError,
    InvalidCall,
    InvalidToolId,
    PolicyError,
    StoreError,
    TruenameError,
    UnknownTool,
    excerpt,
)
from truename.identity import ToolId
from truename.naming import resolve
from truename.policy import Caller, Context, Exposure, Policy, bound_call
from truename.policy.arguments import read_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Self

    from truename.naming import NameTable
    from truename.policy import Call

__all__ = [
    "MAX_RECORDING",
    "BrokenLine",
    "CallRecorder",
    "RecordedCall",
    "ReplayedCall",
    "read_recording",
    "rehearse",
    "replay",
]

MAX_RECORDING: Final = 256 * 1024 * 1024
_FORMAT: Final = 1
# The arguments of the longest call with the worst escaping, and the other fields.
_LONGEST_LINE: Final = 64 * 1024 * 1024
_TEXTS: Final = ("name", "server", "tool", "call_id", "digest", "catalog", "protocol", "at")
_PLAIN: Final = Exposure()
_UNKNOWN: Final = Context()


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One call of a recording: its tool, arguments, context, and the name that was used.

    ``server`` and ``tool`` are the origin, ``digest`` that of the tool's definition, ``catalog`` that of the whole
    catalog, ``protocol`` the protocol version, ``at`` the time (UTC, ISO 8601); "" means unknown.
    """

    id: ToolId
    arguments: Mapping[str, object] = field(hash=False)
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
    """A line that is not a call: cut off when the process was killed (the last line before an end), or damaged."""

    line: int
    problem: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.problem}"


class CallRecorder:
    """A recorder that appends calls to a file, from any thread, with one write for each.

    ``exposure`` has the operator's rules about recordable tools; without it the author's metadata counts. ``max_bytes``
    limits the size of the file. A line that a killed process left incomplete is terminated, so that it does not damage
    the next.

    Raises `StoreError` (``unusable``) for a path that is not a file, or not writable.
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
        """Record a call if its tool is recordable; return whether it is.

        ``catalog`` is the catalog's digest, ``protocol`` the version of the team's protocol. Raises `StoreError`
        (``unusable`` or ``full``), which does not affect the call itself.
        """
        if not self._exposure.metadata_of(call).is_recordable:
            return False
        line = json.dumps(self._plain(call, catalog, protocol)).encode() + b"\n"
        with self._lock:
            self._append(line)
        return True

    def judge_by(self, exposure: Exposure) -> None:
        """Replace the operator's rules about recordable tools."""
        self._exposure = exposure

    def close(self) -> None:
        """Close the file, which already has all recorded calls."""
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _plain(self, call: Call, catalog: str, protocol: str) -> dict[str, object]:
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
            _refuse(self._path, "the recorder is closed", "unusable")
        try:
            if os.fstat(self._file).st_size + len(line) > self._max:
                _refuse(self._path, f"it would be larger than {self._max:,} bytes", "full", "Start another file.")
            # A line that was written in part must not damage this one.
            line = b"\n" + line if self._torn else line
            written = os.write(self._file, line)
        except OSError as error:
            _refuse(self._path, f"it cannot be written ({error.strerror or error})", "unusable")
        self._torn = written < len(line) and (self._torn or written > 0)
        if written < len(line):
            _refuse(self._path, "the disk is full", "unusable")


def _opened(path: Path) -> int:
    try:
        found = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_NONBLOCK", 0), 0o600)
    except OSError as error:
        _refuse(path, f"it cannot be opened ({error.strerror or error})", "unusable")
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            _refuse(path, "it is not a regular file", "unusable")
    except BaseException:
        os.close(found)
        raise
    return found


def _is_torn(file: int) -> bool:
    """Return whether the last line is incomplete. The file is in append mode, so its position does not matter."""
    if not os.lseek(file, 0, os.SEEK_END):
        return False
    os.lseek(file, -1, os.SEEK_END)
    return os.read(file, 1) != b"\n"


def _refuse(path: Path, problem: str, code: str, remedy: str = "Check the path and the disk.") -> NoReturn:
    raise StoreError(file=str(path), key="", problem=problem, remedy=remedy, code=code)


def read_recording(path: str | Path) -> Iterator[RecordedCall | BrokenLine]:
    """Read a recording line by line. An invalid line becomes a `BrokenLine`, and reading continues.

    Raises `StoreError`: ``unusable`` for an unreadable file, ``newer`` for a line of a newer format.
    """
    where = Path(path)
    try:
        if not where.is_file():
            _refuse(where, "it is not a regular file", "unusable", "Give the path of a recording.")
        with where.open("rb") as file:
            number = 0
            while line := file.readline(_LONGEST_LINE):
                number += 1
                if line.strip():
                    yield _entry(line, number, where)
    except OSError as error:
        _refuse(where, f"it is not readable ({error.strerror or error})", "unusable")


def _entry(line: bytes, number: int, path: Path) -> RecordedCall | BrokenLine:
    try:
        return _call(json.loads(line), number, path)
    except (ValueError, RecursionError) as error:
        if not line.endswith(b"\n"):
            problem = "it is incomplete: its writer was killed, or it is too long"
        else:
            known = isinstance(error, TruenameError | _NoCall)
            problem = str(error) if known else f"it is not JSON ({type(error).__name__})"
        return BrokenLine(line=number, problem=problem)


class _NoCall(ValueError):
    """A line of valid JSON that is not a call."""


def _call(plain: object, number: int, path: Path) -> RecordedCall:
    if not isinstance(plain, dict) or type(plain.get("truename")) is not int or plain["truename"] < 1:
        message = "it is not a recorded call"
        raise _NoCall(message)
    if plain["truename"] > _FORMAT:
        problem = f"line {number} was written by a newer Truename (format {plain['truename']})"
        _refuse(path, problem, "newer", "Upgrade Truename.")
    texts = {name: _text(plain, name) for name in _TEXTS}
    try:
        id, context = ToolId.parse(_text(plain, "id")), _context(plain.get("context"))
        arguments = read_arguments(plain.get("arguments"))
    except (InvalidToolId, InvalidCall, ConfigError) as error:
        raise _NoCall(str(error)) from error
    return RecordedCall(id=id, arguments=arguments, context=context, line=number, **texts)


def _text(plain: Mapping[str, object], name: str) -> str:
    value = plain.get(name, "")
    if not isinstance(value, str):
        message = f"{name} is of type {type(value).__name__}, not text"
        raise _NoCall(message)
    return value


def _context(plain: object) -> Context:
    if not isinstance(plain, dict) or plain.keys() - {"platform", "app", "origin"}:
        message = f"{excerpt(str(plain))} is not a context"
        raise _NoCall(message)
    return Context(**plain)


State = Literal["ready", "done", "failed", "refused", "unknown", "broken"]
_NOBODY: Final = Caller()
# The reasons for which the recorded name may be tried: the id was never seen here, or has no tool now.
_GONE: Final = ("unknown", "absent")


@dataclass(frozen=True, kw_only=True)
class ReplayedCall:
    """The result of one line of a recording.

    ``done`` with the result, ``failed`` (the tool raised), ``refused`` (by policy or context, or for lack of an
    approval), ``unknown`` (no tool has this identity now), ``broken`` (the line is not a call). A rehearsal runs
    nothing, and returns ``ready`` for calls that would run.
    """

    line: int
    state: State
    recorded: RecordedCall | None = None
    call: Call | None = None
    result: Any = None
    error: Exception | None = None
    problem: str = ""

    @property
    def is_moved(self) -> bool:
        """Whether the call went to another id, because the recorded one was redirected."""
        return self.call is not None and self.recorded is not None and self.call.id != self.recorded.id

    @property
    def is_changed(self) -> bool:
        """Whether the definition differs from the recorded one, if that is known; a rename counts."""
        known = self.recorded.digest if self.recorded else ""
        return self.call is not None and known not in ("", self.call.digest)


def replay(
    recording: Iterable[RecordedCall | BrokenLine],
    names: NameTable,
    run: Callable[[Call], Any],
    *,
    policy: Policy,
    caller: Caller = _NOBODY,
    context: Context | None = None,
    go_on: bool = False,
) -> Iterator[ReplayedCall]:
    """Run the calls of a recording again, in order; stop after the first that is not done, unless ``go_on`` is set.

    A call goes to the tool that has its identity now, or to its redirect; tools that are not for models run too, since
    the origin of these calls is ``replay``. The policy decides on each call, so calls of another platform or app are
    refused. ``context`` replaces the recorded context. ``run`` receives the bound call, with its own id.
    """
    for found in _calls(recording, names, caller, context):
        ended = found if found.call is None else _ran(found, found.call, run, policy)
        yield ended
        if ended.state != "done" and not go_on:
            return


def rehearse(
    recording: Iterable[RecordedCall | BrokenLine],
    names: NameTable,
    *,
    policy: Policy,
    caller: Caller = _NOBODY,
    context: Context | None = None,
) -> Iterator[ReplayedCall]:
    """Report for every line what `replay` would do now, without running anything."""
    for found in _calls(recording, names, caller, context):
        try:
            if found.call is not None:
                policy.enforce(found.call)
        except PolicyError as error:
            yield replace(found, state="refused", error=error, problem=str(error))
        else:
            yield found


def bind_recorded_call(entry: RecordedCall, names: NameTable, caller: Caller, call_id: str) -> Call:
    """Bind a recorded call to the tool that it belongs to now. Raises the errors of `resolve`.

    The identity is tried first. The recorded name counts only if a ledger knows it: without one, another tool may have
    it now.

    >>> from truename import Catalog, Ledger, project
    >>> ledger = Ledger.memory()
    >>> names = project(Catalog.of("fs/read_file"), "openai", ledger=ledger)
    >>> ledger.redirect("fs@1/read@1", "fs@1/read_file@1")
    >>> from truename import ToolId
    >>> entry = RecordedCall(id=ToolId.parse("fs/read"), arguments={}, name="fs_read")
    >>> str(bind_recorded_call(entry, names, Caller(), "c1").id)
    'fs@1/read_file@1'
    """
    try:
        id = resolve(str(entry.id), names).id
    except UnknownTool as error:
        if error.reason not in _GONE or not entry.name or names.ledger is None:
            raise
        if names.ledger.standing(entry.name) is None:
            raise
        id = resolve(entry.name, names).id
    return bound_call(name=str(id), call_id=call_id, arguments=entry.arguments, names=names, caller=caller)


def _calls(
    recording: Iterable[RecordedCall | BrokenLine], names: NameTable, caller: Caller, context: Context | None
) -> Iterator[ReplayedCall]:
    token = secrets.token_hex(4)
    for number, entry in enumerate(recording, 1):
        if isinstance(entry, BrokenLine):
            yield ReplayedCall(line=entry.line, state="broken", problem=entry.problem)
            continue
        who = caller.within(replace(entry.context if context is None else context, origin="replay"))
        try:
            call = bind_recorded_call(entry, names, who, f"replay-{token}-{number}")
        except TruenameError as error:
            yield ReplayedCall(line=entry.line, state="unknown", recorded=entry, error=error, problem=str(error))
        else:
            yield ReplayedCall(line=entry.line, state="ready", recorded=entry, call=call)


def _ran(found: ReplayedCall, call: Call, run: Callable[[Call], Any], policy: Policy) -> ReplayedCall:
    began = False
    try:
        with policy.running(call):
            began = True
            return replace(found, state="done", result=run(call))
    except Exception as error:  # noqa: BLE001 - whatever a tool raises is its outcome, and the report goes on
        state: State = "failed" if began or not isinstance(error, PolicyError) else "refused"
        return replace(found, state=state, error=error, problem=str(error) or type(error).__name__)
