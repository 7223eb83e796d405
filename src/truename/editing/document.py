"""Read a configuration file, and edit single values in its text; every other byte stays unchanged."""

from __future__ import annotations

import re
import stat
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from truename.editing.json import JSON
from truename.editing.merge import ABSENT, is_same_value, value_at
from truename.editing.syntax import InvalidSyntax, KeyPath, Language, ParsedText, apply_splices, line_and_column
from truename.editing.toml import TOML
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.editing.syntax import Mark, Splice

__all__ = ["MAX_BYTES", "Document", "Quirk", "apply_edits", "cannot_edit", "edit", "find_edits"]

_LANGUAGES: Final[Mapping[str, Language]] = MappingProxyType({"json": JSON, "jsonc": JSON, "toml": TOML})
# The parsers of TOML and YAML run in Python: above this size they take up to a minute. JSON is parsed in C.
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
    """A feature of a text that some clients accept and others refuse.

    ``kind`` is ``comment``, ``trailing-comma``, ``bom``, ``duplicate-key`` (at the later of the two keys, whose value
    is used) or ``empty``; line and column count from 1. Comments in TOML and YAML are legal and are not reported.
    """

    line: int
    column: int
    kind: str


@dataclass(frozen=True, slots=True)
class Document:
    r"""A configuration file: its bytes and the value that they hold. Immutable; edits return a new document.

    An edit replaces a piece of the text; everything outside the piece stays: comments, order, indentation, line ends.
    Each edited text is parsed again and must equal the same edit of the plain value; otherwise the edit is refused.

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
    def read(cls, path: Path, format_: str) -> Document:
        """Read a file, following symbolic links.

        Raises `ConfigError` for a file that is missing, unreadable, too large, not regular or not valid.
        """
        return cls.parse(_bytes(path, MAX_BYTES.get(format_, 0)), path, format_)

    @classmethod
    def parse(cls, raw: bytes, path: Path, format_: str) -> Document:
        """Parse the bytes of a file. Raises `ConfigError` with line and column where they are not valid."""
        return cls._parsed(raw, path, format_, exists=True)

    @classmethod
    def empty(cls, path: Path, format_: str) -> Document:
        """Return the document of a file that does not exist yet: an empty object."""
        return cls._parsed(b"", path, format_, exists=False)

    @classmethod
    def _parsed(cls, raw: bytes, path: Path, format_: str, *, exists: bool) -> Document:
        if format_ not in MAX_BYTES:
            _refuse(path, "", f"the format {excerpt(format_)} is not supported", "Change the file by hand.")
        if len(raw) > MAX_BYTES[format_]:
            _refuse(path, "", f"it is larger than {MAX_BYTES[format_]:,} bytes", "Give a configuration file.")
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            _refuse(path, "", f"it is not UTF-8 (byte {error.start})", "Save it as UTF-8.", error)
        text = text.removeprefix(_BOM)
        try:
            reading = _language(format_).read(text)
        except InvalidSyntax as error:
            where = "" if error.offset is None else "line {}, column {}".format(*line_and_column(text, error.offset))
            _refuse(path, where, error.problem, "Fix the file there." if where else "Fix the file.", error)
        marks = [("bom", 0)] if raw.startswith(_BOM.encode()) else []
        quirks = tuple(_quirks(text, (*marks, *reading.marks)))
        return cls(path, format_, raw, reading.value, quirks, exists, _reading=reading)

    @property
    def text(self) -> str:
        """The text, without a byte order mark."""
        return self._reading.text

    def position(self, where: KeyPath) -> tuple[int, int]:
        """Return line and column (from 1) of a key or item; for a missing one, those of its nearest parent."""
        return line_and_column(self.text, _language(self.format).offset(self._reading, self._existing(where)))

    def first_missing(self, where: KeyPath) -> KeyPath:
        """Return the shortest missing part of the path: `with_value` creates it, and `without` would remove it."""
        return where[: len(self._existing(where)) + 1]

    def with_value(self, where: KeyPath, value: object) -> Document:
        """Set a value, creating missing parents; the index after the last item of a list appends.

        Raises `ConfigError` (``left_alone``) where the path leads through a plain value, or where the edit would
        change something else too, as inside a YAML alias.
        """
        there = self._existing(where)
        if there != where and value_at(self.value, there) is None:
            # Empty objects are often written as null, which cannot have members: replace the null itself.
            there = there[:-1]
        if there != where:
            self._check_step(there, where[len(there)])
            for step in reversed(where[len(there) + 1 :]):
                value = {step: value} if isinstance(step, str) else [value]
            where = where[: len(there) + 1]
        if is_same_value(value_at(self.value, where), value):
            return self
        return self._edited(where, apply_edits(self.value, [(where, value)]), "put", value)

    def without(self, where: KeyPath) -> Document:
        """Remove a key or item; if it does not exist, return the same document.

        Raises `ConfigError` (``left_alone``) as `with_value` does, and for a duplicate key.
        """
        if not where or value_at(self.value, where) is ABSENT:
            return self
        return self._edited(where, apply_edits(self.value, [(where, ABSENT)]), "drop")

    def _existing(self, where: KeyPath) -> KeyPath:
        return next(where[:n] for n in range(len(where), -1, -1) if value_at(self.value, where[:n]) is not ABSENT)

    def _check_step(self, there: KeyPath, step: str | int) -> None:
        holder = value_at(self.value, there)
        if isinstance(holder, dict) and isinstance(step, str):
            return
        if isinstance(holder, list) and step == len(holder):
            return
        kind = "an object" if isinstance(holder, dict) else "a list" if isinstance(holder, list) else "a plain value"
        raise cannot_edit(self.path, f"it is {kind}, which cannot hold {excerpt(str(step))}", key=_key(there))

    def _edited(self, where: KeyPath, wanted: object, verb: str, *value: object) -> Document:
        language = _language(self.format)
        proposals: Iterator[Sequence[Splice]] = getattr(language, verb)(self._reading, where, *value)
        try:
            for splices in proposals:
                changed = self._apply(splices)
                if changed is not None and is_same_value(changed.value, wanted):
                    return changed
        except InvalidSyntax as error:
            raise cannot_edit(self.path, f"it cannot be changed in place ({error.problem})", key=_key(where)) from error
        raise cannot_edit(self.path, "it cannot be changed without changing another value", key=_key(where))

    def _apply(self, splices: Sequence[Splice]) -> Document | None:
        start = _BOM if self.raw.startswith(_BOM.encode()) else ""
        try:
            raw = (start + apply_splices(self.text, splices)).encode()
            return replace(Document.parse(raw, self.path, self.format), exists=self.exists)
        except (ConfigError, InvalidSyntax, UnicodeEncodeError):
            return None


def cannot_edit(path: Path, problem: str, remedy: str = "", *, key: str = "") -> ConfigError:
    """Return the error for a file that is left unchanged."""
    remedy = remedy or "Nothing was changed; make the change by hand."
    return ConfigError(code="left_alone", file=str(path), key=key, problem=problem, remedy=remedy)


def _language(format_: str) -> Language:
    if format_ == "yaml":
        from truename.editing.yaml import YAML  # noqa: PLC0415 - PyYAML costs 15 ms, and few clients have YAML files

        return YAML
    return _LANGUAGES[format_]


def _quirks(text: str, marks: Sequence[Mark]) -> Iterator[Quirk]:
    # Line starts are found once: a text may have thousands of comments.
    starts = [0, *(found.end() for found in _LINE_END.finditer(text))] if marks else []
    for kind, offset in marks:
        line = bisect_right(starts, offset)
        yield Quirk(line, offset - starts[line - 1] + 1, kind)


def _key(where: KeyPath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in where).removeprefix(".")
    return text if text.isprintable() and len(text) <= _LONGEST_KEY else excerpt(text, _LONGEST_KEY)


def _bytes(path: Path, limit: int) -> bytes:
    try:
        # Checked before opening: opening a pipe or a device may block for ever or have side effects.
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            kind = next((text for test, text in _KINDS if test(mode)), "it is a device")
            _refuse(path, "", kind, "Give a file.")
        with path.open("rb") as stream:
            return stream.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        _refuse(path, "", f"it cannot be read ({reason})", "Check the path.", error)


def _refuse(path: Path, key: str, problem: str, remedy: str, cause: Exception | None = None) -> NoReturn:
    raise ConfigError(file=str(path), key=key, problem=problem, remedy=remedy) from cause


def edit(document: Document, wanted: object) -> Document:
    """Return the document with this value; parts of its text whose value is the same stay unchanged.

    Raises `ConfigError` (``left_alone``) if the text cannot be edited to hold the value.
    """
    changed = _edit_part(document, wanted, ())
    if not is_same_value(changed.value, wanted):
        raise cannot_edit(document.path, "this change cannot be made in place")
    return changed


def find_edits(before: object, after: object, where: KeyPath = ()) -> list[tuple[KeyPath, object]]:
    """Return the edits that turn one value into the other: paths with new values, `ABSENT` for removed ones.

    >>> find_edits({"a": 1, "b": {"c": 2}}, {"b": {"c": 3}})
    [(('a',), ABSENT), (('b', 'c'), 3)]
    """
    if is_same_value(before, after):
        return []
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            found
            for key in dict.fromkeys([*before, *after])
            for found in find_edits(before.get(key, ABSENT), after.get(key, ABSENT), (*where, key))
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [found for place, (one, other) in enumerate(pairs) for found in find_edits(one, other, (*where, place))]
    return [(where, after)]


def apply_edits(before: object, changes: Iterable[tuple[KeyPath, object]]) -> Any:
    """Apply edits to a value and return the result. Raises `TypeError` for edits that do not fit the value."""
    value = before
    for where, after in changes:
        value = _set(value, where, after)
    return value


def _set(value: object, where: KeyPath, new: object) -> object:
    if not where:
        return new
    key, rest = where[0], where[1:]
    if isinstance(value, list) and isinstance(key, int) and key <= len(value):
        item = _set(value[key] if key < len(value) else ABSENT, rest, new)
        return [*value[:key], *([] if item is ABSENT else [item]), *value[key + 1 :]]
    if value is ABSENT or value is None:
        value = {}
    if not isinstance(value, dict) or not isinstance(key, str):
        message = f"the value has no place for {key!r}"
        raise TypeError(message)
    changed = {**value, key: _set(value.get(key, ABSENT), rest, new)}
    return {name: one for name, one in changed.items() if one is not ABSENT}


def _edit_part(document: Document, wanted: object, where: KeyPath) -> Document:
    current = value_at(document.value, where)
    if is_same_value(current, wanted):
        return document
    if isinstance(current, dict) and isinstance(wanted, dict):
        # New keys are added before old ones are removed: an object that becomes empty meanwhile loses its layout.
        for key, value in wanted.items():
            document = _edit_part(document, value, (*where, key))
        for key in [key for key in current if key not in wanted]:
            document = document.without((*where, key))
        return document
    if isinstance(current, list) and isinstance(wanted, list):
        return _edit_list(document, current, wanted, where)
    return document.with_value(where, wanted)


def _edit_list(document: Document, current: list[object], wanted: list[object], where: KeyPath) -> Document:
    matcher = SequenceMatcher(a=[repr(one) for one in current], b=[repr(one) for one in wanted], autojunk=False)
    steps = [step for step in matcher.get_opcodes() if step[0] != "equal"]
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
            document = _edit_part(document, wanted[j + place], (*where, i + place))
    if not is_same_value(value_at(document.value, where), wanted):
        return document.with_value(where, wanted)
    return document
