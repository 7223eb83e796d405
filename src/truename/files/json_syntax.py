"""Say in plain words why a text is not JSON, where the parser's own words mislead: a file that was cut off."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from json import JSONDecodeError

__all__ = ["json_problem"]

# Possessive: a missing closing quote must not cause quadratic backtracking.
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]]', re.DOTALL)
_CLOSING: Final = {"{": "}", "[": "]"}
_MOST: Final = 10


def json_problem(error: JSONDecodeError) -> str:
    r"""Return why a text is not JSON, without the place.

    >>> import json
    >>> def problem(text):
    ...     try:
    ...         json.loads(text)
    ...     except json.JSONDecodeError as error:
    ...         return json_problem(error)
    >>> problem('{"a": [1, 2\n'), problem('{"a": "b')
    ("the file ends too early: ']}' is missing", 'the file ends inside a string')
    >>> problem('{"a": }')
    'Expecting value'
    """
    text = error.doc.rstrip()
    if error.msg.startswith("Unterminated string"):
        return "the file ends inside a string"
    if error.msg.startswith("Invalid control character") and error.doc[error.pos] in "\r\n":
        return "a string has no closing quote"
    if not text or error.pos < len(text):
        return error.msg
    missing = _missing(text)
    return f"the file ends too early: {missing!r} is missing" if 0 < len(missing) <= _MOST else error.msg


def _missing(text: str) -> str:
    """Return the brackets that are still open at the end of a text, closed."""
    waiting: list[str] = []
    for token in _TOKEN.findall(text):
        if token in _CLOSING:
            waiting.append(_CLOSING[token])
        elif waiting and token == waiting[-1]:
            waiting.pop()
    return "".join(reversed(waiting))
