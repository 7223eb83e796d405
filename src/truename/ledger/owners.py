"""To whom identities and URIs belong: to the tool, and to the server, that had one first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.errors import LedgerError
from truename.ledger.events import Bind, Own

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from truename.identity import ToolId
    from truename.ledger.state import State

__all__ = ["newly_bound", "newly_owned"]

# Of one server. Some list every file that they have, and what is remembered is remembered for good.
_MOST: Final = 2_000
_LONGEST: Final = 2_048


def newly_bound(origins: Iterable[tuple[str, str, ToolId]], state: State) -> Iterator[Bind]:
    """Yield what there is to record of identities. Raises `LedgerError` (``bound``) for one that is another tool's."""
    for server, name, id in origins:
        origin = state.origins.get(id)
        if origin is None or (origin == (server, name) and state.binds(server, name, id)):
            yield Bind(server=server, name=name, id=id)
        elif origin != (server, name):
            raise LedgerError(code="bound", claimant=id, origin=origin[0], name=origin[1])


def newly_owned(uris: Iterable[tuple[str, str]], state: State) -> tuple[Own, ...]:
    """Return what there is to record of ``(uri, server)``: the first time of each, while there is room.

    Of one server 2,000 URIs are remembered, of at most 2,048 characters each. What is beyond is let go.

    >>> from truename import Ledger
    >>> ledger = Ledger.memory()
    >>> ledger.own([("file:///a", "disk"), ("file:///a", "copy"), ("file:///b", "copy")])
    >>> dict(ledger.owners)
    {'file:///a': 'disk', 'file:///b': 'copy'}
    """
    found: dict[str, Own] = {}
    room: dict[str, int] = {}
    for uri, server in uris:
        left = room.setdefault(server, _MOST - state.owned[server])
        if left > 0 and len(uri) <= _LONGEST and uri not in found and uri not in state.owners:
            found[uri] = Own(uri=uri, server=server)
            room[server] = left - 1
    return tuple(found.values())
