"""Carrying a plan out, file by file: each is old or new whenever it stops, and there is a backup of each new one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from truename.clients.plan import plain
from truename.clients.undoing import CONNECT, DISCONNECT
from truename.editing import backups, check_file, remove_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.clients.plan import Plan, Step
    from truename.clients.undoing import Undoing
    from truename.editing import Backup

__all__ = ["check", "connect", "disconnect"]


def check(plan: Plan) -> None:
    """Raise `ConfigError` (``left_alone``) if a file of the plan is one that would not be touched."""
    for step in plan.steps:
        check_file(step.before)


def connect(plan: Plan, environ: Mapping[str, str] | None = None) -> tuple[Backup, ...]:
    """Make the changes of a plan and return the backups. All files are looked at before the first is changed.

    Files that hold names only come first: should it end half-way, connecting again does the rest.
    Raises `ConfigError` (``left_alone``).
    """
    check(plan)
    ordered = sorted(plan.steps, key=lambda step: bool(step.entries))
    return tuple(_replaced(step, plan.client, environ) for step in ordered)


def disconnect(undoing: Undoing, environ: Mapping[str, str] | None = None) -> None:
    """Undo what is to be undone, and let go of the backups that are then done with. Raises `ConfigError`."""
    by_path = {step.path: step for step in undoing.steps}
    for path, done in undoing.backups.items():
        if path in undoing.left:
            continue
        if path in by_path:
            _undo(by_path[path], undoing.client, done, environ)
        for backup in done:
            backup.discard()


def _replaced(step: Step, client: str, environ: Mapping[str, str] | None) -> Backup:
    note = {
        "format": step.before.format,
        "edits": plain(step.edits),
        "entries": [list(where) for where in step.entries],
    }
    return replace_file(step.before, step.after or b"", client=client, action=CONNECT, environ=environ, note=note)


def _undo(step: Step, client: str, done: tuple[Backup, ...], environ: Mapping[str, str] | None) -> None:
    former = [one for one in backups(environ, client=client, path=step.path) if one.action == DISCONNECT]
    if step.after is None:
        made = tuple(dict.fromkeys(directory for one in done for directory in one.made))
        remove_file(step.before, client=client, action=DISCONNECT, environ=environ, made=made)
    else:
        replace_file(step.before, step.after, client=client, action=DISCONNECT, environ=environ)
    # One is enough to take a disconnection back; each holds whatever secrets the file does.
    for backup in former:
        with contextlib.suppress(OSError):
            backup.discard()
