"""Resources and templates of all servers: which are shown, under which URI, and to whom a URI leads.

A URI belongs to the server that listed it first. Where another one has it too, its own is shown behind its key
(``truename://KEY/URI``), which always leads to that server; so a URI that was read never becomes another's. A page of
an app (``ui://``) is always shown behind its server's key, as its tools link to it (``ui://truename/KEY/...``).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote

from truename.gateway.protocol.pages import Pages
from truename.gateway.protocol.templates import LONGEST, Template, scheme_of
from truename.gateway.upstream.lists import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.gateway.upstream.lists import Kind, Lists

__all__ = ["ResourcePlace", "ResourceView", "Resources", "behind", "is_behind"]

_SCHEME: Final = "truename://"
_UI: Final = "ui://"
# A link to an app has to begin with ui://.
_UI_BEHIND: Final = "ui://truename/"
_LISTED: Final = ("resources", "templates")
# Templates by which a URI may be routed, of one server; the others are reached behind its key.
_MOST_TEMPLATES: Final = 500
_LONGEST_TEMPLATE: Final = 1024
# What was first seen where is remembered for so many URIs; the oldest that nobody lists are forgotten first.
_MOST_OWNERS: Final = 200_000


class ResourcePlace(NamedTuple):
    """Where a URI leads: the server's key and its own URI."""

    server: str
    uri: str


class ShownResource(NamedTuple):
    """A resource or template as it is listed, and where it comes from."""

    place: ResourcePlace
    uri: str
    descriptor: Mapping[str, Any]


def behind(server: str, uri: str) -> str:
    """Return the URI (or template) that leads to this server whoever else has it.

    >>> behind("my files", "file:///{path}")
    'truename://my%20files/file:///{path}'
    >>> behind("clock", "ui://face.html")
    'ui://truename/clock/face.html'
    """
    if uri.startswith(_UI):
        return f"{_UI_BEHIND}{quote(server, safe='')}/{uri.removeprefix(_UI)}"
    return f"{_SCHEME}{quote(server, safe='')}/{uri}"


def is_behind(uri: str) -> bool:
    """Tell whether a URI names the server that it leads to."""
    return uri.startswith((_SCHEME, _UI_BEHIND))


def _split(uri: str) -> ResourcePlace | None:
    if uri.startswith(_UI_BEHIND):
        key, _, own = uri.removeprefix(_UI_BEHIND).partition("/")
        return ResourcePlace(unquote(key), _UI + own)
    if not uri.startswith(_SCHEME):
        return None
    key, _, own = uri.removeprefix(_SCHEME).partition("/")
    return ResourcePlace(unquote(key), own)


@dataclass(frozen=True)
class ResourceView:
    """What one endpoint shows: in the servers' order as configured, and in each server's own."""

    resources: tuple[ShownResource, ...]
    templates: tuple[ShownResource, ...]
    servers: frozenset[str]
    owners: Mapping[str, str]
    is_whole: bool = True

    @cached_property
    def pages(self) -> Mapping[str, Pages]:
        """The lists by the method that asks for them."""
        shown = {"resources": self.resources, "templates": self.templates}
        return {KINDS[name].method: Pages([one.descriptor for one in found]) for name, found in shown.items()}

    @cached_property
    def _exact(self) -> Mapping[str, ResourcePlace]:
        return {one.uri: one.place for one in (*self.templates, *self.resources)}

    @cached_property
    def _patterns(self) -> Mapping[str, list[tuple[Template, str]]]:
        """The templates by scheme. One that makes URIs of any scheme would take what is another server's."""
        found: defaultdict[str, list[tuple[Template, str]]] = defaultdict(list)
        counted: Counter[str] = Counter()
        for one in self.templates:
            server, uri = one.place
            if len(uri) > _LONGEST_TEMPLATE or counted[server] >= _MOST_TEMPLATES:
                continue
            template = Template(uri)
            if template.scheme is not None:
                counted[server] += 1
                found[template.scheme].append((template, server))
        return found

    def is_anothers(self, uri: str) -> bool:
        """Tell whether a URI belongs to a server that is not here any more, and so becomes nobody else's."""
        owner = self.owners.get(uri)
        return self.is_whole and owner is not None and owner not in self.servers

    def places(self, uri: str) -> tuple[ResourcePlace, ...]:
        """Return where a URI may lead: to who lists it or once did, to whom it names, or whose templates it fits.

        None is no answer, several are one too many: nothing is guessed.
        """
        if found := self._exact.get(uri):
            return (found,)
        named = _split(uri)
        if named is not None and named.server in self.servers:
            return (named,)
        if named is not None or len(uri) > LONGEST:
            return ()
        if (owner := self.owners.get(uri)) in self.servers and owner is not None:
            return (ResourcePlace(owner, uri),)
        if self.is_anothers(uri):
            return ()
        patterns = self._patterns.get(scheme_of(uri) or "", ())
        fitting = dict.fromkeys(server for template, server in patterns if template.fits(uri))
        return tuple(ResourcePlace(server, uri) for server in fitting)


class Resources:
    """What all servers list. Whose a URI is was decided by what they listed ``before``, and who ``owned`` it."""

    def __init__(
        self,
        lists: Mapping[str, Lists],
        before: Resources | None = None,
        owned: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.lists = dict(lists)
        self.owners: dict[str, str] = {**({} if before is None else before.owners), **owned}
        self._views: dict[str | None, ResourceView] = {}
        present = dict.fromkeys(uri for one in _LISTED for _, uri, _ in self._entries(KINDS[one], one))
        for one in _LISTED:
            for server, uri, _ in self._entries(KINDS[one], one):
                self.owners.setdefault(uri, server)
        surplus = len(self.owners) - _MOST_OWNERS
        for uri in [uri for uri in self.owners if uri not in present][: max(surplus, 0)]:
            del self.owners[uri]

    def _entries(self, kind: Kind, name: str) -> Iterable[tuple[str, str, Mapping[str, Any]]]:
        for server, lists in self.lists.items():
            for entry in getattr(lists, name):
                yield server, str(entry[kind.key]), entry

    def shown_plain(self) -> list[tuple[str, str]]:
        """Return the URIs that are shown as they are, with their servers; first those that another server has too."""
        listed = {(uri, server): None for one in _LISTED for server, uri, _ in self._entries(KINDS[one], one)}
        counted = Counter(uri for uri, _ in listed)
        plain = [(uri, server) for uri, server in listed if self.owners[uri] == server and not is_behind(uri)]
        return sorted(plain, key=lambda one: counted[one[0]] == 1)

    def view(self, only: str | None) -> ResourceView:
        """Return what an endpoint shows: of all servers, or of one, which then has all its own URIs."""
        if only not in self._views:
            self._views[only] = ResourceView(
                tuple(self._shown("resources", only)),
                tuple(self._shown("templates", only)),
                frozenset(self.lists) if only is None else frozenset([only]),
                self.owners,
                only is None,
            )
        return self._views[only]

    def _shown(self, name: str, only: str | None) -> Iterable[ShownResource]:
        kind = KINDS[name]
        for server, uri, entry in self._entries(kind, name):
            if only not in {None, server}:
                continue
            # Tools link to apps whose URIs need not be listed: their form depends on nothing that comes and goes.
            is_plain = only is not None or (
                self.owners[uri] == server and not is_behind(uri) and not uri.startswith(_UI)
            )
            shown = uri if is_plain else behind(server, uri)
            yield ShownResource(ResourcePlace(server, uri), shown, entry if is_plain else {**entry, kind.key: shown})
