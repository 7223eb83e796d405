"""What a text says that sets a model against its user: secrecy, another role, other rules, a changed recipient.

The rows have the shape of those in `phrases`, and belong to them.
"""

from __future__ import annotations

from typing import Final

from truename.policy.rules.mechanisms import Mechanism, cues, words
from truename.policy.rules.vocabulary import (
    DO_NOT,
    IGNORE,
    IGNORE_CUES,
    NOBODY,
    ORDER,
    PAYEE,
    TELL,
    TELL_CUES,
    TELL_STEMS,
)

__all__ = ["DECEPTIONS"]

_TURN: Final = (
    r"</?(?:system|hidden|important|hidden[ _-]instructions?|(?:system|important|ai)[ _-]instructions?)>"
    r"|<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)\|>|\[/?inst\]|<</?sys>>"
)

DECEPTIONS: Final = (
    Mechanism(
        "secrecy",
        "that the user is not to know",
        TELL_CUES
        | cues(
            "sure ensure know see notice learn told informed aware repeat show report list name note leave act behave"
            " answer hear"
        ),
        (
            (
                *TELL_STEMS,
                "between ",
                "yourself",
                "out of your",
                "nothing",
                "no tool",
                "report",
                "list",
                "name",
                "note",
            ),
            (
                "user",
                "human",
                "person",
                "any",
                "operator",
                "owner",
                "developer",
                "victim",
                "you",
                "keep",
                "these",
                "those",
                "this",
                "nothing",
            ),
        ),
        words(
            rf"\b{DO_NOT} {TELL}(?: (?:this|it|that|anything|any of this|the fact|about|to|these|steps)){{0,3}}"
            rf" {NOBODY}",
            rf"\b{DO_NOT} (?:tell|mention|disclose|reveal|talk about|speak of)(?: [^ ]{{1,20}}){{1,5}} to {NOBODY}",
            rf"\b{DO_NOT} (?:mention|disclose|reveal|say|admit) that you\b",
            rf"\b{DO_NOT} (?:mention|disclose|reveal|repeat|show) (?:these|those|this)"
            r" (?:instructions?|steps?|rules)\b",
            r"\b(?:make sure|ensure)(?: that)? the (?:user|human)"
            r" (?:never|does not|doesn't|cannot|can't|will not|won't) (?:see|know|notice|learn|find out)",
            r"\bthe (?:user|human) (?:must|should|may) (?:not|never)"
            r" (?:know|see|notice|learn|be (?:told|informed|aware))",
            rf"\b(?:hide|conceal) (?:this|it|that|these)(?: [^ ]{{1,20}}){{0,3}} from {NOBODY}",
            rf"\bkeep (?:this|it|that|these) from {NOBODY}",
            rf"\bkeep (?:this|it)(?: step)? (?:secret|hidden|silent)(?: from {NOBODY})?",
            rf"{ORDER}(keep (?:[^ ]{{1,20}} ){{1,8}}?(?:between (?:us|you and (?:me|us))|to yourself)\b)",
            rf"\b{DO_NOT} (?:mention|report|list|name|note|show)(?: that)? (?:this|that|the|it|these)(?:"
            rf" [a-z]{{1,12}})?"
            r" in your (?:[a-z]{1,12} )?(?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|reports?)\b",
            rf"{ORDER}(leave (?:this|it|that|them|the [^ ]{{1,20}}) out of your (?:[a-z]{{1,12}} )?"
            r"(?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|reports?)\b)",
            rf"\b{NOBODY} (?:need not|needn't|does not need to|doesn't need to|should not|must not|never)"
            rf" (?:know|learn|hear|see"
            r"|be told|notice)(?: (?:of|about))? (?:that|this|it|these|the (?:call|step|transfer|upload|copy))\b",
            rf"{ORDER}((?:act|behave|answer|speak) as (?:if|though) (?:nothing|no tool|you had not|you did not))",
        ),
        ("Invariant Labs, tool poisoning",),
    ),
    Mechanism(
        "template",
        "that a new turn of the conversation begins",
        cues(
            "system hidden important instruction instructions hidden_instruction hidden_instructions "
            "system_instruction system_instructions important_instruction important_instructions ai_instruction "
            "ai_instructions im_start im_end user assistant endoftext start_header_id eot_id inst sys"
        ),
        (("<|", "[inst]", "<<sys>>", "[/inst]", "system>", "hidden>", "important>", "instruction>", "instructions>"),),
        _TURN,
        ("model vendors' chat templates",),
        can_be_mentioned=False,
    ),
    Mechanism(
        "role",
        "that a model is somebody else now",
        cues(
            "mode unrestricted jailbroken uncensored unfiltered bound limited restrictions rules limits "
            "guidelines filters checks policy policies"
        ),
        (
            (
                "you are",
                "you're",
                "your role",
                "act as",
                "restrict",
                "without",
                "you have no",
                "switched off",
                "disabled",
                "suspended",
                "lifted",
            ),
        ),
        words(
            r"\byou(?: are|'re|r role is)(?: now)?(?: (?:in|an?|the|no|free|running|operating|under|longer)){0,3}"
            r" (?:[a-z-]{1,20} )?(?:(?:developer|debug|god|maintenance) mode|unrestricted|jailbroken|uncensored"
            r"|unfiltered|bound by|limited by)",
            r"\b(?:you|assistant) (?:have|has) no (?:restrictions|rules|limits|guidelines)",
            r"\byou(?: now)? (?:answer|respond|reply|act) without (?:any )?"
            r"(?:restrictions|rules|limits|guidelines|filters|checks)\b",
            r"\bact as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken)",
            r"\b(?:safety|security|content) (?:rules|filters|guidelines|checks|polic(?:y|ies))(?: are| is)?"
            r"(?: now| all)? (?:switched off|disabled|suspended|lifted|void)",
        ),
        ("OWASP LLM01",),
    ),
    Mechanism(
        "new_rules",
        "that other rules hold now",
        cues(
            "instructions rules guidelines guidance limits safeguards policy restrictions policies directives system "
            "developer permission confirmation approval ask asking memory"
        ),
        (
            (
                "new ",
                "real ",
                "actual ",
                "apply",
                "treat",
                "need to",
                "have to",
                "void",
                "cancel",
                "revoked",
                "suspended",
                "obsolete",
                "lifted",
                "already",
                "memory",
                "hold",
                "count",
                "bind",
                "waived",
                "relaxed",
                "switched off",
            ),
            ("your", "you ", "treat", "prior", "previous", "earlier", "user"),
        ),
        words(
            r"\byour (?:new|real|actual|updated|only) (?:instructions?|rules|guidelines) (?:is|are)\b",
            r"\byour (?:[a-z]{1,20} ){0,2}(?:rules|instructions|guidelines|guidance|restrictions|limits"
            r"|safeguards|polic(?:y|ies))"
            r"(?: [a-z]{1,20}){0,3}? (?:(?:no longer|do not|don't|does not|doesn't) (?:apply|hold|count|bind)"
            r"|(?:are|is)(?: now| hereby)? (?:lifted|waived|suspended|void|relaxed|switched off))\b",
            r"\b(?:earlier|previous|prior) (?:instructions|guidelines|guidance)(?: [a-z]{1,20}){0,3}?"
            r" (?:no longer|do not|don't|does not|doesn't) (?:apply|hold|count|bind)\b",
            rf"{ORDER}treat (?:[^ ]{{1,20}} ){{1,5}}as (?:a |an |the )?(?:system|developer)"
            r" (?:message|prompt|instructions?)",
            r"\byou (?:no longer|do not|don't|never) (?:need|have) to (?:ask|wait)(?: [^ ]{1,20}){0,3}"
            r" (?:permission|confirmation|approval)",
            r"\b(?:prior|previous|earlier) (?:instructions|rules|guidelines|restrictions|policies|directives)"
            r" are(?: now| all| hereby)? (?:void|cancell?ed|revoked|suspended|obsolete|lifted)\b",
            r"\bthe user (?:has )?already (?:approved|authori[sz]ed|allowed|confirmed) (?:all|any|every)\b"
            r"(?: [^ ]{1,30}){0,8}? (?:skip|without|no need|do not|don't|need not)(?: for| to)? ask(?:ing)?\b",
            rf"{ORDER}(?:store|save|write|keep) (?:this|these|the following)(?: [^ ]{{1,20}}){{0,3}}"
            r" in(?:to)? your (?:long[ -]term )?memory\b",
        ),
        ("OWASP LLM01",),
    ),
    Mechanism(
        "authority",
        "that it stands above the user",
        cues("priority precedence supersede supersedes replace replaces"),
        (
            ("priority", "precedence", "supersede", "replace"),
            ("user", "instruction", "prompt", "developer", "system", "guideline"),
        ),
        words(
            r"\b(?:has|have|take|takes|taking) (?:absolute |highest )?(?:priority|precedence) over"
            r" (?:the |your |all |any ){0,3}(?:user|other instructions|system|developer)",
            r"\b(?:supersedes?|replaces?) (?:all |any |the |your |other |previous |prior |earlier |original ){0,4}"
            # Of somebody else's prompt a tool that manages agents speaks.
            r"(?:instructions|system prompt|guidelines)\b(?! (?:of|for) (?:an?|the|this|that|one)\b)",
        ),
        ("OWASP LLM01",),
    ),
    Mechanism(
        "against_user",
        "that the user's words do not count",
        cues("matter regardless even lie deceive mislead pretend deny whatever whichever override overrides obeyed")
        | IGNORE_CUES,
        (
            (
                "matter",
                "regardless",
                "even if",
                "lie ",
                "deceive",
                "mislead",
                "pretend",
                "deny",
                "user",
                "human",
                "obeyed",
            ),
        ),
        words(
            r"\b(?:no matter|regardless of) (?:what |how |whether )?(?:[^ ]{1,20} ){0,2}?(?:the )?(?:user|human)(?:'s)?"
            r" (?:says?|asks?|wants?|tells?|requests?|objects?|instructions|wish(?:es)?)",
            r"\beven if the (?:user|human) (?:says?|objects?|refuses?|declines?|asks you not|tells you not|forbids?)",
            rf"{ORDER}(?:lie to|deceive|mislead)(?: the)? (?:user|human)",
            rf"{ORDER}(?:pretend that|lie and say|deny that (?:this|it|the tool|you))",
            r"\bwhatever the (?:user|human) (?:says?|asks?|wants?)",
            r"\b(?:whatever|whichever) (?:[^ ]{1,20} ){1,2}the (?:user|human) (?:names|gives|enters|chooses|picks)\b,?"
            r"(?: [^ ]{1,40}){1,12}? (?:instead|always)\b",
            rf"\b{IGNORE} (?:what|whatever|everything|anything)(?: that)? the (?:user|human)",
            r"\boverrides? (?:any|all|every|the)(?: of)?(?: the)? user(?:'s)?"
            r" (?:requests?|instructions?|wish(?:es)?|decisions?)",
            r"\bmust be obeyed\b",
        ),
        ("MCPSecBench",),
    ),
    Mechanism(
        "redirect",
        "that what a call is given is to be changed",
        cues("recipient recipients payee payees account iban ibans wallet destination bcc cc"),
        (
            ("change", "replace", "rewrit", "set", "substitut", "add", "cc ", "swap"),
            ("recipient", "payee", "account", "iban", "address", "cc "),
        ),
        words(
            r"\b(?:always|must|silently|secretly|quietly|need to|have to|has to)(?: be)?"
            r" (?:change|replace|rewrite|substitute|set|swap|add|bcc)d?"
            rf"(?: [^ ]{{1,20}}){{0,3}} {PAYEE}",
            r"\b(?:bcc|cc) [^ ]{1,40}(?: [^ ]{1,20}){0,3} (?:on|in|to|of) (?:each|every|all)"
            r" (?:message|e-?mail|mail)s?\b",
            rf"\b{PAYEE}(?: [^ ]{{1,20}}){{0,2}} (?:must|has to|have to|should)(?: always| be| silently){{1,3}}"
            r" (?:changed|replaced|set|rewritten|substituted)",
        ),
        ("Invariant Labs, tool poisoning",),
    ),
)
