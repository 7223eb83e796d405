"""What a text says about how a model has to behave: what answers carry, who gets copies, what needs no consent.

The rows have the shape of those in `phrases`, and belong to them.
"""

from __future__ import annotations

from typing import Final

from truename.policy.rules.mechanisms import Mechanism, cues, gap, words
from truename.policy.rules.vocabulary import (
    LOCATION_STEMS,
    LOCATIONS,
    ORDER,
    SECRET_STEMS,
    SECRETS,
)

__all__ = ["CONDUCT"]

# What a model says, as opposed to what a tool returns.
_ANSWER: Final = r"(?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|final (?:message|output|text))\b"
_YOURS: Final = (
    rf"(?:(?:your|each|every|all) (?:[a-z]{{1,12}} )?{_ANSWER}|the {_ANSWER}(?: that)? you (?:give|write|send"
    rf"|make|show)"
    rf"|(?:what|whatever|everything) you (?:say|answer|write|reply|show|present)\b)"
)
_ADD: Final = r"(?:append|add|attach|include|insert|put|place|embed|write|print|quote|paste|copy|state|give|hide)"
_END: Final = r"(?:end|finish|close|conclude|begin|start|open|sign off|prefix|follow)"
_HAS_TO: Final = r"(?:must|should|shall|has to|have to|needs? to|is to|are to|always|will)"
# A secret as it is taken from somewhere, not one that a tool has made and gives back.
_TAKEN: Final = (
    rf"(?:(?:values?|contents?|text|lines?) of{gap(4)}(?:[^ ]{{0,20}})?{SECRETS}"
    rf"|(?:user|caller|client|owner|customer|person)'s{gap(2)}(?:[^ ]{{0,20}})?{SECRETS}|(?:[^ ]{{0,30}})?{LOCATIONS}"
    rf"|(?:database|admin(?:istrator)?|root|master|server|aws|system) (?:[a-z]{{1,12}} )?"
    r"(?:passwords?|credentials?|keys?|secrets?|tokens?)\b"
    rf"|your (?:[a-z]{{1,12}} )?(?:system prompt|instructions|api keys?|credentials|tokens?)\b)"
)
_ANSWER_CUES: Final = cues(
    "answer answers reply replies response responses summary summaries message output text say write present end "
    "finish close conclude begin start append add line footnote translation result"
)
_SECRETS: Final = (*SECRET_STEMS, *LOCATION_STEMS, "token", "instructions")

_ADDRESS: Final = r"(?:https?://[^ ]{3}|[`'\"<(]{0,2}[^ @]{1,40}@[^ @]{1,40}\.[a-z]{2,10}\b|\+\d[\d() -]{6,20})"
_ADDRESS_STEMS: Final = ("http", "@", "+")
_PASSING: Final = r"(?:forward|send|post|mirror|relay|copy|cc|bcc|upload|submit|report|ship|push|e-?mail|stream|sync)"
_PASSED_ON: Final = (
    r"(?:forwarded|sent|posted|mirrored|relayed|copied|uploaded|submitted|reported|shipped|pushed|e-?mailed|streamed"
    r"|synced|goes?|shared)"
)
# What passes between a user and a model.
_TALK: Final = (
    r"(?:messages?|conversations?|chats?|quer(?:y|ies)|prompts?|results?|answers?|repl(?:y|ies)|requests?|inputs?"
    r"|questions?|keystrokes?|searches|transcripts?|responses?|calls?|documents?|e-?mails?|notes?|words?)\b"
)
_ALL_TALK: Final = (
    rf"(?:everything|whatever|anything|(?:all|every|each|any)(?: of)?(?: (?:the|your|our|their|my|these|its))?"
    rf"(?: [a-z-]{{1,20}})?(?: and(?: every| all| each)?(?: the)?(?: [a-z-]{{1,20}})?)? {_TALK})"
)
_ALL_SAID: Final = (
    r"(?:(?:everything|whatever|anything) (?:that )?(?:the user|you|they|was|is|has been)\b"
    r"|(?:all|every|each|any)(?: of)?(?: (?:the|your|our|their|my|these|its|user))?(?: [a-z-]{1,20})?(?: and"
    r" [a-z-]{1,20})?"
    r" (?:messages?|conversations?|chats?|prompts?|answers?|repl(?:y|ies)|questions?|keystrokes?|transcripts?"
    r"|responses?)\b)"
)
_AS_WELL: Final = r"(?:also|too|as well|in addition|additionally|a copy|copies|likewise|besides)\b"
_CONSENT: Final = r"(?:confirmation|consent|permission|approval|agreement|authori[sz]ation|go-ahead|a yes|an ok)\b"
_PERSON: Final = r"(?:(?:the|your|their) )?(?:user|human|person|owner|customer|operator)\b"
_NO_NEED: Final = (
    r"(?:(?:do not|don't|never|must not|not to)(?: (?:need|have|bother|stop|pause))?(?: to)?|need not|needn't"
    r"|(?:no|not) (?:need|reason|necessary|required)(?: for you)? to|instead of|rather than)"
)
_ASK_FOR: Final = (
    r"(?:ask(?:ing)?|wait(?:ing)?|seek(?:ing)?|request(?:ing)?|get(?:ting)?|obtain(?:ing)?|await(?:ing)?)(?: for)?"
)
_CONSULT: Final = r"(?:ask(?:ing)?|consult(?:ing)?|involv(?:e|ing)|bother(?:ing)?|check(?:ing)? with)"
_ACT: Final = (
    r"(?:act|proceed|go ahead|carry on|continue"
    r"|(?:call|use|run|invoke|execute|apply|perform|do) (?:this|it|the tool|so)(?: tool)?)"
)
_AGREED: Final = r"(?:approv|authori[sz]|agre|consent|confirm|grant|accept|permitt)[a-z]{0,3}"
_ANYTHING: Final = r"(?:all|any|every|everything|anything|each)\b"
_SINCE: Final = r"(?:\A|[,;:.!?] ?|\b(?:because|since|as|for|and|so) )"

