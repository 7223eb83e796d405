"""A plan: what would be changed in a client's files and why, as values. Making one changes nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truename.editing import ABSENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from truename.editing import Document, KeyPath

__all__ = ["Change", "Note", "Plan", "Step", "from_plain", "plain"]


@dataclass(frozen=True, kw_only=True)
class Change:
    """One thing in a file that becomes another: ``old`` and ``new`` are short texts for people ("" for nothing)."""

    where: KeyPath
    what: str
    old: str = ""
    new: str = ""


@dataclass(frozen=True, kw_only=True)
class Note:
    """Something that whoever reads the plan has to know: a sentence of fact, one of what to do, and what it is about.

    ``kind`` is ``left`` (a server that stays as it is), ``names`` (a name that was not carried over), ``token``,
    ``file`` (a file that can't be used) or ``info``.
    """

    kind: str
    subject: str
    fact: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One file: as it was read (an empty one is not there), its new bytes (None: it is to go), and what that changes.

    ``edits`` are the same changes as places and values, and ``entries`` the places of servers among them: kept with
    the backup, so that they can be undone singly.
    """

    path: Path
    before: Document
    after: bytes | None
    changes: tuple[Change, ...] = ()
    edits: tuple[tuple[KeyPath, Any], ...] = field(default=(), repr=False)
    entries: tuple[KeyPath, ...] = ()

    @property
    def raw(self) -> bytes | None:
        """The bytes that the file has now; None if it is not there."""
        return self.before.raw if self.before.exists else None


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What `connect` or `disconnect` would do for one client.

    ``joined`` are those of the ``servers`` that get one entry together, ``upstreams`` what the gateway calls them all;
    ``already`` are the entries that lead to the gateway; ``secrets`` are texts that must not be shown.
    """

    client: str
    title: str
    steps: tuple[Step, ...] = ()
    notes: tuple[Note, ...] = ()
    servers: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    upstreams: tuple[str, ...] = ()
    already: tuple[str, ...] = ()
    reload: str = ""
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def plain(edits: Iterable[tuple[KeyPath, Any]]) -> list[dict[str, Any]]:
    """Return edits as JSON can keep them."""
    return [
        {"where": list(where)} | ({} if value is ABSENT else {"value": value}) for where, value in edits
    ]  # fmt: skip


def from_plain(kept: Sequence[Mapping[str, Any]]) -> list[tuple[KeyPath, Any]]:
    """Return edits from what `plain` made. Raises `KeyError` and `TypeError` for anything else."""
    return [(tuple(one["where"]), one.get("value", ABSENT)) for one in kept]
