"""A pin: what one tool was at one time, as a comparison needs it; from a declaration, a catalogue, or a lock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from truename.catalog import Catalog
from truename.conventions import metadata_of
from truename.identity import definition_digest

if TYPE_CHECKING:
    from truename.conventions import Declaration, Location, Metadata

__all__ = ["Key", "Pin", "Tools", "pinned"]

Key = tuple[str, str]
Tools: TypeAlias = "Catalog | Iterable[Declaration | Pin]"

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_WORDS: Final = re.compile(r"[^\W_]+")
_READ: Final = 2_000
# Fewer words than these ("Get status", "Runs it.") are said of different tools.
_ENOUGH: Final = 3
# What stands where nobody wrote a description ("No description provided.", "TODO: document this tool.") says nothing.
_EMPTY: Final = frozenset(
    re.findall(
        "[a-z]+",
        "a an and api auto automatically available be been by call calls default describe described description "
        "docstring document documentation documented endpoint executes execute fixme for function generated given "
        "has is it mcp method missing na no none not operation placeholder provided run runs tbd the this to todo "
        "tool undocumented use will with yet",
    )
)
_IDEOGRAPHS: Final = "\u2e80"


@dataclass(frozen=True)
class Pin:
    """One tool as it was: its server's key, its name there, and its definition, or of that only the digests.

    ``recorded`` are the digests of a tool whose definition is not at hand, by name (``digest``, ``shape``,
    ``schema``). ``parameters`` are names, with a ``?`` behind those that may be left out, sorted. ``limits`` are the
    app and the platforms that its metadata binds it to: where these differ, equal definitions are two tools.
    """

    name: str
    server: str = ""
    definition: Mapping[str, Any] | None = field(default=None, hash=False)
    parameters: tuple[str, ...] = ()
    recorded: Mapping[str, str] = field(default_factory=lambda: _NOTHING, hash=False)
    location: Location | None = None
    limits: tuple[str, ...] = ()

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
        if not self._says_enough:
            return ""
        return definition_digest({**self.definition, "name": list(self.limits)}) if self.limits else self.unnamed

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
        counted = sum(len(word) // 2 if word >= _IDEOGRAPHS else 1 for word in words)
        return counted >= _ENOUGH and not words <= _EMPTY


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
        told = ((tool.origin, tool.definition) for tool in tools.values())
        return (_pin(origin.name, origin.server_id, said, metadata_of(said)) for origin, said in told)
    return (one if isinstance(one, Pin) else _declared(one) for one in tools)


def _declared(one: Declaration) -> Pin:
    return _pin(one.name, one.server, one.definition, one.metadata, one.location)


def _pin(
    name: str, server: str, definition: Mapping[str, Any], metadata: Metadata, location: Location | None = None
) -> Pin:
    # A source may leave the name out of what it tells; the digest is of all of it.
    whole = definition if "name" in definition else {"name": name, **definition}
    limits = (metadata.app, *sorted(metadata.platforms)) if metadata.app or metadata.platforms else ()
    return Pin(name, server, whole, _parameters(definition), location=location, limits=limits)


def _parameters(definition: Mapping[str, Any]) -> tuple[str, ...]:
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(schema, Mapping) or not isinstance(properties, Mapping):
        return ()
    listed = schema.get("required")
    required = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    return tuple(name if name in required else f"{name}?" for name in sorted(properties))
