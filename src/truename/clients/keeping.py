"""Reading the tool names that a file keeps, from the places that its row tells."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from truename.clients.globs import like
from truename.clients.kept import KeptName, glob_of
from truename.clients.spelling import SPELLINGS, Parts, parts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.clients.table import ConfigFile, Place

    Where = tuple[str | int, ...]

__all__ = ["kept_names"]

_MOST: Final = 10_000
_HOOK: Final = "mcp__server__tool.*"
_EFFECTS: Final[Mapping[object, str]] = {
    True: "allow",
    False: "deny",
    "allow": "allow",
    "deny": "deny",
    "ask": "ask",
    "confirm": "ask",
    "ask_user": "ask",
}


class _Spot(NamedTuple):
    """A text that may be a kept name: where it stands, what stands there with it, and the server that is said."""

    where: Where
    text: str
    value: Any
    server: str | None
    is_key: bool = False


class _Reading(NamedTuple):
    """The file that is read, and the servers that are known."""

    path: Path
    value: Any
    servers: tuple[str, ...]


def kept_names(
    file: ConfigFile, path: Path, value: Any, entries: Iterable[tuple[str, Where]], servers: Iterable[str]
) -> tuple[KeptName, ...]:
    """Return the names that a file keeps; ``entries`` are its servers with their places, ``servers`` all known ones.

    What is a tool of the client itself is left out.
    """
    reading = _Reading(path, value, tuple(servers))
    inside = (name for key, where in entries for place in file.entry for name in _in_entry(place, reading, key, where))
    beside = (name for place in file.kept for name in _at(place, reading))
    names = (name for both in (inside, beside) for name in both if not _is_builtin(file, name))
    return tuple(islice(names, _MOST))


def _in_entry(place: Place, reading: _Reading, key: str, where: Where) -> Iterator[KeptName]:
    entry = reading.value
    for step in where:
        entry = entry[step]
    for spot in _reach(entry, place.path, where, key):
        yield from _plain(spot, place.spelling, place.effect, reading)


def _at(place: Place, reading: _Reading) -> Iterator[KeptName]:
    for spot in _reach(reading.value, place.path, (), None):
        if place.spelling == "policy":
            yield from _rule(spot, reading)
        elif place.effect == "hook":
            yield from _hooked(spot, reading)
        else:
            yield from _plain(spot, place.spelling, _effect(place.effect, spot.value), reading)


def _plain(spot: _Spot, spelling: str, effect: str, reading: _Reading) -> Iterator[KeptName]:
    found = parts(spot.text, SPELLINGS[spelling], reading.servers)
    if found is not None:
        owned = found if spot.server is None else found._replace(server=spot.server)
        yield _name(spot, spelling, effect, reading.path, owned)


def _hooked(spot: _Spot, reading: _Reading) -> Iterator[KeptName]:
    for piece in _pieces(spot.text):
        known = glob_of(piece, regular=True) is not None
        found = parts(piece, SPELLINGS[_HOOK], reading.servers) if known else None
        yield _name(spot, _HOOK, "hook", reading.path, found or Parts(None, None, ""), piece)


def _pieces(matcher: str) -> tuple[str, ...]:
    """Return the alternatives of a hook's matcher that are names of MCP tools; one with groups is not taken apart."""
    if "mcp__" not in matcher or "(" in matcher:
        return (matcher,) if "mcp__" in matcher else ()
    return tuple(piece for piece in matcher.split("|") if piece.removeprefix("^").startswith("mcp__"))


def _rule(spot: _Spot, reading: _Reading) -> Iterator[KeptName]:
    """Read one rule of Gemini CLI's policies: a tool's name, or a server's with or without its own name for a tool."""
    rule = spot.value if isinstance(spot.value, dict) else {}
    effect = _EFFECTS.get(str(rule.get("decision")), "setting")
    server = rule.get("mcpName")
    server = server if isinstance(server, str) and server else None
    if server is not None:
        at = _Spot((*spot.where, "mcpName"), server, None, server)
        yield _name(at, "server", effect, reading.path, Parts(server, None, "{server}"))
    for at in _reach(rule, ("toolName",), spot.where, server):
        yield from _plain(at, "mcp_server_tool" if server is None else "tool", effect, reading)


def _name(spot: _Spot, spelling: str, effect: str, path: Path, found: Parts, piece: str = "") -> KeptName:  # noqa: PLR0917
    text = piece or spot.text
    return KeptName(
        text=text,
        spelling=spelling,
        path=path,
        where=spot.where,
        server=found.server,
        tool=found.tool,
        effect=effect,
        is_key=spot.is_key,
        within="" if text == spot.text else spot.text,
        opaque=SPELLINGS[spelling].pattern and glob_of(text, regular=True) is None,
        template=found.template,
        suffix=found.suffix,
    )


def _reach(value: Any, path: tuple[str, ...], where: Where, server: str | None) -> Iterator[_Spot]:
    """Yield the texts at a path of keys; at its end a text, the texts of a list, or an object for who asked for it."""
    if not path:
        yield from _end(value, where, server)
        return
    step, rest = path[0], path[1:]
    if step == "{name}":
        yield from (_Spot((*where, key), str(key), item, server, is_key=True) for key, item in _items(value))
    elif step in {"*", "{server}"}:
        for key, item in _items(value):
            yield from _reach(item, rest, (*where, key), str(key) if step == "{server}" else server)
    elif isinstance(value, dict) and step in value:
        yield from _reach(value[step], rest, (*where, step), server)


def _end(value: Any, where: Where, server: str | None) -> Iterator[_Spot]:
    if isinstance(value, str):
        yield _Spot(where, value, value, server)
    elif isinstance(value, dict):
        yield _Spot(where, "", value, server)
    elif isinstance(value, list):
        yield from (_Spot((*where, at), item, item, server) for at, item in enumerate(value) if isinstance(item, str))


def _items(value: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def _effect(effect: str, value: Any) -> str:
    if effect != "by-value":
        return effect
    told = value.get("default") if isinstance(value, dict) else value
    return _EFFECTS.get(told, "setting") if isinstance(told, str | bool) else "setting"


def _is_builtin(file: ConfigFile, name: KeptName) -> bool:
    text = name.text.removesuffix(name.suffix)
    return any(text == builtin or (builtin != "*" and like(text, builtin)) for builtin in file.builtin)
