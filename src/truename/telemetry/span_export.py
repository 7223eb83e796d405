"""Export of spans by OTLP over HTTP, as the standard ``OTEL_*`` variables of the environment say."""

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

from truename.telemetry.daemon import SHUTDOWN_TIMEOUT, in_daemon_thread
from truename.telemetry.otlp import SpanEncoder
from truename.telemetry.spans import GatewaySpan, GatewayTracerProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CachingSpanExporter", "export"]

log: Final = logging.getLogger("truename.gateway")
_SERVICE: Final = "OTEL_SERVICE_NAME"
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"
_OWN: Final = "truename"
# A call has two spans: the SDK's queue of 2,048 is full after a second in which the collector does not answer.
_MOST_WAITING: Final = 8_192
_BATCH: Final = 2_048


class CachingSpanExporter(OTLPSpanExporter):
    """A `SpanExporter` of the SDK that encodes the gateway's spans with `SpanEncoder`, at a tenth of the cost.

    Connection, retries, headers and compression are the SDK's, and so is the encoding of all other spans.
    """

    def __init__(self, resource: Resource) -> None:
        super().__init__()
        self._encoder = SpanEncoder(resource, _OWN)

    @property
    def takes_bytes(self) -> bool:
        """Whether the client of this version of the SDK can be used: it has no public name."""
        return callable(getattr(getattr(self, "_client", None), "export", None))

    def export(self, spans: Sequence[Any]) -> SpanExportResult:
        """Send spans; runs in the thread of the processor."""
        own = [span for span in spans if type(span) is GatewaySpan]
        others = [span for span in spans if type(span) is not GatewaySpan]
        found = super().export(others) if others else SpanExportResult.SUCCESS
        if own and not self._client.export(self._encoder.encode(own)).success:
            return SpanExportResult.FAILURE
        return found


def export(server_name: str) -> Callable[[], None]:
    """Export the spans of the whole process from now on; return a function that sends the rest and stops.

    It returns after `SHUTDOWN_TIMEOUT` at the latest; spans that the collector did not take by then are lost.

    Sampling, endpoint, headers, limits and the resource are the environment's: ``OTEL_TRACES_SAMPLER``,
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, and so on. ``OTEL_TRACES_EXPORTER=none`` sends nothing. The queue and a batch hold
    four times as many spans as the SDK's defaults, unless the environment says how many.
    """
    resource = Resource.create({} if os.environ.get(_SERVICE) else {SERVICE_NAME: server_name})
    provider = _provider(resource)
    set_tracer_provider(provider)
    return partial(_end, provider)


def _end(provider: TracerProvider) -> None:
    if wait([in_daemon_thread(provider.shutdown)], SHUTDOWN_TIMEOUT).not_done:
        log.warning("The collector did not take all spans in %g seconds; the rest is lost.", SHUTDOWN_TIMEOUT)


def _provider(resource: Resource) -> TracerProvider:
    if os.environ.get(_EXPORTER, "otlp").strip().lower() == "none":
        return TracerProvider(resource=resource, shutdown_on_exit=False)
    exporter = CachingSpanExporter(resource)
    is_set = any(os.environ.get(name) for name in (OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BSP_MAX_EXPORT_BATCH_SIZE))
    most, batch = (None, None) if is_set else (_MOST_WAITING, _BATCH)
    batches = BatchSpanProcessor(exporter, max_queue_size=most, max_export_batch_size=batch)
    provider = (
        GatewayTracerProvider(batches.on_end, resource=resource, shutdown_on_exit=False)
        if exporter.takes_bytes
        else TracerProvider(resource=resource, shutdown_on_exit=False)
    )
    provider.add_span_processor(batches)
    return provider
