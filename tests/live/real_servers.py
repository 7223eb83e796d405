"""Real MCP servers, pinned, with one call each whose answer is known."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from truename.config import ServerConfig

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Probe:
    """A call of a server's own tool, and a text that the answer has to contain."""

    tool: str
    arguments: dict[str, Any]
    answer: str


@dataclass(frozen=True)
class RealServer:
    """A server as people configure it; ``{work}`` in an argument is a folder of the test's own."""

    key: str
    command: str
    args: tuple[str, ...]
    probe: Probe
    env: dict[str, str] = field(default_factory=dict)

    def config(self, work: Path) -> ServerConfig:
        args = tuple(arg.format(work=work) for arg in self.args)
        env = {key: value.format(work=work) for key, value in self.env.items()}
        return ServerConfig(key=self.key, command=self.command, args=args, env=env)


def uvx(key: str, package: str, *args: str, probe: Probe, needs: tuple[str, ...] = ()) -> RealServer:
    extra = tuple(part for need in needs for part in ("--with", need))
    return RealServer(key, str(BIN / "uvx"), (*extra, package, *args), probe)


def npx(key: str, package: str, *args: str, probe: Probe, env: dict[str, str] | None = None) -> RealServer:
    return RealServer(key, "npx", ("-y", package, *args), probe, env or {})


TIME = uvx(
    "time",
    "mcp-server-time@2026.10.19",
    "--local-timezone",
    "UTC",
    probe=Probe("get_current_time", {"timezone": "Europe/Vienna"}, "Europe/Vienna"),
)
GIT = uvx(
    "git",
    "mcp-server-git@2026.10.19",
    "--repository",
    "{work}/one",
    probe=Probe("git_log", {"repo_path": "{work}/one"}, "first of one"),
)
GIT_TWO = uvx(
    "git-two",
    "mcp-server-git@2026.10.19",
    "--repository",
    "{work}/two",
    probe=Probe("git_log", {"repo_path": "{work}/two"}, "first of two"),
)
FETCH = uvx(
    "fetch",
    "mcp-server-fetch@2026.10.24",
    "--ignore-robots-txt",
    probe=Probe("fetch", {"url": "http://127.0.0.1:9/"}, "127.0.0.1:9"),
)
SQLITE = uvx(
    "sqlite",
    "mcp-server-sqlite@2025.4.25",
    "--db-path",
    "{work}/t.db",
    probe=Probe("create_table", {"query": "CREATE TABLE IF NOT EXISTS t (a TEXT)"}, "success"),
    needs=("mcp<2",),
)
DUCKDB = uvx(
    "duckdb",
    "mcp-server-duckdb@1.1.0",
    "--db-path",
    "{work}/d.duckdb",
    probe=Probe("query", {"query": "SELECT 6 * 7 AS answer"}, "42"),
    needs=("mcp<2",),
)
EVERYTHING = npx(
    "everything",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "stdio",
    probe=Probe("echo", {"message": "through the gateway"}, "through the gateway"),
)
FILES = npx(
    "files",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "{work}",
    probe=Probe("list_directory", {"path": "{work}"}, "one"),
)
MEMORY = npx(
    "memory",
    "@modelcontextprotocol/server-memory@2026.8.31",
    probe=Probe("read_graph", {}, "entities"),
    env={"MEMORY_FILE_PATH": "{work}/memory.json"},
)

SHORT = (TIME, GIT)
PYTHON = (TIME, GIT, GIT_TWO, FETCH, SQLITE, DUCKDB)
NODE = (EVERYTHING, FILES, MEMORY)


def full() -> tuple[RealServer, ...]:
    """All that this machine can start: those from the npm registry need Node.js."""
    return PYTHON + (NODE if shutil.which("npx") else ())


def repository(path: Path, message: str) -> None:
    """Make a git repository with one commit."""
    path.mkdir(parents=True)
    run = ["git", "-C", str(path), "-c", "user.name=t", "-c", "user.email=t@localhost"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", message]):
        subprocess.run([*run, *command], check=True, capture_output=True)
