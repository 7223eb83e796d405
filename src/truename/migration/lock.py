"""`truename.lock`: the names and digests that a repository's tools have, one line a tool, for review in git."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from truename.conventions.rules.characters import INVISIBLE
from truename.errors import ConfigError, excerpt
from truename.identity.definition import DIGESTED_FIELDS, definition_digest
from truename.migration.pins import Key, Pin, Tools, pinned

__all__ = ["LOCK_FILE", "MAX_LOCK", "Lock", "is_lock", "quoted"]

LOCK_FILE: Final = "truename.lock"
MAX_LOCK: Final = 64 * 1024 * 1024
_FORMAT: Final = 1
_TITLE: Final = "# The names that this repository's tools have"
_HEAD: Final = f"{_TITLE}: written by `truename lock`, proved by `truename lock --check`."
_AGAIN: Final = "Restore the file, or write it anew: `truename lock SOURCE...`."
_SETTLE: Final = "Settle the conflict in the sources, take either side of this file, and run `truename lock SOURCE...`."
_NEWER: Final = "Upgrade Truename."
_PLACE: Final = re.compile(r" \(at line (\d+), column (\d+)\)\Z")
_CONFLICT: Final = re.compile(r"^(<<<<<<< |\|\|\|\|\|\|\| |=======$|=======\r$|>>>>>>> )", re.MULTILINE)
_KEYS: Final = ("format", "protocol", "sources", "tools")
_DIGESTS: Final = ("digest", "shape", "schema")
_FIELDS: Final = ("name", "server", "parameters", "limits", *_DIGESTS, "definition")
_DEFINED: Final = tuple(key for key in DIGESTED_FIELDS if key != "name")
_DIGEST: Final = re.compile(r"sha256(-plain)?:[0-9a-f]{64}")


@dataclass(frozen=True)
class Lock:
    """The tools of a repository as they were reviewed, where they were read from, and the protocol version.

    ``sources`` are paths as seen from the lock's directory. Each tool has its definition as JSON, so that a comparison
    with the lock judges as one with the tools themselves; of one that JSON can't hold only the digests are kept
    (``shape`` is that without the name, ``schema`` that of both schemas).
    """

    tools: tuple[Pin, ...] = ()
    sources: tuple[str, ...] = ()
    protocol: str = ""

    @classmethod
    def of(cls, tools: Tools, sources: Iterable[str] = (), protocol: str = "") -> Lock:
        """Return the lock of a catalogue or of declarations; of a name that one server lists twice, the first.

        Raises `ConfigError` for a name that no text file can hold (half of a surrogate pair).
        """
        pins = pinned(tools)
        for text in (text for pin in pins for text in (pin.name, pin.server, *pin.parameters)):
            _check_text(text)
        return cls(pins, tuple(sorted(set(sources))), protocol)

    @classmethod
    def parse(cls, text: str, file: str = LOCK_FILE) -> Lock:
        r"""Read the text of a lock. Raises `ConfigError` with the line of what is wrong; a merge conflict is told.

        >>> Lock.parse("<<<<<<< HEAD\n")
        Traceback (most recent call last):
        truename.errors.ConfigError: truename.lock: line 1: a merge conflict is left in it. Settle ...
        """
        return _Reader(text, file).lock()

    def text(self) -> str:
        """Return the text of the file: the same for the same tools, whatever their order."""
        head = [_HEAD, f"format = {_FORMAT}"]
        if self.protocol:
            head.append(f"protocol = {quoted(self.protocol)}")
        sources = ", ".join(map(quoted, self.sources))
        return "\n".join([*head, f"sources = [{sources}]", "tools = [", *map(_line, self.tools), "]", ""])


def is_lock(text: str) -> bool:
    """Tell whether a text was begun as a lock, broken or not."""
    begun = text.lstrip("\ufeff")
    return begun.startswith(_TITLE) or (_CONFLICT.match(begun) is not None and _TITLE in begun)


def _line(pin: Pin) -> str:
    parts = [f"name = {quoted(pin.name)}"]
    if pin.server:
        parts.append(f"server = {quoted(pin.server)}")
    parts.append(f"parameters = [{', '.join(map(quoted, pin.parameters))}]")
    if pin.limits:
        parts.append(f"limits = [{', '.join(map(quoted, pin.limits))}]")
    definition = _defined(pin)
    parts += [
        f'{key} = "{value}"'
        for key in (_DIGESTS if definition is None else _DIGESTS[:1])
        if (value := getattr(pin, key))
    ]
    if definition is not None:
        parts.append(f"definition = '{definition}'")
    return f"    {{ {', '.join(parts)} }},"


def _defined(pin: Pin) -> str | None:
    """Return a definition without its name as JSON that a TOML literal can hold; None if JSON can't hold it."""
    if pin.definition is None:
        return None
    said = {key: pin.definition[key] for key in _DEFINED if key in pin.definition}
    try:
        text = json.dumps(said, ensure_ascii=False, allow_nan=False, separators=(", ", ": "), sort_keys=True)
        again = {"name": pin.name, **json.loads(text)}
        is_whole = definition_digest(again) == pin.digest
    except (TypeError, ValueError, RecursionError):
        return None
    return "".join(map(_seen, text)) if is_whole else None


