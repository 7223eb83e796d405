"""A kill at any step leaves each file old or new, and the backup of each new one; what was begun can be finished."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.editing.killing import killed_everywhere
from truename.clients import Machine, apply, find
from truename.clients.apply import plan_disconnection
from truename.clients.connection import ConnectRequest, plan_connection
from truename.clients.gateway_address import GatewayAddress, UpcomingNames, names_together
from truename.config import Config, ServerConfig
from truename.editing import backups, digest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")]

WEATHER = ServerConfig(key="weather", command="uvx", args=("w",))
OLD = {
    ".claude.json": b'{"mcpServers": {"weather": {"command": "uvx", "args": ["w"]}, "mine": {"command": "x"}}}\n',
    ".claude/settings.json": b'{"permissions": {"allow": ["mcp__weather__get", "Bash(ls)"]}}\n',
}
NEW = {
    ".claude.json": b'{"mcpServers": {"mine": {"command": "x"}, '
    b'"tn": {"type": "http", "url": "http://127.0.0.1:8750/mcp/servers/weather"}}}\n',
    ".claude/settings.json": b'{"permissions": {"allow": ["mcp__tn__get", "Bash(ls)"]}}\n',
}


def environ(place: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(place / "state"), "HOME": str(place)}


def prepare(place: Path) -> None:
    """Make a home to connect, and one that is connected."""
    for base in (place / "fresh", place / "connected"):
        for name, raw in OLD.items():
            (base / name).parent.mkdir(parents=True, exist_ok=True)
            (base / name).write_bytes(raw)
    finish_connect(place / "connected")


def connect(place: Path) -> None:
    finish_connect(place / "fresh")


def disconnect(place: Path) -> None:
    finish_disconnect(place / "connected")


def finish_connect(base: Path) -> None:
    machine = Machine(system="linux", home=base, environ=environ(base), project=base, root=base)
    config = Config(path=Path("/etc/truename.toml"), servers=(WEATHER,))
    address = GatewayAddress(config=config, url="http://127.0.0.1:8750", program="/opt/truename")
    names = UpcomingNames({}, names_together({"weather": ["get"]}, Config(), dialect="universal"))
    plan = plan_connection(machine, find(machine), address, ConnectRequest(client="claude-code", entries="one"), names)
    apply.connect(plan, environ(base))


def finish_disconnect(base: Path) -> None:
    apply.disconnect(plan_disconnection("claude-code", environ(base)), environ(base))


def state_of(base: Path) -> dict[str, bytes]:
    return {name: (base / name).read_bytes() for name in OLD}


def test_a_kill_at_any_step_of_connect_leaves_old_or_new_files_and_a_backup_of_each_new_one(tmp_path: Path) -> None:
    seen = set()
    for number, place in enumerate(killed_everywhere(f"{__name__}:connect", tmp_path)):
        base = place / "fresh"
        kept = {one.path: one for one in backups(environ(base))}
        for name, now in state_of(base).items():
            assert now in (OLD[name], NEW[name])
            seen.add(now)
            if now == NEW[name]:
                backup = kept[base / name]
                assert (backup.original(), backup.after) == (OLD[name], digest(now))
        # After one call and before the next the disk is the same: most states are finished once, and undone at once.
        if number % 2:
            finish_connect(base)
            assert state_of(base) == NEW
        finish_disconnect(base)
        assert state_of(base) == OLD
    assert seen == {*OLD.values(), *NEW.values()}


def test_a_kill_at_any_step_of_disconnect_leaves_files_that_can_be_given_back(tmp_path: Path) -> None:
    seen = set()
    for place in killed_everywhere(f"{__name__}:disconnect", tmp_path):
        base = place / "connected"
        for name, now in state_of(base).items():
            assert now in (OLD[name], NEW[name])
            seen.add(now)
        finish_disconnect(base)
        assert state_of(base) == OLD
        assert not [one for one in backups(environ(base)) if one.action == "connect"]
    assert seen == {*OLD.values(), *NEW.values()}
