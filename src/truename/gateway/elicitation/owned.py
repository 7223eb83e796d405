"""Whose a server's state is: a handle that one person was given goes on with nothing for another.

A server of the stateless era gives a call that waits for answers a ``requestState``, and knows only the gateway as its
caller. So the gateway seals each for whom it was given (the protocol's security best practices: state handles are bound
to the principal), and for the call. Where all are one user, states pass as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.gateway.elicitation.request_states import ANSWERS, STATE, require_short
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import whole
from truename.gateway.protocol.specification import INVALID_PARAMS
from truename.policy.arguments import json_digest
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.elicitation.request_states import RequestStates
    from truename.policy.principal import Principal

__all__ = ["StateOwner"]

_KIND: Final = "server"
_UNKNOWN: Final = "You have no call with this requestState here. Call again without requestState."
# What belongs to one sending of a call, and not to the call.
_OF_ONE_SENDING: Final = frozenset({"_meta", ANSWERS, STATE})


class StateOwner:
    """The principal and the call that a server's state is for.

    ``place`` is the server, what is behind its key, the method and the definition of the tool; ``lasts`` is for how
    many seconds a client may answer.
    """

    def __init__(self, states: RequestStates, principal: Principal, *place: str, lasts: float) -> None:
        self._states = states
        self._principal = principal
        self._place = place
        self._lasts = lasts

    async def given(self, params: Mapping[str, Any], result: dict[str, Any]) -> dict[str, Any]:
        """Return what a server answers to a call with these parameters, its state sealed.

        Raises `UpstreamError` for a state that is too long.
        """
        state = result.get(STATE)
        if self._principal is LOCAL or not isinstance(state, str):
            return result
        require_short(self._place[0], state)
        sealed = await self._states.sealed(_KIND, self._bound(params), state, lasts=self._lasts)
        return {**result, STATE: sealed}

    async def taken_back(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters of a call with the server's own state, which is used up.

        Raises `MCPError` for a state that is another's, of another call, over, or was used before.
        """
        if self._principal is LOCAL or STATE not in params:
            return params
        opened = await self._states.opened(_KIND, self._bound(params), params)
        if opened is None or not await self._states.use(opened, self._principal.key):
            raise MCPError(INVALID_PARAMS, _UNKNOWN)
        return {**params, STATE: opened.content}

    def _bound(self, params: Mapping[str, Any]) -> list[str]:
        call = whole({key: value for key, value in params.items() if key not in _OF_ONE_SENDING})
        return [self._principal.key, *self._place, json_digest(call)]
