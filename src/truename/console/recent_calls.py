"""Keep the last calls of this process in memory, for the console."""

from __future__ import annotations

from collections import deque
from dataclasses import fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from truename.policy.call import CallEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["RecentCalls"]

_MOST: Final = 5_000
_LONGEST: Final = 300
# The names that a caller sends can have megabytes.
_TEXTS: Final = tuple(one.name for one in fields(CallEvent) if one.type == "str")


class RecentCalls:
    """The last calls that ended, newest first; `note` is a listener of the gateway (`on_call`)."""

    def __init__(self, most: int = _MOST) -> None:
        self._calls: deque[CallEvent] = deque(maxlen=most)
        self.count = 0

    def note(self, call: CallEvent) -> None:
        """Keep a call that ended, without its arguments: they may be large, and may be secret. Long texts are cut."""
        texts = {name: getattr(call, name) for name in _TEXTS}
        cut: dict[str, Any] = {name: f"{text[:_LONGEST]}..." for name, text in texts.items() if len(text) > _LONGEST}
        self._calls.appendleft(replace(call, arguments=None, **cut))
        self.count += 1

    def matching(self, fits: Callable[[CallEvent], bool], most: int) -> list[CallEvent]:
        """Return the newest calls that fit, at most so many."""
        return list(islice((call for call in list(self._calls) if fits(call)), most))

    def __iter__(self) -> Iterator[CallEvent]:
        return iter(list(self._calls))
