"""The state of a gateway at one moment, as metrics report it, and the Protocol by which a gateway provides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

__all__ = ["AuditStatus", "GatewayStatus", "ServerStatus", "StateChange", "StatusSource"]


@dataclass(frozen=True, kw_only=True)
class ServerStatus:
    """The state of one server."""

    key: str
    is_up: bool
    tools: int
    calls_running: int
    calls_waiting: int
    breaker: Literal["closed", "half-open", "open"]
    logins_required: int


@dataclass(frozen=True, kw_only=True)
class AuditStatus:
    """The state of the audit log: ``waiting`` records are not on disk yet, the oldest for ``lag`` seconds.

    ``heads_behind`` is for how many seconds the head in the state database is not that of the log; None without one.
    """

    waiting: int
    lag: float
    dropped: int
    heads_behind: float | None = None


@dataclass(frozen=True, kw_only=True)
class GatewayStatus:
    """The state of a gateway. None stands for a value that cannot be read, or that does not apply.

    ``quotas_ok``: whether the state database leases what quotas allow.

    ``audit_ok`` and ``audit`` differ: an audit log that could not be opened is not ok and has no recorder.
    """

    requests_running: int
    tools: int
    tools_hidden: int
    ledger_bindings: int
    definitions_waiting: int
    approvals_waiting: int | None
    audit_ok: bool | None
    audit: AuditStatus | None
    quotas_ok: bool | None
    servers: tuple[ServerStatus, ...]


class StatusSource(Protocol):
    """Provides the state of a gateway."""

    def status(self) -> GatewayStatus:
        """Return the state at this moment."""
        ...


class StateChange(Protocol):
    """A change of a server's state: ``kind`` is ``ready`` or ``lost``, or one that is not counted."""

    @property
    def kind(self) -> str:
        """The kind of change."""
        ...

    @property
    def server(self) -> str:
        """The key of the server."""
        ...
