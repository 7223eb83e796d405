"""Plan the requests that put an export into a gateway through its API, and those that undo it. Nothing is sent here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable
from urllib.parse import quote

from truename.errors import ConfigError, excerpt
from truename.identity import fold

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from truename.clients.exporters.export import Export, InexpressibleTool

__all__ = [
    "ApiPlan",
    "ApiRequest",
    "FormerValues",
    "GatewayApi",
    "GatewayState",
    "ReplacedName",
    "RestorePlan",
    "SoughtServer",
    "in_path",
    "match",
    "objects",
    "read_undo",
    "text_of",
]

_LONGEST_ID = 200
_FORMAT = "truename.export-undo/2"


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """A request that changes the gateway: ``what`` says whose names it sets."""

    method: str
    path: str
    body: Mapping[str, Any]
    what: str


@dataclass(frozen=True, kw_only=True)
class FormerValues:
    """The names that an export replaced: by the gateway's id of a server or tool, then by what was named.

    ``written`` are the names that the export set instead; None is no name. ``url`` is the gateway's API.
    """

    gateway: str
    values: Mapping[str, Mapping[str, str | None]]
    written: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    url: str = ""

    def plain(self) -> dict[str, object]:
        """Return the content of the undo file."""
        return {
            "format": _FORMAT,
            "gateway": self.gateway,
            "url": self.url,
            "values": {id: dict(names) for id, names in self.values.items()},
            "written": {id: dict(names) for id, names in self.written.items()},
        }

    def before(self, later: FormerValues, is_passing: Callable[[str, str | None], bool]) -> FormerValues:
        """Return the values before this export, for the names that it set, and before a later one for all others.

        A name that was set by somebody else in between is a former value of the later export.
        """
        values = {id: dict(names) for id, names in self.values.items()}
        written = {id: dict(names) for id, names in self.written.items()}
        for id, names in later.values.items():
            for what, name in names.items():
                is_ours = what in values.get(id, ()) and (name == written.get(id, {}).get(what) or is_passing(id, name))
                if not is_ours:
                    values.setdefault(id, {})[what] = name
                written.setdefault(id, {})[what] = later.written[id][what]
        return replace(later, values=values, written=written)


@dataclass(frozen=True, kw_only=True)
class ReplacedName:
    """A name that somebody set there, and that an export replaces."""

    server: str
    tool: str
    former: str
    written: str | None


@dataclass(frozen=True, kw_only=True)
class ApiPlan:
    """The requests in the order in which they have to be sent, the values that they replace, and what has no place."""

    requests: tuple[ApiRequest, ...] = ()
    former: FormerValues
    left: tuple[InexpressibleTool, ...] = ()
    replaced: tuple[ReplacedName, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RestorePlan:
    """The requests that restore former names, and a sentence for each name that stays as it is."""

    requests: tuple[ApiRequest, ...] = ()
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SoughtServer:
    """A server of the export, as a gateway may know it: by its key, its URL, or the name that an export proposed."""

    key: str
    url: str = ""
    proposed: str = ""


@dataclass(frozen=True, kw_only=True)
class GatewayState:
    """What a gateway has: the objects that its API listed, by path, and which of them each server of the export is.

    ``known_as`` are the gateway's names of these servers, ``separator`` is what it writes behind its prefixes.
    """

    listed: Mapping[str, Sequence[Mapping[str, Any]]]
    matched: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    known_as: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None


@runtime_checkable
class GatewayApi(Protocol):
    """The API of a gateway that keeps renames in its database."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths whose lists say what the gateway has."""
        ...

    def state(self, listed: Mapping[str, object], servers: Sequence[SoughtServer]) -> GatewayState:
        """Return the state that the answers describe, for these servers. Raises `ConfigError` for other answers."""
        ...

    def plan(self, export: Export, state: GatewayState) -> ApiPlan:
        """Return the requests that make the gateway list the export; none for what is so already."""
        ...

    def undo(self, former: FormerValues, state: GatewayState) -> RestorePlan:
        """Return the requests that restore former values; none for what is so already, or was changed since."""
        ...

    def is_passing(self, id: str, name: str | None) -> bool:
        """Return whether a name is one that a tool has only until another one is free."""
        ...


