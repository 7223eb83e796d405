"""Connections over HTTP: how many there may be, of one address and of one principal, and how many answers wait unread.

Who has not said who they are is known by the address. Where there are too many, one on which nothing is being answered
is dropped, the oldest of whoever has the most: who sends requests in part, or none, keeps nobody else out.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from truename.gateway.http.disconnecting import ON_DISCONNECT
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from starlette.types import Message, Scope, Send

    from truename.gateway.quota import Share

__all__ = ["Connection", "ConnectionLimits", "Holder"]

log: Final = logging.getLogger("truename.gateway")

_NETWORK: Final = 64
_UNREAD: Final = (
    "%s does not read its responses: closed a connection with %s bytes pending. The bytes pending for %s exceed %s."
)


class Connection(Protocol):
    """One connection of a client."""

    @property
    def peer(self) -> tuple[str, int] | None:
        """Address and port of the client."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether nothing is being answered on it: the client owes the rest of a request, or another one."""
        ...

    @property
    def unread(self) -> int:
        """How many bytes of answers wait until the client reads."""
        ...

    def drop(self) -> None:
        """Close it at once, whatever waits."""
        ...

    async def drained(self) -> bool:
        """Wait until the client has read nearly all; tells whether it is still there."""
        ...

    def on_disconnect(self, then: Callable[[], None]) -> Callable[[], None]:
        """Call `then` when the client disconnects. Returns a function that removes the callback."""
        ...


class Holder(NamedTuple):
    """Whose connections are counted together: those of a principal, or of an address as long as nobody is known."""

    name: str
    is_known: bool

    @classmethod
    def at(cls, address: str) -> Holder:
        """Return the holder of the connections from an address; one IPv6 host has a whole network of them.

        >>> Holder.at("2001:db8:1:2:3::4").name, Holder.at("192.0.2.1").name, Holder.at("a socket").name
        ('2001:db8:1:2::', '192.0.2.1', 'a socket')
        """
        try:
            found = ip_address(address)
        except ValueError:
            return cls(address, is_known=False)
        if isinstance(found, IPv6Address):
            found = found.ipv4_mapped or IPv6Address(int(found) >> _NETWORK << _NETWORK)
        return cls(str(found), is_known=False)


