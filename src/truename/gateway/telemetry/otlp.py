"""The gateway's own spans as they are sent by OTLP: most of what they say was said before, and is not written again.

Each attribute becomes the bytes of a message that has nothing else, and messages that stand behind each other are one
(merging is a property of the wire format: https://protobuf.dev/programming-guides/encoding/#last-one-wins). So a span
is the bytes of its attributes, kept from the last one that had the same, and of what is only its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as Message
from opentelemetry.proto.trace.v1.trace_pb2 import Status
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, StatusCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from opentelemetry.sdk.resources import Resource

    from truename.gateway.telemetry.spans import OwnSpan

__all__ = ["Writing"]

_MOST: Final = 4_096
_LONGEST: Final = 256
_KINDS: Final = {kind: Message.SpanKind.Value(f"SPAN_KIND_{kind.name}") for kind in SpanKind}
# Of a field that has bytes: its number and its kind, before their length.
_RESOURCE_SPANS: Final = b"\x0a"
_SCOPE_SPANS: Final = b"\x12"
_SPAN: Final = b"\x12"
# That it is told at all whether the parent is another process's, and that it is.
_KNOWN, _REMOTE = 0x100, 0x200
_VALUES: Final = {str: "string_value", bool: "bool_value", int: "int_value", float: "double_value"}


class Writing:
    """Writes requests of OTLP for one resource, within the limits of the environment."""

    def __init__(self, resource: Resource, name: str) -> None:
        self._limits = SpanLimits()
        self._known: dict[tuple[str, str], bytes] = {}
        scope = InstrumentationScope(name, "")
        some = ReadableSpan("", SpanContext(1, 1, is_remote=False), resource=resource, instrumentation_scope=scope)
        whole = encode_spans([some]).resource_spans[0]
        del whole.scope_spans[0].spans[:]
        self._scope = whole.scope_spans[0].SerializeToString()
        del whole.scope_spans[:]
        self._resource = whole.SerializeToString()

    def request(self, spans: Iterable[OwnSpan]) -> bytes:
        """Return an ``ExportTraceServiceRequest`` with these spans."""
        written = b"".join([_sized(_SPAN, self._span(span)) for span in spans])
        return _sized(_RESOURCE_SPANS, self._resource + _sized(_SCOPE_SPANS, self._scope + written))

    def _span(self, span: OwnSpan) -> bytes:
        trace, number, _, _, state, _ = span.context
        parts, dropped = self._attributes(span.attributes)
        own = Message(
            trace_id=trace.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            name=span.name,
            kind=_KINDS[span.kind],
            start_time_unix_nano=span.started,
            end_time_unix_nano=span.ended,
            flags=_KNOWN,
        )
        if (parent := span.parent) is not None:
            own.parent_span_id = parent.span_id.to_bytes(8, "big")
            own.flags |= _REMOTE if parent.is_remote else 0
        if state:
            own.trace_state = state.to_header()
        if span.status is not StatusCode.UNSET:
            own.status.CopyFrom(Status(code=span.status.value))
        if dropped:
            own.dropped_attributes_count = dropped
        parts.append(own.SerializeToString())
        return b"".join(parts)

    def _attributes(self, said: dict[str, Any]) -> tuple[list[bytes], int]:
        """Return the attributes, and how many there is no room for: of those the first, as the SDK does it."""
        most, longest = self._limits.max_span_attributes, self._limits.max_span_attribute_length
        kept = list(said.items())
        dropped = 0 if most is None else max(0, len(kept) - most)
        if longest is not None:
            kept = [(key, value[:longest] if isinstance(value, str) else value) for key, value in kept]
        return [self._attribute(key, value) for key, value in kept[dropped:]], dropped

    def _attribute(self, key: str, value: Any) -> bytes:
        # Of 1, 1.0 and True only one could be kept, for they are equal.
        if type(value) is not str:
            return _written(key, value)
        if (found := self._known.get((key, value))) is None:
            found = _written(key, value)
            if len(self._known) >= _MOST:
                self._known.clear()
            if len(value) <= _LONGEST:
                self._known[key, value] = found
        return found


def _written(key: str, value: Any) -> bytes:
    """Return a span that has this attribute and nothing else; what is of a kind that is in none of ours has none."""
    if (field := _VALUES.get(type(value))) is None:
        return b""
    written: bytes = Message(attributes=[KeyValue(key=key, value=AnyValue(**{field: value}))]).SerializeToString()
    return written


def _sized(field: bytes, content: bytes) -> bytes:
    """Return a field of bytes: what it is, how long, and the bytes."""
    left, length = len(content), bytearray()
    # Seven bits a byte, and one that says whether there are more.
    while left > 0x7F:
        length.append(left & 0x7F | 0x80)
        left >>= 7
    length.append(left)
    return b"".join((field, length, content))
