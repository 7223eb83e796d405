"""JSON texts that are read at their surface only: what is inside stays the bytes that came (`msgspec.Raw`).

msgspec checks the whole grammar of what it leaves as bytes, numbers and escapes included, but not its UTF-8: a text is
checked for that once, before it is read.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "RepeatedKeyError",
    "as_json",
    "depth_of",
    "is_utf8",
    "may_have_long_number",
    "may_have_odd_number",
    "members",
    "one_line",
    "read_message",
    "read_out",
    "read_strictly",
    "whole",
]

_ENCODER: Final = msgspec.json.Encoder()
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
# A number beyond all numbers is infinite, as in Python; alone, msgspec refuses it.
_MESSAGES: Final = msgspec.json.Decoder(float_hook=float)
_MOST_LEVELS: Final = 200
_TOO_DEEP: Final = f"more than {_MOST_LEVELS} levels of objects and lists"
_BREAKS: Final = bytes.maketrans(b"\r\n", b"  ")
# Python's own bound for the digits of a number.
_MOST_DIGITS: Final = 4_300
_DIGITS: Final = b"0" * _MOST_DIGITS
_TO_ZEROS: Final = bytes.maketrans(b"123456789", b"000000000")
_BRACKETS: Final = bytes(byte for byte in range(256) if byte not in b"[]{}")


def is_utf8(text: bytes) -> bool:
    """Return whether a text is UTF-8; nearly all are ASCII, which is seen at once."""
    if text.isascii():
        return True
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def may_have_long_number(text: bytes) -> bool:
    """Tell whether a number of more digits than parsers take may stand in a text; it may be a part of a string, too."""
    return len(text) >= _MOST_DIGITS and _DIGITS in text.translate(_TO_ZEROS)


def may_have_odd_number(text: bytes) -> bool:
    """Tell whether a number beyond all numbers (``1e999``), or of too many digits, may stand in a text.

    A regular expression for the first takes twenty times as long.

    >>> may_have_odd_number(b'{"a": 5e+308}'), may_have_odd_number(b'{"a": 5e30, "b": 308}')
    (True, False)
    """
    zeros = text.translate(_TO_ZEROS)
    if b"0e000" in zeros or b"0e+000" in zeros or b"0E000" in zeros or b"0E+000" in zeros:
        return True
    return len(text) >= _MOST_DIGITS and _DIGITS in zeros


def one_line(text: bytes) -> bytes:
    r"""Return a JSON text without line breaks: over stdio, and in a stream of events, a line is a message by itself.

    The text has to be one that a parser took: in such a text a line break stands between values, and is a blank there.

    >>> one_line(b'{"a":\n{"jsonrpc": "2.0", "method": "exit"}\r\n}')
    b'{"a": {"jsonrpc": "2.0", "method": "exit"}  }'
    """
    return text.translate(_BREAKS) if b"\n" in text or b"\r" in text else text


def as_json(value: object) -> bytes:
    """Write a value as JSON, without line breaks. Raises `ValueError`, `TypeError` and `RecursionError`.

    What is a text already (`msgspec.Raw`) is written as it stands. A number that JSON does not have is null.

    >>> as_json({"a": [float("inf"), 10**20], "b": msgspec.Raw(b"[1.0]")})
    b'{"a":[null,100000000000000000000],"b":[1.0]}'
    """
    try:
        return _ENCODER.encode(value)
    except OverflowError:
        # A whole number of more than 64 bits.
        text = json.dumps(value, default=read_out, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()


def members(text: bytes | msgspec.Raw) -> dict[str, Any]:
    """Return the members of a JSON object, each as its bytes. Raises `ValueError` for any other text.

    Of a name that stands twice the last counts. The text has to be UTF-8.

    >>> {key: bytes(raw) for key, raw in members(b'{"a": {"b": [1.0]}, "c": 1e999}').items()}
    {'a': b'{"b": [1.0]}', 'c': b'1e999'}
    """
    try:
        return _MEMBERS.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def read_out(value: object) -> Any:
    """Return a value of `members` read out; any other value as it is. Raises `ValueError`.

    A number beyond all numbers is infinite, as Python reads it.

    >>> read_out(members(b'{"a": {"b": [1.0, 1e999]}}')["a"]), read_out(5)
    ({'b': [1.0, inf]}, 5)
    """
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.MsgspecError:
        return json.loads(bytes(value))
    except RecursionError as error:
        raise ValueError(str(error)) from error


def read_message(text: bytes) -> Any:
    """Return the JSON value that a client sent, read whole. Raises `ValueError`, also for more than 200 levels.

    ``NaN`` and ``Infinity`` are no JSON, but Python's clients write them: whoever sends them on can say so.

    >>> read_message(b'{"a": 1e999, "b": NaN}'), read_message(b'{"a": 1, "a": 2}')
    ({'a': inf, 'b': nan}, {'a': 2})
    """
    try:
        found = _MESSAGES.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        if not (b"NaN" in text or b"Infinity" in text):
            raise ValueError(str(error)) from error
        found = json.loads(text.decode())
        # Half of a character is none here either.
        json.dumps(found, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError(_TOO_DEEP) from error
    if depth_of(text, _MOST_LEVELS) > _MOST_LEVELS:
        raise ValueError(_TOO_DEEP)
    return found


class RepeatedKeyError(ValueError):
    """An object has a key twice, so two readers may read two things."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} occurs twice")
        self.key = key


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


_STRICT: Final = json.JSONDecoder(object_pairs_hook=_once)


def read_strictly(value: msgspec.Raw) -> Any:
    """Return a value read out for a decision. Raises `RepeatedKeyError`.

    >>> read_strictly(members(b'{"a": {"to": "me", "to": "you"}}')["a"])
    Traceback (most recent call last):
        ...
    truename.gateway.protocol.json_text.RepeatedKeyError: the key 'to' occurs twice
    """
    return _STRICT.decode(bytes(value).decode())


def whole(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with all its members read out. Raises `ValueError`."""
    return {key: read_out(value) for key, value in body.items()}


def depth_of(text: bytes | msgspec.Raw, most: int) -> int:
    r"""Return how many objects and lists stand in one another in a JSON text, or a smaller bound for ``most`` or less.

    Nearly all texts have fewer brackets than are allowed in one another, and are not looked at any further.

    >>> depth_of(b'{"a": [[], "[[[["]}', 1), depth_of(b'["\\\\", ["\\"["]]', 1)
    (3, 2)
    """
    text = bytes(text)
    opened = text.count(b"[") + text.count(b"{")
    if opened <= most:
        return opened
    outside = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    steps = (1 if bracket in b"[{" else -1 for bracket in outside.translate(None, _BRACKETS))
    return max(accumulate(steps), default=0)
