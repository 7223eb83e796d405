"""Declare the rules about tool names in skills, agents and other files of clients; `truename.clients` checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.conventions.findings import Severity, rules_by_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.conventions.findings import Rule

__all__ = ["FILE_RULES"]

_E, _W, _N = Severity.ERROR, Severity.WARNING, Severity.NOTE

# fmt: off
_TABLE: Final = (
    ("TN181", "missing_tool", _E,
     "A skill, an agent or a permission names a tool that does not exist.",
     "An agent lacks its tool, a denial denies nothing, and a model that reads the name makes a call that fails.",
     "tools: mcp__git__comit, where the server git has a tool commit",
     "write the name of an existing tool"),
    ("TN182", "former_name", _W,
     "A skill, an agent or a permission names a tool by a name that is not the one that its client sees.",
     "It is old, a server's own name behind the gateway, or another spelling. A permission for it has no effect.",
     "allowed-tools: mcp__git__log_list, which was renamed list_log",
     "write the present name; `truename lint --fix` does where the name is certain"),
    ("TN183", "idle_glob", _W,
     "A glob in a list of tools matches no tool.",
     "The list allows, asks or denies nothing by it.",
     "tools: mcp__git__get_*, where no tool of the server git begins with get_",
     "correct or remove the glob"),
    ("TN184", "unchecked_name", _N,
     "A name in a list of tools was not checked, mostly because no tool of its server is known.",
     "Whether the tool exists is not known.",
     "tools: mcp__jira__search, where no source has tools of jira",
     "name a source that has its tools: `--beside FILE`, or `truename lock`"),
)
# fmt: on

# By name.
FILE_RULES: Final[Mapping[str, Rule]] = rules_by_name(_TABLE)
