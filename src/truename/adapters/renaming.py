"""What the tools of a recorded conversation are called now."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from truename import ToolId, dialects, resolve
from truename.errors import ResolutionError
from truename.identity import LookupKey, digest_of, fold, lookup_key, qualified_name, required_key

if TYPE_CHECKING:
    from truename.adapters.layout import Layout

__all__ = ["Renaming"]

_GONE: Final = re.compile(r"gone_[0-9a-f]{10,64}(?:_[a-z0-9_]+)?")
_OUTSIDE: Final = re.compile(r"[^a-z0-9_]+")
_DIGITS: Final = (10, 16, 24)
_TAIL: Final = 24


class Renaming:
    """From the key of a recorded call to the tool, and from the tool to its key now."""

    def __init__(self, then: Layout, now: Layout, dialect: str) -> None:
        self._then, self._now = then, now
        self._rules = dialects.get(dialect)

    def tool(self, name: str, namespace: str | None) -> ToolId | None:
        """Return the tool that a recorded call was of; None if its name meant none."""
        key = lookup_key(name, namespace)
        if key is not None and (found := self._then.ids.get(key)) is not None:
            return found
        if key is None or key.kind == "namespaced":
            return None
        try:
            found = resolve(name, self._then.names).id
            return found if found is not None and self._then.is_meant(name, found) else None
        except ResolutionError as error:
            # A tool that was there and left is known by its id, which the ledger keeps.
            absent: ToolId | None = getattr(error, "id", None)
            return absent

    def key(self, id: ToolId | None, name: str, namespace: str | None) -> LookupKey:
        """Return the key of the tool now, or the name that the call is kept under: legal, and no other tool's ever."""
        if id is not None and id in self._now.keys:
            return self._now.keys[id]
        return required_key(self._held(id) or self._kept(id, name, namespace))

    def is_present(self, id: ToolId | None) -> bool:
        """Tell whether the tool can be called now."""
        return id is not None and id in self._now.keys

    def _held(self, id: ToolId | None) -> str | None:
        """Return the name that the ledger keeps for the tool: it is never given to another."""
        table = self._now.names
        if id is None or table.ledger is None:
            return None
        # Any table will do: a name belongs to its tool in all of them.
        shown = (table.ledger.held(names.dialect.name).get(id) for names in (table, self._then.names))
        return next((name for name in shown if name and name not in table.exact and not self._rules.check(name)), None)

    def _kept(self, id: ToolId | None, name: str, namespace: str | None) -> str:
        taken = self._now.names.exact
        if _GONE.fullmatch(name) and not self._rules.check(name) and name not in taken:
            return name
        tail = _OUTSIDE.sub("_", fold(name))[:_TAIL].strip("_")
        text = str(id) if id is not None else f"{namespace or ''}\0{name}"
        made = (f"gone_{digest_of(text, digits)}{tail and '_'}{tail}" for digits in _DIGITS)
        return next((one for one in made if one not in taken), f"gone_{digest_of(text, 40)}")


def shown_as(name: str, namespace: str | None) -> str:
    """Return how a recorded call reads for people."""
    return qualified_name(name, namespace) or name
