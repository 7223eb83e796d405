"""Replace tool names in a server's texts by the names that the client sees.

Only text that cannot be anything but a tool's name is replaced. A name that is not replaced still resolves to its tool.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

__all__ = ["MOST_READ", "TextMentions"]

# How many characters of one text are searched.
MOST_READ: Final = 65_536
# The limit stops a text of many short names from growing tenfold; real texts have at most 9 mentions.
_MOST_CHANGED: Final = 256
# A URL, path, file name, flag or assignment is one token, so a tool's name inside it is not a mention.
_TOKEN: Final = re.compile(r"[A-Za-z0-9_.\-/:@#$%&+=\\^~]+")
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_WORD: Final = re.compile(r"[A-Za-z0-9_-]+")
# Spellings that no ordinary word has: parts joined by a mark or a capital. With hyphens at least three parts, and not
# like "text-to-speech".
_SPELLED: Final = re.compile(
    r"[A-Za-z0-9]_+[A-Za-z0-9]|[a-z0-9][A-Z]|[A-Za-z]\.[A-Za-z]"
    r"|[A-Za-z0-9]-(?!(?:to|of|by|and|in|on|or|the|a|for)-)[A-Za-z0-9]{1,99}-[A-Za-z0-9]"
)
_COMPOUND: Final = re.compile(r"[A-Za-z0-9]-[A-Za-z0-9]")
_BRACE: Final = re.compile(r"[{}]")
_ENDS: Final = ".:"
_AROUND: Final = 32
_QUOTES: Final = {"`": "`", '"': '"', "'": "'", "\u201c": "\u201d", "\u2018": "\u2019"}
# The scripts after this character write no spaces between words.
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
    """A rewriter of the mentions of one server's tools in texts.

    ``shown`` maps the server's own tool names to those that the client sees. ``others`` are names that something else
    of the server has too, such as a parameter: they are mentions only where the text calls them tools.

    >>> names = TextMentions({"get_data": "weather_get_data", "search": "weather_search"})
    >>> names.rewritten("Search for places. Call get_data or the search tool, not /v1/get_data.")
    'Search for places. Call weather_get_data or the weather_search tool, not /v1/get_data.'
    """

    def __init__(self, shown: Mapping[str, str], others: Collection[str] = ()) -> None:
        self._shown: Final = {own: name for own, name in shown.items() if own != name and _NAME.fullmatch(own)}
        self._others: Final = frozenset(others)

    def rewritten(self, text: str, spared: Collection[str] = ()) -> str:
        """Return a text with its mentions replaced by the shown names, except the ``spared`` names.

        Only the first `MOST_READ` characters are searched, and only the first 256 mentions are replaced.
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
        """Return the server's names that occur in a text as words, mentions or not.

        A name that a user wrote in an argument belongs to the user's text and must not be replaced in the answer.
        """
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
        is_called_tool = _says_tool(before, behind, quoted=bool(quote))
        return is_called_tool or (own not in self._others and _stands_out(own, before, behind, quoted=bool(quote)))


class _Enclosed:
    """The positions of a text that are between braces, such as example arguments, templates and code."""

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
    """Return whether a neighbouring character belongs to the word or makes it a tag.

    Letters of scripts without spaces between words do not count.
    """
    return letter in {"<", ">"} or (letter.isalpha() and letter <= _LAST_SPACED)


def _is_assigned(before: str, behind: str) -> bool:
    """Return whether a quoted name is a key or a value, as in example JSON."""
    return _ASSIGNED.fullmatch(before) is not None or _KEY.match(behind) is not None


def _says_tool(before: str, behind: str, *, quoted: bool) -> bool:
    if _TOOL_BEHIND.match(behind):
        return quoted or _THE.fullmatch(before) is not None
    return quoted and _TOOL_BEFORE.fullmatch(before) is not None


def _stands_out(own: str, before: str, behind: str, *, quoted: bool) -> bool:
    """Return whether a name cannot be an ordinary word; a compound (`sign-in`) also needs quotes, "(" or a verb."""
    if _SPELLED.search(own):
        return True
    return _COMPOUND.search(own) is not None and (
        quoted or behind.startswith("(") or _ORDER.fullmatch(before) is not None
    )
