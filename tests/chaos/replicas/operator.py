"""`python -m tests.chaos.replicas.operator [FAULT]`: an operator at the command line, who runs a command for each line.

Each line of standard input is a JSON list of words; each answer is one line, ``[EXIT STATUS, STANDARD OUTPUT]``.
"""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from tests.chaos.replicas.faults import FAULTS
from truename.cli import main


def run(words: list[str]) -> tuple[int, str]:
    """Run one command."""
    said, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(errors):
        status = main(words)
    return status, said.getvalue() or errors.getvalue()


if __name__ == "__main__":
    for fault in sys.argv[1:]:
        FAULTS[fault]()
    for line in sys.stdin:
        answer = json.dumps(run(json.loads(line)))
        sys.__stdout__.write(answer + "\n")  # type: ignore[union-attr]
        sys.__stdout__.flush()  # type: ignore[union-attr]
