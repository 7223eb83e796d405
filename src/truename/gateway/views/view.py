"""Views: what one endpoint shows. A dialect and a style over all servers, or one server alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple
from urllib.parse import unquote

from truename import dialects
from truename.config.addresses import MAIN, SERVERS, path_of
from truename.errors import UnknownDialect, excerpt
from truename.gateway.protocol.pages import Pages
from truename.gateway.protocol.routing_headers import mirrored_arguments
from truename.gateway.views.app_bridge import is_for
from truename.gateway.views.contexts import unknown_context
from truename.gateway.views.profiled import Limits
from truename.gateway.views.skill_names import AS_SERVED, SkillNames
from truename.gateway.views.texts import AS_THEY_ARE, ServerTexts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from truename.dialects import Dialect
    from truename.identity import ToolId
    from truename.naming import NameTable

__all__ = ["MAIN", "Asked", "UnknownView", "View", "ViewSpec", "profile_in", "read_path"]

_FOR: Final = "/for/"
_IN: Final = "/in/"
_PROFILE: Final = "/profile/"
_ONLY: Final = "/only/"
_SEARCH: Final = "/search"
_WAYS: Final = ("/for/CLIENT", "/profile/NAME", "/in/CONTEXT", _SEARCH, "/only/SERVER", "/servers/SERVER,SERVER")


@dataclass(frozen=True)
class ViewSpec:
    """Which names to show: a dialect, a style (None: the ledger's), and the one server that is shown, if it is one.

    ``client`` is who asks, where the address says so; ``kind`` is what is named: tools or prompts. ``profiles`` are
    those of which any shows it; None is everything. ``servers`` are those whose things alone are shown, under the
    names that they have among all; None is all. ``search`` is whether tools are searched here and few are listed,
    whatever the configuration says.
    """

    dialect: str
    style: str | None = None
    only: str | None = None
    client: str | None = None
    kind: Literal["tools", "prompts"] = "tools"
    profiles: tuple[str, ...] | None = None
    search: bool = False
    servers: tuple[str, ...] | None = None

    def __hash__(self) -> int:
        """Return the hash, computed once: several tables are asked by it in each request."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        named = (self.dialect, self.style, self.only, self.client, self.kind)
        return hash((*named, self.profiles, self.search, self.servers))

    @property
    def limits(self) -> Limits:
        """What of all there is may be shown."""
        return Limits(self.profiles, self.servers)

    @property
    def unlimited(self) -> ViewSpec:
        """The view of which this is a part; itself, if nothing limits it."""
        return replace(self, profiles=None, servers=None) if self.limits != Limits() else self

    @property
    def caller(self) -> str:
        """The client that the address names, without its version, as policy rules have it; "" if it names none."""
        return (self.client or "").partition("@")[0]

    @property
    def rules(self) -> Dialect:
        """What its names have to be."""
        return dialects.get(self.dialect) if self.only is None else dialects.own(self.client, self.only)

    @property
    def scope(self) -> str:
        """The naming scope in the ledger."""
        own = "" if self.only is None else f"only/{self.only}"
        return own if self.kind == "tools" else f"prompts/{own}".rstrip("/")


@dataclass(frozen=True)
class View:
    """A compiled view: its name table, and the descriptors of tools/list in fixed order with their tools.

    One page holds all of them, unless that would be more than clients accept in one message. ``whole`` is the view of
    which this is a part; ``texts`` says how the servers' texts are read in it.
    """

    spec: ViewSpec
    table: NameTable
    described: tuple[tuple[ToolId, Mapping[str, Any]], ...]
    whole: View | None = None
    texts: ServerTexts = AS_THEY_ARE

    @cached_property
    def tools(self) -> tuple[Mapping[str, Any], ...]:
        """The descriptors alone."""
        return tuple(map(itemgetter(1), self.described))

    @cached_property
    def by_name(self) -> Mapping[str, Mapping[str, Any]]:
        """The descriptors by name, in order."""
        return {str(tool["name"]): tool for tool in self.tools}

    @cached_property
    def by_id(self) -> Mapping[ToolId, Mapping[str, Any]]:
        """The descriptors by tool, each under its present name."""
        return {id: tool for id, tool in self.described if tool["name"] == self.table.get(id)}

    @cached_property
    def exposed(self) -> set[tuple[ToolId, tuple[ToolId, ...]]]:
        """The tools of which it is known that this view's context may call them, each with its former ids."""
        return set()

    @cached_property
    def _mirrored(self) -> dict[ToolId, Any]:
        return {}

    def mirrored(self, id: ToolId) -> Any:
        """Return a tool's input schema if headers repeat some of its arguments (``x-mcp-header``), else None."""
        if id not in self._mirrored:
            schema = self.table.catalog[id].definition.get("inputSchema")
            self._mirrored[id] = schema if mirrored_arguments(schema) else None
        return self._mirrored[id]

    @cached_property
    def _skill_names(self) -> dict[str, tuple[object, SkillNames]]:
        return {}

    def skill_names(self, server: str, own: tuple[Mapping[str, Any], ...]) -> SkillNames:
        """Return the names of a server's tools as its skills say them; ``own`` are all tools that it lists."""
        known, names = self._skill_names.get(server, (None, AS_SERVED))
        if known is not own:
            tools = ((self.table.catalog[id].origin, str(tool["name"])) for id, tool in self.by_id.items())
            shown = {origin.name: name for origin, name in tools if origin.server == server}
            names = SkillNames(shown, {str(tool.get("name")) for tool in own})
            self._skill_names[server] = own, names
        return names

    @cached_property
    def digest(self) -> str:
        """The version of the catalogue behind it."""
        # All definitions are read for it: once, whatever is left out for whom.
        return self.table.catalog.digest if self.whole is None else self.whole.digest

    def without(self, hidden: frozenset[ToolId]) -> View:
        """Return the view without these tools. Its names stay: they are claimed, and calls of them are resolved."""
        texts = self.texts.without(hidden)
        kept = tuple(one for one in self.described if one[0] not in hidden)
        return View(self.spec, self.table, texts.retold(kept, self.table, self.texts), self, texts)

    @cached_property
    def for_models(self) -> View:
        """The view without the tools that are for apps alone; itself, if there are none."""
        own = frozenset(id for id, tool in self.described if not is_for("model", tool))
        return self.without(own) if own else self

    @cached_property
    def pages(self) -> Pages:
        """The descriptors in pages."""
        return Pages(self.tools)

    def page_json(self, cursor: str | None) -> tuple[bytes, str | None]:
        """Return a page as a JSON array, of descriptors that are written once, and the cursor of the next page.

        Raises `ValueError` for a cursor that is none of ours.
        """
        return self.pages.page_json(cursor)


class UnknownView(LookupError):
    """A path leads to no endpoint; the text says which there are."""


class Asked(NamedTuple):
    """What a path asks for: a client's names (None: whoever it is), one server (None: all), a context (None: any).

    ``profile`` is the one by which is to be seen (None: all of who asks), ``profiles`` are those by which is seen.
    ``search`` is whether tools are to be searched, ``servers`` are those to be shown alone, sorted (None: all).
    """

    client: str | None = None
    server: str | None = None
    context: str | None = None
    profile: str | None = None
    profiles: tuple[str, ...] | None = None
    search: bool = False
    servers: tuple[str, ...] | None = None

    @property
    def path(self) -> str:
        """The path that asks for it."""
        return path_of(
            client=self.client,
            profile=self.profile,
            context=self.context,
            search=self.search,
            server=self.server,
            servers=self.servers,
        )


def read_path(
    path: str, servers: Collection[str], contexts: Collection[str] = (), profiles: Collection[str] = ()
) -> Asked:
    """Return what a path asks for: ``/mcp[/for/CLIENT][/profile/NAME][/in/CONTEXT][/search][/only/SERVER]``.

    In place of one server it may end in several, ``/servers/SERVER,SERVER``: of these one has to be there, the others
    may come back. Raises `UnknownView` with suggestions; of ``servers`` and ``profiles`` only those exist that are
    given here.

    >>> read_path("/mcp/for/Claude Code/in/phone/only/git/hub", ["git/hub"], ["phone"])[:3]
    ('claude-code', 'git/hub', 'phone')
    >>> read_path("/mcp/servers/mail,git,gone", ["git", "mail"]).servers
    ('git', 'gone', 'mail')
    """
    if path.rstrip("/") == MAIN:
        return Asked()
    client, rest = _taken(_FOR, path.removeprefix(MAIN))
    profile, rest = _taken(_PROFILE, rest)
    context, rest = _taken(_IN, rest)
    search = f"{rest}/".startswith(f"{_SEARCH}/")
    rest = rest.removeprefix(_SEARCH) if search else rest
    # A server's key may have slashes, so it is all that is left.
    server = rest.removeprefix(_ONLY) if rest.startswith(_ONLY) else None
    several = rest.removeprefix(SERVERS) if rest.startswith(SERVERS) else None
    if not path.startswith(MAIN) or (server is several is None and rest.rstrip("/")):
        ways = ", ".join(f"{MAIN}{way}" for way in _WAYS)
        message = f"There is nothing at {excerpt(path)}. Use {MAIN}, {ways}, or several of them in this order."
        raise UnknownView(message)
    known = None if profile is None else _profile(profile, profiles)
    return Asked(
        None if client is None else _dialect(client),
        None if server is None else _server(server, servers),
        None if context is None else _context(context.rstrip("/"), contexts),
        known,
        search=search,
        servers=None if several is None else _servers(several, servers),
    )


def profile_in(path: str) -> str | None:
    """Return the name of the profile that a path asks for, whether there is such a one or not.

    >>> profile_in("/mcp/for/cursor/profile/support/only/github")
    'support'
    """
    return _taken(_PROFILE, _taken(_FOR, path.removeprefix(MAIN))[1])[0]


def _taken(word: str, rest: str) -> tuple[str | None, str]:
    """Return the value after a word of a path, which has no slash in it, and what comes behind."""
    if not rest.startswith(word):
        return None, rest
    value, slash, behind = rest.removeprefix(word).partition("/")
    return value, slash + behind


def _servers(text: str, known: Collection[str]) -> tuple[str, ...]:
    """Return which servers a path asks for, whether or not they are there, if one of them is."""
    asked = sorted({_written(unquote(one), known) for one in text.split(",")})
    if not any(one in known for one in asked):
        _server(asked[0], known)
    return tuple(asked)


def _written(key: str, known: Collection[str]) -> str:
    """Return a server's key as it is known, where blanks stand around it or the path's last slash behind it."""
    return next((one for one in (key, key.strip(), key.strip().rstrip("/")) if one in known), key)


def _context(name: str, contexts: Collection[str]) -> str:
    if name not in contexts:
        raise UnknownView(unknown_context(name, contexts))
    return name


def _profile(name: str, profiles: Collection[str]) -> str:
    if name not in profiles:
        # Which others there are is nobody's business.
        message = f"Unknown profile {excerpt(name)}."
        raise UnknownView(message)
    return name


def _dialect(name: str) -> str:
    try:
        return dialects.get(name).name
    except UnknownDialect as error:
        raise UnknownView(str(error)) from error


def _server(asked: str, servers: Collection[str]) -> str:
    for key in (asked, asked.rstrip("/"), unquote(asked)):
        if key in servers:
            return key
    close = get_close_matches(asked, servers, 3)
    hint = f"Did you mean {', '.join(map(repr, close))}?" if close else f"Known are: {', '.join(sorted(servers))}."
    message = f"Unknown server {excerpt(asked)}. {hint}"
    raise UnknownView(message)
