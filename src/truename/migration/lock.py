"""Read and write `truename.lock`: names and definition digests of a repository's tools, reviewed in git."""

from __future__ import annotations

import json
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

from truename.catalog import Catalog
from truename.conventions import metadata_of
from truename.conventions.characters import INVISIBLE
from truename.errors import ConfigError, excerpt
from truename.identity.definition import DIGESTED_FIELDS, definition_digest

if TYPE_CHECKING:
    from pathlib import Path

    from truename.conventions import Declaration, Location, Metadata

__all__ = [
    "LOCK_FILE",
    "MAX_LOCK",
    "Key",
    "Lock",
    "Pin",
    "Tools",
    "is_lock",
    "parse_lock",
    "pins_of",
    "read_lock",
    "read_lock_bytes",
    "toml_string",
]

Key = tuple[str, str]
Tools: TypeAlias = "Catalog | Iterable[Declaration | Pin]"

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_WORDS: Final = re.compile(r"[^\W_]+")
_READ: Final = 2_000
# A shorter description ("Get status", "Runs it.") does not identify a tool.
_ENOUGH: Final = 3
# The words of placeholders ("No description provided.", "TODO: document this tool."), which do not identify a tool.
_EMPTY: Final = frozenset(
    re.findall(
        "[a-z]+",
        "a an and api auto automatically available be been by call calls default describe described description "
        "docstring document documentation documented endpoint executes execute fixme for function generated given "
        "has is it mcp method missing na no none not operation placeholder provided run runs tbd the this to todo "
        "tool undocumented use will with yet",
    )
)
_IDEOGRAPHS: Final = "\u2e80"


