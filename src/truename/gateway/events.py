"""What happens to servers, as told to whoever watches: the command line shows it while they start."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

__all__ = ["EventKind", "GatewayEvent", "OnEvent", "ignore_event"]

EventKind = Literal["start", "resting", "ready", "failed", "lost", "changed"]


@dataclass(frozen=True, kw_only=True)
class GatewayEvent:
    """Something that happened to a server.

    ``start``; ``resting`` (tools), for one that is started when it is needed; ``ready`` (tools, seconds); ``failed``
    (seconds, text) before it was ever ready, ``lost`` (text) after; ``changed`` (tools) when it lists other ones.
    """

    kind: EventKind
    server: str
    tools: int | None = None
    seconds: float | None = None
    text: str = ""


OnEvent = Callable[[GatewayEvent], None]


def ignore_event(_: GatewayEvent) -> None:
    """Do nothing with an event: nobody asked to be told."""
