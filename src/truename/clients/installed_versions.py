"""Find which version of a client is installed, from files beside its program: the program itself is not run.

The first program on ``PATH`` counts, as in a shell; programs below the project's directory do not. Its version is in
npm's ``package.json``, or in its path where a package manager writes it there (Homebrew, the installer of Claude Code).
`ask_version` runs the program; `truename doctor` does so only when it is told to.
"""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from truename.clients.machine import is_glob, like
from truename.dialects import ClientVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from truename.clients.machine import Machine

__all__ = ["InstalledClient", "ask_version", "installed_client"]

_MOST_FOLDERS: Final = 200
_LONGEST: Final = 1024 * 1024
_UPWARDS: Final = 6
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {"windows": (".exe", ".cmd", ".ps1", "")}
# .../Cellar/codex/0.50.0/bin/codex, .../Caskroom/codex/0.50.0/codex
_KEGS: Final = frozenset({"Cellar", "Caskroom"})
# ~/.local/share/claude/versions/2.1.330 is the program itself.
_VERSIONS: Final = "versions"
# Codex publishes 0.130.0-linux-x64 under the name of its package.
_PLATFORM: Final = re.compile(r"-(?:linux|darwin|win32)-[a-z0-9-]+\Z")
_SAID: Final = re.compile(r"(?<![\w.])[vV]?[0-9]+\.[0-9]+(?:\.[0-9]+)*(?:-[0-9A-Za-z.-]+)?(?![\w.])", re.ASCII)
_ANSWER: Final = 4096
_SECONDS: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class InstalledClient:
    """A client that is installed: its program, its version ("" if no file tells), and what told it."""

    client: str
    program: Path
    version: str = ""
    source: str = ""


def installed_client(client: str, machine: Machine) -> InstalledClient | None:
    """Return the program of a client on this machine and its version; None if there is none. Runs and raises nothing.

    Only absolute directories of ``PATH`` are searched, and none below the project.
    """
    row = _table().get(client)
    if row is None:
        return None
    packages: Sequence[str] = row.get("packages", ())
    for program in _programs(row["programs"], machine):
        told = _told_by_package(program, packages) or _told_by_path(program, {client, *row["programs"]})
        version, source = told or ("", "")
        return InstalledClient(client=client, program=program, version=version, source=source)
    return _told_by_folder(client, row.get("folders", ()), machine)


@cache
def _table() -> Mapping[str, Mapping[str, Any]]:
    content = json.loads(Path(__file__).with_name("programs.json").read_bytes())
    clients: Mapping[str, Mapping[str, Any]] = content["clients"]
    return clients


def _programs(names: Iterable[str], machine: Machine) -> Iterator[Path]:
    text = machine.environ.get("PATH", "")
    folders = [Path(one) for one in text.split(os.pathsep)[:_MOST_FOLDERS] if one and "\0" not in one]
    for name in names:
        for folder in folders:
            if not folder.is_absolute() or _is_below(folder, machine):
                continue
            for suffix in _SUFFIXES.get(machine.system, ("",)):
                if _is_program(path := folder / f"{name}{suffix}"):
                    yield path


def _is_below(folder: Path, machine: Machine) -> bool:
    """Return whether a directory belongs to the project, whose files anybody may have written."""
    return machine.project != machine.home and folder.is_relative_to(machine.project)


def _is_program(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode) and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def _told_by_path(program: Path, names: Set[str]) -> tuple[str, str] | None:
    parts = _resolved(program).parts
    # The parts behind are of the same package only if it is called so: Homebrew has node in a keg too.
    places = [at + 2 for at, (keg, name) in enumerate(pairwise(parts)) if keg in _KEGS and name in names]
    if parts[-2:-1] == (_VERSIONS,):
        places.append(len(parts) - 1)
    for at in places:
        if at < len(parts) and _is_version(parts[at]):
            return parts[at], f"its path {Path(*parts[: at + 1])}"
    return None


def _told_by_package(program: Path, packages: Sequence[str]) -> tuple[str, str] | None:
    real = _resolved(program)
    beside = [above / "package.json" for above in real.parents[:_UPWARDS]]
    # A shim that is no link, as on Windows: the packages stand beside it, or below the prefix.
    for name in packages:
        if not is_glob(name):
            beside += [folder / "node_modules" / name / "package.json" for folder in _prefixes(program.parent)]
    for path in beside:
        found = _package(path) or {}
        title, version = found.get("name"), found.get("version")
        if isinstance(title, str) and any(like(title, one) for one in packages) and _is_version(version):
            return _PLATFORM.sub("", str(version)), str(path)
    return None


def _prefixes(folder: Path) -> tuple[Path, ...]:
    return (folder, folder.parent / "lib") if folder.name == "bin" else (folder,)


def _told_by_folder(client: str, patterns: Iterable[str], machine: Machine) -> InstalledClient | None:
    found = [path for pattern in patterns for path in machine.existing(pattern) if _is_version(path.name)]
    if not found:
        return None
    newest = max(found, key=lambda path: ClientVersion.parse(path.name))
    return InstalledClient(client=client, program=newest, version=newest.name, source=f"its path {newest}")


def _package(path: Path) -> Mapping[str, object] | None:
    try:
        # A device or a pipe could block.
        if not stat.S_ISREG(path.stat().st_mode):
            return None
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
        found = json.loads(content) if len(content) <= _LONGEST else None
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def _is_version(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(ClientVersion.parse(value))
    except ValueError:
        return False


def ask_version(found: InstalledClient, home: Path) -> InstalledClient:
    """Run ``PROGRAM --version`` in ``home`` for at most ten seconds, and return the client with the version it prints.

    Without one, the client is returned as it is. Whatever the program started is ended with it.
    """
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(  # noqa: S603 - the user asked for it, and the program is the one on PATH
                [str(found.program), "--version"],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except (OSError, ValueError):
            return found
        with process:
            try:
                process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            finally:
                _end(process)
        output.seek(0)
        said = output.read(_ANSWER).decode("utf-8", "replace")
    match = _SAID.search(said)
    if match is None or not _is_version(match[0]):
        return found
    return replace(found, version=match[0].lstrip("vV"), source="its --version")


def _end(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