@dataclass(frozen=True)
class Pin:
    """One recorded tool: its server's key, its name there, and its definition, or only the digests of that.

    ``recorded`` are the digests of a tool whose definition is not available, by name (``digest``, ``shape``,
    ``schema``). ``parameters`` are sorted names, with a ``?`` after optional ones. ``limits`` are the app and the
    platforms of the metadata: tools with different limits are different, even with equal definitions.
    """

    name: str
    server: str = ""
    definition: Mapping[str, object] | None = field(default=None, hash=False)
    parameters: tuple[str, ...] = ()
    recorded: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    location: Location | None = None
    limits: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """The key of the tool: its server and its name."""
        return self.server, self.name

    @cached_property
    def digest(self) -> str:
        """The digest of the whole definition; "" if it is unknown."""
        return self.recorded.get("digest", "") if self.definition is None else definition_digest(self.definition)

    @cached_property
    def shape(self) -> str:
        """The digest of the definition without the name; "" if the definition is too short to identify a tool."""
        if self.definition is None:
            return self.recorded.get("shape", "")
        said = self.definition.get("description")
        words = {word.lower() for word in _WORDS.findall(said[:_READ])} if isinstance(said, str) else set()
        counted = sum(len(word) // 2 if word >= _IDEOGRAPHS else 1 for word in words)
        if counted < _ENOUGH or words <= _EMPTY:
            return ""
        return definition_digest({**self.definition, "name": list(self.limits)}) if self.limits else self.unnamed

    @cached_property
    def schema(self) -> str:
        """The digest of both schemas; "" if they are unknown."""
        if self.definition is None:
            return self.recorded.get("schema", "")
        return definition_digest({key: self.definition.get(key) for key in ("inputSchema", "outputSchema")})

    def is_as(self, other: Pin) -> bool:
        """Return whether two pins of one name have the same definition."""
        if self.definition is None or other.definition is None:
            return self.digest == other.digest
        return self.unnamed == other.unnamed

    @cached_property
    def unnamed(self) -> str:
        """The digest of the definition without the name, however short; "" if it is unknown."""
        if self.definition is None:
            return ""
        return definition_digest({key: value for key, value in self.definition.items() if key != "name"})


def pins_of(tools: Tools) -> tuple[Pin, ...]:
    """Return the sorted pins of a catalog or of declarations. If a server lists a name twice, the first counts.

    >>> from truename.catalog import Catalog
    >>> [pin.key for pin in pins_of(Catalog.from_mcp({"files": ["write", "read"]}))]
    [('files', 'read'), ('files', 'write')]
    """
    found: dict[Key, Pin] = {}
    for pin in _pins(tools):
        found.setdefault(pin.key, pin)
    return tuple(found[key] for key in sorted(found))


def _pins(tools: Tools) -> Iterable[Pin]:
    if isinstance(tools, Catalog):
        told = ((tool.origin, tool.definition) for tool in tools.values())
        return (_pin(origin.name, origin.server_id, said, metadata_of(said)) for origin, said in told)
    return (
        one if isinstance(one, Pin) else _pin(one.name, one.server, one.definition, one.metadata, one.location)
        for one in tools
    )


def _pin(
    name: str, server: str, definition: Mapping[str, object], metadata: Metadata, location: Location | None = None
) -> Pin:
    # A source may omit the name in its definition, but the digest includes it.
    whole = definition if "name" in definition else {"name": name, **definition}
    limits = (metadata.app, *sorted(metadata.platforms)) if metadata.app or metadata.platforms else ()
    return Pin(name, server, whole, _parameters(definition), location=location, limits=limits)


def _parameters(definition: Mapping[str, object]) -> tuple[str, ...]:
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return ()
    listed = schema.get("required")
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return tuple(name if name in required else f"{name}?" for name in sorted(properties))


LOCK_FILE: Final = "truename.lock"
MAX_LOCK: Final = 64 * 1024 * 1024
_FORMAT: Final = 1
_TITLE: Final = "# The names that this repository's tools have"
_HEAD: Final = f"{_TITLE}: written by `truename lock`, checked by `truename lock --check`."
_AGAIN: Final = "Restore the file, or write it again: `truename lock SOURCE...`."
_SETTLE: Final = (
    "Resolve the conflict in the sources, keep either side of this file, and run `truename lock SOURCE...`."
)
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
    """The reviewed tools of a repository, their sources, and the protocol version.

    ``sources`` are paths relative to the lock's directory. Each tool has its definition as JSON, so that a comparison
    with the lock equals one with the tools; of a definition that JSON cannot express only the digests are stored
    (``shape`` without the name, ``schema`` of both schemas).
    """

    tools: tuple[Pin, ...] = ()
    sources: tuple[str, ...] = ()
    protocol: str = ""

    @classmethod
    def of(cls, tools: Tools, sources: Iterable[str] = (), protocol: str = "") -> Lock:
        """Return the lock of a catalog or of declarations; of a name that one server lists twice, the first.

        Raises `ConfigError` for a name that no text file can contain (half of a surrogate pair).
        """
        pins = pins_of(tools)
        for text in (text for pin in pins for text in (pin.name, pin.server, *pin.parameters)):
            _check_text(text)
        return cls(pins, tuple(sorted(set(sources))), protocol)

    @classmethod
    def parse(cls, text: str, file: str = LOCK_FILE) -> Lock:
        r"""Parse the text of a lock. Raises `ConfigError` with the line of an error or of a merge conflict.

        >>> Lock.parse("<<<<<<< HEAD\n")
        Traceback (most recent call last):
        truename.errors.ConfigError: truename.lock: line 1: it has an unresolved merge conflict. Resolve ...
        """
        return _LockReader(text, file).lock()

    def text(self) -> str:
        """Return the text of the file, which does not depend on the order of the tools."""
        head = [_HEAD, f"format = {_FORMAT}"]
        if self.protocol:
            head.append(f"protocol = {toml_string(self.protocol)}")
        sources = ", ".join(map(toml_string, self.sources))
        return "\n".join([*head, f"sources = [{sources}]", "tools = [", *map(_line, self.tools), "]", ""])


def is_lock(text: str) -> bool:
    """Return whether a text starts like a lock, intact or not."""
    begun = text.lstrip("\ufeff")
    return begun.startswith(_TITLE) or (_CONFLICT.match(begun) is not None and _TITLE in begun)


def _line(pin: Pin) -> str:
    parts = [f"name = {toml_string(pin.name)}"]
    if pin.server:
        parts.append(f"server = {toml_string(pin.server)}")
    parts.append(f"parameters = [{', '.join(map(toml_string, pin.parameters))}]")
    if pin.limits:
        parts.append(f"limits = [{', '.join(map(toml_string, pin.limits))}]")
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
    """Return a definition without its name as JSON for a TOML literal; None if JSON cannot express it."""
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
    # JSON escapes the UTF-16 code units of a character: two beyond U+FFFF.
    raw = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{raw[at : at + 2].hex()}" for at in range(0, len(raw), 2))


def toml_string(text: str) -> str:
    """Return a text as a TOML string on one line, with invisible characters escaped."""
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
            problem="no text file can contain this name (half of a surrogate pair)",
            remedy="Rename the tool or parameter; no client can call it by this name.",
        ) from error


