"""normal.py LABEL TOOL...: lists these tools and tells what it was called with."""

import sys
from typing import Any

from tests.gateway.servers.fake import Fake, Fault, send, tool


def boom(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    raise Fault(-32002, "boom", {"why": None, "n": [1]})


def progress(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    token = params.get("_meta", {}).get("progressToken")
    for step in (1, 2):
        body = {"progressToken": token, "progress": step, "total": 2, "message": f"step {step}"}
        send({"method": "notifications/progress", "params": body})
    return server.echo(params)


def sleep(params: dict[str, Any], request_id: Any) -> None:
    """Never answers; waits for the cancellation (see cancelled)."""


def cancelled(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": ",".join(seen)}]}


def die(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    sys.stderr.write("about to die\n")
    sys.exit(3)


def big(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": "x" * int(params["arguments"]["size"])}]}


def broken(params: dict[str, Any], request_id: Any) -> None:
    head = f'{{"jsonrpc":"2.0","id":{request_id},"result":{{"content":[{{"type":"text","text":"'
    sys.stdout.write(head + 'cut \\ud83d whole \\ud83d\\ude00"}]}}\n')
    sys.stdout.flush()


def fails(params: dict[str, Any], request_id: Any) -> dict[str, Any]:
    return {**server.echo(params), "isError": True}


def shapeless(params: dict[str, Any], request_id: Any) -> None:
    send({"id": request_id, "result": ["not", "an", "object"]})


class Normal(Fake):
    def notified(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/cancelled":
            seen.append(str(params.get("reason")))


seen: list[str] = []
server = Normal(sys.argv[1], [tool(name) for name in sys.argv[2:]])
server.calls |= {
    "boom": boom,
    "progress": progress,
    "sleep": sleep,
    "cancelled": cancelled,
    "die": die,
    "fails": fails,
    "big": big,
    "broken": broken,
    "shapeless": shapeless,
}
server.run()
