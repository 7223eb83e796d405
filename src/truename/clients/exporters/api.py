"""Plan the requests that put an export into a gateway through its API, and those that undo it. Nothing is sent here."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    "SoughtServer",
    "in_path",
    "match",
    "objects",
    "read_undo",
]

_LONGEST_ID = 200
_FORMAT = "truename.export-undo/1"


@dataclass(frozen=True, kw_only=True)
class ApiRequest:
    """A request that changes the gateway: ``what`` says whose names it sets."""

    method: str
    path: str
    body: Mapping[str, Any]
    what: str


@dataclass(frozen=True, kw_only=True)
class FormerValues:
    """The values that an export replaced: by the gateway's id of a server or tool."""

    gateway: str
    values: Mapping[str, Any]

    def plain(self) -> dict[str, object]:
        """Return the content of the undo file."""
        return {"format": _FORMAT, "gateway": self.gateway, "values": dict(self.values)}


@dataclass(frozen=True, kw_only=True)
class ApiPlan:
    """The requests in the order in which they have to be sent, the values that they replace, and what has no place."""

    requests: tuple[ApiRequest, ...] = ()
    former: FormerValues
    left: tuple[InexpressibleTool, ...] = ()


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

    def undo(self, former: FormerValues, state: GatewayState) -> tuple[ApiRequest, ...]:
        """Return the requests that restore former values; none for what is so already."""
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

    ``names`` are the fields that hold a name. A server that several rows fit equally is none of them.
    """
    found: dict[str, Mapping[str, Any]] = {}
    for one in servers:
        ways = ([row for row in rows if fits(row, one, _texts(row, names))] for fits in _FITS)
        fitting = next(filter(None, ways), [])
        if len(fitting) == 1:
            found[one.key] = fitting[0]
    return found


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
    values = content.get("values")
    if content.get("format") != _FORMAT or not isinstance(values, dict):
        raise ConfigError(
            file=file, key="format", problem="it is not an undo file of `truename export`", remedy="Give that file."
        )
    if content.get("gateway") != gateway:
        whose = excerpt(str(content.get("gateway")))
        raise ConfigError(file=file, key="gateway", problem=f"it is for {whose}", remedy=f"Give one for {gateway}.")
    return FormerValues(gateway=gateway, values=MappingProxyType(values))


def _wrong(path: str, problem: str, remedy: str) -> ConfigError:
    return ConfigError(file=path, key="", problem=problem, remedy=remedy)
