"""Replace a file atomically, after saving its content and a record of the change as a backup."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.editing.document import Document, cannot_edit
from truename.errors import ConfigError
from truename.files import absolute, copy_metadata, find_obstacle
from truename.files.private import make_private, read_own, state_directory, sync_directory, write_new

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "Backup",
    "UnreadBackup",
    "backups",
    "backups_directory",
    "check_file",
    "digest",
    "remove_file",
    "replace_file",
    "unread_backups",
]

_RECORD: Final = ".json"
_ORIGINAL: Final = ".original"
_FORMAT: Final = 1
_MAX_RECORD: Final = 1 << 26
_MAX_ORIGINAL: Final = 1 << 25
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """The record of one change of one file: client, time, action, and digests before and after (None: no file).

    ``made`` are the directories that the change created, outermost first; ``note`` is JSON that the caller wants to
    have back when it undoes the change.
    """

    record: Path
    client: str
    path: Path
    action: str
    time: str
    before: str | None
    after: str | None
    made: tuple[Path, ...] = ()
    note: Any = field(default=None, compare=False)

    @property
    def copy(self) -> Path:
        """The file with the original bytes; it exists only if the changed file existed."""
        return self.record.with_suffix(_ORIGINAL)

    def original(self) -> bytes | None:
        """Return the original bytes, None if there was no file. Raises `ConfigError` if the copy is damaged."""
        if self.before is None:
            return None
        try:
            raw = read_own(self.copy, _MAX_ORIGINAL)
        except OSError as error:
            raise _damaged(self.copy, f"it cannot be read ({error.strerror or error})") from error
        if digest(raw) != self.before:
            raise _damaged(self.copy, "its content does not match the recorded digest")
        return raw

    def discard(self) -> None:
        """Delete the record and the copy."""
        for path in (self.record, self.copy):
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)


def digest(raw: bytes) -> str:
    """Return the SHA-256 of a file's bytes in hex."""
    return hashlib.sha256(raw).hexdigest()


def backups_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Return the directory of backups: ``truename/backups`` in the user's state directory."""
    return state_directory(environ) / "backups"


def backups(
    environ: Mapping[str, str] | None = None, *, client: str | None = None, path: Path | None = None
) -> tuple[Backup, ...]:
    """Return the backups of a client or of a file, newest first; damaged records are skipped."""
    directory = backups_directory(environ)
    wanted = None if path is None else absolute(path)
    try:
        records = sorted(directory.glob(f"*{_RECORD}"), reverse=True)
    except OSError:
        return ()
    found = [backup for record in records if (backup := _read(record)) is not None]
    return tuple(
        backup
        for backup in sorted(found, key=lambda one: (one.time, one.record.name), reverse=True)
        if client in {None, backup.client} and wanted in {None, backup.path}
    )


class UnreadBackup(NamedTuple):
    """A record of a change that cannot be read; of which client only the name of its file tells.

    Without a client it is the whole directory that cannot be read.
    """

    client: str
    problem: ConfigError


def unread_backups(environ: Mapping[str, str] | None = None) -> tuple[UnreadBackup, ...]:
    """Return what `backups` skips: records that are damaged, of another version or of another user."""
    directory = backups_directory(environ)
    try:
        # `glob` passes over a directory that it may not list.
        records = sorted(path for path in directory.iterdir() if path.suffix == _RECORD)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    except OSError as error:
        problem = f"what was changed is recorded there, and it cannot be read ({error.strerror or error})"
        remedy = "Nothing was changed; make this user its owner."
        return (UnreadBackup("", ConfigError(file=str(directory), key="", problem=problem, remedy=remedy)),)
    return tuple(_unread(record) for record in records if _read(record) is None)


def _unread(record: Path) -> UnreadBackup:
    problem = "this record of a change is damaged, or belongs to another user"
    remedy = "Remove the entry of the gateway from the client's files by hand, then delete the record."
    client = record.stem.partition("-")[2].rpartition("-")[0]
    return UnreadBackup(client, ConfigError(file=str(record), key="", problem=problem, remedy=remedy))


def save(
    path: Path,
    before: bytes | None,
    after: bytes | None,
    *,
    client: str,
    action: str,
    made: tuple[Path, ...],
    note: object,
    environ: Mapping[str, str] | None,
) -> Backup:
    """Write a backup to disk; call this before making the change. Raises `OSError`."""
    directory = backups_directory(environ)
    make_private(directory, environ)
    now = datetime.now(UTC)
    word = "".join(letter if letter.isalnum() else "-" for letter in client)[:40]
    backup = Backup(
        record=directory / f"{now.strftime(_STAMP)}-{word}-{secrets.token_hex(4)}{_RECORD}",
        client=client,
        path=path,
        action=action,
        time=now.isoformat(timespec="microseconds"),
        before=None if before is None else digest(before),
        after=None if after is None else digest(after),
        made=made,
        note=note,
    )
    part = backup.record.with_suffix(".part")
    try:
        if before is not None:
            write_new(backup.copy, before)
        write_new(part, json.dumps(_fields(backup), indent=2).encode())
        part.replace(backup.record)
    except BaseException:
        part.unlink(missing_ok=True)
        backup.discard()
        raise
    sync_directory(directory)
    sync_directory(directory.parent)
    return backup


