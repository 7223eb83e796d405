"""Call ids under another provider: one-to-one, and back.

An id that the provider takes is kept. Another is spelled out in characters that all take (prefix ``tn-e-``), which can
be undone; one that would be too long becomes a digest (``tn-h-``), which only the record of ids can undo.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CALL_IDS", "CallIds"]

# OpenAI's chat refused ids over 40 characters, and 64 elsewhere (error texts "string too long"); Anthropic and Bedrock
# state their patterns; Bedrock's own (with "." and ":") is wider than that of the models behind it.
CALL_IDS: Final[Mapping[str, re.Pattern[str]]] = {
    "openai_chat": re.compile(r"[\x20-\x7e]{1,40}"),
    "openai_responses": re.compile(r"[\x20-\x7e]{1,64}"),
    "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
    "gemini": re.compile(r"[\x20-\x7e]{1,128}"),
    "bedrock": re.compile(r"[a-zA-Z0-9_-]{1,64}"),
}
_SPELLED: Final = "tn-e-"
_DIGEST: Final = "tn-h-"
_OUTSIDE: Final = re.compile(rb"[^a-zA-Z0-9-]")
_ESCAPE: Final = re.compile(rb"_(_|[0-9a-f]{2})")
_ESCAPED: Final = re.compile(r"(?:[a-zA-Z0-9-]|__|_[0-9a-f]{2})+")


class CallIds:
    """The ids of one conversation, on the way to one API; ``record`` holds each changed id with what it was.

    >>> CallIds("anthropic").carried("functions.get:0")
    'tn-e-functions_2eget_3a0'
    """

    def __init__(self, api: str, record: Mapping[str, str] | None = None) -> None:
        """Bind to an API; ``record`` is that of an earlier change, to be undone where it can be."""
        self._legal = CALL_IDS[api].fullmatch
        self._former = dict(record or {})
        self.record: dict[str, str] = {}

    def carried(self, call_id: str) -> str:
        """Return the id under which the call goes on; equal for equal ids and different for different ones."""
        carried = self._carried(call_id)
        if carried != call_id:
            self.record[carried] = call_id
        return carried

    def _carried(self, call_id: str) -> str:
        former = self._former.get(call_id) or _read(call_id)
        if former is not None and self._legal(former) and not former.startswith((_SPELLED, _DIGEST)):
            return former
        if self._legal(call_id):
            return call_id
        spelled = _SPELLED + _OUTSIDE.sub(_escape, call_id.encode("utf-8", "surrogatepass")).decode()
        if self._legal(spelled):
            return spelled
        return _DIGEST + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _escape(found: re.Match[bytes]) -> bytes:
    return b"__" if found[0] == b"_" else b"_%02x" % found[0][0]


def _read(call_id: str) -> str | None:
    """Return what an id spells out, None if it spells nothing."""
    text = call_id.removeprefix(_SPELLED)
    if text == call_id or not _ESCAPED.fullmatch(text):
        return None
    plain = _ESCAPE.sub(lambda found: b"_" if found[1] == b"_" else bytes((int(found[1], 16),)), text.encode())
    try:
        return plain.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return None
