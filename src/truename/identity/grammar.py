"""The grammar of canonical identities, in one place.

::

    tool-id     = integration "@" version "/" [ suite "." ] tool "@" version        ; at most 512 characters
    integration = name        tool = name        suite = name *( "." name )
    name        = 1*( a-z | 0-9 | "_" | "-" )     ; at least one letter or digit
    version     = "1".."9" *( "0".."9" )          ; ASCII digits

Source: seed 000, "Canonical format" and "Version handling". The patterns are unanchored; callers use ``fullmatch``.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_ID_LENGTH", "NAME", "SUITE", "VERSION", "is_kebab", "is_name", "is_suite", "lower_ascii"]

MAX_ID_LENGTH: Final = 512

# The look-ahead keeps the scan linear: "____...!" is given up after one pass.
NAME: Final = re.compile(r"(?=[_-]*[a-z0-9])[a-z0-9_-]+")
SUITE: Final = re.compile(rf"{NAME.pattern}(?:\.{NAME.pattern})*")
_KEBAB: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
# Eighteen digits fit every integer type that a version may be stored in.
VERSION: Final = re.compile(r"[1-9][0-9]{0,17}")

_ASCII_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


def lower_ascii(text: str) -> str:
    r"""Fold ASCII capitals only: ``str.lower`` would turn the Kelvin sign into an innocent "k".

    >>> lower_ascii("GET_LEADS"), lower_ascii("\u212a") == "\u212a"
    ('get_leads', True)
    """
    return text.lower() if text.isascii() else text.translate(_ASCII_LOWER)


def is_name(text: str) -> bool:
    """Tell whether the text is one ``name`` of the grammar."""
    return NAME.fullmatch(text) is not None


def is_kebab(text: str) -> bool:
    """Tell whether the text is written as seed 000 wants integrations: lower case, words joined by hyphens.

    >>> is_kebab("data-grout"), is_kebab("data_grout")
    (True, False)
    """
    return _KEBAB.fullmatch(text) is not None


def is_suite(text: str) -> bool:
    """Tell whether the text is a ``suite``: names joined by dots."""
    return SUITE.fullmatch(text) is not None
