"""whole.py LABEL VERSION: all of the protocol in one version, answered by hand with much that no version knows.

Over standard input and output, standard library only; `tests.gateway.whole_http` serves the same over HTTP.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

STATELESS: Final = "2026-07-28"
VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS)
_INFO: Final = "io.modelcontextprotocol/clientInfo"
_LEVEL: Final = "io.modelcontextprotocol/logLevel"
_OF_CONNECTIONS: Final = "io.modelcontextprotocol/"
_CURSOR: Final = "second"
_CAPABILITIES: Final[Mapping[str, Any]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "extensions": {"io.modelcontextprotocol/skills": {}},
}
FORM: Final = {"mode": "form", "message": "Who?", "requestedSchema": {"type": "object", "properties": {}}, "x": [None]}
# What can be asked, by the tool that asks it.
QUESTIONS: Final[Mapping[str, dict[str, Any]]] = {
    "sample": {
        "method": "sampling/createMessage",
        "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5, "x": {}},
    },
    "roots": {"method": "roots/list", "params": {}},
    "form": {"method": "elicitation/create", "params": FORM},
    "url": {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "Go", "url": "https://example.com/", "elicitationId": "e1"},
    },
}
_BOTH: Final = ("one", "two")
_SAID: Final[Mapping[str, dict[str, Any]]] = {
    "odd": {"content": [{"type": "vendor", "x": 1}], "structuredContent": {"n": 1e300}, "isError": False},
    "fails": {"content": [{"type": "text", "text": "No.", "vendor": 1}], "isError": True, "vendor": 1},
}
TOOLS: Final = ("echo", "odd", "fails", "refuses", "progress", "log", "hold", "gave_up", "touch", "grow", *QUESTIONS)


class Refused(Exception):
    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


class Peer(Protocol):
    """Who asks, and the ways back: on the stream of the request, and to all who listen."""

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]: ...
    async def notify(self, method: str, params: dict[str, Any]) -> None: ...
    async def touch(self, uri: str) -> None: ...
    async def changed(self) -> None: ...


class Whole:
    def __init__(self, label: str, version: str) -> None:
        self.label = label
        self.version = version
        self.modern = version == STATELESS
        self.tools = list(TOOLS)
        self._given_up: list[Any] = []
        self._gave_up = asyncio.Event()

    @property
    def capabilities(self) -> dict[str, Any]:
        return {**_CAPABILITIES, **({} if self.modern else {"logging": {}})}

    def uri(self, name: str) -> str:
        return f"test://{self.label}/{name}"

    async def answer(self, method: str, params: dict[str, Any], peer: Peer) -> dict[str, Any]:
        result = await self._answer(method, params, peer)
        if not self.modern:
            return result
        hints = {"ttlMs": 5, "cacheScope": "private"} if method.endswith("/list") or method == "resources/read" else {}
        return {"resultType": "complete", **hints, **result}

    async def _answer(self, method: str, params: dict[str, Any], peer: Peer) -> dict[str, Any]:
        if method == "tools/call":
            return await self._call(params, peer)
        answer = {
            "ping": self._nothing,
            "logging/setLevel": self._nothing,
            "resources/subscribe": self._nothing,
            "resources/unsubscribe": self._nothing,
            "tools/list": self._tools,
            "prompts/list": self._prompts,
            "prompts/get": self._prompt,
            "resources/list": self._resources,
            "resources/templates/list": self._templates,
            "resources/read": self._read,
            "completion/complete": self._complete,
            "skills/list": self._skills,
            "skills/get": self._skill,
            "vendor/echo": self._vendor,
        }.get(method)
        if answer is None:
            raise Refused(-32601, "Method not found")
        return answer(params)

    def _nothing(self, _: dict[str, Any]) -> dict[str, Any]:
        return {}

    def _tools(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._page("tools", [self._tool(name) for name in self.tools], params)

    def _prompts(self, params: dict[str, Any]) -> dict[str, Any]:
        arguments = [{"name": "a", "x": 1}]
        return self._page("prompts", [{"name": name, "arguments": arguments, "vendor": None} for name in _BOTH], params)

    def _prompt(self, params: dict[str, Any]) -> dict[str, Any]:
        said = {"type": "text", "text": json.dumps(params.get("arguments")), "vendor": [1]}
        return {"messages": [{"role": "user", "content": said}], "vendor": params["name"], "_meta": {"m/x": 1}}

    def _resources(self, params: dict[str, Any]) -> dict[str, Any]:
        listed = [{"uri": self.uri(name), "name": name, "vendor": {"z": None}} for name in _BOTH]
        return self._page("resources", listed, params)

    def _templates(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"resourceTemplates": [{"uriTemplate": self.uri("{id}/x"), "name": "t", "_meta": {"m/x": [None]}}]}

    def _read(self, params: dict[str, Any]) -> dict[str, Any]:
        if params["uri"].endswith("none"):
            raise Refused(-32602 if self.modern else -32002, "Resource not found", {"uri": params["uri"]})
        return {"contents": [{"uri": params["uri"], "text": self.label, "vendor": 1}], "vendor": [{}]}

    def _complete(self, params: dict[str, Any]) -> dict[str, Any]:
        found = {"values": [params["argument"]["value"] + "!"], "total": 1, "vendor": None}
        return {"completion": found, "_meta": {"m/x": params["ref"]["type"]}}

    def _skills(self, params: dict[str, Any]) -> dict[str, Any]:
        return self._page("skills", [self._skill_of(name) for name in _BOTH], params)

    def _skill(self, params: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in _BOTH if params["uri"] == self._skill_of(name)["uri"]]
        if not names:
            raise Refused(-32602, "No such skill")
        return {"skill": self._skill_of(names[0]), "vendor": 1}

    def _skill_of(self, name: str) -> dict[str, Any]:
        uri, raw = self.uri(f"{name}/SKILL.md"), self.label.encode()
        file = {"uri": uri, "digest": f"sha256:{hashlib.sha256(raw).hexdigest()}", "size": len(raw), "vendor": None}
        said = {"name": name, "description": "d", "metadata": {"n": 1}, "vendor": [True]}
        return {"uri": uri, "frontmatter": said, "resources": [file], "vendor": 1}

    def _vendor(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"said": _own(params), "label": self.label}

    @staticmethod
    def _page(field: str, entries: list[dict[str, Any]], params: dict[str, Any]) -> dict[str, Any]:
        cursor, half = params.get("cursor"), len(entries) // 2
        if cursor not in {None, _CURSOR}:
            raise Refused(-32602, "Unknown cursor")
        return {field: entries[half:]} if cursor else {field: entries[:half], "nextCursor": _CURSOR}

    def _tool(self, name: str) -> dict[str, Any]:
        said = {"type": "object", "properties": {"text": {"type": "string", "vendor": None}}, "x-vendor": [1]}
        return {
            "name": name,
            "title": name.title(),
            "description": "Of the whole.",
            "inputSchema": said,
            "annotations": {"readOnlyHint": True, "vendor": 1},
            "icons": [{"src": "data:,", "vendor": 1}],
            "vendor": {"deep": [None, {"z": 1, "a": 2}]},
            "_meta": {"anthropic/alwaysLoad": name == "echo", "vendor/x": None},
        }

    async def _call(self, params: dict[str, Any], peer: Peer) -> dict[str, Any]:
        name = params["name"]
        if name in QUESTIONS:
            return await self._asked(name, params, peer)
        if name in _SAID:
            return dict(_SAID[name])
        if name == "echo":
            return {"content": [], "structuredContent": _own(params), "vendor": None, "_meta": {"m/x": {"y": [None]}}}
        if name == "gave_up":
            await self._gave_up.wait()
            return {"content": [], "structuredContent": {"given up": self._given_up}}
        does = {
            "progress": self._progress,
            "log": self._log,
            "hold": self._hold,
            "touch": self._touch,
            "grow": self._grow,
        }.get(name)
        if does is None:
            raise Refused(*((-32050, "No, no.", {"why": [None]}) if name in TOOLS else (-32602, "Unknown tool")))
        await does(params.get("arguments") or {}, params.get("_meta") or {}, peer)
        return {"content": [{"type": "text", "text": f"{self.label}:{name}"}]}

    async def _progress(self, _: dict[str, Any], meta: dict[str, Any], peer: Peer) -> None:
        for step in range(3):
            told = {"progressToken": meta.get("progressToken"), "progress": step, "total": 3, "message": f"s{step}"}
            await peer.notify("notifications/progress", told)

    async def _log(self, arguments: dict[str, Any], meta: dict[str, Any], peer: Peer) -> None:
        if not self.modern or _LEVEL in meta:
            told = {"level": "error", "logger": self.label, "data": {"x": [None, arguments.get("text")]}}
            await peer.notify("notifications/message", told)

    async def _touch(self, _: dict[str, Any], __: dict[str, Any], peer: Peer) -> None:
        await peer.touch(self.uri("one"))

    async def _grow(self, _: dict[str, Any], __: dict[str, Any], peer: Peer) -> None:
        self.tools.append(f"grown_{len(self.tools)}")
        await peer.changed()

    async def _hold(self, arguments: dict[str, Any], meta: dict[str, Any], peer: Peer) -> None:
        await peer.notify("notifications/progress", {"progressToken": meta.get("progressToken"), "progress": 1})
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self._given_up.append(arguments.get("text"))
            self._gave_up.set()
            raise

    async def _asked(self, name: str, params: dict[str, Any], peer: Peer) -> dict[str, Any]:
        question = QUESTIONS[name]
        if not self.modern:
            answer = await peer.ask(question["method"], question["params"])
        elif "inputResponses" not in params:
            return {"resultType": "input_required", "inputRequests": {"q": question}, "requestState": "state"}
        else:
            answer = params["inputResponses"]["q"]
        return {"content": [], "structuredContent": {"answered": answer}}


def _own(params: dict[str, Any]) -> dict[str, Any]:
    """Return what a client said, without what belongs to its connection."""
    meta = params.get("_meta") or {}
    kept = {key: value for key, value in meta.items() if not key.startswith(_OF_CONNECTIONS) and key != "progressToken"}
    return {**{key: value for key, value in params.items() if key != "_meta"}, "_meta": kept}


class _Lines:
    """The one client at the other end of the pipe, by request."""

    def __init__(self, server: Whole) -> None:
        self.server = server
        self.running: dict[Any, asyncio.Task[None]] = {}
        self.asked: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self.listening: dict[Any, dict[str, Any]] = {}
        self.watched: set[str] = set()

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        number = f"q{len(self.asked)}"
        self.asked[number] = asyncio.get_running_loop().create_future()
        self.send({"id": number, "method": method, "params": params})
        return await self.asked[number]

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        self.send({"method": method, "params": params})

    async def touch(self, uri: str) -> None:
        if uri in self.watched:
            self.send({"method": "notifications/resources/updated", "params": {"uri": uri}})
        for number, wanted in self.listening.items():
            if uri in wanted.get("resourceSubscriptions", ()):
                about = {"io.modelcontextprotocol/subscriptionId": number}
                self.send({"method": "notifications/resources/updated", "params": {"uri": uri, "_meta": about}})

    async def changed(self) -> None:
        method = "notifications/tools/list_changed"
        if not self.server.modern:
            self.send({"method": method})
        for number, wanted in self.listening.items():
            if wanted.get("toolsListChanged"):
                about = {"io.modelcontextprotocol/subscriptionId": number}
                self.send({"method": method, "params": {"_meta": about}})

    async def answer(self, number: Any, method: str, params: dict[str, Any]) -> None:
        try:
            result = await self._result(number, method, params)
        except Refused as refused:
            self.send({"id": number, "error": refused.error})
        else:
            self.send({"id": number, "result": result})

    async def _result(self, number: Any, method: str, params: dict[str, Any]) -> dict[str, Any]:
        server = self.server
        info = {"name": server.label, "version": "1"}
        if method == "initialize" and not server.modern:
            return {"protocolVersion": server.version, "capabilities": server.capabilities, "serverInfo": info}
        if method == "server/discover" and server.modern:
            said = {"supportedVersions": [server.version], "capabilities": server.capabilities, "serverInfo": info}
            return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **said}
        if method == "subscriptions/listen" and server.modern:
            self.listening[number] = wanted = params["notifications"]
            about = {"io.modelcontextprotocol/subscriptionId": number}
            acknowledged = {"notifications": wanted, "_meta": about}
            self.send({"method": "notifications/subscriptions/acknowledged", "params": acknowledged})
            await asyncio.Event().wait()
        if method == "resources/subscribe":
            self.watched.add(params["uri"])
        return await server.answer(method, params, self)

    def take(self, message: dict[str, Any]) -> None:
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            answer = message.get("result") or {"refused": message.get("error")}
            self.asked[number].set_result(answer)
        elif number is None:
            if method == "notifications/cancelled" and params.get("requestId") in self.running:
                self.listening.pop(params["requestId"], None)
                self.running[params["requestId"]].cancel()
        else:
            self.running[number] = asyncio.create_task(self.answer(number, method, params))


async def main(label: str, version: str) -> None:
    lines = _Lines(Whole(label, version))
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        lines.take(json.loads(line))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:3]))
