"""Every translation between the rows' words and Truename's, each in one table, and no others.

Words for profiles, clients and products are not here: they go through the aliases of the dialect table.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename import Ledger, Style, ToolId

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.policy import Outcome

__all__ = [
    "BEFORE_RENAME",
    "CONFIG_FILES",
    "CONFIG_OPTIONS",
    "CONVENTION",
    "ERRORS",
    "GATES",
    "LATER",
    "METADATA_FIELDS",
    "MIGRATIONS",
    "NOT_COMPARED",
    "OP_DIALECTS",
    "OP_STYLES",
    "PAGES",
    "RECORD_FIELDS",
    "STEPS",
    "STYLES",
    "SURFACES",
    "USER_AGENT",
]

# The steps of resolution: Truename's word -> the seeds' words for it.
STEPS: Final = {
    "table": ("descriptor", "exposed"),
    "spelling": ("prefix",),
    "folded": ("prefix",),
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

# What seed 003 says of a tool -> the fields of its metadata.
METADATA_FIELDS: Final = {
    "isForLlm": "is_for_llm",
    "isRecordable": "is_recordable",
    "platforms": "platforms",
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

# The convention of an op whose row names none.
CONVENTION: Final = "trailblaze"

# Documentation: the item -> its page under docs/.
PAGES: Final = {
    "tools-reference": "reference/tools-reference.md",
    "authentication / how to connect your client": "start/connect-by-hand.md",
    "naming convention in a config file": "teams/conventions.md",
}

# Kinds of migration -> what enters a rename in the ledger.
MIGRATIONS: Final[dict[str, Callable[[Ledger, str, ToolId], None]]] = {
    "clean_break": Ledger.break_name,
    "redirect": Ledger.redirect,
}
# What seed 002's names had before the rename, where they have an underscore now.
BEFORE_RENAME: Final = ("_", ".")

# Where a name stands (seed 002): the surface -> a file of it, and how it has the name.
SURFACES: Final = {
    "contract": ("docs/protocol.md", "| `{name}` | runs a command |\n"),
    "fixtures": ("fixtures/request.json", '{{"tool": "{name}", "arguments": {{}}}}\n'),
    "MCP": ("server/tools.json", '{{"tools": [{{"name": "{name}", "inputSchema": {{"type": "object"}}}}]}}\n'),
    "chat": ("server/chat.py", 'TOOLS = [{{"name": "{name}", "input_schema": SCHEMA}}]\n'),
    "agent dispatch table": ("agent/src/dispatch.rs", 'match tool {{ "{name}" => run(args), _ => refuse() }}\n'),
    "agent is_mutating table": ("agent/src/policy.rs", 'matches!(tool, "{name}" | "reboot")\n'),
}

# What the reference implementation logged, which the rows keep for people to read.
NOT_COMPARED: Final = {"warnings"}

# Gates before a tool (seed 002: policy tables are keyed by name): the word for those it stops -> what a rule says.
GATES: Final[dict[str, Outcome]] = {
    "denied": "deny",
    "blocked": "deny",
    "mutating": "ask",
    "needs_approval": "ask",
}

# Ops that this driver knows of and cannot execute, by the capability that they wait for.
LATER: Final[dict[str, tuple[str, ...]]] = {}
