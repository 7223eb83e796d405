"""Every translation between the rows' words and Truename's, each in one table, and no others.

Words for profiles, clients and products are not here: they go through the aliases of the dialect table.
"""

from __future__ import annotations

from typing import Final

from truename import Style

__all__ = [
    "CONFIG_FILES",
    "CONFIG_OPTIONS",
    "ERRORS",
    "LATER",
    "NOT_COMPARED",
    "OP_DIALECTS",
    "OP_STYLES",
    "PAGES",
    "RECORD_FIELDS",
    "STEPS",
    "STYLES",
    "USER_AGENT",
]

# The steps of resolution: Truename's word -> the seeds' words for it.
STEPS: Final = {
    "table": ("descriptor", "exposed"),
    "derived": ("prefix",),
}

# Codes of errors: a seed's word -> Truename's code; all others are equal.
ERRORS: Final = {"ambiguous": "ambiguous_name", "collision": "duplicate_name"}

# Strategies and schemes: a seed's word -> a style.
STYLES: Final[dict[str, str | Style]] = {
    "native": "declared",
    "always_namespaced": "prefixed",
    "on_conflict": "on-conflict",
    "double_underscore": "dotted-double",
    "underscore": Style("underscore", prefix="never"),
}

# The dialect and style of an op whose row names none.
OP_DIALECTS: Final = {
    "flatten": "openai",
    "assigned": "openai",
    "assigned_unique": "openai",
    "resolve": "openai",
    "resolve_all_equal": "openai",
    "mcp_prefix": "openai",
    "encode": "anthropic",
    "encode_resolve": "anthropic",
    "encode_unique": "anthropic",
    "on_conflict": "native",
    "on_conflict_update": "native",
    "perf": "native",
}
OP_STYLES: Final = {
    "on_conflict": "on-conflict",
    "on_conflict_update": "on-conflict",
    "perf": "on-conflict",
    "mcp_prefix": "declared",
    "mcp_prefix (opted in)": "server-prefix",
}

# What seed 004 stores with a tool -> the fields of an Origin.
RECORD_FIELDS: Final = {
    "serverId": "server_id",
    "serverName": "server",
    "originalName": "name",
    "hasConflict": "has_conflict",
}

USER_AGENT: Final = "user-agent"

# Formats and options of configurations: the word -> a file that has it, the setting that it is.
CONFIG_FILES: Final = {
    "mcpServers": '{"mcpServers": {"weather": {"command": "weather-server"}, "db": {"url": "http://localhost:9/mcp"}}}',
}
CONFIG_OPTIONS: Final = {"naming strategy": "style"}

# Documentation: the item -> its page under docs/.
PAGES: Final = {
    "tools-reference": "tools-reference.md",
    "authentication / how to connect your client": "authentication.md",
}

# What the reference implementation logged, which the rows keep for people to read.
NOT_COMPARED: Final = {"warnings"}

# Ops that this driver knows of and can't execute, by the capability that they wait for.
LATER: Final = {
    "migration": (
        "rename_plan", "migrate_call", "migrate_files", "drift_check", "bump", "version_cmp", "skew", "skew_report",
        "gate", "adr",
    ),
    "conventions": (
        "classify", "lint", "lint_set", "lint_owner", "lint_apps", "register", "filter", "execute", "metadata",
        "record", "shared_impl", "cli_lint",
    ),
}  # fmt: skip
