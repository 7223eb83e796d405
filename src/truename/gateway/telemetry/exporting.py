"""Where spans go: by OTLP over HTTP, as the standard ``OTEL_*`` variables of the environment say."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import set_tracer_provider

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["export"]

_SERVICE: Final = "OTEL_SERVICE_NAME"
_EXPORTER: Final = "OTEL_TRACES_EXPORTER"


def export(server_name: str) -> Callable[[], None]:
    """Take spans from now on, for the whole process; what this returns sends those that wait, and ends it.

    Sampling, endpoint, headers, limits and the resource are the environment's: ``OTEL_TRACES_SAMPLER``,
    ``OTEL_EXPORTER_OTLP_ENDPOINT``, and so on. ``OTEL_TRACES_EXPORTER=none`` sends nothing.
    """
    resource = Resource.create({} if os.environ.get(_SERVICE) else {SERVICE_NAME: server_name})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    if os.environ.get(_EXPORTER, "otlp").strip().lower() != "none":
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    set_tracer_provider(provider)
    return provider.shutdown
