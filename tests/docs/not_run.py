"""Write the table of all blocks that the tests do not run: ``python -m tests.docs.not_run``."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

from tests.docs.blocks import pages, read_blocks
from tests.shared import ROOT

__all__ = ["TABLE", "table"]

TABLE: Final = Path(__file__).with_name("not_run.txt")


def table() -> str:
    """Return one line a page and reason: how many blocks the page does not run for it."""
    rows = []
    for page in pages():
        reasons = Counter(block.not_run for block in read_blocks((ROOT / page).read_text("utf-8")) if block.not_run)
        rows += [f"{page}: {count} × {reason}\n" for reason, count in sorted(reasons.items())]
    return "".join(rows)


if __name__ == "__main__":
    TABLE.write_text(table(), "utf-8")
