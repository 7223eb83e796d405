"""Calls that a client of the stateless era makes again: with the answer to a question of the gateway, or of a server.

The state that such a client brings back means something to this process only. It is good once, for the very same call
(tool, definition, arguments, origin) of the same principal; the server's own state never leaves the gateway.
"""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.elicitation.input_requests import INPUT_REQUIRED
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INVALID_PARAMS
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from truename.policy import Call

__all__ = ["ANSWERS", "STATE", "MultiRoundRequests", "Round", "plain", "unknown_state"]

STATE: Final = "requestState"
ANSWERS: Final = "inputResponses"
_NO_CALL: Final = (
    "No call waits with this requestState for this tool and these arguments: it was already answered, expired, or "
    "belongs to another caller. Call again without requestState."
)
_MOST: Final = 10_000
_MOST_OF_ONE: Final = 100
_LONGEST: Final = 1024 * 1024


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a call as at its first round."""
    return {key: value for key, value in params.items() if key not in {STATE, ANSWERS}}


@dataclass(frozen=True)
class Round:
    """What a call was given to come back with. One that was ``approved`` is on its way at a server, which asked."""

    whose: str
    what: str
    until: float
    approved: bool = False
    state: Mapping[str, Any] | None = None

    def onward(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters with which the server's round goes on."""
        kept = {key: value for key, value in params.items() if key != STATE}
        return {**kept, **(self.state or {})}


class MultiRoundRequests:
    """The rounds that are open, each for ``lasts`` seconds; of too many the oldest are forgotten."""

    def __init__(self, lasts: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.lasts = lasts
        self._clock = clock
        self._open: OrderedDict[str, Round] = OrderedDict()

    def asked(self, call: Call, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result that asks a client something before its call is made."""
        return {"resultType": INPUT_REQUIRED, "inputRequests": dict(question), STATE: self._opened(call)}

    def passed(self, call: Call, result: dict[str, Any]) -> dict[str, Any]:
        """Return what a server answered to an approved call; when that is a question, the call is met again by it.

        Raises `UpstreamError` for a state that is too long to be kept.
        """
        if result.get("resultType") != INPUT_REQUIRED:
            return result
        state = result.get(STATE)
        if len(str(state)) > _LONGEST:
            raise UpstreamError(
                server=call.origin.server,
                kind="question",
                problem=f"asked with a state of more than {_LONGEST:,} characters",
                remedy="The call was cancelled; what it did until then is unknown.",
            )
        return {**result, STATE: self._opened(call, approved=True, state={} if state is None else {STATE: state})}

    def met(self, call: Call, params: Mapping[str, Any]) -> Round | None:
        """Return, and end, the round that a call comes back with; None where its state is none of these.

        Raises `MCPError` for a state that was given to another call, or somebody else.
        """
        found = self._open.get(str(params.get(STATE)))
        if found is None:
            return None
        if (found.whose, found.what) != (call.caller.principal, call.fingerprint) or found.until < self._clock():
            raise unknown_state()
        del self._open[str(params[STATE])]
        return found

    def _opened(self, call: Call, *, approved: bool = False, state: Mapping[str, Any] | None = None) -> str:
        now, whose = self._clock(), call.caller.principal
        own = [token for token, one in self._open.items() if one.whose == whose]
        while self._open and next(iter(self._open.values())).until < now:
            self._open.popitem(last=False)
        if len(own) >= _MOST_OF_ONE:
            self._open.pop(own[0], None)
        if len(self._open) >= _MOST:
            self._open.popitem(last=False)
        token = secrets.token_urlsafe(32)
        self._open[token] = Round(whose, call.fingerprint, now + self.lasts, approved, state)
        return token


def unknown_state() -> MCPError:
    """Return the error for a call that comes back with a state of nothing that waits."""
    return MCPError(INVALID_PARAMS, _NO_CALL)