def _fields(backup: Backup) -> dict[str, object]:
    return {
        "format": _FORMAT,
        "client": backup.client,
        "path": str(backup.path),
        "action": backup.action,
        "time": backup.time,
        "sha256_before": backup.before,
        "sha256_after": backup.after,
        "made": [str(one) for one in backup.made],
        "note": backup.note,
    }


def _read(record: Path) -> Backup | None:
    try:
        found = json.loads(read_own(record, _MAX_RECORD))
        if found["format"] != _FORMAT or not Path(found["path"]).is_absolute():
            return None
        return Backup(
            record=record,
            client=str(found["client"]),
            path=Path(found["path"]),
            action=str(found["action"]),
            time=str(found["time"]),
            before=found["sha256_before"],
            after=found["sha256_after"],
            made=tuple(Path(one) for one in found["made"]),
            note=found["note"],
        )
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def _damaged(path: Path, problem: str) -> ConfigError:
    return ConfigError(file=str(path), key="", problem=problem, remedy="Nothing was changed; fix the file by hand.")


_OWN: Final = ".truename-"
# An older temporary file was left behind by a process that was killed.
_STALE: Final = 3600.0


def check_file(document: Document) -> None:
    """Raise `ConfigError` (``left_alone``) for a file that `replace_file` refuses to change.

    It refuses symbolic links, files with several hard links, files that are not regular, files that are read-only,
    in a read-only directory or owned by another user, and files that changed since they were read.
    """
    path = absolute(document.path)
    found = find_obstacle(path, document.raw if document.exists else None)
    if found is not None:
        raise cannot_edit(path, *filter(None, found))


def replace_file(
    document: Document,
    new: Document | bytes,
    *,
    client: str,
    action: str,
    environ: Mapping[str, str] | None = None,
    note: object = None,
) -> Backup:
    """Replace the bytes of a document's file and return the backup; create the file and its directories if missing.

    Mode, owner, group and extended attributes are kept; a new file is readable by its owner only. ``note`` is stored
    in the backup's record. Raises `ConfigError` (``left_alone``) as `check_file` does, and when the backup or the new
    bytes cannot be written; nothing is changed then.
    """
    raw = new.raw if isinstance(new, Document) else new
    path = absolute(document.path)
    check_file(document)
    # The directories to create, outermost first.
    made = tuple(one for one in reversed(path.parents) if not os.path.lexists(one))
    before = document.raw if document.exists else None
    backup = _saved(path, before, raw, client=client, action=action, made=made, note=note, environ=environ)
    temporary = path.with_name(f".{path.name[:100]}{_OWN}{secrets.token_hex(4)}")
    try:
        for directory in made:
            directory.mkdir(mode=0o700, exist_ok=True)
        _sweep(path)
        write_new(temporary, raw)
        if document.exists:
            copy_metadata(temporary, path)
        check_file(document)
        temporary.replace(path)
    except Exception as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        _remove_empty(made)
        backup.discard()
        if isinstance(error, OSError):
            raise _failed(path, error) from error
        raise
    except BaseException:
        # Interrupted, perhaps right after the rename: keep the backup.
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(path.parent)
    return backup


def remove_file(
    document: Document,
    *,
    client: str,
    action: str,
    environ: Mapping[str, str] | None = None,
    made: tuple[Path, ...] = (),
    note: object = None,
) -> Backup:
    """Delete a file that a change had created, and the empty directories in ``made``; return the backup.

    Raises `ConfigError` (``left_alone``) as `replace_file` does.
    """
    path = absolute(document.path)
    check_file(document)
    backup = _saved(path, document.raw, None, client=client, action=action, made=(), note=note, environ=environ)
    try:
        check_file(document)
        path.unlink()
    except Exception as error:
        backup.discard()
        if isinstance(error, OSError):
            raise _failed(path, error) from error
        raise
    sync_directory(path.parent)
    _remove_empty(made)
    return backup


def _saved(path: Path, before: bytes | None, after: bytes | None, **record: Any) -> Backup:
    try:
        return save(path, before, after, **record)
    except OSError as error:
        problem = f"its backup cannot be written ({error.strerror or error})"
        raise cannot_edit(path, problem, "Nothing was changed; check that the state directory is writable.") from error


def _remove_empty(directories: tuple[Path, ...]) -> None:
    for directory in reversed(directories):
        with contextlib.suppress(OSError):
            directory.rmdir()


def _sweep(path: Path) -> None:
    """Delete temporary files that a killed process left beside the file: they may hold secrets."""
    with contextlib.suppress(OSError):
        for left in path.parent.iterdir():
            if left.name.startswith(f".{path.name[:100]}{_OWN}") and left.lstat().st_mtime < time.time() - _STALE:
                left.unlink()


def _failed(path: Path, error: OSError) -> Exception:
    return cannot_edit(path, f"it cannot be changed ({error.strerror or error})")
