"""One configuration from many sightings: one server once, different ones under different keys, no secret copied."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from truename.config.entries import Entry, Seen, is_gateway, marked, take_apart
from truename.config.model import Config, ServerConfig, Settings
from truename.config.templates import Ref
from truename.config.trial import trial
from truename.config.variables import Variable, Variables

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping, Sequence

__all__ = ["Merged", "Proposal", "Refused", "Variable", "propose"]

_SSE: Final = "/sse"
# Each is compared with all that look like it.
_MOST: Final = 2_000


@dataclass(frozen=True, kw_only=True)
class Merged:
    """One server of the proposal, where it was seen, and what people should know of it."""

    server: ServerConfig
    seen: tuple[Seen, ...]
    remarks: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """The lines that stand above the entry."""
        found = tuple(f"{seen.title}: {seen.place}" for seen in self.seen)
        return (*found, *self.remarks)


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A sighting that can't become a server, and why."""

    seen: Seen
    problem: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What is proposed: the servers, the variables that they refer to, and what had to be left out."""

    servers: tuple[Merged, ...]
    variables: tuple[Variable, ...]
    refused: tuple[Refused, ...]
    gateways: tuple[Seen, ...] = field(default=())

    def config(self, settings: Settings) -> Config:
        """Return the configuration with these settings."""
        return Config(servers=tuple(merged.server for merged in self.servers), settings=settings)

    @property
    def notes(self) -> Mapping[str, Sequence[str]]:
        """The comments of each server, by key."""
        return MappingProxyType({merged.server.key: merged.notes for merged in self.servers})


def propose(sightings: Iterable[Seen], environ: Mapping[str, str]) -> Proposal:
    """Merge sightings into one configuration.

    The same program with the same arguments, directory and names of variables, or the same address, is one server;
    ``@latest`` and ``-y`` make no difference, another version does. Two entries of one file are never merged, and
    neither are two that differ in a secret unless they go by the same key. A key that two different servers have stays
    with the one more clients know; the other's gets the name of its client. Surprising: of a server that one client
    has switched off and another uses, the entry is on.
    """
    gateways: list[Seen] = []
    fit: list[Entry] = []
    refused: list[Refused] = []
    entries: list[Entry] = []
    for seen in (one.guarded for one in sightings):
        if is_gateway(seen.server):
            gateways.append(seen)
        elif len(entries) == _MOST:
            problem = f"there are more than {_MOST:,} servers"
            refused.append(Refused(seen=seen, problem=problem, remedy="Name the files that you need."))
        else:
            entries.append(take_apart(seen))
    for entry in marked(entries):
        if (found := trial(entry, environ)) is None:
            fit.append(entry)
        else:
            refused.append(Refused(seen=entry.seen, problem=found[0], remedy=found[1]))
    reserved = {part.name for entry in fit for _, part in entry.variables() if isinstance(part, Ref)}
    variables = Variables(environ, reserved)
    servers = tuple(_merged(key, cluster, variables) for key, cluster in _keyed(_clusters(fit)))
    return Proposal(servers=servers, variables=variables.all(), refused=tuple(refused), gateways=tuple(gateways))


def _clusters(entries: Iterable[Entry]) -> list[list[Entry]]:
    groups: defaultdict[Hashable, list[list[Entry]]] = defaultdict(list)
    clusters: list[list[Entry]] = []
    for entry in entries:
        group = groups[entry.identity]
        home = next((cluster for cluster in group if all(_is_same(entry, other) for other in cluster)), None)
        if home is None:
            home = []
            group.append(home)
            clusters.append(home)
        home.append(entry)
    return clusters


def _is_same(one: Entry, other: Entry) -> bool:
    if one.seen.file == other.seen.file:
        # Several clients may read one file; two entries of it are two servers, whatever is in them.
        return one.seen.where == other.seen.where
    return _folded(one) == _folded(other) or all(
        a == b or a is None or b is None for a, b in zip(one.secrets, other.secrets, strict=True)
    )


def _folded(entry: Entry) -> str:
    return entry.seen.server.key.casefold()


def _keyed(clusters: Sequence[Sequence[Entry]]) -> list[tuple[str, Sequence[Entry]]]:
    """Give each server a key of its own, in the order in which they were met."""
    wishes = {id(cluster): _wish(cluster) for cluster in clusters}
    taken: set[str] = set()
    given: dict[int, str] = {}
    # Whom more clients know keeps the key, so that most of what refers to it stays right.
    for cluster in sorted(clusters, key=lambda cluster: -len(cluster)):
        wish = wishes[id(cluster)]
        client = cluster[0].seen.client
        candidates = [wish, f"{wish}-{client}", *(f"{wish}-{number}" for number in range(2, len(clusters) + 2))]
        key = next(candidate for candidate in candidates if candidate.casefold() not in taken)
        taken.add(key.casefold())
        given[id(cluster)] = key
    return [(given[id(cluster)], cluster) for cluster in clusters]


def _wish(cluster: Sequence[Entry]) -> str:
    # A counter keeps the order of the first sighting among equals.
    return Counter(entry.seen.server.key for entry in cluster).most_common(1)[0][0]


def _merged(key: str, cluster: Sequence[Entry], variables: Variables) -> Merged:
    # A template with a reference goes before one with a secret: there somebody chose a variable already.
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
    if others:
        remarks.append(f"also known as {', '.join(others)}")
    remarks += dict.fromkeys(remark for one in cluster for remark in one.seen.remarks)
    return Merged(server=server, seen=tuple(one.seen for one in cluster), remarks=tuple(remarks))


def _type(cluster: Sequence[Entry], server: ServerConfig) -> Literal["stdio", "http", "sse"]:
    if server.url is None:
        return "stdio"
    # Some clients take a url without a type for SSE, so one that says http knows more.
    sse = all(one.seen.server.type == "sse" for one in cluster)
    return "sse" if sse or server.url.partition("?")[0].endswith(_SSE) else "http"
