"""Ops about the linter as a command (seed 003)."""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from pathlib import Path

from tests.acceptance.ops import Facts, Given, op
from tests.acceptance.words import CONVENTION
from truename.cli import main


@op("cli_lint", needs="names", takes="preset")
def cli_lint(given: Given) -> Facts:
    """Run the real command on a dump of these names."""
    with tempfile.TemporaryDirectory() as directory:
        dump = Path(directory, "tools.json")
        dump.write_text(json.dumps([{"name": name} for name in given["names"]]), "utf-8")
        words = ["lint", str(dump), "--preset", given.get("preset", CONVENTION), "--no-baseline", "--json"]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = main(words)
    rules = [one["rule"] for one in json.loads(said.getvalue())["findings"]]
    return {"exit_status": status, "exit_nonzero": status != 0, "ok": status == 0, "rules": rules}
