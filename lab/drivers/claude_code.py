"""Claude Code: a configuration of servers given on the command line; by default it defers all tools of servers."""

from __future__ import annotations

from lab.drivers.stage import PROMPT, Entry, Launch, Stage, write_json

__all__ = ["launch"]


def launch(stage: Stage) -> Launch:
    """Write `mcp.json` and start a headless run. Option ``tool_search``: "false" shows all tools at once."""
    servers = {entry.key: _entry(entry) for entry in stage.servers}
    path = write_json(stage.home / "mcp.json", {"mcpServers": servers})
    write_json(stage.home / ".claude.json", {"hasCompletedOnboarding": True, "bypassPermissionsModeAccepted": True})
    env = {
        "ANTHROPIC_BASE_URL": stage.model,
        "ANTHROPIC_API_KEY": "lab",
        "IS_SANDBOX": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "MCP_TIMEOUT": "20000",
    }
    if "tool_search" in stage.client.options:
        env["ENABLE_TOOL_SEARCH"] = stage.client.options["tool_search"]
    flags = ("--strict-mcp-config", "--dangerously-skip-permissions", "--model", "claude-sonnet-4-5")
    return Launch(command=(stage.client.program("claude"), "-p", PROMPT, "--mcp-config", str(path), *flags), env=env)


def _entry(entry: Entry) -> dict[str, object]:
    if entry.url is not None:
        return {"type": "http", "url": entry.url}
    return {"type": "stdio", "command": entry.command, "args": list(entry.args)}
