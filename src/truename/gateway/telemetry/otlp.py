"""The gateway's own spans as they are sent by OTLP: most of what they say was said before, and is not written again.

Each attribute becomes the bytes of a message that has nothing else, and messages that stand behind each other are one
(merging is a property of the wire format: https://protobuf.dev/programming-guides/encoding/#last-one-wins). So a span
is the bytes of its attributes, kept from the last one that had the same, and of what is only its own.
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

    from truename.gateway.telemetry.spans import OwnSpan

__all__ = ["Writing"]

log: Final = logging.getLogger("truename.gateway")

_MOST: Final = 4_096
_LONGEST: Final = 512
# What is another text in each span: nothing to keep.
_NEW_EACH_TIME: Final = frozenset({"jsonrpc.request.id", "gen_ai.tool.call.id"})
# Of a field that has bytes: its number and its kind, before their length.
_RESOURCE_SPANS: Final = b"\x0a"
_SCOPE_SPANS: Final = b"\x12"
_SPAN: Final = b"\x12"
_NAME: Final = b"\x2a"
_ATTRIBUTE: Final = b"\x4a"
_KEY: Final = b"\x0a"
_VALUE: Final = b"\x12"
_TEXT: Final = b"\x0a"
# Of a whole number, before it.
_NUMBER: Final = b"\x18"
_LARGEST: Final = 2**63 - 1
# Lengths below 128 are one byte.
_SHORT: Final = tuple(bytes((number,)) for number in range(0x80))


def _bytes(message: Message) -> bytes:
    written: bytes = message.SerializeToString()
    return written


# Of fields that have always as many bytes: what stands before these.
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
# That it is told at all whether the parent is another process's, and whether it is.
_FLAGS: Final = {False: _bytes(Message(flags=0x100)), True: _bytes(Message(flags=0x300))}
_VALUES: Final = {bool: "bool_value", int: "int_value", float: "double_value"}


class Writing:
    """Writes requests of OTLP for one resource, within the limits of the environment."""

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

    def request(self, spans: Iterable[OwnSpan]) -> bytes:
        """Return an ``ExportTraceServiceRequest`` with these spans."""
        written = b"".join([self._written(span) for span in spans])
        return _sized(_RESOURCE_SPANS, self._resource + _sized(_SCOPE_SPANS, self._scope + written))

    def _written(self, span: OwnSpan) -> bytes:
        try:
            return _sized(_SPAN, self._span(span))
        except Exception:  # whatever is wrong with it: the others of its request are sent
            log.warning("a span can't be sent", exc_info=True)
            return b""

    def _span(self, span: OwnSpan) -> bytes:
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
        """Return the attributes; where there is no room for all, the first are left out, as the SDK does it."""
        most, longest = self._limits.max_span_attributes, self._limits.max_span_attribute_length
        kept = list(said.items())
        dropped = 0 if most is None else max(0, len(kept) - most)
        if longest is not None:
            kept = [(key, value[:longest] if isinstance(value, str) else value) for key, value in kept]
        if dropped:
            kept = kept[dropped:]
        known = self._known.get
        # Of texts only: 1, 1.0 and True are equal, and written in three ways; a list is nothing to look up by.
        found = [(known(one) if type(one[1]) is str else None) or self._attribute(one) for one in kept]
        return [*found, Message(dropped_attributes_count=dropped).SerializeToString()] if dropped else found

    def _attribute(self, one: tuple[str, Any]) -> bytes:
        key, value = one
        if type(value) is str:
            return self._text(key, value)
        if type(value) is int and 0 <= value <= _LARGEST:
            return self._pair(key, _NUMBER + _varint(value))
        # What is of a kind that none of ours is of is not sent, nor what no such number can be.
        is_sent = type(value) is not int or -_LARGEST <= value + 1 <= _LARGEST
        field = _VALUES.get(type(value)) if is_sent else None
        return _bytes(Message(attributes=[KeyValue(key=key, value=AnyValue(**{field: value}))])) if field else b""

    def _text(self, key: str, value: str) -> bytes:
        """Return an attribute that is a text: as nearly all are, so no message is made of it first."""
        written = self._pair(key, _sized(_TEXT, _utf8(value)))
        return written if key in _NEW_EACH_TIME else self._kept((key, value), written)

    def _pair(self, key: str, value: bytes) -> bytes:
        return _sized(_ATTRIBUTE, (self._keys.get(key) or self._named(key)) + _sized(_VALUE, value))

    def _named(self, key: str) -> bytes:
        if len(self._keys) >= _MOST:
            self._keys.clear()
        found = self._keys[key] = _sized(_KEY, _utf8(key))
        return found

    def _kept(self, what: tuple[str | None, str], written: bytes) -> bytes:
        if len(self._known) >= _MOST:
            self._known.clear()
        if len(written) <= _LONGEST:
            self._known[what] = written
        return written


def _utf8(text: str) -> bytes:
    """Return a text's bytes; half of a character, which has none, is written as Python writes it."""
    return text.encode("utf-8", "backslashreplace")


def _sized(field: bytes, content: bytes) -> bytes:
    """Return a field of bytes: what it is, how long, and the bytes."""
    length = len(content)
    return field + (_SHORT[length] if length < len(_SHORT) else _varint(length)) + content


def _varint(left: int) -> bytes:
    """Return a number in seven bits a byte, and one that says whether there are more."""
    found = bytearray()
    while left > 0x7F:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    found.append(left)
    return bytes(found)
