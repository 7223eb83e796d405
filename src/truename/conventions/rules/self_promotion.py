"""Find texts that try to influence tool selection or tool search: self-praise and keyword stuffing."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Severity
from truename.conventions.rules.check import build_finding, check
from truename.conventions.rules.injection_matching import Mechanism, cues, order_in, words
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.conventions.findings import Finding, Rule
    from truename.conventions.rules.check import LintContext
    from truename.conventions.rules.texts import ToolTexts

__all__ = ["CHECKS", "PRAISE"]

_TOOL: Final = r"(?:tools?|functions?|servers?|mcps?|plugins?|actions?|apis?|services?|solutions?|options?|choices?)\b"
_QUALITY: Final = (
    r"(?:best|greatest|finest|fastest|cheapest|safest|smartest|leading|ultimate|number one|no\. ?1|#1"
    r"|top[- ](?:rated|ranked)"
    r"|most (?:powerful|advanced|accurate|reliable|trusted|comprehensive|complete|popular|secure|efficient|effective"
    r"|intelligent|capable|useful))"
)
# Praise within a field ("the most powerful search of Confluence") is a description; these claims are unlimited.
_BOUNDLESS: Final = (
    r"(?:in the (?:whole |entire )?world|on (?:earth|the market)|in existence|available|anywhere|ever(?: made|"
    r" built)?|of all"
    r"|there is|for (?:everything|all (?:tasks|purposes|uses|requests)|any (?:task|purpose|request)))\b"
)
_BETTER: Final = (
    r"(?:better|faster|safer|cheaper|superior|smarter|more (?:accurate|reliable|powerful|efficient|secure|complete"
    r"|trustworthy|up[- ]to[- ]date))"
)
_REST: Final = (
    r"(?:(?:any|all|every)(?: of)?(?: the)?(?: other| similar| competing| alternative)?|other|competing|alternative"
    r"|your (?:own |native |built-in |default |internal |existing )?|the (?:native|built-in|default) )"
)
_CHOOSE: Final = r"(?:use|call|prefer|choose|pick|select|favou?r)"
_MAKER: Final = r"(?:anthropic|openai|google|microsoft|the (?:user|system|developers?|administrators?|platform))\b"

PRAISE: Final = (
    Mechanism(
        "boundless",
        "that the tool is the best of all",
        cues(
            "best greatest finest fastest cheapest safest smartest leading ultimate number no top rated ranked most"
            " world"
            " worlds"
        ),
        (
            ("best", "est ", "most ", "leading", "ultimate", "number one", "no. 1", "no.1", "#1", "top"),
            ("world", "earth", "market", "existence", "available", "anywhere", "ever", "of all", "there is", "for a"),
        ),
        words(
            rf"\b{_QUALITY}(?: and [a-z-]{{1,20}})?(?: [a-z-]{{1,20}}){{0,3}} {_TOOL}(?: [a-z]{{1,20}}){{0,2}}?"
            rf" {_BOUNDLESS}",
            rf"\b{_QUALITY} (?!available){_BOUNDLESS}",
            rf"\bthe world'?s (?:very )?{_QUALITY}",
        ),
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "better",
        "that the tool is better than others",
        cues(
            "better faster safer cheaper superior smarter accurate reliable powerful efficient secure complete"
            " trustworthy"
        ),
        (
            (" than", "superior to"),
            ("tool", "function", "server", "mcp", "plugin", "feature", "alternative", "competit"),
        ),
        rf"\b{_BETTER} (?:than|to) {_REST}(?: ?[a-z-]{{1,20}}){{0,2}}? ?(?:{_TOOL}|features?\b|abilities\b)",
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "preferred",
        "that the model should prefer the tool",
        cues("always prefer preferred choose chosen pick picked select selected even favor favour must should"),
        (
            ("prefer", "choose", "chosen", "pick", "select", "always", "favo", "even ", "must", "should"),
            ("other", "any ", "all ", "every", "default", "built-in", "native", "your ", "first"),
        ),
        words(
            rf"\b(?:always|must|should) {_CHOOSE} (?:this|it|me)(?: tool| function| server| one)?"
            rf" (?:over|instead of|rather than|above|in place of) {_REST}",
            rf"\b(?:must|should|has to|is to)(?: always)? be (?:preferred|chosen|picked|selected)"
            rf" (?:first|over|above|before|instead of|to) (?:{_REST}|everything)?",
            rf"\b{_CHOOSE} (?:this|it)(?: tool| function| server| one)?(?:,? even)? (?:if|when|where|though)"
            rf" (?:an)?other"
            rf" (?:[a-z-]{{1,20}} ){{0,2}}?{_TOOL}",
        ),
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "others_bad",
        "that other tools are bad",
        cues("others other alternatives competing"),
        (
            ("deprecated", "unreliable", "unsafe", "outdated", "inferior", "broken", "insecure", "wrong", "fail"),
            ("tool", "function", "server", "plugin", "alternative", "others"),
        ),
        rf"\b(?:all |any |the )*(?:(?:other|competing) (?:[a-z-]{{1,20}} )?{_TOOL}|alternatives|others)"
        r" (?:are|is|will|may|can) (?:[a-z-]{1,20} )?(?:deprecated|unreliable|unsafe|outdated|inferior|broken"
        r"|insecure|wrong"
        r"|fail)\b",
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "endorsed",
        "that somebody with authority over models recommends the tool",
        cues("recommended endorsed required preferred certified mandated"),
        (("recommended by", "endorsed by", "required by", "preferred by", "certified by", "mandated by"),),
        rf"\b(?:recommended|endorsed|required|preferred|certified|mandated) by {_MAKER}",
        ("MCPSecBench",),
    ),
)


_WORD: Final = re.compile(r"[a-z][a-z'-]{2,40}")
_ITEM: Final = re.compile(r" ?[,;|/•] ?| (?:and|or) ")
_SEPARATORS: Final = ",;|/•"
_LONGEST_ITEM: Final = 40
# The label of a list of search terms, which is of no use to readers.
_LABEL: Final = re.compile(
    r"\b(?:key ?words?|search(?:able)? (?:terms?|words?|tags?)|seo(?: terms?)?|hash ?tags?|also (?:matches|found"
    r" (?:as|for)))"
    r" ?(?::|=|-)"
)
_LABELLED: Final = 8
# A word counts as repeated from this number and this share of the text; real texts only reach both in lists of values.
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


def stuffed(texts: ToolTexts) -> tuple[int, str] | None:
    """Find keyword stuffing in a tool's title or description; return its offset and a description, or None.

    >>> from truename.conventions.rules.texts import plain_texts
    >>> stuffed(plain_texts("Sends mail. Mail, mail, mail, mail."))
    (12, "'mail' repeated several times")
    >>> stuffed(plain_texts("Sends. Keywords: email, mail, send, inbox, message, letter, post, write"))
    (7, 'a list of 8 search terms')
    >>> stuffed(plain_texts("Answers in English, French, German, Spanish, Dutch, Danish, Polish, Greek.")) is None
    True
    """
    return next(_found(texts), None)


def _found(texts: ToolTexts) -> Iterator[tuple[int, str]]:
    # Only title and description: schemas contain lists of values anyway, and searches ignore them.
    top = texts.lowered[: texts.top]
    if (row := _IN_A_ROW.search(top)) is not None:
        yield row.start(), f"{row[1]!r} repeated several times"
    if top.count(" ") >= _REPEATED - 1:
        words = [word for word in _WORD.findall(top) if word not in _COMMON] or [""]
        word, times = Counter(words).most_common(1)[0]
        if times >= _REPEATED and times >= _SHARE * len(words):
            yield top.index(word), f"{word!r} {times} times"
    if sum(map(top.count, _SEPARATORS)) >= _LABELLED - 1:
        for start, sentence in texts.sentences:
            if start < texts.top and (problem := _listed(sentence)) is not None:
                yield start, problem


def _listed(sentence: str) -> str | None:
    if (label := _LABEL.search(sentence)) is not None and len(items := _items(sentence[label.end() :])) >= _LABELLED:
        return f"a list of {len(items)} search terms"
    fields = {_FIELDS[item] for item in _items(sentence) if item in _FIELDS}
    return f"words of {len(fields)} fields" if len(fields) >= _FIELDS_FROM else None


def _items(text: str) -> Sequence[str]:
    return [item.strip(" .") for item in _ITEM.split(text) if 0 < len(item.strip(" .")) <= _LONGEST_ITEM]


@check("TN163", "self_praise", Severity.WARNING)
def self_praise(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A text praises its tool above all others, or disparages other tools.

    Why: A model selects tools by their descriptions: a tool that calls itself the best is called instead of the right
    one (preference manipulation).

    Example: "This is the best tool in the world. Creates a document."; "better than any other search tool".

    Instead: Say what the tool does, and when it is useful. Praise within a field, as in "the fastest way to read a
    large file", is not reported.
    """
    for one, texts in context.texts:
        for start, mechanism, shown in order_in(texts, PRAISE):
            fact = f"{texts.describe(start)} says {mechanism.says}: {excerpt(shown)}."
            yield build_finding(rule, one, fact, "Say what the tool does, and leave the choice to the model.")
            break


@check("TN164", "stuffed_text", Severity.WARNING)
def stuffed_text(rule: Rule, context: LintContext) -> Iterator[Finding]:
    """A text has keyword stuffing: a word repeated many times, lists of search terms, words of many unrelated fields.

    Why: With tool search, a tool that contains all words is found whatever the query is (search-term deception).

    Example: "Keywords: email, mail, send, inbox, message, letter, post, write"; "email email email email".

    Instead: Describe once what the tool does. List the values of a parameter in its enumeration.
    """
    for one, texts in context.texts:
        if (found := stuffed(texts)) is not None:
            at, problem = found
            yield build_finding(rule, one, f"{texts.describe(at)} has {problem}.", "Describe once what the tool does.")


CHECKS: Final = (self_praise, stuffed_text)
