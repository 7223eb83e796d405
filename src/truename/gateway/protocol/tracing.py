"""Spans of OpenTelemetry: one for each request of a client, and one for each that is sent to a server for it.

They are made only where somebody takes them. A request's own trace context passes on in its ``_meta`` in any case.
What clients and servers say stands in no span but for names, cut short and printable: no arguments, no results, no
texts of errors.

Source: OpenTelemetry's semantic conventions for MCP and GenAI (Development), SEP-414.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace
from opentelemetry.baggage import get_all
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import attach, detach
from opentelemetry.environment_variables import OTEL_PYTHON_TRACER_PROVIDER
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace import (
    ProxyTracerProvider,
    SpanKind,
    Tracer,
    TracerProvider,
    get_current_span,
    get_tracer_provider,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from truename.gateway.protocol.callers import first_header
from truename.gateway.protocol.envelopes import content_of
from truename.gateway.protocol.errors import MCPError
from truename.gateway.upstream_errors import printable
from truename.telemetry.call_spans import record_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, SpanContext

    from truename.gateway.mcp.requests import Request
    from truename.gateway.protocol.envelopes import Envelope

__all__ = ["RequestSpan", "ServerSpan", "is_traced", "request_span", "server_span", "traceparent_now"]

_CALL: Final = "tools/call"
_PARENT: Final = "traceparent"
_HEADER: Final = _PARENT.encode()
_KEYS: Final = (_PARENT, "tracestate", "baggage")
# By SEP-414 these and no others, whatever else the process propagates.
_BAGGAGE: Final = W3CBaggagePropagator()
_W3C: Final = CompositePropagator([TraceContextTextMapPropagator(), _BAGGAGE])
_LONGEST: Final = 8_192
_NAME: Final = 100
_ALIKE: Final = 256
_BY_ENVIRONMENT: Final = OTEL_PYTHON_TRACER_PROVIDER in os.environ


class _Tracing:
    """The tracer of the provider that there is: a program may set one later."""

    provider: TracerProvider | None = None
    tracer: Tracer


def _tracer() -> Tracer:
    provider = get_tracer_provider()
    if provider is not _Tracing.provider:
        _Tracing.provider, _Tracing.tracer = provider, provider.get_tracer("truename")
    return _Tracing.tracer


def is_traced() -> bool:
    """Tell whether anybody takes spans."""
    # It is asked several times in each call, and where there is no provider the library looks into the environment.
    provider = trace._TRACER_PROVIDER  # noqa: SLF001 - the one place where it stands
    if provider is None:
        return _BY_ENVIRONMENT and type(get_tracer_provider()) is not ProxyTracerProvider
    return type(provider) is not ProxyTracerProvider


def traceparent_now() -> str:
    """Return the W3C ``traceparent`` of the span in which this runs; "" where there is none."""
    context = get_current_span().get_span_context() if is_traced() else None
    return "" if context is None or not context.is_valid else _written(context)


def _written(context: SpanContext) -> str:
    trace_id, span_id, _, flags, *_ = context
    return f"00-{trace_id:032x}-{span_id:016x}-{flags:02x}"


class RequestSpan:
    """The span of one request of a client, which is the current span until `end`."""

    def __init__(self, request: Request) -> None:
        parent, method = _parent(request), printable(request.method, _NAME)
        self._span = _tracer().start_span(method, parent, SpanKind.SERVER, _asked(method, request))
        # What the caller says beside its span (baggage) goes on, too.
        self._token = attach(set_span_in_context(self._span, parent))

    def failed(self, error: Exception) -> None:
        """Record the error that answers the request."""
        is_status, code = _code(error)
        record_error(self._span, code, is_status=is_status)

    def end(self) -> None:
        """End the span."""
        detach(self._token)
        self._span.end()


def request_span(request: Request) -> RequestSpan | None:
    """Begin the span of a request; None where nobody takes spans."""
    return RequestSpan(request) if is_traced() else None


def _parent(request: Request) -> Context | None:
    """Return the caller's trace context: what its request says, else what its HTTP request says."""
    if _PARENT in request.meta and (found := _extracted(request.meta)) is not None:
        return found
    if request.http is None or first_header(request.http, _HEADER) is None:
        return None
    return _extracted(request.http.headers)


def _extracted(carrier: Mapping[str, Any]) -> Context | None:
    said = {key: value for key in _KEYS if isinstance(value := carrier.get(key), str) and len(value) <= _LONGEST}
    if _PARENT not in said:
        return None
    found = _W3C.extract(said)
    return found if get_current_span(found).get_span_context().is_valid else None


def _hand_on(span: Span, meta: dict[str, Any]) -> None:
    """Write the trace context of a span, and the baggage, where the server looks for them."""
    context = span.get_span_context()
    meta[_PARENT] = _written(context)
    if context.trace_state:
        meta["tracestate"] = context.trace_state.to_header()
    if get_all():
        _BAGGAGE.inject(meta)


def _asked(method: str, request: Request) -> dict[str, str]:
    shared = _asked_alike(method, request.protocol_version, is_http=request.http is not None)
    said = {**shared, "jsonrpc.request.id": printable(str(request.id), _NAME)}
    if method == "prompts/get":
        name = (request.params or {}).get("name")
        if isinstance(name, str):
            said["gen_ai.prompt.name"] = printable(name, _NAME)
    return said


@lru_cache(maxsize=_ALIKE)
def _asked_alike(method: str, version: str, *, is_http: bool) -> Mapping[str, str]:
    said = {
        "mcp.method.name": method,
        "mcp.protocol.version": version,
        "network.transport": "tcp" if is_http else "pipe",
    }
    return {**said, "network.protocol.name": "http"} if is_http else said


def _code(error: Exception) -> tuple[bool, str]:
    if isinstance(error, MCPError):
        return True, str(error.code)
    return False, str(getattr(error, "kind", type(error).__qualname__))


class ServerSpan:
    """The span of one request to a server, below that of a client's request. It is not the current span.

    Nothing below it begins another one.
    """

    def __init__(self, method: str, number: int, params: Mapping[str, Any]) -> None:
        name, self._is_call = params.get("name"), method == _CALL
        shown, target = printable(method, _NAME), printable(name, _NAME) if isinstance(name, str) else ""
        said = {"mcp.method.name": shown, "jsonrpc.request.id": str(number)}
        if self._is_call:
            said["gen_ai.operation.name"], said["gen_ai.tool.name"] = "execute_tool", target
        self._span = _tracer().start_span(f"{shown} {target}" if target else shown, None, SpanKind.CLIENT, said)

    def told_in(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters of the request with the trace context of this span, and the baggage."""
        meta = dict(params.get("_meta") or {})
        _hand_on(self._span, meta)
        return {**params, "_meta": meta}

    async def around(self, answering: Awaitable[Envelope]) -> Envelope:
        """Wait for the response, record how it ended, and end the span. Raises what the waiting raises."""
        try:
            found = await answering
            if self._is_call and content_of(found).get("isError") is True:
                record_error(self._span, "tool_error")
        except Exception as error:
            is_status, code = _code(error)
            record_error(self._span, code, is_status=is_status)
            raise
        else:
            return found
        finally:
            self._span.end()


def server_span(method: str, number: int, params: Mapping[str, Any]) -> ServerSpan | None:
    """Begin the span of a request to a server; None where nobody takes spans, or it belongs to no client's request."""
    if not (is_traced() and get_current_span().get_span_context().is_valid):
        return None
    return ServerSpan(method, number, params)
