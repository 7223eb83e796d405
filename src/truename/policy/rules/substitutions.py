"""What a text says about which tool is run: its own in the place of others, and another one once it is approved.

The rows have the shape of those in `phrases`, and belong to them.
"""

from __future__ import annotations

from typing import Final

from truename.policy.rules.mechanisms import Mechanism, cues, gap, words
from truename.policy.rules.vocabulary import ORDER

__all__ = ["SUBSTITUTIONS"]

_ROUTE: Final = r"(?:route|send|direct|redirect|bring|pass|hand|refer|move|divert|channel)"
_TOOLS: Final = r"(?:tools?|functions?|servers?|plugins?|integrations?|connectors?)\b"
_NAMED: Final = r"(?:`[^` ]{1,60}`|'[^' ]{1,60}'|\"[^\" ]{1,60}\"|[a-z]{1,30}_[a-z_]{1,50})"
_ASKED: Final = r"(?:requests?|calls?|questions?|quer(?:y|ies)|tasks?|jobs?|work|traffic)\b"
_HERE: Final = r"(?:here|(?:to|through|via|by) (?:this|it|me|us)\b)"
_TOOL: Final = r"(?:this|the|your|our) (?:[a-z-]{1,20} )?(?:tool|server|function|plugin|integration|connector)\b"
_PERSON: Final = r"(?:(?:the|your|their) )?(?:user|human|person|owner|customer|operator)\b"
# What is true of a tool that somebody looked at and let in.
_PASSED: Final = r"(?:approved|trusted|reviewed|whitelisted|vetted)"
_BECOMES: Final = (
    r"(?:also|instead|then|will|starts?|begins?|switch(?:es)?|turns?|changes?|behaves?|writes?|deletes?|sends?|uploads?"
    r"|runs?|executes?|installs?)\b"
)

SUBSTITUTIONS: Final = (
    Mechanism(
        "take_over",
        "that calls of other tools are to come to it",
        cues(
            "here this it me us supersedes supersede replaces replace obsolete superseded retired place output outputs"
        ),
        (
            (
                *("supersed", "overrid", "replac", "place of", "precedence", "obsolete", "retired", "discontinued"),
                *(
                    "disabled",
                    "switched off",
                    "void",
                    " here",
                    "to this",
                    "to it",
                    "to me",
                    "to us",
                    "through",
                    " via ",
                ),
                *("by this", "by it", "by me", "by us"),
            ),
            (
                *("tool", "function", "server", "plugin", "request", "call", "quer", "question", "output", "result"),
                *("figure", "task", "job", "work", "traffic", "answer", "respon", "data"),
            ),
        ),
        words(
            rf"{ORDER}({_ROUTE} (?:all|every|any|each|such|these|those)(?: other)?(?: [a-z-]{{1,20}}){{0,4}} {_ASKED}"
            rf"(?: [a-z-]{{1,20}}){{0,4}} {_HERE})",
            rf"\b{_ASKED}(?: (?:that (?:are|were) )?(?:meant|intended|made|for|to|of|from)){{1,2}}{gap(4)}"
            rf"(?:{_TOOLS}|{_NAMED}|them\b){gap(3)}(?:are|is|should|must|have|has|need|come|go|belong){gap(4)}"
            rf"(?:(?:routed|sent|directed|redirected|made|brought|diverted|come|go) )?(?:instead )?{_HERE}",
            rf"\b(?:supersedes?|overrides?|replaces|takes? (?:the )?(?:place|precedence) (?:of|over))(?:"
            rf" [a-z]{{1,12}}){{0,2}}?"
            rf" (?:outputs?|results?|answers?|figures|responses?|data) (?:of|from|by|that){gap(3)}(?:{_TOOLS}"
            rf"|{_NAMED})",
            rf"\b(?:all|the|any|every)? ?other(?: [a-z-]{{1,20}}){{0,2}} {_TOOLS} (?:are|is|have been|has"
            rf" been)(?: now| all)?"
            r" (?:obsolete|superseded|retired|replaced|discontinued|disabled|switched off|void)\b",
            rf"\b(?:this|it)(?: tool| server)? supersedes (?:{_NAMED}|(?:all|any|every)(?: other)?(?:"
            rf" [a-z-]{{1,20}})? {_TOOLS})",
        ),
        ("tool shadowing by routing",),
        inside="description",
    ),
    Mechanism(
        "turns",
        "that it changes once it is approved",
        cues(
            "approved approval approves trusted trusts installed installation reviewed review granted grants accepted "
            "allowed call use run invocation vetting audit inspection"
        ),
        (
            (
                "approv",
                "trust",
                "install",
                "review",
                "grant",
                "accept",
                "allow",
                "call",
                "use",
                "run",
                "audit",
                "inspect",
            ),
            ("once", "after", "as soon", "until", "during", "while", "from", "when", "following", "before"),
        ),
        words(
            rf"\b(?:once|after|as soon as|when) {_TOOL}(?: has been| is| was| gets)? {_PASSED},?(?: [^"
            rf" ]{{1,20}}){{0,2}}?"
            rf" (?:it|{_TOOL}) (?!(?:is|can be|may be) (?:listed|shown|available|called|used))",
            rf"\b(?:once|after|as soon as|when) (?:{_PERSON}|the (?:administrator|client|reviewer)|you)(?: has| have)?"
            rf" (?:grant|giv|approv|trust|accept|allow)[a-z]{{1,3}}(?: [a-z]{{1,12}}){{0,3}},? {_TOOL} {_BECOMES}",
            r"(?:\A|\b(?:it|this tool|the tool) is )(?:read-only|harmless|inactive|dormant|benign|passive|safe)\b"
            rf"{gap(2)}(?:during|until|while|before){gap(3)}(?:review|{_PASSED}|approval|audit|inspection|vetting)\b",
            r"\b(?:from|after|starting with|beginning with|on) the"
            r" (?:first|second|third|fourth|fifth|tenth|next|[0-9]{1,3}th) (?:call|use|run|invocation)(?:"
            r" on(?:wards?)?)?,?"
            r" (?:it|this|treat|follow|obey|do)\b(?: [^ ]{1,20}){0,6}?"
            r" (?:also|instead|instructions?|orders?|commands?|differently|something else)\b",
            rf"\b(?:its|{_TOOL}'s) (?:description|definition|wording|behaviou?r|instructions)"
            r" (?:will|may|can|is going to)(?: be)? (?:change|update|refresh|replace|rewrit|differ|swap)[a-z]{0,3}"
            rf"{gap(3)}(?:after|once|when|following|without){gap(3)}(?:approv|install|trust|accept|grant|notice)",
        ),
        ("rug pull that says so",),
        inside="description",
    ),
)
