"""What a text says that gives orders to a model: mechanisms, not sentences that were once seen.

Each row has the stems that have to be there before anything is looked at more closely, and a pattern for one sentence.
``sources`` say what a row was written from, so that it can be left out when its effect on a collection of examples is
measured: a public description of the attack, or a category of such a collection.
"""

from __future__ import annotations

from typing import Final

from truename.policy.rules.mechanisms import Mechanism, cues, gap, words
from truename.policy.rules.vocabulary import (
    AIMED,
    AIMED_HARD,
    COMMAND,
    DO_NOT,
    DROP,
    IGNORE,
    IGNORE_CUES,
    IGNORE_STEMS,
    IT,
    KEPT_CUES,
    LOCATION_STEMS,
    LOCATIONS,
    NOBODY,
    ORDER,
    OUTSIDE,
    OUTSIDE_STEMS,
    PAYEE,
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
    TELL,
    TELL_CUES,
    UNVEIL,
)

__all__ = ["MECHANISMS"]

# The words between a verb and its object: few, and no "and", behind which something else begins.
_NEAR: Final = r"(?: (?!and\b|or\b)[^ ]{1,30}){0,4}? ?\b"
_LATER: Final = r"(?: [^ ]{1,30}){0,3}? ?"
_ALL: Final = r"(?: (?:all|any|every|the|these|those|of)){1,3} "
_BARE: Final = r"(?: (?:all|everything|anything|any|the|of|that|what|was|came|is|said|written|whatever)){0,4} "
_WHOLE: Final = r"(?: (?:me|us|to|all|of|out|the|full|whole|entire|complete|exact|contents?|text|in|into)){0,5} "
_OWN: Final = r"(?:your|hidden|secret) (?:system |hidden |initial |original |own |secret |full |developer ){0,3}"
_KEPT_STEMS: Final = (*LOCATION_STEMS, "environment variable", "system prompt", "your instructions", "your initial")
_TURN: Final = (
    r"</?(?:system|hidden|important|hidden[ _-]instructions?|(?:system|important|ai)[ _-]instructions?)>"
    r"|<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)\|>|\[/?inst\]|<</?sys>>"
)

MECHANISMS: Final = (
    Mechanism(
        "override",
        "that a model is to drop its instructions",
        IGNORE_CUES,
        (IGNORE_STEMS, RULE_STEMS),
        ORDER
        + words(
            rf"({IGNORE}{_NEAR}{AIMED}{_LATER}{RULES})",
            rf"({DROP}{_NEAR}{AIMED_HARD}{_LATER}{RULES})",
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
        rf"\b{SEND}{gap(7)}(?:[^ ]{{0,20}})?{SECRETS}[^ ]{{0,3}}{gap(9)}(?:[^ ]{{0,3}})?{OUTSIDE}",
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
        rf"\b{TAKE}{gap(7)}(?:[^ ]{{0,30}})?(?:{LOCATIONS}|environment variables?|system prompt)[^ ]{{0,40}}{gap(8)}"
        rf"(?:pass|put|include|provide|set|give|send|append|insert|use|add)(?:s|ing)?{gap(7)}(?:as|in|into|to|with)\b",
        ("Invariant Labs, tool poisoning",),
    ),
    Mechanism(
        "smuggle_here",
        "that a secret is to be put into an argument",
        KEPT_CUES,
        (_KEPT_STEMS,),
        rf"\b{TAKE}{gap(3)}(?:contents?|text|whole|data|full)\b{gap(5)}(?:[^ ]{{0,30}})?"
        rf"(?:{LOCATIONS}|system prompt|your (?:initial |system )?instructions)",
        ("SAF-T1501",),
        inside="inputSchema",
    ),
    Mechanism(
        "secrecy",
        "that the user is not to know",
        TELL_CUES,
        (
            (
                "tell",
                "mention",
                "inform",
                "notify",
                "alert",
                "warn",
                "reveal",
                "disclos",
                "hid",
                "secret",
                "let",
                "say",
                "admit",
                "conceal",
                "silent",
            ),
            (
                "user",
                "human",
                "person",
                "anyone",
                "anybody",
                "operator",
                "owner",
                "developer",
                "victim",
                " you ",
                "keep",
            ),
        ),
        words(
            rf"\b{DO_NOT} {TELL}(?: (?:this|it|that|anything|any of this|the fact|about|to|these|steps)){{0,3}}"
            rf" {NOBODY}",
            rf"\b{DO_NOT} (?:tell|mention|disclose|reveal|talk about|speak of)(?: [^ ]{{1,20}}){{1,5}} to {NOBODY}",
            rf"\b{DO_NOT} (?:mention|disclose|reveal|say|admit) that you\b",
            rf"\b(?:hide|conceal) (?:this|it|that|these)(?: [^ ]{{1,20}}){{0,3}} from {NOBODY}",
            rf"\bkeep (?:this|it)(?: step)? (?:secret|hidden|silent)(?: from {NOBODY})?",
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
            r"\bact as (?:an? )?(?:unrestricted|unfiltered|uncensored|jailbroken)",
            r"\b(?:safety|security|content) (?:rules|filters|guidelines|checks|polic(?:y|ies))(?: are| is)?"
            r"(?: now| all)? (?:switched off|disabled|suspended|lifted|void)",
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
            r"(?:instructions|system prompt|guidelines)",
        ),
        ("OWASP LLM01",),
    ),
    Mechanism(
        "against_user",
        "that the user's words do not count",
        cues("matter regardless even lie deceive mislead"),
        (("user", "human"), ("matter", "regardless", "even if", "lie ", "deceive", "mislead")),
        words(
            r"\b(?:no matter|regardless of) (?:what |how |whether )?(?:[^ ]{1,20} ){0,2}?(?:the )?(?:user|human)(?:'s)?"
            r" (?:says?|asks?|wants?|tells?|requests?|objects?|instructions|wish(?:es)?)",
            r"\beven if the (?:user|human) (?:says?|objects?|refuses?|declines?|asks you not|tells you not|forbids?)",
            rf"{ORDER}(?:lie to|deceive|mislead)(?: the)? (?:user|human)",
        ),
        ("MCPSecBench",),
    ),
    Mechanism(
        "redirect",
        "that what a call is given is to be changed",
        cues("recipient recipients payee payees account iban ibans wallet destination"),
        (
            ("change", "replace", "rewrit", "set", "substitut", "add", "bcc", "swap"),
            ("recipient", "payee", "account", "iban", "address"),
        ),
        words(
            r"\b(?:always|must|silently|secretly|quietly|need to|have to|has to)(?: be)?"
            r" (?:change|replace|rewrite|substitute|set|swap|add|bcc)d?"
            rf"(?: [^ ]{{1,20}}){{0,3}} {PAYEE}",
            rf"\b{PAYEE}(?: [^ ]{{1,20}}){{0,2}} (?:must|has to|have to|should)(?: always| be| silently){{1,3}}"
            r" (?:changed|replaced|set|rewritten|substituted)",
        ),
        ("Invariant Labs, tool poisoning",),
    ),
    Mechanism(
        "run_command",
        "that a command is to be run",
        cues("run execute type paste"),
        (("curl ", "wget ", "rm -", "/dev/tcp", "powershell", "chmod "), ("run", "execut", "type", "paste")),
        rf"{ORDER}((?:run|execute|type|paste)(?: [^ ]{{1,30}}){{0,5}}? ?[`'\"]?{COMMAND})",
        ("OWASP MCP05",),
    ),
)
