"""Calls that a client of the stateless era makes again: with the answer to a question of the gateway, or of a server.

The state that such a client brings back is good once, at any gateway of the same state database, for the very same call
(tool, definition, arguments, origin) of the same principal; the server's own state is inside, and nobody reads it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.elicitation.input_requests import INPUT_REQUIRED
from truename.gateway.elicitation.request_states import ANSWERS, STATE, RequestStates, require_short
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INVALID_PARAMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.policy import Call

__all__ = ["ANSWERS", "STATE", "MultiRoundRequests", "Round", "plain", "unknown_state"]

_KIND: Final = "approval"
_NO_CALL: Final = (
    "No call waits with this requestState for this tool and these arguments: it was already answered, expired, or "
    "belongs to another caller. Call again without requestState."
)


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a call as at its first round."""
    return {key: value for key, value in params.items() if key not in {STATE, ANSWERS}}


@dataclass(frozen=True)
class Round:
    """What a call came back with. One that was ``approved`` is on its way at a server, which asked."""

    approved: bool
    state: Mapping[str, Any]

    def onward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters with which the server's round goes on."""
        kept = {key: value for key, value in params.items() if key != STATE}
        return {**kept, **self.state}


class MultiRoundRequests:
    """The rounds of calls, each for ``lasts`` seconds."""

    def __init__(self, lasts: float, states: RequestStates) -> None:
        self.lasts = lasts
        self._states = states

    async def asked(self, call: Call, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result that asks a client something before its call is made. Raises `MCPError`."""
        state = await self._sealed(call, approved=False, state={})
        return {"resultType": INPUT_REQUIRED, "inputRequests": dict(question), STATE: state}

    async def passed(self, call: Call, result: dict[str, Any]) -> dict[str, Any]:
        """Return what a server answered to an approved call; when that is a question, the call is met again by it.

        Raises `UpstreamError` for a state that is too long to be sealed, and `MCPError`.
        """
        if result.get("resultType") != INPUT_REQUIRED:
            return result
        state = result.get(STATE)
        require_short(call.origin.server, state)
        sealed = await self._sealed(call, approved=True, state={} if state is None else {STATE: state})
        return {**result, STATE: sealed}

    async def met(self, call: Call, params: Mapping[str, Any]) -> Round | None:
        """Return the round that a call comes back with, and use it up; None where its state is none of these.

        Raises `MCPError` for a state that was given to another call, or somebody else, is over, or was used before.
        """
        if not self._states.has(_KIND, params):
            return None
        opened = await self._states.opened(_KIND, _bound(call), params)
        if opened is None or not await self._states.use(opened, call.caller.principal):
            raise unknown_state()
        return Round(**opened.content)

    async def _sealed(self, call: Call, *, approved: bool, state: Mapping[str, Any]) -> str:
        content = {"approved": approved, "state": state}
        return await self._states.sealed(_KIND, _bound(call), content, lasts=self.lasts)


def _bound(call: Call) -> list[str]:
    return [call.caller.principal, call.caller.agent, call.fingerprint]


def unknown_state() -> MCPError:
    """Return the error for a call that comes back with a state of nothing that waits."""
    return MCPError(INVALID_PARAMS, _NO_CALL)
