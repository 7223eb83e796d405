"""Taking a configuration's keys one by one: what nobody took is told at the end, so nothing is lost in silence."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.config.entries import Seen
from truename.errors import excerpt
from truename.peers.imported import Imported, Rename, left

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from truename.config.model import ServerConfig
    from truename.conventions import Finding

__all__ = ["Reading", "Taken"]

_MOST_TOOLS: Final = 5_000
_SHOWN: Final = 5
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {}, False)


class Reading:
    """One run over one file: what was found so far."""

    def __init__(self, kind: str, title: str, path: Path, spelling: str = "braces") -> None:
        self.kind = kind
        self.title = title
        self.path = path
        self._spelling = spelling
        self._seen: list[Seen] = []
        self._renames: list[Rename] = []
        self._left: list[Finding] = []
        self._aliases: dict[str, str] = {}

    def server(self, server: ServerConfig, where: str) -> None:
        """Note a server."""
        self._seen.append(
            Seen(
                client=self.kind,
                title=self.title,
                file=str(self.path),
                where=where,
                server=server,
                spelling=self._spelling,
            )
        )

    def rename(self, server: str, tool: str, name: object, where: str) -> None:
        """Note another name of a tool; what is no text, or the same, is none."""
        if isinstance(name, str) and name and name != tool:
            self._renames.append(Rename(server=server, tool=tool, name=name, where=where))

    def alias(self, server: str, alias: str) -> None:
        """Note the short name by which a server's tools begin."""
        if alias != server:
            self._aliases[server] = alias

    def leave(self, rule: str, fact: str, where: str, *, server: str = "", tools: tuple[str, ...] = ()) -> None:
        """Note what can't be carried over."""
        self._left.append(left(rule, fact, file=str(self.path), where=where, server=server, tools=tools))

    def filtered(self, taken: Taken, *names: str, server: str) -> None:
        """Note lists of tools that are shown or hidden."""
        for name in names:
            tools = taken.names(name)
            if tools:
                what = f"{excerpt(server)} has a list of tools, {name} ({_listed(tools)}), that is not carried over."
                self.leave("filter", what, taken.where(name), server=server, tools=tools)

    def descriptions(self, taken: Taken, *names: str, server: str) -> None:
        """Note texts that replace a tool's own, whose keys are names of tools."""
        for name in names:
            for tool in taken.object(name):
                self.description(tool, f"{taken.where(name)}.{tool}", server=server)

    def description(self, tool: str, where: str, *, server: str) -> None:
        """Note that a text replaces the one of a tool."""
        fact = f"The description of tool {excerpt(tool)} of {excerpt(server)} is not carried over."
        self.leave("description", fact, where, server=server, tools=(tool,))

    def switched_off(self, tool: str, where: str, *, server: str) -> None:
        """Note that a tool is hidden there."""
        fact = f"Tool {excerpt(tool)} of {excerpt(server)} is switched off there, and will be seen here."
        self.leave("filter", fact, where, server=server, tools=(tool,))

    def rest(self, taken: Taken, *, server: str = "", rules: Mapping[str, str] = MappingProxyType({})) -> None:
        """Note all that nobody took; ``rules`` says which keys are more than a setting."""
        whose = f" of {excerpt(server)}" if server else ""
        for name in taken.untaken():
            fact = f"{excerpt(name)}{whose} is not carried over."
            self.leave(rules.get(name, "setting"), fact, taken.where(name), server=server)

    def result(self) -> Imported:
        """Return all that was found."""
        return Imported(
            kind=self.kind,
            file=str(self.path),
            seen=tuple(self._seen),
            renames=tuple(self._renames),
            aliases=MappingProxyType(dict(self._aliases)),
            left=tuple(self._left),
        )


class Taken:
    """One object of the file; every key that is asked for counts as taken.

    What is of another kind than asked for does not: it is told with the `rest`.
    """

    def __init__(self, values: object, where: str) -> None:
        self._values: Mapping[str, Any] = values if isinstance(values, dict) else {}
        self._where = where
        self._taken: set[str] = set()

    def where(self, name: str) -> str:
        """Return the path of a key."""
        return f"{self._where}.{name}" if self._where and name else self._where or name

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) not in _EMPTY

    def ignore(self, *names: str) -> None:
        """Count keys as taken that say nothing (titles, schemas, dates)."""
        self._taken.update(names)

    def give_back(self, name: str) -> None:
        """Count a key as not taken after all."""
        self._taken.discard(name)

    def untaken(self) -> Iterator[str]:
        """Yield the keys that nobody took and that say something."""
        for name, value in self._values.items():
            if name not in self._taken and value not in _EMPTY:
                yield str(name)

    def text(self, name: str) -> str | None:
        """Return a text."""
        value = self._values.get(name)
        if isinstance(value, str):
            self._taken.add(name)
            return value or None
        return None

    def truth(self, name: str) -> bool | None:
        """Return a truth value, None if there is none."""
        value = self._values.get(name)
        if isinstance(value, bool):
            self._taken.add(name)
            return value
        return None

    def number(self, name: str) -> float | None:
        """Return a number above nought."""
        value = self._values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf"):
            self._taken.add(name)
            return float(value)
        return None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of texts; numbers are taken as their text."""
        value = self._values.get(name)
        if not isinstance(value, list) or not all(isinstance(item, str | int | float) for item in value):
            return ()
        self._taken.add(name)
        return tuple(map(_said, value))

    def names(self, name: str) -> tuple[str, ...]:
        """Return names of tools: a list of them, or the keys of an object."""
        value = self._values.get(name)
        if isinstance(value, dict):
            self._taken.add(name)
            return tuple(str(key) for key in value)[:_MOST_TOOLS]
        return self.texts(name)[:_MOST_TOOLS]

    def pairs(self, name: str) -> dict[str, str]:
        """Return an object of texts; it counts as taken only if there is nothing else in it."""
        found = self.object(name)
        if not all(value is None or isinstance(value, str | int | float) for value in found.values()):
            self._taken.discard(name)
        return {key: _said(value) for key, value in found.items() if isinstance(value, str | int | float)}

    def object(self, name: str) -> dict[str, Any]:
        """Return an object, empty if there is none."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            return {}
        self._taken.add(name)
        return {str(key): item for key, item in value.items()}

    def items(self, name: str) -> list[Any]:
        """Return a list of anything, empty if there is none."""
        value = self._values.get(name)
        if not isinstance(value, list):
            return []
        self._taken.add(name)
        return value

    def inside(self, name: str) -> Taken:
        """Return the object inside as one to take from."""
        return Taken(self.object(name), self.where(name))


def _said(value: str | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _listed(tools: tuple[str, ...]) -> str:
    shown = ", ".join(excerpt(tool)[1:-1] for tool in tools[:_SHOWN])
    return shown if len(tools) <= _SHOWN else f"{shown} and {len(tools) - _SHOWN:,} more"
