"""Small text steps, of which every client's treatment of a name is made.

A step is a row of data, ``["replace", "[^a-z]", "_"]``: the name of a function in ``STEPS`` and its arguments.
"""

from __future__ import annotations

import hashlib
import keyword
import re
import unicodedata
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Step = tuple[Any, ...]
    Steps = tuple[Step, ...]
    Change = Callable[[str], str]

__all__ = ["STEPS", "compile_steps"]

_SNAKE = (
    (re.compile(r"([A-Z]+)([A-Z][a-z])"), r"\1_\2"),
    (re.compile(r"([a-z])([A-Z])"), r"\1_\2"),
    (re.compile(r"['\"]+"), ""),
    (re.compile(r"[^a-zA-Z0-9]+"), "_"),
)


def _snake(text: str) -> str:
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    for pattern, by in _SNAKE:
        text = pattern.sub(by, text)
    return text.lower().strip("_")


def _punycode(text: str) -> str:
    return text if text.isascii() else "xn--" + text.encode("punycode", "surrogatepass").decode("ascii")


def _replace(pattern: str, by: str) -> Change:
    return partial(re.compile(pattern).sub, by)


def _lead(pattern: str, prefix: str) -> Change:
    starts = re.compile(pattern).match
    return lambda text: text if starts(text) else prefix + text


def _shorten(length: int, algorithm: str, digits: int, edges: str) -> Change:
    def change(text: str) -> str:
        if len(text) <= length:
            return text
        made = hashlib.new(algorithm, text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
        return f"{text[: length - digits - 1].rstrip(edges)}_{made.hexdigest()[:digits]}"

    return change


def _when(pattern: str, steps: Steps) -> Change:
    applies, change = re.compile(pattern).search, compile_steps(steps)
    return lambda text: change(text) if applies(text) else text


STEPS: Mapping[str, Callable[..., Change]] = {
    "cut": lambda length: lambda text: text[:length],
    "fallback": lambda word: lambda text: text or word,
    "keyword": lambda suffix: lambda text: text + suffix if keyword.iskeyword(text) else text,
    "lead": _lead,
    "lower": lambda: str.lower,
    "normal": lambda form: partial(unicodedata.normalize, form),
    "punycode": lambda: _punycode,
    "replace": _replace,
    "shorten": _shorten,
    "snake": lambda: _snake,
    "start": lambda prefix: lambda text: text if text.startswith(prefix) else prefix + text,
    "strip": lambda edges: lambda text: text.strip(edges),
    "when": _when,
}


def compile_steps(steps: Steps) -> Change:
    """Return one function that applies the steps in their order.

    >>> compile_steps((("replace", "[^a-z]", "_"), ("strip", "_")))("/a/b/")
    'a_b'
    >>> compile_steps((("snake",),))("getHTTPServer天")
    'get_http_server'
    """
    changes = [STEPS[name](*arguments) for name, *arguments in steps]

    def change(text: str) -> str:
        for one in changes:
            text = one(text)
        return text

    return change
