"""Whose a server's state is: a handle that one person was given goes on with nothing for another.

A server of the stateless era gives a call that waits for answers a ``requestState``, and knows only the gateway as its
caller. So the gateway binds each to whom it was given (the protocol's security best practices: state handles are bound
to the principal). Where all are one user, states pass as they are.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INVALID_PARAMS
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.policy.principal import Principal

__all__ = ["given", "taken_back"]

STATE: Final = "requestState"
_UNKNOWN: Final = "You have no call with this requestState here. Call again without requestState."
# Of this process: a gateway that was started anew knows no states of the one before.
_KEY: Final = secrets.token_bytes(32)


def given(result: dict[str, Any], principal: Principal, *place: str) -> dict[str, Any]:
    """Return what a server answers a principal, its state bound to them and to the place (server, method)."""
    state = result.get(STATE)
    if principal is LOCAL or not isinstance(state, str):
        return result
    return {**result, STATE: f"{_mark(state, principal, place)}.{state}"}


def taken_back(params: Mapping[str, Any], principal: Principal, *place: str) -> Mapping[str, Any]:
    """Return the parameters of a request with the server's own state. Raises `MCPError` for another's state."""
    if principal is LOCAL or STATE not in params:
        return params
    mark, _, state = str(params[STATE]).partition(".")
    if not hmac.compare_digest(mark.encode(), _mark(state, principal, place).encode()):
        raise MCPError(INVALID_PARAMS, _UNKNOWN)
    return {**params, STATE: state}


def _mark(state: str, principal: Principal, place: tuple[str, ...]) -> str:
    said = json.dumps([principal.key, *place, state]).encode()
    return urlsafe_b64encode(hmac.digest(_KEY, said, hashlib.sha256)).decode().rstrip("=")
