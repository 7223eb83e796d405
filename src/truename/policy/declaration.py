"""A declaration: a tool as somebody wrote it down, before anybody asked whether it can be admitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from truename.catalog import UNDECLARED, ServerIdentity
from truename.policy.metadata import Metadata

if TYPE_CHECKING:
    from truename.policy.finding import Location

__all__ = ["Declaration"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_PLAIN = Metadata()


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """One tool as its source has it: the name verbatim, legal or not, twice or not.

    ``server`` is the key of the server that lists it, "" for the tools of a source file. ``definition`` is a
    tools/list entry, as far as the source tells it. ``location`` is the place of the name. ``ignored`` are rules that
    a comment at that place takes back: code -> reason ("" where none is given). ``shown`` is what clients call it,
    beside its own name. ``identity`` is what the configuration declares of its server's ids.
    """

    name: str
    server: str = ""
    definition: Mapping[str, Any] = field(default_factory=lambda: _NOTHING, hash=False)
    metadata: Metadata = _PLAIN
    location: Location | None = None
    ignored: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    shown: tuple[str, ...] = ()
    identity: ServerIdentity = UNDECLARED

    @property
    def description(self) -> str:
        """What the model reads about it; "" if there is no such text."""
        text = self.definition.get("description")
        return text if isinstance(text, str) else ""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The schemas of its parameters by name; none where the schema can't be read."""
        schema = self.definition.get("inputSchema")
        found = schema.get("properties") if isinstance(schema, Mapping) else None
        return found if isinstance(found, Mapping) else _NOTHING
