"""A pin: what one tool was at one time, as a comparison needs it; from a declaration, a catalogue, or a lock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from truename.catalog import Catalog
from truename.identity import definition_digest

if TYPE_CHECKING:
    from truename.policy.declaration import Declaration
    from truename.policy.finding import Location

__all__ = ["Key", "Pin", "Tools", "pinned"]

Key = tuple[str, str]
Tools: TypeAlias = "Catalog | Iterable[Declaration | Pin]"

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_WORDS: Final = re.compile(r"[^\W_]+")
_READ: Final = 2_000
# Fewer words than these ("Get status", "Runs it.") are said of different tools.
_ENOUGH: Final = 3
_IDEOGRAPHS: Final = "\u2e80"


@dataclass(frozen=True)
class Pin:
    """One tool as it was: its server's key, its name there, and its definition, or of that only the digests.

    ``recorded`` are the digests of a tool whose definition is not at hand, by name (``digest``, ``shape``,
    ``schema``). ``parameters`` are names, with a ``?`` behind those that may be left out, sorted.
    """

    name: str
    server: str = ""
    definition: Mapping[str, Any] | None = field(default=None, hash=False)
    parameters: tuple[str, ...] = ()
    recorded: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    location: Location | None = None

    @property
    def key(self) -> Key:
        """Which tool of which server."""
        return self.server, self.name

    @cached_property
    def digest(self) -> str:
        """The digest of the whole definition; "" if that is not known."""
        return self.recorded.get("digest", "") if self.definition is None else definition_digest(self.definition)

    @cached_property
    def shape(self) -> str:
        """The digest of the definition without the name; "" where so little is said that it proves nothing."""
        if self.definition is None:
            return self.recorded.get("shape", "")
        return self.unnamed if self._says_enough else ""

    @cached_property
    def schema(self) -> str:
        """The digest of both schemas alone; "" if they are not known."""
        if self.definition is None:
            return self.recorded.get("schema", "")
        return definition_digest({key: self.definition.get(key) for key in ("inputSchema", "outputSchema")})

    def is_as(self, other: Pin) -> bool:
        """Tell whether two pins of one name are of one definition; what says nothing equals what says nothing."""
        if self.definition is None or other.definition is None:
            return self.digest == other.digest
        return self.unnamed == other.unnamed

    @cached_property
    def unnamed(self) -> str:
        """The digest of the definition without the name, however little it says; "" if it is not known."""
        if self.definition is None:
            return ""
        return definition_digest({key: value for key, value in self.definition.items() if key != "name"})

    @property
    def _says_enough(self) -> bool:
        said = (self.definition or {}).get("description")
        words = {word.lower() for word in _WORDS.findall(said[:_READ])} if isinstance(said, str) else set()
        return sum(len(word) // 2 if word >= _IDEOGRAPHS else 1 for word in words) >= _ENOUGH


def pinned(tools: Tools) -> tuple[Pin, ...]:
    """Return the pins of a catalogue or of declarations, sorted; of a name that one server lists twice, the first.

    >>> from truename.catalog import Catalog
    >>> [pin.key for pin in pinned(Catalog.from_mcp({"files": ["write", "read"]}))]
    [('files', 'read'), ('files', 'write')]
    """
    found: dict[Key, Pin] = {}
    for pin in _pins(tools):
        found.setdefault(pin.key, pin)
    return tuple(found[key] for key in sorted(found))


def _pins(tools: Tools) -> Iterable[Pin]:
    if isinstance(tools, Catalog):
        return (_pin(tool.origin.name, tool.origin.server_id, tool.definition) for tool in tools.values())
    return (one if isinstance(one, Pin) else _pin(one.name, one.server, one.definition, one.location) for one in tools)


def _pin(name: str, server: str, definition: Mapping[str, Any], location: Location | None = None) -> Pin:
    # A source may leave the name out of what it tells; the digest is of all of it.
    whole = definition if "name" in definition else {"name": name, **definition}
    return Pin(name, server, whole, _parameters(definition), location=location)


def _parameters(definition: Mapping[str, Any]) -> tuple[str, ...]:
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return ()
    listed = schema.get("required")
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return tuple(name if name in required else f"{name}?" for name in sorted(properties))
