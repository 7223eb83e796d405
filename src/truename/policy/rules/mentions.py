"""Tools that a text tells the model to use: names in the shape of names, where the words around them say so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from truename.policy.rules.texts import Texts

__all__ = ["Mention", "mentions", "quoted_words"]

# Parts joined by "_" or "-", or words joined by capitals: a plain word may be anything. The words before it never
# reach over an empty line, which ends a text; the word behind it may say that it is something else. A name is taken
# whole or not at all, so that a long one isn't tried in all its parts.
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
# One word is a name where it stands in backticks.
_QUOTED: Final = re.compile(rf"{_LEAD} `(?P<name>[A-Za-z][A-Za-z0-9]{{1,40}})(?:\(\))?` {_TAIL}", re.VERBOSE)
# The words of which one at least is in front of a mention.
_LEADS: Final = frozenset({
    "call", "calls", "called", "calling", "invoke", "invokes", "invoked", "invoking", "use", "uses", "used", "using",
    "run", "runs", "running", "execute", "executes", "executing", "trigger", "triggers", "triggering", "prefer",
    "instead", "rather", "when", "whenever", "every", "before", "after", "from", "via", "see",
})  # fmt: skip
# Behind these a name is one of a tool that is wanted only if the words after it say so.
_WEAK: Final = frozenset({"when", "whenever", "every time", "before", "after", "from", "via", "see"})
# Behind these one word may be anything that can be used: a language, a program.
_VAGUE: Final = frozenset({"use", "uses", "used", "using", "run", "runs", "running", "prefer"})


class Mention(NamedTuple):
    """A tool's name in a text, and where it stands.

    ``is_ordered``: the text wants it called, or speaks of its being called. ``is_called_tool``: it says that it is one.
    """

    at: int
    name: str
    is_ordered: bool
    is_called_tool: bool


def mentions(texts: Texts) -> tuple[Mention, ...]:
    """Return the names of tools that a text tells its reader to use, in order."""
    if _LEADS.isdisjoint(texts.words):
        return ()
    return tuple(_mention(match) for match in _MENTION.finditer(texts.whole))


def quoted_words(texts: Texts) -> tuple[Mention, ...]:
    """Return names of one word, in backticks, of which a text says that they are called, or that they are tools."""
    if "`" not in texts.whole or _LEADS.isdisjoint(texts.words):
        return ()
    found = ((match, _mention(match)) for match in _QUOTED.finditer(texts.whole))
    return tuple(
        one for match, one in found if one.is_ordered and (one.is_called_tool or match["lead"].lower() not in _VAGUE)
    )


def _mention(match: re.Match[str]) -> Mention:
    tail = (match["tail"] or "").split()
    is_called_tool = tail[-1:] in (["tool"], ["function"]) or match["kind"] is not None
    is_ordered = match["lead"].lower() not in _WEAK or tail[-1:] in (["called"], ["used"], ["invoked"], ["run"])
    return Mention(match.start("name"), match["name"], is_ordered, is_called_tool)
