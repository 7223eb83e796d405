"""Clean environments: what was built and what it needs, and nothing else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.package.commands import BIN, CONSTRAINTS, ROOT, run

# Nothing of the environment that builds and tests may be found by what was installed.
_FOREIGN: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "XDG_STATE_HOME", "XDG_CONFIG_HOME")


def surroundings(place: Path, **more: str) -> dict[str, str]:
    """Return the environment of a command: a home of its own, and nothing of this one's Python."""
    home = place / "home"
    home.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in os.environ.items() if key not in _FOREIGN}
    return {**kept, "HOME": str(home), "XDG_STATE_HOME": str(home / "state"), **more}


def install(folder: Path, package: str, python: str | Path = BIN / "python") -> Path:
    """Make an environment with a package and what it needs; return its Python."""
    run(BIN / "uv", "venv", "--quiet", "--python", python, folder)
    here = folder / "bin" / "python"
    run(BIN / "uv", "pip", "install", "--quiet", "--python", here, "--constraint", CONSTRAINTS, package)
    run(BIN / "uv", "pip", "check", "--quiet", "--python", here)
    return here


def install_with_pip(folder: Path, package: str) -> Path:
    """The same by the ways that every Python has."""
    run(BIN / "python", "-m", "venv", folder)
    here = folder / "bin" / "python"
    run(here, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", CONSTRAINTS, package)
    run(here, "-m", "pip", "check")
    return here


def pythons() -> list[Path]:
    """Return one interpreter for each version of Python here that Truename runs on, the oldest first."""
    least = (3, 11)
    places = [Path(folder) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder]
    kept = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found: dict[tuple[int, int], Path] = {}
    names = (path for folder in [*places, *kept.glob("*/bin")] for path in folder.glob("python3.*"))
    for path in [BIN / "python", *names]:
        if not re.fullmatch(r"python(3\.\d+)?", path.name) or not (path.is_file() and os.access(path, os.X_OK)):
            continue
        asked = "import sys; print(*sys.version_info[:2])"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode == 0:
            major, minor = map(int, done.stdout.split())
            if (major, minor) >= least:
                found.setdefault((major, minor), path)
    return [found[version] for version in sorted(found)]


def tool(name: str) -> str | None:
    """Return where a program is that the tests' environment or the machine has."""
    return shutil.which(name, path=f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}")
