"""Find entries that are probably one connector: one name in the MCP registry, one package or one address.

It is a hint for people. Such entries may be two accounts or two versions, so they are never merged, and each keeps its
identity.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from truename.config.entries import address, is_gateway, program
from truename.config.secrets import masked
from truename.errors import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from truename.config.servers import ServerConfig
    from truename.conventions import Location

__all__ = ["ConfiguredEntry", "ProbableConnector", "alike"]

_HTTPS: Final = "https://"
_MOST: Final = 2_000
_LONGEST: Final = 400
_REFERS: Final = ("$", "{", "%", "<")
_NPM: Final = re.compile(r"(?P<name>(?:@[\w.~-]+/)?[\w.~-]+)(?:@[\w.^~*+-]+)?")
_PYTHON: Final = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*)(?:\[[\w,.-]*\])?(?:(?:@|[=~<>!]=)[\w.*+!-]+)?")
_IMAGE: Final = re.compile(r"(?P<name>[a-z0-9][\w.-]*(?::[0-9]{1,5}/)?[\w./-]*)(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?")
# The form of packages that a runner starts.
_FORMS: Final[Mapping[str, tuple[str, re.Pattern[str]]]] = {
    "npx": ("npm", _NPM),
    "bunx": ("npm", _NPM),
    "pnpx": ("npm", _NPM),
    "uvx": ("PyPI", _PYTHON),
    "pipx": ("PyPI", _PYTHON),
    "docker": ("container", _IMAGE),
    "podman": ("container", _IMAGE),
}
_CONTAINERS: Final = frozenset({"docker", "podman"})
# Options of `docker run` whose value is the next word.
_WITH_VALUE: Final = frozenset(
    ("-e", "--env", "-v", "--volume", "--mount", "-p", "--publish", "--name", "--network", "--env-file", "-u", "--user")
)


@dataclass(frozen=True, kw_only=True)
class ConfiguredEntry:
    """An entry and its place.

    ``beside`` is equal for entries that are used together, ``same`` for entries that are one server anyway (None: for
    no others).
    """

    server: ServerConfig
    location: Location
    beside: object
    same: object = None
    registry_name: str | None = None


class ProbableConnector(NamedTuple):
    """Entries that are probably one connector, and what they share, as a clause."""

    entries: tuple[ConfiguredEntry, ...]
    shared: str


class _Mark(NamedTuple):
    kind: str
    text: str
    rest: tuple[str, ...] = ()


_CLAUSES: Final[Mapping[str, str]] = {
    "registry": "both have the name {} in the MCP registry",
    "address": "both are at {}",
}
_PACKAGE: Final = "both start the {kind} package {{}}"


def alike(entries: Iterable[ConfiguredEntry]) -> Iterator[ProbableConnector]:
    """Yield groups of entries that are probably one connector, each group once.

    Entries with different names in the MCP registry are told apart by these. Packages count without their version and
    with their arguments, since one package may serve two directories; addresses without credentials.
    """
    groups: defaultdict[_Mark, list[ConfiguredEntry]] = defaultdict(list)
    for one in [one for one in entries if not one.server.disabled and not is_gateway(one.server)][:_MOST]:
        for mark in _marks(one):
            groups[mark].append(one)
    told: set[frozenset[int]] = set()
    for mark, found in groups.items():
        several = _distinct(found)
        named = {one.registry_name.lower() for one in several if one.registry_name}
        key = frozenset(map(id, several))
        if len(several) < 2 or (mark.kind != "registry" and len(named) > 1) or key in told:
            continue
        told.add(key)
        clause = _CLAUSES.get(mark.kind) or _PACKAGE.format(kind=mark.kind)
        if len(several) > 2:
            clause = clause.replace("both", "all", 1)
        yield ProbableConnector(tuple(several), clause.format(excerpt(_shown(mark), 100)))


def _shown(mark: _Mark) -> str:
    """Return the text of a mark for people: the path of an address may be a secret."""
    if mark.kind != "address":
        return mark.text
    return masked(f"{_HTTPS}{mark.text}").removeprefix(_HTTPS)


def _distinct(entries: Sequence[ConfiguredEntry]) -> list[ConfiguredEntry]:
    """Return entries without those that only repeat a server in another file: clients share servers in this way."""
    kept: list[ConfiguredEntry] = []
    for one in entries:
        if not any(one.same == other.same and one.same is not None and one.beside != other.beside for other in kept):
            kept.append(one)
    return kept


def _marks(one: ConfiguredEntry) -> Iterator[_Mark]:
    if one.registry_name:
        yield _Mark("registry", one.registry_name.lower())
    if one.server.url is not None:
        if (place := _place(one.server.url)) is not None:
            yield place
    elif (package := _package(one.server)) is not None:
        yield package


def _place(url: str) -> _Mark | None:
    """Return the mark of an address: host and path for people, and the query to compare."""
    if len(url) > _LONGEST or any(mark in url for mark in _REFERS):
        return None
    try:
        parts = urlsplit(address(url))
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return None
    return _Mark("address", f"{host}{parts.path}", (parts.query,)) if host else None


def _package(server: ServerConfig) -> _Mark | None:
    runner, *words = program([server.command or "", *server.args])
    runner = re.split(r"[\\/]", runner)[-1]
    if runner not in _FORMS:
        return None
    kind, form = _FORMS[runner]
    words = _image_first(words) if runner in _CONTAINERS else words
    match = form.fullmatch(words[0]) if words and len(words[0]) <= _LONGEST else None
    return None if match is None else _Mark(kind, match["name"], tuple(words[1:]))


def _image_first(words: Sequence[str]) -> list[str]:
    """Return the words of ``docker run`` from the image on; none for another command."""
    rest = list(words)
    if rest[:1] != ["run"]:
        return []
    rest = rest[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _WITH_VALUE else rest[1:]
    return rest
