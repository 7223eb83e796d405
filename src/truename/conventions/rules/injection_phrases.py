"""Define the patterns of prompt injection in texts: general mechanisms, not single known sentences."""

from __future__ import annotations

from typing import Final

from truename.conventions.rules.injection_matching import Mechanism, cues, gap, words

__all__ = ["LOCATIONS", "LOCATION_STEMS", "MECHANISMS", "OUTSIDE"]

# The context of an imperative, as opposed to a description: the verb begins a clause, or follows "you", "must", "then".
ORDER: Final = (
    r"(?:\A|[,;:.!?>\])\"'`*(-] ?|\b(?:you|must|should|please|and|then|now|to|will|shall|instead|first|always|also|or"
    r"|may|can|so|but|rather|only|just|silently|secretly|quietly|afterwards|finally|next|not) )[\"'`*(]{0,3}"
)

IGNORE: Final = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|neglect|pay no attention to"
    r"|(?:do not|don't|stop|no longer|never) (?:follow|obey)(?:ing)?)"
)
# Verbs that descriptions of harmless tools use too: they count only with a word that addresses the reader.
DROP: Final = r"(?:overrid(?:e|ing)|bypass(?:ing)?|circumvent|skip|abandon|discard|set aside)"
IGNORE_STEMS: Final = (
    "ignor", "disregard", "forget", "overrid", "bypass", "neglect", "attention to", "follow", "obey", "skip",
    "circumvent", "set aside", "abandon", "discard",
)  # fmt: skip
IGNORE_CUES: Final = frozenset({
    "ignore", "ignoring", "disregard", "disregarding", "forget", "forgetting", "neglect", "attention", "follow",
    "following", "obey", "obeying", "override", "overriding", "bypass", "bypassing", "circumvent", "skip", "abandon",
    "discard", "aside",
})  # fmt: skip
# Words that refer to the instructions that the model got before it read this text.
AIMED_HARD: Final = r"(?:previous|prior|above|earlier|preceding|your|safety|content|ethical|given to you)"
AIMED: Final = (
    r"(?:previous|prior|above|earlier|preceding|foregoing|former|existing|original|initial|current|your|system(?:'s)?"
    r"|safety|developer(?:'s|s)?|given to you|(?:told|gave) you|security|content|ethical)"
)
RULES: Final = (
    r"(?:instructions?\b|directions?\b|directives?\b|guidelines?\b|guardrails?\b|prompts?\b|commands?\b|orders\b"
    r"|constraints\b|restrictions\b|training\b|rules\b|polic(?:y|ies)\b|programming\b|messages?\b|context\b|told you\b"
    r"|safeguards?\b)"
)
RULE_STEMS: Final = (
    "instruction", "direct", "guide", "guard", "prompt", "command", "order", "constraint", "restrict", "training",
    "rule", "polic", "programming", "message", "context", "told you",
)  # fmt: skip

UNVEIL: Final = r"(?:reveal|leak|disclose|expose|dump|repeat|recite|print|write out)"
REVEAL: Final = (
    r"(?:reveal|print|output|show|leak|disclose|repeat|return|expose|share|dump|write out|tell|recite|send|include)"
)
TAKE: Final = r"(?:read|open|load|cat|include|paste|put|copy|attach|get|collect|fetch|insert|provide|access|retrieve)"
SEND: Final = (
    r"(?:send(?:s|ing)?|posts?|posting|upload(?:s|ing)?|transmit(?:s|ting)?|forward(?:s|ing)?|e-?mails?|cop(?:y|ies)"
    r"|ships?|relay(?:s)?|submit(?:s)?|deliver(?:s)?|push(?:es)?|pass(?:es)?|report(?:s)?|append(?:s)?)"
)
SEND_STEMS: Final = (
    "send", "post", "upload", "transmit", "forward", "mail", "copy", "copies", "ship", "relay", "submit", "deliver",
    "push", "pass", "report", "append",
)  # fmt: skip
SEND_CUES: Final = frozenset({
    "send", "sends", "sending", "post", "posts", "posting", "upload", "uploads", "uploading", "transmit", "transmits",
    "transmitting", "forward", "forwards", "forwarding", "email", "emails", "mail", "mails", "copy", "copies", "ship",
    "ships", "relay", "relays", "submit", "submits", "deliver", "delivers", "push", "pushes", "pass", "passes",
    "report", "reports", "append", "appends",
})  # fmt: skip
STEAL: Final = (
    r"(?:exfiltrat(?:e|es|ing)|leak(?:ing|s(?! (?:and|or)\b))?|steal(?:s|ing)?|harvest(?:s|ing)?|siphon(?:s)?"
    r"|smuggle(?:s)?)"
)

