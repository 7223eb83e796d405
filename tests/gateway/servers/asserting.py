"""A server of one era that asks, answers, lists and logs what it is given, word by word."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.conformance.fixture import refusing

ERAS = {"handshake": "stateless", "stateless": "handshake"}


class Asserting:
    """Speaks ``era`` alone. ``question`` is a method with parameters, ``result`` and ``error`` are what it answers,
    and ``log`` what it logs before. Without requests it asks under ``key``.

    ``lists`` go over what it lists otherwise, by method.
    """

    def __init__(
        self,
        era: str,
        question: tuple[str, dict[str, Any]] | None = None,
        *,
        result: dict[str, Any] | None = None,
        error: tuple[int, str, Any] | None = None,
        log: dict[str, Any] | None = None,
        key: str = "q",
        lists: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.era = era
        self.question = question
        self.result = result
        self.error = error
        self.log = log
        self.key = key
        self.lists = lists or {}
        self.calls = 0

        async def list_tools(ctx: Any, params: object) -> types.ListToolsResult:
            return types.ListToolsResult(tools=[types.Tool(name="ask", input_schema={"type": "object"})])

        async def list_prompts(ctx: Any, params: object) -> types.ListPromptsResult:
            return types.ListPromptsResult(prompts=[types.Prompt(name="ask")])

        async def list_resources(ctx: Any, params: object) -> types.ListResourcesResult:
            return types.ListResourcesResult(resources=[types.Resource(name="ask", uri="test://ask")])

        async def nothing(ctx: Any, params: object) -> Any:
            raise AssertionError

        self.server: Server[Any] = Server(
            "asserting",
            on_list_tools=list_tools,
            on_call_tool=nothing,
            on_list_prompts=list_prompts,
            on_get_prompt=nothing,
            on_list_resources=list_resources,
            on_read_resource=nothing,
        )
        self.server.middleware.append(refusing(ERAS[era]))
        self.server.middleware.append(self._answer)

    async def _answer(self, ctx: Any, call_next: Any) -> Any:
        if ctx.method not in {"tools/call", "prompts/get", "resources/read"}:
            answer = await call_next(ctx)
            more = self.lists.get(ctx.method)
            if more is None:
                return answer
            if not isinstance(answer, dict):
                answer = answer.model_dump(by_alias=True, mode="json", exclude_none=True)
            return {**answer, **more}
        self.calls += 1
        if self.log is not None:
            await ctx.session._request_outbound.notify("notifications/message", self.log)
        if self.error is not None:
            code, message, details = self.error
            raise MCPError(code, message, details)
        if self.question is not None:
            return await self._asked(ctx, *self.question)
        return dict(self.result or {})

    async def _asked(self, ctx: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            answers = (ctx.params or {}).get("inputResponses")
            if answers is None:
                return {
                    "resultType": "input_required",
                    "inputRequests": {self.key: {"method": method, "params": params}},
                }
            return {"resultType": "complete", "content": [], "structuredContent": answers[self.key]}
        # As it is: the SDK's models would refuse or repair what it asks.
        answer: dict[str, Any] = await ctx.session._request_outbound.send_raw_request(method, params, {})
        return {"content": [], "structuredContent": answer}
