"""OTLP encoding of the gateway's spans: most attributes occur again and again, so their bytes are cached.

Each attribute is encoded as a message with this one field, and concatenated messages merge into one (a property of the
wire format: https://protobuf.dev/programming-guides/encoding/#last-one-wins). So a span is the cached bytes of its
attributes, and those of the fields that differ in each.
"""

from __future__ import annotations

import logging
from struct import Struct
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

    from truename.telemetry.spans import GatewaySpan

__all__ = ["SpanEncoder"]

log: Final = logging.getLogger("truename.gateway")

MAX_CACHED: Final = 4_096
_LONGEST: Final = 512
# Attributes that differ in each span are not worth caching.
_NEW_EACH_TIME: Final = frozenset({"jsonrpc.request.id", "gen_ai.tool.call.id"})
# Tags (field number and wire type) of fields that have a length.
_RESOURCE_SPANS: Final = b"\x0a"
_SCOPE_SPANS: Final = b"\x12"
_SPAN: Final = b"\x12"
_NAME: Final = b"\x2a"
_ATTRIBUTE: Final = b"\x4a"
_KEY: Final = b"\x0a"
_VALUE: Final = b"\x12"
_TEXT: Final = b"\x0a"
# Tag of an integer.
_NUMBER: Final = b"\x18"
_LARGEST: Final = 2**63 - 1
# Lengths below 128 are one byte.
_SHORT: Final = tuple(bytes((number,)) for number in range(0x80))


def _bytes(message: Message) -> bytes:
    written: bytes = message.SerializeToString()
    return written


# Tags, with lengths where there are any, of fields whose size is fixed.
_TRACE_ID: Final = _bytes(Message(trace_id=bytes(16)))[:-16]
_SPAN_ID: Final = _bytes(Message(span_id=bytes(8)))[:-8]
_PARENT_ID: Final = _bytes(Message(parent_span_id=bytes(8)))[:-8]
_STARTED: Final = _bytes(Message(start_time_unix_nano=1))[:-8]
_ENDED: Final = _bytes(Message(end_time_unix_nano=1))[:-8]
_TIMES: Final = Struct("<cQcQ")
_KINDS: Final = {kind: _bytes(Message(kind=Message.SpanKind.Value(f"SPAN_KIND_{kind.name}"))) for kind in SpanKind}
_STATUS: Final = {
    one: _bytes(Message(status=Status(code=Status.StatusCode.Value(f"STATUS_CODE_{one.name}")))) for one in StatusCode
}
# Flags: it is known whether the parent is remote, and whether it is.
_FLAGS: Final = {False: _bytes(Message(flags=0x100)), True: _bytes(Message(flags=0x300))}
_VALUES: Final = {bool: "bool_value", int: "int_value", float: "double_value"}


class SpanEncoder:
    """Encodes export requests for one resource, within the limits of the environment."""

    def __init__(self, resource: Resource, name: str) -> None:
        self._limits = SpanLimits()
        self._known: dict[tuple[str | None, str], bytes] = {}
        self._keys: dict[str, bytes] = {}
        scope = InstrumentationScope(name, "")
        some = ReadableSpan("", SpanContext(1, 1, is_remote=False), resource=resource, instrumentation_scope=scope)
        whole = encode_spans([some]).resource_spans[0]
        del whole.scope_spans[0].spans[:]
        self._scope = whole.scope_spans[0].SerializeToString()
        del whole.scope_spans[:]
        self._resource = whole.SerializeToString()

    def encode(self, spans: Iterable[GatewaySpan]) -> bytes:
        """Return an ``ExportTraceServiceRequest`` with these spans, encoded."""
        written = b"".join([self._written(span) for span in spans])
        return _sized(_RESOURCE_SPANS, self._resource + _sized(_SCOPE_SPANS, self._scope + written))

    def _written(self, span: GatewaySpan) -> bytes:
        try:
            return _sized(_SPAN, self._span(span))
        except Exception:  # whatever is wrong with one span: the others of its request are sent
            log.warning("A span cannot be encoded and is not sent.", exc_info=True)
            return b""

    def _span(self, span: GatewaySpan) -> bytes:
        trace, number, _, _, state, _ = span.context
        parent = span.parent
        name = None, span.name
        parts = [
            _TRACE_ID,
            trace.to_bytes(16, "big"),
            _SPAN_ID,
            number.to_bytes(8, "big"),
            _TIMES.pack(_STARTED, span.started, _ENDED, span.ended),
            _KINDS[span.kind],
            _STATUS[span.status],
            self._known.get(name) or self._kept(name, _sized(_NAME, _utf8(span.name))),
            _FLAGS[parent is not None and parent.is_remote],
        ]
        if parent is not None:
            parts += (_PARENT_ID, parent.span_id.to_bytes(8, "big"))
        if state:
            parts.append(Message(trace_state=state.to_header()).SerializeToString())
        return b"".join(parts + self._attributes(span.attributes))

    def _attributes(self, said: dict[str, Any]) -> list[bytes]:
        """Encode attributes; beyond the limit the first are left out, as the SDK does it."""
        most, longest = self._limits.max_span_attributes, self._limits.max_span_attribute_length
        kept = list(said.items())
        dropped = 0 if most is None else max(0, len(kept) - most)
        if longest is not None:
            kept = [(key, value[:longest] if isinstance(value, str) else value) for key, value in kept]
        if dropped:
            kept = kept[dropped:]
        known = self._known.get
        # Texts only: 1, 1.0 and True are equal keys with three encodings, and a list is no key.
        found = [(known(one) if type(one[1]) is str else None) or self._attribute(one) for one in kept]
        return [*found, Message(dropped_attributes_count=dropped).SerializeToString()] if dropped else found

    def _attribute(self, one: tuple[str, Any]) -> bytes:
        key, value = one
        if type(value) is str:
            # Nearly all attributes are texts; those need no message to be encoded.
            written = self._pair(key, _sized(_TEXT, _utf8(value)))
            return written if key in _NEW_EACH_TIME else self._kept((key, value), written)
        if type(value) is int and 0 <= value <= _LARGEST:
            return self._pair(key, _NUMBER + _varint(value))
        # Values of types that the gateway never uses are not sent, nor integers outside 64 bits.
        is_sent = type(value) is not int or -_LARGEST <= value + 1 <= _LARGEST
        field = _VALUES.get(type(value)) if is_sent else None
        return _bytes(Message(attributes=[KeyValue(key=key, value=AnyValue(**{field: value}))])) if field else b""

    def _pair(self, key: str, value: bytes) -> bytes:
        return _sized(_ATTRIBUTE, (self._keys.get(key) or self._named(key)) + _sized(_VALUE, value))

    def _named(self, key: str) -> bytes:
        if len(self._keys) >= MAX_CACHED:
            self._keys.clear()
        found = self._keys[key] = _sized(_KEY, _utf8(key))
        return found

    def _kept(self, what: tuple[str | None, str], written: bytes) -> bytes:
        if len(self._known) >= MAX_CACHED:
            self._known.clear()
        if len(written) <= _LONGEST:
            self._known[what] = written
        return written


def _utf8(text: str) -> bytes:
    """Encode a text; a lone surrogate, which has no encoding, becomes a backslash escape."""
    return text.encode("utf-8", "backslashreplace")


def _sized(field: bytes, content: bytes) -> bytes:
    """Encode a field that has a length."""
    length = len(content)
    return field + (_SHORT[length] if length < len(_SHORT) else _varint(length)) + content


def _varint(left: int) -> bytes:
    """Encode an integer as a varint."""
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)
