"""Pages of a list: one holds all of it, unless that would be more than clients accept in one message."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from operator import attrgetter
from typing import Any, Final, Self

import msgspec

from truename.cache import LRUCache
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import as_json
from truename.gateway.protocol.specification import INVALID_PARAMS

__all__ = ["Pages", "WrittenItem"]

# The official Python client refuses events of over 1 MiB, and answers of the handshake eras come as events.
_PAGE_BYTES: Final = 768 * 1024
_CURSOR: Final = "page-"
# Pages that are kept whole, those asked for last: about 24 MB at most. To join one anew from thousands of short texts
# takes as long as to write it from dictionaries.
_MOST_JOINED: Final = 32
_JOINED: Final[LRUCache[tuple[object, int], bytes]] = LRUCache(_MOST_JOINED)

Item = Mapping[str, Any]


class WrittenItem(dict[str, Any]):
    """An item that is written as JSON once, in however many lists it stands; it must not be changed then.

    >>> WrittenItem({"name": "a"}).json
    b'{"name":"a"}'
    """

    __slots__ = ("_json",)

    _json: bytes

    def written(self) -> Self:
        """Return the item when it is written: a list of items that all are is cut much faster."""
        self._json = self.json
        return self

    @property
    def json(self) -> bytes:
        """The item as JSON."""
        try:
            return self._json
        except AttributeError:
            self._json = found = _as_json(self)
            return found


_WRITTEN: Final = attrgetter("_json")


def _written(item: Item) -> bytes:
    return item.json if isinstance(item, WrittenItem) else _as_json(item)


def _as_json(item: Item) -> bytes:
    try:
        return as_json(item)
    except ValueError:
        # Half of a character: written as an escape, it harms who reads it and nobody else.
        return json.dumps(item).encode()


class Pages:
    """A list in pages, cut once.

    >>> Pages([{"name": "a"}, {"name": "b"}]).page_json(None)
    (b'[{"name":"a"},{"name":"b"}]', None)
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        # Not the list itself, which would be kept as long as its pages.
        self._key = object()

    def prepare(self) -> None:
        """Cut the pages now; else the first that is asked for cuts them, which writes all items."""
        self._starts  # noqa: B018 - it is made at first use

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        # Where each item ends, counted from the first; a page has one item at least.
        try:
            # Nearly all are written already, of a list of which little changed.
            written = list(map(_WRITTEN, self._items))
        except AttributeError:
            written = [_written(item) for item in self._items]
        ends = list(accumulate(map(len, written)))
        starts, begun = [0], 0
        while ends and ends[-1] - begun > _PAGE_BYTES:
            following = max(bisect_right(ends, begun + _PAGE_BYTES), starts[-1] + 1)
            if following >= len(ends):
                break
            starts.append(following)
            begun = ends[following - 1]
        return tuple(starts)

    def page_json(self, cursor: str | None) -> tuple[bytes, str | None]:
        """Return a page as a JSON array, and the cursor of the next one.

        Raises `ValueError` for a cursor that is none of ours.
        """
        number = 0 if cursor is None else int(cursor.removeprefix(_CURSOR))
        if number < 0 or (cursor is not None and cursor != f"{_CURSOR}{number}") or number >= len(self._starts):
            raise ValueError(cursor)
        following = f"{_CURSOR}{number + 1}" if number + 1 < len(self._starts) else None
        return self._joined(number), following

    def page(self, field: str, cursor: str | None) -> dict[str, Any]:
        """Return a page as a result, with the list in this field. Raises `MCPError` for an unknown cursor."""
        try:
            text, following = self.page_json(cursor)
        except ValueError as error:
            raise MCPError(INVALID_PARAMS, "Unknown cursor. List again without one.") from error
        items = msgspec.Raw(text)
        return {field: items} if following is None else {field: items, "nextCursor": following}

    def _joined(self, number: int) -> bytes:
        if (found := _JOINED.get((self._key, number))) is None:
            bounds = (*self._starts, len(self._items))
            items = self._items[bounds[number] : bounds[number + 1]]
            found = _JOINED[self._key, number] = b"[%b]" % b",".join(map(_written, items))
        return found
