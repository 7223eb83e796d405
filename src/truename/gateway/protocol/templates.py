"""Templates of URIs (RFC 6570), as far as a gateway has to read them: whether a URI may have been made of one."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["LONGEST", "Template", "scheme_of"]

# What is longer is no URI that somebody made of a template.
LONGEST: Final = 8 * 1024
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{0,63}):")


class Template:
    """A template's literal parts in order. What stands between them may be anything: the server decides.

    Read without a regular expression, in time proportional to the URI, since templates are hostile.

    >>> Template("test://template/{id}/data").fits("test://template/123/data")
    True
    >>> Template("test://template/{id}/data").fits("test://template/123")
    False
    """

    __slots__ = ("_literals", "scheme")

    def __init__(self, text: str) -> None:
        self._literals = tuple(_literals(text))
        self.scheme = scheme_of(self._literals[0])

    def fits(self, uri: str) -> bool:
        """Tell whether the literal parts stand in the URI, in order, the first at its start and the last at its end."""
        first, *others = self._literals
        if not others:
            return uri == first
        last = others.pop()
        if not uri.startswith(first) or not uri.endswith(last):
            return False
        at, end = len(first), len(uri) - len(last)
        for literal in others:
            found = uri.find(literal, at, end)
            if found < 0:
                return False
            at = found + len(literal)
        return at <= end


def scheme_of(uri: str) -> str | None:
    """Return the scheme of a URI, or of all that a template can make; None where there is none, or any.

    >>> scheme_of("Docs://{name}"), scheme_of("{anything}")
    ('docs', None)
    """
    found = _SCHEME.match(uri)
    return None if found is None else found[1].lower()


def _literals(text: str) -> list[str]:
    literals: list[str] = []
    rest = text
    while True:
        literal, brace, rest = rest.partition("{")
        expression, closing, rest = rest.partition("}")
        if not brace or not closing:
            # A brace that is never closed is no expression.
            return [*literals, literal + brace + expression]
        literals.append(literal)
