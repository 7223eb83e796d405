"""The table ``[telemetry]``: metrics and traces of the gateway."""

from __future__ import annotations

from dataclasses import dataclass

from truename.config.field_types import BOOLEAN, COUNT_OR_ZERO, PRINCIPAL_GLOBS
from truename.config.fields import setting

__all__ = ["Telemetry"]


@dataclass(frozen=True, kw_only=True)
class Telemetry:
    """Whether the gateway serves and sends metrics and traces, and who may read the metrics."""

    metrics: bool = setting(False, BOOLEAN, "Whether metrics for Prometheus are served at /metrics.")
    metrics_sent: bool = setting(
        False, BOOLEAN, "Whether metrics are sent by OTLP, as OTEL_* in the environment configures."
    )
    metrics_public: bool = setting(False, BOOLEAN, "Whether callers without credentials may read the metrics.")
    metrics_for: tuple[str, ...] = setting(
        (),
        PRINCIPAL_GLOBS,
        "Principals that may read the metrics, as globs; with profiles nobody else may, because metrics name the "
        "servers of all profiles.",
    )
    metrics_tools: int = setting(
        0, COUNT_OR_ZERO, "Tools whose calls are counted by tool id; the others are counted together.", unit="tools"
    )
    traces: bool = setting(False, BOOLEAN, "Whether traces are sent by OTLP, as OTEL_* in the environment configures.")
