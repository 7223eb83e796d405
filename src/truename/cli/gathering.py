"""Servers that clients have, as sightings for a proposal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Final

from truename.clients import find, read_source
from truename.clients.plugins import root_of_plugin
from truename.config.entries import Seen
from truename.config.templates import spelling_of
from truename.files.person import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from truename.clients import Found, Machine, Sighting
    from truename.config import ServerConfig
    from truename.errors import ConfigError

    Counts = Callable[[Sighting, Path | None], bool]

__all__ = ["Gathered", "gather"]

# Claude Code keeps what a user configured for one project in the user's own file.
_LOCAL: Final = "local"
_PLUGIN: Final = "plugin"
_OF_PROJECT: Final = frozenset({"project", "local"})


@dataclass(frozen=True, kw_only=True)
class Gathered:
    """What was found: servers, files that can't be read, and servers that a project has and nobody named."""

    seen: tuple[Seen, ...]
    problems: tuple[ConfigError, ...]
    unnamed: tuple[Seen, ...] = ()


def gather(sources: Sequence[str], machine: Machine, *, project: bool) -> Gathered:
    """Return the servers of the files named, or else of all clients of the machine.

    What a project's own files configure counts only if ``project`` or its file is named: they may be a stranger's.
    """
    if sources:
        named = tuple(read_source(at_home(source)) for source in sources)
        return _gathered(named, machine, lambda _, __: True)
    return _gathered(
        find(machine),
        machine,
        lambda sighting, base: (
            sighting.scope not in _OF_PROJECT or (project and (sighting.scope != _LOCAL or base == machine.project))
        ),
    )


def _gathered(found: Iterable[Found], machine: Machine, counts: Counts) -> Gathered:
    seen: list[Seen] = []
    unnamed: list[Seen] = []
    problems: dict[str, ConfigError] = {}
    for one in found:
        if one.problem is not None:
            problems.setdefault(str(one.problem), one.problem)
        for sighting in one.servers:
            it = _seen(sighting, one, machine).guarded
            (seen if counts(sighting, it.base) else unnamed).append(it)
    return Gathered(seen=tuple(seen), problems=tuple(problems.values()), unnamed=tuple(unnamed))


def _seen(sighting: Sighting, found: Found, machine: Machine) -> Seen:
    base = _base(sighting, machine)
    return Seen(
        client=sighting.client or "file",
        title=found.file.title or "file",
        file=_short(sighting.path, machine.home),
        where=_dotted(sighting.where),
        server=_placed(sighting, base),
        spelling=spelling_of(sighting.client),
        base=base,
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
    if sighting.scope not in _OF_PROJECT:
        return None
    named = (Path(part) for part in sighting.where[1:2] if sighting.scope == _LOCAL and isinstance(part, str))
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