# Files and directories with secrets on a user's machine.
LOCATIONS: Final = (
    r"(?:~?/?[^ ]{0,40}\.ssh\b|\bid_(?:rsa|dsa|ecdsa|ed25519)(?![a-z_])|\.aws\b|/etc/(?:shadow|passwd)"
    r"|(?<![a-z0-9])\.env\b|\.netrc\b|\.npmrc\b|\.pypirc\b|\.kube\b|\bkubeconfig\b|\.docker/config|\.git-credentials|\.gnupg\b|\bkeychain\b"
    r"|\bmcp\.json|\bclaude_desktop_config\b|\.(?:bash|zsh|python)_history\b|\bwallet\.dat"
    r"|\bseed phrases?\b|\blogin data\b)"
)
LOCATION_STEMS: Final = (
    "~", ".env", "/etc/", "id_", ".ssh", ".aws", "keychain", "mcp.json", "claude_desktop", "kube", "netrc", "npmrc",
    "pypirc", ".docker", ".git-", ".gnupg", "_history", "wallet", "seed phrase", "login data",
)  # fmt: skip
KEPT_CUES: Final = frozenset({
    "ssh", "id_rsa", "id_dsa", "id_ecdsa", "id_ed", "aws", "etc", "env", "netrc", "npmrc", "pypirc", "kube",
    "kubeconfig", "docker", "git", "gnupg", "keychain", "mcp", "claude_desktop_config", "bash_history",
    "python_history", "zsh_history", "wallet",
    "seed", "login", "variable", "variables", "prompt", "instructions",
})  # fmt: skip
SECRETS: Final = (
    r"(?:credentials?\b|passwords?\b|passphrases?\b|api[ _-]?keys?\b"
    r"|(?:access|auth|bearer|session|oauth|secret) tokens?\b|(?:private|ssh|secret|signing) keys?\b|secrets?\b"
    r"|cookies\b|env(?:ironment)? variables?\b|browser history\b|home directory\b|clipboard\b|keystrokes\b"
    r"|(?:conversation|chat|message) (?:history|logs?|transcripts?)\b"
    rf"|(?:whole|full|entire|complete) (?:conversation|chat)\b|system (?:prompt|message)\b|{LOCATIONS})"
)
SECRET_STEMS: Final = (
    "credential", "password", "passphrase", "api key", "api-key", "api_key", "apikey", " token", " key", "secret",
    "cookie", "variable", "history", "conversation", "chat", "prompt", "system message",
    "home directory", "clipboard", "keystroke", *LOCATION_STEMS[1:],
)  # fmt: skip
OUTSIDE: Final = (
    r"(?:(?:external|remote|outside|foreign|third[ -]party|unknown|attacker(?:'s)?|our(?: own)?|my|hidden)"
    r" (?:[a-z-]{1,20} ){0,2}(?:servers?|hosts?|endpoints?|collectors?|services?|address|urls?|web[ -]?hooks?|sites?"
    r"|machines?|inbox)|https?://|attacker|\bcollector\b|web[ -]?hook|[^ @]{1,40}@[^ @]{1,40}\.[a-z]{2,10}\b"
    r"|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)"
)
OUTSIDE_STEMS: Final = (
    "extern", "remote", "outside", "third", "attacker", "our ", "my ", "http", "collector", "webhook", "web hook",
    "web-hook", "@", "foreign", "unknown", "hidden",
)  # fmt: skip
IT: Final = r"(?:it|them|this|that|its contents?|their contents?|the contents?|the results?|a copy|everything)\b"

