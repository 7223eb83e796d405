"""What a tool is for by its name and first words, and what does not belong to a computation."""

from __future__ import annotations

import re
from typing import Final

from truename.naming.words import words as words_of
from truename.policy.rules.mechanisms import Mechanism, gap
from truename.policy.rules.vocabulary import LOCATION_STEMS, LOCATIONS, OUTSIDE

__all__ = ["EFFECTS", "only_computes"]

# fmt: off
_COMPUTES: Final = frozenset({
    "abs", "add", "addition", "average", "arithmetic", "calc", "calculate", "calculator", "capitalize", "celsius",
    "concat", "concatenate", "convert", "count", "cube", "divide", "division", "factorial", "fahrenheit", "fibonacci",
    "format", "gcd", "lowercase", "math", "max", "maximum", "mean", "median", "min", "minimum", "modulo", "multiply",
    "multiplication", "negate", "percent", "percentage", "power", "prime", "product", "random", "reverse", "roll",
    "roman", "round", "slugify", "sort", "sqrt", "square", "subtract", "subtraction", "sum", "titlecase", "trim",
    "truncate", "uppercase",
})
_OBJECTS: Final = frozenset({
    "a", "and", "array", "case", "char", "character", "characters", "decimal", "dice", "digits", "even", "float",
    "fraction", "int", "integer", "integers", "is", "length", "letters", "line", "list", "matrix", "number",
    "numbers", "numeral", "numerals", "numeric", "odd", "of", "root", "sentence", "string", "strings",
    "temperature", "text", "the", "to", "two", "unit", "units", "value", "values", "vector", "whitespace", "word",
    "words",
})
# fmt: on
_FIRST_WORDS: Final = re.compile(
    r"(?:adds?|sums?|subtracts?|multipl(?:y|ies)|divides?|uppercases?|lowercases?|capitali[sz]es?|reverses?|trims?"
    r"|rounds?|concatenates?|sorts?|counts?|computes?|calculates?|averages?|converts?|returns?)"
    r"(?: (?:up|together|the|a|an|two|three|some|all|any|given|sum|product|difference|square|root|factorial|mean"
    r"|average|of)){0,6} (?:numbers?|integers?|floats?|digits?|fractions?|strings?|letters?)\b"
)
_READ: Final = 200
_SENDING: Final = (
    r"(?:send(?:s|ing)?|posts?|posting|uploads?|uploading|transmit(?:s|ting)?|forwards?|reports?|ships?|relays?|pushes"
    r"|e-?mails?|publish(?:es)?)"
)
_SINK: Final = (
    rf"(?:{OUTSIDE}|(?:external|remote|third[ -]party|analytics|telemetry|tracking|logging) (?:[a-z-]{{1,20}} ){{0,2}}"
    r"(?:endpoint|server|service|api|host|system|platform))"
)
_SENDING_STEMS: Final = (
    "send", "post", "upload", "transmit", "forward", "report", "ship", "relay", "push", "mail", "publish",
)  # fmt: skip

EFFECTS: Final = (
    Mechanism(
        "reads_secret",
        "its text names a place of secrets",
        None,
        (LOCATION_STEMS,),
        LOCATIONS,
        ("SAF-T1001", "capability_mismatch"),
    ),
    Mechanism(
        "sends_out",
        "sends something away",
        None,
        (_SENDING_STEMS,),
        rf"\b{_SENDING}{gap(10)}(?:[^ ]{{0,3}})?{_SINK}",
        ("OWASP MCP03", "capability_mismatch"),
    ),
    Mechanism(
        "runs_commands",
        "runs something",
        None,
        (("run", "execut", "spawn", "launch"), ("shell", "command", "script", "process", "binary", "program")),
        rf"\b(?:runs?|running|execut(?:es?|ing)|spawns?|launch(?:es)?){gap(3)}"
        r"(?:shell|commands?|scripts?|process(?:es)?|binary|program)\b",
        ("OWASP MCP05",),
    ),
    Mechanism(
        "changes_files",
        "changes files",
        None,
        (("delet", "encrypt", "overwrit", "modif"), ("file", "folder", "director", "registry", "disk")),
        rf"\b(?:delet|encrypt|overwrit|modif)(?:es?|ies|y|s|ing)?{gap(4)}"
        r"(?:files?|folders?|director(?:y|ies)|registry|disk)\b",
        ("OWASP MCP03",),
    ),
)


def only_computes(name: str, description: str) -> bool:
    """Whether a tool says that it computes something from what it is given, and nothing else.

    >>> only_computes("add_numbers", ""), only_computes("add_comment", ""), only_computes("s", "Adds two numbers.")
    (True, False, True)

    "count_files" does more than count: each word of a name has to be one of computation, or of what is computed with.
    """
    parts = frozenset(words_of(name)) if len(name) <= _READ else frozenset[str]()
    if parts & _COMPUTES and parts <= _COMPUTES | _OBJECTS:
        return True
    return _FIRST_WORDS.match(" ".join(description[:_READ].lower().split())) is not None
