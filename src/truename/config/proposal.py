"""Propose one configuration from many found ones: each server once, no secret copied, every entry checked."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

from truename.config.entries import FoundEntry, TemplatedEntry, Variable, Variables, is_gateway, marked, take_apart
from truename.config.load import parse
from truename.config.model import Config
from truename.config.servers import STANDINS, ServerConfig
from truename.config.templates import Ref
from truename.errors import ConfigError, config_error

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

    from truename.config.settings import Settings

__all__ = ["Proposal", "propose"]

_WHERE: Final = Path("/truename.json")
_HALF: Final = config_error("", "", "a text holds half a character (a lone surrogate)", "Correct that text.")
_SSE: Final = "/sse"
# Each is compared with all similar ones.
_MOST: Final = 2_000


def trial(entry: TemplatedEntry, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the problem of an entry that cannot be read and what to do, or None."""
    found = [_attempt(entry, environ, standin) for standin in STANDINS]
    error = None if None in found else found[0]
    if error is None:
        return None
    where = error.key.removeprefix(f"mcpServers.{entry.seen.server.key}").lstrip(".")
    return (f"{where}: {error.problem}" if where else error.problem), error.remedy


def _attempt(entry: TemplatedEntry, environ: Mapping[str, str], standin: str) -> ConfigError | None:
    def text(place: str) -> str:
        parts = templates[place]
        return "".join(
            part if isinstance(part, str) else environ.get(getattr(part, "name", ""), standin) for part in parts
        )

    templates = dict(entry.templates())
    server = entry.seen.server
    raw: dict[str, Any] = {
        "args": [text(f"args[{i}]") for i in range(len(entry.args))],
        "env": {name: text(f"env.{name}") for name in entry.env},
        "headers": {name: text(f"headers.{name}") for name in entry.headers},
    }
    raw |= {name: text(name) for name in ("command", "url", "cwd") if getattr(server, name) is not None}
    try:
        # Escaped: a text that looks like a reference now is a value.
        content = json.dumps({"mcpServers": {server.key: _plain(raw)}}, ensure_ascii=False)
        content.encode()
        parse(content, _WHERE, {})
    except ConfigError as error:
        return error
    except UnicodeEncodeError:
        return _HALF
    except ExceptionGroup as group:
        return next(error for error in group.exceptions if isinstance(error, ConfigError))
    return None


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()}


