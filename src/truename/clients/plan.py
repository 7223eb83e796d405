"""Values that describe planned changes of a client's files. Planning changes nothing."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truename.clients.name_translation import replace_name
from truename.editing import ABSENT, apply_edits, cannot_edit, edit, find_edits, is_same_value, value_at
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from truename.clients.kept_names import KeptName
    from truename.editing import Document, KeyPath

__all__ = ["ConnectionPlan", "FileChange", "PlanDraft", "PlanNote", "PlanStep", "from_plain", "plain"]


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One change in a file; ``old`` and ``new`` are short descriptions ("" if added or removed)."""

    where: KeyPath
    what: str
    old: str = ""
    new: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanNote:
    """A note for the reader of a plan: a fact, advice, and the server, name or file that it is about.

    ``kind`` is ``left`` (a server that was left unchanged), ``names`` (a tool name that was not replaced), ``token``,
    ``file`` (a file that cannot be used), ``crowded`` (too many tools) or ``info``.
    """

    kind: str
    subject: str
    fact: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """The change of one file: its document before, its new bytes (None: the file is deleted), and a description.

    ``edits`` are the changes as paths and values, ``entries`` the paths of server entries among them; both are stored
    with the backup, so that each can be reverted by itself.
    """

    path: Path
    before: Document
    after: bytes | None
    changes: tuple[FileChange, ...] = ()
    edits: tuple[tuple[KeyPath, object], ...] = field(default=(), repr=False)
    entries: tuple[KeyPath, ...] = ()

    @property
    def raw(self) -> bytes | None:
        """The current bytes of the file; None if it does not exist."""
        return self.before.raw if self.before.exists else None


@dataclass(frozen=True, kw_only=True)
class ConnectionPlan:
    """A plan of `connect` for one client.

    ``servers`` are the keys that will point at the gateway, ``joined`` those among them that share one entry,
    ``upstreams`` the keys of the ``servers`` at the gateway; ``already`` the keys of entries that point at the gateway
    already. ``secrets`` are texts to mask in output.
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


def plain(edits: Iterable[tuple[KeyPath, object]]) -> list[dict[str, object]]:
    """Convert edits to JSON values."""
    return [
        {"where": list(where)} | ({} if value is ABSENT else {"value": value}) for where, value in edits
    ]  # fmt: skip


def from_plain(kept: Sequence[Mapping[str, Any]]) -> list[tuple[KeyPath, object]]:
    """Convert the result of `plain` back to edits. Raises `KeyError` and `TypeError` for anything else."""
    return [(tuple(one["where"]), one.get("value", ABSENT)) for one in kept]


class PlanDraft:
    """A draft of a plan: collects changes by file, without writing anything."""

    def __init__(self) -> None:
        self._documents: dict[Path, Document] = {}
        self._values: dict[Path, object] = {}
        self._changes: defaultdict[Path, list[FileChange]] = defaultdict(list)
        self._entries: defaultdict[Path, list[KeyPath]] = defaultdict(list)

    def value(self, document: Document, where: KeyPath) -> Any:
        """Return the planned value at a path, or `ABSENT`."""
        return value_at(self._values.get(document.path, document.value), where)

    def enter(self, document: Document, where: KeyPath, key: str, entry: object, change: FileChange) -> None:
        """Set a server's entry, or remove it with `ABSENT`. Raises `ConfigError` if the path cannot hold one."""
        # By key even in a list, since indexes change.
        self._entries[document.path].append((*where[:-1], key))
        self.put(document, where, entry, change)

    def put(self, document: Document, where: KeyPath, value: object, change: FileChange | None = None) -> None:
        """Set a value, or remove it with `ABSENT`. Raises `ConfigError` if the path cannot hold one."""
        try:
            wanted = apply_edits(self._value(document), [(where, value)])
        except TypeError as error:
            problem = f"the parent of {excerpt(str(where[-1]))} is neither an object nor a list"
            raise cannot_edit(document.path, problem, "Nothing was changed; fix the file by hand.") from error
        self._set(document, wanted, change)

    def respell(self, document: Document, kept: KeptName, texts: Sequence[str], change: FileChange) -> None:
        """Replace a kept name by other texts. Raises `ValueError` if that is not possible."""
        self._set(document, replace_name(self._value(document), kept, texts), change)

    def steps(self) -> Iterator[PlanStep]:
        """Yield one step per file whose value changes. Raises `ConfigError`."""
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
                edits=tuple(find_edits(document.value, wanted)),
                entries=tuple(self._entries[path]),
            )

    def _value(self, document: Document) -> object:
        return self._values.get(document.path, document.value)

    def _set(self, document: Document, value: object, change: FileChange | None) -> None:
        self._documents.setdefault(document.path, document)
        self._values[document.path] = value
        if change is not None:
            self._changes[document.path].append(change)
