"""Requests of clients to a running gateway: HTTP with all its heads, and lines over a pipe, in both eras.

Whatever comes: no 500, no exception that nobody foresaw, no tool that was not asked for, no answer of another, and the
next honest call is answered.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.house import TOKEN, Answer, Asked, House, at, visited
from tests.fuzz.judging import must
from tests.fuzz.mutation import changed, mutated, mutated_bytes, text, value
from tests.fuzz.pipe import pipe
from truename import resolve
from truename.errors import ResolutionError

if TYPE_CHECKING:
    from random import Random

__all__ = ["TARGETS", "called", "still_answers"]

_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HELLO: Final = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
_PARAMS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("tools/call", {"name": "g_read", "arguments": {"a": 1}}),
    ("tools/call", {"name": "g_fs_list", "arguments": {}}),
    ("tools/call", {"name": "g_delete", "arguments": {}, "_meta": {"progressToken": 1}}),
    ("tools/list", {}),
    ("tools/list", {"cursor": "x"}),
    ("initialize", _HELLO),
    ("ping", {}),
    ("server/discover", {}),
    ("prompts/get", {"name": "x", "arguments": {"a": "b"}}),
    ("resources/read", {"uri": "file:///x"}),
    ("resources/subscribe", {"uri": "file:///x"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
    ("logging/setLevel", {"level": "debug"}),
    ("tasks/get", {"taskId": "x"}),
    ("tasks/result", {"taskId": "x"}),
    ("tasks/cancel", {"taskId": "x"}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ("notifications/cancelled", {"requestId": 1, "reason": "x"}),
    ("notifications/initialized", {}),
    ("notifications/progress", {"progressToken": 1, "progress": 1}),
    ("$/nothing", {}),
)
_IDS: Final = re.compile(rb'"id":\s*(\d+)')
_METHODS: Final = ("POST", "POST", "POST", "POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD", "TRACE")
_PATHS: Final = ("/mcp", "/mcp", "/mcp", "/mcp/for/cursor", "/mcp/only/g", "/mcp/in/x", "/", "/readyz", "/metrics")
_HEADS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("host", ("evil.example", "127.0.0.1:99999", "[::1]", "")),
    ("origin", ("https://evil.example", "null", "http://localhost", "http://127.0.0.1:1")),
    ("authorization", ("", "Bearer", "Bearer x", f"bearer  {TOKEN}", f"Basic {TOKEN}", f"Bearer {TOKEN}x")),
    ("accept", ("*/*", "text/html", "application/json", "text/event-stream", "application/json;q=0", "")),
    ("content-type", ("text/plain", "application/json; charset=utf-16", "multipart/form-data; boundary=x", "")),
    ("content-encoding", ("gzip", "deflate", "x")),
    ("content-length", ("0", "1", "99999999999999999999", "-1", "+5", "5, 5")),
    ("transfer-encoding", ("chunked", "gzip, chunked", "identity", "x")),
    ("mcp-protocol-version", ("2025-06-18", "2024-11-05", "2026-07-28", "9999-99-99", "")),
    ("mcp-method", ("tools/list", "tools/call", "initialize", "=?base64?dG9vbHMvbGlzdA==?=")),
    ("mcp-name", ("g_read", "g_delete", "=?base64?Z19kZWxldGU=?=", "=?base64?!!!?=", "")),
    ("mcp-param-a", ("1", "=?base64?MQ==?=", "")),
    ("mcp-session-id", ("x", "00000000000000000000000000000000", "")),
    ("last-event-id", ("0", "-1", "x_1", "99999999999999999999", "")),
    ("x-truename-dialect", ("cursor", "nothing", "")),
    ("x-truename-context", ("platform=ios", "x", "=")),
    ("traceparent", ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x")),
    ("expect", ("100-continue", "x")),
    ("connection", ("close", "upgrade", "keep-alive")),
    ("upgrade", ("websocket", "h2c")),
)
# 503 is said where there is no room; all others are the client's doing.
_MAY_BE: Final = frozenset({0, 200, 202, 204, 400, 401, 403, 404, 405, 406, 409, 411, 413, 414, 415, 421, 431, 503})
_WITHOUT_TOKEN: Final = frozenset({0, 400, 401, 403, 404, 405, 413, 414, 421, 431})
_OPEN: Final = ("/readyz", "/livez", "/healthz", "/metrics")


def _message(chance: Random, *, stateless: bool) -> Any:
    method, params = chance.choice(_PARAMS)
    said: Any = {"jsonrpc": "2.0", "id": chance.choice((1, 7, "x", 2**53, "")), "method": method, "params": params}
    if stateless:
        said["params"] = {**params, "_meta": {**_META, **params.get("_meta", {})}}
    if method.startswith("notifications/"):
        del said["id"]
    for _ in range(chance.choice((0, 0, 1, 1, 2, 3))):
        said = changed(chance, said)
    return [said, said] if chance.random() < 0.03 else said


def _written(chance: Random, message: Any) -> bytes:
    body = json.dumps(message, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    if chance.random() < 0.02:
        depth = chance.choice((50, 200, 100_000))
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * depth + b"}" * depth
    # A little more than is taken.
    body = body[:300_000]
    return mutated_bytes(chance, body) if chance.random() < 0.2 else body


def _heads(chance: Random, message: Any, *, stateless: bool, session: str) -> dict[str, str]:
    found = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {TOKEN}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
    }
    if not stateless:
        return {**found, "mcp-protocol-version": "2025-06-18", "mcp-session-id": session}
    method = message.get("method") if isinstance(message, dict) else ""
    found |= {"mcp-protocol-version": "2026-07-28", "mcp-method": str(method)}
    params = message.get("params") if isinstance(message, dict) else None
    name = (params.get("name") or params.get("uri")) if isinstance(params, dict) else None
    if name is not None:
        plain = str(name).isascii() and str(name).isprintable()
        found["mcp-name"] = str(name) if plain and chance.random() < 0.8 else _encoded(str(name))
    return found


def _encoded(name: str) -> str:
    return f"=?base64?{b64encode(name.encode('utf-8', 'surrogatepass')).decode()}?="


def _bytes(chance: Random, method: str, path: str, heads: list[tuple[str, str]], body: bytes) -> bytes:
    if chance.random() < 0.2:
        size = max(chance.choice((1, 7, 1_000)), len(body) // 200)
        parts = [body[at : at + size] for at in range(0, len(body), size)]
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
        heads = [*heads, ("transfer-encoding", "chunked")]
    else:
        heads = [*heads, ("content-length", str(len(body)))]
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {said}" for name, said in heads), "", ""]
    raw = "\r\n".join(lines).encode("utf-8", "surrogatepass") + body
    return mutated_bytes(chance, raw) if chance.random() < 0.1 else raw


def requests(chance: Random) -> None:
    with visited() as house:
        _requested(house, chance)


def _requested(house: House, chance: Random) -> None:
    stateless = chance.random() < 0.6
    message = _message(chance, stateless=stateless)
    method, path = chance.choice(_METHODS), chance.choice(_PATHS)
    heads = list(_heads(chance, message, stateless=stateless, session=_session(house)).items())
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        heads = _other_heads(chance, heads)
    raw = _bytes(
        chance, method, path if chance.random() < 0.9 else mutated(chance, path), heads, _written(chance, message)
    )
    house.good.calls.clear()
    asked, answer = at(house, raw, chunks=chance.choice((1, 1, 1, 2, 5)))
    _judge(house, asked, answer)
    _leave(house, asked, answer)
    still_answers(house)


def _other_heads(chance: Random, heads: list[tuple[str, str]]) -> list[tuple[str, str]]:
    name, values = chance.choice(_HEADS)
    said = chance.choice((*values, text(chance)[:200].replace("\n", "").replace("\r", "")))
    without = [pair for pair in heads if pair[0] != name]
    return chance.choice(([*without, (name, said)], without, [*heads, (name, said)]))


def _judge(house: House, asked: Asked, answer: Answer) -> None:
    must(answer.status in _MAY_BE, f"the status {answer.status} is documented")
    must(not house.unforeseen, f"no task ends by an exception: {house.unforeseen[:1]}")
    is_known = [one.strip(" ") for one in asked.all("authorization")] and _is_token(asked.all("authorization"))
    if not is_known:
        is_open = answer.status == 200 and not house.good.calls and b"jsonrpc" not in answer.body
        must(answer.status in _WITHOUT_TOKEN or is_open, "nobody comes in without the token")
        must(not house.good.calls, "nobody calls without the token")
    _judge_messages(house, _parsed(asked.body), answer)


def _is_token(values: list[str]) -> bool:
    scheme, _, token = values[0].partition(" ")
    return len(values) == 1 and scheme.lower() == "bearer" and token.strip(" ") == TOKEN


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _judge_messages(house: House, message: Any, answer: Answer) -> None:
    wanted, id = _wanted(house, message), message.get("id") if isinstance(message, dict) else None
    must([call["name"] for call in house.good.calls] in ([], [wanted]), "no tool is called that was not asked for")
    must(answer.status == 200 or not house.good.calls, "what is refused is not called")
    if answer.status != 200 or b"jsonrpc" not in answer.body:
        return
    for said in answer.messages():
        must(said.get("jsonrpc") == "2.0", "an answer is JSON-RPC")
        if "result" in said or "error" in said:
            must(said["id"] == id or ("error" in said and said["id"] is None), "an answer is of the request")
        for block in _blocks(said):
            if str(block.get("text")).startswith("answer of "):
                must(block["text"] == f"answer of {wanted}", "an answer is of the tool that was asked")


def _blocks(said: dict[str, Any]) -> list[dict[str, Any]]:
    result = said.get("result")
    found = result.get("content") if isinstance(result, dict) else None
    return found if isinstance(found, list) else []


def _wanted(house: House, message: Any) -> str | None:
    """Return the server's own name of the tool that a message asks for."""
    params = message.get("params") if isinstance(message, dict) else None
    name = params.get("name") if isinstance(params, dict) else None
    if not isinstance(name, str):
        return None
    try:
        id = resolve(name, house.gateway.table()).id
    except ResolutionError:
        return None
    return None if id is None else house.gateway.catalog[id].origin.name


