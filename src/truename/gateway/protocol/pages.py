"""Pages of a list: one holds all of it, unless that would be more than clients accept in one message."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

__all__ = ["Pages"]

# The official Python client refuses events of over 1 MiB, and answers of the handshake eras come as events.
_PAGE_BYTES: Final = 768 * 1024
_CURSOR: Final = "page-"

Item = Mapping[str, Any]


class Pages:
    """A list in pages, cut once.

    >>> Pages([{"name": "a"}]).page(None)
    ([{'name': 'a'}], None)
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        starts, size = [0], 0
        for index, item in enumerate(self._items):
            length = len(json.dumps(item))
            if size and size + length > _PAGE_BYTES:
                starts.append(index)
                size = 0
            size += length
        return tuple(starts)

    def page(self, cursor: str | None) -> tuple[list[Item], str | None]:
        """Return a page and the cursor of the next one. Raises `ValueError` for a cursor that is none of ours."""
        number = 0 if cursor is None else int(cursor.removeprefix(_CURSOR))
        if number < 0 or (cursor is not None and cursor != f"{_CURSOR}{number}") or number >= len(self._starts):
            raise ValueError(cursor)
        bounds = (*self._starts, len(self._items))
        following = f"{_CURSOR}{number + 1}" if number + 1 < len(self._starts) else None
        return list(self._items[bounds[number] : bounds[number + 1]]), following
