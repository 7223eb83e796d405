"""asking.py LABEL: asks its client while a tool runs, or after it, and tells its process and what it was answered."""

import os
import sys
from typing import Any

from tests.gateway.servers.fake import Fake, send, tool

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}


class Asking(Fake):
    able: Any = None
    waiting: dict[Any, Any]
    remembered = ""
    refused = 0

    def initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        self.able, self.waiting = params.get("capabilities"), {}
        return super().initialize(params)

    def asks(self, request_id: Any, method: str, **params: Any) -> None:
        number = f"q{len(self.waiting)}"
        self.waiting[number] = request_id
        send({"id": number, "method": method, **({"params": params} if params else {})})

    def answered(self, message: dict[str, Any]) -> None:
        request_id = self.waiting[message["id"]]
        self.refused += "error" in message
        if request_id is not None:
            told = {"pid": os.getpid(), "answer": message.get("result"), "error": message.get("error")}
            send({"id": request_id, "result": {"content": [], "structuredContent": told}})


def ask(params: dict[str, Any], request_id: Any) -> None:
    server.asks(request_id, "elicitation/create", **FORM)


def later(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    server.remembered = params["arguments"]["text"]
    return {"content": []}


def remember(params: dict[str, Any], request_id: Any) -> None:
    server.asks(request_id, "elicitation/create", **{**FORM, "message": server.remembered})


def burst(params: dict[str, Any], request_id: Any) -> None:
    send({"id": request_id, "result": {"content": []}})
    for _ in range(100):
        server.asks(None, "elicitation/create", **FORM)


def refused(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": {"refused": server.refused}}


def roots(params: dict[str, Any], request_id: Any) -> None:
    server.asks(request_id, "roots/list")


def sample(params: dict[str, Any], request_id: Any) -> None:
    message = {"role": "user", "content": {"type": "text", "text": "Who?"}}
    server.asks(request_id, "sampling/createMessage", messages=[message], maxTokens=10)


def me(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    return {"content": [], "structuredContent": {"pid": os.getpid(), "able": server.able}}


server = Asking(sys.argv[1], [])
server.calls |= {
    "ask": ask,
    "later": later,
    "remember": remember,
    "burst": burst,
    "refused": refused,
    "roots": roots,
    "sample": sample,
    "me": me,
}
server.tools = [tool(name) for name in server.calls]
server.run()
