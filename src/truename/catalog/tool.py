"""Represent a tool: its id, its origin, and its definition as the server gave it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from truename.identity import definition_digest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from truename.identity import ToolId

__all__ = ["AdmissionNotice", "Origin", "Tool", "estimated_tokens", "overlaid"]

# Measured over 5,478 real definitions: 711 characters of JSON and 178 tokens (o200k) on average, 412 and 109 in the
# median.
_CHARACTERS_A_TOKEN: Final = 4
_TOLD_TO_MODELS: Final = ("name", "description", "inputSchema")


def estimated_tokens(definitions: Iterable[Mapping[str, Any]]) -> int:
    """Return about how many tokens these definitions are in a request: a quarter of their characters.

    >>> estimated_tokens([{"name": "add", "inputSchema": {"type": "object"}, "_meta": {"program": "only"}}])
    11
    """
    texts = (
        json.dumps({key: one[key] for key in _TOLD_TO_MODELS if key in one}, separators=(",", ":"), ensure_ascii=False)
        for one in definitions
    )
    return sum(map(len, texts)) // _CHARACTERS_A_TOKEN


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
    """One tool: identity, origin, and the definition (a tools/list entry, never changed).

    ``presented`` is what the operator says in the place of the server: ``title``, ``description``, ``annotations``.
    ``offered`` is the definition that the server gives now, where ``definition`` is an earlier one that was trusted
    and is shown in its place.
    """

    id: ToolId
    origin: Origin
    definition: Mapping[str, Any] = field(hash=False)
    presented: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    offered: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def current(self) -> Mapping[str, Any]:
        """The definition that the server gives now: a call runs on it, whichever definition is shown."""
        return self.definition if self.offered is None else self.offered

    @property
    def digest(self) -> str:
        """The digest of the current definition: pins and approvals are bound to it, and not to what is shown."""
        return definition_digest(self.current)

    @property
    def shown(self) -> Mapping[str, Any]:
        """The definition as it is shown, and judged by: with the operator's words in the place of the server's."""
        return overlaid(self.definition, self.presented) if self.presented else self.definition

    @property
    def repeatable(self) -> bool | None:
        """The operator's word on whether a call may be sent again (``idempotentHint``); a server's own is not asked."""
        said: bool | None = self.presented.get("annotations", {}).get("idempotentHint")
        return said

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the server says about the tool beside its definition (``_meta``); empty if nothing."""
        meta = self.definition.get("_meta")
        return meta if isinstance(meta, Mapping) else {}


def overlaid(definition: Mapping[str, Any], words: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a definition with an operator's words in it; each annotation counts by itself.

    A title stands in the place of both that a server may give, or clients would go on to show the other one.

    >>> told = overlaid({"name": "rm", "annotations": {"title": "Tidy", "readOnlyHint": True}}, {"title": "Delete"})
    >>> told["annotations"]
    {'title': 'Delete', 'readOnlyHint': True}
    """
    said = definition.get("annotations")
    notes = dict(said) if isinstance(said, Mapping) else {}
    if "title" in words and "title" in notes:
        notes["title"] = words["title"]
    notes |= words.get("annotations", {})
    return {**definition, **words, **({"annotations": notes} if notes else {})}


@dataclass(frozen=True, slots=True)
class AdmissionNotice:
    """Something about a server's list that its reader should know: ``duplicate`` or ``invalid``."""

    code: str
    server: str
    name: str
    text: str
