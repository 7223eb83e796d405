"""Read the text of a configuration file and edit it where it says something else, leaving every other byte alone."""

from __future__ import annotations

import re
import stat
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.editing.json import JSON
from truename.editing.merge import ABSENT, reached, same
from truename.editing.syntax import KeyPath, Language, ParsedText, SyntaxFault, place, spliced
from truename.editing.toml import TOML
from truename.editing.yaml import YAML
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.editing.syntax import Mark, Splice

__all__ = ["MAX_BYTES", "Document", "Quirk", "edited", "edits", "left_alone", "replayed"]

_LANGUAGES: Final[Mapping[str, Language]] = MappingProxyType({"json": JSON, "jsonc": JSON, "toml": TOML, "yaml": YAML})
# Standing JSON is read at the speed of C; the others take a minute for what no client's settings ever were.
MAX_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {"json": 1 << 24, "jsonc": 1 << 24, "toml": 1 << 21, "yaml": 1 << 21}
)
_BOM: Final = "\ufeff"
_KINDS: Final = (
    (stat.S_ISDIR, "it is a directory"),
    (stat.S_ISFIFO, "it is a pipe"),
    (stat.S_ISSOCK, "it is a socket"),
)
_LONGEST_KEY: Final = 200
_LINE_END: Final = re.compile(r"\n")


@dataclass(frozen=True, slots=True, order=True)
class Quirk:
    """Something in a JSON text that clients disagree about.

    ``kind`` is ``comment``, ``trailing-comma``, ``bom``, ``duplicate-key`` (of the later one, which counts) or
    ``empty``; line and column count from 1. Comments of TOML and YAML belong to them and are none.
    """

    line: int
    column: int
    kind: str


