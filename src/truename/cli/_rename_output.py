"""Print a rename: the plan, the changes in files, the old names that are left, and the ledger's redirects."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from truename.cli._rendering import Cell, print_json, print_table, say, show, show_diff, styled
from truename.files.replacing import absolute
from truename.migration import REASONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from truename.migration import (
        AppliedRename,
        FileRewrite,
        LedgerEntry,
        LeftMention,
        Originals,
        PlanRemark,
        RenamePlan,
        Survey,
    )

__all__ = ["RenameResult", "print_done", "print_left", "print_undone"]

_MOST: Final = 100
_REASONS: Final = tuple(REASONS)


@dataclass(frozen=True, kw_only=True)
class RenameResult:
    """The state of a rename: planned, found in files (``survey``), applied to files, recorded in the ledger."""

    plan: RenamePlan
    unclear: Mapping[str, str]
    until: str = ""
    clean_break: bool = False
    has_ledger: bool = False
    count_up: bool = False
    survey: Survey | None = None
    record: Path | None = None
    applied: AppliedRename | None = None
    entered: tuple[LedgerEntry, ...] = ()
    unknown: tuple[str, ...] = ()
    recovered: tuple[Originals, ...] = ()


def print_done(done: RenameResult, *, as_json: bool, diff: bool) -> None:
    """Print a rename, as text or as one JSON document."""
    if as_json:
        print_json(_plain(done))
        return
    _print_plan(done)
    if done.survey is not None:
        _print_changes(done.survey, done, diff=diff)
        _print_leftovers(done.survey.leftovers)
    _print_end(done)


def print_left(plan: RenamePlan, found: Survey, *, as_json: bool) -> None:
    """Print the old names that are left in files: those that can be changed, and those that need a person."""
    if as_json:
        print_json({"renames": dict(plan.renames), **_plain_survey(found), "clean": found.is_clean})
        return
    for change in found.changes:
        for edit in change.edits[:_MOST]:
            show(styled(f"{_near(change.path)}:{edit.line}:{edit.column}", "cyan"), f"  {edit.old or edit.new}")
    _print_leftovers(found.leftovers)
    count = found.edits + len(found.leftovers) + sum(1 for change in found.moved if not change.edits)
    files = f"{found.files:,} file{'' if found.files == 1 else 's'}"
    left = "1 old name is" if count == 1 else f"{count:,} old names are"
    show(f"{left} left in {files}." if count else f"No old name is left in {files}.")


def print_undone(undone: AppliedRename, *, as_json: bool) -> None:
    """Print the files that were restored."""
    last = undone.originals
    if as_json:
        print_json(
            {
                "undone": None if last is None else last.time,
                "files": undone.files,
                "recovered": _times(undone.recovered),
            }
        )
        return
    _tell_recovered(undone.recovered)
    if last is None:
        show("No rename to undo in this directory; run it where the rename was made.")
        return
    show(f"{_files(undone.files)} restored to the state before the rename of {last.time}.")
    if isinstance(last.note, dict) and last.note.get("ledger"):
        show("The ledger keeps its entries: a name that was withdrawn never means another tool.")


def _print_plan(done: RenameResult) -> None:
    plan = done.plan
    if plan.renames:
        rows: list[list[Cell]] = [[old, styled(new, "bold cyan")] for old, new in plan.renames.items()]
        print_table(["old name", "new name"], rows[:_MOST], whole=1)
        _more(len(rows))
        show("")
    elif not done.unclear:
        show("Nothing to rename: all names are as they should be.")
    for name, why in list(done.unclear.items())[:_MOST]:
        say(styled("needs a person: ", "yellow"), f"{name}: {why}")
    _print_remarks("refused: ", "bold red", plan.refusals)
    _print_remarks("note: ", "yellow", plan.warnings)


def _print_remarks(word: str, style: str, remarks: Sequence[PlanRemark]) -> None:
    for remark in remarks[:_MOST]:
        say(styled(word, style), str(remark))
    if len(remarks) > _MOST:
        say(f"... and {len(remarks) - _MOST:,} more; --json lists all.")


def _print_changes(survey: Survey, done: RenameResult, *, diff: bool) -> None:
    show(f"Left out as history: {', '.join(survey.excluded) or 'nothing'}.")
    for file in survey.taken[:_MOST]:
        say(
            styled("note: ", "yellow"),
            f"{file} exists already: another use of the name, or a rename that was made in part.",
        )
    for change in survey.changes[: None if diff else _MOST]:
        if diff:
            show_diff(_near(change.path), change.before, change.after, ())
        else:
            show("  ", styled(str(_near(change.path)), "cyan"), f"  {_what(change)}")
    if not diff:
        _more(len(survey.changes))
    if survey.protocol is not None:
        show(f"The protocol version goes from {survey.protocol.old} to {survey.protocol.new}.")
    elif done.count_up and survey.changes:
        say(
            styled("note: ", "yellow"),
            'No file states a protocol version in the form PROTOCOL_VERSION = "0.2", so none was increased. '
            "Set [migration] protocol in truename.toml if yours has another form.",
        )
    if done.record is not None:
        show(f"The decision record is {_near(done.record)}.")
    show("")


def _what(change: FileRewrite) -> str:
    if change.before is None:
        return "new"
    told = _places(len(change.edits)) if change.edits else ""
    moved = f"becomes {change.target.name}" if change.target != change.path else ""
    return ", ".join(filter(None, (told, moved)))


def _print_leftovers(leftovers: Sequence[LeftMention]) -> None:
    if not leftovers:
        return
    show(styled("Left for a person to check:", "bold"))
    by_reason = sorted(leftovers, key=lambda left: _REASONS.index(left.leftover.reason))
    for reason, found in groupby(by_reason[:_MOST], key=lambda left: left.leftover.reason):
        show(f" {REASONS[reason]}")
        for left in found:
            show(f"  {left}", styled(f"  {left.leftover.text}" if left.leftover.line else "", "dim"))
    _more(len(leftovers))
    show("")


def _print_end(done: RenameResult) -> None:
    plan, survey, applied = done.plan, done.survey, done.applied
    if not plan.ok:
        show("Nothing was changed: fix the refused renames first.")
    elif survey is None:
        show("Nothing was changed. --apply PATH... makes the change, with --dry-run it shows what would change.")
    elif applied is None:
        show(f"{_files(len(survey.changes))} would change, in {_places(survey.edits)}. Nothing was changed.")
    else:
        _tell_recovered(done.recovered)
        if applied.files:
            done_to = f"{_files(applied.files)} changed, in {_places(survey.edits)}."
            show(f"{done_to} `truename rename --undo` restores them.")
        else:
            show(f"Nothing to change in {_files(survey.files)}: no old name is there as a separate token.")
        _tell_ledger(done)


def _tell_ledger(done: RenameResult) -> None:
    if not done.has_ledger and done.clean_break:
        show("No ledger was found; --state PATH updates the ledger of a gateway that showed the old names.")
        return
    if not done.has_ledger:
        show("No ledger was updated, so no gateway knows of the rename. --state PATH names a gateway's ledger;")
        show("--listed-for 90d lists the old name there too, and --clean-break ends it.")
        return
    for name in done.unknown:
        say(styled("note: ", "yellow"), f"{name!r} is not in the ledger, so nothing was recorded for it.")
    count = len({str(promise.text) for promise in done.entered})
    names = "the old name" if count == 1 else f"{count:,} old names"
    if count and done.clean_break:
        show(f"Ledger: {names} ended; a call of one runs nothing, and the error has the new name.")
    elif count:
        verb = "keeps" if count == 1 else "keep"
        listed = f", listed until {done.until}" if done.until else ""
        show(f"Ledger: {names} {verb} working{listed}.")


def _tell_recovered(recovered: Iterable[Originals]) -> None:
    for one in recovered:
        say(styled("note: ", "yellow"), f"The rename of {one.time} was interrupted; its files were restored first.")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count:,} places"


def _more(count: int) -> None:
    if count > _MOST:
        show(f"  ... and {count - _MOST:,} more; --json lists all.")


def _near(path: Path) -> Path:
    """Return the path relative to the current directory, if it is inside."""
    here = absolute(path)
    return here.relative_to(Path.cwd()) if here.is_relative_to(Path.cwd()) else here


def _plain(done: RenameResult) -> dict[str, object]:
    told: dict[str, object] = {
        "renames": dict(done.plan.renames),
        "spellings": dict(done.plan.spellings),
        "unclear": dict(done.unclear),
        "refusals": _plain_remarks(done.plan.refusals),
        "warnings": _plain_remarks(done.plan.warnings),
        "control_plane": list(done.plan.control_plane),
        "dry_run": done.applied is None,
        "ledger": {
            "until": done.until or None,
            "clean_break": done.clean_break,
            "entered": [{"old": promise.old, "new": str(promise.new)} for promise in done.entered],
            "unknown": list(done.unknown),
        }
        if done.has_ledger
        else None,
    }
    if done.survey is not None:
        told |= _plain_survey(done.survey) | {"record": done.record and str(_near(done.record))}
    if done.applied is not None:
        told |= {"applied": done.applied.files, "recovered": _times(done.recovered)}
    return told


def _plain_remarks(remarks: Iterable[PlanRemark]) -> list[dict[str, object]]:
    return [{"kind": remark.kind, "names": list(remark.names), "text": str(remark)} for remark in remarks]


def _plain_survey(survey: Survey) -> dict[str, object]:
    step = survey.protocol
    return {
        "files": survey.files,
        "excluded": list(survey.excluded),
        "protocol": None if step is None else {"old": step.old, "new": step.new},
        "taken": [str(left) for left in survey.taken],
        "changes": [
            {
                "path": str(_near(change.path)),
                "target": str(_near(change.target)),
                "edits": [
                    {"line": edit.line, "column": edit.column, "old": edit.old, "new": edit.new}
                    for edit in change.edits
                ],
            }
            for change in survey.changes
        ],
        "leftovers": [
            {
                "path": str(left.path),
                "line": left.leftover.line,
                "column": left.leftover.column,
                "name": left.leftover.name,
                "reason": left.leftover.reason,
                "text": left.leftover.text,
            }
            for left in survey.leftovers
        ],
    }


def _times(recovered: Iterable[Originals]) -> list[str]:
    return [one.time for one in recovered]
