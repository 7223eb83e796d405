"""Apply all changes of a rename or none, keep what the files held, and undo it."""

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

__all__ = ["AppliedRename", "Originals", "apply", "kept", "recover", "undo"]

Status = Literal["begun", "done", "undone", "back"]

_FORMAT: Final = 1
_JOURNAL: Final = "journal.json"
_ORIGINALS: Final = "originals"
_MAX_JOURNAL: Final = 1 << 28
_MAX_ORIGINALS: Final = 1 << 34
_KEPT: Final = 50
_STAMP: Final = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalFile:
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
    entries: tuple[OriginalFile, ...]
    made: tuple[str, ...] = ()
    note: Any = None

    @property
    def mark(self) -> str:
        """What the names of its files beside others have in them."""
        return self.directory.name[-8:]

    def bytes_of(self, entry: OriginalFile) -> bytes | None:
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


def begin(state: Path, changes: Sequence[FileRewrite], *, made: Sequence[Path] = (), note: Any = None) -> Originals:
    """Write down what is about to be changed, down to the disk. Raises `OSError`; then nothing is kept."""
    now = datetime.now(UTC)
    directory = state / f"{now.strftime(_STAMP)}-{secrets.token_hex(4)}"
    make_private(state)
    directory.mkdir(mode=0o700)
    entries: list[OriginalFile] = []
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


def _entry(change: FileRewrite, offset: int) -> OriginalFile:
    return OriginalFile(
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
        entries = tuple(OriginalFile(**entry) for entry in plain.pop("entries"))
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


BY_HAND: Final = "Nothing was changed; see to it, or leave it out (--exclude)."


def left_alone(path: Path, problem: str, remedy: str) -> ConfigError:
    """Build the error for a file that is not going to be changed."""
    return ConfigError(code="left_alone", file=str(path), key="", problem=problem, remedy=remedy)


def beside(path: Path, originals: Originals) -> Path:
    """Return where the new bytes of a file stand until it is replaced."""
    # Long names may begin alike, and have hardly room for more.
    return path.with_name(f".{path.name[:20]}-{digest(os.fsencode(path.name))[:16]}.truename-{originals.mark}")


def take_back(originals: Originals, begun: int | None = None) -> list[ConfigError]:
    """Give the files their bytes back that were changed already; what somebody changed since is left, and told.

    ``begun`` is how many of them may have been changed, None if a kill kept that from being known.
    """
    left: list[ConfigError] = []
    for number, entry in enumerate(originals.entries):
        try:
            beside(Path(entry.target), originals).unlink(missing_ok=True)
            if begun is None or number < begun:
                _give_back(entry, originals)
        except OSError as error:
            left.append(left_alone(Path(entry.path), f"it can't be given back ({error.strerror or error})", BY_HAND))
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
            raise left_alone(
                path,
                "another program changed it meanwhile",
                f"{originals.directory} has its bytes; remove it to go on.",
            )
        _put(path, raw, target, originals)
    if (path != target or raw is None) and entry.after is not None and _digest(target) == entry.after:
        target.unlink()


def _put(path: Path, raw: bytes, like: Path, originals: Originals) -> None:
    new = beside(path, originals)
    new.unlink(missing_ok=True)
    write_new(new, raw)
    if like.exists():
        copy_metadata(new, like)
    os.replace(new, path)  # noqa: PTH105 - as above


def _digest(path: Path) -> str | None:
    try:
        return digest(read_plain(path))
    except FileNotFoundError:
        return None
    except OSError:
        # A link or a directory stands there now, which is nothing that a migration made.
        return ""


def changed_since(last: Originals) -> list[ConfigError]:
    """Return an error for every file that is no longer what a migration made of it."""
    return [
        left_alone(Path(entry.target), "it was changed since", "Nothing was changed; undo it by hand.")
        for entry in last.entries
        if _digest(Path(entry.target)) != entry.after or (entry.path != entry.target and os.path.lexists(entry.path))
    ]


def reversed_changes(last: Originals) -> list[FileRewrite]:
    """Return the changes that undo a migration. Raises `ConfigError` for originals that are damaged."""
    return [_reversed(last, entry) for entry in reversed(last.entries)]


def _reversed(last: Originals, entry: OriginalFile) -> FileRewrite:
    current = None if entry.after is None else read_plain(Path(entry.target))
    return FileRewrite(path=Path(entry.target), before=current, after=last.bytes_of(entry), target=Path(entry.path))


def remove_empty(directories: Iterable[Path]) -> None:
    """Remove those of the directories in which nothing is, the innermost first."""
    for directory in sorted(directories, reverse=True):
        with contextlib.suppress(OSError):
            directory.rmdir()


Step = Callable[[str, int, int], None]

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MAKE_ROOM: Final = "Nothing was changed; make room, and run it again."


class AppliedRename(NamedTuple):
    """What was done: how many files were changed, which migrations that a kill had left half-made were taken back.

    ``originals`` is what `undo` works from, None where there was nothing to change.
    """

    files: int
    originals: Originals | None
    recovered: tuple[Originals, ...] = ()


def apply(
    changes: Iterable[FileRewrite], state: Path, *, note: Any = None, on_step: Step | None = None
) -> AppliedRename:
    """Make all changes, or none. ``state`` is a directory of the user's own, where originals are kept.

    ``note`` is kept with them, as JSON; ``on_step`` is told what is being done, how often it was done, of how many.

    Raises `ConfigError` (``left_alone``), several as an `ExceptionGroup`, when a file is a link, read-only, somebody
    else's, was changed meanwhile or can't be written; then no file has changed. Raises `StoreError` (``busy``) while
    another migration is being made.
    """
    wanted = tuple(change for change in changes if change.before != change.after or change.path != change.target)
    with _alone(state):
        recovered = _recovered(state)
        if not wanted:
            return AppliedRename(0, None, recovered)
        return AppliedRename(len(wanted), _made(wanted, state, "done", note, on_step), recovered)


def undo(state: Path, root: Path, *, on_step: Step | None = None) -> AppliedRename:
    """Give every file of the last migration that was made in ``root`` its bytes and its name back.

    All or nothing: raises `ConfigError` as `apply` does, and for a file that was changed since. ``originals`` is the
    migration that was undone, None where there was none.
    """
    with _alone(state):
        recovered = _recovered(state)
        last = _last(state, str(root))
        if last is None:
            return AppliedRename(0, None, recovered)
        _raise_all(changed_since(last))
        changes = reversed_changes(last)
        _made(changes, state, "back", {"undoes": last.directory.name}, on_step)
        remove_empty(Path(made) for made in last.made)
        return AppliedRename(len(changes), last.with_status("undone"), recovered)


def _last(state: Path, root: str) -> Originals | None:
    """Return the last migration that was made here and not undone, even if a kill kept that from being written."""
    here = [one for one in kept(state) if one.root == root]
    undone = {one.note["undoes"] for one in here if one.status == "back"}
    return next((one for one in here if one.status == "done" and one.directory.name not in undone), None)


def recover(state: Path) -> tuple[Originals, ...]:
    """Take back what killed runs left half-made, and return them. Raises as `apply` does."""
    with _alone(state):
        return _recovered(state)


@contextmanager
def _alone(state: Path) -> Iterator[None]:
    make_private(state)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(state / "journal", shared=False))
        except TimeoutError as error:
            problem, remedy = "another process renames tools", "Wait for it, or end it, and try again."
            raise StoreError(file=str(state), key="", problem=problem, remedy=remedy, code="busy") from error
        yield


