"""Define the clauses of a convention, one row each (reader, schema, purpose), and the formats of names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

from truename.conventions.findings import Severity
from truename.dialects.registry import get
from truename.errors import UnknownDialect, excerpt
from truename.identity.tool_id import SUITE

__all__ = [
    "CASINGS",
    "CLAUSES",
    "ENDINGS",
    "LONGEST",
    "SEPARATORS",
    "Format",
    "Note",
    "Part",
    "Suppression",
    "characters_of",
    "format_of",
    "step",
]

# No dialect in the table accepts more; longer names are not checked further.
LONGEST: Final = 1_024
# The characters that people write between words; a convention allows one of them.
SEPARATORS: Final = "_-.:/ "
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_FORMATS_RANGE: Final = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_LITERAL: Final = re.compile(r"[a-z][a-zA-Z0-9]*")
_FIXED: Final = ("app", "platform")
# The placeholders for a tool's own words, each with the casing that its spelling shows.
ENDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {"verbNoun": "camel", "VerbNoun": "pascal", "verb_noun": "snake", "verb-noun": "kebab"}
)


class Casing(NamedTuple):
    """A casing of words: its pattern, an example, and the separators between words."""

    pattern: re.Pattern[str]
    example: str
    inside: str = ""


CASINGS: Final[Mapping[str, Casing]] = MappingProxyType(
    {
        "camel": Casing(re.compile(r"[a-z][a-zA-Z0-9]*"), "inputText"),
        "pascal": Casing(re.compile(r"[A-Z][a-zA-Z0-9]*"), "InputText"),
        "snake": Casing(re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*"), "input_text", "_"),
        "kebab": Casing(re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*"), "input-text", "-"),
        "canonical": Casing(SUITE, "suite.input_text", "_-."),
    }
)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a format before the tool's own words: an app, a platform, or a literal word."""

    kind: Literal["app", "platform", "literal"]
    word: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """The format of one category: its parts, and the casing of the words after them."""

    category: str
    parts: tuple[Part, ...]
    casing: str

    @property
    def precision(self) -> tuple[int, int]:
        """The specificity of the format: of two that match a name, the more specific one counts."""
        return len(self.parts), sum(part.kind == "literal" for part in self.parts)


def characters_of(spec: str) -> frozenset[str]:
    """Parse a set of characters such as ``A-Za-z0-9_-``; a hyphen between two is a range. Raises `ValueError`.

    >>> sorted(characters_of("a-c_-"))
    ['-', '_', 'a', 'b', 'c']
    """
    found: set[str] = set()
    for first, last, alone in _FORMATS_RANGE.findall(spec):
        if not alone and first > last:
            message = f"{first}-{last} runs backwards"
            raise ValueError(message)
        found.update(alone or map(chr, range(ord(first), ord(last) + 1)))
    return frozenset(found)


def format_of(category: str, text: str, separator: str) -> Format:
    """Parse a category's format. Raises `ValueError` with the reason.

    Parts are joined by the separator; the last one is the tool's own words: ``{verbNoun}``, ``{verb_noun}``,
    ``{verb-noun}`` or ``{VerbNoun}``, spelled in the casing of the words. The first separator of a name therefore
    always ends a part (docs/teams/conventions.md).

    >>> format_of("org", "org_{verbNoun}", "_").parts
    (Part(kind='literal', word='org'),)
    >>> format_of("org", "org_{verb}", "_")
    Traceback (most recent call last):
        ...
    ValueError: '{verb}' is not one of {app}, {platform}, {verbNoun}, {VerbNoun}, {verb_noun}, {verb-noun}
    """
    holders = _PLACEHOLDER.findall(text)
    for holder in holders:
        if holder not in _FIXED and holder not in ENDINGS:
            known = ", ".join(f"{{{word}}}" for word in (*_FIXED, *ENDINGS))
            message = f"{excerpt(f'{{{holder}}}')} is not one of {known}"
            raise ValueError(message)
    # A separator inside braces does not count.
    numbered = _PLACEHOLDER.sub("{}", text)
    *front, last = numbered.split(separator) if separator else [numbered]
    if last != "{}" or not holders or holders[-1] not in ENDINGS:
        ends = "the last has to be the tool's own words, such as {verbNoun}"
        joined = f"its parts have to be joined by {separator!r}, the separator"
        message = f"{joined if separator else 'its parts need a separator, and the convention has none'}; {ends}"
        raise ValueError(message)
    names = iter(holders)
    parts = tuple(_part(text if text != "{}" else next(names), is_holder=text == "{}") for text in front)
    if len({part.kind for part in parts if part.kind != "literal"}) < sum(part.kind != "literal" for part in parts):
        message = "it has one part twice"
        raise ValueError(message)
    return Format(category, parts, ENDINGS[holders[-1]])


