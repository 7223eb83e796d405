"""Collect all texts of a definition that a model may read, with their paths, and the tools that they mention."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from sys import intern
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.errors import excerpt

if TYPE_CHECKING:
    from truename.conventions.declarations import Declaration

__all__ = ["ToolMention", "ToolTexts", "mentions", "plain_texts", "quoted_words", "read_texts"]

# Limits for hostile definitions; the largest real one in the collection has 60,000 characters in 2,000 texts.
_MOST_PLACES: Final = 20_000
_MOST_CHARACTERS: Final = 1_000_000
# A shorter single word, such as "string" or "date-time" in a schema, is not collected.
_SHORTEST: Final = 16
_READ: Final = ("title", "description", "annotations", "inputSchema", "outputSchema")
_LONGEST_PLACE: Final = 120
_BREAK: Final = "\n\n"
_NAME_MARKS: Final = str.maketrans("_-.", "   ")

_WORD: Final = re.compile(r"[a-z_]{2,}")
# The end of a sentence; "e.g." is not one.
_ENDS: Final = re.compile(
    r"(?<!e\.g)(?<!i\.e)[.!?][\"')\]]?\s+(?=[A-Z<\[(`'\"#*])|\n\s{0,80}?\n|\n(?=[ \t]{0,12}[-*#<\[])"
)

Path = tuple[Any, ...]
# The plain types come first: checking an abstract type takes longer than everything else here.
_MAPPING: Final = (dict, Mapping)
_NESTED: Final = (dict, list, tuple, Mapping)
_FLAT: Final = frozenset({bool, int, float, type(None)})


@dataclass(frozen=True)
class ToolTexts:
    """The texts of a tool; ``whole`` is all of them, separated by empty lines.

    ``names`` are the verbatim names of the tool, its parameters and fields; in ``whole`` they are split into words.
    ``values`` are the values of enumerations.
    """

    whole: str
    starts: tuple[int, ...] = field(repr=False)
    places: tuple[Path, ...] = field(repr=False)
    names: tuple[str, ...]
    values: tuple[str, ...] = ()

    @cached_property
    def lowered(self) -> str:
        """The whole text in lower case, character by character, so that offsets are the same in both."""
        low = self.whole.lower()
        return low if len(low) == len(self.whole) else "".join(map(_lowered, self.whole))

    @cached_property
    def top(self) -> int:
        """The offset where the texts of the definition itself (name, title, description) end and nested ones begin."""
        nested = (at for at, path in zip(self.starts, self.places, strict=True) if path[0] != ())
        return next(nested, len(self.whole))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words in lower case, letters and underscores only."""
        # Tools share most words: 10,000 tools of their own words would take 8 MB.
        return frozenset(map(intern, _WORD.findall(self.lowered)))

    @cached_property
    def sentences(self) -> tuple[tuple[int, str], ...]:
        """The sentences with their offsets, in lower case with single spaces between words."""
        ends = [0, *(mark.end() for mark in _ENDS.finditer(self.whole)), len(self.whole)]
        return tuple((start, " ".join(self.lowered[start:end].split())) for start, end in pairwise(ends) if start < end)

    def place(self, offset: int) -> str:
        """Return the path in the definition of the text at an offset; of a long path only the end."""
        path = self.places[bisect_right(self.starts, offset) - 1]
        keys = []
        while path:
            path, key = path
            keys.append(key)
        place = ".".join(map(str, reversed(keys)))
        shown = place if len(place) <= _LONGEST_PLACE else f"...{place[-_LONGEST_PLACE:]}"
        return shown if shown.isprintable() else ascii(shown)[1:-1]

    def describe(self, offset: int) -> str:
        """Describe the text at an offset as the subject of a sentence: its path and its tool."""
        place = self.place(offset)
        name = excerpt(self.names[0])
        return f"The name {name}" if place == "name" else f"The {place} of {name}"


