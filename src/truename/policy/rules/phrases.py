"""What a text says that gives orders to a model: mechanisms, not sentences that were once seen.

Each row has the stems that have to be there before anything is looked at more closely, and a pattern for one sentence.
``sources`` say what a row was written from, so that it can be left out when its effect on a collection of examples is
measured: a public description of the attack, or a category of such a collection.
"""

from __future__ import annotations

from typing import Final

from truename.policy.rules.conduct import CONDUCT
from truename.policy.rules.deceptions import DECEPTIONS
from truename.policy.rules.impostures import IMPOSTURES
from truename.policy.rules.mechanisms import Mechanism, cues, gap, words
from truename.policy.rules.substitutions import SUBSTITUTIONS
from truename.policy.rules.vocabulary import (
    AIMED,
    AIMED_HARD,
    COMMAND,
    DROP,
    IGNORE,
    IGNORE_CUES,
    IGNORE_STEMS,
    IT,
    KEPT_CUES,
    LOCATION_STEMS,
    LOCATIONS,
    ORDER,
    OUTSIDE,
    OUTSIDE_STEMS,
    REVEAL,
    RULE_STEMS,
    RULES,
    SECRET_STEMS,
    SECRETS,
    SEND,
    SEND_CUES,
    SEND_STEMS,
    STEAL,
    TAKE,
    UNVEIL,
)

__all__ = ["MECHANISMS"]

# The words between a verb and its object: few, and no "and", behind which something else begins.
_NEAR: Final = r"(?: (?!and\b|or\b)[^ ]{1,30}){0,4}? ?\b"
# What is sent, not what it is sent with.
_OBJECT: Final = r"(?: (?!with\b|without\b|using\b|via\b|by\b)[^ ]{1,40}){0,7}? "
_LATER: Final = r"(?: [^ ]{1,30}){0,3}? ?"
_ALL: Final = r"(?: (?:all|any|every|the|these|those|of)){1,3} "
_BARE: Final = r"(?: (?:all|everything|anything|any|the|of|that|what|was|came|is|said|written|whatever)){0,4} "
_WHOLE: Final = r"(?: (?:me|us|to|all|of|out|the|full|whole|entire|complete|exact|contents?|text|in|into)){0,5} "
_OWN: Final = r"(?:your|hidden|secret) (?:system |hidden |initial |original |own |secret |full |developer ){0,3}"
# What programs read by themselves is described, and an order behind it that takes up nothing of that is not about it:
# "apps read it from environment variables: write new ones with set_variables".
_PROGRAMS: Final = ("apps", "applications", "programs", "processes", "services", "scripts", "containers", "functions")
_READ_BY_THEM: Final = (
    words(*(rf"(?<=\b{name} )" for name in _PROGRAMS))
    + r"[a-z]{3,8}(?: [^ :]{1,40}){0,8}: (?![^.;]*\b(?:its?|them|their|that|those|this|these|what|which|there|you"
    r"|found|contents?|values?|all|both|each|everything)\b)"
)
_KEPT_STEMS: Final = (*LOCATION_STEMS, "environment variable", "system prompt", "your instructions", "your initial")

