"""The record of one call: begun when the call arrives, filled in along its path, given to the listeners at its end."""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
import msgspec

from truename.errors import (
    ApprovalRequired,
    InvalidCall,
    NotAllowed,
    PolicyError,
    QuotaExceeded,
    ResolutionError,
    TruenameError,
)
from truename.gateway.protocol.callers import first_header, principal_of
from truename.gateway.protocol.digesting import off_loop
from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import read_strictly
from truename.gateway.protocol.specification import INTERNAL_ERROR
from truename.gateway.protocol.tracing import traceparent_now
from truename.gateway.upstream_errors import BrokenOff
from truename.policy.arguments import is_large, json_digest
from truename.policy.call import CallEvent, OnCall, Outcome
from truename.policy.principal import LOCAL

if TYPE_CHECKING:
    from contextvars import Token

    from truename.catalog import Tool
    from truename.gateway.mcp.requests import Request
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
    (QuotaExceeded, "refused"),
    (ResolutionError, "unknown"),
)
_INPUT_REQUIRED: Final = "input_required"
_SESSION: Final = b"mcp-session-id"
_KNOWN: Final = "truename.session-digest"
_TRACE: Final = "traceparent"
_LONGEST: Final = 1_000
# Version 00 of the W3C's trace context, and what a later one begins with.
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


def _digest(arguments: Mapping[str, Any]) -> str:
    try:
        return json_digest(arguments)
    except (ValueError, TypeError, RecursionError):
        return ""


def ignore_call(_: CallEvent) -> None:
    """Do nothing with a record: nobody listens."""


class CallRecord(msgspec.Struct, kw_only=True, eq=False):
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
    _unread: msgspec.Raw | None = None
    began: float = msgspec.field(default_factory=time.time)
    _start: float = msgspec.field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, request: Request, serial: int) -> CallRecord:
        """Begin the record of a request."""
        params = request.params or {}
        record = cls(
            wire_name="",
            call_id=f"request-{request.id}"[:_LONGEST],
            serial=serial,
            principal=principal_of(request),
            session=_session(request),
            trace=_trace(request, params),
        )
        record.means(params)
        return record

    def means(self, params: Mapping[str, Any]) -> None:
        """Note the call that is meant: another one than was sent, where that was `call_tool`."""
        arguments = params.get("arguments")
        self.wire_name = str(params.get("name"))
        if arguments is not self.arguments:
            self.arguments_digest = ""
        self.arguments = arguments if isinstance(arguments, dict) else None
        self._unread = arguments if isinstance(arguments, msgspec.Raw) else None

    def read_arguments(self) -> None:
        """Read out the arguments of a call that was refused before anybody read them."""
        if self._unread is not None:
            with suppress(ValueError, RecursionError):
                self.arguments = read_strictly(self._unread)

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

    def answered(self, result: Mapping[str, Any]) -> None:
        """Note the result, unless something went wrong before and the result says so."""
        if self.code:
            return
        if result.get("resultType") == _INPUT_REQUIRED:
            self.outcome = "input_required"
        elif result.get("isError") is True:
            self.outcome = "tool_error"

    def raised(self, error: BaseException) -> None:
        """Note an error that ends the call in place of a result: a JSON-RPC error, or that nobody waits any more."""
        if isinstance(error, anyio.get_cancelled_exc_class()) or not isinstance(error, Exception):
            self.outcome, self.code = "cancelled", "cancelled"
        else:
            self.outcome, self.code = "protocol_error", _code(error)

    def event(self, outcome: Outcome | None = None) -> CallEvent:
        """Return the record as it stands."""
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


def _session(request: Request) -> str:
    """Return by what a session is known again, and cannot be taken over."""
    number = first_header(request.http, _SESSION)
    if number is None:
        return ""
    # The connection of a session is kept, and all its requests say the same number.
    state = request.connection.state
    known = state.get(_KNOWN)
    if known is None or known[0] != number:
        known = state[_KNOWN] = number, hashlib.sha256(number).hexdigest()[:16]
    return str(known[1])


def _trace(request: Request, params: Mapping[str, Any]) -> str:
    if found := traceparent_now():
        return found
    meta, http = params.get("_meta"), request.http
    said = meta.get(_TRACE) if isinstance(meta, dict) else None
    if said is None and http is not None:
        said = http.headers.get(_TRACE)
    return said if isinstance(said, str) and _TRACEPARENT.fullmatch(said) else ""


def _code(error: Exception) -> str:
    return str(error.code if isinstance(error, MCPError) else INTERNAL_ERROR)


Gate = Callable[[CallRecord], Awaitable[None]]
"""Is asked before a call is sent. What it raises (`TruenameError`) is answered, and nothing is sent."""

_NOW: Final[ContextVar[CallRecord | None]] = ContextVar("truename.call-record", default=None)


def current_record() -> CallRecord | None:
    """Return the record of the call that runs here; None where nobody listens."""
    return _NOW.get()


def noted(error: Fault) -> Fault:
    """Note in the record of the call, if there is one, the error that answers it; give the error back."""
    if (record := _NOW.get()) is not None:
        record.failed(error)
    return error


class CallRecords:
    """The listeners that get the record of each call at its end, and the gates that are asked before one is sent.

    ``timer`` gets the duration of each other request. ``reads_arguments`` is whether a listener wants the arguments.
    """

    def __init__(self) -> None:
        self._listeners: tuple[OnCall, ...] = ()
        self._gates: tuple[Gate, ...] = ()
        self.timer: OnOperation | None = None
        self.reads_arguments = False
        self._count = 0

    def listen(self, listener: OnCall, *, arguments: bool = False) -> None:
        """Have this get the record of each call; with ``arguments``, they are read out for it."""
        if listener is not ignore_call:
            self._listeners = (*self._listeners, listener)
            self.reads_arguments |= arguments

    def guard(self, gate: Gate) -> None:
        """Have this asked before each call."""
        self._gates = (*self._gates, gate)

    def begin(self, request: Request) -> tuple[CallRecord, Token[CallRecord | None]] | None:
        """Begin the record of a call, as the current one; None where nobody listens."""
        if not (self._listeners or self._gates):
            return None
        self._count += 1
        record = CallRecord.of(request, self._count)
        return record, _NOW.set(record)

    async def admit(self) -> None:
        """Ask whether the call that runs here may be sent. Raises what a gate raises."""
        if not self._gates or (record := _NOW.get()) is None:
            return
        for gate in self._gates:
            await gate(record)

    def end(self, record: CallRecord, token: Token[CallRecord | None]) -> None:
        """Give the record of a call that is over to the listeners."""
        _NOW.reset(token)
        if self.reads_arguments:
            record.read_arguments()
        event = record.event()
        for listener in self._listeners:
            try:
                listener(event)
            except Exception:  # who only listens must not keep a call from being answered
                log.exception("a listener failed on the call %s", event.serial)
