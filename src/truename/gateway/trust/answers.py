"""Answers of servers on their way to a model: passed on as they are, told of, or kept back. Off unless it is set."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from truename.gateway.call_records import current_record
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.turns import in_thread
from truename.gateway.upstream_errors import UpstreamError, printable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from truename.config.trust import Trust
    from truename.trust.peers import PeerIndex

__all__ = ["AnswerScreening"]

log: Final = logging.getLogger("truename.gateway")

# A longer text is looked at beside the loop; for a shorter one the way there takes longer than the look.
_SHORT: Final = 4_000
_DON_T: Final = "The call was run: do not repeat it. An operator decides by `[trust] results`."


class AnswerScreening:
    """Looks at what servers answer, where ``results`` is not off (`is_on`)."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust
        self._peers: PeerIndex | None = None
        self.is_on = any(one.results != "off" for one in (trust, *trust.servers.values()))

    def know(self, peers: PeerIndex) -> None:
        """Take in which tools there are now."""
        self._peers = peers

    def follow(self, other: AnswerScreening) -> None:
        """Have the tools that another one knows."""
        self._peers = other._peers

    def over(self, server: str, answering: Awaitable[dict[str, Any]]) -> Awaitable[dict[str, Any]]:
        """Return what is awaited for a server's answer: `passed`, and where nothing is looked at just this."""
        return self.passed(server, answering) if self.is_on else answering

    async def passed(self, server: str, answering: Awaitable[dict[str, Any]]) -> dict[str, Any]:
        """Return the answer of a server as it is.

        Raises what ``answering`` raises, and `UpstreamError` (``answer_blocked``) for an answer that is kept back.
        """
        try:
            answer = await answering
        except MCPError as error:
            await self.look(server, error)
            raise
        await self.look(server, answer)
        return answer

    async def look(self, server: str, outcome: Mapping[str, Any] | Exception) -> None:
        """Look at the outcome of a request to a server: a result, or the server's own error.

        Raises `UpstreamError` (``answer_blocked``) for an answer that is kept back.
        """
        handling = self._trust.of(server).results
        if handling == "off":
            return
        if isinstance(outcome, MCPError):
            await self._look(server, {"error": [outcome.message, outcome.data]}, handling)
        elif not isinstance(outcome, Exception):
            await self._look(server, outcome, handling)

    async def _look(self, server: str, answer: Mapping[str, Any], handling: str) -> None:
        from truename.trust.screening import said_in, suspicions  # noqa: PLC0415 - the rules cost 45 ms, and this is off

        said = said_in(answer)
        if len(said) <= _SHORT:
            found = suspicions(said, server, self._whose)
        else:
            found = await in_thread(partial(suspicions, said, server, self._whose))
        if not found:
            return
        if (record := current_record()) is not None:
            record.suspected(found)
        names = ", ".join(found)
        # What it says may be a secret.
        whose = printable(server, 200)
        log.warning("a result of %s looks like an attack on the model (%s): %s", whose, names, handling)
        if handling == "block":
            problem = f"returned a result that looks like an attack on the model ({names}), which was withheld"
            raise UpstreamError(server=server, kind="blocked", problem=problem, remedy=_DON_T, code="answer_blocked")

    def _whose(self, name: str) -> frozenset[str]:
        """Return the servers that have a tool of this name, folded."""
        return frozenset() if self._peers is None else self._peers.servers(name)
