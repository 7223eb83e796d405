"""Every block of the documentation runs, and prints what its page says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.blocks import NOT_RUN_LANGUAGES, pages, read_blocks
from tests.docs.not_run import TABLE, table
from tests.docs.runner import PageRun
from tests.shared import ROOT

if TYPE_CHECKING:
    from pathlib import Path


def has_blocks(page: str) -> bool:
    blocks = read_blocks((ROOT / page).read_text("utf-8"))
    return any(block.title or block.language not in NOT_RUN_LANGUAGES for block in blocks)


@pytest.mark.parametrize("page", [page for page in pages() if has_blocks(page)])
def test_every_block_of_the_page_runs(page: str, tmp_path: Path) -> None:
    PageRun(page, tmp_path).run((ROOT / page).read_text("utf-8"))


def test_blocks_that_are_not_run_are_those_of_the_table() -> None:
    assert TABLE.read_text("utf-8") == table(), "python -m tests.docs.not_run"
