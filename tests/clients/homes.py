"""Made-up machines for the tests of clients, made from the collected facts and not from the project's own table."""
# ruff: noqa: E501 - the facts are quoted as they stand

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.shared import data
from truename.clients import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from truename.clients.machine import System

__all__ = ["SYSTEMS", "Case", "cases", "content", "machine", "rows", "written"]

SYSTEMS: Final[tuple[System, ...]] = ("linux", "macos", "windows")
# Texts of the facts that say more than one path, or a path with words around it.
_SPOKEN: Final[Mapping[str, tuple[str, ...]]] = {
    "%LOCALAPPDATA%\\Packages\\Claude_*\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json (MSIX: default installer since 2026-02)": (
        "%LOCALAPPDATA%/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json",
    ),
    "%APPDATA%\\Claude\\claude_desktop_config.json (non-MSIX)": ("%APPDATA%/Claude/claude_desktop_config.json",),
    "~/.claude/plugins/{cache,repos}/**/.mcp.json and .claude-plugin/plugin.json mcpServers": (
        "~/.claude/plugins/cache/market/plugin/1.0.0/.mcp.json",
        "~/.claude/plugins/repos/plugin/.mcp.json",
        "~/.claude/plugins/cache/market/plugin/1.0.0/.claude-plugin/plugin.json",
    ),
    "~/.config/Code/User/mcp.json (profiles: User/profiles/<id>/mcp.json)": (
        "~/.config/Code/User/mcp.json",
        "~/.config/Code/User/profiles/-1a2b/mcp.json",
    ),
    "~/.config/Code - Insiders/User/mcp.json (profiles: User/profiles/<id>/mcp.json)": (
        "~/.config/Code - Insiders/User/mcp.json",
        "~/.config/Code - Insiders/User/profiles/-1a2b/mcp.json",
    ),
    ".vscode/mcp.json (also .code-workspace settings.mcp; devcontainer customizations.vscode.mcp)": (
        ".vscode/mcp.json",
        "my.code-workspace",
        ".devcontainer/devcontainer.json",
    ),
    ".continue/mcpServers/*.yaml|*.json (workspace) and ~/.continue/mcpServers/*.json": (
        ".continue/mcpServers/one.yaml",
        ".continue/mcpServers/one.json",
        "~/.continue/mcpServers/one.json",
    ),
    "${XDG_CONFIG_HOME:-~/.config}/zed/settings.json (flatpak: $FLATPAK_XDG_CONFIG_HOME/zed)": (
        "~/.config/zed/settings.json",
    ),
    "<root>/.agents/mcp_config.json (also .agent/, _agents/, _agent/; walks up to repo root, union)": (
        ".agents/mcp_config.json",
        ".agent/mcp_config.json",
        "_agents/mcp_config.json",
        "_agent/mcp_config.json",
    ),
    "${XDG_CONFIG_HOME:-~/.config}/opencode/opencode.json|opencode.jsonc (creates .jsonc)": (
        "~/.config/opencode/opencode.json",
        "~/.config/opencode/opencode.jsonc",
    ),
    "~/.config/opencode/opencode.json[c]": ("~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc"),
    "%USERPROFILE%\\.config\\opencode\\opencode.json[c]": (
        "~/.config/opencode/opencode.json",
        "~/.config/opencode/opencode.jsonc",
    ),
    "opencode.json[c] or .opencode/opencode.json[c]": (
        "opencode.json",
        "opencode.jsonc",
        ".opencode/opencode.json",
        ".opencode/opencode.jsonc",
    ),
    "~/.config/kilo/kilo.json[c]; project kilo.json, .kilo/, .kilocode/ (older: ~/.kilocode/cli/global/settings/mcp_settings.json, .kilocode/mcp.json with mcpServers + alwaysAllow)": (
        "~/.config/kilo/kilo.json",
        "~/.config/kilo/kilo.jsonc",
        "kilo.json",
        ".kilo/kilo.json",
        ".kilocode/kilo.json",
        "~/.kilocode/cli/global/settings/mcp_settings.json",
        ".kilocode/mcp.json",
    ),
    ".mcp.json or .github/mcp.json": (".mcp.json", ".github/mcp.json"),
    "~/.aws/amazonq/mcp.json; agents ~/.aws/amazonq/cli-agents/*.json (IDE: ~/.aws/amazonq/agents/default.json)": (
        "~/.aws/amazonq/mcp.json",
        "~/.aws/amazonq/cli-agents/one.json",
        "~/.aws/amazonq/agents/default.json",
    ),
    ".amazonq/mcp.json; .amazonq/cli-agents/*.json": (".amazonq/mcp.json", ".amazonq/cli-agents/one.json"),
    ".air/mcp.json (local) and .mcp.json (workspace, opt-in)": (".air/mcp.json", ".mcp.json"),
    "~/.lmstudio/mcp.json (or ~/.cache/lm-studio/mcp.json)": ("~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"),
    "~/.lmstudio/mcp.json or ~/.cache/lm-studio/mcp.json": ("~/.lmstudio/mcp.json", "~/.cache/lm-studio/mcp.json"),
    "<LibreChat>/librechat.yaml (CONFIG_PATH env)": ("librechat.yaml",),
    "~/.config/crush/crush.json (deprecated) or ~/.config/crush/crushrc": (
        "~/.config/crush/crush.json",
        "~/.config/crush/crushrc",
    ),
    "same as linux": ("~/.config/crush/crush.json", "~/.config/crush/crushrc"),
    "%USERPROFILE%\\.config\\crush\\crushrc ; %LOCALAPPDATA%\\crush\\crush.json is STATE": ("~/.config/crush/crushrc",),
    ".crush.json | crush.json | .crushrc | crushrc": (".crush.json", "crush.json", ".crushrc", "crushrc"),
    "~/.warp/.mcp.json ; {repo}/.warp/.mcp.json": ("~/.warp/.mcp.json", ".warp/.mcp.json"),
    ".trae/mcp.json (needs 'Enable Project MCP')": (".trae/mcp.json",),
    "%APPDATA%\\amp\\settings.json (toolhive) | %USERPROFILE%\\.config\\amp (not verified)": (
        "%APPDATA%/amp/settings.json",
        "~/.config/amp/settings.json",
    ),
    "~/.zencoder/mcp.local.json (CLI); IDE: UI storage / settings key zencoder.mcpServers (not verified)": (
        "~/.zencoder/mcp.local.json",
    ),
    "~/.kimi-code/mcp.json ($KIMI_CODE_HOME) NEW; ~/.kimi/mcp.json OLD": ("~/.kimi-code/mcp.json", "~/.kimi/mcp.json"),
    "$GROK_HOME/config.toml (~/.grok/config.toml) ; .grok/config.toml": ("~/.grok/config.toml", ".grok/config.toml"),
    "$PI_CODING_AGENT_DIR/mcp.json (~/.pi/agent/mcp.json) ; .pi/mcp.json": ("~/.pi/agent/mcp.json", ".pi/mcp.json"),
    "~/.tabnine/agent/settings.json ; .tabnine/agent/settings.json ; system /etc/tabnine-cli/settings.json, /Library/Application Support/TabnineCli/settings.json": (
        "~/.tabnine/agent/settings.json",
        ".tabnine/agent/settings.json",
    ),
    "~/.mcporter/mcporter.json[c] ; config/mcporter.json": (
        "~/.mcporter/mcporter.json",
        "~/.mcporter/mcporter.jsonc",
        "config/mcporter.json",
    ),
    "~/.mastracode/mcp.json ; .mastracode/mcp.json": ("~/.mastracode/mcp.json", ".mastracode/mcp.json"),
}
_FOLDERS: Final = {
    "~": "home",
    "%USERPROFILE%": "home",
    "%APPDATA%": "home/AppData/Roaming",
    "%LOCALAPPDATA%": "home/AppData/Local",
    "%ProgramFiles%": "root/Program Files",
    "%ProgramData%": "root/ProgramData",
    "C:": "root",
    "": "root",
}
_PLAIN: Final[dict[str, Any]] = {"command": "node", "args": ["s.js"]}


