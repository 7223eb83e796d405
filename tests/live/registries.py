"""Packages of real servers, installed below .cache/live: each in a place of its own, once for each version."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.conformance.suite import SuiteMissing, node_and_npm

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["HOME", "NotInstalled", "Npm", "PyPI"]

HOME: Final = Path(__file__).parents[2] / ".cache" / "live"
_BIN: Final = Path(sys.executable).parent
_MARK: Final = "installed.txt"
_PATIENCE: Final = 300.0


class NotInstalled(Exception):
    """A package cannot be had here; the text says why."""


@dataclass(frozen=True, slots=True)
class PyPI:
    """Packages in a virtual environment of their own, and the program in it that is the server."""

    requirements: tuple[str, ...]
    program: str

    def command(self, key: str) -> tuple[str, ...]:
        """Install them unless they are there, and return how the program is started. Raises `NotInstalled`."""
        home = HOME / key
        if _is_new(home, self.requirements):
            uv = str(_BIN / "uv")
            _run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(home)])
            _run([uv, "pip", "install", "-q", "--python", str(home / "bin" / "python"), *self.requirements])
            _mark(home, self.requirements)
        return (str(home / "bin" / self.program),)


@dataclass(frozen=True, slots=True)
class Npm:
    """A package with its dependencies, whose scripts of installation are not run, and its program."""

    package: str
    program: str

    def command(self, key: str) -> tuple[str, ...]:
        """Install it unless it is there, and return how the program is started. Raises `NotInstalled`."""
        home = HOME / key
        try:
            node, npm = node_and_npm()
        except SuiteMissing as missing:
            raise NotInstalled(str(missing)) from missing
        if _is_new(home, (self.package,)):
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir(parents=True)
            (home / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
            quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
            _run([str(node), str(npm), "install", *quiet, self.package], home, node.parent)
            _mark(home, (self.package,))
        return (str(node), str(home / "node_modules" / ".bin" / self.program))


def _is_new(home: Path, wanted: Sequence[str]) -> bool:
    mark = home / _MARK
    return not mark.is_file() or mark.read_text(encoding="utf-8").split("\n") != list(wanted)


def _mark(home: Path, wanted: Sequence[str]) -> None:
    (home / _MARK).write_text("\n".join(wanted), encoding="utf-8")


def _run(command: Sequence[str], folder: Path | None = None, programs: Path = _BIN) -> None:
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from error
    if done.returncode:
        raise NotInstalled(done.stderr.strip()[-500:] or f"{command[0]} ended with status {done.returncode}")
