"""A plan in the making: the values that files are to have, and in the end the fewest edits that lead there."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from truename.clients.carrying import with_text
from truename.clients.plan import Change, Step
from truename.editing import edited, edits, left_alone, reached, replayed, same
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from truename.clients.kept import KeptName
    from truename.editing import Document, KeyPath

__all__ = ["Draft"]


class Draft:
    """The files of one plan. What is put under one path adds up; nothing is written."""

    def __init__(self) -> None:
        self._documents: dict[Path, Document] = {}
        self._values: dict[Path, Any] = {}
        self._changes: defaultdict[Path, list[Change]] = defaultdict(list)
        self._entries: defaultdict[Path, list[KeyPath]] = defaultdict(list)

    def value(self, document: Document, where: KeyPath) -> Any:
        """Return what is to be at a place, as far as is known by now; `ABSENT` for nothing."""
        return reached(self._values.get(document.path, document.value), where)

    def enter(self, document: Document, where: KeyPath, key: str, entry: Any, change: Change) -> None:
        """Have a server's entry at a place, or `ABSENT`: none. Raises `ConfigError` where there can be none."""
        # By its key, also in a list: places in lists move.
        self._entries[document.path].append((*where[:-1], key))
        self.put(document, where, entry, change)

    def put(self, document: Document, where: KeyPath, value: Any, change: Change | None = None) -> None:
        """Have a value at a place, or `ABSENT`: nothing. Raises `ConfigError` where there can be none."""
        try:
            wanted = replayed(self._value(document), [(where, value)])
        except TypeError as error:
            problem = f"what stands above {excerpt(str(where[-1]))} is no object and no list"
            raise left_alone(document.path, problem, "Nothing was changed; mend the file by hand.") from error
        self._set(document, wanted, change)

    def respell(self, document: Document, kept: KeptName, texts: Sequence[str], change: Change) -> None:
        """Have other texts in place of a name. Raises `ValueError` where that can't be."""
        self._set(document, with_text(self._value(document), kept, texts), change)

    def steps(self) -> Iterator[Step]:
        """Yield what is to be done, file by file; nothing for files that say it already. Raises `ConfigError`."""
        for path, document in self._documents.items():
            wanted = self._values[path]
            if same(document.value, wanted):
                continue
            after = edited(document, wanted)
            yield Step(
                path=path,
                before=document,
                after=after.raw,
                changes=tuple(self._changes[path]),
                edits=tuple(edits(document.value, wanted)),
                entries=tuple(self._entries[path]),
            )

    def _value(self, document: Document) -> Any:
        return self._values.get(document.path, document.value)

    def _set(self, document: Document, value: Any, change: Change | None) -> None:
        self._documents.setdefault(document.path, document)
        self._values[document.path] = value
        if change is not None:
            self._changes[document.path].append(change)
