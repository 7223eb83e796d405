"""What the gateway tells of itself to machines: the table ``[telemetry]``, read strictly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from truename.config.fields import TEXTS, TRUTH, WHOLE, Row, read_row_table, row_schema
from truename.errors import excerpt
from truename.policy.principal import WRITTEN, principal_fault

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from truename.config.fields import Fields

__all__ = ["TELEMETRY", "Telemetry", "read_telemetry"]


@dataclass(frozen=True, kw_only=True)
class Telemetry:
    """Whether there are metrics (at ``/metrics``) and traces (sent where ``OTEL_*`` in the environment says).

    ``metrics_sent``: metrics are sent there, too. ``metrics_public``: they are told to who shows no credentials.
    ``metrics_for`` says to whom of those who came in (globs on `Principal.key`): they name servers of all profiles, so
    where there are profiles and nobody is named here, nobody is told.
    ``metrics_tools`` is of how many tools calls are counted by their id; the others are counted together.
    """

    metrics: bool = False
    metrics_sent: bool = False
    metrics_public: bool = False
    metrics_for: tuple[str, ...] = ()
    metrics_tools: int = 0
    traces: bool = False


def _truth(fields: Fields, name: str) -> bool:
    return fields.truth(name)


def _names(fields: Fields, name: str) -> tuple[str, ...] | None:
    found = fields.texts(name)
    if not found and fields.is_list(name):
        fields.faults.add(fields.where(name), "it names nobody", "Leave it out, or name somebody.")
    for index, glob in enumerate(found or ()):
        if fault := principal_fault(glob):
            fields.faults.add(f"{fields.where(name)}[{index}]", f"{excerpt(glob)}: {fault}", WRITTEN)
    return found or None


_ROWS: Final[Mapping[str, Row]] = {
    "metrics": Row(_truth, TRUTH, "Whether there are metrics for Prometheus at /metrics."),
    "metrics_sent": Row(_truth, TRUTH, "Whether metrics are sent by OTLP, as OTEL_* in the environment says."),
    "metrics_public": Row(_truth, TRUTH, "Whether they are told to who shows no credentials."),
    "metrics_for": Row(_names, TEXTS, "Who may read them, by globs: with profiles nobody else."),
    "metrics_tools": Row(
        lambda fields, name: fields.whole(name, least=0),
        {**WHOLE, "minimum": 0},
        "Of how many tools calls are counted by their id.",
    ),
    "traces": Row(_truth, TRUTH, "Whether traces are sent, as OTEL_* in the environment says."),
}
TELEMETRY: Final[Mapping[str, Any]] = row_schema(_ROWS)
"""What a schema says of the table."""


def read_telemetry(fields: Fields, name: str, _: Path) -> Telemetry | None:
    """Read the table ``telemetry``; what is wrong is noted."""
    table = fields.nested(name, "an object")
    return None if table is None else Telemetry(**read_row_table(table, _ROWS))
