"""Edits of a YAML text: whole lines in block style, what is between brackets in flow style."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.clients.spans import Splice, Where
    from truename.clients.yaml_nodes import Node

__all__ = ["drop", "offset", "put"]


def offset(root: Node | None, where: Where) -> int:
    """Return where a key or item starts, or the nearest thing above it that is there."""
    at, node = (root.start if root else 0), root
    for step in where:
        pair = node.child(step) if node else None
        if pair is None:
            return at
        at, node = pair.start, pair.node
    return at


def put(text: str, root: Node | None, where: Where, value: Any) -> Iterator[Sequence[Splice]]:
    """Propose edits that set a value."""
    yield []


def drop(text: str, root: Node | None, where: Where) -> Iterator[Sequence[Splice]]:
    """Propose edits that remove one."""
    yield []
