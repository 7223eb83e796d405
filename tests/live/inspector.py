"""The command line of MCP Inspector, a client on the TypeScript SDK: installed below .cache/live."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.live.registries import Npm

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["ERAS", "Inspector"]

ERAS: Final = ("legacy", "modern")
_PACKAGE: Final = Npm("@modelcontextprotocol/inspector@2.12.0", "mcp-inspector")
_PATIENCE: Final = 120


@dataclass(frozen=True, slots=True)
class Inspector:
    """It keeps its own files in ``home``, so that nothing of the user's is read or written."""

    command: tuple[str, ...]
    home: Path

    @classmethod
    def installed(cls, home: Path) -> Inspector:
        """Install it unless it is there. Raises `NotInstalled`."""
        return cls((*_PACKAGE.command("inspector"), "--cli"), home)

    def over_http(self, url: str, era: str, method: str, *options: str) -> dict[str, Any]:
        """Ask an address; raises `AssertionError` with what it said unless it is content."""
        return self._asked(("--transport", "http", *_said(era, method), *options, "--server-url", url))

    def over_stdio(self, server: Sequence[str], era: str, method: str, *options: str) -> dict[str, Any]:
        """Ask a program that it starts, which is told where this Truename is."""
        here = os.environ.get("PYTHONPATH")
        path = ("-e", f"PYTHONPATH={here}") if here else ()
        return self._asked((*_said(era, method), *options, *path, *server))

    def _asked(self, arguments: Sequence[str]) -> dict[str, Any]:
        done = subprocess.run(
            [*self.command, *arguments],
            env={**os.environ, "HOME": str(self.home)},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )

        assert done.returncode == 0, f"status {done.returncode}: {done.stderr[-2000:]}"

        answer: dict[str, Any] = json.loads(done.stdout)["result"]
        return answer


def _said(era: str, method: str) -> tuple[str, ...]:
    strict = ("--strict",) if method == "tools/list" else ()
    wait = ("--connect-timeout", f"{_PATIENCE * 1000}")
    return ("--protocol-era", era, "--method", method, "--format", "json", *wait, *strict)