def read_texts(declaration: Declaration) -> ToolTexts:
    """Collect the texts of a declared tool that a model may read.

    >>> from truename.conventions.declarations import Declaration
    >>> schema = {"properties": {"mode": {"enum": ["fast", "do as this text says"]}}}
    >>> texts = read_texts(Declaration(name="go", definition={"description": "Goes.", "inputSchema": schema}))
    >>> texts.place(texts.whole.index("do as")), texts.names
    ('inputSchema.properties.mode.enum.1', ('go', 'mode'))

    Values that are not text are skipped, and so are texts beyond the limits.
    """
    found = _TextCollector([(((), "name"), declaration.name.translate(_NAME_MARKS))], [declaration.name])
    definition = declaration.definition
    top = {key: definition[key] for key in _READ if key in definition}
    found.texts.extend((((), key), value) for key, value in top.items() if isinstance(value, str))
    left: list[tuple[Path, Any]] = [
        (((), key), value) for key, value in reversed(top.items()) if isinstance(value, _NESTED)
    ]
    room = _MOST_PLACES
    while left and room > 0:
        path, value = left.pop()
        room -= len(value)
        left += reversed(found.take(path, value))
    return _joined(found)


def plain_texts(text: str) -> ToolTexts:
    """Wrap a text that is not part of a definition, such as a decoded one, so that the same checks apply to it."""
    return ToolTexts(text, (0,), (((), ""),), ())


@dataclass(frozen=True, slots=True)
class _TextCollector:
    """The texts, names and values collected while walking through a definition."""

    texts: list[tuple[Path, str]]
    names: list[str]
    values: list[str] = field(default_factory=list)

    def take(self, path: Path, value: Any) -> list[tuple[Path, object]]:
        """Collect the texts of a mapping or list, including keys; return the nested mappings and lists."""
        inner: list[tuple[Path, Any]] = []
        names_something = path[1] == "properties"
        for key, one in islice(value.items() if isinstance(value, _MAPPING) else enumerate(value), _MOST_PLACES):
            if isinstance(key, str):
                if names_something:
                    self.names.append(key)
                if (names_something and len(key) >= _SHORTEST) or _is_no_word(key):
                    self.texts.append(((path, key), key.translate(_NAME_MARKS)))
            if isinstance(one, str):
                if len(one) >= _SHORTEST or _is_no_word(one):
                    self.texts.append(((path, key), one))
            elif type(one) not in _FLAT and isinstance(one, _NESTED):
                inner.append(((path, key), one))
        if isinstance(value, _MAPPING) and not names_something and isinstance(allowed := value.get("enum"), list):
            self.values.extend(one for one in allowed[:_MOST_PLACES] if isinstance(one, str))
        return inner


def _is_no_word(text: str) -> bool:
    """Return whether a text is more than a single plain word, and so may tell or hide something, however short."""
    return " " in text or not (text.isascii() and text.isprintable())


def _joined(found: _TextCollector) -> ToolTexts:
    starts, at, kept = [], 0, []
    for _, text in found.texts:
        if at > _MOST_CHARACTERS:
            break
        starts.append(at)
        kept.append(text[:_MOST_CHARACTERS])
        at += len(kept[-1]) + len(_BREAK)
    places = tuple(path for path, _ in found.texts[: len(starts)])
    names, values = tuple(found.names[:_MOST_PLACES]), tuple(found.values[:_MOST_PLACES])
    return ToolTexts(_BREAK.join(kept), tuple(starts), places, names, values)


def _lowered(character: str) -> str:
    low = character.lower()
    return low if len(low) == 1 else character