class Case(NamedTuple):
    """One path of one entry of the facts on one system; ``steps`` lead there from the folder of the machine."""

    number: int
    client: str
    scope: str
    system: System
    path: str
    steps: str


def rows() -> list[dict[str, Any]]:
    """Return the entries of the facts."""
    found: list[dict[str, Any]] = json.loads(data("facts", "client-configs.json").read_bytes())
    return found


def cases(system: System) -> Iterator[Case]:
    """Yield every path of every entry."""
    for number, row in enumerate(rows()):
        told = row["os_paths"][system]
        for text in [told] if isinstance(told, str) else told or ():
            for path in _SPOKEN.get(text, (text,)):
                yield Case(number, row["client"], row["scope"], system, path, _steps(path))


def _steps(path: str) -> str:
    path = path.replace("\\", "/")
    assert not set(path) & set("*<>{}$|;()[]"), f"no test knows what {path!r} means"
    first, slash, rest = path.partition("/")
    return f"{_FOLDERS[first]}/{rest}" if slash and first in _FOLDERS else f"home/project/{path}"


def machine(folder: Path, system: System, **environ: str) -> Machine:
    """Return a machine that lies in one folder, with nothing of the real one."""
    (folder / "home" / "project").mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    return Machine(system=system, home=home, environ=environ, project=home / "project", root=folder / "root")


