"""Changing a client's file: whole or not at all, never through a link, never over what somebody else wrote meanwhile.

The order is what makes it safe: the backup on the disk, the new bytes beside the file, a last look at the file, and
one rename. A kill anywhere leaves the old file or the new one, and the backup of the new one.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from typing import TYPE_CHECKING, Any, Final

from truename.documents.backup import save
from truename.documents.document import Document, left_alone
from truename.files import absolute, dress, obstacle, sync_directory, write_new

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.documents.backup import Backup

__all__ = ["check_file", "remove_file", "replace_file"]

_OWN: Final = ".truename-"
# A file of ours that is older was left by one that was killed.
_STALE: Final = 3600.0


def check_file(document: Document) -> None:
    """Raise `ConfigError` (``left_alone``) for a file that `replace_file` would not touch.

    That is one which is a link (symbolic, or one of several names), no regular file, read-only, in a read-only
    directory, somebody else's, or no longer what was read.
    """
    path = absolute(document.path)
    found = obstacle(path, document.raw if document.exists else None)
    if found is not None:
        raise left_alone(path, *filter(None, found))


def replace_file(
    document: Document,
    new: Document | bytes,
    *,
    client: str,
    action: str,
    environ: Mapping[str, str] | None = None,
    note: Any = None,
) -> Backup:
    """Put new bytes in the place of a document's, and return the backup; a new file and its directories are made.

    Mode, owner, group and extended attributes stay; a new file is for its owner alone. Raises `ConfigError`
    (``left_alone``) as `check_file` does, and when the backup or the new bytes can't be written; then nothing is
    changed. ``note`` goes into the backup's record.
    """
    raw = new.raw if isinstance(new, Document) else new
    path = absolute(document.path)
    check_file(document)
    made = _missing(path.parent)
    before = document.raw if document.exists else None
    backup = _saved(path, before, raw, client=client, action=action, made=made, note=note, environ=environ)
    temporary = path.with_name(f".{path.name[:100]}{_OWN}{secrets.token_hex(4)}")
    try:
        for directory in made:
            directory.mkdir(mode=0o700, exist_ok=True)
        _sweep(path)
        write_new(temporary, raw)
        if document.exists:
            dress(temporary, path)
        check_file(document)
        os.replace(temporary, path)  # noqa: PTH105 - the one step that makes the change, under its own name
    except Exception as error:
        _undo(temporary, made, backup)
        if isinstance(error, OSError):
            raise _failed(path, error) from error
        raise
    except BaseException:
        # Interrupted, perhaps right after the rename: the backup has to stay.
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
    note: Any = None,
) -> Backup:
    """Remove a file that a change had made, and those directories made with it that are empty; return the backup.

    Raises `ConfigError` (``left_alone``) as `replace_file` does.
    """
    path = absolute(document.path)
    check_file(document)
    backup = _saved(path, document.raw, None, client=client, action=action, made=(), note=note, environ=environ)
    try:
        check_file(document)
        os.unlink(path)  # noqa: PTH108 - as above
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
        problem = f"no backup of it could be written ({error.strerror or error})"
        raise left_alone(path, problem, "Nothing was changed; see to the state directory first.") from error


def _undo(temporary: Path, made: tuple[Path, ...], backup: Backup) -> None:
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)
    _remove_empty(made)
    backup.discard()


def _remove_empty(directories: tuple[Path, ...]) -> None:
    for directory in reversed(directories):
        with contextlib.suppress(OSError):
            directory.rmdir()


def _sweep(path: Path) -> None:
    """Remove what a killed run left beside the file: it may hold secrets, and lie in somebody's repository."""
    with contextlib.suppress(OSError):
        for left in path.parent.iterdir():
            if left.name.startswith(f".{path.name[:100]}{_OWN}") and left.lstat().st_mtime < time.time() - _STALE:
                left.unlink()


def _missing(directory: Path) -> tuple[Path, ...]:
    nearest = _nearest(directory)
    return tuple(
        reversed([one for one in (directory, *directory.parents) if one != nearest and nearest in one.parents])
    )


def _nearest(directory: Path) -> Path:
    return next((one for one in (directory, *directory.parents) if os.path.lexists(one)), directory)


def _failed(path: Path, error: OSError) -> Exception:
    return left_alone(path, f"it can't be changed ({error.strerror or error})")
