"""Executing rows and reporting: one line for each that fails, and the count."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tests.acceptance import (
    ops_agents,
    ops_agents_approvals,
    ops_agents_wire,
    ops_conventions,
    ops_exposure,
    ops_lint,
    ops_migration,
    ops_names,
    ops_servers,
    ops_skew,
)
from tests.acceptance.ops import OPS
from tests.acceptance.rows import SEEDS, Row, Unreadable, read
from tests.acceptance.verdict import FAILED, PASSED, SKIPPED, Verdict, compare, expected
from tests.acceptance.words import LATER
from tests.acceptance.world import NEW_LEDGER, NO_LEDGER, USED_LEDGER, NotChecked, remembering, typed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.acceptance.ops import Facts, Op

__all__ = ["execute", "main"]

# Importing these modules is what fills the table of ops.
_MODULES = (
    ops_names,
    ops_servers,
    ops_agents,
    ops_agents_wire,
    ops_agents_approvals,
    ops_conventions,
    ops_exposure,
    ops_lint,
    ops_migration,
    ops_skew,
)


def execute(row: Row) -> Verdict:
    """Return what became of a row; nothing that a row holds makes this raise."""
    try:
        return _executed(row)
    except NotChecked as reason:
        return Verdict(SKIPPED, str(reason))
    except Exception as error:  # noqa: BLE001 - whatever a row brings about is its failure, not the driver's
        return Verdict(FAILED, f"raised {type(error).__name__}: {str(error)[:300]}")


def _executed(row: Row) -> Verdict:
    if row.fault:
        return Verdict(SKIPPED, row.fault)
    known = OPS.get((row.shape, row.op))
    if known is None:
        return Verdict(SKIPPED, _why_not(row))
    _check_given(row, known)
    # An unknown name is passed through only where the row says that it has to be.
    asked = {"passthrough": True} if row.op == "resolve" and "passthrough" in row.expect else {}
    for memory in (NO_LEDGER, NEW_LEDGER, USED_LEDGER) if known.names else (NO_LEDGER,):
        with remembering(memory):
            verdict = _compared(row, partial(known.observe, {"op": row.op, **row.given, **asked}))
        if verdict.status != PASSED:
            return verdict if memory == NO_LEDGER else Verdict(verdict.status, f"with {memory}: {verdict.reason}")
    return verdict


def _compared(row: Row, observe: Callable[[], Facts]) -> Verdict:
    try:
        return compare(expected(row), typed({}, observe))
    except NotChecked:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a row brings about is its failure, not the driver's
        return Verdict(FAILED, f"raised {type(error).__name__}: {str(error)[:300]}")


def _why_not(row: Row) -> str:
    if row.shape != SEEDS:
        return "it is about identity layers and approvals, which are not built yet"
    capability = next((name for name, ops in LATER.items() if row.op in ops), None)
    return f"it waits for {capability}" if capability else "no such op is known"


def _check_given(row: Row, known: Op) -> None:
    missing = [group for group in known.needs if not any(word in row.given for word in group.split("|"))]
    strange = sorted(row.given.keys() - known.takes)
    if missing:
        raise NotChecked(f"it does not give {', '.join(sorted(missing))}")
    if strange:
        raise NotChecked(f"it gives {', '.join(strange)}, which is not understood")


def main(files: Iterable[str], out: TextIO, *, verbose: bool = False) -> int:
    """Execute the rows of all files, report to ``out``, and return the exit status: 0 only if none failed."""
    count: Counter[str] = Counter()
    for file in files:
        for row, verdict in _verdicts(Path(file)):
            count[verdict.status] += 1
            if verdict.status == FAILED:
                print(_line(row, verdict), file=out)
            elif verdict.status == SKIPPED and verbose:
                print(f"{_line(row, verdict)} (skipped)", file=out)
    print(f"{count[PASSED]} passed, {count[FAILED]} failed, {count[SKIPPED]} skipped", file=out)
    return 1 if count[FAILED] else 0


def _verdicts(path: Path) -> Iterable[tuple[Row, Verdict]]:
    try:
        rows = read(path)
    except Unreadable as error:
        return [(Row(path.name, "?", {}, {}), Verdict(FAILED, str(error)))]
    return ((row, execute(row)) for row in rows)


def _line(row: Row, verdict: Verdict) -> str:
    text = f"{row.id[:100]} {row.op[:100]}: {verdict.reason}"
    return text if text.isprintable() and text.isascii() else ascii(text)[1:-1]