def _part(text: str, *, is_holder: bool) -> Part:
    if is_holder and text == "app":
        return Part("app")
    if is_holder and text == "platform":
        return Part("platform")
    if is_holder:
        message = f"{{{text}}} stands before another part; it must be the last"
        raise ValueError(message)
    if not _LITERAL.fullmatch(text):
        message = f"{excerpt(text)} is not a word of letters and digits, such as org"
        raise ValueError(message)
    return Part("literal", text)


# A callback for errors: the path below the clause, the problem, the remedy ("" for the default).
Note = Callable[[str, str, str], None]
Reader = Callable[[object, Note], Any]
Schema = Mapping[str, Any]

_MOST: Final = 10_000
_LONGEST: Final = 512
_WORD: Final = re.compile(r"[a-z][a-z0-9-]*")
# The form of platforms in a tool's metadata.
_PLATFORM: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_BARE: Final = re.compile(r"[^.\[\]'\"\s]+")
_OFF: Final = "off"
_UNIQUE: Final = ("server", "everywhere")
_RANGE: Final = re.compile(r"(?:[!-,.-~](?:-[!-,.-~])?)*-?")
_VERSION: Final = re.compile(r"[_.:/-]?[a-zA-Z]+\{n\}")
_SEVERITIES: Final = tuple(one.value for one in Severity)


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """A suppression of findings: the rule (code or name), globs on names, and the reason.

    An entry without a reason is read, so that it can be reported, but suppresses nothing.
    """

    rule: str
    tools: tuple[str, ...] = ("*",)
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Clause:
    """A key of a convention; its reader reports errors and then returns None."""

    read: Reader
    schema: Schema
    what: str


def step(key: object) -> str:
    """Return a key as the last step of a path, quoted if it would not be a single step otherwise.

    >>> step("ios_*"), step("fs.list")
    ('.ios_*', ".'fs.list'")
    """
    text = str(key)
    return f".{text}" if _BARE.fullmatch(text) and text.isprintable() and len(text) <= _LONGEST else f".{excerpt(text)}"


def _error(note: Note, problem: str, where: str = "", remedy: str = "") -> None:
    note(where, problem, remedy)


def _text(value: object, note: Note, where: str = "") -> str | None:
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        _error(note, f"it is not a printable text of at most {_LONGEST} characters", where)
        return None
    return value


def _texts(value: object, note: Note, where: str = "") -> tuple[str, ...] | None:
    if not isinstance(value, list | tuple) or len(value) > _MOST:
        _error(note, f"it is not a list of at most {_MOST:,} texts", where)
        return None
    found = [_filled(item, note, f"{where}[{number}]") for number, item in enumerate(value)]
    return tuple(item for item in found if item is not None)


def _filled(value: object, note: Note, where: str = "") -> str | None:
    text = _text(value, note, where)
    if text is not None and not text.strip():
        _error(note, "it is empty", where)
        return None
    return text


def _entries(value: object, note: Note) -> dict[str, object]:
    if not isinstance(value, Mapping) or len(value) > _MOST:
        _error(note, f"it is not a table of at most {_MOST:,} entries")
        return {}
    return {key: item for key, item in value.items() if _filled(key, note, step(key)) is not None}


