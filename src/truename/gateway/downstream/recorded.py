"""The one place where each call of a tool becomes an account: begun when it arrives, told once when it is over."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from mcp_types import INTERNAL_ERROR, INVALID_PARAMS
from pydantic import ValidationError

from truename.gateway.call_records import CallRecord, current_record
from truename.gateway.protocol.callers import first_header, principal_of
from truename.gateway.protocol.operations import timed
from truename.gateway.protocol.sdk import MCPError
from truename.gateway.protocol.tracing import traceparent_now

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from truename.gateway.call_records import CallRecords
    from truename.gateway.mcp.requests import Request
    from truename.gateway.registry import Registry
    from truename.gateway.views.view import View
    from truename.identity import ToolId

__all__ = ["accounted", "note_meant", "note_tool"]

_CALL: Final = "tools/call"
_SESSION: Final = b"mcp-session-id"
_TRACE: Final = "traceparent"
_LONGEST: Final = 1_000
# Version 00 of the W3C's trace context, and what a later one begins with.
_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


async def accounted(
    request: Request, accounts: CallRecords, answer: Callable[[], Awaitable[Mapping[str, Any]]]
) -> Mapping[str, Any]:
    """Answer a request; of a call of a tool, tell those who listen. Raises what ``answer`` raises."""
    if request.method != _CALL or not accounts.is_wanted:
        return await (answer() if accounts.timer is None else timed(request.method, answer(), accounts.timer))
    account = _begun(request, accounts)

    async def digested() -> Mapping[str, Any]:
        await account.digest_arguments()
        return await answer()

    result: Mapping[str, Any] = await accounts.told(account, digested, _code)
    return result


async def note_meant(view: View, params: Mapping[str, Any]) -> None:
    """Note which call is meant, and where."""
    if (account := current_record()) is not None:
        spec = view.spec
        account.means(params)
        await account.digest_arguments()
        account.client = spec.client or ""
        account.view = spec.dialect if spec.only is None else f"{spec.dialect}/only/{spec.only}"


def note_tool(registry: Registry, view: View, id: ToolId) -> None:
    """Note which tool is meant."""
    if (account := current_record()) is not None:
        tool = view.table.catalog[id]
        account.found(tool, registry.vetting.digest_of(tool))


def _begun(request: Request, accounts: CallRecords) -> CallRecord:
    params = request.params or {}
    account = CallRecord(
        wire_name=str(params.get("name"))[:_LONGEST],
        call_id=f"request-{request.id}"[:_LONGEST],
        serial=accounts.next_serial(),
        principal=principal_of(request),
        session=_session(request),
        trace=_trace(request, params),
    )
    account.means(params)
    return account


def _session(request: Request) -> str:
    """Return by what a session is known again, and cannot be taken over."""
    number = first_header(request.http, _SESSION)
    return "" if number is None else hashlib.sha256(number).hexdigest()[:16]


def _trace(request: Request, params: Mapping[str, Any]) -> str:
    if found := traceparent_now():
        return found
    meta, http = params.get("_meta"), request.http
    said = meta.get(_TRACE) if isinstance(meta, dict) else None
    if said is None and http is not None:
        said = http.headers.get(_TRACE)
    return said if isinstance(said, str) and _TRACEPARENT.fullmatch(said) else ""


def _code(error: Exception) -> str:
    if isinstance(error, MCPError):
        return str(error.code)
    return str(INVALID_PARAMS if isinstance(error, ValidationError) else INTERNAL_ERROR)