@dataclass(frozen=True, slots=True)
class Document:
    r"""A configuration file as it was read: its bytes, and their value. Immutable; edits return another.

    Editing splices text, and nothing outside the splice moves: comments, order, indentation and line ends stay. What
    an edit leads to is read again, and must equal the same edit of the plain value, or there is no edit.

    >>> from pathlib import Path
    >>> Document.parse(b'{"a": 1} // mine', Path("mcp.json"), "jsonc").with_value(("b",), [2]).raw
    b'{"a": 1, "b": [2]} // mine'
    """

    path: Path
    format: str
    raw: bytes
    value: Any = field(compare=False)
    quirks: tuple[Quirk, ...] = ()
    exists: bool = True
    _reading: ParsedText = field(repr=False, compare=False, kw_only=True)

    @classmethod
    def read(cls, path: Path, format: str) -> Document:  # noqa: A002 - the house's word
        """Read a file; a symbolic link is followed. Raises `ConfigError`: unreadable, no file, too large, broken."""
        return cls.parse(_bytes(path, MAX_BYTES.get(format, 0)), path, format)

    @classmethod
    def parse(cls, raw: bytes, path: Path, format: str) -> Document:  # noqa: A002 - as above
        """Read what a file holds. Raises `ConfigError` with line and column where it is broken."""
        return cls._parsed(raw, path, format, exists=True)

    @classmethod
    def empty(cls, path: Path, format: str) -> Document:  # noqa: A002 - as above
        """Return the document of a file that does not exist yet: an object without members."""
        return cls._parsed(b"", path, format, exists=False)

    @classmethod
    def _parsed(cls, raw: bytes, path: Path, format: str, *, exists: bool) -> Document:  # noqa: A002 - as above
        language = _LANGUAGES.get(format)
        if language is None:
            _refuse(path, "", f"{excerpt(format)} files can't be read here", "Change the file by hand.")
        if len(raw) > MAX_BYTES[format]:
            _refuse(path, "", f"it is larger than {MAX_BYTES[format]:,} bytes", "Give a configuration file.")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            _refuse(path, "", f"it is not UTF-8 (byte {error.start})", "Save it as UTF-8.", error)
        text = text.removeprefix(_BOM)
        try:
            reading = language.read(text)
        except SyntaxFault as error:
            where = "" if error.offset is None else "line {}, column {}".format(*place(text, error.offset))
            _refuse(path, where, error.problem, "Correct the file there." if where else "Correct the file.", error)
        marks = [("bom", 0)] if raw.startswith(_BOM.encode()) else []
        quirks = tuple(_quirks(text, (*marks, *reading.marks)))
        return cls(path, format, raw, reading.value, quirks, exists, _reading=reading)

    @property
    def text(self) -> str:
        """The text, without a byte order mark."""
        return self._reading.text

    def position(self, where: KeyPath) -> tuple[int, int]:
        """Return line and column, from 1, of this key or item; of what is not there, those of the nearest above it."""
        return place(self.text, _LANGUAGES[self.format].offset(self._reading, self._there(where)))

    def first_missing(self, where: KeyPath) -> KeyPath:
        """Return the shortest part of the path that is not there: what `with_value` would make, and `without` undo."""
        return where[: len(self._there(where)) + 1]

    def with_value(self, where: KeyPath, value: Any) -> Document:
        """Set a value; what is missing above it is made, and the item after a list's last appends.

        Raises `ConfigError` (``left_alone``) where the path leads through a text or a number, or where this can't be
        done without touching something else, as inside a YAML alias.
        """
        there = self._there(where)
        if there != where and reached(self.value, there) is None:
            # An object without members is often written as nothing at all, and null can't have any.
            there = there[:-1]
        if there != where:
            self._check_step(there, where[len(there)])
            value = _nested(where[len(there) + 1 :], value)
            where = where[: len(there) + 1]
        if same(reached(self.value, where), value):
            return self
        return self._edited(where, _with_edit(self.value, where, value), "put", value)

    def without(self, where: KeyPath) -> Document:
        """Remove a key or item; without one the document is returned as it is.

        Raises `ConfigError` (``left_alone``) as `with_value` does, and for a key that stands twice.
        """
        if not where or reached(self.value, where) is ABSENT:
            return self
        return self._edited(where, _with_edit(self.value, where, ABSENT), "drop")

    def _there(self, where: KeyPath) -> KeyPath:
        return next(where[:n] for n in range(len(where), -1, -1) if reached(self.value, where[:n]) is not ABSENT)

    def _check_step(self, there: KeyPath, step: str | int) -> None:
        holder = reached(self.value, there)
        if isinstance(holder, dict) and isinstance(step, str):
            return
        if isinstance(holder, list) and step == len(holder):
            return
        kind = "an object" if isinstance(holder, dict) else "a list" if isinstance(holder, list) else "a plain value"
        raise left_alone(self.path, f"it is {kind}, which has no place for {excerpt(str(step))}", key=_key(there))

    def _edited(self, where: KeyPath, wanted: Any, verb: str, *value: Any) -> Document:
        language = _LANGUAGES[self.format]
        proposals: Iterator[Sequence[Splice]] = getattr(language, verb)(self._reading, where, *value)
        try:
            for splices in proposals:
                changed = self._tried(splices)
                if changed is not None and same(changed.value, wanted):
                    return changed
        except SyntaxFault as error:
            raise left_alone(self.path, f"it can't be changed in place ({error.problem})", key=_key(where)) from error
        raise left_alone(self.path, "it can't be changed without touching something else", key=_key(where))

    def _tried(self, splices: Sequence[Splice]) -> Document | None:
        start = _BOM if self.raw.startswith(_BOM.encode()) else ""
        try:
            raw = (start + spliced(self.text, splices)).encode()
            return replace(Document.parse(raw, self.path, self.format), exists=self.exists)
        except (ConfigError, SyntaxFault, UnicodeEncodeError):
            return None


def left_alone(path: Path, problem: str, remedy: str = "", *, key: str = "") -> ConfigError:
    """Build the error for a file that is not going to be changed."""
    remedy = remedy or "Nothing was changed; make the change by hand."
    return ConfigError(code="left_alone", file=str(path), key=key, problem=problem, remedy=remedy)


def _quirks(text: str, marks: Sequence[Mark]) -> Iterator[Quirk]:
    # Lines are counted once: a text may be nothing but comments.
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))] if marks else []
    for kind, offset in marks:
        line = bisect_right(starts, offset)
        yield Quirk(line, offset - starts[line - 1] + 1, kind)


def _nested(where: KeyPath, value: Any) -> Any:
    for step in reversed(where):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _with_edit(value: Any, where: KeyPath, new: Any) -> Any:
    if not where:
        return new
    step, rest = where[0], where[1:]
    if isinstance(value, dict):
        changed = {**value, step: _with_edit(value.get(str(step)), rest, new)}
        return {key: one for key, one in changed.items() if one is not ABSENT}
    items = [*value, None] if step == len(value) else list(value)
    items[int(step)] = _with_edit(items[int(step)], rest, new)
    return [item for item in items if item is not ABSENT]


def _key(where: KeyPath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where).removeprefix(".")
    return text if text.isprintable() and len(text) <= _LONGEST_KEY else excerpt(text, _LONGEST_KEY)


