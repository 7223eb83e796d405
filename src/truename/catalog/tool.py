"""A tool as a catalogue holds it: its id, where it comes from, and its definition as the server gave it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truename.identity import definition_digest

if TYPE_CHECKING:
    from truename.identity import ToolId

__all__ = ["Notice", "Origin", "Tool"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a tool comes from: the server's key and the tool's own name there, both verbatim.

    ``server_id`` is unique in the catalogue even where two servers have one label; ``has_conflict`` tells whether
    another server has a tool of the same name (seed 004, ``hasConflict``).
    """

    server: str
    name: str
    server_id: str
    has_conflict: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: identity, origin, and the definition (a tools/list entry, never changed)."""

    id: ToolId
    origin: Origin
    definition: Mapping[str, Any] = field(hash=False)

    @property
    def digest(self) -> str:
        """The digest of the definition: what approvals and pins are about."""
        return definition_digest(self.definition)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the server says about the tool beside its definition (``_meta``); empty if nothing."""
        meta = self.definition.get("_meta")
        return meta if isinstance(meta, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Notice:
    """Something about a server's list that its reader should know: ``duplicate`` or ``invalid``."""

    code: str
    server: str
    name: str
    text: str