# A mention is a name with parts joined by "_" or "-", or by capitals; a plain word may be anything. The words before it
# are in the same text, so they contain no empty line; the word after it may say that it is something else. A name is
# matched as a whole or not at all, so that a long one is not tried in all its parts.
_LEAD: Final = r"""
    \b(?P<lead>[Cc]all(?:s|ing|ed)?|[Ii]nvok(?:e|es|ed|ing)|[Uu]s(?:e|es|ed|ing)|[Rr]un(?:s|ning)?|[Ee]xecut(?:e|es|ing)
        |[Tt]rigger(?:s|ing)?|[Pp]refer|[Ii]nstead[ ]of|[Rr]ather[ ]than|[Ww]hen(?:ever)?|[Ee]very[ ]time|[Bb]efore
        |[Aa]fter|[Ff]rom|[Vv]ia|[Ss]ee)
    (?:[ \t]{1,20}|[ \t]{0,9}\n[ \t]{0,20}) (?:the\s{1,5})? (?P<kind>(?:tool|function|MCP[ ]tool)\s{1,5})?
"""
_TAIL: Final = r"""
    (?!\s{1,5}(?:operation|method|parameter|param|prompt|field|option|argument|endpoint|resource|property|properties|flag
        |header|event|column|value|attribute|variable|key|setting|mode|type|format|state|status)s?\b)
    (?P<tail>\s{1,5}(?:MCP[ ])?(?:tool|function)\b|\s{1,5}(?:is|was|are|gets?|has[ ]been)\s{1,5}
        (?:called|used|invoked|run)\b)?
"""
_MENTION: Final = re.compile(
    rf"""
    {_LEAD}
    [`'"]?
    (?P<name>[A-Za-z][A-Za-z0-9]{{0,40}}(?:[_-][A-Za-z0-9]{{1,40}}+){{1,9}}+
        |[a-z][a-z0-9]{{0,30}}[A-Z][A-Za-z0-9]{{1,180}}+)
    (?![A-Za-z0-9_-]|\.[a-z.]|[:/=…])
    [`'"]?+ (?:\(\))?+
    {_TAIL}
    """,
    re.VERBOSE,
)
# A single word in backticks is a name too.
_QUOTED: Final = re.compile(rf"{_LEAD} `(?P<name>[A-Za-z][A-Za-z0-9]{{1,40}})(?:\(\))?` {_TAIL}", re.VERBOSE)
# At least one of these words precedes every mention; a quick test.
_LEADS: Final = frozenset({
    "call", "calls", "called", "calling", "invoke", "invokes", "invoked", "invoking", "use", "uses", "used", "using",
    "run", "runs", "running", "execute", "executes", "executing", "trigger", "triggers", "triggering", "prefer",
    "instead", "rather", "when", "whenever", "every", "before", "after", "from", "via", "see",
})  # fmt: skip
# After these words, a mention demands a call only if the words after the name say so.
_WEAK: Final = frozenset({"when", "whenever", "every time", "before", "after", "from", "via", "see"})
# After these words, a single word may be anything that can be used: a language, a program.
_VAGUE: Final = frozenset({"use", "uses", "used", "using", "run", "runs", "running", "prefer"})


class ToolMention(NamedTuple):
    """A tool's name in a text, with its offset.

    ``is_ordered``: the text demands or mentions a call of it. ``is_called_tool``: the text says that it is a tool.
    """

    at: int
    name: str
    is_ordered: bool
    is_called_tool: bool


def mentions(texts: ToolTexts) -> tuple[ToolMention, ...]:
    """Return the names of tools that the texts tell a reader to use, in order."""
    if _LEADS.isdisjoint(texts.words):
        return ()
    return tuple(_mention(match) for match in _MENTION.finditer(texts.whole))


def quoted_words(texts: ToolTexts) -> tuple[ToolMention, ...]:
    """Return names of one word, in backticks, that the texts tell a reader to call or describe as tools."""
    if "`" not in texts.whole or _LEADS.isdisjoint(texts.words):
        return ()
    found = ((match, _mention(match)) for match in _QUOTED.finditer(texts.whole))
    return tuple(
        one for match, one in found if one.is_ordered and (one.is_called_tool or match["lead"].lower() not in _VAGUE)
    )


def _mention(match: re.Match[str]) -> ToolMention:
    tail = (match["tail"] or "").split()
    is_called_tool = tail[-1:] in (["tool"], ["function"]) or match["kind"] is not None
    is_ordered = match["lead"].lower() not in _WEAK or tail[-1:] in (["called"], ["used"], ["invoked"], ["run"])
    return ToolMention(match.start("name"), match["name"], is_ordered, is_called_tool)
