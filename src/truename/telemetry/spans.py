"""Spans of the gateway, which cost less than those of the SDK.

A call has two: the client's request and the request to the server. They hold the values of the SDK's spans, except
events and descriptions of the status. A span belongs to one task and needs no lock; its attributes are a plain dict,
bounded and encoded when it is exported. All other tracers of the process are the SDK's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, DEFAULT_ON, Decision
from opentelemetry.trace import (
    NonRecordingSpan,
    NoOpTracer,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
    use_span,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace.sampling import SamplingResult

__all__ = ["GatewaySpan", "GatewayTracerProvider"]

_OWN: Final = "truename"
_FLAGS: Final = {
    (sampled, random): TraceFlags(sampled | random << 1) for sampled in (False, True) for random in (False, True)
}


class GatewaySpan(Span):
    """A span of one request of a client, or of one that the gateway sends to a server.

    It has no events and no descriptions of errors: these would hold text of clients and servers.
    """

    __slots__ = ("_end", "attributes", "context", "ended", "kind", "name", "parent", "started", "status")

    def __init__(
        self,
        name: str,
        kind: SpanKind,
        context: SpanContext,
        parent: SpanContext | None,
        attributes: Mapping[str, object] | None,
        *,
        end: Callable[[object], None],
    ) -> None:
        self.name = name
        self.kind = kind
        self.context = context
        self.parent = parent
        self.attributes: dict[str, Any] = {} if attributes is None else dict(attributes)
        self.status = StatusCode.UNSET
        self.started = time.time_ns()
        self.ended = 0
        self._end = end

    def get_span_context(self) -> SpanContext:
        """Return the ids by which other processes know the span."""
        return self.context

    def is_recording(self) -> bool:
        """Return whether the span has not ended."""
        return not self.ended

    def set_attributes(self, attributes: Mapping[str, object]) -> None:
        """Set several attributes."""
        self.attributes.update(attributes)

    def set_attribute(self, key: str, value: object) -> None:
        """Set one attribute."""
        self.attributes[key] = value

    def update_name(self, name: str) -> None:
        """Replace the name."""
        self.name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:  # noqa: ARG002 - see above
        """Set the status, without its description."""
        self.status = status.status_code if isinstance(status, Status) else status

    def add_event(self, *_: object, **__: object) -> None:
        """Ignore the event."""

    def record_exception(self, *_: object, **__: object) -> None:
        """Ignore the exception."""

    def end(self, end_time: int | None = None) -> None:
        """End the span, once, and export it."""
        if not self.ended:
            self.ended = end_time or time.time_ns()
            self._end(self)


class _GatewayTracer(Tracer):
    def __init__(self, provider: GatewayTracerProvider, end: Callable[[object], None]) -> None:
        self._sampler = provider.sampler
        self._ids = provider.id_generator
        # These take every trace that begins here, and look for a parent first.
        self._takes_all = self._sampler is DEFAULT_ON or self._sampler is ALWAYS_ON
        self._end = end

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, object] | None = None,
        *_: object,
        **__: object,
    ) -> Span:
        """Start a span as child of the one in the context, if the sampler wants it."""
        above = get_current_span(context)
        if type(above) is GatewaySpan and above.context.trace_flags & TraceFlags.SAMPLED:
            # Every sampler that the environment can name decides on such a child as on its parent.
            parent = above.context
            number = SpanContext(parent[0], self._ids.generate_span_id(), False, parent[3], parent[4])
            return GatewaySpan(name, kind, number, parent, attributes, end=self._end)
        said = above.get_span_context()
        return self._rooted(name, context, kind, attributes, said if said.is_valid else None)

    def _rooted(
        self,
        name: str,
        context: Context | None,
        kind: SpanKind,
        attributes: Mapping[str, Any] | None,
        parent: SpanContext | None,
    ) -> Span:
        trace = self._ids.generate_trace_id() if parent is None else parent.trace_id
        is_random = self._ids.is_trace_id_random() if parent is None else parent.trace_flags.random_trace_id
        if parent is None and self._takes_all:
            number = SpanContext(trace, self._ids.generate_span_id(), False, _FLAGS[True, is_random])
            return GatewaySpan(name, kind, number, None, attributes, end=self._end)
        said: SamplingResult = self._sampler.should_sample(context, trace, name, kind, attributes)
        flags = _FLAGS[said.decision is Decision.RECORD_AND_SAMPLE, is_random]
        number = SpanContext(trace, self._ids.generate_span_id(), False, flags, said.trace_state)
        if said.decision is Decision.DROP:
            return NonRecordingSpan(number)
        return GatewaySpan(name, kind, number, parent, attributes, end=self._end)

    def start_as_current_span(  # type: ignore[override]  # what that returns has no public name
        self, *args: Any, end_on_exit: bool = True, **more: Any
    ) -> AbstractContextManager[Span]:
        """Start a span and make it the current one while the block lasts."""
        return use_span(self.start_span(*args, **more), end_on_exit=end_on_exit)


class GatewayTracerProvider(TracerProvider):
    """The SDK's provider, but for the gateway's own tracer. ``end`` receives each span that this tracer ends."""

    def __init__(self, end: Callable[[Any], None], **more: Any) -> None:
        super().__init__(**more)
        self._take = end

    def get_tracer(self, instrumenting_module_name: str, *args: Any, **more: Any) -> Tracer:
        """Return the gateway's tracer for its name, else one of the SDK."""
        found = super().get_tracer(instrumenting_module_name, *args, **more)
        if instrumenting_module_name != _OWN or isinstance(found, NoOpTracer):
            return found
        return _GatewayTracer(self, self._take)