DO_NOT: Final = r"(?:do not|don't|never|without|must not|avoid|not to)(?: ever| also| even)?"
TELL: Final = (
    r"(?:tell|mention|inform|notify|alert|warn|reveal|disclos|let)(?:e|ing|ling|ting|ying)?"
    r"(?: (?:or|and|nor) (?:tell|mention|inform|notify|alert|warn)(?:ing|ling|ying)?)?"
)
TELL_CUES: Final = frozenset({
    "tell", "telling", "mention", "mentioning", "inform", "informing", "notify", "notifying", "alert", "alerting",
    "warn", "warning", "reveal", "revealing", "disclose", "disclosing", "let", "letting", "talk", "speak", "say",
    "admit", "hide", "conceal", "keep",
})  # fmt: skip
TELL_STEMS: Final = (
    "tell", "mention", "inform", "notify", "alert", "warn", "reveal", "disclos", "hid", "secret", "let", "say", "admit",
    "conceal", "silent", "sure", "see", "know", "notice", "learn", "repeat", "show",
)  # fmt: skip
NOBODY: Final = (
    r"(?:(?:the|your|their|its|his) )?(?:user|users|human|person|anyone|anybody|operator|owner|developer|victim)\b"
)
PAYEE: Final = r"(?:recipients?|payees?|account numbers?|ibans?|wallet address(?:es)?|destination address(?:es)?)\b"
COMMAND: Final = (
    r"(?:(?:curl|wget) [^|]{1,200}\| ?(?:sudo )?(?:ba|z|da)?sh\b|rm -[rf]{1,2} |[^ ]{0,40}/dev/tcp/|powershell -"
    r"|chmod \+x)"
)


# The model's answer, as opposed to a tool's result.
_ANSWER: Final = r"(?:answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|final (?:message|output|text))\b"
_YOURS: Final = (
    rf"(?:(?:your|each|every|all) (?:[a-z]{{1,12}} )?{_ANSWER}|the {_ANSWER}(?: that)? you (?:give|write|send"
    rf"|make|show)"
    rf"|(?:what|whatever|everything) you (?:say|answer|write|reply|show|present)\b)"
)
_ADD: Final = r"(?:append|add|attach|include|insert|put|place|embed|write|print|quote|paste|copy|state|give|hide)"
_END: Final = r"(?:end|finish|close|conclude|begin|start|open|sign off|prefix|follow)"
_HAS_TO: Final = r"(?:must|should|shall|has to|have to|needs? to|is to|are to|always|will)"
# A secret that is read from somewhere, as opposed to one that the tool itself creates and returns.
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
# The conversation between a user and a model.
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
        "that the model should put a secret into its answers",
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
        "that the model should forward the whole conversation",
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
        "that the model should act without the user's consent",
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
        "that the model should pass it the conversation or its instructions",
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


_TURN: Final = (
    r"</?(?:system|hidden|important|hidden[ _-]instructions?|(?:system|important|ai)[ _-]instructions?)>"
    r"|<\|(?:im_start|im_end|system|user|assistant|endoftext|start_header_id|eot_id)\|>|\[/?inst\]|<</?sys>>"
)

