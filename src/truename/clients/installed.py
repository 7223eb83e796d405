"""Find the clients that are installed for a user, by their files and directories: nothing is started or asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.clients.machine import is_there
from truename.clients.table import config_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from truename.clients.machine import Machine
    from truename.clients.table import ConfigFile

__all__ = ["installed_clients"]

# Directories of a home that exist without any client.
_SHARED: Final = ("", ".config", ".local/share", "Library", "Library/Application Support", "AppData/Roaming", "AppData")


def installed_clients(machine: Machine) -> tuple[str, ...]:
    """Return the clients of which a user has a file, or the directory where it belongs.

    A client that was never started may have neither. Files of projects do not count: they are there for everybody who
    works on them.
    """
    shared = {machine.home / name if name else machine.home for name in _SHARED}
    found = (file.client for file in config_files() if file.shape and _is_there(file, machine, shared))
    return tuple(dict.fromkeys(found))


def _is_there(file: ConfigFile, machine: Machine, shared: set[Path]) -> bool:
    return file.scope == "user" and any(
        is_there(path) or (path.parent not in shared and path.parent.is_dir()) for path in _paths(file, machine)
    )


def _paths(file: ConfigFile, machine: Machine) -> Iterator[Path]:
    for pattern in file.paths.get(machine.system, ()):
        yield from (path for path in machine.expand(pattern) if path.is_relative_to(machine.home))
