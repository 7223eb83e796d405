"""Where the compared gateways are installed: each in an environment of its own, beside the project's.

The versions stand with the peers. Nothing is installed into the project's environment, and what is there already
with the same packages is used again.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Environment", "NodeEnvironment", "NotInstalled", "PythonEnvironment"]

_MARK: Final = "installed.txt"


class NotInstalled(Exception):
    """A gateway cannot be had on this machine."""


class Environment(Protocol):
    """A folder into which packages are installed."""

    @property
    def packages(self) -> tuple[str, ...]: ...

    def create(self, folder: Path) -> list[list[str]]:
        """Return the commands that install the packages; raise `NotInstalled` if a tool for it is missing."""
        ...

    def version(self, folder: Path) -> str:
        """Return the version of the first package, as it is installed."""
        ...


@dataclass(frozen=True)
class PythonEnvironment:
    """A virtual environment with packages of PyPI; the first is the gateway."""

    packages: tuple[str, ...]

    def create(self, folder: Path) -> list[list[str]]:
        python = str(folder / "bin" / "python")
        return [
            [sys.executable, "-m", "venv", str(folder)],
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *self.packages],
        ]

    def version(self, folder: Path) -> str:
        name = self.packages[0].partition("=")[0].partition("[")[0]
        program = f"from importlib.metadata import version; print(version({name!r}))"
        return subprocess.check_output([str(folder / "bin" / "python"), "-c", program], text=True).strip()


@dataclass(frozen=True)
class NodeEnvironment:
    """A folder with packages of npm; the first is the gateway."""

    packages: tuple[str, ...]

    def create(self, folder: Path) -> list[list[str]]:
        npm = shutil.which("npm")
        if npm is None:
            raise NotInstalled("this machine has no npm")
        return [[npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent", *self.packages]]

    def version(self, folder: Path) -> str:
        name = self.packages[0].rpartition("@")[0]
        return str(json.loads((folder / "node_modules" / name / "package.json").read_text())["version"])


def install(environment: Environment, folder: Path) -> str:
    """Install what is not there yet, and return the gateway's version. Raises `NotInstalled`."""
    wanted, mark, log = "\n".join(environment.packages), folder / _MARK, folder.with_suffix(".log")
    if not mark.exists() or mark.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for command in environment.create(folder):
            with log.open("ab") as output:
                if subprocess.run(command, stdout=output, stderr=output, check=False).returncode:
                    raise NotInstalled(f"{' '.join(environment.packages)} cannot be installed (see {log.name})")
        mark.write_text(wanted)
    return environment.version(folder)
