"""The variables that a proposal refers to: their names, where each value stands now, and what is set already."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from truename.config.envfile import VARIABLE
from truename.config.model import ServerConfig
from truename.config.templates import Hole, Ref, Template, variable_name, written

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from truename.config.entries import TemplatedEntry

__all__ = ["Variable", "Variables"]


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A variable that the proposal refers to.

    ``places`` is where its value stands now (file and key); ``said`` what stood there if it was no value but something
    that only the client could fill in. ``value`` is never shown: it is None where none stands anywhere. Without
    ``needed``, only servers that are switched off refer to it.
    """

    name: str
    value: str | None = field(default=None, repr=False)
    places: tuple[str, ...] = ()
    said: str = ""
    is_set: bool = False
    has_default: bool = False
    needed: bool = True


@dataclass(kw_only=True)
class _FoundVariable:
    values: set[str]
    places: dict[str, None]
    said: str = ""
    asked: str = ""
    has_default: bool = False
    needed: bool = False


class Variables:
    """Gives each secret a name: the variable's own where that is free, else with the server's key before it."""

    def __init__(self, environ: Mapping[str, str], reserved: Collection[str]) -> None:
        self._environ = environ
        # What somebody refers to already means what the environment says, not what stands in another file.
        self._reserved = reserved
        self._found: dict[str, _FoundVariable] = {}
        self._names: dict[tuple[str, str, str], str] = {}

    def note(self, key: str, entry: TemplatedEntry, chosen: TemplatedEntry, *, needed: bool) -> None:
        """Note what an entry of the server knows about the variables of the chosen one, which is noted first."""
        seen = entry.seen
        for (place, part), (_, named) in zip(entry.variables(), chosen.variables(), strict=True):
            where = f"{seen.where}.{place}" if seen.where else place
            name = self._name(key, named, part, seen.client)
            self._note(name, part, f"{seen.file}: {where}", seen.client)
            self._found[name].needed |= needed

    def written(self, key: str, entry: TemplatedEntry) -> ServerConfig:
        """Return the server with its texts as a truename.toml has them."""

        def text(template: Template) -> str:
            return written(template, lambda hole: self._names[_spot(key, hole)])

        return ServerConfig(
            key=key,
            command=text(entry.command) if entry.seen.server.command is not None else None,
            args=tuple(map(text, entry.args)),
            env=MappingProxyType({name: text(template) for name, template in entry.env.items()}),
            cwd=text(entry.cwd) or None,
            url=text(entry.url) if entry.seen.server.url is not None else None,
            headers=MappingProxyType({name: text(template) for name, template in entry.headers.items()}),
            identity=entry.seen.server.identity,
        )

    def all(self) -> tuple[Variable, ...]:
        """Return all variables, in the order in which they were met."""
        return tuple(
            Variable(
                name=name,
                value=next(iter(found.values), None),
                places=tuple(found.places),
                said=found.said,
                is_set=name in self._environ,
                has_default=found.has_default,
                needed=found.needed,
            )
            for name, found in self._found.items()
        )

    def _note(self, name: str, part: Hole | Ref, where: str, client: str) -> None:
        found = self._found.setdefault(name, _FoundVariable(values=set(), places={}))
        if isinstance(part, Ref):
            found.has_default |= part.default is not None
            return
        found.said = found.said or part.said
        found.asked = found.asked or _asked(client, part)
        found.places[where] = None
        if part.value is not None:
            found.values.add(part.value)

    def _name(self, key: str, named: Hole | Ref, part: Hole | Ref, client: str) -> str:
        if isinstance(named, Ref):
            return named.name
        spot = _spot(key, named)
        if spot not in self._names:
            self._names[spot] = self._free(key, named, part, client)
        return self._names[spot]

    def _free(self, key: str, hole: Hole, part: Hole | Ref, client: str) -> str:
        own = hole.label if VARIABLE.fullmatch(hole.label) else variable_name(hole.label)
        longer = f"{variable_name(key)}_{own}"
        value = part.value if isinstance(part, Hole) else None
        candidates = [own, longer] if hole.own else [longer]
        numbered = (f"{longer}_{number}" for number in itertools.count(2))
        asked = "" if value is not None else _asked(client, part)
        return next(name for name in itertools.chain(candidates, numbered) if self._is_free(name, value, asked))

    def _is_free(self, name: str, value: str | None, asked: str) -> bool:
        """Tell whether a variable of this name would have this value, or is nobody's yet."""
        if name in self._reserved or self._environ.get(name, value) != value:
            return False
        found = self._found.get(name)
        if found is None:
            return True
        # A value that only one client knows is nobody else's.
        return found.values == {value} if value is not None else not found.values and found.asked == asked


def _asked(client: str, part: Hole | Ref) -> str:
    return f"{client} {part.said}" if isinstance(part, Hole) and part.said else ""


def _spot(key: str, hole: Hole) -> tuple[str, str, str]:
    return key, hole.label, hole.value if hole.value is not None else f"\0{hole.said}"
