"""What a text says that puts its tool before all others, whatever those are."""

from __future__ import annotations

from typing import Final

from truename.policy.rules.mechanisms import Mechanism, cues, words

__all__ = ["PRECEDENCE"]

_TOOLS: Final = r"(?: [a-z-]{1,20})? (?:tools?|functions?|servers?|mcps?|plugins?|actions?)\b"
_USING: Final = r"(?:(?:using|calling|invoking|running|you (?:use|call|invoke|run)|use of) )?"
_ANY: Final = r"(?:any|all|every)(?: of)?(?: the)?"
_SOME: Final = r"(?: any| all)?(?: of)?(?: the)?"
_CUES: Final = cues(
    "tool tools function functions server servers mcp mcps plugin plugins action actions called used run"
)
_STEMS: Final = (
    ("tool", "function", "server", "mcp", "plugin", "action"),
    ("other", "before", "first", "every", "all"),
)
_CHOICE: Final = (
    "instead", "rather", "over", "place", "prefer", "not", "never", "ignore", "disregard", "disable",
)  # fmt: skip

PRECEDENCE: Final = (
    Mechanism(
        "first",
        "that it has to be called before all other tools",
        _CUES,
        _STEMS,
        words(
            rf"\bbefore {_USING}{_ANY}(?: other| available)?{_TOOLS}",
            r"\b(?:called|used|invoked|run|executed) first,? before (?:any|all|every)",
        ),
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "opener",
        "that it has to be called before anything else",
        cues("run call called use used invoke invoked begin start open nothing other executed"),
        (
            ("of them", "of the", " it", " this", "nothing else", "no other"),
            ("ahead of", "prior to", "before", "begin ", "start ", "open ", "until", "unless", "without"),
        ),
        words(
            r"\b(?:run|call|use|invoke) (?:it|this)(?: tool)? (?:ahead of|prior to|before) (?:each|any|every|all)"
            r"(?: one)? of (?:them|the)\b",
            r"\b(?:begin|start|open) (?:each|every) (?:turn|conversation|session|task|request|answer|reply|message)"
            r" (?:with|by (?:calling|using|running|invoking)) (?:it|this)\b",
            r"\b(?:nothing else|no other (?:[a-z-]{1,20} )?(?:tool|function|server|action))"
            r" (?:may|can|should|must|is to)(?: ever)? be (?:called|invoked|used|run|executed)"
            r"(?: [^ ]{1,20}){0,4}? (?:until|before|unless|without)\b",
        ),
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "instead",
        "that it is to be used instead of all other tools",
        _CUES,
        (*_STEMS, _CHOICE),
        words(
            rf"\b(?:instead of|rather than|over|in place of|in preference to) {_ANY} other{_TOOLS}",
            rf"\b(?:do not|don't|never) (?:use|call|trust|invoke|rely on){_SOME} other{_TOOLS}",
            rf"\b(?:ignore|disregard|disable|skip){_SOME} other{_TOOLS}",
        ),
        ("MSB, preference manipulation",),
    ),
)
