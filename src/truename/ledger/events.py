"""The events that a ledger records; its state is the result of applying all events in order.

Each event has a plain form, a JSON object whose ``event`` key names its kind, so that any store can keep it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import date
from functools import lru_cache
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Final

from truename.identity import ToolId

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

__all__ = ["Bind", "Break", "Claim", "Event", "LedgerSettings", "Own", "Redirect", "Retire", "from_plain"]


# The names of the fields, by kind of event.
_NAMES: Final[dict[str, tuple[str, ...]]] = {}


def _names(event: Event) -> tuple[str, ...]:
    found = _NAMES.get(event.kind)
    if found is None:
        found = _NAMES[event.kind] = tuple(field.name for field in fields(event))
    return found


def _values(event: Event) -> dict[str, Any]:
    # Written once here: the same methods made by the decorator for each class cost much of the import.
    return {name: getattr(event, name) for name in _names(event)}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Event:
    """The common fields of all events: the naming scope ("" is the shared one), and the time (ISO 8601, UTC)."""

    kind: ClassVar[str] = ""

    at: str = ""
    scope: str = ""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and _values(self) == _values(other)

    def __hash__(self) -> int:
        return hash((type(self), *_values(self).values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in _values(self).items() if value not in ("", None))
        return f"{type(self).__name__}({shown})"

    def stamped(self, at: str, scope: str) -> Self:
        """Return the event with its time and its naming scope."""
        # A projection stamps thousands: `dataclasses.replace` takes five times as long.
        copy, put = object.__new__(type(self)), object.__setattr__
        for name in _names(self):
            put(copy, name, getattr(self, name))
        put(copy, "at", at)
        put(copy, "scope", scope)
        return copy

    def plain(self) -> dict[str, Any]:
        """Return the event as a JSON object; empty fields are left out."""
        found: dict[str, Any] = {"event": self.kind}
        for name in _names(self):
            value = getattr(self, name)
            if isinstance(value, ToolId):
                found[name] = str(value)
            elif value not in ("", None):
                found[name] = value
        return found


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class LedgerSettings(Event):
    """The settings by which names are made in a scope; recorded at the first projection."""

    kind: ClassVar[str] = "settings"

    style: str
    server_name: str
    aliases: Mapping[str, str]

    def same(self, other: LedgerSettings) -> bool:
        """Return whether other settings make the same names."""
        mine = (self.style, self.server_name, dict(self.aliases))
        return mine == (other.style, other.server_name, dict(other.aliases))

    def difference(self, other: LedgerSettings) -> str:
        """Describe the fields of these settings that differ in the other ones."""
        pairs = ((f, getattr(self, f), getattr(other, f)) for f in ("style", "server_name", "aliases"))
        return ", ".join(f"{field} = {value!r}" for field, value, wanted in pairs if value != wanted)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Bind(Event):
    """A tool of a server got its identity. The order of these events is the fixed order of lists."""

    kind: ClassVar[str] = "bind"

    server: str
    name: str
    id: ToolId


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Claim(Event):
    """A name was shown for a tool in a table (a dialect's name): from now on it means this tool or nothing.

    ``prefix`` is the server's part that it begins with, ``number`` what tells a further version apart at its end.
    Raises `TypeError` for a number that is none.
    """

    kind: ClassVar[str] = "claim"

    name: str
    id: ToolId
    table: str
    server: str
    prefix: str = ""
    number: int | None = None

    def __post_init__(self) -> None:
        if type(self.number) not in (int, NoneType):
            message = f"{self.number!r} is not a number"
            raise TypeError(message)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Retire(Event):
    """A name was withdrawn.

    Calls of it are refused, with its successor named if it has one, and it is never shown again.
    """

    kind: ClassVar[str] = "retire"

    name: str
    successor: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Redirect(Event):
    """An old name stays valid for this tool, and is listed beside the present name until a day (ISO 8601).

    Raises `ValueError` or `TypeError` for an invalid day.
    """

    kind: ClassVar[str] = "redirect"

    name: str
    id: ToolId
    until: str = ""

    def __post_init__(self) -> None:
        if self.until:
            date.fromisoformat(self.until)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Break(Event):
    """A clean break: from this protocol version on the name does not exist, and calls of it name its successor.

    ``id`` is the successor's tool, as far as it was known.
    """

    kind: ClassVar[str] = "break"

    name: str
    id: ToolId | None = None
    successor: str = ""
    protocol: str = ""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Own(Event):
    """A URI was shown as it is for a resource of this server: from now on it never leads to another server's."""

    kind: ClassVar[str] = "own"

    uri: str
    server: str


_KINDS: Final[Mapping[str, type[Event]]] = MappingProxyType(
    {kind.kind: kind for kind in (LedgerSettings, Bind, Claim, Retire, Redirect, Break, Own)}
)


@lru_cache(maxsize=65_536)
def _id(text: str) -> ToolId:
    return ToolId.parse(text)


def from_plain(plain: Mapping[str, Any]) -> Event:
    """Rebuild an event from its plain form. Raises `ValueError` for an unknown kind or missing fields."""
    values = dict(plain)
    kind = _KINDS.get(values.pop("event", ""))
    if kind is None:
        message = f"unknown kind of event: {plain.get('event')!r}"
        raise ValueError(message)
    if "id" in values:
        values["id"] = _id(values["id"])
    try:
        return kind(**values)
    except TypeError as error:
        raise ValueError(str(error)) from error
