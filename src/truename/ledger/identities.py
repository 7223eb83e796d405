"""The identities on record in a ledger, as the admission of tools asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename.ledger.identity_index import unversioned

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from truename.identity import ToolId
    from truename.ledger.state import LedgerState

__all__ = ["LedgerIdentities"]


class LedgerIdentities:
    """The identities on record in a ledger: always the present ones (`truename.catalog.admit.RecordedIdentities`).

    Each question costs what it asks about, however many identities there are, and one query of each table.
    ``present`` returns the state that the ledger has now.
    """

    __slots__ = ("_present",)

    def __init__(self, present: Callable[[], LedgerState]) -> None:
        self._present = present

    def bound(self, server: str, names: Collection[str]) -> dict[str, ToolId]:
        """Return the identities of these tools of a server, by upstream name."""
        state = self._present()
        bindings = state.bindings.group(server)
        bindings.read_ahead(names)
        found = ((name, bindings.get(name)) for name in names)
        return {name: id for name, id in found if id is not None and state.has_now(server, name, id)}

    def origins(self, ids: Collection[ToolId]) -> dict[ToolId, tuple[str, str]]:
        """Return the tools, as (server id, upstream name), that have these identities now."""
        state = self._present()
        state.origins.group().read_ahead(ids)
        found = {id: origin for id in ids if (origin := state.origin(id)) is not None}
        state.expect_identities([(*origin, id) for id, origin in found.items()])
        return {id: origin for id, origin in found.items() if state.has_now(*origin, id)}

    def taken(self, server: str, ids: Collection[ToolId]) -> set[tuple[str | None, str]]:
        """Return suite and tool of those ids that a server cannot give anew, in whatever version of the tool.

        It has such an id itself, or nobody has it any more. An id that another server has is not among them.
        """
        found = [*self._present().index.variants(dict.fromkeys(map(unversioned, ids)))]
        now = self.origins(found)
        return {(id.suite, id.tool) for id in found if id not in now or now[id][0] == server}

    def servers_with(self, integration: str) -> Iterable[str]:
        """Return the servers that ever had an identity of this integration."""
        return self._present().index.servers_with(integration)

    def last(self, server: str, version: int | None = None) -> ToolId | None:
        """Return the identity of the tool that a server listed last of those that have one; None if it has none.

        With ``version``, of the tools that have an identity of this version of their integration.
        """
        state = self._present()
        # At most so many of them belong to others by now.
        found = state.index.last_bound(server, version, 1 + len(state.scope("").withdrawn_names))
        return next((id for name, id in found if state.has_now(server, name, id)), None)
