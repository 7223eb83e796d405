"""The example for frameworks without an adapter runs, and does what its page says."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

from tests.shared import ROOT
from truename.errors import ApprovalRequired
from truename.ledger import Ledger
from truename.policy import Approvals, Policy

EXAMPLE = ROOT / "examples" / "own_loop.py"
PAGE = (ROOT / "docs" / "adapters.md").read_text("utf-8")


def test_the_example_says_what_the_page_shows() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=True)

    assert done.stderr == ""
    assert f"$ python examples/own_loop.py\n{done.stdout}" in PAGE


def test_what_nobody_decided_on_is_not_run() -> None:
    example = runpy.run_path(str(EXAMPLE))
    names = example["names_of"](example["LISTED"], Ledger.memory())
    payload = {"name": "files_fs_delete", "call_id": "c", "arguments": '{"path": "a.txt"}'}

    with pytest.raises(ApprovalRequired):
        example["answer_to"](payload, names, Policy(approvals=Approvals()))


@pytest.mark.parametrize("wrong", [{"call_id": 3}, {"arguments": "[]"}, {"name": "files_fs_remove"}, {"surprise": 1}])
def test_a_payload_that_is_wrong_is_answered_in_words(wrong: dict[str, object]) -> None:
    example = runpy.run_path(str(EXAMPLE))
    names = example["names_of"](example["LISTED"], Ledger.memory())
    payload = {"name": "files_fs_delete", "call_id": "c", "arguments": '{"path": "a.txt"}'} | wrong

    assert "nothing was run" in example["answer_to"](payload, names, Policy(default="allow"))
