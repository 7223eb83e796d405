"""What one client over a pipe has open: bounded in number and bytes, and no two requests under one id."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from truename.gateway.mcp.messages import IN_USE, error, is_answer, is_id, kind_of
from truename.gateway.protocol.specification import INVALID_REQUEST
from truename.policy.arguments import MAX_ENTRIES

if TYPE_CHECKING:
    from typing import Any

    from truename.gateway.mcp.requests import RequestId

    Message = dict[str, Any]

__all__ = ["OpenRequests"]

_TOO_MANY: Final = "This client has as many open requests as {name} allows ({most:,}); nothing was run. Try later."


class OpenRequests:
    """Notes requests from when they come until they are answered, or taken back by the client.

    ``most_entries`` is how many keys and items one of them may have.

    >>> requests = OpenRequests(most=1, most_bytes=100)
    >>> ask = lambda id: requests.refusal({"jsonrpc": "2.0", "id": id, "method": "ping"}, 10)
    >>> ask(1), ask(2)["error"]["message"][:49]
    (None, 'This client has as many open requests as max_requ')
    >>> requests.gone({"jsonrpc": "2.0", "id": 1, "result": {}}), ask(2)
    (None, None)
    """

    def __init__(self, most: int, most_bytes: int, most_entries: int = MAX_ENTRIES) -> None:
        self.most_entries = most_entries
        self._most = most
        self._most_bytes = most_bytes
        self._open: dict[RequestId, int] = {}
        self._bytes = 0

    def refusal(self, message: Message, size: int) -> Message | None:
        """Note what came, of this size; return the error that it is answered with where it cannot be taken."""
        if message.get("method") == "notifications/cancelled":
            # It is never answered then.
            self._forget((message.get("params") or {}).get("requestId"))
        if kind_of(message) != "request":
            return None
        id = message["id"]
        if id in self._open:
            # Under this id the client waits for another answer.
            return error(None, INVALID_REQUEST, IN_USE)
        if len(self._open) >= self._most:
            return error(id, INVALID_REQUEST, _TOO_MANY.format(name="max_requests", most=self._most))
        if self._open and self._bytes + size > self._most_bytes:
            return error(id, INVALID_REQUEST, _TOO_MANY.format(name="max_incoming", most=self._most_bytes))
        self._open[id] = size
        self._bytes += size
        return None

    def gone(self, message: Message) -> None:
        """Note what went out: an answer makes room."""
        if is_answer(message):
            self._forget(message["id"])

    def _forget(self, id: object) -> None:
        if is_id(id):
            self._bytes -= self._open.pop(id, 0)
