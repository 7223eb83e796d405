"""How a client reaches the gateway: over HTTP or by starting it, with the token as a reference where it has one."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote

from truename.clients.shapes import read_entry, speaks_http, write_entry
from truename.clients.upcoming import alone_path, client_of
from truename.config import ServerConfig
from truename.config.addresses import path_of, servers_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.clients.table import ConfigFile
    from truename.config import Config
    from truename.config.entries import Seen

__all__ = ["TOKEN", "WAY", "Address", "Shown", "entry_for", "reference", "shown_by"]

_ALONE: Final = "/only/"
_ONLY: Final = "--only"
_SERVER: Final = "--server"
TOKEN: Final = "TRUENAME_TOKEN"  # noqa: S105 - a variable's name
# How each client writes an environment variable in a header: run or documented; one that is missing has no known way.
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
# What an entry says of the way to its server; everything else in it (lists of tools, times, trust) stays.
WAY: Final = frozenset(
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


class Shown(NamedTuple):
    """Which of the gateway's servers an entry shows: ``only`` one, under its own names, or these ``servers``.

    These, or all if they are None, have the names that are unique among all servers of the gateway.
    """

    only: str | None = None
    servers: tuple[str, ...] | None = None


def reference(client: str) -> str | None:
    """Return how this client writes the environment variable of the token, None where no way is known."""
    form = _REFERENCES.get(client)
    return None if form is None else form % TOKEN


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where the gateway is: its configuration, the URL that it serves at, and the program that starts it.

    ``answers`` is whether it was reached there; ``environ`` is what references stand for; ``was_made`` tells whether a
    server was made of a client's entry.
    """

    config: Config
    url: str
    program: str
    answers: bool = False
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    was_made: Callable[[str, Seen], bool] = field(default=lambda _, __: False, repr=False)

    def server(self, key: str, shown: Shown, *, file: ConfigFile, stdio: bool, search: bool) -> ServerConfig:
        """Return what a client is to have under ``key``; ``search`` has its tools searched there."""
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
        token = reference(file.client) if self.config.asks_for_token else None
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return ServerConfig(key=key, url=f"{self.url}{path}", type="http", headers=headers)

    def is_met(self, server: ServerConfig) -> bool:
        """Tell whether a client's server is this gateway already."""
        if server.url is not None:
            mine = f"{self.url}/mcp"
            return server.url == mine or server.url.startswith(f"{mine}/")
        words = server.args[:2]
        return server.command == self.program and words == ("serve", str(self.config.path))

    def is_elsewhere(self, server: ServerConfig) -> bool:
        """Tell whether a client's server looks like this gateway at another address."""
        before, only, key = (server.url or "").rpartition(_ALONE)
        return bool(only) and "/mcp" in before and unquote(key) in {one.key for one in self.config.servers}


def shown_by(server: ServerConfig) -> Shown:
    """Return what an entry that leads to a gateway shows its client.

    >>> shown_by(ServerConfig(key="tn", url="http://127.0.0.1:8750/mcp/servers/git,mail")).servers
    ('git', 'mail')
    """
    if server.url is not None:
        _, only, key = server.url.rpartition(_ALONE)
        return Shown(only=unquote(key)) if only else Shown(servers=servers_in(server.url))
    asked = [(option, value) for option, value in pairwise(server.args) if option in {_ONLY, _SERVER}]
    several = tuple(value for option, value in asked if option == _SERVER)
    return Shown(next((value for option, value in asked if option == _ONLY), None), several or None)


def entry_for(server: ServerConfig, shape: str, former: object = None) -> dict[str, Any]:
    """Return the entry in the client's own form; what a former one says of other things than the way stays."""
    fresh = write_entry(shape, server)
    if not isinstance(former, dict):
        return fresh
    kept = {key: value for key, value in former.items() if key not in WAY}
    # In the order of the former entry, so that what stays also stays where it is.
    mixed = {key: kept.get(key, fresh.get(key)) for key in former if key in kept or key in fresh}
    mixed |= {key: value for key, value in fresh.items() if key not in mixed}
    found = read_entry(shape, server.key, mixed)
    same = (found.url, found.command, found.args) == (server.url, server.command, server.args)
    return mixed if same and not found.disabled else fresh