class ConnectionLimits:
    """Knows all connections. ``connections`` and ``unread`` (bytes) say how many there may be.

    ``shared``: callers prove who they are, so shares are kept, and the reserved part is for those who did; else
    whoever is connected is one user of this machine.
    """

    def __init__(self, connections: Share, unread: Share, *, shared: bool) -> None:
        self._share = connections
        self._unread = unread
        self._is_shared = shared
        self._holders: dict[Connection, Holder] = {}
        self._held: dict[Holder, OrderedDict[Connection, None]] = {}
        self._by_peer: dict[tuple[str, int], Connection] = {}
        # Those that have something to read, in the order in which they began to wait.
        self._slow: OrderedDict[Connection, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, connection: Connection) -> None:
        """Count a connection; there may be one too many then, which is dropped."""
        peer = connection.peer
        if peer is not None:
            self._by_peer[peer] = connection
        holder = Holder.at("" if peer is None else peer[0])
        self._put(connection, holder)
        if self._is_shared:
            if len(self._held[holder]) > self._share.each:
                self._drop_oldest([holder])
            strangers = [one for one in self._held if not one.is_known]
            if sum(len(self._held[one]) for one in strangers) > self._share.total - self._share.reserved:
                self._drop_oldest(strangers, holder)
        if len(self) > self._share.total:
            self._drop_oldest(self._held, holder)

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        if (holder := self._holders.pop(connection, None)) is not None:
            self._taken_from(holder, connection)
        if connection.peer is not None and self._by_peer.get(connection.peer) is connection:
            del self._by_peer[connection.peer]
        self._slow.pop(connection, None)

    def identified(self, connection: Connection | None, who: str | None) -> bool:
        """Note who sends a request; tells whether they may have the connection on which it came."""
        if connection is None or who is None:
            return True
        holder = Holder(who, is_known=True)
        if self._holders[connection] == holder:
            return True
        if len(self._held.get(holder, ())) >= self._share.each and not self._drop_oldest([holder]):
            return False
        self._taken_from(self._holders[connection], connection)
        self._put(connection, holder)
        return True

    def sending(self, connection: Connection, scope: Scope, send: Send) -> Send:
        """Return how to send an answer so that what is not read of all answers stays bounded."""
        scope[ON_DISCONNECT] = connection.on_disconnect

        async def counted(message: Message) -> None:
            await send(message)
            self.wrote(connection)

        return counted

    def wrote(self, connection: Connection) -> None:
        """Note that something was sent; cut off who does not read, if all together wait for too much."""
        if not connection.unread or connection not in self._holders:
            self._slow.pop(connection, None)
            return
        self._slow.setdefault(connection, None)
        for one in [one for one in self._slow if not one.unread]:
            del self._slow[one]
        holder = self._holders[connection]
        if self._is_shared:
            own = [one for one in self._slow if self._holders[one] == holder]
            self._cut_off(own, connection, self._unread.each, "one principal", "principal_share of max_unread allows")
        while self._cut_off_most(connection):
            pass

    def _cut_off_most(self, newest: Connection) -> bool:
        """Cut off one connection of who has the most unread, if all have too much."""
        waiting: dict[Holder, int] = {}
        for one in self._slow:
            waiting[self._holders[one]] = waiting.get(self._holders[one], 0) + one.unread
        if sum(waiting.values()) <= self._unread.total:
            return False
        most = max(waiting, key=waiting.__getitem__)
        own = [one for one in self._slow if self._holders[one] == most]
        others = [one for one in own if one is not newest] or [one for one in self._slow if one is not newest]
        if others:
            self._cut(others[0], "clients", f"the {self._unread.total:,} that max_unread allows")
        return bool(others)

    def _cut_off(self, own: list[Connection], newest: Connection, most: int, whose: str, bound: str) -> None:
        """Cut off the connections that wait for longest, until the rest is within a bound; the newest may be alone."""
        waiting = sum(one.unread for one in own)
        for one in own:
            if waiting <= most:
                return
            if one is not newest:
                waiting -= one.unread
                self._cut(one, whose, f"the {most:,} that {bound}")

    def _cut(self, connection: Connection, whose: str, bound: str) -> None:
        log.warning(_UNREAD, self._named(connection), f"{connection.unread:,}", whose, bound)
        self.closed(connection)
        connection.drop()

    def _named(self, connection: Connection) -> str:
        holder, peer = self._holders[connection], connection.peer
        where = "" if peer is None else f"{peer[0]}:{peer[1]}"
        return f"{printable(holder.name, 100)!r} at {where}" if holder.is_known else f"the client at {where}"

    def _drop_oldest(self, among: Iterable[Holder], newest: Holder | None = None) -> bool:
        """Drop the oldest connection that waits, of who has the most of these; tells whether there was one.

        ``newest`` is who has just come with one more: where others had more before, theirs is dropped.
        """

        def had(holder: Holder) -> int:
            return len(self._held.get(holder, ())) - (holder == newest)

        for holder in sorted(among, key=lambda one: (-had(one), one != newest)):
            found = next((one for one in self._held.get(holder, ()) if one.is_waiting), None)
            if found is not None:
                # It is gone, whenever its transport says so.
                self.closed(found)
                found.drop()
                return True
        return False

    def connection_of(self, scope: Scope) -> Connection | None:
        """Return the connection on which a request came; None for one that is not counted here."""
        client: Any = scope.get("client")
        return None if client is None else self._by_peer.get((client[0], client[1]))

    def _put(self, connection: Connection, holder: Holder) -> None:
        self._holders[connection] = holder
        self._held.setdefault(holder, OrderedDict())[connection] = None

    def _taken_from(self, holder: Holder, connection: Connection) -> None:
        own = self._held[holder]
        del own[connection]
        if not own:
            del self._held[holder]
