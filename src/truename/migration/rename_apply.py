"""Apply all changes of a rename or none, store the original files, and undo the rename."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from truename.errors import ConfigError, StoreError
from truename.files import copy_metadata, find_obstacle, read_own, read_plain, sync_directory, write_new
from truename.files.lock import locked
from truename.files.private import make_private
from truename.migration.rename_survey import FileRewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["AppliedRename", "Originals", "apply", "recorded_migrations", "recover", "undo"]

Status = Literal["begun", "done", "undone", "back"]

_FORMAT: Final = 1
_JOURNAL: Final = "journal.json"
_ORIGINALS: Final = "originals"
_MAX_JOURNAL: Final = 1 << 28
MAX_ORIGINALS: Final = 50
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalFile:
    """One file of a migration: its path and digest before and after (None: no file), and its original bytes.

    These are in the file ``originals``, at an offset, with a length.
    """

    path: str
    target: str
    before: str | None
    after: str | None
    offset: int = 0
    length: int = 0


@dataclass(frozen=True, kw_only=True)
class Originals:
    """The record of one migration: its directory, where it was run (``root``), its status, and its files.

    ``status`` is ``begun`` (perhaps killed), ``done``, ``undone``, or ``back`` for one that undid another. ``made`` are
    the directories that it created, outermost first; ``note`` is data of the caller.
    """

    directory: Path
    root: str
    time: str
    status: Status
    entries: tuple[OriginalFile, ...]
    made: tuple[str, ...] = ()
    note: Any = None

    @property
    def mark(self) -> str:
        """The suffix that marks the migration's temporary files."""
        return self.directory.name[-8:]

    def bytes_of(self, entry: OriginalFile) -> bytes | None:
        """Return the original bytes of a file. Raises `ConfigError` if they are damaged."""
        if entry.before is None:
            return None
        path = self.directory / _ORIGINALS
        try:
            with path.open("rb") as stream:
                stream.seek(entry.offset)
                raw = stream.read(entry.length)
        except OSError as error:
            raise _damaged(path, f"it is not readable ({error.strerror or error})") from error
        if digest(raw) != entry.before:
            raise _damaged(path, "it differs from the saved copy")
        return raw

    def with_status(self, status: Status) -> Originals:
        """Store a new status. Raises `OSError`."""
        changed = replace(self, status=status)
        record = {"format": _FORMAT, **asdict(changed), "directory": self.directory.name}
        new = self.directory / f"{_JOURNAL}.{secrets.token_hex(4)}"
        write_new(new, json.dumps(record, indent=1).encode())
        new.replace(self.directory / _JOURNAL)
        sync_directory(self.directory)
        return changed

    def discard(self) -> None:
        """Delete the record of a migration that changed nothing."""
        shutil.rmtree(self.directory, ignore_errors=True)


def digest(raw: bytes) -> str:
    """Return the SHA-256 digest of a file's bytes."""
    return hashlib.sha256(raw).hexdigest()


