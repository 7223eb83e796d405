"""What was sent on a stream that broke, kept in memory for those who come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp.server.streamable_http import EventCallback, EventMessage, EventStore

if TYPE_CHECKING:
    from mcp_types import JSONRPCMessage

__all__ = ["Events"]

_MOST: Final = 1000


class Events(EventStore):
    """The last events of all streams, numbered in the order in which they happened."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[str, JSONRPCMessage | None]] = {}
        self._count = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        self._count += 1
        self._kept[str(self._count)] = (stream_id, message)
        self._kept.pop(str(self._count - _MOST), None)
        return str(self._count)

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        if last_event_id not in self._kept:
            return None
        wanted, _ = self._kept[last_event_id]
        for number, (stream, message) in list(self._kept.items()):
            if stream == wanted and message is not None and int(number) > int(last_event_id):
                await send_callback(EventMessage(message, number))
        return wanted
