"""README leads a new user from three clients with problems to a called tool, and shows no secret on the way."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.docs.five_minutes import SECRETS, Trial

STEPS = (
    ("truename demo", 0),
    ("truename doctor --start", 1),
    ("truename doctor --start", 1),
    ("truename init --copy-secrets", 0),
    ("truename serve", 0),
    ("truename connect claude-code", 0),
    ("truename connect cursor", 0),
    ("truename connect codex", 0),
    ("(the client calls", 0),
    ("truename doctor --start", 0),
)


def test_a_new_user_comes_from_a_broken_set_up_to_a_called_tool(tmp_path: Path) -> None:
    trial = Trial(tmp_path, Path(sys.executable).parent)

    trial.run()

    ran = [(step.command, step.status) for step in trial.steps]
    for (command, status), (begins, expected) in zip(ran, STEPS, strict=True):
        assert command.startswith(begins)
        assert status == expected, trial.steps
    diagnosed, mended = trial.steps[1], trial.steps[2]
    assert "~/.cursor/mcp.json" in diagnosed.shown
    assert "TN001" in diagnosed.shown
    assert "TN001" not in mended.shown
    assert "T-3: Search is slow" in trial.steps[8].shown
    # A terminal breaks lines and colours words in the middle of a secret.
    shown = {step.command: re.sub(r"\x1b\[[0-9;]*m|\s", "", step.shown) for step in trial.steps}
    assert not [command for command, text in shown.items() for secret in SECRETS if secret in text]
