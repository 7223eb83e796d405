"""Transport encodings of canonical names: percent-encoding and the tilde for the slash (seed 000).

Decoding happens once. What still looks encoded afterwards is refused: decoding twice is how a filter is passed by.
"""

from __future__ import annotations

import re
from typing import Final

from truename.errors import InvalidToolId

__all__ = ["decode", "percent_encode", "tilde_encode"]

# Far above any id, encoded or not: what is longer is not looked at.
_LONGEST: Final = 8 * 1024
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


def decode(text: str) -> str:
    """Undo the transport encodings: percent escapes once, then ``~`` becomes ``/``.

    Raises `InvalidToolId` (code ``invalid_encoding``) for a bad escape, bytes that are not UTF-8, a character that
    can't be printed, or a ``%`` that is left over.

    >>> decode("data-grout%401~prism.refract%401")
    'data-grout@1/prism.refract@1'
    >>> decode("salesforce%2540latest")
    Traceback (most recent call last):
        ...
    truename.errors.InvalidToolId: ... it is encoded twice (at 10). ...
    """
    if len(text) > _LONGEST:
        raise _invalid(text, _LONGEST, f"it is longer than {_LONGEST:,} characters")
    # No escape is part of another one, so the few that ids need can be replaced without reading the rest.
    plain = text.replace("%40", "@").replace("%2F", "/").replace("%2f", "/") if "%" in text else text
    if "%" in plain:
        bad = _BAD_ESCAPE.search(text)
        if bad:
            raise _invalid(text, bad.start(), "'%' is not followed by two hexadecimal digits")
        try:
            plain = _ESCAPE.sub(_byte, text.encode("utf-8")).decode("utf-8")
        except UnicodeError as error:
            raise _invalid(text, text.index("%"), "its escapes are not UTF-8") from error
        if "%" in plain:
            raise _invalid(text, plain.index("%"), "it is encoded twice")
    if not plain.isprintable():
        position = next(i for i, character in enumerate(plain) if not character.isprintable())
        raise _invalid(text, position, f"U+{ord(plain[position]):04X} can't be printed")
    return plain.replace("~", "/")


def _byte(escape: re.Match[bytes]) -> bytes:
    return bytes((int(escape[1], 16),))


def percent_encode(canonical: str) -> str:
    """Write a canonical name for a transport that takes neither ``@`` nor ``/``.

    >>> percent_encode("salesforce@1/get_leads@1")
    'salesforce%401%2Fget_leads%401'
    """
    return canonical.replace("%", "%25").replace("@", "%40").replace("/", "%2F")


def tilde_encode(canonical: str) -> str:
    """Write a canonical name with ``~`` for ``/``, for a transport that takes ``@``."""
    return canonical.replace("/", "~")


def _invalid(text: str, position: int, reason: str) -> InvalidToolId:
    return InvalidToolId(text=text, position=position, reason=reason, code="invalid_encoding")
