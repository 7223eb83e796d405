"""A made-up home with Claude Code in it, for the tests of connecting."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from truename.clients import Machine, find
from truename.clients.apply import Disconnection, connect, disconnect, plan_disconnection
from truename.clients.connection import ConnectRequest, plan_connection
from truename.clients.gateway_address import GatewayAddress, UpcomingNames, names_alone, names_together
from truename.config import Config, ServerConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from truename.clients.gateway_address import NewNames
    from truename.clients.plan import ConnectionPlan

__all__ = ["GITHUB", "NAMES", "SERVERS", "Home", "known"]

GITHUB = {"command": "npx", "args": ["-y", "gh"], "env": {"TOKEN": "s3cret-value"}}
SERVERS: dict[str, Any] = {"mcpServers": {"github": GITHUB, "mine": {"command": "x"}}, "starts": 1}
LISTED = {"github": ["search", "get_me"], "jira": ["search"]}


NAMES = UpcomingNames(
    names_alone(LISTED, Config(), dialect="claude-code"), names_together(LISTED, Config(), dialect="universal")
)


def known(names: NewNames) -> UpcomingNames:
    """Return names that are the same alone and together."""
    return UpcomingNames(names, names)


class Home:
    """A made-up home with Claude Code in it."""

    def __init__(self, base: Path) -> None:
        self.servers = base / "home" / ".claude.json"
        self.settings = base / "home" / ".claude" / "settings.json"
        self.settings.parent.mkdir(parents=True)
        self.environ = {"XDG_STATE_HOME": str(base / "state")}
        self.machine = Machine(
            system="linux", home=base / "home", environ=self.environ, project=base / "home", root=base
        )
        config = Config(
            path=base / "truename.toml",
            servers=(
                ServerConfig(key="github", command="npx", args=("-y", "gh"), env={"TOKEN": "s3cret-value"}),
                ServerConfig(key="jira", url="https://jira.test/mcp", type="http"),
            ),
        )
        self.address = GatewayAddress(config=config, url="http://127.0.0.1:8750", program="/opt/truename")
        self.servers.write_text(json.dumps(SERVERS, indent=2), "utf-8")

    def gateway(self, *keys: str) -> None:
        """Have other servers, the client and the gateway alike."""
        servers = tuple(ServerConfig(key=key, command="npx", args=(key,)) for key in keys)
        self.address = replace(self.address, config=replace(self.address.config, servers=servers))
        entries = {one.key: {"command": one.command, "args": one.args} for one in servers}
        self.servers.write_text(json.dumps({"mcpServers": entries}), "utf-8")

    def plan(self, *, names: NewNames | UpcomingNames = NAMES, **wish: Any) -> ConnectionPlan:
        asked = ConnectRequest(client="claude-code", **wish)
        upcoming = names if isinstance(names, UpcomingNames) else known(names)
        return plan_connection(self.machine, find(self.machine), self.address, asked, upcoming)

    def connect(self, *, names: NewNames | UpcomingNames = NAMES, **wish: Any) -> None:
        connect(self.plan(names=names, **wish), self.environ)

    def undo(self) -> Disconnection:
        undoing = plan_disconnection("claude-code", self.environ)
        disconnect(undoing, self.environ)
        return undoing

    def read(self) -> Any:
        return json.loads(self.servers.read_text("utf-8"))

    def meddle(self, change: Callable[[Any], object]) -> None:
        value = self.read()
        change(value)
        self.servers.write_text(json.dumps(value, indent=4), "utf-8")
