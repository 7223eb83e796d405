"""A conversation with everything that can happen in one, recorded under OpenAI names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.adapters.model_apis import BENCHES, Bench, obeys_provider
from truename import Catalog, NameTable, ToolId, project

if TYPE_CHECKING:
    from truename.adapters.history import RewrittenHistory

SEARCH, LIST, WEATHER, DELETE = "docs@1/search@1", "docs@1/fs.list@1", "web@1/search@1", "docs@1/delete_everything@1"


CATALOG = Catalog.of(SEARCH, LIST, WEATHER, DELETE, aliases={})


IDS = tuple(map(ToolId.parse, (SEARCH, WEATHER, LIST, DELETE, SEARCH)))


OTHERS = [name for name in BENCHES if name != "openai_chat"]


def chat_names(**more: Any) -> NameTable:
    return project(CATALOG, "openai", **more)


def call(call_id: str, name: str, arguments: str = '{"q": "x"}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def recorded(names: NameTable) -> list[dict[str, Any]]:
    """Return a conversation with parallel, streamed, failed, malformed, approved and denied calls."""
    return [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Find it. 找到它"},
        {
            "role": "assistant",
            "content": "Looking in both places.",
            "tool_calls": [call("call_abc", names[SEARCH]), call("functions.search:1", names[WEATHER], '{"q":1.5}')],
        },
        # Results of parallel calls come as they are ready, not in order.
        {"role": "tool", "tool_call_id": "functions.search:1", "content": '{"hits": 3}'},
        {"role": "tool", "tool_call_id": "call_abc", "content": "found"},
        {"role": "assistant", "content": None, "tool_calls": [call("call_" + "x" * 34, names[LIST], "{}")]},
        {"role": "tool", "tool_call_id": "call_" + "x" * 34, "content": "[tool error] no such folder"},
        {"role": "assistant", "content": None, "tool_calls": [call("a b?", names[DELETE], '{"all": tru')]},
        {"role": "tool", "tool_call_id": "a b?", "content": "[tool error] ann rejected the call"},
        {"role": "user", "content": "Try again, I approve."},
        {"role": "assistant", "content": None, "tool_calls": [call("c-5", names[SEARCH], "{}")]},
        {"role": "tool", "tool_call_id": "c-5", "content": "done"},
        {"role": "assistant", "content": "It is done."},
    ]


def accepted(bench: Bench, told: RewrittenHistory) -> None:
    bench.accepts(told.messages)
    obeys_provider(bench, told.messages)