def _seen(char: str) -> str:
    if char != "'" and char.isprintable() and not INVISIBLE.match(char):
        return char
    return "".join(f"\\u{unit:04x}" for unit in _units(char))


def _units(char: str) -> tuple[int, ...]:
    """Return the code units of a character, as JSON spells it: two beyond the first 65,536."""
    raw = char.encode("utf-16-be", "surrogatepass")
    return tuple(int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2))


def quoted(text: str) -> str:
    """Return a text as TOML writes it, on one line; what a reviewer can't see is spelled out."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable() and not INVISIBLE.match(char):
        return char
    return f"\\u{ord(char):04x}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08x}"


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            file=LOCK_FILE,
            key=excerpt(text),
            problem="no text file can hold this name (half of a surrogate pair)",
            remedy="Give the tool or parameter another name; no client can call it by this one.",
        ) from error


class _Reader:
    """Reads one lock, and knows on which line each tool stands."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._lines = [number for number, line in enumerate(text.split("\n"), 1) if line.lstrip().startswith("{")]

    def lock(self) -> Lock:
        if len(self._text) > MAX_LOCK:
            raise self._fault(0, f"it is larger than {MAX_LOCK:,} characters")
        if conflict := _CONFLICT.search(self._text):
            line = self._text.count("\n", 0, conflict.start()) + 1
            raise self._fault(line, "a merge conflict is left in it", _SETTLE)
        content = self._content()
        version = content.get("format")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise self._fault(0, "it is no truename.lock: it does not say its format")
        if version > _FORMAT:
            raise self._fault(0, f"it was written by a newer Truename (format {version})", _NEWER)
        self._check_keys(content, _KEYS, 0)
        protocol = content.get("protocol", "")
        if not isinstance(protocol, str):
            raise self._fault(0, "its protocol is no text")
        return Lock(self._tools(content.get("tools")), self._texts(content, "sources", 0), protocol)

    def _content(self) -> dict[str, Any]:
        try:
            return tomllib.loads(self._text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError as error:
            place = _PLACE.search(str(error))
            line = int(place[1]) if place else self._text.count("\n") + 1
            raise self._fault(line, f"it is not TOML ({_PLACE.sub('', str(error))})") from error
        except (RecursionError, ValueError) as error:
            # Python refuses to read an integer of thousands of digits.
            raise self._fault(0, "it is nested too deeply, or holds a number that is too long") from error

    def _tools(self, listed: object) -> tuple[Pin, ...]:
        if not isinstance(listed, list):
            raise self._fault(0, "it has no list of tools")
        lines = self._lines if len(self._lines) == len(listed) else [0] * len(listed)
        found: dict[Key, Pin] = {}
        for line, entry in zip(lines, listed, strict=True):
            pin = self._pin(entry, line)
            if pin.key in found:
                raise self._fault(line, f"{excerpt(pin.name)} stands there twice")
            found[pin.key] = pin
        return tuple(found[key] for key in sorted(found))

    def _pin(self, entry: object, line: int) -> Pin:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise self._fault(line, "a tool has no name")
        self._check_keys(entry, _FIELDS, line)
        server = entry.get("server", "")
        if not isinstance(server, str):
            raise self._fault(line, f"the server of {excerpt(entry['name'])} is no text")
        recorded = {key: entry[key] for key in _DIGESTS if key in entry}
        for key, value in recorded.items():
            if not isinstance(value, str) or not _DIGEST.fullmatch(value):
                raise self._fault(line, f"the {key} of {excerpt(entry['name'])} is no digest")
        if "digest" not in recorded:
            raise self._fault(line, f"{excerpt(entry['name'])} has no digest")
        definition = self._definition(entry, line)
        pin = Pin(
            entry["name"],
            server,
            definition,
            self._texts(entry, "parameters", line),
            recorded,
            limits=self._texts(entry, "limits", line),
        )
        if pin.digest != recorded["digest"]:
            raise self._fault(line, f"the definition of {excerpt(entry['name'])} is not that of its digest")
        return pin

    def _definition(self, entry: Mapping[str, Any], line: int) -> Mapping[str, Any] | None:
        text = entry.get("definition")
        if text is None:
            return None
        try:
            found = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not found.keys() <= set(_DEFINED):
            raise self._fault(line, f"the definition of {excerpt(entry['name'])} is none, as JSON")
        return {"name": entry["name"], **found}

    def _texts(self, table: Mapping[str, Any], key: str, line: int) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._fault(line, f"its {key} are no list of texts")
        return tuple(value)

    def _check_keys(self, table: Mapping[str, Any], known: tuple[str, ...], line: int) -> None:
        for key in table:
            if key not in known:
                raise self._fault(line, f"{excerpt(key)} is nothing that a lock says")

    def _fault(self, line: int, problem: str, remedy: str = _AGAIN) -> ConfigError:
        return ConfigError(file=self._file, key=f"line {line}" if line else "", problem=problem, remedy=remedy)
