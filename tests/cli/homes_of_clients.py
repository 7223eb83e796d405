"""Made-up homes with several clients in each: `python -m tests.cli.homes_of_clients DIRECTORY HOME` writes one.

Each server tells which of its tools was called, and with which credential it was started.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["HOMES", "Client", "Home", "Server", "write"]


@dataclass(frozen=True)
class Server:
    """A server as one client has it: what it is called in itself, its tools, and the client's credential for it."""

    name: str
    tools: tuple[str, ...]
    token: str | None = None

    def answer(self, tool: str) -> str:
        """Return what a call of a tool says."""
        return f"{self.name} {tool}: I see {self.token or 'no token'}."

    @property
    def program(self) -> list[str]:
        return [sys.executable, "-m", "tests.gateway.servers.accounting", self.name, *self.tools]

    @property
    def environ(self) -> dict[str, str]:
        return {"PYTHONPATH": str(ROOT), **({} if self.token is None else {"ACCOUNT_TOKEN": self.token})}


@dataclass(frozen=True)
class Client:
    """A client with its servers by key; ``denied`` are the answers that its lists keep from the model.

    ``project`` are servers of a file of the project; ``more`` are settings inside entries, ``lists`` those of files.
    """

    name: str
    servers: Mapping[str, Server]
    denied: tuple[tuple[str, str], ...] = ()
    project: Mapping[str, Server] = field(default_factory=dict)
    more: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    lists: Any = None

    def answers(self) -> tuple[list[str], list[str]]:
        """Return what calls of its tools say: of those that the model may call, and of those that it may not."""
        pairs = [(key, tool) for key, one in {**self.project, **self.servers}.items() for tool in one.tools]
        told = {pair: {**self.project, **self.servers}[pair[0]].answer(pair[1]) for pair in pairs}
        denied = sorted(told[pair] for pair in self.denied)
        return sorted(text for pair, text in told.items() if pair not in self.denied), denied


@dataclass(frozen=True)
class Home:
    """Some clients, and files that none of them can read."""

    clients: tuple[Client, ...]
    broken: Mapping[str, str] = field(default_factory=dict)


def _plain(client: Client, servers: Mapping[str, Server]) -> dict[str, Any]:
    return {
        key: {"command": one.program[0], "args": one.program[1:], "env": one.environ, **client.more.get(key, {})}
        for key, one in servers.items()
    }


def _claude(client: Client) -> dict[str, str]:
    files = {".claude.json": json.dumps({"numStartups": 7, "mcpServers": _plain(client, client.servers)}, indent=2)}
    if client.lists:
        files[".claude/settings.json"] = json.dumps({"permissions": client.lists}, indent=4)
    if client.project:
        files["work/.mcp.json"] = json.dumps({"mcpServers": _plain(client, client.project)})
    return files


def _cursor(client: Client) -> dict[str, str]:
    files = {".cursor/mcp.json": json.dumps({"mcpServers": _plain(client, client.servers)}, indent="\t") + "\n"}
    if client.lists:
        files[".cursor/permissions.json"] = json.dumps({"mcpAllowlist": client.lists})
    return files


def _gemini(client: Client) -> dict[str, str]:
    entries = json.dumps({"theme": "GitHub", "mcpServers": _plain(client, client.servers)}, indent=2)
    return {".gemini/settings.json": entries + "\n"}


def _codex(client: Client) -> dict[str, str]:
    lines = ["# mine", 'model = "o"']
    for key, entry in _plain(client, client.servers).items():
        lines += ["", f"[mcp_servers.{key}]", *(f"{name} = {_toml(value)}" for name, value in entry.items())]
    return {".codex/config.toml": "\n".join([*lines, ""])}


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in value.items())} }}"
    return json.dumps(value)


def _opencode(client: Client) -> dict[str, str]:
    entries = {
        key: {"type": "local", "command": one.program, "environment": one.environ}
        for key, one in client.servers.items()
    }
    content = {"$schema": "https://opencode.ai/config.json", "mcp": entries, **(client.lists or {})}
    return {".config/opencode/opencode.json": json.dumps(content, indent=2)}


def _continue(client: Client) -> dict[str, str]:
    servers = [
        {"name": key, "command": one.program[0], "args": one.program[1:], "env": one.environ}
        for key, one in client.servers.items()
    ]
    return {".continue/config.yaml": yaml.safe_dump({"name": "mine", "version": "1.0.0", "mcpServers": servers})}


