"""Search over tools: readable names, descriptions and parameters, ranked by SQLite's full-text index in memory.

Words are cut and folded here, so that ``createPage``, ``create-page`` and "Create Pages" meet, and a query is only
ever a list of quoted words: there is no text that could be read as the index's own language.
"""

from __future__ import annotations

import re
import sqlite3
import string
from collections import Counter
from functools import lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.naming.words import split

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.catalog import Tool

__all__ = ["ToolIndex", "Words", "terms", "words_of"]

_MAX_TEXT: Final = 4_000
_MAX_PARAMETERS: Final = 200
_MAX_QUERY: Final = 2_000
_MAX_TERMS: Final = 24
# Rows that one query ranks, for that is what a search costs; and how many words of the rest count where those are.
_MAX_RANKED: Final = 4_000
_MOST_COMMON: Final = 4
_MIN_GUESSED: Final = 4
_MIN_PREFIX: Final = 3
_MOST_GUESSES: Final = 3
_RUN: Final = re.compile(r"[^\W_]+")
_LONGEST_WORD: Final = 64
# Words that say nothing of a tool; each stands in every other description.
_EMPTY: Final = frozenset(
    re.findall(
        "[a-z]+",
        """a an and any are as at be by can do for from has have how i in into is it its me my of on or our please that
        the their then there these this to use used using want was we what when where which will with would you your""",
    )
)
# How often a term counts in names, descriptions and parameters: to say it thirty times helps nobody.
_COUNTED: Final = (1, 2, 1)
# A term for the index that no query can have.
_SAID_AGAIN: Final = "\ue000"
_SCHEMA: Final = "CREATE VIRTUAL TABLE tools USING fts5(name, description, parameters, content='', tokenize='ascii')"
_VOCABULARY: Final = "CREATE VIRTUAL TABLE vocabulary USING fts5vocab(tools, row)"
_SEARCH: Final = "SELECT rowid FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 2.0, 1.0, 0.5), rowid"


class Words(NamedTuple):
    """What is searched of one tool: the words of its names, of its description, of its parameters."""

    name: str
    description: str
    parameters: str


class ToolIndex:
    """An index of tools by number. It is made once and never changes; where two are equal, the lower number is first.

    >>> rows = Words("git registry create issue", "Open a ticket.", "title"), Words("time now", "What it is.", "")
    >>> index = ToolIndex(rows)
    >>> list(index.search("open a tickt")), list(index.search('"NEAR( OR *')), list(index.search("creating issues"))
    ([0], [], [0])
    """

    def __init__(self, rows: Iterable[Words]) -> None:
        self._base = sqlite3.connect(":memory:", check_same_thread=False)
        self._base.execute(_SCHEMA)
        numbered = ((number, *map(_joined, row, _COUNTED)) for number, row in enumerate(rows))
        self._base.executemany("INSERT INTO tools (rowid, name, description, parameters) VALUES (?, ?, ?, ?)", numbered)
        self._base.execute("INSERT INTO tools (tools) VALUES ('optimize')")
        self._base.execute(_VOCABULARY)
        self._base.commit()
        self._count: dict[str, int] = dict(self._base.execute("SELECT term, doc FROM vocabulary ORDER BY term"))

    def search(self, query: str) -> Iterator[int]:
        """Yield the numbers of the tools that have something of a query, the best first; none for an empty one."""
        asked = self._asked(query)
        if asked:
            for (number,) in self._base.execute(_SEARCH, (self._matched(asked),)):
                yield number

    @property
    def size(self) -> int:
        """Bytes of memory that the index itself takes."""
        (pages,), (each,) = (self._base.execute(f"PRAGMA page_{what}").fetchone() for what in ("count", "size"))
        return int(pages * each)

    def close(self) -> None:
        """Give the memory back."""
        self._base.close()

    def _asked(self, query: str) -> list[str]:
        """Return the index's words for a query, the rarest first."""
        known = dict.fromkeys(term for word in _asked(query) for term in self._known(word))
        return sorted(known, key=lambda term: (self._count[term], term))

    def _matched(self, asked: list[str]) -> str:
        """Return what rows must match: one of the rarest words; common ones only count where those are.

        A word alone that very many tools have is looked for in names.
        """
        ranked = list(accumulate(self._count[term] for term in asked))
        rare = max(1, sum(total <= _MAX_RANKED for total in ranked))
        matched = _any(asked[:rare])
        if ranked[0] > _MAX_RANKED:
            matched = f"name : {matched}"
        common = asked[rare : rare + _MOST_COMMON]
        return f"{matched} AND {_any([*asked[:rare], *common])}" if common else matched

    def _known(self, word: str) -> tuple[str, ...]:
        """Return the word if some tool has it; else words that it begins, else those that are one slip away."""
        if word in self._count:
            return (word,)
        return self._begun(word) or self._near(word)

    def _begun(self, word: str) -> tuple[str, ...]:
        if len(word) < _MIN_PREFIX:
            return ()
        found = self._base.execute(
            "SELECT term FROM vocabulary WHERE term >= ? AND term < ? ORDER BY doc DESC, term LIMIT ?",
            (word, f"{word}{{", _MOST_GUESSES),
        )
        return tuple(term for (term,) in found)

    def _near(self, word: str) -> tuple[str, ...]:
        if len(word) < _MIN_GUESSED:
            return ()
        found = {near for near in _slips(word) if near in self._count}
        return tuple(sorted(found, key=lambda term: (-self._count[term], term))[:_MOST_GUESSES])


