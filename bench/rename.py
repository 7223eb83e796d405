"""`python -m bench.rename`: how long a rename takes in a repository of 2,000 files; never fails on it."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from tests.migration.repository import RENAMES, contents, make
from truename.migration import apply, plan, survey, undo

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
_FILES: Final = 2_000


def main() -> int:
    """Measure the survey, the change, the undoing, and what a dictionary of all bytes costs beside them."""
    with tempfile.TemporaryDirectory() as directory:
        root, state = make(Path(directory) / "repository", _FILES), Path(directory) / "state"
        before = contents(root)
        size = sum(map(len, before.values()))
        print(f"{len(before):,} files, {size / 1e6:.1f} MB, {len(RENAMES)} names")
        found = _timed("look", lambda: survey(plan(RENAMES), [root], rename_files=True))
        print(f"  {len(found.changes):,} files to change in {found.edits:,} places, {len(found.leftovers):,} left over")
        _timed("change", lambda: apply(found.changes, state))
        again = _timed("look again", lambda: survey(plan(RENAMES), [root], rename_files=True))
        print(f"  {len(again.changes)} files to change")
        _timed("undo", lambda: undo(state, Path.cwd()))
        print(f"  every byte as before: {contents(root) == before}")
        _timed("read all", lambda: contents(root))
    return 0


def _timed(what: str, run: Callable[[], T]) -> T:
    begun = time.perf_counter()
    result = run()
    print(f"{what:>10}: {time.perf_counter() - begun:.2f} s")
    return result


if __name__ == "__main__":
    sys.exit(main())
