"""Addresses of the gateway for a client, and the tool names that the client sees there."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, cast
from urllib.parse import unquote

from truename import dialects
from truename.auth.inbound.authentication import asks_for_token
from truename.catalog import Catalog, label_of
from truename.clients.server_entries import read_entry, speaks_http, write_entry
from truename.config import ServerConfig
from truename.config.addresses import path_of, servers_in
from truename.errors import LedgerError
from truename.identity import ToolId
from truename.ledger import Ledger
from truename.naming import DEFAULT_SERVER_NAME, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from truename.clients.table import ConfigFile
    from truename.config import Config, Settings
    from truename.config.entries import FoundEntry
    from truename.dialects import Dialect
    from truename.naming import NameTable

NewNames = Mapping[str, Mapping[str, str]]

Overrides = Mapping[str, Mapping[ToolId | str, str]]

__all__ = [
    "ADDRESS_FIELDS",
    "ONLY_STYLE",
    "TOKEN_VARIABLE",
    "GatewayAddress",
    "ShownAddress",
    "UpcomingNames",
    "alone_path",
    "client_of",
    "entry_for",
    "names_alone",
    "names_together",
    "shown_by",
    "table_together",
    "tables_alone",
    "token_reference",
    "tools_in_ledger",
]

_EVERYONES: Final = "universal"
# The style of the gateway's view of one server.
ONLY_STYLE: Final = "on-conflict"


@dataclass(frozen=True)
class UpcomingNames:
    """The known tool names at the gateway: at each server's own address, and at addresses that show several servers."""

    alone: NewNames
    together: NewNames


