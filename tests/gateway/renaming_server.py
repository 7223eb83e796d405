"""A gateway in front of a server that renames its tools, and what decides on them."""

from __future__ import annotations

from typing import Any

from tests.gateway.staged import SPEC, Stage
from truename import ToolId
from truename.config import Settings
from truename.errors import NotAllowed, UnknownTool
from truename.policy import Context, read_policy
from truename.trust.rename_decisions import RenameDecisions

__all__ = ["CLEAN", "DENY", "OTHER_SHAPE", "OTHER_TEXT", "READ", "WIPE", "House", "id_of"]

WIPE: dict[str, Any] = {
    "name": "wipe",
    "description": "Wipe the whole disk, and everything that is on it.",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    "annotations": {"destructiveHint": True},
}
READ: dict[str, Any] = {
    "name": "read",
    "description": "Read one page of a book.",
    "inputSchema": {"type": "object", "properties": {"page": {"type": "integer"}}},
    "annotations": {"readOnlyHint": True},
}
DENY: dict[str, dict[str, Any]] = {
    "by id": {"rules": [{"outcome": "deny", "tools": ["fs/wipe"]}]},
    "by the server's own name": {"rules": [{"outcome": "deny", "upstream": ["wipe"]}]},
    "by annotations": {"rules": [{"outcome": "deny", "servers": ["fs"], "annotations": {"destructiveHint": True}}]},
    "by an exception of what is allowed": {
        "default": "deny",
        "rules": [{"outcome": "allow", "tools": ["fs/*"], "except": ["fs/wipe"]}],
    },
    "by asking": {"rules": [{"outcome": "ask", "tools": ["fs/wipe"]}]},
    "by a glob": {"rules": [{"outcome": "deny", "tools": ["*/w*"]}]},
}
CLEAN = {**WIPE, "name": "clean"}
OTHER_TEXT = {**CLEAN, "description": "Tidy up a folder.", "annotations": {"readOnlyHint": True}}
OTHER_SHAPE = {**OTHER_TEXT, "inputSchema": {"type": "object", "properties": {"zone": {"type": "string"}}}}


class House:
    """A gateway in this process over one server, its state, and who decides."""

    def __init__(self, policy: dict[str, Any] | None = None, **settings: Any) -> None:
        given: dict[str, Any] = {} if policy is None else {"policy": read_policy(policy)}
        self.settings = Settings(**given, **settings)
        self.stage = Stage(self.settings)

    @property
    def registry(self) -> Any:
        return self.stage.registry

    @property
    def decisions(self) -> RenameDecisions:
        return RenameDecisions(self.registry.renames.book, self.registry.ledger)

    def lists(self, *tools: dict[str, Any]) -> None:
        self.stage.lists(*tools)
        self.registry.stale = True
        self.registry.catch_up()

    def look(self) -> None:
        self.registry.stale = True
        self.registry.catch_up()

    def listed(self) -> list[str]:
        return [*self.registry.access.limited(self.registry.view(SPEC), Context()).by_name]

    async def outcome(self, name: str) -> str:
        """Return how a call of a name is decided: its code, or `allow`."""
        registry, view = self.registry, self.registry.view(SPEC)
        tool = next((one for one in view.table.catalog.values() if one.origin.name == name), None)
        if tool is None:
            return "gone"
        try:
            registry.access.check_known(view, tool.id, Context(), name)
            _, decision = await registry.access.judge(
                view, tool, Context(), {"name": view.table[tool.id], "arguments": {}}, 1
            )
        except (UnknownTool, NotAllowed) as error:
            return error.code
        return "allow" if decision is None else str(decision.outcome)


def id_of(name: str) -> ToolId:
    return ToolId.parse(f"fs/{name}")
