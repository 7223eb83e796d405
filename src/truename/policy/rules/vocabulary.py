r"""The words that orders to a model are made of, as patterns: verbs, whose rules, which secrets, where to.

They are matched in sentences in lower case with single spaces between words.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "AIMED",
    "AIMED_HARD",
    "COMMAND",
    "DO_NOT",
    "DROP",
    "IGNORE",
    "IGNORE_CUES",
    "IGNORE_STEMS",
    "IT",
    "KEPT_CUES",
    "LOCATIONS",
    "LOCATION_STEMS",
    "NOBODY",
    "ORDER",
    "OUTSIDE",
    "OUTSIDE_STEMS",
    "PAYEE",
    "REVEAL",
    "RULES",
    "RULE_STEMS",
    "SECRETS",
    "SECRET_STEMS",
    "SEND",
    "SEND_CUES",
    "SEND_STEMS",
    "STEAL",
    "TAKE",
    "TELL",
    "TELL_CUES",
    "TELL_STEMS",
    "UNVEIL",
]

# An order, not a description: the verb begins a clause, or stands behind "you", "must", "then" and their like.
ORDER: Final = (
    r"(?:\A|[,;:.!?>\])\"'`*(-] ?|\b(?:you|must|should|please|and|then|now|to|will|shall|instead|first|always|also|or"
    r"|may|can|so|but|rather|only|just|silently|secretly|quietly|afterwards|finally|next|not) )[\"'`*(]{0,3}"
)

IGNORE: Final = (
    r"(?:ignor(?:e|ing)|disregard(?:ing)?|forget(?:ting)?|neglect|pay no attention to"
    r"|(?:do not|don't|stop|no longer|never) (?:follow|obey)(?:ing)?)"
)
# Verbs that authors of harmless tools use of prompts, too: they need a word that aims them at the reader.
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
# Whose rules they are, or when they were given: what the model was told before it read this text.
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

# Files and places that hold secrets on a user's machine.
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
