"""What became of one call: the one account that audit, metrics and traces are all made from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from truename.catalog import Origin
    from truename.identity import ToolId
    from truename.policy.principal import Principal

__all__ = ["CallEvent", "OnCall", "Outcome"]

Outcome = Literal[
    "ok", "tool_error", "protocol_error", "refused", "unknown", "failed", "cancelled", "input_required", "begun"
]


@dataclass(frozen=True, kw_only=True)
class CallEvent:
    """One call from its arrival to its answer.

    ``id`` is None where the name led to no tool; then ``wire_name`` is all that is known, and it is the caller's text.
    ``outcome``: the tool answered (``ok``, ``tool_error``: with ``isError``), the request was answered with a JSON-RPC
    error, by the server or because it is none (``protocol_error``), policy said no (``refused``), no tool has that
    name (``unknown``), the server could not be called or its answer not had (``failed``), the client gave up or the
    gateway ended (``cancelled``), somebody has to be asked first (``input_required``). One that is about to be sent
    is ``begun``. ``code`` is the typed error's code or the JSON-RPC number, "" if all went well.

    ``call_id`` is the client's number for it, which every session begins anew; ``serial`` counts the calls of one run
    of a gateway.

    ``rule`` is the rule that decided and ``grant`` the key of a person's decision, "" where there was none.
    ``findings`` are the rules that the server's answer breaks, where answers are looked at.
    ``began`` is in seconds since 1970, ``seconds`` how long it took, ``trace`` the W3C ``traceparent`` it ran under.
    ``arguments`` are the caller's, to be written down by nobody who was not told to.
    """

    wire_name: str
    outcome: Outcome
    began: float
    seconds: float
    id: ToolId | None = None
    digest: str = ""
    origin: Origin | None = None
    principal: Principal = LOCAL
    agent: str = ""
    client: str = ""
    session: str = ""
    view: str = ""
    call_id: str = ""
    serial: int = 0
    arguments_digest: str = ""
    code: str = ""
    decision: str = ""
    rule: str = ""
    grant: str = ""
    trace: str = ""
    arguments: Mapping[str, Any] | None = None
    findings: tuple[str, ...] = ()


OnCall = Callable[[CallEvent], None]
"""Is told of each call when it is over. It must not wait; what it raises is logged and stops nothing."""
