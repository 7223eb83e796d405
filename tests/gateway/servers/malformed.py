"""Lists tools whose definitions are wrong in ways that make clients refuse the whole list."""

from typing import Any

from tests.gateway.servers.fake import Fake, tool

WRONG: list[Any] = [
    {"name": "schemaless"},
    tool("untyped", description=5),
    {"name": "listed", "inputSchema": []},
    tool("odd_meta", _meta=[]),
    tool("of_a_list", inputSchema={"type": "array"}),
    tool("of_two_types", inputSchema={"type": ["object", "null"]}),
    tool("listed_properties", inputSchema={"type": "object", "properties": []}),
    tool("odd_property", inputSchema={"type": "object", "properties": {"a": "text"}}),
    tool("odd_required", inputSchema={"type": "object", "required": ["a", 5]}),
    tool("good"),
    tool("untold", inputSchema={"$schema": "http://json-schema.org/draft-07/schema#", "required": ["a"]}),
]
Fake("malformed", WRONG).run()
