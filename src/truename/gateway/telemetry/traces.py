"""Traces: what is known of a call stands in its span, and spans go where the environment says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry.trace import get_current_span

from truename.gateway.faults import printable
from truename.gateway.protocol.tracing import note_fault

if TYPE_CHECKING:
    from truename.policy.call import CallEvent

__all__ = ["describe"]

_NAME: Final = 128
_KEY: Final = 200


def describe(event: CallEvent) -> None:
    """Write into the span of a call which tool it was, by whom, and what became of it.

    The name that was used, the identity, the origin and the call's id stand there separately (item 8 of the identity
    specification); the name leads to nothing.
    """
    span = get_current_span()
    if not span.is_recording():
        return
    name = printable(event.wire_name, _NAME)
    said: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": printable(event.call_id, _NAME),
        "truename.call.serial": event.serial,
        "truename.call.outcome": event.outcome,
        "truename.principal": printable(event.principal.key, _KEY),
    }
    more = {
        "truename.view": event.view,
        "truename.decision": event.decision,
        "truename.rule": event.rule,
        "truename.grant": event.grant,
        "truename.definition.digest": event.digest,
        "truename.answer.findings": ", ".join(event.findings),
        "mcp.session.id": event.session,
    }
    said |= {key: printable(value, _KEY) for key, value in more.items() if value}
    if event.id is not None:
        said["truename.tool.id"] = str(event.id)
        # Only a tool's own name is one of a bounded number.
        span.update_name(f"tools/call {name}")
    if event.origin is not None:
        said["truename.tool.server"] = printable(event.origin.server, _KEY)
        said["truename.tool.upstream_name"] = printable(event.origin.name, _NAME)
    span.set_attributes(said)
    if event.outcome == "tool_error":
        note_fault(span, "tool_error")
    elif event.code:
        note_fault(span, event.code, is_status=event.outcome == "protocol_error")
