"""A command whose work can take long shows on a terminal what it is doing, and nothing of that anywhere else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import DUMP

if TYPE_CHECKING:
    from tests.cli.conftest import Run

STEPS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("names", "dump.json", "--for", "cursor"), ("Reading dump.json", "Making the names for Cursor")),
    (("resolve", "github_search", "dump.json"), ("Reading dump.json", "Making the names")),
    (("profiles", "dump.json"), ("Reading dump.json",)),
    (("doctor", "dump.json"), ("Reading the files", "Checking the tools of each client")),
    (("lint", "dump.json"), ("Reading the tools", "Checking the tools")),
    (("lock", "dump.json"), ("Reading the tools", "Computing the digests", "Comparing the tools with the lock")),
    (("diff", "dump.json", "dump.json"), ("Reading the tools", "Comparing the tools")),
)


@pytest.mark.parametrize(("words", "steps"), STEPS, ids=[words[0] for words, _ in STEPS])
@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
def test_the_step_in_progress_is_shown_on_a_terminal_only(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], steps: tuple[str, ...], *, terminal: bool
) -> None:
    Path("dump.json").write_text(json.dumps(DUMP), "utf-8")
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")

    done = run(*words, "--json")

    assert [step in done.err for step in steps] == [terminal] * len(steps)
    assert done.document
