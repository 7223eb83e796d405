"""Attributes and status of the spans of calls."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import StatusCode, get_current_span

from truename.errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from opentelemetry.trace import Span

    from truename.policy.call import CallEvent

__all__ = ["describe_call", "record_error"]

_NAME: Final = 128
_KEY: Final = 200
_ALIKE: Final = 4_096
_OPTIONAL: Final = (
    *("truename.view", "truename.decision", "truename.rule", "truename.grant", "truename.definition.digest"),
    *("truename.answer.findings", "mcp.session.id"),
)


def record_error(span: Span, code: str, *, is_status: bool = False) -> None:
    """Set the error of a span; ``is_status`` where the code is the one of the JSON-RPC response."""
    span.set_attribute("error.type", code)
    if is_status:
        span.set_attribute("rpc.response.status_code", code)
    span.set_status(StatusCode.ERROR)


def describe_call(event: CallEvent) -> None:
    """Set the attributes of the current span from a call: its tool, its principal, its outcome.

    The name that was used, the identity, the origin and the call's id are separate attributes (item 8 of the identity
    specification); nothing is looked up by the name.
    """
    span = get_current_span()
    if not span.is_recording():
        return
    name = printable(event.wire_name, _NAME)
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": printable(event.call_id, _NAME),
        "truename.call.serial": event.serial,
        "truename.call.outcome": event.outcome,
        "truename.principal": printable(event.principal.key, _KEY),
    }
    findings = ", ".join(event.findings)
    attributes |= _said((event.view, event.decision, event.rule, event.grant, event.digest, findings, event.session))
    if event.id is not None:
        attributes["truename.tool.id"] = str(event.id)
        # The number of span names must be bounded, and only tools' own names are.
        span.update_name(f"tools/call {name}")
    if event.origin is not None:
        attributes["truename.tool.server"] = printable(event.origin.server, _KEY)
        attributes["truename.tool.upstream_name"] = printable(event.origin.name, _NAME)
    span.set_attributes(attributes)
    if event.outcome == "tool_error":
        record_error(span, "tool_error")
    elif event.code:
        record_error(span, event.code, is_status=event.outcome == "protocol_error")


@lru_cache(maxsize=_ALIKE)
def _said(values: tuple[str, ...]) -> Mapping[str, str]:
    """Return the attributes that only some calls have; in those of one session they are mostly the same."""
    return {key: printable(value, _KEY) for key, value in zip(_OPTIONAL, values, strict=True) if value}
