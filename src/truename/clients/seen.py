"""A server of a client as a proposal takes it: where it stands, and what its client adds by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final

from truename.clients.plugins import root_of_plugin
from truename.config.entries import Seen
from truename.config.templates import spelling_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.clients.find import Found, Sighting
    from truename.clients.machine import Machine
    from truename.config import ServerConfig

__all__ = ["LOCAL", "OF_PROJECT", "seen_of"]

# Claude Code keeps what a user configured for one project in the user's own file.
LOCAL: Final = "local"
OF_PROJECT: Final = frozenset({"project", LOCAL})
_PLUGIN: Final = "plugin"


def seen_of(sighting: Sighting, found: Found, machine: Machine) -> Seen:
    """Return a sighting in a file as a proposal takes it, with the directory in which its client would start it."""
    base = _base(sighting, machine)
    return Seen(
        client=sighting.client or "file",
        title=found.file.title or "file",
        file=_short(sighting.path, machine.home),
        where=_dotted(sighting.where),
        server=_placed(sighting, base),
        spelling=spelling_of(sighting.client),
        base=base,
        left_out=sighting.left_out,
        remarks=tuple(_remarks(sighting, base)),
    )


def _remarks(sighting: Sighting, base: Path | None) -> Iterator[str]:
    cwd = sighting.server.cwd
    if cwd and base is None and not (cwd.startswith(("$", "~", "{", "%")) or _is_absolute(cwd)):
        yield "cwd is relative to this file now, and was to wherever the client was started"
    if sighting.left_out:
        yield f"not carried over: {', '.join(sighting.left_out)}"


def _base(sighting: Sighting, machine: Machine) -> Path | None:
    """Return the project or plugin that a server belongs to."""
    if sighting.scope == _PLUGIN:
        return root_of_plugin(sighting.path)
    if sighting.scope not in OF_PROJECT:
        return None
    named = (Path(part) for part in sighting.where[1:2] if sighting.scope == LOCAL and isinstance(part, str))
    return next((path for path in named if path.is_absolute()), None) or _holder(sighting.path, machine)


def _holder(file: Path, machine: Machine) -> Path:
    """Return the project of a file: the one that was looked at, or where the file lies (its ``.vscode`` apart)."""
    if file.absolute().is_relative_to(machine.project):
        return machine.project
    directory = file.absolute().parent
    return directory.parent if directory.name.startswith(".") else directory


def _placed(sighting: Sighting, base: Path | None) -> ServerConfig:
    """Give a project's server the directory in which its client would have started it."""
    server = sighting.server
    if base is None or sighting.scope == _PLUGIN or server.command is None or (server.cwd or "").startswith("$"):
        return server
    return replace(server, cwd=str(base / server.cwd) if server.cwd else str(base))


def _short(path: Path, home: Path) -> str:
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _is_absolute(text: str) -> bool:
    return PurePosixPath(text).is_absolute() or PureWindowsPath(text).is_absolute()


def _dotted(where: Sequence[str | int]) -> str:
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
