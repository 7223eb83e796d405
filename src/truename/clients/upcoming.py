"""Which names a client is going to see: those of the gateway's address that it is connected to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, cast

from truename import dialects
from truename.catalog import Catalog
from truename.config.addresses import path_of
from truename.errors import LedgerError
from truename.ledger import Ledger
from truename.naming import DEFAULT_SERVER_NAME, project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from truename.config import Config, Settings
    from truename.dialects import Dialect
    from truename.identity import ToolId

    # By the gateway's server key: the server's own name for a tool -> its name at the address.
    NewNames = Mapping[str, Mapping[str, str]]
    Overrides = Mapping[str, Mapping[ToolId | str, str]]

__all__ = [
    "ONLY_STYLE",
    "Upcoming",
    "alone",
    "alone_path",
    "client_of",
    "remembered",
    "together",
]

_EVERYONES: Final = "universal"
# As the gateway shows one server.
ONLY_STYLE: Final = "on-conflict"
# The ledger's word for a second server of the same key, which no configuration has.
_REPEATED: Final = "\x1f"


@dataclass(frozen=True)
class Upcoming:
    """The names at the gateway as far as they are known: of servers `alone`, and of those that are shown `together`."""

    alone: NewNames
    together: NewNames


def remembered(ledger: Ledger) -> dict[str, list[str]]:
    """Return the tools that a ledger has seen, by server key: also those that are not there at the moment."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for server, name in ledger.bindings():
        if _REPEATED not in server:
            found[server].append(name)
    return dict(found)


def alone_path(server: str, dialect: str, *, search: bool = False) -> str:
    """Return the address of one server, for a client of this dialect: its names are as long as this client takes them.

    >>> alone_path("my server", "claude-code"), alone_path("my server", "universal")
    ('/mcp/for/claude-code/only/my%20server', '/mcp/only/my%20server')
    """
    return path_of(client=client_of(dialect), search=search, server=server)


def client_of(dialect: str) -> str | None:
    """Return the client that an address is to name; None for one of which nothing is known."""
    name = dialects.get(dialect).name
    return None if name == _EVERYONES else name


def alone(
    listed: Mapping[str, Iterable[Any]], config: Config, ledger: Ledger | None = None, *, dialect: str
) -> NewNames:
    """Return the names under `alone_path`, for each server that is listed.

    Raises what `truename.naming.project` raises.
    """
    settings = config.settings
    catalog = _catalog(listed, config, ledger)
    make = partial(_names, style=ONLY_STYLE, server_name=_server_name(settings, ledger))
    names: dict[str, Mapping[str, str]] = {}
    for server in listed:
        scoped = None if ledger is None else ledger.scoped(f"only/{server}")
        rules = dialects.own(client_of(dialect), server)
        names[server] = make(catalog.only(server), ledger=scoped, dialect=rules).get(server, {})
    return MappingProxyType(names)


def together(
    listed: Mapping[str, Iterable[Any]], config: Config, ledger: Ledger | None = None, *, dialect: str
) -> NewNames:
    """Return the names of all servers under one address: ``/mcp``, or ``/mcp/for/CLIENT``.

    Raises what `truename.naming.project` raises.
    """
    settings, recorded = config.settings, None if ledger is None else ledger.settings
    lone = ONLY_STYLE if len(listed) == 1 else "prefixed"
    style = settings.style or (lone if recorded is None else recorded.style)
    return _names(
        _catalog(listed, config, ledger),
        ledger=ledger,
        dialect=dialect,
        style="canonical" if dialect == "native" else style,
        server_name=_server_name(settings, ledger),
        overrides=cast("Overrides", settings.overrides),
    )


def _catalog(listed: Mapping[str, Iterable[Any]], config: Config, ledger: Ledger | None) -> Catalog:
    settings, recorded = config.settings, None if ledger is None else ledger.settings
    aliases = settings.aliases if settings.aliases is not None or recorded is None else recorded.aliases
    tools = {server: list(names) for server, names in listed.items()}
    known = Ledger.memory() if ledger is None else ledger
    return Catalog.from_mcp(
        tools, aliases, known.bindings(), owners=known.origins(), identities=config.identities, strict=False
    )


def _names(
    catalog: Catalog,
    *,
    ledger: Ledger | None,
    dialect: Dialect | str,
    style: str,
    server_name: str,
    overrides: Overrides | None = None,
) -> NewNames:
    make = partial(project, catalog, dialect, style=style, overrides=overrides, server_name=server_name)
    try:
        table = make(ledger=ledger)
    except LedgerError as error:
        if error.code != "style_mismatch":
            raise
        # The gateway restyles a server's own view when it starts; until then there is nothing to go by.
        table = make()
    names: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for id, wire in table.items():
        origin = table.catalog[id].origin
        names[origin.server][origin.name] = wire
    return MappingProxyType(dict(names))


def _server_name(settings: Settings, ledger: Ledger | None) -> str:
    recorded = None if ledger is None else ledger.settings
    chosen = settings.server_name
    return recorded.server_name if chosen == DEFAULT_SERVER_NAME and recorded is not None else chosen
