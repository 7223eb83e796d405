"""Replace tool names in a server's texts by the names that the client sees.

Only what could be nothing else is a mention; a name that is left as it is still leads to its tool (`resolve`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["MOST_READ", "TextMentions"]

# Characters of one text that are looked through.
MOST_READ: Final = 65_536
# A text of nothing but short names would grow tenfold; the most that a real one has is 9.
_MOST_CHANGED: Final = 256
# What stands together in URLs, paths, file names, flags and assignments is one token, and so none of our names.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.\-/:@#$%&+=\\^~]+")
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")
# What could be no word of a language: parts joined by a mark, or by a capital. With hyphens, three parts at least, and
# not as in "text-to-speech".
_SPELLED: Final = re.compile(
    r"[A-Za-z0-9]_+[A-Za-z0-9]|[a-z0-9][A-Z]|[A-Za-z]\.[A-Za-z]"
    r"|[A-Za-z0-9]-(?!(?:to|of|by|and|in|on|or|the|a|for)-)[A-Za-z0-9]{1,99}-[A-Za-z0-9]"
)
_COMPOUND: Final = re.compile(r"[A-Za-z0-9]-[A-Za-z0-9]")
_BRACE: Final = re.compile(r"[{}]")
_ENDS: Final = ".:"
_AROUND: Final = 32
_QUOTES: Final = {"`": "`", '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
# Scripts behind this one have no spaces between words.
_LAST_SPACED: Final = "\u2e7f"

_TOOL_BEFORE: Final = re.compile(r"(?:.*[^a-z])?tools?:?\s{1,3}", re.DOTALL | re.IGNORECASE)
_TOOL_BEHIND: Final = re.compile(r"\s{1,3}(?:mcp )?tools?\b", re.IGNORECASE)
_THE: Final = re.compile(r"(?:.*[^a-z])?the\s{1,3}", re.DOTALL | re.IGNORECASE)
_ORDER: Final = re.compile(
    r"(?:.*[^a-z])?(?:call|calls|calling|use|uses|using|run|running|invoke|invoking|prefer|see|via|from)\s{1,3}",
    re.DOTALL | re.IGNORECASE,
)
_SOMETHING_ELSE: Final = re.compile(
    r"\s{1,3}(?:param(?:eter)?|arg(?:ument)?|field|option|propert(?:y|ie)|column|flag|header|attribute|variable|key|value"
    r"|table|function|method|endpoint|event|mode|type|prompt|resource|file|folder|director(?:y|ie)|package|command)s?\b",
    re.IGNORECASE,
)
_ASSIGNED: Final = re.compile(r".*(?:[\"']\s{0,3}:|=)\s{0,3}", re.DOTALL)
_KEY: Final = re.compile(r"\s{0,3}[:=]")


class TextMentions:
    """The names of one server's tools, and how a text reads that mentions them.

    ``shown`` has the name that the client knows for each of the server's own. ``others`` are names that something else
    of the server has too, such as a parameter: they are mentions only where the text calls them tools.

    >>> names = TextMentions({"get_data": "weather_get_data", "search": "weather_search"})
    >>> names.rewritten("Search for places. Call get_data or the search tool, not /v1/get_data.")
    'Search for places. Call weather_get_data or the weather_search tool, not /v1/get_data.'
    """

    def __init__(self, shown: Mapping[str, str], others: Collection[str] = ()) -> None:
        self._shown: Final = {own: name for own, name in shown.items() if own != name and _NAME.fullmatch(own)}
        self._others: Final = frozenset(others)

    def rewritten(self, text: str, spared: Collection[str] = ()) -> str:
        """Return a text with its mentions under the names that are shown; ``spared`` names are left as they are.

        The first `MOST_READ` characters are looked through, and the first 256 mentions are changed.
        """
        if not self._shown or not (found := self._found(text, spared)):
            return text
        parts: list[str] = []
        end = 0
        for at, own in found:
            parts += text[end:at], self._shown[own]
            end = at + len(own)
        return "".join(parts) + text[end:]

    def named(self, text: str) -> frozenset[str]:
        """Return the own names that stand in a text in any way at all: in what a user wrote, they are the user's."""
        words = {*_WORD.findall(text), *(word.rstrip(_ENDS) for word in _NAME.findall(text))}
        return frozenset(words & self._shown.keys())

    def _found(self, text: str, spared: Collection[str]) -> list[tuple[int, str]]:
        end = len(text) if len(text) <= MOST_READ else max(text.rfind(" ", 0, MOST_READ), 0)
        found = [(at, own) for at, own in self._candidates(text, end) if own not in spared]
        if not found:
            return found
        enclosed = _Enclosed(text, end)
        meant = ((at, own) for at, own in found if at not in enclosed and self._is_meant(text, at, own))
        return list(islice(meant, _MOST_CHANGED))

    def _candidates(self, text: str, end: int) -> Iterator[tuple[int, str]]:
        for match in _TOKEN.finditer(text, 0, end):
            token = match[0].rstrip(_ENDS)
            if token in self._shown:
                yield match.start(), token
            elif "/" in token and self._shown.keys() >= set(names := token.split("/")):
                at = match.start()
                for name in names:
                    yield at, name
                    at += len(name) + 1

    def _is_meant(self, text: str, at: int, own: str) -> bool:
        end = at + len(own)
        before, behind = text[max(at - _AROUND, 0) : at], text[end : end + _AROUND]
        quote = before[-1:] if behind and _QUOTES.get(before[-1:]) == behind[0] else ""
        if _is_glued(before[-1:]) or _is_glued(behind[:1]):
            return False
        if quote:
            before, behind = before[:-1], behind[1:]
        if _SOMETHING_ELSE.match(behind) or (quote not in {"", "`"} and _is_assigned(before, behind)):
            return False
        is_told = _says_tool(before, behind, quoted=bool(quote))
        return is_told or (own not in self._others and _stands_out(own, before, behind, quoted=bool(quote)))


