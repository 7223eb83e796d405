"""What a server sent, read as far as its envelope: parameters and results stay the bytes that they came in.

Whatever is accepted here is one JSON object in valid UTF-8 without halves of characters, without line breaks and with
nothing behind its end, so that its parts can be sent on as they are.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from contextlib import nullcontext
from typing import Any, Final

import msgspec

from truename.gateway.heap import still
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import RepeatedKeyError, is_utf8, may_have_odd_number, one_line, read_out
from truename.gateway.protocol.lines import repaired
from truename.gateway.protocol.own_meta import OWN_PREFIX, without_own_meta

__all__ = [
    "ABSENT",
    "PAYLOAD",
    "Envelope",
    "content_of",
    "may_have_own_meta",
    "read_envelope",
    "read_object",
    "result_of_call",
]

ABSENT: Final = msgspec.Raw(b"")
PAYLOAD: Final = frozenset({"content", "structuredContent"})
"""What a tool returns to its caller; the other members of the result are for who passes it on, too."""
_OBJECT: Final = ord("{")
_LONG: Final = 64 * 1024
_OWN: Final = OWN_PREFIX.encode()
_PAIR: Final = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")


class Envelope(msgspec.Struct, gc=False):
    """A JSON-RPC message. What it does not have is None, or `ABSENT`; ``text`` is all of it."""

    jsonrpc: Any = None
    id: Any = None
    method: Any = None
    params: msgspec.Raw = ABSENT
    result: msgspec.Raw = ABSENT
    error: msgspec.Raw = ABSENT
    text: Any = msgspec.field(default=b"", name=" text")

    @property
    def is_request(self) -> bool:
        """Whether its sender waits for an answer."""
        return self.method is not None and self.id is not None

    @property
    def is_result(self) -> bool:
        """Whether it answers a request with a result."""
        return self.result is not ABSENT

    @property
    def is_response(self) -> bool:
        """Whether it answers a request."""
        return self.method is None

    def arguments(self) -> dict[str, Any] | None:
        """Return the parameters of a request or a notification; None where it has none."""
        content: dict[str, Any] | None = None if self.params is ABSENT else read_out(self.params)
        return content

    def failure(self) -> MCPError:
        """Return the error that it is a response with, where it is one."""
        found = _failures.decode(self.error)
        return MCPError(found.code, found.message, found.data)


class _Failure(msgspec.Struct):
    code: int
    message: str
    data: Any = None


class _Key:
    """A key that is equal to no other, so that a mapping keeps all members of an object."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


def _key(_: type, name: str) -> _Key:
    return _Key(name)


_envelopes: Final = msgspec.json.Decoder(Envelope)
_failures: Final = msgspec.json.Decoder(_Failure)
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_pairs: Final = msgspec.json.Decoder(dict[_Key, msgspec.Raw], dec_hook=_key)
_contents: Final = msgspec.json.Decoder()


def read_envelope(text: bytes) -> Envelope | None:
    r"""Return the message that a text is, mended where characters in it are none; None for what is no message.

    >>> bytes(read_envelope(b'{"jsonrpc": "2.0", "id": 1, "result": {"a": "\\ud83d", "b": [ ]}}').result)
    b'{"a": "\xef\xbf\xbd", "b": []}'

    What only looks like half of a character, as JSON within a text, is nothing to be mended:

    >>> bytes(read_envelope(b'{"jsonrpc": "2.0", "id": 1, "result": {"a": "\\\\ud83d"}}').result)
    b'{"a": "\\\\ud83d"}'
    """
    if is_utf8(text) and not _may_have_half(text) and (found := _read(text)) is not None:
        return found
    mended = repaired(text)
    return None if mended is None else _read(mended)


def _read(text: bytes) -> Envelope | None:
    try:
        found: Envelope = _envelopes.decode(text)
        if (line := one_line(text)) is not text:
            found = _envelopes.decode(line)
        found.text = line
        if may_have_odd_number(text):
            # Many parsers refuse such a number, and all of its message; within a text it is none.
            _contents.decode(text)
        # Nearly all are this.
        if (
            type(found.id) is int
            and found.method is None
            and found.error is ABSENT
            and found.jsonrpc == "2.0"
            and found.result is not ABSENT
            and memoryview(found.result)[0] == _OBJECT
        ):
            return found
        if found.jsonrpc != "2.0" or not _is_message(found):
            return None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return found


def _is_message(found: Envelope) -> bool:
    if found.method is not None:
        if found.params is not ABSENT and bytes(memoryview(found.params)[:4]) == b"null":
            found.params = ABSENT
        is_whole = isinstance(found.method, str) and (found.params is ABSENT or _is_object(found.params))
        if is_whole and found.params is not ABSENT:
            _members.decode(found.params)
        return is_whole and (found.id is None or _is_id(found.id))
    if found.result is not ABSENT:
        # An error beside it, if any, does not count.
        found.error = ABSENT
        return _is_id(found.id) and _is_object(found.result)
    if found.error is ABSENT:
        return False
    _failures.decode(found.error)
    return found.id is None or _is_id(found.id)


def _is_id(value: object) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, str)


def _is_object(content: msgspec.Raw) -> bool:
    return memoryview(content)[0] == _OBJECT


def _may_have_half(text: bytes) -> bool:
    """Tell whether half of a character may stand in a text; where that is not clear, it is read another way."""
    if b"\\u" not in text or not (b"\\ud" in text or b"\\uD" in text):
        return False
    if b"\\\\" in text:
        return True
    left = _PAIR.sub(b"", text)
    return b"\\ud" in left or b"\\uD" in left


def result_of_call(found: Envelope) -> dict[str, Any]:
    """Return a result of tools/call, of which the `PAYLOAD` stays the bytes that came; without the gateway's own keys.

    Raises `RepeatedKeyError`.
    """
    members = _members_once(found.result)
    if may_have_own_meta(found):
        content = content_of(found)
        clean = without_own_meta(content)
        if clean is not content:
            return clean
    return {name: value if name in PAYLOAD else read_out(value) for name, value in members.items()}


def _members_once(text: msgspec.Raw) -> dict[str, msgspec.Raw]:
    """Return the members of an object, each as its bytes. Raises `RepeatedKeyError`."""
    members = _members.decode(text)
    # Braces, and for each member its name, its value, two quotes, a colon and a comma: where these are all bytes of
    # the object, none is left for a second member of some name.
    size = 1 + 4 * len(members)
    for name, value in members.items():
        size += len(name) + memoryview(value).nbytes
    if size == memoryview(text).nbytes:
        return members
    pairs = _pairs.decode(text)
    if len(members) < len(pairs):
        raise RepeatedKeyError(Counter(key.name for key in pairs).most_common(1)[0][0])
    return members


def content_of(found: Envelope) -> dict[str, Any]:
    """Return a result, read whole."""
    content: dict[str, Any]
    with still() if len(found.text) >= _LONG else nullcontext():
        content = read_out(found.result)
    return content


def may_have_own_meta(found: Envelope) -> bool:
    """Tell whether the gateway's own keys may stand in a message, in whatever way they are written."""
    text: bytes = found.text
    return _OWN in text or (b"\\" in text and (b"\\/" in text or b"\\u00" in text))


def read_object(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object that a text is; None for any other text."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
