"""The head: how far a journal went, kept outside of it, so that records taken off its end are missed."""

from __future__ import annotations

import hmac
import json
import os
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.audit.canonical import canonical
from truename.audit.chain import sum_of
from truename.files.durable import read_own, sync_directory, write_new

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["HEAD", "Head", "read_head", "write_head"]

HEAD: Final = "head.json"
_LONGEST: Final = 4_096


class Head(NamedTuple):
    """A journal's id, and the number and hash of a record that it has: the last one, or one before a kill."""

    journal: str
    number: int
    hash: str


def read_head(path: Path, key: bytes | None) -> Head | None:
    """Return the head of a journal; None for none, or one that is damaged or of another key."""
    try:
        raw = read_own(path / HEAD, _LONGEST)
        plain = json.loads(raw)
        head = Head(*(plain[name] for name in Head._fields))
        # It has exactly one form, as the records have.
        is_whole = hmac.compare_digest(raw, _written(head, key))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return head if is_whole and type(head.number) is int else None


def write_head(path: Path, head: Head, key: bytes | None) -> None:
    """Put a head in the place of the last one, whole, down to the disk. Raises `OSError`."""
    draft = path / f".{HEAD}.draft"
    written = _written(head, key)
    try:
        write_new(draft, written)
    except FileExistsError:
        # One that a killed process left.
        draft.unlink()
        write_new(draft, written)
    os.replace(draft, path / HEAD)  # noqa: PTH105 - the one step that makes the change
    sync_directory(path)


def _written(head: Head, key: bytes | None) -> bytes:
    said = head._asdict()
    return canonical({**said, "sum": sum_of(canonical(said), key)}) + b"\n"