def words_of(tool: Tool) -> Words:
    """Return what is searched of a tool: never its wire name, whose words may be shortened.

    >>> from truename import Catalog
    >>> listed = {"name": "createPR", "inputSchema": {"properties": {"base_ref": {}}}}
    >>> words_of(*Catalog.from_mcp({"Git Hub": [listed]}).values())
    Words(name='Git Hub createPR ', description='', parameters='base_ref')
    """
    definition = tool.shown
    title = definition.get("title")
    said = definition.get("description")
    return Words(
        f"{tool.origin.server} {tool.origin.name} {title if isinstance(title, str) else ''}",
        said if isinstance(said, str) else "",
        " ".join(_parameters(definition.get("inputSchema"))),
    )


def _parameters(schema: Any) -> Iterator[str]:
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if isinstance(properties, dict):
        yield from map(str, islice(properties, _MAX_PARAMETERS))


def terms(text: str) -> list[str]:
    """Return the words of a text as the index has them.

    >>> terms("Creates 2 pull-requests, getURLs; queries")
    ['create', '2', 'pull', 'request', 'get', 'url', 'query']
    """
    return [term for run in _RUN.findall(text) for term in _terms(run[: 4 * _LONGEST_WORD])]


@lru_cache(maxsize=65_536)
def _terms(run: str) -> tuple[str, ...]:
    return tuple(_stem(word.lower()[:_LONGEST_WORD]) for word in split(run))


# Plurals and third persons only: "creates" is "create" and "issues" "issue". More did not find more (docs).
_ENDINGS: Final = (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("s", ""))
_SHORTEST: Final = 4


def _stem(word: str) -> str:
    if len(word) < _SHORTEST or word.endswith(("ss", "us", "is")):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending):
            return word[: -len(ending)] + instead
    return word


def _any(chosen: Iterable[str]) -> str:
    quoted = " OR ".join(f'"{term}"' for term in chosen)
    return f"({quoted})"


def _joined(text: str, counted: int) -> str:
    """Return the terms of a text. What is said more often than counts keeps its place, as the text's length counts."""
    said: Counter[str] = Counter()
    kept = []
    for term in terms(text[:_MAX_TEXT]):
        said[term] += 1
        kept.append(term if said[term] <= counted else _SAID_AGAIN)
    return " ".join(kept)


def _asked(query: str) -> list[str]:
    asked = list(dict.fromkeys(terms(query[:_MAX_QUERY])))
    telling = [word for word in asked if word not in _EMPTY]
    return (telling or asked)[:_MAX_TERMS]


def _slips(word: str) -> Iterator[str]:
    """Yield all that one slip makes of a word: a letter too many or too few, another one, two exchanged."""
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        if after:
            yield before + after[1:]
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]
        for letter in string.ascii_lowercase:
            yield before + letter + after
            if after:
                yield before + letter + after[1:]
