"""Tools whose calls become tasks, in the way of either era: on the SDK, which has types of tasks and no more.

They are what the official suite asks for, and `finish`, which ends a task that waits. Ids count from one, as another
server's may.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

EXTENSION: Final = "io.modelcontextprotocol/tasks"
RELATED: Final = "io.modelcontextprotocol/related-task"
_CAPABLE: Final = "io.modelcontextprotocol/clientCapabilities"
_WHEN: Final = "2026-11-22T10:00:00Z"
_OVER: Final = ("completed", "failed", "cancelled")
FORM: Final = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}
# By tool: how many questions it asks.
_ASKING: Final = {"confirm_delete": 1, "multi_input": 2}
# Asks before there is a task.
_FIRST_ASKING: Final = "test_tool_with_task"
_QUESTION: Final = {"method": "elicitation/create", "params": FORM}
TOOLS: Final = ("greet", "slow_compute", "failing_job", "protocol_error_job", _FIRST_ASKING, *_ASKING, "finish")


class _Task:
    def __init__(self, id: str, ttl: float | None, questions: int, connection: Any) -> None:
        self.id = id
        self.ttl = ttl
        self.status = "working"
        self.questions: dict[str, Any] = {f"q{n}": _QUESTION for n in range(questions)}
        self.answers: dict[str, Any] = {}
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.over = anyio.Event()
        self.connection = connection

    def end(self, status: str, result: dict[str, Any] | None = None, error: dict[str, Any] | None = None) -> None:
        if self.status not in _OVER:
            self.status, self.result, self.error = status, result, error
            self.over.set()

    def state(self, *, modern: bool) -> dict[str, Any]:
        status = "input_required" if self.questions and self.status == "working" else self.status
        said = {"taskId": self.id, "status": status, "createdAt": _WHEN, "lastUpdatedAt": _WHEN, "vendor": [None]}
        if not modern:
            return {**said, "ttl": self.ttl, "pollInterval": 100}
        return {**said, "ttlMs": self.ttl, "pollIntervalMs": 100}

    def detailed(self) -> dict[str, Any]:
        state = self.state(modern=True)
        more = {"inputRequests": self.questions or None, "result": self.result, "error": self.error}
        return {**state, **{key: value for key, value in more.items() if value is not None}}


class TaskedTools:
    """Tools, and what makes tasks of their calls: ``middleware`` for a server that lists ``tools`` and ``announces``.

    ``label`` stands before what they answer; one that is ``rude`` makes tasks for who cannot follow them.
    """

    def __init__(self, label: str, *, ttl: float | None = 60_000, rude: bool = False) -> None:
        self.label = label
        self.ttl = ttl
        self.rude = rude
        self.tasks: dict[str, _Task] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.headers: list[dict[str, str]] = []
        self._methods: dict[str, Callable[[Any, dict[str, Any], bool], Awaitable[dict[str, Any]]]] = {
            "tools/call": self._call,
            "tasks/get": self._get,
            "tasks/cancel": self._cancel,
        }
        self._by_era: dict[bool, Any] = {
            False: {"tasks/result": self._result, "tasks/list": self._listed},
            True: {"tasks/update": self._update},
        }

    @property
    def tools(self) -> list[types.Tool]:
        execution = types.ToolExecution(task_support="optional")
        return [
            types.Tool(name=name, description=f"Does {name}.", input_schema={"type": "object"}, execution=execution)
            for name in TOOLS
        ]

    @staticmethod
    def announce(capabilities: types.ServerCapabilities, version: str | None) -> types.ServerCapabilities:
        if version in MODERN_PROTOCOL_VERSIONS:
            capabilities.extensions = {EXTENSION: {}}
        else:
            said: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
            capabilities.tasks = types.ServerTasksCapability.model_validate(said)
        return capabilities

    async def middleware(self, ctx: Any, call_next: Any) -> Any:
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        method = {**self._methods, **self._by_era[modern]}.get(ctx.method)
        params = dict(ctx.params or {})
        is_ours = ctx.method != "tools/call" or params.get("name") in TOOLS
        if method is None or ctx.request_id is None or not is_ours:
            return await call_next(ctx)
        self.asked.append((ctx.method, params))
        if ctx.request is not None:
            self.headers.append({k: v for k, v in ctx.request.headers.items() if k.startswith("mcp-")})
        if modern and ctx.method.startswith("tasks/"):
            _check(ctx, params)
        result = await method(ctx, params, modern)
        return {"resultType": "complete", **result} if modern else result

    def _of(self, params: dict[str, Any]) -> _Task:
        if params.get("taskId") not in self.tasks:
            raise MCPError(types.INVALID_PARAMS, f"Task not found: {params.get('taskId')}")
        return self.tasks[params["taskId"]]

    async def _call(self, ctx: Any, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "finish":
            task = self.tasks[arguments["task"]]
            task.end("completed", self._outcome("slow_compute"))
            if not modern:
                await task.connection.notify("notifications/tasks/status", task.state(modern=False))
            return self._outcome(name)
        wanted = self.rude or (_follows(params) if modern else "task" in params)
        if modern and name == "failing_job" and not wanted:
            raise _undeclared()
        if name == "greet":
            return {"content": [{"type": "text", "text": f"Hello, {arguments.get('name', self.label)}!"}]}
        if name == _FIRST_ASKING and wanted and modern and "inputResponses" not in params:
            return {"resultType": "input_required", "inputRequests": {"user_name": _QUESTION}}
        if not wanted:
            return self._outcome(name)
        number = f"task-{len(self.tasks) + 1}"
        ttl = self.ttl if modern else (params.get("task") or {}).get("ttl", self.ttl)
        self.tasks[number] = task = _Task(number, ttl, _ASKING.get(name, 0), ctx.session._connection)
        state = task.state(modern=modern)
        self._run(name, {**arguments, "said": params.get("inputResponses")}, task)
        return {"resultType": "task", **state} if modern else {"task": state, "_meta": {"vendor/x": 1}}

    def _run(self, name: str, arguments: dict[str, Any], task: _Task) -> None:
        if name == "failing_job":
            task.end("completed", {**self._outcome(name), "isError": True})
        elif name == "protocol_error_job":
            task.end("failed", error={"code": -32603, "message": "It broke."})
        elif name == _FIRST_ASKING:
            task.end("completed", self._outcome(json.dumps(arguments["said"])))
        elif name == "slow_compute" and (seconds := arguments.get("seconds", 3600)) <= 5:
            # The suite waits; the tests of this project end a task with `finish`.
            asyncio.get_running_loop().call_later(seconds, task.end, "completed", self._outcome(name))

    def _outcome(self, name: str) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": f"{self.label}:{name}"}], "vendor": {"z": None}}

    async def _get(self, _: Any, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        task = self._of(params)
        return task.detailed() if modern else task.state(modern=False)

    async def _cancel(self, _: Any, params: dict[str, Any], modern: bool) -> dict[str, Any]:
        task = self._of(params)
        if not modern and task.status in _OVER:
            raise MCPError(types.INVALID_PARAMS, "Task is over")
        task.end("cancelled")
        return {} if modern else task.state(modern=False)

    async def _update(self, _: Any, params: dict[str, Any], __: bool) -> dict[str, Any]:
        task = self._of(params)
        for key, answer in params["inputResponses"].items():
            if task.questions.pop(key, None) is not None:
                task.answers[key] = answer
        if not task.questions and task.answers:
            task.end("completed", {**self._outcome("asked"), "structuredContent": task.answers})
        return {}

    async def _result(self, ctx: Any, params: dict[str, Any], _: bool) -> dict[str, Any]:
        task = self._of(params)
        about = {RELATED: {"taskId": task.id}}
        for key, question in list(task.questions.items()):
            # Nobody said that questions may be tasks: the wish for one has to be passed over.
            asked = {**question["params"], "task": {"ttl": 1}, "_meta": about}
            channel = ctx.session._request_outbound
            task.answers[key] = await channel.send_raw_request(question["method"], asked, {})
            del task.questions[key]
        if task.answers:
            task.end("completed", {**self._outcome("asked"), "structuredContent": task.answers})
        await task.over.wait()
        if task.error is not None:
            raise MCPError(task.error["code"], task.error["message"])
        return {**(task.result or self._outcome("cancelled")), "_meta": about}

    async def _listed(self, _: Any, __: dict[str, Any], ___: bool) -> dict[str, Any]:
        return {"tasks": [task.state(modern=False) for task in self.tasks.values()]}


def _check(ctx: Any, params: dict[str, Any]) -> None:
    if not _follows(params):
        raise _undeclared()
    if ctx.request is not None and decode_header_value(ctx.request.headers.get("mcp-name")) != params.get("taskId"):
        raise MCPError(types.HEADER_MISMATCH, "Mcp-Name header does not match the request body")


def _follows(params: dict[str, Any]) -> bool:
    return EXTENSION in (((params.get("_meta") or {}).get(_CAPABLE) or {}).get("extensions") or {})


def _undeclared() -> MCPError:
    data: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Missing required client capability", data)
