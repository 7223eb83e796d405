"""The forms that names of a convention have: casings, and the formats of its categories."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from truename.errors import excerpt
from truename.identity.grammar import SUITE

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CASINGS", "ENDINGS", "LONGEST", "SEPARATORS", "Casing", "Format", "Part", "characters_of", "format_of"]

# No dialect in the table takes more; what is longer is not looked into.
LONGEST: Final = 1_024
# Whatever people put between words; a convention allows one of them.
SEPARATORS: Final = "_-.:/ "
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_RANGE: Final = re.compile(r"(.)-(.)|(.)", re.DOTALL)
_LITERAL: Final = re.compile(r"[a-z][a-zA-Z0-9]*")
_FIXED: Final = ("app", "platform")
# A tool's own words, written in the casing that they have.
ENDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {"verbNoun": "camel", "VerbNoun": "pascal", "verb_noun": "snake", "verb-noun": "kebab"}
)


class Casing(NamedTuple):
    """How words are written: the pattern of them, an example, and which separators stand inside."""

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
    """What stands in front of a tool's own words: an app, a platform, or always the same word."""

    kind: Literal["app", "platform", "literal"]
    word: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """The format of one category: its fixed parts, and the casing of the words behind them."""

    category: str
    parts: tuple[Part, ...]
    casing: str

    @property
    def precision(self) -> tuple[int, int]:
        """How much the format asks for: of two that fit, the one that asks for more is meant."""
        return len(self.parts), sum(part.kind == "literal" for part in self.parts)


def characters_of(spec: str) -> frozenset[str]:
    """Return the characters of ``A-Za-z0-9_-``; a hyphen between two is a range. Raises `ValueError`.

    >>> sorted(characters_of("a-c_-"))
    ['-', '_', 'a', 'b', 'c']
    """
    found: set[str] = set()
    for first, last, alone in _RANGE.findall(spec):
        if not alone and first > last:
            message = f"{first}-{last} runs backwards"
            raise ValueError(message)
        found.update(alone or map(chr, range(ord(first), ord(last) + 1)))
    return frozenset(found)


def format_of(category: str, text: str, separator: str) -> Format:
    """Read a category's format. Raises `ValueError` with the reason.

    Parts are joined by the separator; the last one is the tool's own words: ``{verbNoun}``, ``{verb_noun}``,
    ``{verb-noun}`` or ``{VerbNoun}``, which is also how they are written. The first separator of a name is therefore
    always the end of a part (seed 003).

    >>> format_of("org", "org_{verbNoun}", "_").parts
    (Part(kind='literal', word='org'),)
    >>> format_of("org", "org_{verb}", "_")
    Traceback (most recent call last):
        ...
    ValueError: '{verb}' is none of {app}, {platform}, {verbNoun}, {VerbNoun}, {verb_noun}, {verb-noun}
    """
    holders = _PLACEHOLDER.findall(text)
    for holder in holders:
        if holder not in _FIXED and holder not in ENDINGS:
            known = ", ".join(f"{{{word}}}" for word in (*_FIXED, *ENDINGS))
            message = f"{excerpt(f'{{{holder}}}')} is none of {known}"
            raise ValueError(message)
    # A separator inside of braces is none.
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
        message = f"{{{text}}} stands before another part; it has to be the last"
        raise ValueError(message)
    if not _LITERAL.fullmatch(text):
        message = f"{excerpt(text)} is no word of letters and digits, such as org"
        raise ValueError(message)
    return Part("literal", text)