MECHANISMS: Final = (
    Mechanism(
        "override",
        "that a model is to drop its instructions",
        IGNORE_CUES,
        (IGNORE_STEMS, RULE_STEMS),
        ORDER
        + words(
            rf"({IGNORE}{_NEAR}{AIMED}{_LATER}{RULES})",
            rf"({DROP}{_NEAR}{AIMED_HARD}(?: (?!and\b|or\b)[^ ]{{1,30}}){{0,3}}? ?{RULES})",
            rf"({words(IGNORE, DROP)}{_ALL}{RULES} (?:(?:you|that) were )?(?:given|told|from|by|of) (?:to )?"
            r"(?:you|the (?:user|system|developer)))",
            rf"({IGNORE} (?:all|any|every)(?: of)?(?: the)? (?:instructions|directives|guidelines|guardrails))",
        ),
        ("OWASP LLM01", "phrase_injection"),
    ),
    Mechanism(
        "override_bare",
        "that a model is to drop what it read before",
        IGNORE_CUES,
        (IGNORE_STEMS, ("above", "previous", "prior", "before", "preceding", "earlier")),
        rf"{ORDER}({words(IGNORE, DROP)}{_BARE}(?:above|previous|prior|before|preceding|earlier)"
        r"(?:[,;:.!]| (?:and|then|but|or|instead)\b|\Z))",
        ("Willison 2022, prompt injection", "phrase_injection"),
    ),
    Mechanism(
        "disclose",
        "that a model is to tell its own instructions",
        cues("prompt prompts instructions message messages rules guidelines configuration"),
        (("prompt", "instruction", "system message", "developer message", "your rules", "your guidelines"),),
        ORDER
        + words(
            rf"({REVEAL}{_WHOLE}{_OWN}(?:prompts?|instructions|messages?|rules|guidelines|configuration)\b)",
            rf"({UNVEIL}(?: your| hidden)?{_WHOLE}(?:your |hidden )?(?:system|developer)"
            r" (?:prompt|message|instructions)\b)",
        ),
        ("OWASP LLM07", "phrase_injection"),
    ),
    Mechanism(
        "exfiltrate",
        "that secrets are to be taken away",
        cues(
            "exfiltrate exfiltrates exfiltrating leak leaks leaking steal steals stealing harvest harvests "
            "harvesting siphon siphons smuggle smuggles"
        ),
        (("exfiltrat", "leak", "steal", "harvest", "siphon", "smuggle"), SECRET_STEMS),
        rf"\b{STEAL}{gap(6)}(?:[^ ]{{0,20}})?{SECRETS}",
        ("MITRE ATLAS AML.T0024", "phrase_injection"),
    ),
    Mechanism(
        "send_secret",
        "that secrets are to be sent away",
        SEND_CUES,
        (SEND_STEMS, OUTSIDE_STEMS, SECRET_STEMS),
        rf"\b{SEND}{_OBJECT}(?:[^ ]{{0,20}})?{SECRETS}[^ ]{{0,3}}{gap(9)}(?:[^ ]{{0,3}})?{OUTSIDE}",
        ("SAF-T1001", "phrase_injection"),
    ),
    Mechanism(
        "send_it",
        "that what was read is to be sent away",
        SEND_CUES,
        (SEND_STEMS, OUTSIDE_STEMS, SECRET_STEMS),
        rf"{SECRETS}[^ ]{{0,3}}{gap(8)}{SEND} {IT}{gap(6)}(?:[^ ]{{0,3}})?{OUTSIDE}",
        ("SAF-T1001", "phrase_injection"),
    ),
    Mechanism(
        "smuggle",
        "that a secret is to be put into an argument",
        KEPT_CUES,
        (_KEPT_STEMS,),
        rf"\b(?!{_READ_BY_THEM}){TAKE}{gap(7)}(?:[^ ]{{0,30}})?"
        rf"(?:{LOCATIONS}|environment variables?|system prompt)[^ ]{{0,40}}{gap(8)}"
        rf"(?:pass|put|include|provide|set|give|send|append|insert|use|add)(?:s|ing)?{gap(7)}(?:as|in|into|to|with)\b",
        ("Invariant Labs, tool poisoning",),
    ),
    Mechanism(
        "smuggle_here",
        "that a secret is to be put into an argument",
        KEPT_CUES,
        (_KEPT_STEMS,),
        words(
            rf"\b{TAKE}{gap(3)}(?:contents?|text|whole|data|full)\b{gap(5)}(?:[^ ]{{0,30}})?"
            rf"(?:{LOCATIONS}|system prompt|your (?:initial |system )?instructions)",
            rf"\b(?:append|add|attach|include|insert|put|paste){gap(2)}(?:values?|contents?) of{gap(3)}"
            r"environment variables?\b",
        ),
        ("SAF-T1501",),
        inside="inputSchema",
    ),
    Mechanism(
        "smuggle_out",
        "that a secret is to be put into answers",
        KEPT_CUES | cues("credentials passwords password tokens keys cookies history clipboard keystrokes keychain"),
        (
            ("append", "add", "attach", "include", "insert", "look up", "put", "give", "pass", "send"),
            (*LOCATION_STEMS, "stored", "saved", "'s "),
        ),
        words(
            rf"\b(?:append|add|attach|include|insert|put){gap(6)}(?:[^ ]{{0,30}})?{LOCATIONS}[^ ]{{0,40}}{gap(2)}"
            r"(?:to|in|into|with|at) (?:the end of )?(?:every|each|all|any|your)"
            r" (?:answer|response|reply|message|output|call|request)",
            rf"\b(?:look up|{TAKE}){gap(3)}(?:stored|saved) (?:credentials|passwords|tokens|keys){gap(4)}"
            r"(?:pass|put|include|add|send|append)(?:s|ing)? (?:it|them) (?:as|in|into|to|with)\b",
            rf"\b(?:look up|{TAKE}) the (?:user|person|owner|customer)'s{gap(3)}(?:cookies|passwords?|browser"
            rf" history|clipboard"
            rf"|keystrokes|keychain){gap(8)}(?:pass|put|include|give|add|send|append)(?:s|ing)? (?:it|them)"
            rf" (?:as|in|into|to"
            r"|with)\b",
        ),
        ("SAF-T1001",),
    ),
    Mechanism(
        "tell_known",
        "that secrets which the model has seen are to be given away",
        cues("seen know found remember learned session conversation chat"),
        (SECRET_STEMS, ("all ", "any ", "every "), ("you ", "session", "conversation", "chat")),
        rf"{ORDER}((?:include|put|add|append|insert|list|attach|write|copy)(?: [^ ]{{1,30}}){{0,4}}? (?:all|any|every)"
        rf"(?: [^ ]{{1,20}}){{0,2}} {SECRETS}(?: (?:and|or) {SECRETS})?"
        r"(?:(?: that| which)? you(?: have|'ve)? (?:seen|know|found|remember|learned)\b"
        r"| (?:of|from|in) (?:this|the) (?:session|conversation|chat)\b))",
        ("SAF-T1501",),
    ),
    Mechanism(
        "run_command",
        "that a command is to be run",
        cues("run execute type paste"),
        (("curl ", "wget ", "rm -", "/dev/tcp", "powershell", "chmod "), ("run", "execut", "type", "paste")),
        rf"{ORDER}((?:run|execute|type|paste)(?: [^ ]{{1,30}}){{0,5}}? ?[`'\"]?{COMMAND})",
        ("OWASP MCP05",),
    ),
    *CONDUCT,
    *SUBSTITUTIONS,
    *DECEPTIONS,
    *IMPOSTURES,
)
