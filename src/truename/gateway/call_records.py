"""The account of one call: filled in where something becomes known, told once to whoever listens when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from truename.errors import ApprovalRequired, InvalidCall, NotAllowed, PolicyError, ResolutionError, TruenameError
from truename.gateway.faults import BrokenOff
from truename.gateway.protocol.digesting import off_loop
from truename.policy.arguments import is_large, json_digest
from truename.policy.call import CallEvent, OnCall, Outcome
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from truename.catalog import Tool
    from truename.gateway.protocol.operations import OnOperation
    from truename.policy import Decision
    from truename.policy.principal import Principal

__all__ = ["CallRecord", "CallRecords", "Gate", "current_record", "ignore_call", "noted"]

log: Final = logging.getLogger("truename.gateway")

Fault = TypeVar("Fault", bound=TruenameError)
# The first that fits; whatever else went wrong, the server could not be called.
_OUTCOMES: Final[tuple[tuple[type[BaseException], Outcome], ...]] = (
    (BrokenOff, "cancelled"),
    (PolicyError, "refused"),
    (InvalidCall, "refused"),
    (ResolutionError, "unknown"),
)
_INPUT_REQUIRED: Final = "input_required"


def _digest(arguments: Mapping[str, Any]) -> str:
    try:
        return json_digest(arguments)
    except (ValueError, TypeError, RecursionError):
        return ""


def ignore_call(_: CallEvent) -> None:
    """Do nothing with an account: nobody asked to be told."""


@dataclass(kw_only=True, eq=False)
class CallRecord:
    """What is known of a call that runs. The fields are those of `CallEvent`."""

    wire_name: str
    call_id: str
    serial: int
    principal: Principal = LOCAL
    session: str = ""
    trace: str = ""
    view: str = ""
    client: str = ""
    agent: str = ""
    arguments: Mapping[str, Any] | None = None
    arguments_digest: str = ""
    tool: Tool | None = None
    digest: str = ""
    decision: str = ""
    rule: str = ""
    grant: str = ""
    outcome: Outcome = "ok"
    code: str = ""
    findings: tuple[str, ...] = ()
    began: float = field(default_factory=time.time)
    _start: float = field(default_factory=time.perf_counter)

    def means(self, params: Mapping[str, Any]) -> None:
        """Note the call that is meant: another one than was sent, where that was `call_tool`."""
        arguments = params.get("arguments")
        self.wire_name = str(params.get("name"))
        if arguments is not self.arguments:
            self.arguments_digest = ""
        self.arguments = arguments if isinstance(arguments, Mapping) else None

    async def digest_arguments(self) -> None:
        """Compute the digest of large arguments beside the loop; who writes down small ones does it in no time."""
        if self.arguments is not None and not self.arguments_digest and is_large(self.arguments):
            self.arguments_digest = await off_loop(_digest, self.arguments)

    def found(self, tool: Tool, digest: str) -> None:
        """Note which tool the name means."""
        self.tool, self.digest = tool, digest

    def decided(self, decision: Decision) -> None:
        """Note what policy said."""
        self.decision, self.rule = decision.outcome, decision.rule
        self.grant = "" if decision.grant is None else decision.grant.key

    def failed(self, error: TruenameError) -> None:
        """Note what went wrong."""
        self.code = error.code
        self.outcome = next((outcome for kind, outcome in _OUTCOMES if isinstance(error, kind)), "failed")
        if isinstance(error, NotAllowed):
            self.decision, self.rule = "deny", error.rule
        elif isinstance(error, ApprovalRequired):
            self.decision = "ask"

    def suspected(self, rules: tuple[str, ...]) -> None:
        """Note which rules the server's answer breaks."""
        self.findings = rules

    def answered(self, result: object) -> None:
        """Note what is answered, unless something went wrong before and that is the answer."""
        if self.code or not isinstance(result, Mapping):
            return
        if result.get("resultType") == _INPUT_REQUIRED:
            self.outcome = "input_required"
        elif result.get("isError") is True:
            self.outcome = "tool_error"

    def event(self, outcome: Outcome | None = None) -> CallEvent:
        """Return the account as it stands."""
        tool = self.tool
        return CallEvent(
            wire_name=self.wire_name,
            outcome=outcome or self.outcome,
            began=self.began,
            seconds=time.perf_counter() - self._start,
            id=None if tool is None else tool.id,
            origin=None if tool is None else tool.origin,
            digest=self.digest,
            principal=self.principal,
            agent=self.agent,
            client=self.client,
            session=self.session,
            view=self.view,
            call_id=self.call_id,
            serial=self.serial,
            arguments_digest=self.arguments_digest,
            code=self.code,
            decision=self.decision,
            rule=self.rule,
            grant=self.grant,
            trace=self.trace,
            arguments=self.arguments,
            findings=self.findings,
        )


Gate = Callable[[CallRecord], Awaitable[None]]
"""Is asked before a call is sent. What it raises (`TruenameError`) is answered, and nothing is sent."""

_NOW: Final[ContextVar[CallRecord | None]] = ContextVar("truename.record", default=None)


def current_record() -> CallRecord | None:
    """Return the account of the call that runs here; None where nobody listens."""
    return _NOW.get()


def noted(error: Fault) -> Fault:
    """Note in the account of the call, if there is one, what it is answered with; give the error back."""
    if (account := _NOW.get()) is not None:
        account.failed(error)
    return error


class CallRecords:
    """Who is told of calls when they are over, and who is asked before one is sent.

    ``timer`` is told of all other requests.
    """

    def __init__(self) -> None:
        self._listeners: tuple[OnCall, ...] = ()
        self._gates: tuple[Gate, ...] = ()
        self.timer: OnOperation | None = None
        self._count = 0

    @property
    def is_wanted(self) -> bool:
        """Whether anybody wants to know."""
        return bool(self._listeners or self._gates)

    def listen(self, listener: OnCall) -> None:
        """Have this told of each call when it is over."""
        if listener is not ignore_call:
            self._listeners = (*self._listeners, listener)

    def guard(self, gate: Gate) -> None:
        """Have this asked before each call."""
        self._gates = (*self._gates, gate)

    def next_serial(self) -> int:
        """Return the number of the next call, from 1."""
        self._count += 1
        return self._count

    async def admit(self) -> None:
        """Ask whether the call that runs here may be sent. Raises what a gate raises."""
        if not self._gates or (account := _NOW.get()) is None:
            return
        for gate in self._gates:
            await gate(account)

    async def told(self, account: CallRecord, answer: Callable[[], Awaitable[Any]], fault: Callable[..., str]) -> Any:
        """Answer a call, and tell of it once, however it ends. ``fault`` gives the code of what is raised."""
        token = _NOW.set(account)
        try:
            result = await answer()
            account.answered(result)
        except Exception as error:
            account.outcome, account.code = "protocol_error", fault(error)
            raise
        except BaseException:
            # Nobody waits for the answer any more.
            account.outcome, account.code = "cancelled", "cancelled"
            raise
        else:
            return result
        finally:
            _NOW.reset(token)
            self._tell(account.event())

    def _tell(self, event: CallEvent) -> None:
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # who only listens must not keep a call from being answered
                log.exception("a listener failed on the call %s", event.serial)