_FITS: Final[tuple[Callable[[Mapping[str, Any], SoughtServer, Collection[str]], bool], ...]] = (
    lambda _, one, texts: one.key in texts,
    lambda _, one, texts: fold(one.key) in map(fold, texts),
    lambda row, one, _: bool(one.url) and row.get("url") == one.url,
    lambda _, one, texts: fold(one.proposed) in map(fold, texts),
)


def match(
    rows: Sequence[Mapping[str, Any]], servers: Sequence[SoughtServer], names: tuple[str, ...]
) -> dict[str, Mapping[str, Any]]:
    """Return the row of each server: of its key, else spelled alike, else of its URL, else of the proposed name.

    ``names`` are the fields that hold a name. A server that several rows fit equally is none of them, and a row that
    fits several servers equally is none of theirs.
    """
    found: dict[str, Mapping[str, Any]] = {}
    left = list(servers)
    for fits in _FITS:
        taken = {id(row) for row in found.values()}
        ways = (
            (one, [row for row in rows if id(row) not in taken and fits(row, one, _texts(row, names))]) for one in left
        )
        fitting = [(one, those) for one, those in ways if those]
        times = Counter(id(those[0]) for _, those in fitting if len(those) == 1)
        found |= {one.key: those[0] for one, those in fitting if len(those) == 1 and times[id(those[0])] == 1}
        left = [one for one in left if all(one is not other for other, _ in fitting)]
    return found


def text_of(row: Mapping[str, Any], field: str) -> str | None:
    """Return the text of a field; None for anything but a text."""
    text = row.get(field)
    return text if isinstance(text, str) else None


def _texts(row: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    return [text for name in names if isinstance(text := row.get(name), str) and text]


def objects(answer: object, path: str) -> list[Mapping[str, Any]]:
    """Return the objects of a list that an API answered. Raises `ConfigError` if it is none."""
    if not isinstance(answer, list) or not all(isinstance(one, dict) for one in answer):
        raise _wrong(path, "the answer is not a list of objects", "Check that the URL is the gateway's own.")
    return answer


def in_path(id: object, path: str) -> str:
    """Return an id from an answer as one segment of a path. Raises `ConfigError` for anything but a short text."""
    if not isinstance(id, str) or not 0 < len(id) <= _LONGEST_ID or not id.isprintable() or set(id) <= {"."}:
        raise _wrong(path, f"an id in the answer is {excerpt(str(id))}", "Check that the URL is the gateway's own.")
    return quote(id, safe="")


def read_undo(content: Mapping[str, object], file: str, gateway: str) -> FormerValues:
    """Read an undo file. Raises `ConfigError` if it is none, or another gateway's."""
    if content.get("format") != _FORMAT:
        raise ConfigError(
            file=file, key="format", problem="it is not an undo file of `truename export`", remedy="Give that file."
        )
    if content.get("gateway") != gateway:
        whose = excerpt(str(content.get("gateway")))
        raise ConfigError(file=file, key="gateway", problem=f"it is for {whose}", remedy=f"Give one for {gateway}.")
    values, written = (_name_tables(content.get(key), key, file) for key in ("values", "written"))
    return FormerValues(gateway=gateway, values=values, written=written, url=str(content.get("url") or ""))


def _name_tables(tables: object, key: str, file: str) -> Mapping[str, Mapping[str, str | None]]:
    remedy = "Give another file, or correct it."
    if not isinstance(tables, dict):
        raise ConfigError(file=file, key=key, problem="it is not a table", remedy=remedy)
    for id, names in tables.items():
        if not isinstance(names, dict) or not all(
            one is None or (isinstance(one, str) and one) for one in names.values()
        ):
            raise ConfigError(file=file, key=f"{key}.{id}", problem="it is not a table of names", remedy=remedy)
    return MappingProxyType(tables)


def _wrong(path: str, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=path, key="", problem=problem, remedy=remedy)
