"""Keep what is shown of servers' lists of skills: for as many names and addresses as fit into a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

import anyio

if TYPE_CHECKING:
    from truename.gateway.protocol.definitions import Definition
    from truename.gateway.protocol.pages import WrittenItem

__all__ = ["RETRY_AFTER", "SkillListCache", "SkillListKey"]

RETRY_AFTER: Final = 60.0
"""Seconds for which lists do without files that timed out: to read them delays the skills of all servers."""


class SkillListKey(NamedTuple):
    """A server's key, the names that are shown (`SkillNames.key`), and whether URIs are the server's own."""

    server: str
    names: str
    is_alone: bool


class _ShownList(NamedTuple):
    skills: tuple[Definition, ...]
    shown: list[WrittenItem]
    timed_out_at: float | None

    @property
    def size(self) -> int:
        return sum(len(one.json) for one in self.shown)


class SkillListCache:
    """At most ``max_bytes`` of JSON: what was used longest ago makes room. It belongs to one event loop."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._lists: OrderedDict[SkillListKey, _ShownList] = OrderedDict()

    def get(self, key: SkillListKey, skills: tuple[Definition, ...]) -> list[WrittenItem] | None:
        """Return what is shown of this list of the server; None for another list, or one to be tried again."""
        known = self._lists.get(key)
        if known is None or known.skills is not skills:
            return None
        if known.timed_out_at is not None and anyio.current_time() >= known.timed_out_at + RETRY_AFTER:
            return None
        self._lists.move_to_end(key)
        return known.shown

    def put(
        self, key: SkillListKey, skills: tuple[Definition, ...], shown: list[WrittenItem], *, has_timed_out: bool
    ) -> None:
        """Keep what is shown of a list; without what timed out just now, for a minute."""
        if (before := self._lists.pop(key, None)) is not None:
            self._bytes -= before.size
        made = _ShownList(skills, shown, anyio.current_time() if has_timed_out else None)
        self._lists[key] = made
        self._bytes += made.size
        while self._bytes > self._max_bytes:
            _, oldest = self._lists.popitem(last=False)
            self._bytes -= oldest.size
