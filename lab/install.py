"""Installing clients below the lab's home: npm packages with the lab's own node, Python packages with uv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from lab import clients, places

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lab.clients import Client

__all__ = ["install"]

_PYTHON: Final = "3.12"
_CHOICE: Final = "TRUENAME_LAB_PYTHON"
_NPM: Final = ("install", "--no-audit", "--no-fund", "--no-progress", "--legacy-peer-deps", "--save-exact")


def install(client: Client) -> None:
    """Install a client's packages in their exact versions. Raises `RuntimeError` if that fails."""
    try:
        _python(client) if client.kind == "python" else _node(client)
    except (subprocess.CalledProcessError, OSError) as error:
        raise RuntimeError(f"{client.name} cannot be installed: {error}. See what was said above.") from error


def _node(client: Client) -> None:
    # With an older node npm silently takes older versions of some clients.
    if not (clients.node() / "node").exists():
        _npm(clients.node().parent.parent, [clients.toolchain()["node"]])
    _npm(client.place, client.packages)


def _npm(folder: Path, packages: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "package.json"
    if not package.exists():
        package.write_text(json.dumps({"name": "lab", "private": True, "type": "module"}), encoding="utf-8")
    path = f"{clients.node()}{os.pathsep}{os.environ['PATH']}"
    npm = shutil.which("npm", path=path) or "npm"
    subprocess.run([npm, *_NPM, *packages], cwd=folder, env=dict(os.environ) | {"PATH": path}, check=True)


def _python(client: Client) -> None:
    uv, chosen = _uv(), os.environ.get(_CHOICE, _PYTHON)
    if not (client.place / "bin").is_dir():
        made = subprocess.run([uv, "venv", "--quiet", "--python", chosen, str(client.place)], check=False)
        if made.returncode:
            raise RuntimeError(f"There is no Python {chosen} for {client.name}. Set {_CHOICE} to a Python {_PYTHON}.")
    python = client.program("python")
    subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *client.packages], check=True)


def _uv() -> str:
    if found := shutil.which("uv"):
        return found
    own = places.home() / "uv"
    if not own.is_dir():
        subprocess.run([sys.executable, "-m", "venv", str(own)], check=True)
        subprocess.run([own / "bin" / "pip", "install", "--quiet", clients.toolchain()["uv"]], check=True)
    return str(own / "bin" / "uv")