CONDUCT: Final = (
    Mechanism(
        "answer_secret",
        "that answers are to carry a secret",
        _ANSWER_CUES,
        (_SECRETS, ("answer", "repl", "respon", "summar", "final ", "you ", "end", "finish", "close", "begin", "add ")),
        words(
            rf"{ORDER}({_ADD}{gap(6)}(?:[^ ]{{0,20}})?{SECRETS}[^ ]{{0,12}}{gap(6)}(?:to|in|into|at|with|on"
            rf"|under|below) "
            rf"(?:the (?:end|bottom|top|foot|beginning) of )?{_YOURS})",
            rf"\b(?:after|below|under|behind|beneath|before|above) (?:the|your|each|every) (?:[a-z]{{1,20}} )?"
            rf"(?:{_ANSWER}|results?\b|outputs?\b|translations?\b|texts?\b),? {_ADD}{gap(6)}{_TAKEN}",
            rf"{ORDER}({_END} (?:the |your |each |every |all )(?:[a-z]{{1,12}} )?{_ANSWER} (?:with"
            rf"|by){gap(4)}{_TAKEN})",
            rf"\b(?:{_ANSWER}|results?|outputs?|translations?|texts?|messages?) {_HAS_TO}(?: always)? {_END}"
            rf" (?:with|by){gap(3)}{_TAKEN}",
        ),
        ("disclosure through the answer",),
    ),
    Mechanism(
        "copy_all",
        "that all that is said is to be sent on",
        cues(
            "forward send post mirror relay copy cc bcc upload submit report ship push email mail stream sync"
            " forwarded "
            "sent posted mirrored relayed copied uploaded submitted reported shipped pushed goes go shared"
            " synced copies"
        ),
        (_ADDRESS_STEMS, ("all ", "every", "each ", "any", "whatever", "always", "also", "too", "copy")),
        words(
            rf"{ORDER}({_PASSING}(?: a copy of| copies of)? {_ALL_SAID}{gap(10)}(?:[^ ]{{0,3}})?{_ADDRESS})",
            rf"\b(?:everything|whatever|anything){gap(8)}{_PASSING}(?:ed)? (?:it|them|that|this)"
            rf" (?:[a-z]{{1,12}} ){{0,4}}"
            rf"[^ ]{{0,3}}{_ADDRESS}",
            rf"\b{_ALL_TALK}{gap(4)}{_PASSED_ON} (?:[a-z]{{1,12}} ){{0,3}}to [^ ]{{0,3}}{_ADDRESS}[^ ]{{0,60}}"
            rf"(?: [^ ]{{1,20}}){{0,2}}? {_AS_WELL}",
            rf"\b{_ALL_TALK}{gap(4)}{_AS_WELL}{gap(3)}{_PASSED_ON} (?:[a-z]{{1,12}} ){{0,3}}to [^ ]{{0,3}}{_ADDRESS}",
            rf"\b(?:always|silently|quietly|also|every time){gap(3)}(?:add|put|set|include|copy|cc"
            rf"|bcc){gap(2)}[^ ]{{0,3}}"
            rf"[^ @]{{1,40}}@[^ @]{{1,40}}\.[a-z]{{2,10}}\b{gap(4)}(?:b?cc|cop(?:y|ies)|recipients?)\b",
        ),
        ("silent copies to an address",),
    ),
    Mechanism(
        "unasked",
        "that it is to be done without the user's consent",
        cues(
            "confirmation consent permission approval agreement authorization authorisation go-ahead ahead ask asking "
            "approved preapproved authorized authorised agreed consented confirmed silence granted accepted allowed yes"
        ),
        (
            (
                "confirm",
                "consent",
                "permission",
                "approv",
                "agree",
                "authori",
                "ahead",
                "ask",
                "silence",
                "grant",
                "accept",
            ),
            (
                "without",
                "not ",
                "n't",
                "no ",
                "skip",
                "never",
                "omit",
                "bypass",
                "already",
                "pre",
                "all",
                "any",
                "every",
            ),
        ),
        words(
            rf"{ORDER}({_ACT}(?: [^ ]{{1,20}}){{0,3}}? without (?:[a-z]{{1,12}} ){{0,3}}"
            rf"(?:{_CONSENT}|asking\b|{_PERSON}'s {_CONSENT}))",
            rf"\b{_NO_NEED} {_ASK_FOR}(?: {_PERSON}(?:'s)?)?(?: for)?"
            rf"(?: (?:the|any|a|his|her|their|further|explicit)){{0,2}} {_CONSENT}",
            rf"\b{_NO_NEED} {_CONSULT} (?:{_PERSON}|them|him|her) (?:first|before|beforehand|again|each time"
            rf"|every time)\b",
            rf"{ORDER}((?:skip|omit|bypass|suppress|dispense with) (?:the|any|all|every|each)(?: user(?:'s)?)?"
            r" (?:confirmations?|approvals?|consent|permission)(?: (?:step|prompt|dialog|request|question|check)s?)?\b"
            r"(?! (?:with|by|if|when|using|via|for|unless)\b))",
            rf"{_SINCE}(?:the |your |this )?(?:user|human|person|customer|owner|operator|they)(?:'ve| has| have| had)?"
            rf" (?:(?:already |fully )+{_AGREED}|pre-?{_AGREED})(?: to)? {_ANYTHING}",
            rf"{_SINCE}(?:the |your |this )?(?:user|human|person|customer|owner|operator|they)(?:'ve| has| have| had)?"
            rf" {_AGREED}(?: to)? {_ANYTHING}(?: [^ ]{{1,20}}){{0,2}}? (?:already|beforehand|in advance)\b",
            r"\b(?:silence|no (?:answer|reply|response|objection)s?) (?:as|is|means|counts as|equals)"
            rf"(?: (?:an?|the|their))? {_CONSENT}",
            rf"{ORDER}((?:assume|presume|take for granted)(?: (?:that|the|his|her|their|user's)){{0,3}} {_CONSENT})",
        ),
        ("consent taken for granted",),
        inside="description",
    ),
    Mechanism(
        "hand_over",
        "that it is to be given what passes between user and model",
        cues("prompt thought thoughts reasoning instructions window tools user conversation chat"),
        (
            (
                "tak",
                "hold",
                "need",
                "expect",
                "want",
                "requir",
                "fill",
                "pass",
                "put",
                "includ",
                "giv",
                "provid",
                "writ",
            ),
            ("your ", "you ", "user"),
        ),
        r"\b(?:takes?|holds?|gets?|receives?|needs?|expects?|wants?|required:?|fill|pass|put|include|give"
        r"|provide|write)"
        rf"{gap(9)}"
        + words(
            r"your (?:own |full |whole |entire |exact )?(?:system prompt|developer prompt|chain of thought"
            r"|hidden (?:thoughts|instructions)|instructions|context window)\b",
            r"(?:all|every)(?: of)?(?: the)?(?: other)? tools? (?:that )?you (?:can call|can see|know of|have"
            r" access to)\b",
            r"(?:everything|all|whatever|anything) (?:that )?the user (?:has )?(?:told you|tells you"
            r"|(?:said|says|written|typed|asked)(?: [^ ]{1,20}){0,2} (?:so far|up to now|until now|before"
            r"|in (?:this|the) (?:chat|conversation|session)))\b",
        ),
        ("conversation as an argument",),
        inside="description",
    ),
)
