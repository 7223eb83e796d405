"""Read a ledger that others write, and record nothing in it: to show names that were not given yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.errors import LedgerError
from truename.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.ledger.events import Event

__all__ = ["UnwrittenLedger"]


class UnwrittenLedger(Ledger):
    """A view of a ledger that follows it, and through which nothing is recorded.

    >>> from truename import Catalog, project
    >>> ledger = Ledger.memory()
    >>> names = project(Catalog.from_mcp({"git": ["push"]}), "openai", ledger=UnwrittenLedger.of(ledger))
    >>> [*names.values()], len(ledger.bindings())
    (['git_push'], 0)
    """

    __slots__ = ()

    @classmethod
    def of(cls, ledger: Ledger) -> UnwrittenLedger:
        """Return the view of a ledger, in the same scope."""
        return cls(ledger._core, ledger.scope)  # noqa: SLF001 - the same ledger

    @property
    def readonly(self) -> bool:
        """Whether this ledger only answers questions: it does."""
        return True

    def record(self, events: Sequence[Event]) -> None:
        """Raise `LedgerError` (``readonly``)."""
        raise LedgerError(code="readonly", name=str(getattr(events[0], "name", "settings")) if events else "")
