"""How a gateway stands: what the command line prints when it has started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from truename.gateway.upstream.upstream import Upstream
    from truename.identity import ToolId

__all__ = ["Reloaded", "Report", "ServerReport"]


@dataclass(frozen=True, kw_only=True)
class ServerReport:
    """One server: ``state`` is starting, ready, resting, reconnecting or failed; ``error`` says why it is not ready.

    ``registry_name`` is the name in the MCP registry that its entry has; the server itself says nothing of it.
    """

    key: str
    state: str
    tools: int
    seconds: float | None
    error: str | None
    registry_name: str | None = None

    @classmethod
    def of(cls, upstream: Upstream, registered: Mapping[str, str]) -> Self:
        """Return how a server stands now; ``registered`` has the names of the configuration, by key."""
        return cls(
            key=upstream.key,
            state=upstream.state,
            tools=len(upstream.tools or ()),
            seconds=upstream.seconds,
            error=str(upstream.problem) if upstream.problem else None,
            registry_name=registered.get(upstream.key),
        )


@dataclass(frozen=True, kw_only=True)
class Report:
    """All servers in the order of the configuration, the names on the main endpoint, the style, the ledger's place."""

    servers: tuple[ServerReport, ...]
    names: Mapping[ToolId, str]
    style: str
    ledger: str | None

    @property
    def failed(self) -> tuple[ServerReport, ...]:
        """The servers that give no tools."""
        return tuple(server for server in self.servers if server.state == "failed")


@dataclass(frozen=True, kw_only=True)
class Reloaded:
    """What another configuration changed: servers that came, went, or are otherwise, and settings, by name.

    ``moved`` says that servers stand in another order. False where nothing changed.

    >>> str(Reloaded(added=("a",), removed=("b",), settings=("call_timeout",)))
    '+a, -b, call_timeout'
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    moved: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.settings or self.moved)

    def __str__(self) -> str:
        marked = ((sign, key) for sign, keys in zip("+-~", self._keys, strict=True) for key in keys)
        said = [*(f"{sign}{key}" for sign, key in marked), *self.settings, *(["the order"] if self.moved else [])]
        return ", ".join(said) or "nothing changed"

    @property
    def _keys(self) -> tuple[tuple[str, ...], ...]:
        return self.added, self.removed, self.changed