def record_originals(
    state: Path, changes: Sequence[FileRewrite], *, made: Sequence[Path] = (), note: Any = None
) -> Originals:
    """Save the original files of pending changes and the journal, and sync both to disk.

    If that fails, raise `OSError` and leave no record.
    """
    now = datetime.now(UTC)
    directory = state / f"{now.strftime(_STAMP)}-{secrets.token_hex(4)}"
    make_private(state)
    directory.mkdir(mode=0o700)
    entries: list[OriginalFile] = []
    try:
        with os.fdopen(os.open(directory / _ORIGINALS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            for change in changes:
                entry = OriginalFile(
                    path=str(change.path),
                    target=str(change.target),
                    before=None if change.before is None else digest(change.before),
                    after=None if change.after is None else digest(change.after),
                    offset=stream.tell(),
                    length=len(change.before or b""),
                )
                entries.append(entry)
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
    for old in recorded_migrations(state)[MAX_ORIGINALS:]:
        if old.status != "begun":
            old.discard()
    return begun


def recorded_migrations(state: Path) -> tuple[Originals, ...]:
    """Return the recorded migrations, newest first, without incomplete records."""
    try:
        directories = sorted((path for path in state.iterdir() if path.is_dir()), reverse=True)
    except OSError:
        return ()
    return tuple(found for directory in directories if (found := _read(directory)) is not None)


def remove_incomplete(state: Path) -> None:
    """Remove records of runs that were killed before their journal was written: they changed nothing."""
    for path in state.iterdir():
        if path.is_dir() and not (path / _JOURNAL).exists():
            shutil.rmtree(path, ignore_errors=True)


def _read(directory: Path) -> Originals | None:
    try:
        plain = json.loads(read_own(directory / _JOURNAL, _MAX_JOURNAL))
        if plain.pop("format") != _FORMAT:
            return None
        entries = tuple(OriginalFile(**entry) for entry in plain.pop("entries"))
        made = tuple(plain.pop("made"))
        return Originals(**{**plain, "directory": directory, "entries": entries, "made": made})
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _damaged(path: Path, problem: str) -> ConfigError:
    remedy = "Restore the files from version control."
    return ConfigError(code="left_alone", file=str(path), key="", problem=problem, remedy=remedy)


BY_HAND: Final = "Nothing was changed; correct this, or exclude the file (--exclude)."


def left_alone_error(path: Path, problem: str, remedy: str) -> ConfigError:
    """Return the error for a file that will not be changed."""
    return ConfigError(code="left_alone", file=str(path), key="", problem=problem, remedy=remedy)


def temporary_path(path: Path, originals: Originals) -> Path:
    """Return the path of a file's new bytes before the replacement."""
    # Long names may share a prefix, and leave hardly any space for more.
    return path.with_name(f".{path.name[:20]}-{digest(os.fsencode(path.name))[:16]}.truename-{originals.mark}")


def restore_files(originals: Originals, begun: int | None = None) -> list[ConfigError]:
    """Restore the files that were already changed; return errors for those that somebody changed since.

    ``begun`` is how many may have been changed; None if that is unknown after a kill.
    """
    left: list[ConfigError] = []
    for number, entry in enumerate(originals.entries):
        try:
            temporary_path(Path(entry.target), originals).unlink(missing_ok=True)
            if begun is None or number < begun:
                _give_back(entry, originals)
        except OSError as error:
            left.append(
                left_alone_error(Path(entry.path), f"it cannot be restored ({error.strerror or error})", BY_HAND)
            )
        except ConfigError as error:
            left.append(error)
    remove_empty(Path(made) for made in originals.made)
    return left


def _give_back(entry: OriginalFile, originals: Originals) -> None:
    path, target = Path(entry.path), Path(entry.target)
    raw = originals.bytes_of(entry)
    here = _digest(path)
    if raw is not None and here != entry.before:
        if here is not None and here != entry.after:
            raise left_alone_error(
                path,
                "somebody changed it meanwhile",
                f"{originals.directory} has the original; remove that directory to continue.",
            )
        new = temporary_path(path, originals)
        new.unlink(missing_ok=True)
        write_new(new, raw)
        if target.exists():
            copy_metadata(new, target)
        new.replace(path)
    if (path != target or raw is None) and entry.after is not None and _digest(target) == entry.after:
        target.unlink()


def _digest(path: Path) -> str | None:
    try:
        return digest(read_plain(path))
    except FileNotFoundError:
        return None
    except OSError:
        # A link or a directory, which no migration creates.
        return ""


def changed_since(last: Originals) -> list[ConfigError]:
    """Return an error for every file that changed since the migration."""
    return [
        left_alone_error(Path(entry.target), "it changed since the rename", "Nothing was changed; undo it by hand.")
        for entry in last.entries
        if _digest(Path(entry.target)) != entry.after or (entry.path != entry.target and os.path.lexists(entry.path))
    ]


def undo_changes(last: Originals) -> list[FileRewrite]:
    """Return the changes that undo a migration. Raises `ConfigError` for damaged originals."""
    return [
        FileRewrite(
            path=Path(entry.target),
            before=None if entry.after is None else read_plain(Path(entry.target)),
            after=last.bytes_of(entry),
            target=Path(entry.path),
        )
        for entry in reversed(last.entries)
    ]


def remove_empty(directories: Iterable[Path]) -> None:
    """Remove empty directories, innermost first."""
    for directory in sorted(directories, reverse=True):
        with contextlib.suppress(OSError):
            directory.rmdir()


Step = Callable[[str, int, int], None]

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MAKE_ROOM: Final = "Nothing was changed; free disk space, and run it again."


class AppliedRename(NamedTuple):
    """The result of a rename: how many files changed, and which interrupted migrations were undone.

    ``originals`` is the record for `undo`; None if there was nothing to change.
    """

    files: int
    originals: Originals | None
    recovered: tuple[Originals, ...] = ()


def apply(
    changes: Iterable[FileRewrite], state: Path, *, note: Any = None, on_step: Step | None = None
) -> AppliedRename:
    """Apply all changes, or none. ``state`` is the user's own directory, which stores the originals.

    ``note`` is stored with them, as JSON; ``on_step`` receives the step, how often it was done, and of how many.

    Raises `ConfigError` (``left_alone``), several as an `ExceptionGroup`, if a file is a link, read-only, another
    user's, changed meanwhile or not writable; then no file has changed. Raises `StoreError` (``busy``) during another
    migration.
    """
    wanted = tuple(change for change in changes if change.before != change.after or change.path != change.target)
    with _alone(state):
        recovered = _recovered(state)
        if not wanted:
            return AppliedRename(0, None, recovered)
        return AppliedRename(len(wanted), _made(wanted, state, "done", note, on_step), recovered)


def undo(state: Path, root: Path, *, on_step: Step | None = None) -> AppliedRename:
    """Restore the bytes and name of every file of the last migration that was run in ``root``.

    All or nothing: raises `ConfigError` like `apply`, also for a file that changed since. ``originals`` is the record
    of the undone migration; None if there was none.
    """
    with _alone(state):
        recovered = _recovered(state)
        here = [one for one in recorded_migrations(state) if one.root == str(root)]
        # A kill may have prevented the status "undone".
        undone = {one.note["undoes"] for one in here if one.status == "back"}
        last = next((one for one in here if one.status == "done" and one.directory.name not in undone), None)
        if last is None:
            return AppliedRename(0, None, recovered)
        _raise_all(changed_since(last))
        changes = undo_changes(last)
        _made(changes, state, "back", {"undoes": last.directory.name}, on_step)
        remove_empty(Path(made) for made in last.made)
        return AppliedRename(len(changes), last.with_status("undone"), recovered)


def recover(state: Path) -> tuple[Originals, ...]:
    """Undo interrupted migrations, and return them. Raises the errors of `apply`."""
    with _alone(state):
        return _recovered(state)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    make_private(state)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(state / "journal", shared=False))
        except TimeoutError as error:
            problem, remedy = "another process is renaming tools", "Wait for that process, or end it, and try again."
            raise StoreError(file=str(state), key="", problem=problem, remedy=remedy, code="busy") from error
        yield


def _made(changes: Sequence[FileRewrite], state: Path, status: Status, note: Any, on_step: Step | None) -> Originals:
    _check(changes, on_step)
    parents = {change.target.parent for change in changes if change.after is not None}
    missing = {one for parent in parents for one in (parent, *parent.parents) if not one.exists()}
    try:
        originals = record_originals(state, changes, made=sorted(missing), note=note)
    except OSError as error:
        problem = f"the originals cannot be stored there ({error.strerror or error})"
        raise left_alone_error(state, problem, "Nothing was changed; check the state directory.") from error
    begun = 0
    try:
        _write(changes, originals, on_step)
        _check(changes, None)
        for change in changes:
            # A file may be saved by somebody while thousands of files before it are replaced.
            _check([change], None)
            begun += 1
            with _named(change.target):
                if change.after is not None:
                    temporary_path(change.target, originals).replace(change.target)
                if change.after is None or change.target != change.path:
                    change.path.unlink()
            _tell(on_step, "replaced", begun, len(changes))
        for directory in {change.target.parent for change in changes} | {change.path.parent for change in changes}:
            sync_directory(directory)
        return originals.with_status(status)
    except BaseException as error:
        _raise_all(restore_files(originals, begun))
        originals.discard()
        if isinstance(error, OSError):
            path, remedy = Path(error.filename or state), _MAKE_ROOM if error.errno in _NO_ROOM else BY_HAND
            raise left_alone_error(path, f"it cannot be written ({error.strerror or error})", remedy) from error
        raise


def _check(changes: Sequence[FileRewrite], on_step: Step | None) -> None:
    """Raise an error for every file that cannot be changed."""
    found: list[Exception] = []
    for number, change in enumerate(changes, 1):
        problem = find_obstacle(change.path, change.before)
        if problem is None and change.target != change.path:
            problem = find_obstacle(change.target, None)
        if problem is not None:
            found.append(left_alone_error(change.path, problem.problem, problem.remedy or BY_HAND))
        _tell(on_step, "checked", number, len(changes))
    _raise_all(found)


def _raise_all(errors: Sequence[Exception]) -> None:
    if len(errors) > 1:
        message = f"{len(errors)} files cannot be changed, so none was"
        raise ExceptionGroup(message, errors)
    if errors:
        raise errors[0]


def _write(changes: Sequence[FileRewrite], originals: Originals, on_step: Step | None) -> None:
    for directory in map(Path, originals.made):
        directory.mkdir(exist_ok=True)
    for number, change in enumerate(changes, 1):
        if change.after is not None:
            new = temporary_path(change.target, originals)
            with _named(change.target):
                write_new(new, change.after)
                if change.before is None:
                    umask = os.umask(0o077)
                    os.umask(umask)
                    new.chmod(0o666 & ~umask)
                else:
                    copy_metadata(new, change.path)
        _tell(on_step, "written", number, len(changes))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Set the file name of an error to the target, instead of the temporary file."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _recovered(state: Path) -> tuple[Originals, ...]:
    """Undo migrations that were started and not completed; the lock excludes others."""
    remove_incomplete(state)
    begun = [one for one in recorded_migrations(state) if one.status == "begun"]
    for one in begun:
        _raise_all(restore_files(one))
        one.discard()
    return tuple(begun)


def _tell(on_step: Step | None, word: str, number: int, count: int) -> None:
    if on_step is not None:
        on_step(word, number, count)
