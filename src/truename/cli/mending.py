"""What `truename lint` writes: baselines, and files without comments that no longer do anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.cli.changes import show_diff
from truename.cli.failure import UsageFault
from truename.cli.rendering import print_json, show, styled
from truename.files.user import at_home
from truename.lint.baseline import read_baseline, written_baseline
from truename.lint.fixes import Fix, replace_bytes, without_comments, without_entries
from truename.lint.source_files import from_here

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from truename.lint.baseline import Baseline
    from truename.lint.report import LintReport
    from truename.lint.settings import LintConfiguration

__all__ = ["accept", "baseline_for", "mend", "show_mended"]


def baseline_for(configured: LintConfiguration, option: str | None, *, must_exist: bool) -> Baseline | None:
    """Return the baseline that is named, configured, or there under its usual name; None if there is none.

    Raises `ConfigError` for one that can't be read, and `UsageFault` for one that is named and not there.
    """
    path, is_named = _baseline_path(configured, option)
    if path.is_file():
        return read_baseline(path)
    if is_named and must_exist:
        raise UsageFault(fact=f"there is no baseline {path}", advice="`truename lint --write-baseline` makes one.")
    return None


def accept(
    report: LintReport, configured: LintConfiguration, option: str | None, held: Baseline | None, *, as_json: bool
) -> int:
    """Write all that can be accepted into the baseline, and say so. Entries of what was not linted stay."""
    path, _ = _baseline_path(configured, option)
    made = report.entries(configured.base)
    gone = {one.fingerprint for one in report.stale}
    kept = [one for one in held.entries if one.fingerprint not in gone] if held is not None else []
    after = written_baseline([*kept, *made])
    before = held.raw if held is not None else None
    if after != before:
        replace_bytes(Fix(path=path, before=before, after=after, done=()))
    refused = len(report.shown) - sum(not one.hidden and one.can_be_accepted for one in report.shown)
    entries = after.count(b"\n") - 1
    if as_json:
        print_json({"baseline": str(path), "entries": entries, "refused": refused})
        return int(refused > 0)
    show(styled(f"{path} holds {entries:,} {'entry' if entries == 1 else 'entries'}.", "bold"))
    if refused:
        show(f"{refused:,} of the findings can't be accepted: what can't be read, and rules that do not exist.")
    return int(refused > 0)


def mend(report: LintReport, held: Baseline | None, *, write: bool) -> tuple[Fix, ...]:
    """Return what can be mended safely, and with ``write`` do it. Raises `ConfigError` before anything is written."""
    found = list(without_comments(report.unused))
    entries = without_entries(held, report.stale) if held is not None else None
    fixes = tuple(found if entries is None else [*found, entries])
    if write:
        for fix in fixes:
            replace_bytes(fix)
    return fixes


def show_mended(fixes: Sequence[Fix]) -> None:
    """Print what would be changed, as a diff."""
    for fix in fixes:
        show_diff(fix.path, fix.before, fix.after, ())
    if not fixes:
        show("Nothing is there that can be mended safely; names are changed by `truename rename`.")


def _baseline_path(configured: LintConfiguration, option: str | None) -> tuple[Path, bool]:
    if option is not None:
        return at_home(option), True
    is_named = bool(configured.settings.baseline or configured.convention.baseline)
    return from_here(configured.baseline), is_named
