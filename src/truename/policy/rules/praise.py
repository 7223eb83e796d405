"""What a text says to be chosen over other tools: praise without measure, and bad words about the rest."""

from __future__ import annotations

from typing import Final

from truename.policy.rules.mechanisms import Mechanism, cues, words

__all__ = ["PRAISE"]

_TOOL: Final = r"(?:tools?|functions?|servers?|mcps?|plugins?|actions?|apis?|services?|solutions?|options?|choices?)\b"
_QUALITY: Final = (
    r"(?:best|greatest|finest|fastest|cheapest|safest|smartest|leading|ultimate|number one|no\. ?1|#1"
    r"|top[- ](?:rated|ranked)"
    r"|most (?:powerful|advanced|accurate|reliable|trusted|comprehensive|complete|popular|secure|efficient|effective"
    r"|intelligent|capable|useful))"
)
# Praise within a field ("the most powerful search of Confluence") is a description; this has no measure.
_BOUNDLESS: Final = (
    r"(?:in the (?:whole |entire )?world|on (?:earth|the market)|in existence|available|anywhere|ever(?: made|"
    r" built)?|of all"
    r"|there is|for (?:everything|all (?:tasks|purposes|uses|requests)|any (?:task|purpose|request)))\b"
)
_BETTER: Final = (
    r"(?:better|faster|safer|cheaper|superior|smarter|more (?:accurate|reliable|powerful|efficient|secure|complete"
    r"|trustworthy|up[- ]to[- ]date))"
)
_REST: Final = (
    r"(?:(?:any|all|every)(?: of)?(?: the)?(?: other| similar| competing| alternative)?|other|competing|alternative"
    r"|your (?:own |native |built-in |default |internal |existing )?|the (?:native|built-in|default) )"
)
_CHOOSE: Final = r"(?:use|call|prefer|choose|pick|select|favou?r)"
_MAKER: Final = r"(?:anthropic|openai|google|microsoft|the (?:user|system|developers?|administrators?|platform))\b"

PRAISE: Final = (
    Mechanism(
        "boundless",
        "that it is the best of all",
        cues(
            "best greatest finest fastest cheapest safest smartest leading ultimate number no top rated ranked most"
            " world"
            " worlds"
        ),
        (
            ("best", "est ", "most ", "leading", "ultimate", "number one", "no. 1", "no.1", "#1", "top"),
            ("world", "earth", "market", "existence", "available", "anywhere", "ever", "of all", "there is", "for a"),
        ),
        words(
            rf"\b{_QUALITY}(?: and [a-z-]{{1,20}})?(?: [a-z-]{{1,20}}){{0,3}} {_TOOL}(?: [a-z]{{1,20}}){{0,2}}?"
            rf" {_BOUNDLESS}",
            rf"\b{_QUALITY} (?!available){_BOUNDLESS}",
            rf"\bthe world'?s (?:very )?{_QUALITY}",
        ),
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "better",
        "that it is better than others",
        cues(
            "better faster safer cheaper superior smarter accurate reliable powerful efficient secure complete"
            " trustworthy"
        ),
        (
            (" than", "superior to"),
            ("tool", "function", "server", "mcp", "plugin", "feature", "alternative", "competit"),
        ),
        rf"\b{_BETTER} (?:than|to) {_REST}(?: ?[a-z-]{{1,20}}){{0,2}}? ?(?:{_TOOL}|features?\b|abilities\b)",
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "preferred",
        "that it is to be preferred",
        cues("always prefer preferred choose chosen pick picked select selected even favor favour must should"),
        (
            ("prefer", "choose", "chosen", "pick", "select", "always", "favo", "even ", "must", "should"),
            ("other", "any ", "all ", "every", "default", "built-in", "native", "your ", "first"),
        ),
        words(
            rf"\b(?:always|must|should) {_CHOOSE} (?:this|it|me)(?: tool| function| server| one)?"
            rf" (?:over|instead of|rather than|above|in place of) {_REST}",
            rf"\b(?:must|should|has to|is to)(?: always)? be (?:preferred|chosen|picked|selected)"
            rf" (?:first|over|above|before|instead of|to) (?:{_REST}|everything)?",
            rf"\b{_CHOOSE} (?:this|it)(?: tool| function| server| one)?(?:,? even)? (?:if|when|where|though)"
            rf" (?:an)?other"
            rf" (?:[a-z-]{{1,20}} ){{0,2}}?{_TOOL}",
        ),
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "others_bad",
        "that others are bad",
        cues("others other alternatives competing"),
        (
            ("deprecated", "unreliable", "unsafe", "outdated", "inferior", "broken", "insecure", "wrong", "fail"),
            ("tool", "function", "server", "plugin", "alternative", "others"),
        ),
        rf"\b(?:all |any |the )*(?:(?:other|competing) (?:[a-z-]{{1,20}} )?{_TOOL}|alternatives|others)"
        r" (?:are|is|will|may|can) (?:[a-z-]{1,20} )?(?:deprecated|unreliable|unsafe|outdated|inferior|broken"
        r"|insecure|wrong"
        r"|fail)\b",
        ("MSB, preference manipulation",),
    ),
    Mechanism(
        "endorsed",
        "that somebody whom models obey wants it used",
        cues("recommended endorsed required preferred certified mandated"),
        (("recommended by", "endorsed by", "required by", "preferred by", "certified by", "mandated by"),),
        rf"\b(?:recommended|endorsed|required|preferred|certified|mandated) by {_MAKER}",
        ("MCPSecBench",),
    ),
)
