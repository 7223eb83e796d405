"""Where spans go: by OTLP over HTTP, as the standard ``OTEL_*`` variables of the environment say."""

from __future__ import annotations

import logging
import os
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.environment_variables import OTEL_BSP_MAX_EXPORT_BATCH_SIZE, OTEL_BSP_MAX_QUEUE_SIZE
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import set_tracer_provider

from truename.gateway.telemetry.aside import LAST, aside
from truename.gateway.telemetry.otlp import Writing
from truename.gateway.telemetry.spans import OwnSpan, Provider

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["export"]

log: Final = logging.getLogger("truename.gateway")
_SERVICE: Final = "OTEL_SERVICE_NAME"
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_OWN: Final = "truename"
# Each call has two spans: the SDK's queue of 2,048 is full in the second in which a collector does not answer.
_MOST_WAITING: Final = 8_192
_BATCH: Final = 2_048


class _Sending(OTLPSpanExporter):
    """The SDK's exporter; the gateway's own spans are written by `Writing`, which costs a tenth."""

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._writing = Writing(resource, _OWN)

    @property
    def takes_bytes(self) -> bool:
        """Whether this version of the SDK lets others use its client."""
        return callable(getattr(getattr(self, "_client", None), "export", None))

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        """Send spans; runs in the thread of the processor."""
        own = [span for span in spans if type(span) is OwnSpan]
        others = [span for span in spans if type(span) is not OwnSpan]
        found = super().export(others) if others else SpanExportResult.SUCCESS
        if own and not self._client.export(self._writing.request(own)).success:
            return SpanExportResult.FAILURE
        return found


def export(server_name: str) -> Callable[[], None]:
    """Take spans from now on, for the whole process; what this returns sends those that wait, and ends it.

    It ends in some seconds, whatever the collector does: those that were not taken by then are lost.

    Sampling, endpoint, headers, limits and the resource are the environment's: ``OTEL_TRACES_SAMPLER``,
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, and so on. ``OTEL_TRACES_EXPORTER=none`` sends nothing. Of spans that wait, four
    times as many are kept and sent at once as the SDK would, unless the environment says how many.
    """
    resource = Resource.create({} if os.environ.get(_SERVICE) else {SERVICE_NAME: server_name})
    provider = _provider(resource)
    set_tracer_provider(provider)
    return partial(_end, provider)


def _end(provider: TracerProvider) -> None:
    if wait([aside(provider.shutdown)], LAST).not_done:
        log.warning("spans that the collector did not accept within %g seconds are lost", LAST)


def _provider(resource: Resource) -> TracerProvider:
    if os.environ.get(_EXPORTER, "otlp").strip().lower() == "none":
        return TracerProvider(resource=resource, shutdown_on_exit=False)
    sending = _Sending(resource)
    is_told = any(os.environ.get(name) for name in (OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE))
    most, batch = (None, None) if is_told else (_MOST_WAITING, _BATCH)
    batches = BatchSpanProcessor(sending, max_queue_size=most, max_export_batch_size=batch)
    provider = (
        Provider(batches.on_end, resource=resource, shutdown_on_exit=False)
        if sending.takes_bytes
        else TracerProvider(resource=resource, shutdown_on_exit=False)
    )
    provider.add_span_processor(batches)
    return provider
