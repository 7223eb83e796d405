"""A process that is killed at any statement of a claim leaves the state of before the claim, or of after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.shared import ROOT
from tests.support.state_places import new_url

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# The statements of the transaction, and looks before it.
_FEWEST = 20


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_claim_that_is_killed_at_any_statement_was_made_or_was_not(kind: str, tmp_path: Path) -> None:
    place = str(tmp_path) if kind == "sqlite" else new_url().partition("&scope=")[0]
    command = [sys.executable, "-m", "tests.storage.killed_claims", place]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    killed = [json.loads(line) for line in done.stdout.splitlines()]
    states = [state for _, state in killed]
    assert len(states) > _FEWEST
    assert {*states} == {"before", "after"}
    # Once it is made it stays made: the last one ended without being killed.
    assert states == sorted(states, reverse=True)
    assert killed[-1] == ["", "after"]
