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

# Measured over 5,478 real definitions: on average 711 characters of JSON and 178 tokens (o200k), medians 412 and 109.
_CHARACTERS_A_TOKEN: Final = 4
_MODEL_FIELDS: Final = ("name", "description", "inputSchema")


def estimated_tokens(definitions: Iterable[Mapping[str, object]]) -> int:
    """Estimate how many tokens these definitions take in a request to a model: a quarter of their characters.

    >>> estimated_tokens([{"name": "add", "inputSchema": {"type": "object"}, "_meta": {"program": "only"}}])
    11
    """
    texts = (
        json.dumps({key: one[key] for key in _MODEL_FIELDS if key in one}, separators=(",", ":"), ensure_ascii=False)
        for one in definitions
    )
    return sum(map(len, texts)) // _CHARACTERS_A_TOKEN


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a tool: the server's key and the tool's own name on that server, both verbatim.

    ``server_id`` is unique in the catalogue even if two servers have one label; ``has_conflict`` is whether another
    server has a tool of the same name.
    """

    server: str
    name: str
    server_id: str
    has_conflict: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: identity, origin, and definition (a tools/list entry, never changed).

    ``presented`` are the operator's replacements for ``title``, ``description`` and ``annotations``. ``offered`` is the
    definition that the server gives now if ``definition`` is an earlier, trusted one that is shown instead.
    """

    id: ToolId
    origin: Origin
    definition: Mapping[str, Any] = field(hash=False)
    presented: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    offered: Mapping[str, Any] | None = field(default=None, hash=False)

    @property
    def current(self) -> Mapping[str, Any]:
        """The definition that the server gives now; calls run on it even if another one is shown."""
        return self.definition if self.offered is None else self.offered

    @property
    def digest(self) -> str:
        """The digest of the current definition; pins and approvals are bound to it, not to the shown definition."""
        return definition_digest(self.current)

    @property
    def shown(self) -> Mapping[str, Any]:
        """The definition that clients and rules see: with the operator's replacements applied."""
        return overlaid(self.definition, self.presented) if self.presented else self.definition

    @property
    def repeatable(self) -> bool | None:
        """Whether the operator allows a call to be retried (``idempotentHint``); the server's own hint is ignored."""
        hint: bool | None = self.presented.get("annotations", {}).get("idempotentHint")
        return hint

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The ``_meta`` of the definition; empty if the server sent none."""
        meta = self.definition.get("_meta")
        return meta if isinstance(meta, Mapping) else {}


def overlaid(definition: Mapping[str, Any], presented: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a copy of a definition with the operator's replacements; annotations are replaced one by one.

    A title replaces both titles that a server may give; otherwise clients would still show the other one.

    >>> shown = overlaid({"name": "rm", "annotations": {"title": "Tidy", "readOnlyHint": True}}, {"title": "Delete"})
    >>> shown["annotations"]
    {'title': 'Delete', 'readOnlyHint': True}
    """
    given = definition.get("annotations")
    annotations = dict(given) if isinstance(given, Mapping) else {}
    if "title" in presented and "title" in annotations:
        annotations["title"] = presented["title"]
    annotations |= presented.get("annotations", {})
    return {**definition, **presented, **({"annotations": annotations} if annotations else {})}


@dataclass(frozen=True, slots=True)
class AdmissionNotice:
    """A notice about one tool of a server's list; the code is ``duplicate``, ``invalid`` or ``taken``."""

    code: str
    server: str
    name: str
    text: str
