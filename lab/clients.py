"""The clients of the lab, as `clients.toml` has them, and where each one's programs are."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from lab import places

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["Client", "Unavailable", "at", "clients", "get", "node", "toolchain", "unavailable", "version_of"]

_TABLE: Final = places.ROOT / "lab" / "clients.toml"
# name@1.2 of npm (the name may begin with an @), name[extra]==1.2 of Python.
_PACKAGE: Final = re.compile(
    r"(?P<name>@?[^@=<>\[]+)(?P<extras>\[[^\]]*\])?(?:(?P<exactly>@|==)(?P<version>[^@=]+)|.*)"
)


@dataclass(frozen=True, kw_only=True)
class Client:
    """One row: what to install, how to start it, and which dialect says the same by table."""

    name: str
    title: str
    dialect: str
    kind: str
    driver: str
    folder: str
    packages: tuple[str, ...]
    approach: str = "direct"
    parallel: bool = True
    scenarios: tuple[str, ...] = ()
    limit: float = 120.0
    script: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def version(self) -> str:
        """The version of the client's own package."""
        return version_of(self.packages[0])

    @property
    def package(self) -> str:
        """The name of the client's own package."""
        found = _PACKAGE.fullmatch(self.packages[0])
        return found["name"] if found else self.packages[0]

    @property
    def place(self) -> Path:
        """Where it is installed."""
        return places.home() / ("py" if self.kind == "python" else "npm") / self.folder

    def program(self, name: str) -> str:
        """Return a program that the client's packages brought."""
        within = ("bin",) if self.kind == "python" else ("node_modules", ".bin")
        return str(self.place.joinpath(*within, name))

    @property
    def installed(self) -> str | None:
        """The version of the client's own package that is there, None if it is not."""
        read = _python_version if self.kind == "python" else _node_version
        return read(self.place, self.package)


def _node_version(place: Path, name: str) -> str | None:
    about = place / "node_modules" / name / "package.json"
    return str(json.loads(about.read_text(encoding="utf-8"))["version"]) if about.is_file() else None


def _python_version(place: Path, name: str) -> str | None:
    folder = re.sub(r"[-_.]+", "_", name).lower()
    found = [path.name.lower().removesuffix(".dist-info") for path in place.glob("lib/*/site-packages/*.dist-info")]
    return next((text.rpartition("-")[2] for text in found if text.rpartition("-")[0] == folder), None)


@dataclass(frozen=True, kw_only=True)
class Unavailable:
    """A client that the lab cannot run, and why."""

    name: str
    title: str
    reason: str


def version_of(package: str) -> str:
    """Return the exact version that a package's text asks for.

    >>> version_of("@openai/codex@0.169.0"), version_of("crewai-tools[mcp]==1.15.30")
    ('0.169.0', '1.15.30')
    """
    found = _PACKAGE.fullmatch(package)
    return (found and found["version"]) or ""


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(_TABLE.read_text(encoding="utf-8"))


def _frozen(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


@cache
def clients() -> Mapping[str, Client]:
    """Return all clients by name, in the order of the file."""
    return {name: Client(name=name, **_frozen(row)) for name, row in _table()["client"].items()}


def unavailable() -> tuple[Unavailable, ...]:
    """Return the clients that were tried and cannot be run."""
    return tuple(Unavailable(name=name, **row) for name, row in _table().get("unavailable", {}).items())


def toolchain() -> Mapping[str, str]:
    """Return the packages that run and install clients: node and uv."""
    return dict(_table()["toolchain"])


def get(name: str) -> Client:
    """Return a client by name. Raises `LookupError` with the names that there are."""
    known = clients()
    if name not in known:
        raise LookupError(f"The lab has no client {name!r}. It has {', '.join(known)}.")
    return known[name]


def at(client: Client, version: str) -> Client:
    """Return the client in another version, below a folder of its own; the packages beside it are no longer exact.

    >>> other = at(get("crewai"), "1.0.0")
    >>> other.packages, other.folder
    (('crewai==1.0.0', 'crewai-tools[mcp]'), 'crewai@1.0.0')
    """
    if version == client.version:
        return client
    own, *others = client.packages
    found = _PACKAGE.fullmatch(own)
    assert found is not None
    packages = (f"{found['name']}{found['extras'] or ''}{found['exactly']}{version}", *map(_unpinned, others))
    return replace(client, packages=packages, folder=f"{client.folder}@{version}")


def _unpinned(package: str) -> str:
    found = _PACKAGE.fullmatch(package)
    return f"{found['name']}{found['extras'] or ''}" if found and found["version"] else package


def node() -> Path:
    """Return the folder of the node program that all clients get."""
    return places.home() / "npm" / "node24" / "node_modules" / ".bin"
