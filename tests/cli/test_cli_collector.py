"""A gateway that serves spares the collector what stood before the first call, which it would look at each time."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import fake

if TYPE_CHECKING:
    from pathlib import Path

_TOLD = """
import atexit, gc, sys
atexit.register(lambda: print("spared", gc.get_freeze_count(), gc.get_threshold()[0], file=sys.stderr))
from truename.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize("words", [[], ["--http", "127.0.0.1:0"]], ids=["stdio", "http"])
def test_what_stood_before_the_first_call_is_spared(words: list[str], tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    settings = {"state": "memory", "trust": {"pins": "memory"}}
    file.write_text(json.dumps({"mcpServers": {"near": fake("near", "get")}, "truename": settings}), "utf-8")
    command = [sys.executable, "-c", _TOLD, "serve", str(file), *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, encoding="utf-8") as process:
        lines = process.stdout if words else process.stderr
        assert lines is not None
        next(line for line in lines if ("Ctrl-C ends it" if words else "Serving over") in line)
        if words:
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    found = re.search(r"spared (\d+) (\d+)", said)
    assert found is not None, said
    # The libraries alone are tens of thousands of objects; Python's own threshold is some hundreds.
    assert int(found[1]) > 10_000
    assert int(found[2]) > 1_000
