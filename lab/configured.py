"""A client's own configuration file as its users keep it: servers under short keys, and tools that it refuses.

The drivers write what one trial needs, some of it beside the client's own file; here it all stands where the client's
users have it, and where `truename connect` looks for it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from lab.drivers import driver
from lab.drivers.stage import write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from lab.drivers import Launch, Stage

__all__ = ["WAYS", "Refused", "Way", "configured"]


@dataclass(frozen=True)
class Refused:
    """Tools of one server that the client is not to run, and the others that it has."""

    key: str
    tools: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Way:
    """How one client is configured.

    ``client`` is its name for `truename connect`, ``files`` what is in the home; ``moved`` says where its driver is to
    write instead of the home or the project, ``settle`` what then is different from what the driver wrote, ``refuse``
    writes the list, unless the client has none. A client that ``remembers`` shows, until its servers answer, the list
    that it kept from the session before, so what changed in between cannot be called in its first session.
    """

    client: str
    files: tuple[str, ...]
    moved: Callable[[Stage], Stage] = lambda stage: stage
    settle: Callable[[Stage, Launch], Launch] = lambda _, launch: launch
    refuse: Callable[[Path, Refused], None] | None = None
    remembers: bool = False


def configured(way: Way, stage: Stage, refused: Refused) -> Launch:
    """Write the client's files, with the refused tools where it has such a list; returns how to start it."""
    launch = way.settle(stage, driver(stage.client.driver)(way.moved(stage)))
    for name in way.files:
        path = stage.home / name
        if path.suffix == ".json" and path.exists():
            _edit(path, lambda _: None)
    if way.refuse is not None and refused.tools:
        way.refuse(stage.home, refused)
    return launch


def _edit(path: Path, change: Callable[[Any], None]) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    change(found)
    write(path, json.dumps(found, indent=2, ensure_ascii=False) + "\n")


# --- Claude Code: servers in its state file, refusals in its settings ---


def _claude(stage: Stage, launch: Launch) -> Launch:
    given = stage.home / "mcp.json"
    servers = json.loads(given.read_text(encoding="utf-8"))
    given.unlink()
    _edit(stage.home / ".claude.json", lambda found: found.update(servers))
    without = {"--mcp-config", str(given), "--strict-mcp-config"}
    return replace(launch, command=tuple(part for part in launch.command if part not in without))


def _claude_refuses(home: Path, refused: Refused) -> None:
    names = [f"mcp__{refused.key}__{tool}" for tool in refused.tools]
    write(home / ".claude" / "settings.json", json.dumps({"permissions": {"deny": names}}, indent=2) + "\n")


# --- Codex: keys of a table have no quotes, and the list is in the server's own table ---


def _codex(stage: Stage, launch: Launch) -> Launch:
    path = stage.home / ".codex" / "config.toml"
    text = path.read_text(encoding="utf-8")
    for entry in stage.servers:
        text = text.replace(f'[mcp_servers."{entry.key}"]', f"[mcp_servers.{entry.key}]")
    write(path, text)
    return launch


def _codex_refuses(home: Path, refused: Refused) -> None:
    path, head = home / ".codex" / "config.toml", f"[mcp_servers.{refused.key}]\n"
    text = path.read_text(encoding="utf-8")
    write(path, text.replace(head, f"{head}disabled_tools = {json.dumps(refused.tools)}\n"))


# --- Continue: YAML as people write it ---


def _continue(stage: Stage, launch: Launch) -> Launch:
    path = stage.home / ".continue" / "config.yaml"
    found = json.loads(path.read_text(encoding="utf-8"))
    lines = [f"{key}: {json.dumps(value)}" for key, value in found.items() if key != "mcpServers"]
    lines.append("mcpServers:")
    for server in found["mcpServers"]:
        first, *others = (f"{key}: {value}" for key, value in server.items())
        lines += [f"  - {first}", *(f"    {line}" for line in others)]
    write(path, "\n".join(lines) + "\n")
    return replace(launch, env={**launch.env, "CONTINUE_GLOBAL_DIR": str(path.parent)})


# --- Cline: one file, where it reads it ---


def _cline(stage: Stage, launch: Launch) -> Launch:
    (stage.home / ".cline" / "cline_mcp_settings.json").unlink()
    return launch


def _in_entry(name: str, field: str, tools: Callable[[Refused], Sequence[str]]) -> Callable[[Path, Refused], None]:
    """Return what writes a list into the server's own entry."""

    def refuse(home: Path, refused: Refused) -> None:
        def change(found: Any) -> None:
            found["mcpServers"][refused.key][field] = list(tools(refused))

        _edit(home / name, change)

    return refuse


def _opencode_refuses(home: Path, refused: Refused) -> None:
    names = {f"{refused.key}_{tool}": "deny" for tool in refused.tools}
    # The last rule that fits decides.
    _edit(home / ".config" / "opencode" / "opencode.json", lambda found: found["permission"].update(names))


_CLAUDE: Final = Way(
    client="claude-code",
    files=(".claude.json", ".claude/settings.json"),
    settle=_claude,
    refuse=_claude_refuses,
)
_CODEX: Final = Way(client="codex", files=(".codex/config.toml",), settle=_codex, refuse=_codex_refuses)
_QWEN: Final = Way(
    client="qwen-code",
    files=(".qwen/settings.json",),
    refuse=_in_entry(".qwen/settings.json", "excludeTools", lambda refused: refused.tools),
)

# By client of the lab; those without a row keep no file that `truename connect` writes.
WAYS: Final[Mapping[str, Way]] = {
    "claude-code": _CLAUDE,
    "claude-code-deferred": _CLAUDE,
    "codex": _CODEX,
    "codex-deferred": _CODEX,
    "codex-code-mode": _CODEX,
    "gemini-cli": Way(
        client="gemini-cli",
        files=(".gemini/settings.json",),
        refuse=_in_entry(".gemini/settings.json", "excludeTools", lambda refused: refused.tools),
    ),
    "qwen-code": _QWEN,
    "qwen-code-deferred": _QWEN,
    "opencode": Way(
        client="opencode",
        files=(".config/opencode/opencode.json",),
        moved=lambda stage: replace(stage, work=stage.home / ".config" / "opencode"),
        refuse=_opencode_refuses,
    ),
    "cline-cli": Way(client="cline", files=(".cline/data/settings/cline_mcp_settings.json",), settle=_cline),
    "continue-cli": Way(
        client="continue",
        files=(".continue/config.yaml",),
        moved=lambda stage: replace(stage, home=stage.home / ".continue"),
        settle=_continue,
    ),
    # It has a list of what is offered, not of what is refused.
    "copilot-cli": Way(
        client="copilot-cli",
        files=(".copilot/mcp-config.json",),
        refuse=_in_entry(".copilot/mcp-config.json", "tools", lambda refused: refused.others),
        remembers=True,
    ),
}
