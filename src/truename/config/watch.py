"""Watch files for changes by their stamps, and read them only while nobody writes them."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from truename.config.model import Config

__all__ = ["Reread", "Watch"]

Loaded = TypeVar("Loaded")


@dataclass(frozen=True)
class Reread:
    """A way to read a configuration again; ``watched`` are other files that decide whether it may be used."""

    read: Callable[[], Config]
    watched: tuple[Path, ...] = ()


class _Stamp(NamedTuple):
    modified: int
    size: int
    inode: int


class Watch:
    """Watches files that others write, by looking at them now and then; ``files`` returns their paths.

    A missing file, or one that is not regular (a pipe), has no stamp.
    """

    def __init__(self, files: Callable[[], Iterable[Path]]) -> None:
        self._files = files
        self._taken = self._seen = self._stamps()

    def look(self) -> bool:
        """Return whether the files have changed since they were read, and have not changed since the previous look.

        Then nobody is writing them.
        """
        now = self._stamps()
        is_settled, self._seen = now == self._seen, now
        return is_settled and now != self._taken

    def read(self, load: Callable[[], Loaded]) -> Loaded | None:
        """Return the result of ``load``; None if the files changed meanwhile.

        Raises the errors of ``load``, if the files did not change. Files that were read count as seen, with or without
        errors.
        """
        before = self._stamps()
        try:
            loaded = load()
        except Exception:
            if self._stamps() != before:
                return None
            self._taken = self._seen = before
            raise
        if self._stamps() != before:
            return None
        self._taken = self._seen = before
        return loaded

    def _stamps(self) -> dict[Path, _Stamp | None]:
        return {path: _stamp(path) for path in self._files()}


def _stamp(path: Path) -> _Stamp | None:
    try:
        found = path.stat()
    except (OSError, ValueError):
        return None
    return _Stamp(found.st_mtime_ns, found.st_size, found.st_ino) if stat.S_ISREG(found.st_mode) else None
