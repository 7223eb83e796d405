"""What a configuration would do once it is used: the programs, the addresses, and the references with their places.

It is read from the text as it stands: nothing is replaced, and nothing left out that a program is given but the values
of variables whose names say that they are secrets.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.clients.doctor.file_findings import masked
from truename.config.text import decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from truename.config.reading import ConfigFiles

__all__ = ["Disclosed", "disclosed"]

_SERVERS: Final = ("mcpServers", "servers")
_ADDRESSES: Final = ("url", "httpUrl", "serverUrl")
_REFERENCE: Final = re.compile(r"(?<!\$)\$\{[^{}]*\}")
_ADDRESS: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_TOML: Final = ".toml"
_LOCK: Final = ".lock"
_DEEPEST: Final = 50


@dataclass(frozen=True, kw_only=True)
class Disclosed:
    """What would be started or connected, by server; which references go where; which other addresses there are."""

    servers: tuple[tuple[str, str], ...] = ()
    references: tuple[tuple[str, str], ...] = ()
    addresses: tuple[tuple[str, str], ...] = ()

    def plain(self) -> dict[str, Any]:
        """Return it as a JSON document has it."""
        return {
            "servers": [{"key": key, "does": does} for key, does in self.servers],
            "references": [{"reference": reference, "place": place} for reference, place in self.references],
            "addresses": [{"place": place, "address": address} for place, address in self.addresses],
        }


def disclosed(files: ConfigFiles) -> Disclosed:
    """Return what the configuration of these files would do. Raises `ConfigError` for one that can't be read."""
    servers: dict[tuple[str, str], None] = {}
    references: dict[tuple[str, str], None] = {}
    addresses: dict[tuple[str, str], None] = {}
    for path in files.paths:
        content = _content(path, files)
        for key, entry in _entries(content):
            servers[key, _does(entry)] = None
        for place, text in _texts(content, ""):
            found = _REFERENCE.findall(text)
            references |= {(reference, place): None for reference in found}
            is_server = place.startswith(tuple(f"{name}." for name in _SERVERS))
            if _ADDRESS.match(text) and not is_server:
                addresses[place, text] = None
    return Disclosed(servers=tuple(servers), references=tuple(references), addresses=tuple(addresses))


def _content(path: Path, files: ConfigFiles) -> Mapping[str, Any]:
    if path.suffix == _LOCK:
        return {}
    return decode(files.text(path), str(path), toml=path.suffix.lower() == _TOML)


def _entries(content: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name in _SERVERS:
        entries = content.get(name)
        if isinstance(entries, dict):
            yield from ((key, entry) for key, entry in entries.items() if isinstance(entry, dict))


def _does(entry: Mapping[str, Any]) -> str:
    told = [_connects(entry[name]) for name in _ADDRESSES if isinstance(entry.get(name), str)]
    if entry.get("command") is not None:
        told.append(_starts(entry))
    switched_off = " (disabled)" if entry.get("disabled") is True else ""
    return (" and ".join(told) or "does nothing") + switched_off


def _connects(address: str) -> str:
    return f"connects to {address}"


def _starts(entry: Mapping[str, Any]) -> str:
    words = [entry["command"], *_list(entry.get("args"))]
    variables = entry.get("env")
    pairs = variables.items() if isinstance(variables, dict) else ()
    environment = [f"{name}={shlex.quote(masked(str(value), str(name)))}" for name, value in pairs]
    where = f" (in {entry['cwd']})" if entry.get("cwd") else ""
    return f"starts {' '.join([*environment, shlex.join(map(str, words))])}{where}"


def _list(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else ()


def _texts(value: Any, place: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield every text of a document with its place, keys among them."""
    if isinstance(value, str):
        yield place, value
    elif depth < _DEEPEST and isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, f"{place}.{key}" if place else str(key), depth + 1)
    elif depth < _DEEPEST and isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, f"{place}[{number}]", depth + 1)
