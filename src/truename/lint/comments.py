"""Comments that take a finding back where it is: ``# truename: ignore[TN104] the reason``."""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.conventions import Location

__all__ = ["Comment", "InlineSuppression", "comments_of"]

_MARK: Final = "truename:"
_COMMENT: Final = re.compile(r"#\s{0,20}truename:\s{0,20}ignore\s{0,20}(?:\[(?P<rules>[^\]]{0,500})\])?(?P<reason>.*)")
_MOST: Final = 20


@dataclass(frozen=True, slots=True)
class Comment:
    """One comment: its place in the file, the rules as written, and the reason, "" where none is given."""

    line: int
    column: int
    rules: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InlineSuppression:
    """What one comment takes back of one rule: where it stands, the reason, and the places of the names it is about.

    ``rule`` is as written: a code or a name.
    """

    rule: str
    reason: str
    location: Location
    names: tuple[Location, ...] = ()


def comments_of(text: str) -> tuple[Comment, ...]:
    """Return the comments of a Python source, which is known to be one.

    >>> comments_of("x = 1  # truename: ignore[TN104, separator] kept for old clients")[0].rules
    ('TN104', 'separator')
    """
    return tuple(_found(text)) if _MARK in text else ()


def _found(text: str) -> Iterator[Comment]:
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match is not None:
                line, column = token.start
                rules = [rule.strip() for rule in (match["rules"] or "").split(",")[:_MOST]]
                yield Comment(line, column + 1, tuple(rule for rule in rules if rule) or ("",), match["reason"].strip())
    except (tokenize.TokenError, SyntaxError):
        # The parser was content with it; what follows has no comments that can be told.
        return
