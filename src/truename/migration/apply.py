"""Making all changes or none: every file is checked and written beside itself before the first one is replaced.

The order is what makes it safe: the originals and the journal on the disk, the new bytes beside each file, a last look
at every file, then one rename a file. What goes wrong before the renames leaves every file as it was; what goes wrong
between them is taken back, at once or, after a kill, by the next run.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.files import dress, obstacle, sync_directory, write_new
from truename.files.private import make_private
from truename.ledger.lock import locked
from truename.migration.back import (
    BY_HAND,
    beside,
    changed_since,
    left_alone,
    remove_empty,
    reversed_changes,
    take_back,
)
from truename.migration.originals import Originals, begin, kept, sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from truename.migration.look import Change
    from truename.migration.originals import Status

__all__ = ["Applied", "Step", "apply", "recover", "undo"]

Step = Callable[[str, int, int], None]

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MAKE_ROOM: Final = "Nothing was changed; make room, and run it again."


class Applied(NamedTuple):
    """What was done: how many files were changed, which migrations that a kill had left half-made were taken back.

    ``originals`` is what `undo` works from, None where there was nothing to change.
    """

    files: int
    originals: Originals | None
    recovered: tuple[Originals, ...] = ()


def apply(changes: Iterable[Change], state: Path, *, note: Any = None, on_step: Step | None = None) -> Applied:
    """Make all changes, or none. ``state`` is a directory of the user's own, where originals are kept.

    ``note`` is kept with them, as JSON; ``on_step`` is told what is being done, how often it was done, of how many.

    Raises `ConfigError` (``left_alone``), several as an `ExceptionGroup`, when a file is a link, read-only, somebody
    else's, was changed meanwhile or can't be written; then no file has changed. Raises `LedgerError` (``busy``) while
    another migration is being made.
    """
    wanted = tuple(change for change in changes if change.before != change.after or change.path != change.target)
    with _alone(state):
        recovered = _recovered(state)
        if not wanted:
            return Applied(0, None, recovered)
        return Applied(len(wanted), _made(wanted, state, "done", note, on_step), recovered)


def undo(state: Path, root: Path, *, on_step: Step | None = None) -> Applied:
    """Give every file of the last migration that was made in ``root`` its bytes and its name back.

    All or nothing: raises `ConfigError` as `apply` does, and for a file that was changed since. ``originals`` is the
    migration that was undone, None where there was none.
    """
    with _alone(state):
        recovered = _recovered(state)
        last = _last(state, str(root))
        if last is None:
            return Applied(0, None, recovered)
        _raise_all(changed_since(last))
        changes = reversed_changes(last)
        _made(changes, state, "back", {"undoes": last.directory.name}, on_step)
        remove_empty(Path(made) for made in last.made)
        return Applied(len(changes), last.with_status("undone"), recovered)


def _last(state: Path, root: str) -> Originals | None:
    """Return the last migration that was made here and not undone, even if a kill kept that from being written."""
    here = [one for one in kept(state) if one.root == root]
    undone = {one.note["undoes"] for one in here if one.status == "back"}
    return next((one for one in here if one.status == "done" and one.directory.name not in undone), None)


def recover(state: Path) -> tuple[Originals, ...]:
    """Take back what killed runs left half-made, and return them. Raises as `apply` does."""
    with _alone(state):
        return _recovered(state)


def _alone(state: Path) -> AbstractContextManager[None]:
    make_private(state)
    return locked(state / "journal", shared=False)


def _made(changes: Sequence[Change], state: Path, status: Status, note: Any, on_step: Step | None) -> Originals:
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


def _check(changes: Sequence[Change], on_step: Step | None) -> None:
    """Raise for every file that can't be changed."""
    found: list[Exception] = []
    for number, change in enumerate(changes, 1):
        problem = obstacle(change.path, change.before)
        if problem is None and change.target != change.path:
            problem = obstacle(change.target, None)
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


def _write(changes: Sequence[Change], originals: Originals, on_step: Step | None) -> None:
    for directory in map(Path, originals.made):
        directory.mkdir(exist_ok=True)
    for number, change in enumerate(changes, 1):
        if change.after is not None:
            with _named(change.target):
                _write_beside(change, change.after, beside(change.target, originals))
        _tell(on_step, "written", number, len(changes))


def _write_beside(change: Change, raw: bytes, new: Path) -> None:
    write_new(new, raw)
    if change.before is None:
        new.chmod(0o666 & ~_umask())
    else:
        dress(new, change.path)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Let an error name the file that people know, and not the one beside it, or none at all."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _replace(change: Change, originals: Originals) -> None:
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


def _missing(changes: Sequence[Change]) -> tuple[Path, ...]:
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
