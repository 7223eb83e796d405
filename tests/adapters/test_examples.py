"""The example for frameworks without an adapter runs, and does what its page says."""

from __future__ import annotations

import runpy
import subprocess
import sys

import pytest

from tests.shared import ROOT
from truename.conventions import Convention, lint
from truename.errors import ApprovalRequired
from truename.ledger import Ledger
from truename.lint import read_declared
from truename.policy import Approvals, Policy

EXAMPLE = ROOT / "examples" / "own_loop.py"
PAGE = (ROOT / "docs" / "frameworks" / "adapters.md").read_text("utf-8")


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


def test_declared_tools_are_shown_run_recorded_replayed_and_served() -> None:
    page = (ROOT / "docs" / "gateway" / "contexts.md").read_text("utf-8")
    example = ROOT / "examples" / "declared_tools.py"
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, check=True)

    said = done.stdout.splitlines()
    assert done.stderr == ""
    assert f"$ python examples/declared_tools.py\n{said[0]}\n" in page
    assert ["not allowed here" in line for line in said] == [False] * 3 + [True] * 3 + [False] * 3
    assert said[-3:] == [
        "replayed line 1: tapped at 3,4",
        "replayed line 2: opened with camera, a virtual card",
        "served: myapp_ios_open, myapp_close, tap",
    ]


def test_declared_tools_keep_to_the_convention_that_they_show() -> None:
    found = read_declared([ROOT / "examples" / "declared_tools.py"])

    assert len(found.declarations) == 7
    assert lint(found.declarations, Convention.of("trailblaze")).findings == ()
