"""What servers send: bytes of streams, answers to calls with all their heads, and lists of tools.

A hostile server harms nobody but itself: a call of it ends in time with an answer of its own, and others are as they
were.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz.house import SETTINGS, Answer, Hostile, House, upstream, visited
from tests.fuzz.judging import must
from tests.fuzz.mutation import changed, mutated_bytes, text, value
from tests.fuzz.targets_envelopes import called, still_answers
from truename import dialects
from truename.config import Config, ServerConfig
from truename.gateway import Gateway
from truename.gateway.protocol.event_stream import EventReader
from truename.gateway.protocol.lines import LineReader
from truename.gateway.upstream.messages import Malformed, read_message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random

__all__ = ["TARGETS"]

_EVENTS: Final = (
    b'id: 1\nretry: 500\ndata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n',
    b": ping\r\n\r\nevent: message\r\ndata: a\r\ndata: b\r\n\r\n",
    b"data\n\ndata:\n\nid:\0\ndata: x\n\nretry: 99999999999\n\n",
    b"\xef\xbb\xbfdata: x\r\rdata: y\n\r\n",
    b'{"jsonrpc":"2.0","id":7,"result":{"content":[]}}\n\n{"id":8}\n',
)
_LIMIT: Final = 700


def streams(chance: Random) -> None:
    raw = b"".join(mutated_bytes(chance, chance.choice(_EVENTS)) for _ in range(chance.choice((1, 2, 5))))
    if chance.random() < 0.2:
        raw = raw.replace(b"x", b"x" * chance.choice((500, 900, 5_000)))
    for reader in (LineReader, EventReader):
        at_once = list(reader(_LIMIT).feed(raw))
        one = reader(_LIMIT)
        in_parts = [found for part in _parts(chance, raw) for found in one.feed(part)]
        must(at_once == in_parts, "how bytes are cut changes nothing")


def _parts(chance: Random, raw: bytes) -> Iterator[bytes]:
    while raw:
        size = chance.choice((1, 1, 2, 7, 100, 1_000))
        yield raw[:size]
        raw = raw[size:]


_MESSAGES: Final[tuple[dict[str, Any], ...]] = (
    {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "x"}]}},
    {"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "x", "data": {"a": 1}}},
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
    {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"},
    {"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}},
    {"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {"message": "x", "requestedSchema": {}}},
    {"jsonrpc": "2.0", "id": 9, "method": "roots/list"},
    {"jsonrpc": "2.0", "id": 9, "method": "ping"},
)


def messages_of_servers(chance: Random) -> None:
    raw = json.dumps(changed(chance, chance.choice(_MESSAGES))).encode()
    found = read_message(mutated_bytes(chance, raw))
    must(found is None or isinstance(found, Malformed) or found.jsonrpc == "2.0", "it is a message or none")


_HEADS: Final = (
    b"content-type: application/json",
    b"content-type: text/event-stream",
    b"content-type: text/html",
    b"content-encoding: gzip",
    b"transfer-encoding: chunked",
    b"mcp-session-id: other",
    b"mcp-session-id: a\x7fb",
    b"location: http://127.0.0.1:1/",
    b"www-authenticate: Bearer",
    b"retry-after: 1",
    b"connection: close",
    b"set-cookie: a=b",
)
_STATUS: Final = (
    *(b"200 OK",) * 8,
    *(b"202 Accepted", b"204 No", b"302 Found", b"400 Bad", b"401 No", b"404 Not", b"500 X"),
)


def answers_of_servers(chance: Random) -> None:
    with visited() as house:
        _answered(house, chance)


def _answered(house: House, chance: Random) -> None:
    parts = [chance.choice(_MESSAGES[:1] * 3 + _MESSAGES) for _ in range(chance.choice((1, 1, 1, 2, 4)))]
    for _ in range(chance.choice((0, 1, 1, 2))):
        parts[0] = changed(chance, parts[0])
    texts = [json.dumps(part).encode().replace(b'"id": 1,', b'"id": @ID@,') for part in parts]
    is_stream = chance.random() < 0.5
    body = b"".join(b"data: " + one + b"\n\n" for one in texts) if is_stream else b"".join(texts)
    kind = _HEADS[is_stream]
    heads = [kind, b"connection: close", *([chance.choice(_HEADS)] if chance.random() < 0.2 else [])]
    if chance.random() < 0.3:
        heads.append(b"content-length: %d" % chance.choice((len(body), 0, 5, 10**9, 10**30)))
    raw = b"HTTP/1.1 " + chance.choice(_STATUS) + b"\r\n" + b"\r\n".join(heads) + b"\r\n\r\n" + body
    house.bad.raw = mutated_bytes(chance, raw) if chance.random() < 0.3 else raw
    house.good.calls.clear()
    answer = called(house, house.names["hostile"])
    must(not house.unforeseen, f"no task ends by an exception: {house.unforeseen[:1]}")
    must(not house.good.calls, "a server has no other called")
    _judge(answer)
    still_answers(house)


def _judge(answer: Answer) -> None:
    # 404 is how the protocol says -32601, which is what the SDK makes of a 404.
    must(answer.status in {200, 404}, f"a call that was admitted is answered: {answer.status}")
    last = answer.messages()[-1]
    must(last.get("id") == 5, "with an answer")
    must(isinstance(last.get("result"), dict) or isinstance(last.get("error"), dict), "that is a result or an error")
    must(len(answer.body) < 300_000, "of a bounded length")


_ABLE: Final = {"tools": {"listChanged": True}, "prompts": {}, "resources": {"subscribe": True}, "logging": {}}
_FIRST: Final = {"protocolVersion": "2025-06-18", "capabilities": _ABLE, "serverInfo": {"name": "x", "version": "1"}}


def lists_of_servers(chance: Random) -> None:
    tool = {"name": text(chance), "description": text(chance), "inputSchema": {"type": "object", "properties": {}}}
    listed: Any = {"tools": [tool, changed(chance, tool), {"name": "read", "inputSchema": {"type": "object"}}]}
    first: Any = {**_FIRST, "instructions": text(chance)}
    hostile = Hostile(
        said={
            "tools/list": changed(chance, listed) if chance.random() < 0.7 else value(chance),
            "initialize": changed(chance, first) if chance.random() < 0.3 else first,
            "prompts/list": changed(chance, {"prompts": [{"name": text(chance), "arguments": [{"name": "a"}]}]}),
            "resources/list": changed(chance, {"resources": [{"name": "x", "uri": text(chance)}]}),
        }
    )
    with visited() as house:
        house.do(asyncio.wait_for(_listed(house.good, hostile), 20.0))
        must(not house.unforeseen, f"no task ends by an exception: {house.unforeseen[:1]}")


async def _listed(good: Hostile, hostile: Hostile) -> None:
    async with upstream(good) as one, upstream(hostile) as other:
        servers = (ServerConfig(key="g", url=one, type="http"), ServerConfig(key="b", url=other, type="http"))
        async with Gateway(Config(servers=servers, settings=SETTINGS)) as gateway:
            table, catalog = gateway.table(), gateway.catalog
            must(len(set(table.values())) == len(table), "a table is one-to-one")
            own = {catalog[id].origin.name for id in table if catalog[id].origin.server_id == "g"}
            must(own == set(good.tools), "the tools of others are there")
            must(all(not dialects.get("universal").check(name) for name in table.values()), "a name is legal")


TARGETS: Final = (streams, messages_of_servers, answers_of_servers, lists_of_servers)
