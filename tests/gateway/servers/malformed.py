"""Lists tools whose definitions are wrong in ways that make clients refuse the whole list."""

from typing import Any

from tests.gateway.servers.fake import Fake, tool

WRONG: list[Any] = [
    {"name": "schemaless"},
    tool("untyped", description=5),
    {"name": "listed", "inputSchema": []},
    tool("odd_meta", _meta=[]),
    tool("good"),
]
Fake("malformed", WRONG).run()
