"""Read payloads from outside: convert typed objects to plain ones, and name the field of every fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol

from truename.errors import InvalidCall

if TYPE_CHECKING:
    from truename.errors import TruenameError

__all__ = ["PayloadFault", "PayloadPlace", "plain"]

# Far above any answer or history of a model, and below what Python recurses.
_MAX_DEPTH: Final = 100
_MAX_ENTRIES: Final = 100_000


class PayloadFault(Protocol):
    """Makes the error for a field and what is wrong with it."""

    def __call__(self, *, field: str, problem: str) -> TruenameError:
        """Return the error."""
        ...


def plain(value: object, fault: PayloadFault = InvalidCall, where: str = "") -> Any:
    """Return a copy in which mappings are dictionaries, sequences lists and typed objects what they stand for.

    Typed objects are those of the providers' libraries (anything with pydantic's ``model_dump``); their empty optional
    fields are left out. Raises ``fault`` for what is nested too deep or too long.

    >>> plain({"content": ({"type": "text"},)})
    {'content': [{'type': 'text'}]}
    """
    return _plain(value, fault, where, 0)


def _plain(value: object, fault: PayloadFault, where: str, depth: int) -> Any:
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
    # What is of no JSON type (a library's time stamps) is refused where it is read, if it is read at all.
    return value if dump is None else _plain(dump(by_alias=True, exclude_none=True), fault, where, depth + 1)


@dataclass(frozen=True, slots=True)
class PayloadPlace:
    """An object inside a payload and the path to it; what is read from it is checked.

    Several names for one field are spellings of it (Gemini has two): the first that is there counts.
    """

    value: dict[str, Any]
    where: str = ""
    fault: PayloadFault = InvalidCall

    @classmethod
    def of(cls, value: object, where: str = "", fault: PayloadFault = InvalidCall) -> PayloadPlace:
        """Return the place of an object. Raises the fault if it is none."""
        if not isinstance(value, dict):
            what = "is missing" if value is None else f"is of type {type(value).__name__}, not an object"
            raise fault(field=where or "the payload", problem=what)
        return cls(value, where, fault)

    def path(self, name: str) -> str:
        """Return the path to a field."""
        return f"{self.where}.{name}" if self.where else name

    def wrong(self, name: str, problem: str) -> NoReturn:
        """Raise the fault for a field."""
        raise self.fault(field=self.path(name) if name else self.where, problem=problem)

    def key(self, *names: str) -> str:
        """Return the spelling of a field that is used here."""
        return next((name for name in names if self.value.get(name) is not None), names[0])

    def get(self, *names: str) -> Any:
        """Return a field as it is; None if it is not there."""
        return self.value.get(self.key(*names))

    def only(self, known: frozenset[str]) -> None:
        """Refuse fields that are not known; one that is empty says nothing."""
        for name, value in self.value.items():
            if name not in known and value is not None:
                self.wrong(str(name), "is no field that is known here")

    def optional(self, *names: str) -> str | None:
        """Return a text, or None if it is not there."""
        name = self.key(*names)
        found = self.value.get(name)
        if found is not None and not isinstance(found, str):
            self.wrong(name, f"is of type {type(found).__name__}, not text")
        return found

    def text(self, *names: str) -> str:
        """Return a text that has to be there and not be empty."""
        found = self.optional(*names)
        if not found:
            self.wrong(self.key(*names), "is missing" if found is None else "is empty")
        return found

    def number(self, name: str) -> int:
        """Return a whole number that has to be there."""
        found = self.value.get(name)
        if type(found) is not int:
            self.wrong(name, "is missing" if found is None else f"is of type {type(found).__name__}, not a number")
        return found

    def inside(self, *names: str) -> PayloadPlace:
        """Return the object in a required field."""
        name = self.key(*names)
        return PayloadPlace.of(self.value.get(name), self.path(name), self.fault)

    def each(self, *names: str) -> Iterator[PayloadPlace]:
        """Iterate over the objects of a list; one that is not there is empty."""
        name = self.key(*names)
        found = self.value.get(name)
        if found is not None and not isinstance(found, list):
            self.wrong(name, f"is of type {type(found).__name__}, not a list")
        for number, item in enumerate(found or ()):
            yield PayloadPlace.of(item, f"{self.path(name)}[{number}]", self.fault)