def _pairs(value: object, note: Note) -> Mapping[str, str]:
    found = {key: _filled(item, note, step(key)) for key, item in _entries(value, note).items()}
    return MappingProxyType({key: item for key, item in found.items() if item is not None})


def _lists(value: object, note: Note) -> Mapping[str, tuple[str, ...]]:
    found = {key: _texts(item, note, step(key)) for key, item in _entries(value, note).items()}
    return MappingProxyType({key: item for key, item in found.items() if item is not None})


def _lower(pattern: re.Pattern[str]) -> Reader:
    def read(value: object, note: Note) -> tuple[str, ...] | None:
        found = _texts(value, note)
        for number, word in enumerate(found or ()):
            if not pattern.fullmatch(word.lower()):
                _error(note, f"{excerpt(word)} is not a word of letters and digits", f"[{number}]")
        return found and tuple(word.lower() for word in found)

    return read


def _clients(value: object, note: Note) -> tuple[str, ...] | None:
    names = []
    for number, word in enumerate(_texts(value, note) or ()):
        try:
            names.append(get(word).name)
        except UnknownDialect as error:
            problem, _, remedy = str(error).rpartition(". ")
            _error(note, problem, f"[{number}]", remedy)
    return tuple(dict.fromkeys(names))


def _matching(pattern: re.Pattern[str], example: str) -> Reader:
    def read(value: object, note: Note) -> str | None:
        text = _text(value, note)
        if text and not pattern.fullmatch(text):
            _error(note, f"{excerpt(text)} is not like {example}")
            return None
        return text

    return read


def _choice(*known: str) -> Reader:
    def read(value: object, note: Note) -> str | None:
        if not isinstance(value, str) or value not in known:
            _error(note, f"it is not one of {', '.join(filter(None, known))}")
            return None
        return value

    return read


def _length(value: object, note: Note) -> int | None:
    if type(value) is not int or not 0 <= value <= LONGEST:
        _error(note, f"it is not a whole number from 0 (any length) to {LONGEST:,}")
        return None
    return value


def _severities(value: object, note: Note) -> Mapping[str, Severity | None]:
    found: dict[str, Severity | None] = {}
    for rule, word in _entries(value, note).items():
        if word is None or word == _OFF:
            found[rule] = None
        elif isinstance(word, str) and word in _SEVERITIES:
            found[rule] = Severity(word)
        else:
            _error(note, f"it is not one of {', '.join([*_SEVERITIES, _OFF])}", step(rule))
    return MappingProxyType(found)


def _suppressions(value: object, note: Note) -> tuple[Suppression, ...]:
    if not isinstance(value, list | tuple) or len(value) > _MOST:
        _error(note, f"it is not a list of at most {_MOST:,} tables")
        return ()
    found = (_suppression(item, note, f"[{number}]") for number, item in enumerate(value))
    return tuple(item for item in found if item is not None)


def _suppression(value: object, note: Note, where: str) -> Suppression | None:
    if isinstance(value, Suppression):
        value = vars(value)
    if not isinstance(value, Mapping):
        _error(note, "it is not a table with rule, tools and reason", where)
        return None
    for key in value.keys() - {"rule", "tools", "reason"}:
        _error(note, "it is not one of rule, tools, reason", where + step(key))
    rule = _filled(value.get("rule", ""), note, f"{where}.rule")
    tools = _texts(value.get("tools", ["*"]), note, f"{where}.tools")
    reason = _text(value.get("reason", ""), note, f"{where}.reason")
    return (
        None if rule is None or tools is None or reason is None else Suppression(rule=rule, tools=tools, reason=reason)
    )


def _clause(read: Reader, schema: Schema, what: str) -> Clause:
    return Clause(read=read, schema=schema, what=what)


