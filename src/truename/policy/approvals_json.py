"""Write decisions and calls as JSON, and read them strictly: a limit that is missing would widen a grant."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NoReturn, TypeVar

from truename.errors import InvalidToolId, StoreError, excerpt
from truename.identity import ToolId
from truename.policy.approval_validity import Grant, Scope, Subject
from truename.policy.store import MAX_CALLS, MAX_GRANTS, CallKey, MemoryRecords, StoredCall

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from truename.policy.store import CallState

__all__ = ["LONGEST_TEXT", "is_time", "read_book", "written_book"]

_Word = TypeVar("_Word", bound=str)

# The second has grants that end; a book without any is written as before, for older versions to read.
SCHEMA: Final = 2
_PLAIN: Final = 1
MAX_BYTES: Final = 64 * 1024 * 1024
_WHAT: Final = "truename-approvals"
_REVISION: Final = "revision"
LONGEST_TEXT: Final = 8 * 1024
_SUBJECT: Final = ("digest", "shape", "server", "name", "endpoint")
_TEXTS: Final = ("principal", "agent", "session", "call_id", "arguments", "message", "by", "at", "wire_name", "until")
_STATES: Final[tuple[CallState, ...]] = ("seen", "running", "done", "failed")
# A limit that is missing would make a grant cover more than was decided.
_NEEDED: Final[Mapping[Scope, tuple[str, ...]]] = {
    "call": ("call_id", "arguments"),
    "arguments": ("arguments",),
    "session": ("session",),
    "always": (),
}


def written_book(book: MemoryRecords, file: str) -> bytes:
    """Return the grants and call records of a store as JSON. Raises `StoreError` (``full``) above `MAX_BYTES`."""
    schema = SCHEMA if any(grant.until for grant in book.grants()) else _PLAIN
    grants = ",\n".join(map(_written_grant, book.grants()))
    calls = ",\n".join(map(_written_call, book.calls()))
    # One entry a line, so that people can compare two files.
    raw = (f'{{\n"{_WHAT}": {schema},\n"grants": [\n{grants}\n],\n"calls": [\n{calls}\n]\n}}\n').encode()
    if len(raw) > MAX_BYTES:
        _refuse(file, "", f"it would be larger than {MAX_BYTES:,} bytes", "full", "Revoke what is not needed.")
    return raw


def read_book(raw: bytes, file: str) -> MemoryRecords:
    """Read decisions and calls from JSON. Raises `StoreError`: ``newer``, or ``corrupt`` with the invalid field."""
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
            _refuse(file, what, "one of them occurs twice")
    return MemoryRecords(grants, calls)


def _content(raw: bytes, file: str) -> Mapping[str, object]:
    if len(raw) > MAX_BYTES:
        _refuse(file, "", f"it is larger than {MAX_BYTES:,} bytes")
    try:
        content = json.loads(raw, object_pairs_hook=lambda pairs: _unique(pairs, file))
    except (RecursionError, UnicodeDecodeError) as error:
        _refuse(file, "", f"it is not JSON ({type(error).__name__})")
    except ValueError as error:
        _refuse(file, f"line {getattr(error, 'lineno', 1)}", f"it is not JSON ({getattr(error, 'msg', error)})")
    if not isinstance(content, dict):
        _refuse(file, "", "it holds no approvals of Truename")
    return content


def _unique(pairs: list[tuple[str, object]], file: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            _refuse(file, excerpt(key)[1:-1], "it occurs twice")
        found[key] = value
    return found


class _JsonObject:
    """One object of the file with its place; each getter refuses what is not of its kind."""

    def __init__(self, values: object, where: str, file: str) -> None:
        self._where, self._file = where, file
        if not isinstance(values, dict):
            self.wrong("", "it is not an object")
        self._values = dict(values)

    def wrong(self, name: str, problem: str) -> NoReturn:
        place = f"{self._where}.{name}" if self._where and name else self._where or name
        _refuse(self._file, place, problem)

    def only(self, known: set[str]) -> None:
        for name in self._values.keys() - known:
            self.wrong(excerpt(name)[1:-1], "it is not a field of this schema")

    def entries(self, name: str, most: int) -> Iterator[_JsonObject]:
        values = self._values.get(name)
        if not isinstance(values, list) or len(values) > most:
            self.wrong(name, f"it is not a list of at most {most:,}")
        for number, value in enumerate(values):
            yield _JsonObject(value, f"{name}[{number}]", self._file)

    def text(self, name: str) -> str:
        value = self._values.get(name, "")
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            self.wrong(name, f"it is not a text of at most {LONGEST_TEXT:,} characters")
        return value

    def one_of(self, name: str, words: tuple[_Word, ...]) -> _Word:
        text = self.text(name)
        found = next((word for word in words if word == text), None)
        if found is None:
            self.wrong(name, f"{excerpt(text)} is not one of {', '.join(words)}")
        return found

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
            self.wrong(name, f"{excerpt(value)} is not a tool id: {error.reason}")
        if str(found) != value:
            self.wrong(name, f"{excerpt(value)} is not written as ids are")
        return found


def _kept(texts: Mapping[str, str]) -> dict[str, str]:
    for name, value in texts.items():
        if len(value) > LONGEST_TEXT:
            _refuse("approvals", name, f"it has more than {LONGEST_TEXT:,} characters", "full", "Use a shorter one.")
    return {name: value for name, value in texts.items() if value}


@lru_cache(maxsize=MAX_GRANTS)
def _written_grant(grant: Grant) -> str:
    texts = {name: getattr(grant.subject, name) for name in _SUBJECT} | {name: getattr(grant, name) for name in _TEXTS}
    kept = {"key": grant.key, "approved": grant.approved, "scope": grant.scope, "id": str(grant.subject.id)}
    return json.dumps({**kept, **_kept(texts)})


def _grant(entry: _JsonObject) -> Grant:
    entry.only({"key", "approved", "scope", "id", *_SUBJECT, *_TEXTS})
    scope = entry.one_of("scope", tuple(_NEEDED))
    for name in ("key", "digest", *_NEEDED[scope]):
        entry.needed(name)
    if (until := entry.text("until")) and not is_time(until):
        entry.wrong("until", f"{excerpt(until)} is not a time in UTC, as 2026-11-22T12:00:00+00:00")
    return Grant(
        key=entry.text("key"),
        approved=entry.truth("approved"),
        scope=scope,
        subject=Subject(entry.id("id"), *(entry.text(name) for name in _SUBJECT)),
        **{name: entry.text(name) for name in _TEXTS},
    )


def is_time(text: str) -> bool:
    """Whether a text is a time in the one form in which times can be compared as texts."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds") == text
    except (ValueError, OverflowError):
        return False


@lru_cache(maxsize=MAX_CALLS)
def _written_call(record: StoredCall) -> str:
    texts = {**record.where._asdict(), "arguments": record.arguments, "state": record.state, "at": record.at}
    return json.dumps({"id": str(record.id), **_kept(texts)})


def _call(entry: _JsonObject) -> StoredCall:
    entry.only({"id", "arguments", "state", "at", *CallKey._fields})
    for name in ("call_id", "arguments"):
        entry.needed(name)
    where = CallKey(*(entry.text(name) for name in CallKey._fields))
    state = entry.one_of("state", _STATES)
    return StoredCall(
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
