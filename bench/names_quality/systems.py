"""How systems name the same tools: ours by `project`, gateways by their formulas, clients by the dialect table.

A formula is written down from the system's source; ``READ`` says of which version, and when it was read. It takes a
server's key and a tool's own name, as they stand in a configuration.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from truename import Catalog, Ledger, dialects, project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bench.names import Pairs

__all__ = ["CLIENTS", "GATEWAYS", "SYSTEMS", "Named", "System", "lost_in"]

Key = tuple[str, str]
Named = dict[Key, str]
"""The names of tools, by server key and own name; a tool that is not shown is left out."""

_NOT_WORD: Final = re.compile(r"[\W_]+")


class System(NamedTuple):
    """One way to name tools; ``follow`` names them again after a server joined, given the state of the first time."""

    name: str
    kind: str
    rule: str
    source: str
    names: Callable[[Pairs, object], Named]
    state: Callable[[], object] = lambda: None


def _by(formula: Callable[[str, str], str]) -> Callable[[Pairs, object], Named]:
    return lambda pairs, _: {(key, tool["name"]): formula(key, tool["name"]) for key, tools in pairs for tool in tools}


def _slug(text: str) -> str:
    return _NOT_WORD.sub("-", text).strip("-").lower()


def _agentgateway(pairs: Pairs, _: object) -> Named:
    several = len(pairs) > 1
    return {
        (key, tool["name"]): f"{key}_{tool['name']}" if several else tool["name"]
        for key, tools in pairs
        for tool in tools
    }


def _ours(style: str, dialect: str = "universal") -> Callable[[Pairs, object], Named]:
    def names(pairs: Pairs, ledger: object) -> Named:
        catalog = Catalog.from_mcp(dict(pairs), strict=False)
        held = ledger if isinstance(ledger, Ledger) else None
        table = project(catalog, dialect, style=style, ledger=held)
        return {(tool.origin.server, tool.origin.name): str(table[id]) for id, tool in catalog.items()}

    return names


def _client(name: str) -> Callable[[Pairs, object], Named]:
    def names(pairs: Pairs, _: object) -> Named:
        return dict(
            dialects.get(name).simulate_all((key, [tool["name"] for tool in tools]) for key, tools in pairs).shown
        )

    return names


CLIENTS: Final = ("claude-code", "codex", "cursor", "gemini-cli", "opencode", "vscode")


def _slugs(key: str, tool: str) -> str:
    return f"{_slug(key)}-{_slug(tool)}"


# Name, rule, version, how it was found out in 2026-11, formula.
_FORMULAS: Final[tuple[tuple[str, str, str, str, Callable[[str, str], str]], ...]] = (
    ("FastMCP", "`server_tool`, a mount with a namespace", "4.1.2", "run", "{}_{}".format),
    ("ContextForge", "`slug(server)-slug(tool)`", "1.0.7.post20260921", "run", _slugs),
    ("MetaMCP", "`Server__tool`", "2.4.22", "read", "{}__{}".format),
    ("LiteLLM", "`server-tool`", "1.109.1", "read", "{}-{}".format),
    ("Envoy AI Gateway", "`server__tool`", "1.1.0", "read", "{}__{}".format),
    ("ToolHive", "`server_tool`", "0.44.0", "read", "{}_{}".format),
    ("Docker MCP Gateway", "`tool` (by default)", "0.43.3", "read", lambda _, tool: tool),
    ("1MCP", "`server_1mcp_tool`", "0.35.0", "read", "{}_1mcp_{}".format),
    ("mcpproxy-go", "`server__tool`, its direct mode", "0.60.0", "read", "{}__{}".format),
)
GATEWAYS: Final = (
    *(
        System(name, "gateway", rule, f"{version}, {how}", _by(formula))
        for name, rule, version, how, formula in _FORMULAS
    ),
    System("agentgateway", "gateway", "`server_tool` where there are several servers", "1.4.1, read", _agentgateway),
)
_RUN: Final = "this version, run"
_STYLES: Final = (
    System("prefixed", "truename", "the default, with a ledger", _RUN, _ours("prefixed"), Ledger.memory),
    System("on-conflict", "truename", "with a ledger", _RUN, _ours("on-conflict"), Ledger.memory),
    System("on-conflict, no ledger", "truename", "without a memory", _RUN, _ours("on-conflict")),
    System(
        "server-prefix",
        "truename",
        "for `anthropic`, with a ledger",
        _RUN,
        _ours("server-prefix", "anthropic"),
        Ledger.memory,
    ),
)
_SIMULATED: Final = tuple(
    System(name, "client", "the servers in its own list", "the dialect table, simulated", _client(name))
    for name in CLIENTS
)
SYSTEMS: Final = (*_STYLES, *GATEWAYS, *_SIMULATED)


def lost_in(client: str, names: Iterable[str]) -> int:
    """Return how many tools of one gateway a call no longer reaches, once this client has changed their names."""
    listed = list(names)
    count: defaultdict[str, int] = defaultdict(int)
    for name in listed:
        count[name] += 1
    simulation = dialects.get(client).simulate("gateway", list(count))
    reached = set(simulation.reaches.values())
    return len(listed) - sum(name in reached for name in count)
