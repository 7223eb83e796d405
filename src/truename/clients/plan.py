"""Plan changes of a client's files as values, with their reasons. Planning changes nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truename.clients.carrying import with_text
from truename.editing import ABSENT, apply_edits, cannot_edit, edit, edits, is_same_value, value_at
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients.kept_names import KeptName
    from truename.editing import Document, KeyPath

__all__ = ["ConnectionPlan", "FileChange", "PlanDraft", "PlanNote", "PlanStep", "from_plain", "plain"]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One thing in a file that becomes another: ``old`` and ``new`` are short texts for people ("" for nothing)."""

    where: KeyPath
    what: str
    old: str = ""
    new: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanNote:
    """Something that whoever reads the plan has to know: a sentence of fact, one of what to do, and what it is about.

    ``kind`` is ``left`` (a server that stays as it is), ``names`` (a name that was not carried over), ``token``,
    ``file`` (a file that can't be used) or ``info``.
    """

    kind: str
    subject: str
    fact: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """One file: as it was read (an empty one is not there), its new bytes (None: it is to go), and what that changes.

    ``edits`` are the same changes as places and values, and ``entries`` the places of servers among them: kept with
    the backup, so that they can be undone singly.
    """

    path: Path
    before: Document
    after: bytes | None
    changes: tuple[FileChange, ...] = ()
    edits: tuple[tuple[KeyPath, Any], ...] = field(default=(), repr=False)
    entries: tuple[KeyPath, ...] = ()

    @property
    def raw(self) -> bytes | None:
        """The bytes that the file has now; None if it is not there."""
        return self.before.raw if self.before.exists else None


@dataclass(frozen=True, kw_only=True)
class ConnectionPlan:
    """What `connect` or `disconnect` would do for one client.

    ``joined`` are those of the ``servers`` that get one entry together, ``upstreams`` what the gateway calls them all;
    ``already`` are the entries that lead to the gateway; ``secrets`` are texts that must not be shown.
    """

    client: str
    title: str
    steps: tuple[PlanStep, ...] = ()
    notes: tuple[PlanNote, ...] = ()
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


class PlanDraft:
    """The files of one plan. What is put under one path adds up; nothing is written."""

    def __init__(self) -> None:
        self._documents: dict[Path, Document] = {}
        self._values: dict[Path, Any] = {}
        self._changes: defaultdict[Path, list[FileChange]] = defaultdict(list)
        self._entries: defaultdict[Path, list[KeyPath]] = defaultdict(list)

    def value(self, document: Document, where: KeyPath) -> Any:
        """Return what is to be at a place, as far as is known by now; `ABSENT` for nothing."""
        return value_at(self._values.get(document.path, document.value), where)

    def enter(self, document: Document, where: KeyPath, key: str, entry: Any, change: FileChange) -> None:
        """Have a server's entry at a place, or `ABSENT`: none. Raises `ConfigError` where there can be none."""
        # By its key, also in a list: places in lists move.
        self._entries[document.path].append((*where[:-1], key))
        self.put(document, where, entry, change)

    def put(self, document: Document, where: KeyPath, value: Any, change: FileChange | None = None) -> None:
        """Have a value at a place, or `ABSENT`: nothing. Raises `ConfigError` where there can be none."""
        try:
            wanted = apply_edits(self._value(document), [(where, value)])
        except TypeError as error:
            problem = f"what stands above {excerpt(str(where[-1]))} is no object and no list"
            raise cannot_edit(document.path, problem, "Nothing was changed; mend the file by hand.") from error
        self._set(document, wanted, change)

    def respell(self, document: Document, kept: KeptName, texts: Sequence[str], change: FileChange) -> None:
        """Have other texts in place of a name. Raises `ValueError` where that can't be."""
        self._set(document, with_text(self._value(document), kept, texts), change)

    def steps(self) -> Iterator[PlanStep]:
        """Yield what is to be done, file by file; nothing for files that say it already. Raises `ConfigError`."""
        for path, document in self._documents.items():
            wanted = self._values[path]
            if is_same_value(document.value, wanted):
                continue
            after = edit(document, wanted)
            yield PlanStep(
                path=path,
                before=document,
                after=after.raw,
                changes=tuple(self._changes[path]),
                edits=tuple(edits(document.value, wanted)),
                entries=tuple(self._entries[path]),
            )

    def _value(self, document: Document) -> Any:
        return self._values.get(document.path, document.value)

    def _set(self, document: Document, value: Any, change: FileChange | None) -> None:
        self._documents.setdefault(document.path, document)
        self._values[document.path] = value
        if change is not None:
            self._changes[document.path].append(change)