def _made(changes: Sequence[FileRewrite], state: Path, status: Status, note: Any, on_step: Step | None) -> Originals:
    _check(changes, on_step)
    made = _missing(changes)
    try:
        originals = begin(state, changes, made=made, note=note)
    except OSError as error:
        problem = f"no copy of the files could be kept there ({error.strerror or error})"
        raise left_alone(state, problem, "Nothing was changed; see to the state directory first.") from error
    begun = 0
    try:
        _write(changes, originals, on_step)
        _check(changes, None)
        for change in changes:
            # Of thousands of files, one may have been saved while those before it were replaced.
            _check([change], None)
            begun += 1
            with _named(change.target):
                _replace(change, originals)
            _tell(on_step, "replaced", begun, len(changes))
        for directory in {change.target.parent for change in changes} | {change.path.parent for change in changes}:
            sync_directory(directory)
        return originals.with_status(status)
    except BaseException as error:
        _raise_all(take_back(originals, begun))
        originals.discard()
        if isinstance(error, OSError):
            path, remedy = Path(error.filename or state), _MAKE_ROOM if error.errno in _NO_ROOM else BY_HAND
            raise left_alone(path, f"it can't be written ({error.strerror or error})", remedy) from error
        raise


def _check(changes: Sequence[FileRewrite], on_step: Step | None) -> None:
    """Raise for every file that can't be changed."""
    found: list[Exception] = []
    for number, change in enumerate(changes, 1):
        problem = find_obstacle(change.path, change.before)
        if problem is None and change.target != change.path:
            problem = find_obstacle(change.target, None)
        if problem is not None:
            found.append(left_alone(change.path, problem.problem, problem.remedy or BY_HAND))
        _tell(on_step, "checked", number, len(changes))
    _raise_all(found)


def _raise_all(errors: Sequence[Exception]) -> None:
    if len(errors) > 1:
        message = f"{len(errors)} files can't be changed, so none was"
        raise ExceptionGroup(message, errors)
    if errors:
        raise errors[0]


def _write(changes: Sequence[FileRewrite], originals: Originals, on_step: Step | None) -> None:
    for directory in map(Path, originals.made):
        directory.mkdir(exist_ok=True)
    for number, change in enumerate(changes, 1):
        if change.after is not None:
            with _named(change.target):
                _write_beside(change, change.after, beside(change.target, originals))
        _tell(on_step, "written", number, len(changes))


def _write_beside(change: FileRewrite, raw: bytes, new: Path) -> None:
    write_new(new, raw)
    if change.before is None:
        new.chmod(0o666 & ~_umask())
    else:
        copy_metadata(new, change.path)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let an error name the file that people know, and not the one beside it, or none at all."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _replace(change: FileRewrite, originals: Originals) -> None:
    if change.after is not None:
        os.replace(beside(change.target, originals), change.target)  # noqa: PTH105 - the step that makes the change
    if change.after is None or change.target != change.path:
        change.path.unlink()


def _recovered(state: Path) -> tuple[Originals, ...]:
    """Take back what was begun and not ended; nobody else is at it, for the lock is ours."""
    sweep(state)
    begun = [one for one in kept(state) if one.status == "begun"]
    for one in begun:
        _raise_all(take_back(one))
        one.discard()
    return tuple(begun)


def _missing(changes: Sequence[FileRewrite]) -> tuple[Path, ...]:
    """Return the directories that new files need, outermost first."""
    parents = {change.target.parent for change in changes if change.after is not None}
    missing = {one for parent in parents for one in (parent, *parent.parents) if not one.exists()}
    return tuple(sorted(missing))


def _umask() -> int:
    current = os.umask(0o077)
    os.umask(current)
    return current


def _tell(on_step: Step | None, word: str, number: int, count: int) -> None:
    if on_step is not None:
        on_step(word, number, count)
