"""Apply a connection plan to a client's files, and undo it: restore the original bytes, or revert only our edits."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import PureWindowsPath
from typing import TYPE_CHECKING, Final

from truename.clients.plan import FileChange, PlanNote, PlanStep, from_plain, plain
from truename.clients.selection import secrets_of, servers_in
from truename.clients.table import config_files, name_files
from truename.editing import (
    ABSENT,
    Backup,
    Document,
    KeyPath,
    apply_edits,
    backups,
    cannot_edit,
    check_file,
    digest,
    edit,
    is_same_value,
    merge,
    remove_file,
    replace_file,
    unread_backups,
    value_at,
)
from truename.errors import ConfigError, excerpt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from truename.clients.plan import ConnectionPlan

__all__ = ["Disconnection", "check", "connect", "disconnect", "plan_disconnection"]

CONNECT: Final = "connect"
DISCONNECT: Final = "disconnect"
# Fields of an entry that say which server it starts or connects to.
_TARGETS: Final = ("url", "uri", "httpUrl", "serverUrl", "baseUrl", "command", "cmd", "args")


@dataclass(frozen=True, kw_only=True)
class Disconnection:
    """A plan to disconnect a client: a step for each file, and the backups to discard afterwards.

    ``exact`` are the files whose original bytes are restored; ``left`` are files that cannot be changed (see
    ``problems``), whose backups are kept. ``unread`` are the records of changes that cannot be read, and so not undone.
    ``secrets`` are texts to mask in output.
    """

    client: str
    steps: tuple[PlanStep, ...] = ()
    exact: frozenset[Path] = frozenset()
    left: frozenset[Path] = frozenset()
    backups: Mapping[Path, tuple[Backup, ...]]
    notes: tuple[PlanNote, ...] = ()
    problems: tuple[ConfigError, ...] = ()
    unread: tuple[ConfigError, ...] = ()
    secrets: frozenset[str] = field(default=frozenset(), repr=False)


def plan_disconnection(client: str, environ: Mapping[str, str] | None = None) -> Disconnection:
    """Plan how to undo what `connect` changed in a client's files. Changes nothing.

    A file that cannot be restored (invalid, read-only, a link, deleted) is reported in ``problems``, with the path of
    its backup.
    """
    named = _file_names(client)
    made = [one for one in backups(environ, client=client) if one.action == CONNECT]
    # A forged backup record must not be able to replace arbitrary files: only a client's own file names are accepted.
    done = [one for one in made if any(fnmatchcase(one.path.name, name) for name in named)]
    by_path = {path: tuple(one for one in done if one.path == path) for path in dict.fromkeys(o.path for o in done)}
    steps: list[PlanStep] = []
    exact: set[Path] = set()
    left: set[Path] = set()
    notes: list[PlanNote] = []
    problems: list[ConfigError] = []
    for path, changes in by_path.items():
        try:
            step, is_exact = _undone(path, changes, notes)
            if step is not None:
                steps.append(step)
                exact |= {path} if is_exact else set()
        except ConfigError as error:
            left.add(path)
            problems.append(_with_backup(error, changes))
    documents = [step.before for step in steps]
    documents += [Document.parse(step.after, step.path, step.before.format) for step in steps if step.after is not None]
    return Disconnection(
        client=client,
        steps=tuple(steps),
        exact=frozenset(exact),
        left=frozenset(left),
        backups=by_path,
        notes=tuple(notes),
        problems=tuple(problems),
        unread=tuple(one.problem for one in unread_backups(environ) if one.client in {"", client}),
        secrets=frozenset(secret for one in documents for secret in secrets_of(servers_in(client, one.value))),
    )


def _file_names(client: str) -> frozenset[str]:
    rows = [file for file in (*config_files(client), *name_files()) if file.client == client]
    patterns = [pattern for file in rows for listed in file.paths.values() for pattern in listed]
    # A pattern that ends in a variable can be any file name.
    return frozenset("*" if pattern.endswith("}") else PureWindowsPath(pattern).name for pattern in patterns)


def _undone(path: Path, changes: Sequence[Backup], notes: list[PlanNote]) -> tuple[PlanStep | None, bool]:
    """Undo the changes of one file in memory, newest first; return the step, and whether the bytes are the original."""
    note = changes[0].note
    format_ = str(note.get("format")) if isinstance(note, dict) else "json"
    document = _current(path, format_)
    now: Document | None = document if document.exists else None
    is_exact = True
    for change in changes:
        found = None if now is None else digest(now.raw)
        if found == change.before:
            continue
        if found == change.after:
            raw = change.original()
            now = None if raw is None else Document.parse(raw, path, format_)
        elif now is None:
            raise cannot_edit(path, "it no longer exists", "Nothing was changed; copy its backup back if it is needed.")
        else:
            now, is_exact = _in_place(now, change, notes), False
    after = None if now is None else now.raw
    if after == (document.raw if document.exists else None):
        return None, is_exact
    check_file(document)
    what = "restored" if is_exact else "only our edits are reverted"
    return PlanStep(path=path, before=document, after=after, changes=(FileChange(where=(), what=what),)), is_exact


def _current(path: Path, format_: str) -> Document:
    if not path.exists() and not path.is_symlink():
        return Document.empty(path, format_)
    try:
        return Document.read(path, format_)
    except ConfigError as error:
        raise cannot_edit(path, error.problem, f"Nothing was changed. {error.remedy}", key=error.key) from error


def _in_place(now: Document, change: Backup, notes: list[PlanNote]) -> Document:
    """Revert one change in a file that was edited since; entries that others edited stay as they are now."""
    raw = change.original()
    before = {} if raw is None else Document.parse(raw, now.path, now.format).value
    try:
        after = apply_edits(before, from_plain(change.note["edits"]))
        entries = [tuple(where) for where in change.note["entries"]]
    except (LookupError, TypeError, ValueError) as error:
        raise cannot_edit(now.path, "the record of what was changed cannot be read") from error
    theirs = now.value
    for where in entries:
        theirs = _without_ours(theirs, before, after, where)
    merged, contested = merge(after, before, theirs)
    for where in entries:
        if any(place[: len(where)] == where for place in contested):
            # Keep the entry as others left it: with their value, or removed if they removed it.
            place, kept = _place(merged, where), _entry(theirs, where)
            if kept is not ABSENT or value_at(merged, place) is not ABSENT:
                merged = apply_edits(merged, [(place, kept)])
            fact = f"{excerpt(str(where[-1]))} in {now.path} was edited after `truename connect`, so it was kept"
            advice = f"Its original is in {change.copy}."
            notes.append(PlanNote(kind="left", subject=str(where[-1]), fact=fact, advice=advice))
    return edit(now, merged)


def _without_ours(theirs: object, before: object, after: object, where: KeyPath) -> object:
    """Reset an entry that `connect` wrote and others extended to its written form, so that the merge removes it.

    This applies only while the entry still points at the gateway.
    """
    ours, found = _entry(after, where), _entry(theirs, where)
    if _entry(before, where) is not ABSENT or not isinstance(ours, dict) or not isinstance(found, dict):
        return theirs
    targets = [key for key in _TARGETS if key in ours]
    if targets and all(is_same_value(ours[key], found.get(key, ABSENT)) for key in targets):
        return apply_edits(theirs, [(_place(theirs, where), ours)])
    return theirs


def _entry(value: object, where: KeyPath) -> object:
    return value_at(value, _place(value, where))


def _place(value: object, where: KeyPath) -> KeyPath:
    """Return the path of an entry by its key: in a list, the index of the item with this name, else the next index."""
    holder = value_at(value, where[:-1])
    if not isinstance(holder, list):
        return where
    names = [item.get("name") if isinstance(item, dict) else None for item in holder]
    return (*where[:-1], names.index(where[-1]) if where[-1] in names else len(holder))


def _with_backup(error: ConfigError, changes: Sequence[Backup]) -> ConfigError:
    oldest = changes[-1]
    where = f" The original is in {oldest.copy}." if oldest.before is not None else ""
    return ConfigError(
        code=error.code, file=error.file, key=error.key, problem=error.problem, remedy=f"{error.remedy}{where}"
    )


def check(plan: ConnectionPlan) -> None:
    """Raise `ConfigError` (``left_alone``) if a file of the plan cannot be changed."""
    for step in plan.steps:
        check_file(step.before)


def connect(plan: ConnectionPlan, environ: Mapping[str, str] | None = None) -> tuple[Backup, ...]:
    """Apply a plan and return the backups. All files are checked before the first is changed.

    Files without server entries are changed first: after an interruption, connecting again completes the plan.
    Raises `ConfigError` (``left_alone``).
    """
    check(plan)
    made: list[Backup] = []
    for step in sorted(plan.steps, key=lambda step: bool(step.entries)):
        edits, entries = plain(step.edits), [list(where) for where in step.entries]
        note = {"format": step.before.format, "edits": edits, "entries": entries}
        new = step.after or b""
        made.append(replace_file(step.before, new, client=plan.client, action=CONNECT, environ=environ, note=note))
    return tuple(made)


def disconnect(undoing: Disconnection, environ: Mapping[str, str] | None = None) -> None:
    """Carry out a disconnection and discard the backups that are no longer needed. Raises `ConfigError`."""
    by_path = {step.path: step for step in undoing.steps}
    for path, done in undoing.backups.items():
        if path in undoing.left:
            continue
        if path in by_path:
            _undo(by_path[path], undoing.client, done, environ)
        for backup in done:
            backup.discard()


def _undo(step: PlanStep, client: str, done: tuple[Backup, ...], environ: Mapping[str, str] | None) -> None:
    former = [one for one in backups(environ, client=client, path=step.path) if one.action == DISCONNECT]
    if step.after is None:
        made = tuple(dict.fromkeys(directory for one in done for directory in one.made))
        remove_file(step.before, client=client, action=DISCONNECT, environ=environ, made=made)
    else:
        replace_file(step.before, step.after, client=client, action=DISCONNECT, environ=environ)
    # Only the newest backup of a disconnection is kept: each holds the secrets of the file.
    for backup in former:
        with contextlib.suppress(OSError):
            backup.discard()
