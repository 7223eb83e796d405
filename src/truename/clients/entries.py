"""The servers inside a configuration's value: where they stand, and what is no server at all."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from truename.clients.forms import FORMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.clients.table import ConfigFile

    Where = tuple[str | int, ...]
    Entry = tuple[Where, str, Any]

__all__ = ["entries_of", "looks_like_server", "reach"]

_MOST: Final = 10_000
_TELLING: Final = ("command", "url", "httpUrl", "serverUrl", "cmd", "uri", "baseUrl", "transport")


def entries_of(file: ConfigFile, value: Any) -> tuple[Entry, ...]:
    """Return the entries of a file as places, keys and raw values, in the file's order.

    The other keys of the row count where its own is not there, or leads to no more than the other's beginning.
    """
    return tuple(islice(_entries(file, value), _MOST))


def looks_like_server(raw: object) -> bool:
    """Tell whether an object can't be anything but a server's entry: it has a command or an address."""
    return isinstance(raw, dict) and any(name in raw for name in _TELLING)


def reach(value: Any, key: tuple[str, ...], where: Where = ()) -> Iterator[tuple[Where, Any]]:
    """Yield what a key leads to, with its place; ``*`` is any key."""
    if not key:
        yield where, value
    elif isinstance(value, dict):
        steps: Iterable[Any] = value if key[0] == "*" else [key[0]] if key[0] in value else []
        for step in steps:
            yield from reach(value[step], key[1:], (*where, step))


def _entries(file: ConfigFile, value: Any) -> Iterator[Entry]:
    deeper = [key for key in file.also if key[: len(file.key)] == file.key and _is_group(value, key)]
    keys = deeper or [file.key]
    found = [(where, group) for key in keys for where, group in reach(value, key)]
    if found:
        yield from (entry for where, group in found for entry in _members(file, where, group))
        return
    for key in file.also:
        for where, group in reach(value, key):
            # Without a key of its own, a file may hold anything.
            members = _members(file, where, group)
            yield from (entry for entry in members if key or looks_like_server(entry[2]))


def _is_group(value: Any, key: tuple[str, ...]) -> bool:
    groups = [group for _, group in reach(value, key)]
    return any(isinstance(group, dict) and not looks_like_server(group) and "type" not in group for group in groups)


def _members(file: ConfigFile, where: Where, group: Any) -> Iterator[Entry]:
    form = FORMS.get(file.shape, FORMS["any"])
    if isinstance(group, dict):
        members: Iterable[Entry] = (((*where, key), str(key), raw) for key, raw in group.items())
    elif isinstance(group, list) and form.in_list:
        members = (((*where, at), _own_name(raw, form.named or "name", at), raw) for at, raw in enumerate(group))
    else:
        return
    for entry in members:
        raw = entry[2]
        if not (isinstance(raw, dict) and raw.get("type") in form.foreign):
            yield entry


def _own_name(raw: object, field: str, at: int) -> str:
    name = raw.get(field) if isinstance(raw, dict) else None
    return name if isinstance(name, str) and name else f"#{at + 1}"
