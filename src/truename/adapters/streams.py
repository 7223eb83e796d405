"""Streams: the pieces of calls are gathered until the whole is there; what is not finished is never a call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from truename.adapters.reading import Place, plain
from truename.errors import InvalidCall
from truename.policy.arguments import MAX_ARGUMENTS

__all__ = ["Fragments", "whole"]

_MAX_CALLS: Final = 1_000


def whole(answer: object, assembled: Callable[[Iterable[Any]], dict[str, Any]]) -> Any:
    """Return an answer as it is, as plain objects, or the one that a stream's events add up to."""
    if isinstance(answer, Mapping) or hasattr(answer, "model_dump"):
        return plain(answer)
    if isinstance(answer, Iterable) and not isinstance(answer, str | bytes):
        return assembled(answer)
    raise InvalidCall(field="the answer", problem=f"is of type {type(answer).__name__}, not an answer or a stream")


class Fragments:
    """The pieces of the calls of one stream, by their place in it."""

    def __init__(self) -> None:
        self._fixed: dict[int, dict[str, Any]] = {}
        self._texts: dict[int, list[str]] = {}
        self._size = 0
        self._open: set[int] = set()

    def begin(self, place: int, piece: Place) -> None:
        """Open a call that has to be closed. Raises `InvalidCall` if it was begun before."""
        if place in self._fixed:
            piece.wrong("", "begins a call that was begun before")
        self._open.add(place)
        self._at(place, piece)

    def close(self, place: int) -> None:
        """Note that a call is complete."""
        self._open.discard(place)

    def fix(self, place: int, piece: Place, *names: str) -> None:
        """Keep texts that are said once. Raises `InvalidCall` if one is said again and differs."""
        kept = self._at(place, piece)
        for name in names:
            found = piece.optional(name)
            if found and kept.setdefault(name, found) != found:
                piece.wrong(name, "changes within one call")

    def add(self, place: int, text: str) -> None:
        """Add a piece of the arguments. Raises `InvalidCall` for a call that never began, or far too much text."""
        if place not in self._texts:
            raise InvalidCall(field="arguments", problem=f"come for call {place}, which never began")
        self._size += len(text)
        if self._size > 4 * MAX_ARGUMENTS:
            raise InvalidCall(field="arguments", problem=f"have more than {4 * MAX_ARGUMENTS:,} characters")
        self._texts[place].append(text)

    def __contains__(self, place: int) -> bool:
        return place in self._fixed

    def check(self, where: str, *, finished: bool) -> bool:
        """Refuse a stream that ended before its calls did."""
        if self._open or (self._fixed and not finished):
            raise InvalidCall(field=where, problem="is not finished: the stream ended within a call")
        return True

    def joined(self) -> list[tuple[int, dict[str, Any], str]]:
        """Return the place of each call in order, what was said once, and the joined arguments."""
        return [(place, self._fixed[place], "".join(self._texts[place])) for place in sorted(self._fixed)]

    def _at(self, place: int, piece: Place) -> dict[str, Any]:
        if place not in self._fixed and len(self._fixed) >= _MAX_CALLS:
            piece.wrong("", f"is call number {_MAX_CALLS + 1:,} in one answer")
        self._texts.setdefault(place, [])
        return self._fixed.setdefault(place, {})
