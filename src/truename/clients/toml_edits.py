"""Edits of a TOML text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from truename.clients.toml_scan import Statement, container

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.clients.spans import Reading, Splice, Where

__all__ = ["drop", "offset", "put"]


def offset(reading: Reading, where: Where) -> int:
    """Return where a key or item starts, or the nearest thing above it that is there."""
    statements: tuple[Statement, ...] = reading.tree
    for length in range(len(where), 0, -1):
        part = where[:length]
        for statement in statements:
            if statement.path[:length] == part:
                return statement.start
            if statement.kind == "pair" and statement.path == part[: len(statement.path)]:
                return _inside(reading.text, statement, where[len(statement.path) :])
    return 0


def _inside(text: str, statement: Statement, rest: Where) -> int:
    at, value = statement.start, statement.value
    for step in rest:
        box = container(text, value)
        entry = next((entry for entry in box.entries if entry.key == step), None) if box else None
        if entry is None:
            return at
        at, value = entry.start, entry.value
    return at


def put(reading: Reading, where: Where, value: Any) -> Iterator[Sequence[Splice]]:
    """Propose edits that set a value."""
    yield []


def drop(reading: Reading, where: Where) -> Iterator[Sequence[Splice]]:
    """Propose edits that remove one."""
    yield []
