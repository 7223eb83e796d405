"""Its lists grow between the answer to tools/list and the next: what it tells then is told while it is greeted."""

from typing import Any

from tests.gateway.servers.fake import Fake, changed, tool


class Dawdling(Fake):
    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**super().initialize(params), "capabilities": {"tools": {"listChanged": True}, "prompts": {}}}

    def answer(self, method: str, params: dict[str, Any], request_id: Any) -> dict[str, Any] | None:
        if method != "prompts/list":
            return super().answer(method, params, request_id)
        if len(self.tools) == 1:
            self.tools.append(tool("late"))
            changed()
        return {"prompts": []}


Dawdling("dawdling", [tool("early")]).run()
