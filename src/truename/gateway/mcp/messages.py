"""JSON-RPC 2.0 messages: read strictly, built, and written as JSON."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, Literal, TypeGuard

import msgspec

from truename.gateway.protocol.errors import MCPError
from truename.gateway.protocol.json_text import (
    as_json,
    is_utf8,
    may_have_long_number,
    members,
    one_line,
    read_message,
    whole,
)
from truename.gateway.protocol.specification import INTERNAL_ERROR, INVALID_REQUEST, PARSE_ERROR
from truename.gateway.upstream_errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from truename.gateway.mcp.requests import RequestId

__all__ = [
    "IN_USE",
    "encode",
    "error",
    "failed",
    "is_answer",
    "is_error",
    "is_id",
    "kind_of",
    "notification",
    "parse",
    "response",
]

log: Final = logging.getLogger("truename.gateway")

Kind = Literal["request", "notification", "response"]
Message = dict[str, Any]


class _Envelope(msgspec.Struct):
    """What stands around the parameters of a request; a response has other members."""

    id: int | str
    method: str
    params: msgspec.Raw
    jsonrpc: str = ""
    result: Any = msgspec.UNSET
    error: Any = msgspec.UNSET


_ENVELOPE: Final = msgspec.json.Decoder(_Envelope)
_CALL: Final = b'"tools/call"'
_NO_ARGUMENTS: Final = msgspec.Raw()
_OBJECT: Final = ord("{")
IN_USE: Final = "A request with this id is still running; nothing was run. Give each request its own id."
"""What is answered to a request whose id cannot tell its answer apart from another's."""
_NOT_A_MESSAGE: Final = "The body is not a single JSON-RPC message; nothing was run."
_UNWRITABLE: Final = "The response cannot be serialised as JSON."


def parse(text: bytes) -> tuple[Kind, Message]:
    """Return a message and its kind. Raises `MCPError`: PARSE_ERROR, INVALID_REQUEST.

    The arguments of a call of a tool stay the bytes that came, unless something of them has to be known.
    """
    if (call := _call_in(text)) is not None:
        return "request", call
    try:
        content = read_message(text)
    except ValueError as problem:
        raise MCPError(PARSE_ERROR, f"Parse error: {problem}") from problem
    kind = kind_of(content)
    if kind is None:
        raise MCPError(INVALID_REQUEST, _NOT_A_MESSAGE)
    return kind, content


def _call_in(text: bytes) -> Message | None:
    """Return a request of tools/call whose arguments are bytes; None for any other message, and for an odd one."""
    if _CALL not in text or not is_utf8(text) or may_have_long_number(text):
        return None
    try:
        envelope = _ENVELOPE.decode(text)
        if envelope.method != "tools/call" or envelope.jsonrpc != "2.0":
            return None
        if envelope.result is not msgspec.UNSET or envelope.error is not msgspec.UNSET:
            return None
        if (line := one_line(text)) is not text:
            envelope = _ENVELOPE.decode(line)
        params = members(envelope.params)
        arguments = params.pop("arguments", _NO_ARGUMENTS)
        found = whole(params)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if arguments is not _NO_ARGUMENTS:
        if memoryview(arguments)[0] != _OBJECT:
            return None
        found["arguments"] = arguments
    return {"jsonrpc": "2.0", "id": envelope.id, "method": "tools/call", "params": found}


def kind_of(content: object) -> Kind | None:
    """Return what a JSON value is as a message (JSON-RPC 2.0, sections 4 and 5); None for what is none.

    >>> kind_of({"jsonrpc": "2.0", "id": 1, "method": "ping"}), kind_of({"jsonrpc": "2.0", "id": None, "method": "x"})
    ('request', None)
    """
    if not isinstance(content, dict) or content.get("jsonrpc") != "2.0":
        return None
    if "method" in content:
        # What is a response too could be read in two ways.
        is_one = not content.keys() & {"result", "error"}
        is_whole = is_one and isinstance(content["method"], str) and isinstance(content.get("params"), dict | None)
        is_request = "id" in content
        if not is_whole or (is_request and not is_id(content["id"])):
            return None
        return "request" if is_request else "notification"
    if "id" not in content:
        return None
    # Only an error can be about a request whose id could not be read.
    is_result = is_id(content["id"]) and isinstance(content.get("result"), dict)
    is_failure = (content["id"] is None or is_id(content["id"])) and is_error(content.get("error"))
    return "response" if is_result or is_failure else None


def is_id(value: object) -> TypeGuard[RequestId]:
    """Return whether a JSON value can be the id of a request; true is none, though Python takes it for 1."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def is_error(value: object) -> bool:
    """Return whether a JSON value is the error of a response (JSON-RPC 2.0, section 5.1)."""
    return isinstance(value, dict) and isinstance(value.get("code"), int) and isinstance(value.get("message"), str)


def response(id: RequestId, result: Mapping[str, Any]) -> Message:
    """Build a successful response."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error(id: RequestId | None, code: int, text: str, data: object = None) -> Message:
    """Build an error response; ``id`` is None where the request's own could not be read."""
    content: dict[str, Any] = {"code": code, "message": text}
    return {"jsonrpc": "2.0", "id": id, "error": content if data is None else {**content, "data": data}}


def notification(method: str, params: Mapping[str, Any] | None = None) -> Message:
    """Build a notification."""
    return {"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})}


def is_answer(message: Mapping[str, Any]) -> bool:
    """Return whether a message is a response, with a result or an error."""
    return "method" not in message


def encode(message: Message) -> bytes:
    r"""Write a message as JSON, without line breaks; what cannot be written becomes an error for its request alone.

    >>> encode(response(7, {"text": "\ud83d"})).decode()
    '{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"The response cannot be serialised as JSON."}}'
    """
    try:
        return as_json(message)
    except (TypeError, ValueError, RecursionError) as problem:
        return _unwritable(message, problem)


def _unwritable(message: Message, problem: Exception) -> bytes:
    log.warning("a message cannot be serialised: %s", printable(str(problem), 200))
    try:
        return as_json(error(message["id"] if is_answer(message) else None, INTERNAL_ERROR, _UNWRITABLE))
    except (TypeError, ValueError):
        return as_json(error(None, INTERNAL_ERROR, _UNWRITABLE))


def failed(id: RequestId, problem: Exception) -> Message:
    """Build the response to a request that raised this; what is not meant for the client (`MCPError` is) is logged."""
    if isinstance(problem, MCPError):
        return error(id, problem.code, problem.message, problem.data)
    log.error("a request failed", exc_info=problem)
    return error(id, INTERNAL_ERROR, "Internal server error")
