"""How long requests and notifications of MCP took, and how they ended, for whoever measures it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from truename.gateway.protocol.errors import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable

__all__ = ["OnOperation", "Operations", "timed"]

Answer = TypeVar("Answer")
OnOperation = Callable[[str, float, str], None]
"""Is told the method, the seconds, and the kind of error (``error.type`` of the conventions), "" for none."""


class Operations:
    """Who is told of what is sent to servers, if anybody is: with the server's key before the rest."""

    def __init__(self) -> None:
        self.tell: Callable[[str, str, float, str], None] | None = None

    def timed(self, server: str, method: str, answer: Awaitable[Answer]) -> Awaitable[Answer]:
        """Return what is to be waited for."""
        return answer if self.tell is None else timed(method, answer, partial(self.tell, server))


async def timed(method: str, answer: Awaitable[Answer], tell: OnOperation) -> Answer:
    """Wait for an answer, and tell how long that took. Raises what it raises."""
    began, error = time.perf_counter(), "cancelled"
    try:
        found = await answer
        error = "tool_error" if isinstance(found, dict) and found.get("isError") is True else ""
    except Exception as fault:
        error = _kind(fault)
        raise
    else:
        return found
    finally:
        tell(method, time.perf_counter() - began, error)


def _kind(fault: Exception) -> Any:
    return str(fault.code) if isinstance(fault, MCPError) else type(fault).__qualname__