_SESSIONS: Final[dict[House, str]] = {}


def _session(house: House) -> str:
    """Return a session of the handshake era that is open."""
    if house not in _SESSIONS:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _HELLO}).encode()
        _, answer = at(house, _plain({}, body))
        _SESSIONS.clear()
        _SESSIONS[house] = answer.headers["mcp-session-id"]
    return _SESSIONS[house]


def _plain(heads: dict[str, str], body: bytes, method: str = "POST") -> bytes:
    said = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {TOKEN}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **heads,
    }
    lines = [f"{method} /mcp HTTP/1.1", *(f"{name}: {one}" for name, one in said.items()), "", ""]
    return "\r\n".join(lines).encode() + body


def _leave(house: House, asked: Asked, answer: Answer) -> None:
    """End a session that a case opened; forget ours if it ended that."""
    ours = _session(house)
    is_over = asked.method == "DELETE" and ours in asked.all("mcp-session-id")
    if is_over:
        _SESSIONS.clear()
    opened = ours if is_over else answer.headers.get("mcp-session-id", ours)
    if is_over or opened != ours:
        at(house, _plain({"mcp-session-id": opened, "mcp-protocol-version": "2025-06-18"}, b"", "DELETE"))


def called(house: House, name: str, *, stateless: bool = True) -> Answer:
    """Call a tool honestly, with the id 5."""
    modern = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": name}
    before = {"mcp-protocol-version": "2025-06-18", "mcp-session-id": "" if stateless else _session(house)}
    params = {"name": name, "arguments": {}, **({"_meta": _META} if stateless else {})}
    message = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params}
    return at(house, _plain(modern if stateless else before, json.dumps(message).encode()))[1]


