"""Reading files of rows, of either shape; whatever cannot be read becomes a row that says so."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["AGENTS", "SEEDS", "Row", "Unreadable", "read", "rows_of"]

SEEDS = "seeds"
AGENTS = "agents"


class Unreadable(Exception):
    """A file holds no rows; the text says why."""


@dataclass(frozen=True)
class Row:
    """One row: ``shape`` tells the two vocabularies of ops apart; ``fault`` is why it cannot be executed."""

    id: str
    op: str
    given: Mapping[str, Any]
    expect: Mapping[str, Any]
    shape: str = SEEDS
    fault: str = ""


def read(path: Path) -> list[Row]:
    """Return the rows of a file. Raises `Unreadable`."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise Unreadable(f"it cannot be read ({type(error).__name__}: {error})") from error
    return rows_of(content)


def rows_of(content: object) -> list[Row]:
    """Return the rows of a file's content: a list of rows, or an object with ``vectors``. Raises `Unreadable`."""
    if isinstance(content, Mapping) and isinstance(content.get("vectors"), list):
        return [_row(item, AGENTS, n) for n, item in enumerate(content["vectors"], 1)]
    if isinstance(content, list):
        return [_row(item, SEEDS, n) for n, item in enumerate(content, 1)]
    raise Unreadable('it holds neither a list of rows nor an object with "vectors"')


def _row(item: object, shape: str, number: int) -> Row:
    if not isinstance(item, Mapping):
        return Row(f"row {number}", "?", {}, {}, shape, "it is not an object")
    id, given, expect = item.get("id"), item.get("given"), item.get("expect")
    name = id if isinstance(id, str) and id else f"row {number}"
    if not isinstance(given, Mapping) or not isinstance(expect, Mapping):
        return Row(name, "?", {}, {}, shape, "given and expect have to be objects")
    op = item.get("op") if shape == AGENTS else given.get("op")
    if not isinstance(op, str):
        return Row(name, "?", {}, {}, shape, "it names no op")
    return Row(name, op, given, expect, shape, "" if expect else "it expects nothing")
