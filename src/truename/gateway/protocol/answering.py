"""The client's half of a connection to a server of the handshake eras: what the server asks on it is relayed raw."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from mcp.client.session import ClientSession
from mcp_types import ClientCapabilities

if TYPE_CHECKING:
    from mcp.shared.dispatcher import DispatchContext

__all__ = ["AnsweringSession", "Relay", "TaskStatus"]

Relay = Callable[["DispatchContext[Any]", str, Mapping[str, Any] | None], Awaitable[dict[str, Any]]]


_TASK_STATUS: Final = "notifications/tasks/status"


class TaskStatus(NamedTuple):
    """What a server tells of a task unasked, as it sent it."""

    params: Mapping[str, Any]


class AnsweringSession(ClientSession):
    """The SDK's session, but what it declares is given, and questions go to ``relay`` as the server sent them.

    The SDK declares by the callbacks that it has, and gives them models, which lose what they don't know. It drops
    what servers tell of tasks, which it has types of and no more: its message handler gets that as a `TaskStatus`.
    """

    declares: Mapping[str, Any] = {}
    relayed: Mapping[str, Relay] = {}

    def _build_capabilities(self, version: str) -> ClientCapabilities:  # noqa: ARG002 - as the SDK calls it
        return ClientCapabilities.model_validate(self.declares)

    async def _on_request(
        self, dctx: DispatchContext[Any], method: str, params: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        if (relay := self.relayed.get(method)) is not None:
            return await relay(dctx, method, params)
        return await super()._on_request(dctx, method, params)

    async def _on_notify(self, dctx: DispatchContext[Any], method: str, params: Mapping[str, Any] | None) -> None:
        if method != _TASK_STATUS:
            await super()._on_notify(dctx, method, params)
        else:
            # A message of a kind of our own: the handler is ours too.
            await self._message_handler(cast("Any", TaskStatus(params or {})))