_WRITERS: Final[Mapping[str, Callable[[Client], dict[str, str]]]] = {
    "claude-code": _claude,
    "cursor": _cursor,
    "gemini-cli": _gemini,
    "codex": _codex,
    "opencode": _opencode,
    "continue": _continue,
}

_GIT: Final = ("search", "create_issue", "delete_branch", "get.file")
_WIKI: Final = ("search", "create_page", "delete_page", "get_file")
_LONG: Final = ("list_all_open_pull_requests_with_their_reviewers_and_checks", "search")


def _git(token: str | None = "tok-git-0001") -> Server:
    return Server("git", _GIT, token)


def _wiki(token: str | None = "tok-wiki-0001") -> Server:
    return Server("wiki", _WIKI, token)


HOMES: Final[Mapping[str, Home]] = {
    "equal": Home(
        (
            Client(
                "claude-code",
                {"git": _git(), "wiki": _wiki()},
                (("git", "delete_branch"), ("wiki", "delete_page")),
                lists={
                    "deny": ["mcp__git__delete_branch", "mcp__wiki__delete_page"],
                    "allow": ["mcp__git", "Bash(ls)"],
                },
            ),
            Client("cursor", {"git": _git(), "wiki": _wiki()}, lists=["git:search"]),
            Client(
                "gemini-cli",
                {"git": _git(), "wiki": _wiki()},
                (("git", "delete_branch"),),
                more={"git": {"excludeTools": ["delete_branch"]}},
            ),
        )
    ),
    "different": Home(
        (
            Client(
                "claude-code",
                {"git": _git("tok-of-claude-4711")},
                project={"board": Server("board", ("search", "move"))},
            ),
            Client("cursor", {"git": _git("tok-of-cursor-0815"), "wiki": _wiki()}),
            Client(
                "codex",
                {"git": _git(None), "wiki": _wiki("tok-of-codex-1848")},
                (("git", "delete_branch"), ("wiki", "create_page"), ("wiki", "delete_page"), ("wiki", "get_file")),
                more={"git": {"disabled_tools": ["delete_branch"]}, "wiki": {"enabled_tools": ["search"]}},
            ),
            Client("continue", {"git": _git("tok-of-cursor-0815"), "files": _wiki("tok-of-continue-1618")}),
        ),
        broken={".gemini/settings.json": '{"mcpServers": {"git": {"command": "x",}}}'},
    ),
    "many": Home(
        (
            Client(
                "claude-code",
                {"git": _git(), "long": Server("long", _LONG)},
                (("git", "delete_branch"),),
                lists={"deny": ["mcp__git__delete_*"]},
            ),
            Client("cursor", {"git": _git(), "wiki": _wiki("tok-of-cursor-0815"), "long": Server("long", _LONG)}),
            Client(
                "gemini-cli",
                {"git": _git(), "wiki": _wiki(), "long": Server("long", _LONG)},
                (("wiki", "create_page"), ("wiki", "delete_page"), ("wiki", "get_file")),
                more={"wiki": {"includeTools": ["search"]}},
            ),
            Client("codex", {"git": _git("tok-of-codex-1848"), "my_wiki": _wiki()}),
            Client(
                "opencode",
                {"git": _git(), "wiki": _wiki(), "git_get": Server("odd", ("file", "search"))},
                (("git", "delete_branch"), ("wiki", "delete_page")),
                lists={"tools": {"git_delete_branch": False}, "permission": {"wiki_delete_page": "deny"}},
            ),
            Client("continue", {"git": _git(), "wiki": _wiki(), "long": Server("long", _LONG)}),
        ),
        broken={".codeium/windsurf/mcp_config.json": '{"mcpServers": {"git": '},
    ),
    "awkward": Home(
        (
            Client("opencode", {"a.b": Server("one", ("c", "d.e")), "a": Server("two", ("b_c", "d_e"))}),
            Client(
                "claude-code",
                {"a": Server("one", ("b__c", "x")), "a__b": Server("two", ("c", "x"))},
                (("a", "x"),),
                lists={"deny": ["mcp__a__x"]},
            ),
            Client("cursor", {"my-notes-server-of-the-team": Server("notes", _LONG), "other": Server("other", _LONG)}),
        )
    ),
}


def write(home: Home, base: Path) -> dict[Path, bytes]:
    """Write a home, and return what stands in its files."""
    texts = dict(home.broken)
    for client in home.clients:
        texts |= _WRITERS[client.name](client)
    for name, text in texts.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return {base / name: (base / name).read_bytes() for name in texts}


if __name__ == "__main__":
    write(HOMES[sys.argv[2]], Path(sys.argv[1]))
