"""Read payloads from outside: convert typed objects to plain ones, and name the field of every error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, TypeAlias

from truename.errors import InvalidCall

if TYPE_CHECKING:
    from truename.errors import TruenameError

__all__ = ["JsonObject", "PayloadErrorType", "PayloadPlace", "plain"]

# An object of a provider's API, whose fields only the provider defines.
JsonObject: TypeAlias = dict[str, Any]

# Far above any response or history of a model, and below Python's recursion limit.
_MAX_DEPTH: Final = 100
_MAX_ENTRIES: Final = 100_000


class PayloadErrorType(Protocol):
    """A factory for the error about a field."""

    def __call__(self, *, field: str, problem: str) -> TruenameError:
        """Return the error."""
        ...


def plain(value: object, fault: PayloadErrorType = InvalidCall, where: str = "") -> Any:
    """Return a plain copy: mappings as dictionaries, sequences as lists, typed objects as their content.

    Typed objects are those of the providers' libraries (anything with pydantic's ``model_dump``); their empty optional
    fields are omitted. Raises ``fault`` for a value that is nested too deeply or too long.

    >>> plain({"content": ({"type": "text"},)})
    {'content': [{'type': 'text'}]}
    """
    return _plain(value, fault, where, 0)


def _plain(value: object, fault: PayloadErrorType, where: str, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise fault(field=where or "the payload", problem=f"is nested deeper than {_MAX_DEPTH}")
    if isinstance(value, str | int | float | bytes) or value is None:
        return value
    if isinstance(value, Mapping):
        return {key: _plain(item, fault, where, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        if len(value) > _MAX_ENTRIES:
            raise fault(field=where or "the payload", problem=f"has more than {_MAX_ENTRIES:,} entries")
        return [_plain(item, fault, where, depth + 1) for item in value]
    dump = getattr(value, "model_dump", None)
    # A value of no JSON type (a library's timestamps) is refused by its reader, if it is read at all.
    return value if dump is None else _plain(dump(by_alias=True, exclude_none=True), fault, where, depth + 1)


@dataclass(frozen=True, slots=True)
class PayloadPlace:
    """An object inside a payload, with the path to it and checked access to its fields.

    Several names for one field are alternative spellings (Gemini has two): the first that is present counts.
    """

    value: JsonObject
    where: str = ""
    fault: PayloadErrorType = InvalidCall

    @classmethod
    def of(cls, value: object, where: str = "", fault: PayloadErrorType = InvalidCall) -> PayloadPlace:
        """Return the place of an object. Raises the error if the value is not an object."""
        if not isinstance(value, dict):
            what = "is missing" if value is None else f"is of type {type(value).__name__}, not an object"
            raise fault(field=where or "the payload", problem=what)
        return cls(value, where, fault)

    def path(self, name: str) -> str:
        """Return the path to a field."""
        return f"{self.where}.{name}" if self.where else name

    def wrong(self, name: str, problem: str) -> NoReturn:
        """Raise the error for a field."""
        raise self.fault(field=self.path(name) if name else self.where, problem=problem)

    def key(self, *names: str) -> str:
        """Return the spelling of a field that is used here."""
        return next((name for name in names if self.value.get(name) is not None), names[0])

    def get(self, *names: str) -> Any:
        """Return the value of a field; None if it is missing."""
        return self.value.get(self.key(*names))

    def only(self, known: frozenset[str]) -> None:
        """Refuse unknown fields; a field that is None is ignored."""
        for name, value in self.value.items():
            if name not in known and value is not None:
                self.wrong(str(name), "is not a known field")

    def optional(self, *names: str) -> str | None:
        """Return a text; None if it is missing."""
        name = self.key(*names)
        found = self.value.get(name)
        if found is not None and not isinstance(found, str):
            self.wrong(name, f"is of type {type(found).__name__}, not text")
        return found

    def text(self, *names: str) -> str:
        """Return a required, non-empty text."""
        found = self.optional(*names)
        if not found:
            self.wrong(self.key(*names), "is missing" if found is None else "is empty")
        return found

    def number(self, name: str) -> int:
        """Return a required integer."""
        found = self.value.get(name)
        if type(found) is not int:
            self.wrong(name, "is missing" if found is None else f"is of type {type(found).__name__}, not a number")
        return found

    def inside(self, *names: str) -> PayloadPlace:
        """Return the object in a required field."""
        name = self.key(*names)
        return PayloadPlace.of(self.value.get(name), self.path(name), self.fault)

    def each(self, *names: str) -> Iterator[PayloadPlace]:
        """Yield the objects of a list; a missing list is empty."""
        name = self.key(*names)
        found = self.value.get(name)
        if found is not None and not isinstance(found, list):
            self.wrong(name, f"is of type {type(found).__name__}, not a list")
        for number, item in enumerate(found or ()):
            yield PayloadPlace.of(item, f"{self.path(name)}[{number}]", self.fault)