def tools_in_ledger(ledger: Ledger) -> dict[str, list[str]]:
    """Return the tools recorded in a ledger, by server key, including tools that are absent at present."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for server, name in ledger.bindings():
        # No configuration has two servers with one key.
        if label_of(server) == server:
            found[server].append(name)
    return dict(found)


def alone_path(server: str, dialect: str, *, search: bool = False) -> str:
    """Return the path that shows one server, with names for a client of this dialect.

    >>> alone_path("my server", "claude-code"), alone_path("my server", "universal")
    ('/mcp/for/claude-code/only/my%20server', '/mcp/only/my%20server')
    """
    return path_of(client=client_of(dialect), search=search, server=server)


def client_of(dialect: str) -> str | None:
    """Return the client to name in an address; None for a client without rules of its own."""
    name = dialects.get(dialect).name
    return None if name == _EVERYONES else name


def names_alone(
    listed: Mapping[str, Iterable[object]], config: Config, ledger: Ledger | None = None, *, dialect: str
) -> NewNames:
    """Return the tool names at each server's own address (`alone_path`).

    Raises what `truename.naming.project` raises.
    """
    tables = tables_alone(listed, config, ledger, dialect=dialect)
    return MappingProxyType({server: _by_server(table).get(server, {}) for server, table in tables.items()})


def tables_alone(
    listed: Mapping[str, Iterable[object]], config: Config, ledger: Ledger | None = None, *, dialect: str
) -> Mapping[str, NameTable]:
    """Return the tables of names of which `names_alone` tells. Raises the same."""
    settings = config.settings
    catalog = _catalog(listed, config, ledger)
    make = partial(_table, style=ONLY_STYLE, server_name=_server_name(settings, ledger))
    tables: dict[str, NameTable] = {}
    for server in listed:
        scoped = None if ledger is None else ledger.scoped(f"only/{server}")
        rules = dialects.own(client_of(dialect), server)
        tables[server] = make(catalog.only(server), ledger=scoped, dialect=rules)
    return tables


def names_together(
    listed: Mapping[str, Iterable[object]], config: Config, ledger: Ledger | None = None, *, dialect: str
) -> NewNames:
    """Return the tool names of all servers at ``/mcp`` or ``/mcp/for/CLIENT``.

    Raises what `truename.naming.project` raises.
    """
    return _by_server(table_together(listed, config, ledger, dialect=dialect))


def table_together(
    listed: Mapping[str, Iterable[object]], config: Config, ledger: Ledger | None = None, *, dialect: str
) -> NameTable:
    """Return the table of names of which `names_together` tells. Raises the same."""
    settings, recorded = config.settings, None if ledger is None else ledger.settings
    lone = ONLY_STYLE if len(listed) == 1 else "prefixed"
    style = settings.style or (lone if recorded is None else recorded.style)
    return _table(
        _catalog(listed, config, ledger),
        ledger=ledger,
        dialect=dialect,
        style="canonical" if dialect == "native" else style,
        server_name=_server_name(settings, ledger),
        overrides=cast("Overrides", settings.overrides),
    )


def _catalog(listed: Mapping[str, Iterable[object]], config: Config, ledger: Ledger | None) -> Catalog:
    settings, recorded = config.settings, None if ledger is None else ledger.settings
    aliases = settings.aliases if settings.aliases is not None or recorded is None else recorded.aliases
    tools = {server: list(names) for server, names in listed.items()}
    known = Ledger.memory() if ledger is None else ledger
    return Catalog.from_mcp(
        tools, aliases, known.bindings(), owners=known.origins(), identities=config.identities, strict=False
    )


def _table(
    catalog: Catalog,
    *,
    ledger: Ledger | None,
    dialect: Dialect | str,
    style: str,
    server_name: str,
    overrides: Overrides | None = None,
) -> NameTable:
    make = partial(project, catalog, dialect, style=style, overrides=overrides, server_name=server_name)
    try:
        return make(ledger=ledger)
    except LedgerError as error:
        if error.code != "style_mismatch":
            raise
        # The gateway restyles a server's own view when it starts; until then its recorded names don't apply.
        return make()


def _by_server(table: NameTable) -> NewNames:
    names: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for id, wire in table.items():
        origin = table.catalog[id].origin
        names[origin.server][origin.name] = wire
    return MappingProxyType(dict(names))


def _server_name(settings: Settings, ledger: Ledger | None) -> str:
    recorded = None if ledger is None else ledger.settings
    chosen = settings.server_name
    return recorded.server_name if chosen == DEFAULT_SERVER_NAME and recorded is not None else chosen


_ALONE: Final = "/only/"
_ONLY: Final = "--only"
_SERVER: Final = "--server"
TOKEN_VARIABLE: Final = "TRUENAME_TOKEN"  # noqa: S105 - a variable's name
# How each client writes an environment variable in a header, by running it or by its documentation.
_REFERENCES: Final[Mapping[str, str]] = {
    "amp": "${%s}",
    "claude-code": "${%s}",
    "cline": "${env:%s}",
    "cline-legacy": "${env:%s}",
    "codex": "${%s}",
    "continue": "${{ secrets.%s }}",
    "copilot-cli": "${%s}",
    "crush": "$%s",
    "cursor": "${env:%s}",
    "gemini-cli": "${%s}",
    "goose": "${%s}",
    "librechat": "${%s}",
    "mcporter": "${%s}",
    "opencode": "{env:%s}",
    "qwen-code": "${%s}",
    "roo-code": "${env:%s}",
    "tabnine": "$%s",
    "vscode": "${env:%s}",
    "vscode-insiders": "${env:%s}",
    "vscode-server": "${env:%s}",
    "windsurf": "${env:%s}",
    "windsurf-jetbrains": "${env:%s}",
}
# Fields that say how to reach a server; all other fields of an entry (lists of tools, timeouts, trust) are kept.
ADDRESS_FIELDS: Final = frozenset(
    {
        *(
            "command",
            "cmd",
            "args",
            "env",
            "envs",
            "env_keys",
            "env_vars",
            "envFile",
            "environment",
            "cwd",
            "working_directory",
        ),
        *("url", "uri", "httpUrl", "serverUrl", "baseUrl", "type", "transport", "headers", "headersHelper"),
        *("http_headers", "env_http_headers", "bearer_token_env_var", "requestOptions", "apiKey", "oauth", "auth"),
        *("oauth_client_id", "oauth_resource", "scopes", "authProviderType"),
    }
)


class ShownAddress(NamedTuple):
    """The servers of the gateway that an entry shows: ``only`` one, under its own names, or several.

    ``servers`` (None: all) are shown under names that are unique among all servers of the gateway.
    """

    only: str | None = None
    servers: tuple[str, ...] | None = None


def token_reference(client: str) -> str | None:
    """Return this client's reference to the environment variable of the token, None if its syntax is unknown."""
    form = _REFERENCES.get(client)
    return None if form is None else form % TOKEN_VARIABLE