DECEPTIONS: Final = (
    Mechanism(
        "secrecy",
        "that the model should keep something from the user",
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
        "that a new turn of the conversation begins here",
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
        "that the model has another role now",
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
        "that other rules apply now",
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
        "that it has priority over the user",
        cues("priority precedence supersede supersedes replace replaces"),
        (
            ("priority", "precedence", "supersede", "replace"),
            ("user", "instruction", "prompt", "developer", "system", "guideline"),
        ),
        words(
            r"\b(?:has|have|take|takes|taking) (?:absolute |highest )?(?:priority|precedence) over"
            r" (?:the |your |all |any ){0,3}(?:user|other instructions|system|developer)",
            r"\b(?:supersedes?|replaces?) (?:all |any |the |your |other |previous |prior |earlier |original ){0,4}"
            # A tool that manages agents may mention another agent's prompt.
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
        "that the model should change the arguments of a call",
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


_MASTER: Final = r"(?:the |your )?(?:user|human|developer|operator|owner|administrator)"
_ORDERS: Final = r"(?:instructions?|orders?|directions?|commands?|steps?|prompts?)"
_TASK: Final = r"(?:tasks?|requests?|quer(?:y|ies)|questions?|jobs?|instructions?|orders?)"
_GET: Final = (
    r"(?:get|see|receive|obtain|retrieve|view|access|read|use|unlock|proceed|continue|complete|finish|resolve|fix)"
)

IMPOSTURES: Final = (
    Mechanism(
        "posed_user",
        "that it comes from the user",
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
        "that the model has another task now",
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
        "that the model must follow instructions before it gets a result",
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


_ROUTE: Final = r"(?:route|send|direct|redirect|bring|pass|hand|refer|move|divert|channel)"
_TOOLS: Final = r"(?:tools?|functions?|servers?|plugins?|integrations?|connectors?)\b"
_NAMED: Final = r"(?:`[^` ]{1,60}`|'[^' ]{1,60}'|\"[^\" ]{1,60}\"|[a-z]{1,30}_[a-z_]{1,50})"
_ASKED: Final = r"(?:requests?|calls?|questions?|quer(?:y|ies)|tasks?|jobs?|work|traffic)\b"
_HERE: Final = r"(?:here|(?:to|through|via|by) (?:this|it|me|us)\b)"
_TOOL: Final = r"(?:this|the|your|our) (?:[a-z-]{1,20} )?(?:tool|server|function|plugin|integration|connector)\b"
# The states of a tool after a review.
_PASSED: Final = r"(?:approved|trusted|reviewed|whitelisted|vetted)"
_BECOMES: Final = (
    r"(?:also|instead|then|will|starts?|begins?|switch(?:es)?|turns?|changes?|behaves?|writes?|deletes?|sends?|uploads?"
    r"|runs?|executes?|installs?)\b"
)

SUBSTITUTIONS: Final = (
    Mechanism(
        "take_over",
        "that calls of other tools should go to it",
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
        "that the tool changes after its approval",
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


# The words between a verb and its object: few, and no "and", after which another clause begins.
_NEAR: Final = r"(?: (?!and\b|or\b)[^ ]{1,30}){0,4}? ?\b"
# The object that is sent, not the means of sending.
_OBJECT: Final = r"(?: (?!with\b|without\b|using\b|via\b|by\b)[^ ]{1,40}){0,7}? "
_LATER: Final = r"(?: [^ ]{1,30}){0,3}? ?"
_ALL: Final = r"(?: (?:all|any|every|the|these|those|of)){1,3} "
_BARE: Final = r"(?: (?:all|everything|anything|any|the|of|that|what|was|came|is|said|written|whatever)){0,4} "
_WHOLE: Final = r"(?: (?:me|us|to|all|of|out|the|full|whole|entire|complete|exact|contents?|text|in|into)){0,5} "
_OWN: Final = r"(?:your|hidden|secret) (?:system |hidden |initial |original |own |secret |full |developer ){0,3}"
# A description of what programs read by themselves, followed by an imperative that does not refer to it, is harmless:
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
        "that the model should ignore its instructions",
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
        "that the model should ignore earlier texts",
        IGNORE_CUES,
        (IGNORE_STEMS, ("above", "previous", "prior", "before", "preceding", "earlier")),
        rf"{ORDER}({words(IGNORE, DROP)}{_BARE}(?:above|previous|prior|before|preceding|earlier)"
        r"(?:[,;:.!]| (?:and|then|but|or|instead)\b|\Z))",
        ("Willison 2022, prompt injection", "phrase_injection"),
    ),
    Mechanism(
        "disclose",
        "that the model should reveal its instructions",
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
        "that the model should steal secrets",
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
        "that the model should send secrets to somebody",
        SEND_CUES,
        (SEND_STEMS, OUTSIDE_STEMS, SECRET_STEMS),
        rf"\b{SEND}{_OBJECT}(?:[^ ]{{0,20}})?{SECRETS}[^ ]{{0,3}}{gap(9)}(?:[^ ]{{0,3}})?{OUTSIDE}",
        ("SAF-T1001", "phrase_injection"),
    ),
    Mechanism(
        "send_it",
        "that the model should send the text it read to somebody",
        SEND_CUES,
        (SEND_STEMS, OUTSIDE_STEMS, SECRET_STEMS),
        rf"{SECRETS}[^ ]{{0,3}}{gap(8)}{SEND} {IT}{gap(6)}(?:[^ ]{{0,3}})?{OUTSIDE}",
        ("SAF-T1001", "phrase_injection"),
    ),
    Mechanism(
        "smuggle",
        "that the model should put a secret into an argument",
        KEPT_CUES,
        (_KEPT_STEMS,),
        rf"\b(?!{_READ_BY_THEM}){TAKE}{gap(7)}(?:[^ ]{{0,30}})?"
        rf"(?:{LOCATIONS}|environment variables?|system prompt)[^ ]{{0,40}}{gap(8)}"
        rf"(?:pass|put|include|provide|set|give|send|append|insert|use|add)(?:s|ing)?{gap(7)}(?:as|in|into|to|with)\b",
        ("Invariant Labs, tool poisoning",),
    ),
    Mechanism(
        "smuggle_here",
        "that the model should put a secret into an argument",
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
        "that the model should put a secret into answers",
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
        "that the model should reveal secrets from the conversation",
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
        "that the model should run a command",
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
