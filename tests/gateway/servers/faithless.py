"""A server whose lists are a lie. Arguments: how it lies, and its key. `turn` begins it; `read` says by which list."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, changed, tool

FLOOD = 2_000


class Faithless(Fake):
    """``silent`` announces a change and lists nothing; ``flapping`` lists another at each look, and announces one then.

    ``flooding`` announces changes by the thousand and changes once.
    """

    how = sys.argv[1]
    has_turned = False
    listed = "A"

    def answer(self, method: str, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        if method == "tools/list" and self.has_turned and self.how == "silent":
            return None
        return super().answer(method, params, request_id)

    def list_tools(self, _: dict[str, Any]) -> dict[str, Any]:
        if self.has_turned:
            self.listed = {"A": "B", "B": "A"}[self.listed] if self.how == "flapping" else "B"
        if self.has_turned and self.how == "flapping":
            changed()
        return {"tools": [tool("turn"), {**tool("read"), "description": f"Read in way {self.listed}."}, tool("free")]}

    def turn(self, params: dict[str, Any], _: Any) -> dict[str, Any]:
        self.has_turned = True
        for _ in range(FLOOD if self.how == "flooding" else 1):
            changed()
        return self.echo(params)

    def read(self, _: dict[str, Any], __: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": self.listed}]}


server = Faithless(sys.argv[2], [tool("turn"), tool("read"), tool("free")])
server.calls |= {"turn": server.turn, "read": server.read}
server.run()
