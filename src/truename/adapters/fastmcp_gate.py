"""The gate of `truename.adapters.fastmcp`: what happens with a call, and how the client's user is asked about it."""

from __future__ import annotations

import hmac
import json
import secrets
from typing import TYPE_CHECKING, Any, Final, get_args

from fastmcp.server.middleware import Middleware
from fastmcp.tools.base import InputRequiredToolResult, ToolResult
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from truename.adapters.toolbox import told
from truename.errors import ApprovalRequired, NotAllowed, TruenameError, excerpt
from truename.policy import Scope

if TYPE_CHECKING:
    from fastmcp.server.context import Context
    from fastmcp.server.middleware import CallNext, MiddlewareContext
    from mcp.types import CallToolRequestParams, InputRequests

    from truename.adapters.fastmcp import Names
    from truename.adapters.toolbox import Toolbox
    from truename.policy import Call, Decision

__all__ = ["Gate"]

_ASKED: Final = "approval"
_MODERN: Final = "2026-07-28"


class _Seal:
    """Signs what goes along with a question: FastMCP seals it too, but for every tool alike."""

    def __init__(self, secret: bytes | None) -> None:
        self._secret = secret or secrets.token_bytes(32)

    def write(self, call: Call) -> str:
        return json.dumps([call.call_id, call.fingerprint, self._mac(call.call_id, call.fingerprint)])

    def read(self, state: str | None) -> tuple[str, str]:
        """Return call id and fingerprint; empty for what was not written here."""
        try:
            call_id, fingerprint, mac = map(_text, json.loads(state or "[]"))
        except (ValueError, TypeError):
            return "", ""
        return (call_id, fingerprint) if hmac.compare_digest(mac, self._mac(call_id, fingerprint)) else ("", "")

    def _mac(self, *parts: str) -> str:
        return hmac.new(self._secret, json.dumps(parts).encode(), "sha256").hexdigest()


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isascii():
        raise TypeError
    return value


class Gate(Middleware):
    """Takes the calls: each is run if the policy allows it or the client's user does, and once at most.

    The call id is the request's; where a user is asked in between, that of the request that asked.
    """

    def __init__(self, names: Names, secret: bytes | None = None) -> None:
        self._names, self._seal = names, _Seal(secret)

    async def on_call_tool(
        self, context: MiddlewareContext[CallToolRequestParams], call_next: CallNext[CallToolRequestParams, ToolResult]
    ) -> ToolResult:
        """Run the call, ask for it, or say why not."""
        ctx = context.fastmcp_context
        assert ctx is not None  # noqa: S101 - optional in the type only: FastMCP sets it before a request comes to any middleware
        box = await self._names.box()
        call_id, asked_for = self._seal.read(ctx.request_state)
        message = context.message
        try:
            call = box.call(message.name, call_id or _call_id(ctx), message.arguments or {})
            decision = box.decide(call)
            if decision.outcome == "ask" and (question := await self._asked(ctx, box, call, decision, asked_for)):
                return question
            with box.running(call), self._names.deciding(box):
                params = message.model_copy(update={"name": box.names[call.id], "arguments": dict(call.arguments)})
                return await call_next(context.copy(message=params))
        except TruenameError as error:
            return ToolResult(content=told(error), is_error=True)

    async def _asked(
        self, ctx: Context, box: Toolbox, call: Call, decision: Decision, asked_for: str
    ) -> ToolResult | None:
        """Write down what the user decided; return the question where it has to go back to the client first."""
        form = _form(call, decision)
        if not _is_modern(ctx):
            answer: object = await _elicited(ctx, form)
        elif asked_for == call.fingerprint:
            answer = (ctx.input_responses or {}).get(_ASKED)
        else:
            asks: InputRequests = {_ASKED: ElicitRequest(params=form)}
            return InputRequiredToolResult(
                InputRequiredResult(input_requests=asks, request_state=self._seal.write(call))
            )
        self._decided(box, call, decision, answer)
        return None

    @staticmethod
    def _decided(box: Toolbox, call: Call, decision: Decision, answer: object) -> None:
        if not isinstance(answer, ElicitResult) or answer.action == "cancel":
            raise ApprovalRequired(id=call.id, approval_key=str(call.id), call=call.call_id, decision=decision.reason)
        # What a client says; the approvals refuse what is no scope.
        scope: Any = (answer.content or {}).get("scope", "call")
        if answer.action == "decline":
            box.reject(call, message="the user declined")
            raise NotAllowed(id=call.id, rule="rejected", decision="the user declined")
        box.approve(call, scope)


def _is_modern(ctx: Context) -> bool:
    return ctx.request_context is not None and ctx.request_context.protocol_version >= _MODERN


def _call_id(ctx: Context) -> str:
    return f"{ctx.session_id}/{ctx.request_id}"


def _form(call: Call, decision: Decision) -> ElicitRequestFormParams:
    why = f" ({decision.reason})" if decision.reason else ""
    arguments = excerpt(json.dumps(call.arguments, ensure_ascii=False), 500)[1:-1]
    return ElicitRequestFormParams(
        message=f"May {call.id} of server {excerpt(call.origin.server)} be run{why} with {arguments}?",
        requested_schema={
            "type": "object",
            "properties": {
                "scope": {"type": "string", "title": "For which calls", "enum": [*get_args(Scope)], "default": "call"}
            },
        },
    )


async def _elicited(ctx: Context, form: ElicitRequestFormParams) -> ElicitResult | None:
    try:
        return await ctx.session.elicit(
            message=form.message, requested_schema=form.requested_schema, related_request_id=ctx.request_id
        )
    except Exception:  # noqa: BLE001 - whatever goes wrong in asking, nobody has allowed the call: it stays asked for
        return None
