"""The gateway's own spans, in the place of the SDK's: two for each call, so what one costs is what tracing costs.

They say what the SDK's would say, and less is done for it: a span belongs to one task and has no lock; its attributes
are a plain table, which is bounded and written when it is sent. Spans of everybody else in the process are the SDK's.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision
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

__all__ = ["OwnSpan", "Provider"]

_OWN: Final = "truename"
_FLAGS: Final = {
    (sampled, random): TraceFlags(sampled | random << 1) for sampled in (False, True) for random in (False, True)
}


class OwnSpan(Span):
    """A span of the gateway: of one request of a client, or of one that is sent to a server for it.

    It has no events and no descriptions of errors, whoever would add one: these would be texts of clients and servers.
    """

    __slots__ = ("_end", "attributes", "context", "ended", "kind", "name", "parent", "started", "status")

    def __init__(
        self,
        name: str,
        kind: SpanKind,
        context: SpanContext,
        parent: SpanContext | None,
        attributes: Mapping[str, Any] | None,
        *,
        end: Callable[[Any], None],
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
        """Return by what it is known elsewhere."""
        return self.context

    def is_recording(self) -> bool:
        """Tell whether anything can be said of it still."""
        return not self.ended

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Say several things."""
        self.attributes.update(attributes)

    def set_attribute(self, key: str, value: Any) -> None:
        """Say one thing."""
        self.attributes[key] = value

    def update_name(self, name: str) -> None:
        """Give it another name."""
        self.name = name

    def set_status(self, status: Status | StatusCode, description: str | None = None) -> None:  # noqa: ARG002 - see above
        """Say whether it failed."""
        self.status = status.status_code if isinstance(status, Status) else status

    def add_event(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    def record_exception(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    def end(self, end_time: int | None = None) -> None:
        """End it, once, and have it sent."""
        if not self.ended:
            self.ended = end_time or time.time_ns()
            self._end(self)


class _OwnTracer(Tracer):
    def __init__(self, provider: Provider, end: Callable[[Any], None]) -> None:
        self._sampler = provider.sampler
        self._ids = provider.id_generator
        self._end = end

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        *_: Any,
        **__: Any,
    ) -> Span:
        """Begin a span below the one of the context, if the sampler wants it."""
        above = get_current_span(context)
        if type(above) is OwnSpan and above.context.trace_flags & TraceFlags.SAMPLED:
            # All samplers that the environment can name say of a child what they said of its parent here.
            parent = above.context
            number = SpanContext(parent[0], self._ids.generate_span_id(), False, parent[3], parent[4])
            return OwnSpan(name, kind, number, parent, attributes, end=self._end)
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
        said: SamplingResult = self._sampler.should_sample(context, trace, name, kind, attributes)
        is_random = self._ids.is_trace_id_random() if parent is None else parent.trace_flags.random_trace_id
        flags = _FLAGS[said.decision is Decision.RECORD_AND_SAMPLE, is_random]
        number = SpanContext(trace, self._ids.generate_span_id(), False, flags, said.trace_state)
        if said.decision is Decision.DROP:
            return NonRecordingSpan(number)
        return OwnSpan(name, kind, number, parent, attributes, end=self._end)

    def start_as_current_span(  # type: ignore[override]  # what that returns has no public name
        self, *args: Any, end_on_exit: bool = True, **more: Any
    ) -> AbstractContextManager[Span]:
        """Begin a span around a block."""
        return use_span(self.start_span(*args, **more), end_on_exit=end_on_exit)


class Provider(TracerProvider):
    """The SDK's provider, as the environment says, but for the gateway's own tracer; ``end`` takes what that ends."""

    def __init__(self, end: Callable[[Any], None], **more: Any) -> None:
        super().__init__(**more)
        self._take = end

    def get_tracer(self, instrumenting_module_name: str, *args: Any, **more: Any) -> Tracer:
        """Return the tracer of whoever asks for one."""
        found = super().get_tracer(instrumenting_module_name, *args, **more)
        if instrumenting_module_name != _OWN or isinstance(found, NoOpTracer):
            return found
        return _OwnTracer(self, self._take)
