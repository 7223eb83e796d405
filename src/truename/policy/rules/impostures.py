"""What a text says as if somebody else spoke: the user with a new task, or a failure that only obedience mends.

Results of tools say it more often than definitions do. The rows have the shape of those in `phrases`, and belong to
them.
"""

from __future__ import annotations

from typing import Final

from truename.policy.rules.mechanisms import Mechanism, cues, words

__all__ = ["IMPOSTURES"]

_MASTER: Final = r"(?:the |your )?(?:user|human|developer|operator|owner|administrator)"
_ORDERS: Final = r"(?:instructions?|orders?|directions?|commands?|steps?|prompts?)"
_TASK: Final = r"(?:tasks?|requests?|quer(?:y|ies)|questions?|jobs?|instructions?|orders?)"
_GET: Final = (
    r"(?:get|see|receive|obtain|retrieve|view|access|read|use|unlock|proceed|continue|complete|finish|resolve|fix)"
)

IMPOSTURES: Final = (
    Mechanism(
        "posed_user",
        "that the user speaks in it",
        cues("user human developer operator owner administrator gave"),
        (
            ("i am ", "i'm ", "message from", "from the user", "from your user", "new user", "signed", "i gave you"),
            ("user", "human", "developer", "operator", "owner", "administrator", "task", "request"),
        ),
        words(
            rf"(?:\A|[.:;!] ?|\bhello,? )i(?: am|'m) {_MASTER}\b(?! (?:of|who|and|with|from|id|agent|name|guide"
            rf"|manual)\b)",
            rf"\b(?:important|urgent|new|direct|secret|further) (?:message|note|{_TASK}) from {_MASTER}\b",
            rf"(?:\A|[.:;!<] ?)new user {_TASK} ?:",
            rf"(?:\A|[.:;!] ?|\bthanks\b.{{0,3}} ?)signed,? {_MASTER}\b",
            r"\b(?:before|after) you(?: can)? (?:solve|finish|complete|answer|do)(?: [^ ]{1,20}){0,2} (?:task"
            r"|request|question)"
            r" (?:that )?i (?:gave|asked)\b",
        ),
        ("MSB, simulated user",),
    ),
    Mechanism(
        "new_task",
        "that there is another task now",
        cues("task tasks request requests job"),
        (
            ("previous", "earlier", "old ", "last ", "original", "current", "urgent", "important", "sure "),
            ("new ", "urgent", "another", "important"),
        ),
        words(
            rf"\b(?:more )?(?:urgent|important) (?:new )?{_TASK} (?:that )?(?:i (?:need|want|have)|for you|you"
            rf" (?:must|have to))",
            rf"\b(?:previous|earlier|original|old|last|current) {_TASK} (?:is|was|are|has been|have been)(?: now|"
            rf" already)?"
            rf" (?:complete|completed|finished|done|over|cancell?ed|replaced)\b.{{0,60}}? (?:new|urgent|another)"
            rf" {_TASK}",
            rf"\b(?:make sure|be sure)(?: to)? (?:finish|complete|do) the (?:new|urgent) {_TASK}",
        ),
        ("MSB, simulated user",),
    ),
    Mechanism(
        "ransom",
        "that orders have to be followed before there is an answer",
        cues(
            "get see receive obtain retrieve view access read use unlock proceed continue complete finish resolve fix"
            " before strictly exactly blindly"
        ),
        (
            ("you must", "you need", "you have to", "please", "strictly", "required to", "first"),
            ("instruction", "order", "direction", "command", "step", "prompt", "following"),
        ),
        words(
            rf"\b(?:in order )?to {_GET}(?: [^ ]{{1,30}}){{0,5}}? you (?:must|need to|have to|are required to)(?:"
            rf" first)?"
            rf"(?: strictly| exactly| fully)? (?:follow|adhere to|obey|comply with|carry out)(?:"
            rf" [^ ]{{1,20}}){{0,3}}? ?{_ORDERS}",
            rf"\b(?:strictly|exactly|blindly) (?:follow|adhere to|obey|comply with|carry out) (?:all |the |these |my"
            rf" ){{0,3}}"
            rf"(?:following |new |next )?{_ORDERS}",
            rf"\bbefore you (?:can |may )?(?:{_GET}|solve|answer)(?: [^ ]{{1,30}}){{0,8}}?,? (?:please |you must"
            rf" )(?:first )?"
            rf"(?:do|follow|obey|carry out)(?: [^ ]{{1,20}}){{0,2}}? (?:following|{_ORDERS})",
        ),
        ("MSB, false error",),
    ),
)