def still_answers(house: House) -> None:
    """Break if an honest call is not answered, in either era."""
    for stateless in (True, False):
        answer = called(house, house.names["read"], stateless=stateless)
        texts = [block["text"] for said in answer.messages() for block in _blocks(said)]
        must(texts == ["answer of read"], "an honest call is answered")


def lines_of_clients(chance: Random) -> None:
    with visited() as house:
        _lined(house, chance)


def _lined(house: House, chance: Random) -> None:
    messages = [_message(chance, stateless=chance.random() < 0.5) for _ in range(chance.choice((1, 1, 2, 4)))]
    lines = [_written(chance, message).replace(b"\n", b" ") for message in messages]
    if chance.random() < 0.2:
        lines.append(
            chance.choice((b"", b"\xff\xfe", b"null", b"[]", b"{}", b"1" * 200_000, json.dumps(value(chance)).encode()))
        )
    house.good.calls.clear()
    answers = pipe(house).said(lines)
    asked = [_parsed(line) for line in lines]
    ids = [json.dumps(one["id"]) for one in asked if isinstance(one, dict) and "id" in one]
    # Of what is too long or too deep the ends tell whose it is.
    ids += [id.decode() for line in lines for id in _IDS.findall(line)]
    wanted = [_wanted(house, one) for one in asked]
    must(not house.unforeseen, f"no task ends by an exception: {house.unforeseen[:1]}")
    must({call["name"] for call in house.good.calls} <= {*wanted, "read"}, "no tool is called that was not asked for")
    for answer in answers:
        must(answer.get("jsonrpc") == "2.0", "an answer is JSON-RPC")
        if "result" in answer or "error" in answer:
            must(answer["id"] is None or json.dumps(answer["id"]) in ids, "an answer is of a request")


TARGETS: Final = (requests, lines_of_clients)
