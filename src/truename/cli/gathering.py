"""Servers that clients have, as sightings for a proposal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from truename.clients import find, read_source
from truename.clients.selection import LOCAL, OF_PROJECT, seen_of
from truename.files.user import at_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from truename.clients import FoundFile, Machine, Sighting
    from truename.config.entries import Seen
    from truename.errors import ConfigError

    Counts = Callable[[Sighting, Path | None], bool]

__all__ = ["Gathered", "gather"]


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
            sighting.scope not in OF_PROJECT or (project and (sighting.scope != LOCAL or base == machine.project))
        ),
    )


def _gathered(found: Iterable[FoundFile], machine: Machine, counts: Counts) -> Gathered:
    seen: list[Seen] = []
    unnamed: list[Seen] = []
    problems: dict[str, ConfigError] = {}
    for one in found:
        if one.problem is not None:
            problems.setdefault(str(one.problem), one.problem)
        for sighting in one.servers:
            it = seen_of(sighting, one, machine).guarded
            (seen if counts(sighting, it.base) else unnamed).append(it)
    return Gathered(seen=tuple(seen), problems=tuple(problems.values()), unnamed=tuple(unnamed))