def written(folder: Path, case: Case, name: str) -> Path:
    """Write the file of a case, with one server of that name."""
    path = folder / case.steps
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content(case, name), "utf-8")
    return path


def content(case: Case, name: str) -> str:
    """Return a file as its client would write it."""
    suffix = case.path.rpartition(".")[2]
    if case.path.endswith("crushrc"):
        return f"#!/bin/sh\n# mine\nmcp add {name} --type stdio --command node --args s.js\n"
    if suffix == "toml":
        table = (
            f'[[mcp_servers]]\nname = "{name}"\ntransport = "stdio"'
            if case.client == "mistral-vibe"
            else f"[mcp_servers.{name}]"
        )
        return f'{table}\ncommand = "node"\nargs = ["s.js"]\n'
    if suffix == "yaml":
        return _yaml(case.client, name)
    return json.dumps(_json(case, name), indent=2)


def _yaml(client: str, name: str) -> str:
    return {
        "goose": f"extensions:\n  {name}:\n    type: stdio\n    cmd: node\n    args: [s.js]\n    enabled: true\n",
        "continue": f"mcpServers:\n  - name: {name}\n    command: node\n    args: [s.js]\n",
        "librechat": f"mcpServers:\n  {name}:\n    type: stdio\n    command: node\n    args: [s.js]\n",
    }[client]


def _json(case: Case, name: str) -> Any:
    others: dict[str, dict[str, Any]] = {
        "opencode": {"type": "local", "command": ["node", "s.js"]},
        "kilo-code": {"type": "local", "command": ["node", "s.js"]},
        "cline": {"transport": {"type": "stdio", **_PLAIN}},
        "5ire": {"type": "local", "key": name, "isActive": True, **_PLAIN},
    }
    entry = others.get(case.client, _PLAIN)
    if case.client == "kilo-code" and not case.path.endswith(("kilo.json", "kilo.jsonc")):
        return {"mcpServers": {name: {**_PLAIN, "alwaysAllow": ["t"]}}}
    if case.path.endswith(".code-workspace"):
        return {"folders": [], "settings": {"mcp": {"servers": {name: entry}}}}
    if case.path.endswith("devcontainer.json"):
        return {"customizations": {"vscode": {"mcp": {"servers": {name: entry}}}}}
    if case.scope.startswith("plugin"):
        return {"name": "p", "mcpServers": {name: entry}} if case.path.endswith("plugin.json") else {name: entry}
    if case.scope.startswith("local"):
        return {"projects": {"/srv/p": {"mcpServers": {name: entry}}}}
    return {_KEYS.get(case.client, "mcpServers"): {name: entry}}


_KEYS: Final = {
    "vscode": "servers",
    "vscode-insiders": "servers",
    "vscode-server": "servers",
    "zed": "context_servers",
    "opencode": "mcp",
    "kilo-code": "mcp",
    "crush": "mcp",
    "amp": "amp.mcpServers",
}