class _LockReader:
    """A reader of one lock, which knows the line of each tool."""

    def __init__(self, text: str, file: str) -> None:
        self._text = text
        self._file = file
        self._lines = [number for number, line in enumerate(text.split("\n"), 1) if line.lstrip().startswith("{")]

    def lock(self) -> Lock:
        if len(self._text) > MAX_LOCK:
            raise self._error(0, f"it is larger than {MAX_LOCK:,} characters")
        if conflict := _CONFLICT.search(self._text):
            line = self._text.count("\n", 0, conflict.start()) + 1
            raise self._error(line, "it has an unresolved merge conflict", _SETTLE)
        content = self._content()
        version = content.get("format")
        if not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise self._error(0, "it is not a truename.lock: it has no format")
        if version > _FORMAT:
            raise self._error(0, f"it was written by a newer Truename (format {version})", _NEWER)
        self._check_keys(content, _KEYS, 0)
        protocol = content.get("protocol", "")
        if not isinstance(protocol, str):
            raise self._error(0, "its protocol is not a string")
        return Lock(self._tools(content.get("tools")), self._texts(content, "sources", 0), protocol)

    def _content(self) -> dict[str, object]:
        try:
            return tomllib.loads(self._text.removeprefix("\ufeff"))
        except tomllib.TOMLDecodeError as error:
            place = _PLACE.search(str(error))
            line = int(place[1]) if place else self._text.count("\n") + 1
            raise self._error(line, f"it is not TOML ({_PLACE.sub('', str(error))})") from error
        except (RecursionError, ValueError) as error:
            # Python refuses to parse an integer of thousands of digits.
            raise self._error(0, "it is nested too deeply, or contains a number that is too long") from error

    def _tools(self, listed: object) -> tuple[Pin, ...]:
        if not isinstance(listed, list):
            raise self._error(0, "it has no list of tools")
        lines = self._lines if len(self._lines) == len(listed) else [0] * len(listed)
        found: dict[Key, Pin] = {}
        for line, entry in zip(lines, listed, strict=True):
            pin = self._pin(entry, line)
            if pin.key in found:
                raise self._error(line, f"{excerpt(pin.name)} is repeated")
            found[pin.key] = pin
        return tuple(found[key] for key in sorted(found))

    def _pin(self, entry: object, line: int) -> Pin:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            raise self._error(line, "a tool has no name")
        self._check_keys(entry, _FIELDS, line)
        server = entry.get("server", "")
        if not isinstance(server, str):
            raise self._error(line, f"the server of {excerpt(entry['name'])} is not a string")
        recorded = {key: entry[key] for key in _DIGESTS if key in entry}
        for key, value in recorded.items():
            if not isinstance(value, str) or not _DIGEST.fullmatch(value):
                raise self._error(line, f"the {key} of {excerpt(entry['name'])} is not a digest")
        if "digest" not in recorded:
            raise self._error(line, f"{excerpt(entry['name'])} has no digest")
        definition = self._definition(entry["name"], entry.get("definition"), line)
        pin = Pin(
            entry["name"],
            server,
            definition,
            self._texts(entry, "parameters", line),
            recorded,
            limits=self._texts(entry, "limits", line),
        )
        if pin.digest != recorded["digest"]:
            raise self._error(line, f"the definition of {excerpt(entry['name'])} does not match its digest")
        return pin

    def _definition(self, name: str, text: object, line: int) -> Mapping[str, object] | None:
        if text is None:
            return None
        try:
            found = json.loads(text) if isinstance(text, str) else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or not found.keys() <= set(_DEFINED):
            raise self._error(line, f"the definition of {excerpt(name)} is not valid JSON of a definition")
        return {"name": name, **found}

    def _texts(self, table: Mapping[str, object], key: str, line: int) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self._error(line, f"its {key} are not a list of strings")
        return tuple(value)

    def _check_keys(self, table: Mapping[str, object], known: tuple[str, ...], line: int) -> None:
        for key in table:
            if key not in known:
                raise self._error(line, f"{excerpt(key)} is not a field of a lock")

    def _error(self, line: int, problem: str, remedy: str = _AGAIN) -> ConfigError:
        return ConfigError(file=self._file, key=f"line {line}" if line else "", problem=problem, remedy=remedy)


def read_lock(path: Path, called: str = "") -> Lock:
    """Read a lock; errors name it ``called`` if that is given. Raises `ConfigError` with the line of an error."""
    return parse_lock(read_lock_bytes(path), called or str(path))


def read_lock_bytes(path: Path) -> bytes:
    """Return the bytes of a lock, and one more than the limit if it is too large. Raises `ConfigError`."""
    try:
        # Opening a pipe would block forever.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError(file=str(path), key="", problem="it is not a regular file", remedy="Check the path.")
        with path.open("rb") as stream:
            return stream.read(MAX_LOCK + 1)
    except (OSError, ValueError) as error:
        problem = f"it is not readable ({getattr(error, 'strerror', None) or error})"
        raise ConfigError(file=str(path), key="", problem=problem, remedy="Check the path.") from error


def parse_lock(raw: bytes, called: str) -> Lock:
    """Parse the bytes of a lock. Raises `ConfigError` with the line of an error."""
    try:
        return Lock.parse(raw.decode(), called)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem, remedy = "it is not UTF-8", "Restore the file, or write it again: `truename lock SOURCE...`."
        raise ConfigError(file=called, key=f"line {line}", problem=problem, remedy=remedy) from error
