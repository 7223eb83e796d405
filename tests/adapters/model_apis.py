"""What the tests of the model APIs share: awkward tools, the real client libraries against a model on loopback, and
the providers' rules that no library checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anthropic as anthropic_library
import openai as openai_library
from anthropic.types import MessageParam, ToolChoiceParam, ToolParam
from google import genai
from google.genai import types as genai_types
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolChoiceOptionParam, ChatCompletionToolParam
from openai.types.responses import ResponseInputItemParam
from openai.types.responses import ToolParam as ResponsesToolParam
from pydantic import TypeAdapter

from lab.model import ModelServer, Script, Step
from lab.model.approaches import Direct
from lab.model.turn import marked
from tests.adapters.bedrock_endpoint import BedrockEndpoint, accepts_bedrock
from truename import Catalog, NameTable, project
from truename.adapters import anthropic, bedrock, gemini, openai_chat, openai_responses
from truename.adapters.turns import ConversationTurn, ToolCall

if TYPE_CHECKING:
    from types import ModuleType

LONG: Final = "retrieve_the_complete_history_of_every_customer_order_since_the_beginning_including_cancelled_ones"
NAMES: Final = (
    "search",
    "fs.list",
    "查询 天气",
    "get weather",
    LONG,
    "create-issue",
    "a/b",
    "a_b",
    "delete_everything",
)
DENIED: Final = "delete_everything"


def awkward_catalog(*servers: str) -> Catalog:
    """Return two servers with the same awkward tools; each description carries the mark of the scripted model."""
    keys = servers or ("Docs Server", "文档")
    numbers = iter(range(1000))
    return Catalog.from_mcp({key: [definition(name, next(numbers)) for name in NAMES] for key in keys})


def definition(name: str, number: int) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    return {"name": name, "description": f"{marked(number)} does {name}", "inputSchema": schema}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """One API: our adapter, the table's dialect, and how the real library asks the model."""

    name: str
    adapter: ModuleType
    ask: Callable[[str, Any, Any, bool], Any]
    accepts: Callable[[Sequence[Any]], None]

    def names(self, catalog: Catalog, **more: Any) -> NameTable:
        return project(catalog, self.adapter.DIALECT, **more)

    def asked(self, calls: Iterable[Any]) -> list[dict[str, Any]]:
        """Return the message in which a model makes these calls."""
        parts = [
            ToolCall(
                call_id=call.call_id,
                name=call.wire_name,
                namespace=call.key.call_namespace,
                arguments=dict(call.arguments),
            )
            for call in calls
        ]
        return list(self.adapter.write_turn(ConversationTurn("assistant", tuple(parts))))

    def answered(self, results: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the messages in which results are sent."""
        if self.name in ("openai_chat", "openai_responses"):
            return results
        key = "parts" if self.name == "gemini" else "content"
        return [{"role": "user", key: results}]

    def said(self, text: str) -> list[dict[str, Any]]:
        if self.name == "gemini":
            return [{"role": "user", "parts": [{"text": text}]}]
        if self.name == "bedrock":
            return [{"role": "user", "content": [{"text": text}]}]
        return [{"role": "user", "content": text}]


def _ask_chat(url: str, tools: Any, messages: Any, stream: bool) -> Any:
    with openai_library.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0) as client:
        answer = client.chat.completions.create(model="m", messages=messages, tools=tools, stream=stream)
        return list(answer) if stream else answer


def _ask_responses(url: str, tools: Any, messages: Any, stream: bool) -> Any:
    with openai_library.OpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0) as client:
        answer = client.responses.create(model="m", input=messages, tools=tools, stream=stream)
        return list(answer) if stream else answer


def _ask_anthropic(url: str, tools: Any, messages: Any, stream: bool) -> Any:
    with anthropic_library.Anthropic(api_key="none", base_url=url, max_retries=0) as client:
        answer = client.messages.create(model="m", max_tokens=9, messages=messages, tools=tools, stream=stream)
        return list(answer) if stream else answer


def _ask_gemini(url: str, tools: Any, messages: Any, stream: bool) -> Any:
    options = genai_types.HttpOptions(base_url=url)
    with genai.Client(api_key="none", http_options=options) as client:
        config = genai_types.GenerateContentConfig(
            tools=tools, automatic_function_calling=genai_types.AutomaticFunctionCallingConfig(disable=True)
        )
        call = client.models.generate_content_stream if stream else client.models.generate_content
        answer = call(model="m", contents=messages, config=config)
        return list(answer) if stream else answer


def _ask_bedrock(url: str, tools: Any, messages: Any, stream: bool) -> Any:
    return BedrockEndpoint.ask(url, tools, messages, stream)


def exhausted(value: Any) -> Any:
    """Return a validated value with pydantic's lazy iterators run to their ends, where they raise."""
    if isinstance(value, Mapping):
        return {key: exhausted(item) for key, item in value.items()}
    if isinstance(value, str | bytes | int | float) or value is None:
        return value
    return [exhausted(item) for item in value]


def accepting(kind: Any) -> Callable[[Sequence[Any]], None]:
    """Return a check by a library's own types; what they don't know would be missing from what they give back."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)

    def check(entries: Sequence[Any]) -> None:
        for entry in entries:
            assert exhausted(adapter.validate_python(entry)) == entry

    return check


def accepts_gemini(contents: Sequence[Any]) -> None:
    for content in contents:
        genai_types.Content.model_validate(content)


CHAT: Final = Bench(
    name="openai_chat",
    adapter=openai_chat,
    ask=_ask_chat,
    accepts=accepting(ChatCompletionMessageParam),
)
RESPONSES: Final = Bench(
    name="openai_responses",
    adapter=openai_responses,
    ask=_ask_responses,
    accepts=accepting(ResponseInputItemParam),
)
ANTHROPIC: Final = Bench(
    name="anthropic",
    adapter=anthropic,
    ask=_ask_anthropic,
    accepts=accepting(MessageParam),
)
GEMINI: Final = Bench(
    name="gemini",
    adapter=gemini,
    ask=_ask_gemini,
    accepts=accepts_gemini,
)
BEDROCK: Final = Bench(
    name="bedrock",
    adapter=bedrock,
    ask=_ask_bedrock,
    accepts=accepts_bedrock,
)
BENCHES: Final = {bench.name: bench for bench in (CHAT, RESPONSES, ANTHROPIC, GEMINI, BEDROCK)}
accepts_chat_tools = accepting(ChatCompletionToolParam)
accepts_chat_choice = accepting(ChatCompletionToolChoiceOptionParam)
accepts_responses_tools = accepting(ResponsesToolParam)
accepts_anthropic_tools = accepting(ToolParam)
accepts_anthropic_choice = accepting(ToolChoiceParam)


def scripted(batch: int = 3) -> ModelServer | BedrockEndpoint:
    """Return a model that calls every tool that it is offered once, several at a time."""
    return ModelServer(
        Script(Direct(), lambda offered: [Step(name=o.name, namespace=o.namespace) for o in offered], batch)
    )


# What the providers check and their libraries don't: patterns of names and ids, and the order of calls and results.
_NAME: Final = {
    "openai_chat": r"[a-zA-Z0-9_-]{1,64}",
    "openai_responses": r"[a-zA-Z0-9_-]{1,128}",
    "anthropic": r"[a-zA-Z0-9_-]{1,128}",
    "gemini": r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}",
    "bedrock": r"[a-zA-Z0-9_-]{1,64}",
}
_ID: Final = {
    "openai_chat": r".{1,40}",
    "openai_responses": r".{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]+",
    "gemini": r".*",
    "bedrock": r"[a-zA-Z0-9_-]{1,64}",
}


Pairs = list[tuple[str, str]]
# Where the other APIs have calls and results in a part: the key around it (none: the part itself), and that of the id.
_CALLS: Final = {"tool_use": "id", "toolUse": "toolUseId", "functionCall": "id"}
_RESULTS: Final = {"tool_result": "tool_use_id", "toolResult": "toolUseId", "functionResponse": "id"}


def beats(bench: Bench, messages: Sequence[Any]) -> list[tuple[str, Pairs, Pairs]]:
    """Return for each message its role, its calls as (id, name) and its results as (id, name)."""
    return [_BEATS.get(bench.name, _beat)(message) for message in messages]


def _chat_beat(message: Any) -> tuple[str, Pairs, Pairs]:
    calls = [(call["id"], call["function"]["name"]) for call in message.get("tool_calls") or ()]
    return message["role"], calls, [(message["tool_call_id"], "")] if message["role"] == "tool" else []


def _item_beat(item: Any) -> tuple[str, Pairs, Pairs]:
    if item.get("type") == "function_call":
        return "assistant", [(item["call_id"], item["name"])], []
    return item.get("role", "user"), [], [(item["call_id"], "")] if item.get("type") == "function_call_output" else []


def _beat(message: Any) -> tuple[str, Pairs, Pairs]:
    content = message.get("parts") or message.get("content")
    parts = [] if isinstance(content, str) else content
    return message["role"], [*_named(parts, _CALLS)], [*_named(parts, _RESULTS)]


def _named(parts: Sequence[Any], kinds: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for part in parts:
        for kind, key in kinds.items():
            if part.get("type") == kind or kind in part:
                inner = part.get(kind, part)
                yield inner.get(key, ""), inner.get("name", "")


_BEATS: Final = {"openai_chat": _chat_beat, "openai_responses": _item_beat}


def obeys_provider(bench: Bench, messages: Sequence[Any]) -> None:
    """Check what the provider itself would refuse."""
    waiting: list[tuple[str, str]] = []
    previous = ""
    for role, calls, results in beats(bench, messages):
        for call_id, name in calls:
            assert re.fullmatch(_NAME[bench.name], name), name
            assert re.fullmatch(_ID[bench.name], call_id), call_id
        for call_id, name in results:
            match = [one for one in waiting if one[0] == call_id and name in ("", one[1])]
            assert match, f"result {call_id} answers none of {waiting}"
            waiting.remove(match[0])
        if bench.name != "openai_responses":
            assert not (waiting and not results), f"{waiting} has to be answered first"
        if bench.name in ("bedrock", "anthropic"):
            assert role != previous, "roles have to alternate"
            assert not waiting or not results
        waiting += calls
        previous = role
