"""What a ledger says to somebody who must not hear of some tools: of those it is as if nothing were on record."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from truename.ledger.checks import tool_meant
from truename.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.identity import ToolId
    from truename.ledger.state import Standing

__all__ = ["SeenLedger"]


class SeenLedger(Ledger):
    """A ledger for reading names, without the tools of which ``sees`` says no; what is written is the ledger's own.

    What was redirected is seen by who sees where it leads to in the end. Tools of which ``is_nobodys`` says yes leave
    no trace: their names are not even kept from others.

    >>> from truename.identity import ToolId
    >>> ledger = Ledger.memory()
    >>> ledger.redirect("fs.list", "files@1/list@1")
    >>> SeenLedger(ledger, lambda id: id.integration != "files").standing("fs.list") is None
    True
    """

    __slots__ = ("_is_nobodys", "_known", "_sees", "_whole")

    def __init__(
        self, whole: Ledger, sees: Callable[[ToolId], bool], is_nobodys: Callable[[ToolId], bool] = lambda _: False
    ) -> None:
        super().__init__(whole._core, whole.scope)  # noqa: SLF001 - the same ledger, read otherwise
        self._whole = whole
        self._sees = sees
        self._is_nobodys = is_nobodys
        self._known: tuple[int, Mapping[str, Standing]] = -1, MappingProxyType({})

    def scoped(self, scope: str) -> Ledger:
        """Return a view in which names are a space of their own, for the same eyes."""
        return SeenLedger(self._whole.scoped(scope), self._sees, self._is_nobodys)

    @property
    def withdrawn(self) -> Mapping[str, Standing]:
        """The spellings that were redirected, retired or broken and lead to a tool that is seen."""
        number, known = self._known
        if number != self.withdrawals:
            number = self.withdrawals
            pairs = ((name, self._told(standing)) for name, standing in list(super().withdrawn.items()))
            known = MappingProxyType({name: told for name, told in pairs if told is not None})
            self._known = number, known
        return known

    def bindings(self) -> Mapping[tuple[str, str], ToolId]:
        """Return the identities on record of tools that are seen, and of those that are nobody's."""
        whole = list(super().bindings().items())
        return MappingProxyType({origin: id for origin, id in whole if self._sees(id) or self._is_nobodys(id)})

    def origins(self) -> Mapping[ToolId, tuple[str, str]]:
        """Return the identities on record of tools that are seen, with their origins."""
        return MappingProxyType({id: origin for id, origin in list(super().origins().items()) if self._sees(id)})

    def hides(self, name: str, /) -> bool:
        """Tell whether exactly this spelling is on record for a tool of which the reader must not hear."""
        standing = super().standing(name)
        if standing is None or self._told(standing) is not None:
            return False
        return standing.id is None or not self._is_nobodys(standing.id)

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold, if it is seen."""
        id = super().holder(key)
        return id if id is not None and self._sees(id) else None

    def standing(self, name: str) -> Standing | None:
        """Return what exactly this spelling stands for, or None."""
        return self._told(super().standing(name))

    def standing_folded(self, key: str) -> Standing | None:
        """Return what any spelling with this fold stands for, or None."""
        return self._told(super().standing_folded(key))

    def tells_of(self, id: ToolId, /) -> bool:
        """Tell whether a tool, or one to which it leads, is seen."""
        return self._sees(id) or any(map(self._sees, self._whole.successors(id)))

    def _told(self, standing: Standing | None) -> Standing | None:
        if standing is None or standing.id is None or not self.tells_of(standing.id):
            return None
        if standing.status == "redirected" or standing.successor is None or self._may_hear_of(standing.successor):
            return standing
        return standing._replace(successor=None)

    def _may_hear_of(self, successor: str) -> bool:
        """Tell whether a name, or an id, is one of a tool that is seen."""
        id = tool_meant(successor, self._scope)
        return id is not None and self._sees(id)
