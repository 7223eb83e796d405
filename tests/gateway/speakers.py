"""Clients of every version, written by hand: nothing that they hear is checked, reshaped or lost."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import httpx2

from tests.gateway.conftest import PATIENCE
from tests.gateway.servers.whole import STATELESS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import ByteReceiveStream, TaskGroup
    from mcp import StdioServerParameters

_PREFIX = "io.modelcontextprotocol/"
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
# What a client of a version says that it can be asked; and its answers.
_ABLE: dict[str, dict[str, Any]] = {
    "2024-11-05": {"sampling": {}, "roots": {}},
    "2025-03-26": {"sampling": {}, "roots": {}},
    "2025-06-18": {"sampling": {}, "roots": {}, "elicitation": {}},
}
_ALL: dict[str, Any] = {"sampling": {}, "roots": {}, "elicitation": {"form": {}, "url": {}}}
ANSWERS: dict[str, dict[str, Any]] = {
    "sampling/createMessage": {
        "role": "assistant",
        "content": {"type": "text", "text": "!"},
        "model": "m",
        "x": [None],
    },
    "roots/list": {"roots": [{"uri": "file:///here", "x": 1}]},
    "elicitation/create": {"action": "accept", "content": {"name": "ada"}, "_meta": {"m/x": None}},
}


class Wrong(Exception):
    """An error that was answered; ``error`` as it came."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(str(error))
        self.error = error


class Speaker:
    """One client of one version. ``heard`` are the notifications; a subclass knows how to `send`."""

    def __init__(self, version: str, tasks: TaskGroup) -> None:
        self.version = version
        self.modern = version == STATELESS
        self.able = _ABLE.get(version, _ALL)
        self.heard: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.said: dict[str, Any] = {}
        self.tasks = tasks
        self._numbers = count(1)
        self._answers: dict[Any, dict[str, Any]] = {}
        self._news = anyio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        raise NotImplementedError

    async def cancel(self, number: int) -> None:
        raise NotImplementedError

    async def open(self) -> None:
        if self.modern:
            self.said = await self.ask("server/discover")
            return
        info = {"name": "by hand", "version": "1"}
        said = {"protocolVersion": self.version, "capabilities": self.able, "clientInfo": info}
        self.said = await self.ask("initialize", **said)
        assert self.said["protocolVersion"] == self.version
        await self.send({"method": "notifications/initialized"})

    async def begin(self, method: str, params: dict[str, Any]) -> int:
        number = next(self._numbers)
        if self.modern:
            envelope = {f"{_PREFIX}protocolVersion": self.version, f"{_PREFIX}clientCapabilities": self.able}
            params = {**params, "_meta": {**params.get("_meta", {}), **envelope}}
        await self.send({"id": number, "method": method, "params": params})
        return number

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Return the result, after any questions. Raises `Wrong`."""
        number = await self.begin(method, params)
        await self.until(lambda: number in self._answers)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise Wrong(answer["error"])
        result: dict[str, Any] = answer["result"]
        if result.get("resultType") != "input_required":
            return result
        answers = {key: self.answer_to(question) for key, question in result["inputRequests"].items()}
        again = {**params, "inputResponses": answers, "requestState": result["requestState"]}
        return await self.ask(method, **again)

    def answer_to(self, question: dict[str, Any]) -> dict[str, Any]:
        self.asked.append({"method": question["method"], "params": question.get("params") or {}})
        return ANSWERS[question["method"]]

    async def until(self, is_so: Callable[[], bool]) -> None:
        with anyio.fail_after(PATIENCE):
            while not is_so():
                await self._news.wait()

    def told(self, method: str) -> list[dict[str, Any]]:
        return [one.get("params") or {} for one in self.heard if one["method"] == method]

    async def hears(self, method: str) -> dict[str, Any]:
        await self.until(lambda: bool(self.told(method)))
        return self.told(method)[0]

    def take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._answers[message["id"]] = message
        elif "id" in message:
            answer = {"id": message["id"], "result": self.answer_to(message)}
            self.tasks.start_soon(self.send, answer)
        else:
            self.heard.append(message)
        self._news.set()
        self._news = anyio.Event()


class OverHttp(Speaker):
    def __init__(self, version: str, tasks: TaskGroup, http: httpx2.AsyncClient, address: str) -> None:
        super().__init__(version, tasks)
        self.http = http
        self.address = address
        self.headers = dict(_ACCEPT)
        self._streams: dict[Any, anyio.CancelScope] = {}

    async def open(self) -> None:
        await super().open()
        if not self.modern:
            self.headers["mcp-protocol-version"] = self.version
            await self.tasks.start(self._listen)

    async def send(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            self.tasks.start_soon(self._post, message)
        else:
            await self._post(message)

    async def cancel(self, number: int) -> None:
        if self.modern:
            self._streams[number].cancel()
        else:
            await self.send({"method": "notifications/cancelled", "params": {"requestId": number}})

    async def _post(self, message: dict[str, Any]) -> None:
        headers = dict(self.headers)
        if self.modern:
            headers |= {"mcp-protocol-version": self.version, "mcp-method": message["method"]}
            if named := _NAMED.get(message["method"]):
                headers["mcp-name"] = message["params"][named]
        with anyio.CancelScope() as self._streams[message.get("id")]:
            body = {"jsonrpc": "2.0", **message}
            async with self.http.stream("POST", self.address, json=body, headers=headers) as response:
                if session := response.headers.get("mcp-session-id"):
                    self.headers["mcp-session-id"] = session
                await self._read(response)

    async def _read(self, response: httpx2.Response) -> None:
        if response.headers.get("content-type", "").startswith("text/event-stream"):
            async for line in response.aiter_lines():
                if line.startswith("data:") and (said := line.removeprefix("data:").strip()):
                    self.take(json.loads(said))
        elif body := (await response.aread()).strip():
            self.take(json.loads(body))

    async def _listen(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with self.http.stream("GET", self.address, headers=self.headers) as response:
            task_status.started()
            await self._read(response)


class OverStdio(Speaker):
    def __init__(self, version: str, tasks: TaskGroup, process: anyio.abc.Process) -> None:
        super().__init__(version, tasks)
        self.process = process

    async def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def cancel(self, number: int) -> None:
        await self.send({"method": "notifications/cancelled", "params": {"requestId": number}})

    async def read(self, stream: ByteReceiveStream) -> None:
        rest = b""
        async for chunk in stream:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self.take(json.loads(line))


@asynccontextmanager
async def speaking_http(version: str, address: str) -> AsyncIterator[Speaker]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as http, anyio.create_task_group() as tasks:
        speaker = OverHttp(version, tasks, http, address)
        await speaker.open()
        yield speaker
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def speaking_stdio(version: str, program: StdioServerParameters) -> AsyncIterator[Speaker]:
    command = [program.command, *program.args]
    process = await anyio.open_process(command, env=program.env, stderr=None)
    async with anyio.create_task_group() as tasks:
        speaker = OverStdio(version, tasks, process)
        assert process.stdout is not None
        tasks.start_soon(speaker.read, process.stdout)
        await speaker.open()
        yield speaker
        with anyio.CancelScope(shield=True), suppress(ProcessLookupError):
            assert process.stdin is not None
            await process.stdin.aclose()
            with anyio.move_on_after(5):
                await process.wait()
            if process.returncode is None:
                process.kill()
            await process.aclose()
        tasks.cancel_scope.cancel()