def _bytes(path: Path, limit: int) -> bytes:
    try:
        # Before it is opened: what is no regular file may wait for ever, or answer by doing something.
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = next((said for test, said in _KINDS if test(mode)), "it is a device")
            _refuse(path, "", kind, "Give a file.")
        with path.open("rb") as stream:
            return stream.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        _refuse(path, "", f"it can't be read ({reason})", "Check the path.", error)


def _refuse(path: Path, key: str, problem: str, remedy: str, cause: Exception | None = None) -> NoReturn:
    raise ConfigError(file=str(path), key=key, problem=problem, remedy=remedy) from cause


def edited(document: Document, wanted: Any) -> Document:
    """Return the document with this value, every part of its text that says the same already left as it is.

    Raises `ConfigError` (``left_alone``) if the text can't be brought to say it.
    """
    changed = _towards(document, wanted, ())
    if not same(changed.value, wanted):
        raise ConfigError(
            code="left_alone",
            file=str(document.path),
            key="",
            problem="this change cannot be made in place",
            remedy="Nothing was changed; make the change by hand.",
        )
    return changed


def edits(before: Any, after: Any, where: KeyPath = ()) -> list[tuple[KeyPath, Any]]:
    """Return what leads from one value to the other: places with their new values, `ABSENT` for what is taken out.

    >>> edits({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}})
    [(('a',), ABSENT), (('b', 'c'), 3)]
    """
    if same(before, after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            edit
            for key in dict.fromkeys([*before, *after])
            for edit in edits(before.get(key, ABSENT), after.get(key, ABSENT), (*where, key))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [edit for place, (one, other) in enumerate(pairs) for edit in edits(one, other, (*where, place))]
    return [(where, after)]


def replayed(before: Any, changes: Iterable[tuple[KeyPath, Any]]) -> Any:
    """Return the value with these edits made. Raises `TypeError` for edits that belong to another value."""
    value = before
    for where, after in changes:
        value = _with(value, where, after)
    return value


def _with(value: Any, where: KeyPath, new: Any) -> Any:
    if not where:
        return new
    key, rest = where[0], where[1:]
    if isinstance(value, list) and isinstance(key, int) and key <= len(value):
        items = value[key : key + 1] or [ABSENT]
        return [*value[:key], *_present(_with(items[0], rest, new)), *value[key + 1 :]]
    if value is ABSENT or value is None:
        value = {}
    if not isinstance(value, dict) or not isinstance(key, str):
        message = f"there is no place {key!r}"
        raise TypeError(message)
    changed = {**value, key: _with(value.get(key, ABSENT), rest, new)}
    return {name: one for name, one in changed.items() if one is not ABSENT}


def _present(item: Any) -> list[Any]:
    return [] if item is ABSENT else [item]


def _towards(document: Document, wanted: Any, where: KeyPath) -> Document:
    current = reached(document.value, where)
    if same(current, wanted):
        return document
    if isinstance(current, dict) and isinstance(wanted, dict):
        return _object(document, current, wanted, where)
    if isinstance(current, list) and isinstance(wanted, list):
        return _list(document, current, wanted, where)
    return document.with_value(where, wanted)


def _object(document: Document, current: dict[str, Any], wanted: dict[str, Any], where: KeyPath) -> Document:
    # First what is new, so that no object is empty for a moment and loses its form.
    for key, value in wanted.items():
        document = _towards(document, value, (*where, key))
    for key in current:
        if key not in wanted:
            document = document.without((*where, key))
    return document


def _list(document: Document, current: list[Any], wanted: list[Any], where: KeyPath) -> Document:
    steps = _steps(current, wanted)
    if any(tag == "insert" and i < len(current) for tag, i, *_ in steps):
        return document.with_value(where, wanted)
    for tag, i, to_i, j, to_j in reversed(steps):
        shared = min(to_i - i, to_j - j)
        for index in range(to_i - 1, i + shared - 1, -1):
            document = document.without((*where, index))
        if tag == "insert" or (to_j - j > shared and to_i == len(current)):
            for place in range(shared, to_j - j):
                document = document.with_value((*where, i + place), wanted[j + place])
        for place in range(shared):
            document = _towards(document, wanted[j + place], (*where, i + place))
    if not same(reached(document.value, where), wanted):
        return document.with_value(where, wanted)
    return document


def _steps(current: Sequence[Any], wanted: Sequence[Any]) -> list[tuple[str, int, int, int, int]]:
    matcher = SequenceMatcher(a=[repr(one) for one in current], b=[repr(one) for one in wanted], autojunk=False)
    return [step for step in matcher.get_opcodes() if step[0] != "equal"]
