"""Read a ledger for somebody who must not see some tools: their records are left out."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from truename.ledger.checks import tool_meant
from truename.ledger.ledger import Ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from truename.identity import ToolId
    from truename.ledger.state import Standing

__all__ = ["SeenLedger"]


class SeenLedger(Ledger):
    """A ledger whose readers see only the tools for which ``sees`` is true; writes go to the whole ledger.

    A redirect is seen by those who see the tool at its end. Names of tools for which ``is_nobodys`` is true count as
    never recorded: `resolve` may find a visible tool by such a name as another spelling.

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
        """Return a view of another naming scope, for the same reader."""
        return SeenLedger(self._whole.scoped(scope), self._sees, self._is_nobodys)

    @property
    def withdrawn(self) -> Mapping[str, Standing]:
        """The spellings that were redirected, retired or broken and lead to a visible tool."""
        number, known = self._known
        if number != self.withdrawals:
            number = self.withdrawals
            pairs = ((name, self._told(standing)) for name, standing in list(super().withdrawn.items()))
            known = MappingProxyType({name: told for name, told in pairs if told is not None})
            self._known = number, known
        return known

    def bindings(self) -> Mapping[tuple[str, str], ToolId]:
        """Return the recorded identities of visible tools, and of those for which ``is_nobodys`` is true."""
        whole = list(super().bindings().items())
        return MappingProxyType({origin: id for origin, id in whole if self._sees(id) or self._is_nobodys(id)})

    def origins(self) -> Mapping[ToolId, tuple[str, str]]:
        """Return the recorded identities of visible tools, with their origins."""
        return self._origins(lambda id: not self._sees(id))

    def _with_keys(self, keys: Collection[str], table: str) -> list[ToolId]:
        return list(filter(self._sees, super()._with_keys(keys, table)))

    def hides(self, name: str, /) -> bool:
        """Return whether exactly this spelling is recorded for a tool that the reader must not see."""
        standing = super().standing(name)
        if standing is None or self._told(standing) is not None:
            return False
        return standing.id is None or not self._is_nobodys(standing.id)

    def holder(self, key: str) -> ToolId | None:
        """Return the tool that holds the name with this fold; None if the reader must not see it."""
        id = super().holder(key)
        return id if id is not None and self._sees(id) else None

    def standing(self, name: str) -> Standing | None:
        """Return the `Standing` of a name in exactly this spelling; None if it was never shown to this reader."""
        return self._told(super().standing(name))

    def standing_folded(self, key: str) -> Standing | None:
        """Return the meaning of any spelling with this fold; None if it has none."""
        return self._told(super().standing_folded(key))

    def tells_of(self, id: ToolId, /) -> bool:
        """Return whether the reader may see this tool, or one to which it was redirected."""
        return self._sees(id) or any(map(self._sees, self._whole.successors(id)))

    def _told(self, standing: Standing | None) -> Standing | None:
        if standing is None or standing.id is None or not self.tells_of(standing.id):
            return None
        if standing.status == "redirected" or standing.successor is None or self._may_hear_of(standing.successor):
            return standing
        return standing._replace(successor=None)

    def _may_hear_of(self, successor: str) -> bool:
        """Return whether a name or an id belongs to a tool that the reader may see."""
        id = tool_meant(successor, self._scope)
        return id is not None and self._sees(id)
