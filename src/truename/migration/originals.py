"""What files held before a migration, and how far it got: kept in the user's state directory until it is undone.

One migration is a directory: ``originals`` with the bytes of all files one after the other, ``journal.json`` with what
was to be done. The journal comes before the first change, so a run that was killed is found and taken back.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.errors import ConfigError
from truename.files import read_own, sync_directory, write_new
from truename.files.private import make_private

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.migration.look import Change

__all__ = ["Entry", "Originals", "begin", "digest", "kept", "sweep"]

Status = Literal["begun", "done", "undone", "back"]

_FORMAT: Final = 1
_JOURNAL: Final = "journal.json"
_ORIGINALS: Final = "originals"
_MAX_JOURNAL: Final = 1 << 28
_MAX_ORIGINALS: Final = 1 << 34
_KEPT: Final = 50
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One file: its paths and digests before and after (None: no file), and where its bytes stand in ``originals``."""

    path: str
    target: str
    before: str | None
    after: str | None
    offset: int = 0
    length: int = 0


@dataclass(frozen=True, kw_only=True)
class Originals:
    """One migration: where it is kept, where it was made (``root``), how far it got, and which files it was about.

    ``status`` is ``begun`` (perhaps killed), ``done``, ``undone``, or ``back`` for one that undid another. ``made``
    are directories that it made, outermost first; ``note`` is whatever whoever made it wants to find again.
    """

    directory: Path
    root: str
    time: str
    status: Status
    entries: tuple[Entry, ...]
    made: tuple[str, ...] = ()
    note: Any = None

    @property
    def mark(self) -> str:
        """What the names of its files beside others have in them."""
        return self.directory.name[-8:]

    def bytes_of(self, entry: Entry) -> bytes | None:
        """Return what a file held. Raises `ConfigError` if it is not what was saved."""
        if entry.before is None:
            return None
        path = self.directory / _ORIGINALS
        try:
            with path.open("rb") as stream:
                stream.seek(entry.offset)
                raw = stream.read(entry.length)
        except OSError as error:
            raise _damaged(path, f"it can't be read ({error.strerror or error})") from error
        if digest(raw) != entry.before:
            raise _damaged(path, "it is not what was saved")
        return raw

    def with_status(self, status: Status) -> Originals:
        """Write down how far it got. Raises `OSError`."""
        changed = replace(self, status=status)
        new = self.directory / f"{_JOURNAL}.{secrets.token_hex(4)}"
        write_new(new, _plain(changed))
        new.replace(self.directory / _JOURNAL)
        sync_directory(self.directory)
        return changed

    def discard(self) -> None:
        """Forget a migration of which nothing was done."""
        shutil.rmtree(self.directory, ignore_errors=True)


def _plain(originals: Originals) -> bytes:
    record = {"format": _FORMAT, **asdict(originals), "directory": originals.directory.name}
    return json.dumps(record, indent=1).encode()


def digest(raw: bytes) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(raw).hexdigest()


def begin(state: Path, changes: Sequence[Change], *, made: Sequence[Path] = (), note: Any = None) -> Originals:
    """Write down what is about to be changed, down to the disk. Raises `OSError`; then nothing is kept."""
    now = datetime.now(UTC)
    directory = state / f"{now.strftime(_STAMP)}-{secrets.token_hex(4)}"
    make_private(state)
    directory.mkdir(mode=0o700)
    entries: list[Entry] = []
    try:
        with os.fdopen(os.open(directory / _ORIGINALS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            for change in changes:
                entries.append(_entry(change, stream.tell()))
                stream.write(change.before or b"")
            stream.flush()
            os.fsync(stream.fileno())
        started = Originals(
            directory=directory,
            root=str(Path.cwd()),
            time=now.isoformat(timespec="seconds"),
            status="begun",
            entries=tuple(entries),
            made=tuple(map(str, made)),
            note=note,
        )
        begun = started.with_status("begun")
        sync_directory(state)
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        raise
    _forget(state)
    return begun


def _entry(change: Change, offset: int) -> Entry:
    return Entry(
        path=str(change.path),
        target=str(change.target),
        before=None if change.before is None else digest(change.before),
        after=None if change.after is None else digest(change.after),
        offset=offset,
        length=len(change.before or b""),
    )


def kept(state: Path) -> tuple[Originals, ...]:
    """Return the migrations on record, the newest first; what is no whole record is passed over."""
    try:
        directories = sorted((path for path in state.iterdir() if path.is_dir()), reverse=True)
    except OSError:
        return ()
    return tuple(found for directory in directories if (found := _read(directory)) is not None)


def sweep(state: Path) -> None:
    """Remove what a run left that was killed before its journal was written: nothing was changed then."""
    for path in state.iterdir():
        if path.is_dir() and not (path / _JOURNAL).exists():
            shutil.rmtree(path, ignore_errors=True)


def _read(directory: Path) -> Originals | None:
    try:
        plain = json.loads(read_own(directory / _JOURNAL, _MAX_JOURNAL))
        if plain.pop("format") != _FORMAT:
            return None
        entries = tuple(Entry(**entry) for entry in plain.pop("entries"))
        made = tuple(plain.pop("made"))
        return Originals(**{**plain, "directory": directory, "entries": entries, "made": made})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _forget(state: Path) -> None:
    """Keep the last ones: more than that nobody takes back."""
    for old in kept(state)[_KEPT:]:
        if old.status != "begun":
            old.discard()


def _damaged(path: Path, problem: str) -> ConfigError:
    remedy = "Restore the files from version control."
    return ConfigError(code="left_alone", file=str(path), key="", problem=problem, remedy=remedy)
