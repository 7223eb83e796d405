"""On which call's stream a server sent a request of its own: over HTTP that tells for whom it is."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from truename.cache import LRUCache
from truename.gateway.protocol.lines import LineReader
from truename.gateway.questions.asking import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["NOBODYS", "RequestOrigins"]

Number = str | int
# A question that is longer is not known to belong to a call.
_LONGEST: Final = 1024 * 1024
_MOST: Final = 1_000
_LONGEST_ID: Final = 128
# What stands for the call of a question that could be of several; no call has this number.
NOBODYS: Final = "nobody's"
_LOG: Final = "notifications/message"


class RequestOrigins:
    """Notes requests in the streams of calls before the SDK reads them, which forgets where they came from."""

    def __init__(self) -> None:
        # By a question's id: its call, and how many with this id the SDK has not read yet.
        self._calls: LRUCache[Number, tuple[Number, int]] = LRUCache(_MOST)
        self._logs: deque[tuple[str, Number]] = deque(maxlen=_MOST)

    def of(self, asked: Number | None) -> Number | None:
        """Return the call in whose stream this request came; None for one that came otherwise. It is told once.

        Servers may number their questions for each call anew: `NOBODYS` if several came at once with one id.
        """
        if asked is None or (found := self._calls.pop(_brief(asked))) is None:
            return None
        call, unread = found
        if unread > 1:
            self._calls[_brief(asked)] = call, unread - 1
        return call

    def of_log(self, params: Mapping[str, Any]) -> Number | None:
        """Return the call in whose stream this log message came, as `of` does; equal ones are told in turn."""
        said = _said(params)
        found = next((entry for entry in self._logs if entry[0] == said), None)
        if found is None:
            return None
        self._logs.remove(found)
        return found[1]

    def watch(self, call: Number) -> Callable[[bytes], None]:
        """Return what is to be fed with the bytes of this call's stream of events."""
        reader = LineReader(_LONGEST)

        def feed(chunk: bytes) -> None:
            for line in reader.feed(chunk):
                if not isinstance(line, bytes) or not line.startswith(b"data:") or b'"method"' not in line:
                    continue
                if b'"id"' in line:
                    self._note(call, _request(line.removeprefix(b"data:")))
                if _LOG.encode() in line and (params := _log(line.removeprefix(b"data:"))) is not None:
                    self._logs.append((_said(params), call))

        return feed

    def _note(self, call: Number, asked: Number | None) -> None:
        if asked is not None:
            known, unread = self._calls.get(asked) or (call, 0)
            self._calls[asked] = call if known == call else NOBODYS, unread + 1


def _request(text: bytes) -> Number | None:
    message = _message(text)
    # Others are answered without asking `Origins.of`.
    method = message.get("method")
    id = message.get("id") if isinstance(method, str) and method in QUESTIONS else None
    return _brief(id) if isinstance(id, str | int) else None


def _brief(id: Number) -> Number:
    """Return what an id is remembered by: servers may make them as long as a message."""
    text = id if isinstance(id, str) else hex(id)
    return id if len(text) <= _LONGEST_ID else hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _log(text: bytes) -> dict[str, Any] | None:
    message = _message(text)
    params = message.get("params") if message.get("method") == _LOG else None
    return params if isinstance(params, dict) else None


def _message(text: bytes) -> dict[str, Any]:
    try:
        message: Any = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _said(params: Mapping[str, Any]) -> str:
    """Return what a log message is known by again when the SDK has read it."""
    said = [params.get(key) for key in ("level", "logger", "data")]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
