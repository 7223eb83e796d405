"""Every metric, as the gateway's registry has it."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Histogram

from docsite.reference.text import code, head, table
from truename.telemetry.metrics import Metrics
from truename.telemetry.status import AuditStatus, GatewayStatus, ServerStatus

__all__ = ["page"]

_INTRODUCTION: Final = """The setting `telemetry.metrics` serves these at `/metrics` in the format of Prometheus; `telemetry.metrics_sent` sends the
same by OTLP ([observability](../operate/observability.md)). With several workers each has a label `worker` too. A metric that does not apply, such as the
expiry of a certificate without TLS, is left out."""
# A summary's or a histogram's own samples have these labels besides.
_INNER: Final = frozenset({"le", "quantile"})


class _Everything:
    def status(self) -> GatewayStatus:
        server = ServerStatus(
            key="s", is_up=True, tools=1, calls_running=0, calls_waiting=0, breaker="closed", logins_required=0
        )
        return GatewayStatus(
            requests_running=0,
            tools=1,
            tools_hidden=0,
            ledger_bindings=1,
            definitions_waiting=0,
            approvals_waiting=0,
            audit_ok=True,
            audit=AuditStatus(waiting=0, lag=0, dropped=0, heads_behind=0),
            quotas_ok=True,
            servers=(server,),
        )


def page() -> str:
    """Return the page."""
    metrics = Metrics(most_tools=1)
    metrics.certificate_expires = float
    metrics.replicas = int
    # A metric without a sample shows its labels nowhere else.
    known = [one for one in vars(metrics).values() if isinstance(one, (Counter, Histogram))]
    labels = {one._name: one._labelnames for one in known}  # noqa: SLF001
    metrics.watch(_Everything())
    rows = []
    for family in sorted(metrics.registry.collect(), key=lambda one: one.name):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        seen = {label for sample in family.samples for label in sample.labels} - _INNER
        named = labels.get(family.name) or sorted(seen)
        rows.append((code(name), family.type, ", ".join(map(code, named)), family.documentation))
    parts = [head("Metrics", "the registry of `src/truename/telemetry/metrics.py`"), _INTRODUCTION]
    parts.append(table(("metric", "type", "labels", "meaning"), rows))
    return "\n\n".join(parts) + "\n"
