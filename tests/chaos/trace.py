"""What a gateway did to keep its servers at work, as lines of JSON: for whoever asks why one was late."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from truename.gateway.upstream.upstream import Upstream

if TYPE_CHECKING:
    from pathlib import Path

    from truename.gateway.upstream_errors import UpstreamError

__all__ = ["trace_supervisors"]


def trace_supervisors(path: Path) -> None:
    """Write down each attempt to connect, each end of one, and each change of a breaker."""
    trace = _Trace(path)
    connect, down, ready, request = Upstream._connect, Upstream._down, Upstream._ready, Upstream.request

    async def connecting(self: Upstream) -> None:
        trace.write(self.key, "attempt")
        await connect(self)
        trace.write(self.key, "closed")

    def going_down(self: Upstream, problem: UpstreamError) -> None:
        trace.write(self.key, "down", str(problem))
        down(self, problem)

    def getting_ready(self: Upstream, *more: Any) -> None:
        trace.write(self.key, "ready")
        ready(self, *more)

    async def requesting(self: Upstream, *given: Any, **more: Any) -> dict[str, Any]:
        trace.look(self)
        try:
            return await request(self, *given, **more)
        finally:
            trace.look(self)

    for name, traced in (
        ("_connect", connecting),
        ("_down", going_down),
        ("_ready", getting_ready),
        ("request", requesting),
    ):
        setattr(Upstream, name, traced)


class _Trace:
    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8")
        self._states: dict[str, str] = {}

    def write(self, server: str, did: str, text: str = "") -> None:
        step = {"at": time.monotonic(), "server": server, "did": did, "text": text[:200]}
        self._file.write(json.dumps(step) + "\n")
        self._file.flush()

    def look(self, upstream: Upstream) -> None:
        key, state = upstream.key, upstream.calls.breaker.state
        if self._states.get(key, "closed") != state:
            self._states[key] = state
            self.write(key, f"breaker {state}")
