"""What clients of the stateless era bring back (``requestState``): any gateway of one state accepts it, once.

A state is sealed (`SealedValues`), so a client, or another one that got hold of it, can neither read nor change it, and
it opens only for the principal, the tool and the arguments that it was given for. That it was used is recorded in the
state database, in one transaction: of two gateways that receive one answer at once, one goes on with the call.
"""

from __future__ import annotations

import logging
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from truename.auth.sealed_values import SealedValues
from truename.errors import ConfigError
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.specification import INTERNAL_ERROR
from truename.gateway.protocol.turns import in_thread
from truename.gateway.upstream_errors import UpstreamError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from truename.auth.sealed_values import OpenedValue
    from truename.storage import StateLocation

__all__ = ["ANSWERS", "STATE", "RequestStates", "require_short"]

log: Final = logging.getLogger("truename.gateway")

STATE: Final = "requestState"
ANSWERS: Final = "inputResponses"
LONGEST: Final = 1024 * 1024
"""Characters of a server's own state. It travels inside the sealed one, which is longer by a third."""

_PREFIX: Final = "truename"
_UNUSABLE: Final = "The gateway cannot use its state now, so nothing was run. Try again later."


class RequestStates:
    """The states that the gateways at one place give to clients; without a place, those that this one gives."""

    def __init__(self, location: StateLocation | None = None, *, clock: Callable[[], float] = time.time) -> None:
        self._values = SealedValues(location, clock=clock)

    async def open(self) -> None:
        """Open what states are sealed with. Raises `ConfigError` (also `StoreError`)."""
        if not self._values.is_open:
            await in_thread(self._values.open)

    @property
    def silence(self) -> float:
        """How many seconds ago the database answered last; 0 for a file, and for one that is not open."""
        return self._values.silence

    @staticmethod
    def has(kind: str, params: Mapping[str, Any]) -> bool:
        """Return whether parameters have a state that says to be of a kind, which need not be true."""
        return str(params.get(STATE, "")).startswith(f"{_PREFIX}.{kind}.")

    async def sealed(self, kind: str, bound: Sequence[object], content: object, *, lasts: float) -> str:
        """Return a state for a principal and a call (``bound``). Raises `MCPError` while the database is not usable."""
        await self._opened_first()
        return f"{_PREFIX}.{kind}.{self._values.seal(kind, bound, content, lasts=lasts)}"

    async def opened(self, kind: str, bound: Sequence[object], params: Mapping[str, Any]) -> OpenedValue | None:
        """Return the state in parameters if it is of this kind, was given for just this, and is not over."""
        if not self.has(kind, params):
            return None
        await self._opened_first()
        return self._values.opened(kind, bound, str(params[STATE]).split(".", 2)[2])

    async def use(self, state: OpenedValue, whose: str) -> bool:
        """Use a state up; return False if it was used before. Raises `MCPError` while that cannot be recorded."""
        used: bool = await self._away(partial(self._values.use, state, whose))
        return used

    async def _opened_first(self) -> None:
        if not self._values.is_open:
            await self._away(self._values.open)

    @staticmethod
    async def _away(what: Callable[[], Any]) -> Any:
        try:
            return await in_thread(what)
        except ConfigError as error:
            # A client is not told where the state is.
            log.warning("A client's requestState cannot be used. %s", error)
            raise MCPError(INTERNAL_ERROR, _UNUSABLE) from error

    def close(self) -> None:
        """Close the database."""
        self._values.close()


def require_short(server: str, state: object) -> None:
    """Raise `UpstreamError` (question) for a server's state that is too long to be sealed."""
    if len(str(state)) > LONGEST:
        raise UpstreamError(
            server=server,
            kind="question",
            problem=f"asked with a state of more than {LONGEST:,} characters",
            remedy="The call was cancelled; what it did until then is unknown.",
        )