_TEXT_SCHEMA: Final[Schema] = {"type": "string", "maxLength": _LONGEST}
_FILLED_SCHEMA: Final[Schema] = {**_TEXT_SCHEMA, "pattern": r"\S"}
_TEXTS_SCHEMA: Final[Schema] = {"type": "array", "items": _FILLED_SCHEMA}
_PAIRS_SCHEMA: Final[Schema] = {"type": "object", "additionalProperties": _FILLED_SCHEMA}
_LISTS_SCHEMA: Final[Schema] = {"type": "object", "additionalProperties": _TEXTS_SCHEMA}
_SUPPRESSIONS_SCHEMA: Final[Schema] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "rule": {**_FILLED_SCHEMA, "description": "The code or name of the rule."},
            "tools": {**_TEXTS_SCHEMA, "description": "Globs on the names of tools; without them every tool."},
            "reason": {**_TEXT_SCHEMA, "description": "Why the team accepts the findings."},
        },
        "required": ["rule"],
        "additionalProperties": False,
    },
}

CLAUSES: Final[Mapping[str, Clause]] = MappingProxyType(
    {
        "clients": _clause(_clients, _TEXTS_SCHEMA, "The clients and providers that must accept every name."),
        "characters": _clause(
            _matching(_RANGE, "A-Za-z0-9_.-"), _TEXT_SCHEMA, "The legal characters of names, as A-Za-z0-9_; empty: any."
        ),
        "max_length": _clause(
            _length,
            {"type": "integer", "minimum": 0, "maximum": LONGEST},
            "The greatest length of a name; 0: the limit of all checks (1,024).",
        ),
        "separator": _clause(
            _choice("", *SEPARATORS.strip()),
            {"enum": ["", *SEPARATORS.strip()]},
            "The separator between the parts of a name.",
        ),
        "casing": _clause(
            _choice("", *CASINGS), {"enum": ["", *CASINGS]}, "The casing of words, if there are no categories."
        ),
        "categories": _clause(
            _pairs,
            {"type": "object", "additionalProperties": {"anyOf": [_FILLED_SCHEMA, {"const": False}]}},
            "The categories of names and their formats; false removes one of the preset.",
        ),
        "apps": _clause(
            lambda value, note: None if value is None else _texts(value, note),
            _TEXTS_SCHEMA,
            "The apps that names may begin with; omitted: any.",
        ),
        "platforms": _clause(_lower(_PLATFORM), _TEXTS_SCHEMA, "The platforms that names may have as a part."),
        "owners": _clause(_pairs, _PAIRS_SCHEMA, "The owners of names: a name, an app, a glob or a format -> a team."),
        "team": _clause(_text, _TEXT_SCHEMA, "The team that owns tools without an owner."),
        "reserved": _clause(
            _texts, _TEXTS_SCHEMA, "Globs on names, and formats of categories, that only their owner may declare."
        ),
        "verbs": _clause(_lower(_WORD), _TEXTS_SCHEMA, "The verbs that a tool's own words may begin with; empty: any."),
        "version_suffix": _clause(
            _matching(_VERSION, "_v{n}"), _TEXT_SCHEMA, "The suffix that numbers a breaking change, as _v{n}."
        ),
        "device_words": _clause(_lower(_WORD), _TEXTS_SCHEMA, "Device types, which are not allowed in names."),
        "unique": _clause(
            _choice(*_UNIQUE), {"enum": list(_UNIQUE)}, "Whether names are unique on each server, or everywhere."
        ),
        "families": _clause(_lists, _LISTS_SCHEMA, "Groups of tools, as globs on names."),
        "severities": _clause(
            _severities,
            {"type": "object", "additionalProperties": {"enum": [*_SEVERITIES, _OFF]}},
            "The severity of a rule, by its code or name; or off.",
        ),
        "suppressions": _clause(
            _suppressions, _SUPPRESSIONS_SCHEMA, "Findings that the team accepts: rule, tools, reason."
        ),
        "baseline": _clause(_text, _TEXT_SCHEMA, "The file of names that existed before the convention."),
    }
)
