"""talking.py LABEL: a server whose texts speak of its own tools; set_data fails in the way that its mode says."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, Fault

SCHEMA = {
    "type": "object",
    "properties": {"mode": {"type": "string", "description": "As get_data has it.", "enum": ["get_data"]}},
}
TOOLS = [
    {
        "name": "get_data",
        "title": "get_data, or set_data",
        "description": "Reads. Write with set_data; see https://example.com/set_data.",
        "inputSchema": SCHEMA,
        "annotations": {"title": "set_data's other half", "readOnlyHint": True},
    },
    {"name": "set_data", "description": 'Writes. {"tool": "get_data"}', "inputSchema": SCHEMA},
    {"name": "mode", "description": "The mode of get_data. mode: the `mode` tool has it.", "inputSchema": SCHEMA},
]
TEXT = "Call get_data before set_data."
PROMPTS = [{"name": "plan", "title": "Plan get_data", "description": TEXT, "arguments": [{"name": "about"}]}]


def failing(params: dict[str, Any], _: Any) -> dict[str, Any]:
    arguments = params.get("arguments") or {}
    match arguments.get("mode"):
        case "refuse":
            raise Fault(-32002, "get_data has to be called first", {"why": "get_data"})
        case "answer":
            return {"content": [{"type": "text", "text": TEXT}]}
        case _:
            pass
    return {
        "content": [
            {"type": "text", "text": TEXT, "annotations": {"priority": 1}},
            {"type": "resource", "resource": {"uri": "x://get_data", "text": TEXT}},
            {"type": "text", "text": "get_data " * 10_000},
            {"type": "text", "text": TEXT},
        ],
        "structuredContent": {"call": TEXT},
        "isError": True,
    }


class Talking(Fake):
    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        answer = super().initialize(params)
        answer["capabilities"]["prompts"] = {}
        return answer

    def answer(self, method: str, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        if method == "prompts/list":
            return {"prompts": PROMPTS}
        if method != "prompts/get":
            return super().answer(method, params, request_id)
        about = (params.get("arguments") or {}).get("about")
        if about == "nothing":
            raise Fault(-32602, "Nothing for get_data")
        messages = [
            {"role": "user", "content": {"type": "text", "text": f"{TEXT} It is about {about}."}},
            {"role": "user", "content": {"type": "resource", "resource": {"uri": "x://y", "text": TEXT}}},
        ]
        return {"description": TEXT, "messages": messages}


server = Talking(sys.argv[1], TOOLS)
server.calls["set_data"] = failing
server.run()
