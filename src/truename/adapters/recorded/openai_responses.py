"""Histories of OpenAI Responses: the items of ``input`` and ``output``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from truename.adapters.openai_responses import output_of
from truename.adapters.recorded.mentions import Mention, Tell, untranslatable
from truename.adapters.recorded.parts import arguments_of, arguments_text, image_of_url, marked, url_of
from truename.adapters.turns import Image, Text, ToolCall, ToolResult, Turn, as_text
from truename.identity.keys import call_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from truename.adapters.reading import Place
    from truename.adapters.turns import Role, Shown

__all__ = ["mentions", "read", "write"]

_ROLES: Final[dict[str, Role]] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
_CALL: Final = frozenset({"type", "id", "call_id", "name", "namespace", "arguments", "parsed_arguments", "status"})
_OUTPUT: Final = frozenset({"type", "id", "call_id", "name", "namespace", "output", "status"})
_MESSAGE: Final = frozenset({"type", "id", "role", "content", "status", "phase"})
_SEARCHED: Final = "tool_search_output"
# Calls of other kinds of tools; their names are not ours, their ids still are ids of calls.
_OTHER_CALLS: Final = frozenset({"custom_tool_call", "shell_call", "local_shell_call", "apply_patch_call"})
_OTHER_RESULTS: Final = frozenset({f"{name}_output" for name in _OTHER_CALLS})


def mentions(messages: Sequence[Place]) -> Iterator[Mention]:
    """Iterate over calls, results, and the tools that a search brought."""
    for item in messages:
        kind = item.optional("type")
        if kind == "function_call":
            yield Mention(kind="call", place=item, id_key="call_id", named=item, spaced=True)
        elif kind == "function_call_output":
            named = item if item.get("name") is not None else None
            yield Mention(kind="result", place=item, id_key="call_id", named=named, spaced=True)
        elif kind in _OTHER_CALLS | _OTHER_RESULTS and call_id(item.value) is not None:
            yield Mention(kind="call" if kind in _OTHER_CALLS else "result", place=item, id_key="call_id")
        elif kind == _SEARCHED:
            yield from _searched(item)


def _searched(item: Place) -> Iterator[Mention]:
    for tool in item.each("tools"):
        if tool.optional("type") == "function":
            yield Mention(kind="reference", place=tool, named=tool)


def read(messages: Sequence[Place], tell: Tell) -> Iterator[Turn]:
    """Iterate over the turns. Raises `InvalidPayload` for what no other API has."""
    for item in messages:
        match item.optional("type"):
            case "function_call":
                yield Turn("assistant", (_call(item),), item.where)
            case "function_call_output":
                yield Turn("user", (_result(item),), item.where)
            case "reasoning":
                tell("dropped", item.where, "is of use to this API only and was left out")
            case "message" | None:
                yield _message(item)
            case kind:
                raise untranslatable(item, f"of type {kind!r}")


def _message(item: Place) -> Turn:
    item.only(_MESSAGE)
    role = item.text("role")
    if role not in _ROLES:
        item.wrong("role", "is no role that is known here")
    return Turn(_ROLES[role], tuple(_content(item, "content")), item.where)


def _content(item: Place, name: str) -> Iterator[Shown]:
    content = item.get(name)
    if isinstance(content, str):
        if content:
            yield Text(content)
        return
    for part in item.each(name):
        match part.text("type"):
            case "input_text" | "output_text" | "text":
                yield Text(part.optional("text") or "")
            case "refusal":
                yield Text(part.optional("refusal") or "")
            case "input_image" if part.get("image_url") is not None:
                yield image_of_url(part.text("image_url"))
            case kind:
                raise untranslatable(part, f"of type {kind!r}")


def _call(item: Place) -> ToolCall:
    item.only(_CALL | {"caller", "async", "created_by"})
    return ToolCall(
        call_id=item.text("call_id"),
        name=item.text("name"),
        namespace=item.optional("namespace"),
        arguments=arguments_of(item.optional("arguments") or ""),
    )


def _result(item: Place) -> ToolResult:
    item.only(_OUTPUT | {"caller", "created_by"})
    is_error, content = marked(tuple(_content(item, "output")))
    return ToolResult(call_id=item.text("call_id"), content=content, is_error=is_error)


def write(turn: Turn) -> Iterator[dict[str, Any]]:
    """Iterate over the items of a turn."""
    for part in turn.parts:
        if isinstance(part, ToolResult):
            output = output_of(part.content, is_error=part.is_error)
            yield {"type": "function_call_output", "call_id": part.call_id, "output": output}
    said = [part for part in turn.parts if not isinstance(part, ToolCall | ToolResult)]
    if said:
        yield {"type": "message", "role": turn.role, "content": _said(turn.role, said)}
    for part in turn.parts:
        if isinstance(part, ToolCall):
            yield _made(part)


def _said(role: Role, said: Sequence[Shown]) -> str | list[dict[str, Any]]:
    if len(said) == 1 and not isinstance(said[0], Image):
        return as_text(said[0])
    if role == "assistant":
        # What a model said can't be written as parts without the ids that the API gave them.
        return "\n\n".join(as_text(part) for part in said)
    return [_part(part) for part in said]


def _part(part: Shown) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"type": "input_image", "image_url": url_of(part), "detail": "auto"}
    return {"type": "input_text", "text": as_text(part)}


def _made(call: ToolCall) -> dict[str, Any]:
    space = {} if call.namespace is None else {"namespace": call.namespace}
    text = arguments_text(call.arguments)
    return {"type": "function_call", "call_id": call.call_id, "name": call.name, **space, "arguments": text}
