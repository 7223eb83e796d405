"""Where a recorded conversation names tools and calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from truename.errors import InvalidPayload

if TYPE_CHECKING:
    from truename.adapters.reading import Place
    from truename.identity import LookupKey

__all__ = ["Mention", "Tell", "untranslatable"]

# Takes a code, where it is, and a sentence about it.
Tell = Callable[[str, str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A call, its result, or a mere reference to a tool: who is named in it, and which call it is.

    ``place`` holds the id in ``id_key``; ``named`` holds the name in ``name_key`` and, if ``spaced``, a namespace.
    """

    kind: Literal["call", "result", "reference"]
    place: Place
    id_key: str = ""
    named: Place | None = None
    name_key: str = "name"
    spaced: bool = False

    @property
    def call_id(self) -> str:
        """The id of the call. Raises if it is missing or no text."""
        return self.place.text(self.id_key)

    @property
    def name(self) -> str | None:
        """The name, which a call has to have and a result may have."""
        if self.named is None:
            return None
        return self.named.optional(self.name_key) if self.kind == "result" else self.named.text(self.name_key)

    @property
    def namespace(self) -> str | None:
        """The namespace, where the API has them."""
        return self.named.optional("namespace") if self.named is not None and self.spaced else None

    def put_id(self, call_id: str) -> None:
        """Write the id."""
        self.place.value[self.id_key] = call_id

    def put_key(self, key: LookupKey) -> None:
        """Write the name, and the namespace that goes with it."""
        if self.named is None:
            return
        self.named.value[self.name_key] = key.name
        if self.spaced:
            self.named.value.pop("namespace", None)
            if key.call_namespace is not None:
                self.named.value["namespace"] = key.call_namespace


def untranslatable(place: Place, what: str, field: str = "") -> InvalidPayload:
    """Return the error for something that only the API it was recorded under has."""
    where = place.path(field) if field else place.where
    return InvalidPayload(field=where, problem=f"is {what}, which can't be carried to another API")
