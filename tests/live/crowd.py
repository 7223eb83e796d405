"""Thirty real servers from two registries, pinned, with what they list and the calls that work without a network."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.live.real_servers import Probe, repository
from tests.live.registries import HOME, NotInstalled, Npm, PyPI
from truename.config import ServerConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

__all__ = ["ALL", "TEN", "Crowd", "Member", "gathered", "laid_out"]

_AT_ONCE: Final = 4


@dataclass(frozen=True, slots=True)
class Member:
    """One server: where it comes from, how many tools that version lists, and a call whose answer is known.

    ``{work}`` in an argument or a variable is a folder of the test's own. Tokens are made up: none is sent anywhere
    before a call. ``home``: the key below which it is installed, if several servers share one package.
    """

    key: str
    source: PyPI | Npm
    tools: int
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    home: str | None = None

    def installed(self) -> tuple[str, ...]:
        """Return how its program is started. Raises `NotInstalled`."""
        return self.source.command(self.home or self.key)

    def config(self, command: tuple[str, ...], work: Path) -> ServerConfig:
        """Return its entry: its home is the test's folder, so that it finds and leaves nothing of the user's."""
        program, *first = command
        args = tuple(arg.format(work=work) for arg in self.args)
        env = {"HOME": str(work / "home"), **{key: value.format(work=work) for key, value in self.env.items()}}
        return ServerConfig(key=self.key, command=program, args=(*first, *args), env=env)


@dataclass(frozen=True, slots=True)
class Crowd:
    """Those that are installed, with their entries, and why each of the others is not."""

    members: tuple[Member, ...]
    entries: tuple[ServerConfig, ...]
    missing: Mapping[str, str]


def gathered(wanted: Iterable[Member], work: Path) -> Crowd:
    """Install all of them, several at once. Those that cannot be are named, with the reason."""
    homes = {member.home or member.key: member for member in wanted}
    HOME.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = dict(zip(homes, pool.map(_attempted, homes.values()), strict=True))
    commands = {key: command for key, command in found.items() if isinstance(command, tuple)}
    there = tuple(member for member in wanted if (member.home or member.key) in commands)
    entries = tuple(member.config(commands[member.home or member.key], work) for member in there)
    return Crowd(there, entries, {key: reason for key, reason in found.items() if isinstance(reason, str)})


def _attempted(member: Member) -> tuple[str, ...] | str:
    try:
        return member.installed()
    except NotInstalled as error:
        return str(error)


def laid_out(folder: Path) -> Path:
    """Make what the servers are pointed at: two repositories, files, an empty home."""
    repository(folder / "one", "first of one")
    repository(folder / "two", "first of two")
    (folder / "home" / ".claude-server-commander").mkdir(parents=True)
    settings = folder / "home" / ".claude-server-commander" / "config.json"
    settings.write_text(json.dumps({"telemetryEnabled": False}), encoding="utf-8")
    return folder


def _old_sdk(package: str) -> tuple[str, ...]:
    """It was written for the SDK before version 2, and does not say so."""
    return (package, "mcp<2")


_GIT: Final = PyPI(("mcp-server-git==2026.10.19",), "mcp-server-git")

TEN: Final = (
    Member(
        "time",
        PyPI(("mcp-server-time==2026.10.19",), "mcp-server-time"),
        2,
        ("--local-timezone", "UTC"),
        probe=Probe("get_current_time", {"timezone": "Europe/Vienna"}, "Europe/Vienna"),
    ),
    Member(
        "git",
        _GIT,
        12,
        ("--repository", "{work}/one"),
        probe=Probe("git_log", {"repo_path": "{work}/one"}, "first of one"),
    ),
    Member("fetch", PyPI(("mcp-server-fetch==2026.10.24",), "mcp-server-fetch"), 1),
    Member(
        "sqlite",
        PyPI(_old_sdk("mcp-server-sqlite==2025.4.25"), "mcp-server-sqlite"),
        6,
        ("--db-path", "{work}/t.db"),
        probe=Probe("create_table", {"query": "CREATE TABLE IF NOT EXISTS t (a TEXT)"}, "success"),
    ),
    Member(
        "duckdb",
        PyPI(_old_sdk("mcp-server-duckdb==1.1.0"), "mcp-server-duckdb"),
        1,
        ("--db-path", "{work}/d.duckdb"),
        probe=Probe("query", {"query": "SELECT 6 * 7 AS answer"}, "42"),
    ),
    Member(
        "everything",
        Npm("@modelcontextprotocol/server-everything@2026.8.31", "mcp-server-everything"),
        16,  # with the three for clients that can be asked
        ("stdio",),
        probe=Probe("echo", {"message": "through the gateway"}, "through the gateway"),
    ),
    Member(
        "files",
        Npm("@modelcontextprotocol/server-filesystem@2026.8.31", "mcp-server-filesystem"),
        14,
        ("{work}",),
        probe=Probe("list_directory", {"path": "{work}"}, "one"),
    ),
    Member(
        "memory",
        Npm("@modelcontextprotocol/server-memory@2026.8.31", "mcp-server-memory"),
        9,
        env={"MEMORY_FILE_PATH": "{work}/memory.json"},
        probe=Probe("read_graph", {}, "entities"),
    ),
    Member(
        "sequential-thinking",
        Npm("@modelcontextprotocol/server-sequential-thinking@2026.8.31", "mcp-server-sequential-thinking"),
        1,
        probe=Probe(
            "sequentialthinking",
            {"thought": "six", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": False},
            "thoughtHistoryLength",
        ),
    ),
    Member(
        "cyanheads-git",
        Npm("@cyanheads/git-mcp-server@2.15.3", "git-mcp-server"),
        28,
        probe=Probe("git_log", {"path": "{work}/one"}, "first of one"),
    ),
)
_MORE: Final = (
    Member(
        "git-two",
        _GIT,
        12,
        ("--repository", "{work}/two"),
        probe=Probe("git_log", {"repo_path": "{work}/two"}, "first of two"),
        home="git",
    ),
    Member(
        "motherduck",
        PyPI(("mcp-server-motherduck==1.1.0",), "mcp-server-motherduck"),
        4,
        ("--db-path", ":memory:", "--read-write"),
        probe=Probe("execute_query", {"sql": "SELECT 6 * 7 AS answer"}, "42"),
    ),
    Member(
        "word",
        PyPI(("office-word-mcp-server==1.1.11",), "word_mcp_server"),
        54,
        probe=Probe("list_available_documents", {"directory": "{work}"}, "No Word documents"),
    ),
    Member(
        "desktop-commander",
        Npm("@wonderwhy-er/desktop-commander@0.2.52", "desktop-commander"),
        26,
        probe=Probe("list_directory", {"path": "{work}"}, "one"),
    ),
    Member(
        "cli",
        PyPI(_old_sdk("cli-mcp-server==0.2.5"), "cli-mcp-server"),
        2,
        env={"ALLOWED_DIR": "{work}"},
        probe=Probe("show_security_rules", {}, "Security"),
    ),
    Member("nixos", PyPI(("mcp-nixos==3.1.0",), "mcp-nixos"), 2),
    Member("duckduckgo", PyPI(("duckduckgo-mcp-server==0.7.0",), "duckduckgo-mcp-server"), 3),
    Member(
        "postgres",
        Npm("@modelcontextprotocol/server-postgres@0.6.2", "mcp-server-postgres"),
        1,
        ("postgresql://localhost/x",),
    ),
    Member(
        "github",
        Npm("@modelcontextprotocol/server-github@2025.4.8", "mcp-server-github"),
        26,
        env={"GITHUB_PERSONAL_ACCESS_TOKEN": "x"},
    ),
    Member(
        "gitlab",
        Npm("@modelcontextprotocol/server-gitlab@2025.4.25", "mcp-server-gitlab"),
        9,
        env={"GITLAB_PERSONAL_ACCESS_TOKEN": "x"},
    ),
    Member(
        "google-maps",
        Npm("@modelcontextprotocol/server-google-maps@0.6.2", "mcp-server-google-maps"),
        7,
        env={"GOOGLE_MAPS_API_KEY": "x"},
    ),
    Member(
        "slack",
        Npm("@modelcontextprotocol/server-slack@2025.4.25", "mcp-server-slack"),
        8,
        env={"SLACK_BOT_TOKEN": "x", "SLACK_TEAM_ID": "T1"},
    ),
    Member("context7", Npm("@upstash/context7-mcp@4.1.1", "context7-mcp"), 2),
    Member("tavily", Npm("tavily-mcp@0.2.22", "tavily-mcp"), 5, env={"TAVILY_API_KEY": "x"}),
    Member("notion", Npm("@notionhq/notion-mcp-server@2.5.2", "notion-mcp-server"), 24, env={"NOTION_TOKEN": "ntn_x"}),
    Member("airtable", Npm("airtable-mcp-server@1.14.0", "airtable-mcp-server"), 16, env={"AIRTABLE_API_KEY": "x"}),
    Member(
        "argocd",
        Npm("argocd-mcp@0.9.0", "argocd-mcp"),
        16,
        ("stdio",),
        env={"ARGOCD_BASE_URL": "http://localhost", "ARGOCD_API_TOKEN": "x"},
    ),
    Member("perplexity", Npm("@perplexity-ai/mcp-server@1.2.1", "perplexity-mcp"), 4, env={"PERPLEXITY_API_KEY": "x"}),
    Member("hubspot", Npm("@hubspot/mcp-server@0.4.0", "mcp-hubspot"), 21, env={"PRIVATE_APP_ACCESS_TOKEN": "x"}),
    Member("hostinger", Npm("hostinger-api-mcp@1.63.2", "hostinger-api-mcp"), 401, env={"API_TOKEN": "x"}),
    Member(
        "lark-dots",
        Npm("@larksuiteoapi/lark-mcp@0.5.1", "lark-mcp"),
        19,
        ("mcp", "-a", "x", "-s", "x", "-c", "dot"),
    ),
    Member("shortcut", Npm("@shortcut/mcp@0.25.0", "mcp-server-shortcut"), 56, env={"SHORTCUT_API_TOKEN": "x"}),
)
ALL: Final = TEN + _MORE
