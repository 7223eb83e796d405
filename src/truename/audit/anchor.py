"""The anchor: how far a journal went, kept outside of its directory, so that an older copy of all of it is missed.

What is in the journal's directory can be put back as it once was, head and all. The anchor stands in the user's state
directory, and one that an operator keeps elsewhere (`truename audit anchor`) finds a journal and a state that were both
put back.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from truename.audit.chain import GENESIS, Spoiled
from truename.audit.ends import end_near
from truename.audit.head import Head, HeadFile, read_heads
from truename.files.private import make_private, state_directory

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from truename.audit.ends import Segment, Tail

__all__ = ["Anchor", "AnchorFile", "anchor_file"]

_log: Final = logging.getLogger("truename.audit")
_WRITTEN: Final = re.compile(r"(0|[1-9][0-9]{0,18}):([0-9a-f]{64})")


class Anchor(NamedTuple):
    """The number and hash of a record that a journal has to have."""

    number: int
    hash: str

    def __str__(self) -> str:
        return f"{self.number}:{self.hash}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the anchor of a text. Raises `ValueError`.

        >>> Anchor.parse(f"12:{'ab' * 32}").number
        12
        """
        found = _WRITTEN.fullmatch(text)
        if found is None or (int(found[1]) == 0) is not (found[2] == GENESIS):
            message = "it is no NUMBER:HASH of a record"
            raise ValueError(message)
        return cls(int(found[1]), found[2])


def anchor_file(journal: Path) -> Path:
    """Return where the anchor of a journal is kept; the file need not exist.

    It goes by the path as it is spelled: a link that comes to lead to an older copy is the same journal.
    """
    directory = Path(os.path.abspath(journal))  # noqa: PTH100 - links are not followed
    digest = hashlib.sha256(str(directory).encode("utf-8", "surrogateescape")).hexdigest()[:32]
    stem = "".join(character if character.isalnum() else "-" for character in directory.name)[:40]
    return state_directory() / "audit" / f"{stem}-{digest}.anchor"


class AnchorFile:
    """The anchor of one journal, as its writers keep it. Not for two threads at once.

    It is written after the records are on the disk, and not forced there itself: after a power cut it may be older than
    its journal, and never newer. One that can't be written is told once, and keeps no record from being written.
    """

    def __init__(self, path: Path, key: bytes | None) -> None:
        self.path = path
        self._key = key
        self._file: HeadFile | None = None
        self._is_told = False

    def read(self) -> Head | None:
        """Return the anchor; None if none was ever kept. Raises `Spoiled` for one that is damaged."""
        try:
            there = self.path.lstat()
            if stat.S_ISREG(there.st_mode) and not there.st_size:
                return None
        except OSError:
            return None
        found = read_heads(self.path.parent, self._key, self.path.name).newest
        if found is None:
            message = f"its anchor {self.path} is damaged, or was made with another key"
            raise Spoiled(message)
        return found

    def check(self, found: Sequence[Segment], tail: Tail) -> None:
        """Raise `Spoiled` where a journal that ends so does not have the record of its anchor."""
        anchor = self.read()
        if anchor is None or (anchor.number, anchor.hash) in {(tail.number, tail.hash), *tail.seen}:
            return
        try:
            end_near(found, anchor, self._key)
        except Spoiled as error:
            message = (
                f"record {anchor.number:,} was written, and is gone or another one: records were cut off, or an older "
                f"copy or another journal put in its place (if that was meant, remove {self.path})"
            )
            raise Spoiled(message) from error

    def keep(self, head: Head) -> None:
        """Write down that a journal went so far."""
        try:
            if self._file is not None and not self._file.is_there():
                self.close()
            if self._file is None:
                make_private(self.path.parent)
                self._file = HeadFile(self.path.parent, self._key, self.path.name, is_synced=False)
            if self._file.is_empty:
                self._begin(self._file, head)
            else:
                self._file.write(head)
        except OSError as error:
            self.close()
            if not self._is_told:
                self._is_told = True
                _log.warning("the anchor %s can't be written: %s", self.path, error.strerror or error)

    def _begin(self, file: HeadFile, head: Head) -> None:
        try:
            file.begin(head)
        except OSError:
            # Half of one would be taken for one that somebody damaged.
            self.path.unlink(missing_ok=True)
            raise

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._file = None
