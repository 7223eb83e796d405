"""What a text says only to be found: one word over and over, or the words of many fields that are not its own."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from truename.policy.rules.mechanisms import cues

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.policy.rules.texts import Texts

__all__ = ["stuffed"]

_WORD: Final = re.compile(r"[a-z][a-z'-]{2,40}")
_ITEM: Final = re.compile(r" ?[,;|/•] ?| (?:and|or) ")
_SEPARATORS: Final = ",;|/•"
_LONGEST_ITEM: Final = 40
# The label of a list that stands there for a search and says nothing to who reads.
_LABEL: Final = re.compile(
    r"\b(?:key ?words?|search(?:able)? (?:terms?|words?|tags?)|seo(?: terms?)?|hash ?tags?|also (?:matches|found"
    r" (?:as|for)))"
    r" ?(?::|=|-)"
)
_LABELLED: Final = 8
# A word so often, and so much of the text, is said to be counted. Real texts have it in lists of values only.
_REPEATED: Final = 10
_SHARE: Final = 0.4
# In a row: "email email email email".
_IN_A_ROW: Final = re.compile(r"\b([a-z][a-z'-]{2,40})(?:[,;|/\s]{1,3}\1\b){3,20}")
_FIELDS_FROM: Final = 12
_OF_FIELDS: Final = """
    email emails mail gmail outlook | calendar schedule meeting meetings | weather forecast | stocks stock trading
    | crypto bitcoin cryptocurrency | news headlines | maps navigation directions | travel flight flights hotel hotels
    | music songs playlist | video videos movie movies | image images photo photos | translate translation
    | database databases sql | git github gitlab | file files folder folders | pdf | spreadsheet spreadsheets excel
    | payment payments banking invoice invoices | shopping ecommerce store | recipe recipes food restaurant
    | health medical fitness | sports football | game games gaming | crm sales | slack chat messaging | sms phone
    | contacts | notes | todo todos tasks | dns | kubernetes docker | browser browsing | law legal | jobs careers
    | education homework | math calculator | time clock timezone
"""
_FIELDS: Final = {word: number for number, field in enumerate(_OF_FIELDS.split("|")) for word in field.split()}
_COMMON: Final = cues(
    "the and for with that this from are you your can will not has have all any its into one use when each which than"
    " then must should may only also"
)


def stuffed(texts: Texts) -> tuple[int, str] | None:
    """Return what shows that a tool's title or description is made to be found, and where; None for an honest one.

    >>> from truename.policy.rules.texts import plain_texts
    >>> stuffed(plain_texts("Sends mail. Mail, mail, mail, mail."))
    (12, "'mail' again and again")
    >>> stuffed(plain_texts("Sends. Keywords: email, mail, send, inbox, message, letter, post, write"))
    (7, 'a list of 8 words to be searched for')
    >>> stuffed(plain_texts("Answers in English, French, German, Spanish, Dutch, Danish, Polish, Greek.")) is None
    True
    """
    return next(_found(texts), None)


def _found(texts: Texts) -> Iterator[tuple[int, str]]:
    # Values of a schema are lists as a matter of course, and no search looks at them.
    said = texts.lowered[: texts.top]
    if (row := _IN_A_ROW.search(said)) is not None:
        yield row.start(), f"{row[1]!r} again and again"
    if said.count(" ") >= _REPEATED - 1:
        words = [word for word in _WORD.findall(said) if word not in _COMMON] or [""]
        word, times = Counter(words).most_common(1)[0]
        if times >= _REPEATED and times >= _SHARE * len(words):
            yield said.index(word), f"{word!r} {times} times"
    if sum(map(said.count, _SEPARATORS)) >= _LABELLED - 1:
        for start, sentence in texts.sentences:
            if start < texts.top and (wrong := _listed(sentence)) is not None:
                yield start, wrong


def _listed(sentence: str) -> str | None:
    if (label := _LABEL.search(sentence)) is not None and len(items := _items(sentence[label.end() :])) >= _LABELLED:
        return f"a list of {len(items)} words to be searched for"
    fields = {_FIELDS[item] for item in _items(sentence) if item in _FIELDS}
    return f"words of {len(fields)} fields" if len(fields) >= _FIELDS_FROM else None


def _items(text: str) -> Sequence[str]:
    return [item.strip(" .") for item in _ITEM.split(text) if 0 < len(item.strip(" .")) <= _LONGEST_ITEM]