@dataclass(frozen=True, kw_only=True)
class Merged:
    """One server of the proposal, the entries that it was made of, and remarks for people.

    ``apart`` tells why its key differs from the one in its client: another server has that one.
    """

    server: ServerConfig
    seen: tuple[FoundEntry, ...]
    remarks: tuple[str, ...] = ()
    apart: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """The comments above the entry."""
        found = tuple(f"{seen.title}: {seen.place}" for seen in self.seen)
        return (*found, *self.remarks)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A found entry that cannot become a server, and why."""

    seen: FoundEntry
    problem: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """A proposed configuration: its servers, the variables that they refer to, and the entries left out."""

    servers: tuple[Merged, ...]
    variables: tuple[Variable, ...]
    refused: tuple[Refused, ...]
    gateways: tuple[FoundEntry, ...] = field(default=())

    def config(self, settings: Settings) -> Config:
        """Return the configuration with these settings."""
        return Config(servers=tuple(merged.server for merged in self.servers), settings=settings)

    @property
    def notes(self) -> Mapping[str, Sequence[str]]:
        """The comments of each server, by key."""
        return MappingProxyType({merged.server.key: merged.notes for merged in self.servers})


def propose(sightings: Iterable[FoundEntry], environ: Mapping[str, str]) -> Proposal:
    """Merge found entries into one configuration.

    Two entries are one server only if they are equal in everything that decides what it does, values of secrets too:
    `TemplatedEntry.meaning`. ``@latest`` and ``-y`` make no difference, another version does. Two entries of one file
    are never merged. If several servers have one key, the one that more clients know keeps it, else the first; the
    others get the names of their clients (``github-cursor``), and a remark tells it. Surprising: a server that one
    client has switched off and another uses is on.
    """
    gateways: list[FoundEntry] = []
    fit: list[TemplatedEntry] = []
    refused: list[Refused] = []
    entries: list[TemplatedEntry] = []
    for seen in (one.guarded for one in sightings):
        if is_gateway(seen.server):
            gateways.append(seen)
        elif len(entries) == _MOST:
            problem = f"there are more than {_MOST:,} servers"
            refused.append(Refused(seen=seen, problem=problem, remedy="Name the files that you need."))
        else:
            entries.append(take_apart(seen))
    for entry in (one.settled(environ) for one in marked(entries)):
        if (found := trial(entry, environ)) is None:
            fit.append(entry)
        else:
            refused.append(Refused(seen=entry.seen, problem=found[0], remedy=found[1]))
    reserved = {part.name for entry in fit for _, part in entry.variables() if isinstance(part, Ref)}
    variables = Variables(environ, reserved)
    keyed = _keyed(_clusters(fit, environ))
    servers = tuple(
        _merged(key, cluster, variables, _named_after(key, cluster, keyed, environ)) for key, cluster in keyed
    )
    return Proposal(servers=servers, variables=variables.all(), refused=tuple(refused), gateways=tuple(gateways))


def _clusters(entries: Iterable[TemplatedEntry], environ: Mapping[str, str]) -> list[list[TemplatedEntry]]:
    groups: defaultdict[Hashable, list[list[TemplatedEntry]]] = defaultdict(list)
    clusters: list[list[TemplatedEntry]] = []
    for entry in entries:
        group = groups[frozenset(entry.meaning(environ).items())]
        home = next((cluster for cluster in group if all(_may_be_one(entry, other) for other in cluster)), None)
        if home is None:
            home = []
            group.append(home)
            clusters.append(home)
        home.append(entry)
    return clusters


def _may_be_one(one: TemplatedEntry, other: TemplatedEntry) -> bool:
    # Several clients may read one file; two entries of it are two servers, whatever is in them.
    return one.seen.file != other.seen.file or one.seen.where == other.seen.where


def _keyed(clusters: Sequence[Sequence[TemplatedEntry]]) -> list[tuple[str, Sequence[TemplatedEntry]]]:
    """Return the servers with unique keys, in the order in which they were found."""
    wishes = {id(cluster): _wish(cluster) for cluster in clusters}
    taken: set[str] = set()
    given: dict[int, str] = {}
    # The server that more clients know keeps the key, so that most references to it stay valid.
    for cluster in sorted(clusters, key=lambda cluster: -len(cluster)):
        wish = wishes[id(cluster)]
        client = cluster[0].seen.client
        candidates = [wish, f"{wish}-{client}", *(f"{wish}-{number}" for number in range(2, len(clusters) + 2))]
        key = next(candidate for candidate in candidates if candidate.casefold() not in taken)
        taken.add(key.casefold())
        given[id(cluster)] = key
    return [(given[id(cluster)], cluster) for cluster in clusters]


def _named_after(
    key: str,
    cluster: Sequence[TemplatedEntry],
    keyed: Iterable[tuple[str, Sequence[TemplatedEntry]]],
    environ: Mapping[str, str],
) -> str:
    """Return why a server's key differs from the one in its clients, or "" if it does not."""
    wish = _wish(cluster)
    holder = next((other for taken, other in keyed if taken.casefold() == wish.casefold()), None)
    if key == wish or holder is None:
        return ""
    mine, theirs = cluster[0].meaning(environ), holder[0].meaning(environ)
    places = [place for place in dict.fromkeys((*mine, *theirs)) if mine.get(place) != theirs.get(place)]
    differs = f"that differs in {', '.join(places)}" if places else "that is in the same file"
    return f"called {wish} there; {_wish(holder)} is another server, {differs}"


def _wish(cluster: Sequence[TemplatedEntry]) -> str:
    # A counter keeps the order of the first sighting among equals.
    return Counter(entry.seen.server.key for entry in cluster).most_common(1)[0][0]


def _merged(key: str, cluster: Sequence[TemplatedEntry], variables: Variables, apart: str) -> Merged:
    # An entry with references comes before one with secrets: somebody chose variables there already.
    entry = min(cluster, key=lambda entry: sum(value is not None for value in entry.secrets))
    off = [one.seen.title for one in cluster if one.seen.server.disabled]
    is_off = len(off) == len(cluster)
    for other in (entry, *cluster):
        variables.note(key, other, entry, needed=not is_off)
    server = variables.written(key, entry)
    timeouts = [one.seen.server.timeout for one in cluster if one.seen.server.timeout is not None]
    server = replace(
        server,
        type=_type(cluster, server),
        timeout=max(timeouts, default=None),
        disabled=is_off,
    )
    remarks = [f"switched off in {', '.join(off)}"] if off and not server.disabled else []
    others = sorted({one.seen.server.key for one in cluster} - {key})
    if apart:
        remarks.append(apart)
    elif others:
        remarks.append(f"also known as {', '.join(others)}")
    remarks += dict.fromkeys(remark for one in cluster for remark in one.seen.remarks)
    return Merged(server=server, seen=tuple(one.seen for one in cluster), remarks=tuple(remarks), apart=apart)


def _type(cluster: Sequence[TemplatedEntry], server: ServerConfig) -> Literal["stdio", "http", "sse"]:
    if server.url is None:
        return "stdio"
    # Some clients take a url without a type for SSE, so one that says http knows more.
    sse = all(one.seen.server.type == "sse" for one in cluster)
    return "sse" if sse or server.url.partition("?")[0].endswith(_SSE) else "http"