@dataclass(frozen=True, kw_only=True)
class GatewayAddress:
    """The gateway's configuration, its base URL, and the program that starts it.

    ``answers`` tells whether it is running; ``environ`` resolves references in clients' entries; ``was_created_from``
    tells whether a server of the configuration was created from a client's entry.
    """

    config: Config
    url: str
    program: str
    answers: bool = False
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    was_created_from: Callable[[str, FoundEntry], bool] = field(default=lambda _, __: False, repr=False)

    def server(self, key: str, shown: ShownAddress, *, file: ConfigFile, stdio: bool, search: bool) -> ServerConfig:
        """Return the server entry for a client: the gateway's URL, or the command that starts it over stdio."""
        if stdio or not speaks_http(file.shape):
            asked = ["--search"] if search else []
            if shown.only is not None:
                client = client_of(file.dialect)
                asked = [*(["--for", client] if client else []), *asked, _ONLY, shown.only]
            asked += [word for one in sorted(shown.servers or ()) for word in (_SERVER, one)]
            return ServerConfig(key=key, command=self.program, args=("serve", str(self.config.path), *asked))
        path = path_of(search=search, servers=shown.servers)
        if shown.only is not None:
            path = alone_path(shown.only, file.dialect, search=search)
        token = token_reference(file.client) if asks_for_token(self.config) else None
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return ServerConfig(key=key, url=f"{self.url}{path}", type="http", headers=headers)

    def points_here(self, server: ServerConfig) -> bool:
        """Return whether a client's server entry already points at this gateway."""
        if server.url is not None:
            mine = f"{self.url}/mcp"
            return server.url == mine or server.url.startswith(f"{mine}/")
        words = server.args[:2]
        return server.command == self.program and words == ("serve", str(self.config.path))

    def points_elsewhere(self, server: ServerConfig) -> bool:
        """Return whether a client's server entry looks like this gateway at another address."""
        before, only, key = (server.url or "").rpartition(_ALONE)
        return bool(only) and "/mcp" in before and unquote(key) in {one.key for one in self.config.servers}


def shown_by(server: ServerConfig) -> ShownAddress:
    """Return the servers that an entry which points at a gateway shows.

    >>> shown_by(ServerConfig(key="tn", url="http://127.0.0.1:8750/mcp/servers/git,mail")).servers
    ('git', 'mail')
    """
    if server.url is not None:
        _, only, key = server.url.rpartition(_ALONE)
        return ShownAddress(only=unquote(key)) if only else ShownAddress(servers=servers_in(server.url))
    asked = [(option, value) for option, value in pairwise(server.args) if option in {_ONLY, _SERVER}]
    several = tuple(value for option, value in asked if option == _SERVER)
    return ShownAddress(next((value for option, value in asked if option == _ONLY), None), several or None)


def entry_for(server: ServerConfig, shape: str, former: object = None) -> dict[str, object]:
    """Return the entry in the client's form, keeping a former entry's fields except those about how to reach it."""
    fresh = write_entry(shape, server)
    if not isinstance(former, dict):
        return fresh
    kept = {key: value for key, value in former.items() if key not in ADDRESS_FIELDS}
    # In the order of the former entry, so that kept fields stay in place.
    mixed = {key: kept.get(key, fresh.get(key)) for key in former if key in kept or key in fresh}
    mixed |= {key: value for key, value in fresh.items() if key not in mixed}
    found = read_entry(shape, server.key, mixed)
    same = (found.url, found.command, found.args) == (server.url, server.command, server.args)
    return mixed if same and not found.disabled else fresh
