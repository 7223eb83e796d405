"""Installing clients below the lab's home: npm packages with the lab's own node, Python packages with uv."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

from lab import clients, places

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from lab.clients import Client

__all__ = ["install", "newest"]

_PYTHON: Final = "3.12"
_CHOICE: Final = "TRUENAME_LAB_PYTHON"
# What `pip index versions` prints first.
_INDEX: Final = re.compile(r"\S+ \((?P<version>[^()\s]+)\)")
_NPM: Final = ("install", "--no-audit", "--no-fund", "--no-progress", "--legacy-peer-deps", "--save-exact")


def install(client: Client) -> None:
    """Install a client's packages in their exact versions. Raises `RuntimeError` if that fails."""
    try:
        _python(client) if client.kind == "python" else _node(client)
    except (subprocess.CalledProcessError, OSError) as error:
        raise RuntimeError(f"{client.name} cannot be installed: {error}. See what was said above.") from error


def newest(client: Client) -> str:
    """Return the newest version of a client's own package. Raises `RuntimeError` if its registry does not say."""
    try:
        return _newest_python(client.package) if client.kind == "python" else _newest_node(client.package)
    except (subprocess.CalledProcessError, OSError) as error:
        raise RuntimeError(f"The newest version of {client.package} is not known: {error}.") from error


def _newest_node(package: str) -> str:
    _with_node()
    npm, env = _npm_program()
    said = subprocess.run([npm, "view", package, "version"], env=env, check=True, capture_output=True, text=True)
    return said.stdout.strip()


def _newest_python(package: str) -> str:
    command = [_own_pip(), "index", "versions", package]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = _INDEX.fullmatch(said.partition("\n")[0].strip())
    if found is None:
        raise RuntimeError(f"The newest version of {package} is not known: pip answers {said[:80]!r}.")
    return found["version"]


def _with_node() -> None:
    # With an older node npm silently takes older versions of some clients.
    if not (clients.node() / "node").exists():
        _npm(clients.node().parent.parent, [clients.toolchain()["node"]])


def _node(client: Client) -> None:
    _with_node()
    _npm(client.place, client.packages)


def _npm_program() -> tuple[str, dict[str, str]]:
    path = f"{clients.node()}{os.pathsep}{os.environ['PATH']}"
    return shutil.which("npm", path=path) or "npm", dict(os.environ) | {"PATH": path}


def _npm(folder: Path, packages: Sequence[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    package = folder / "package.json"
    if not package.exists():
        package.write_text(json.dumps({"name": "lab", "private": True, "type": "module"}), encoding="utf-8")
    npm, env = _npm_program()
    # What npm prints is about the installation, not the answer of a command.
    subprocess.run([npm, *_NPM, *packages], cwd=folder, env=env, check=True, stdout=sys.stderr)


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
    program = places.home() / "uv" / "bin" / "uv"
    if not program.exists():
        subprocess.run([_own_pip(), "install", "--quiet", clients.toolchain()["uv"]], check=True)
    return str(program)


def _own_pip() -> str:
    own = places.home() / "uv"
    if not own.is_dir():
        subprocess.run([sys.executable, "-m", "venv", str(own)], check=True)
    return str(own / "bin" / "pip")