class _Enclosed:
    """The places of a text between braces: examples of arguments, templates, code."""

    def __init__(self, text: str, end: int) -> None:
        spans: list[tuple[int, int]] = []
        opened: list[int] = []
        for match in _BRACE.finditer(text, 0, end):
            if match[0] == "{":
                opened.append(match.start())
            elif opened:
                start = opened.pop()
                while spans and spans[-1][0] > start:
                    spans.pop()
                spans.append((start, match.start()))
        self._starts: Final = [start for start, _ in spans]
        self._ends: Final = [end for _, end in spans]

    def __contains__(self, at: int) -> bool:
        nearest = bisect_right(self._starts, at)
        return nearest > 0 and at < self._ends[nearest - 1]


def _is_glued(letter: str) -> bool:
    """Tell whether a character goes on with a word, or makes a tag of it; in scripts without spaces nothing does."""
    return letter in {"<", ">"} or (letter.isalpha() and letter <= _LAST_SPACED)


def _is_assigned(before: str, behind: str) -> bool:
    """Tell whether a quoted name is a key or a value, as in the JSON of an example."""
    return _ASSIGNED.fullmatch(before) is not None or _KEY.match(behind) is not None


def _says_tool(before: str, behind: str, *, quoted: bool) -> bool:
    if _TOOL_BEHIND.match(behind):
        return quoted or _THE.fullmatch(before) is not None
    return quoted and _TOOL_BEFORE.fullmatch(before) is not None


def _stands_out(own: str, before: str, behind: str, *, quoted: bool) -> bool:
    """Tell whether a name is spelled as no word is; a compound (`sign-in`) also has to be marked or asked for."""
    if _SPELLED.search(own):
        return True
    return _COMPOUND.search(own) is not None and (
        quoted or behind.startswith("(") or _ORDER.fullmatch(before) is not None
    )
