"""What the stateless era says beside its messages: routing headers, hints for caches, and filters of streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.gateway.conftest import Lab, Raw, Upstreams, raw_client
from tests.gateway.doings import Server
from tests.gateway.servers.tasking import Tasking
from tests.gateway.servers.whole import STATELESS, VERSIONS
from tests.gateway.speakers import speaking_http
from tests.gateway.whole_http import WholeServer

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

_VERSION = "io.modelcontextprotocol/protocolVersion"
_CAPABLE = "io.modelcontextprotocol/clientCapabilities"
_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
MISMATCH = (400, -32020)
HEADED = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "plain": {"type": "string"},
    },
}


class _Headed(WholeServer):
    def _tool(self, name: str) -> dict[str, Any]:
        return {**super()._tool(name), **({"inputSchema": HEADED} if name == "echo" else {})}


async def _posted(
    http: Raw, method: str, params: Mapping[str, Any], headers: Mapping[str, str | None]
) -> tuple[int, Any]:
    """Post a request with no headers but these: the status, and the error's code or "result"."""
    meta = {_VERSION: STATELESS, _CAPABLE: {}, **params.get("_meta", {})}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    usual = {"accept": "application/json, text/event-stream", "mcp-protocol-version": STATELESS, "mcp-method": method}
    sent = {key: value for key, value in {**usual, **headers}.items() if value is not None}
    answer = await http.http.post(http.address + "/mcp", json=body, headers=sent)
    said = answer.json()
    return answer.status_code, said["error"]["code"] if "error" in said else "result"


CALL: dict[str, Any] = {"name": "far_echo"}
PROMPT: dict[str, Any] = {"name": "far_one"}
READ: dict[str, Any] = {"uri": "test://far/one"}
OK = (200, "result")
ROWS: Mapping[str, tuple[str, dict[str, Any], dict[str, str | None], tuple[int, Any]]] = {
    "all as it should be": ("tools/call", CALL, {"mcp-name": "far_echo"}, OK),
    "no method": ("tools/call", CALL, {"mcp-name": "far_echo", "mcp-method": None}, MISMATCH),
    "another method": ("tools/call", CALL, {"mcp-name": "far_echo", "mcp-method": "tools/list"}, MISMATCH),
    "a method in capitals": ("tools/call", CALL, {"mcp-name": "far_echo", "mcp-method": "Tools/Call"}, MISMATCH),
    "no name": ("tools/call", CALL, {}, MISMATCH),
    "the server's own name": ("tools/call", CALL, {"mcp-name": "echo"}, MISMATCH),
    "a name in capitals": ("tools/call", CALL, {"mcp-name": "far_Echo"}, MISMATCH),
    "a name that is encoded": ("tools/call", CALL, {"mcp-name": "=?base64?ZmFyX2VjaG8=?="}, OK),
    "a name that is encoded wrongly": ("tools/call", CALL, {"mcp-name": "=?base64?ZmFyX2?="}, MISMATCH),
    "a prompt": ("prompts/get", PROMPT, {"mcp-name": "far_one"}, OK),
    "another prompt": ("prompts/get", PROMPT, {"mcp-name": "far_two"}, MISMATCH),
    "a resource": ("resources/read", READ, {"mcp-name": "test://far/one"}, OK),
    "another resource": ("resources/read", READ, {"mcp-name": "test://far/two"}, MISMATCH),
    "no resource": ("resources/read", READ, {}, MISMATCH),
    "a list needs no name": ("tools/list", {}, {}, OK),
    "no version": ("tools/list", {}, {"mcp-protocol-version": None}, (400, None)),
    "a version beside the body's": ("tools/list", {"_meta": {_VERSION: "2027-01-01"}}, {}, MISMATCH),
    "a version that nobody speaks": (
        "tools/list",
        {"_meta": {_VERSION: "2027-01-01"}},
        {"mcp-protocol-version": "2027-01-01"},
        (400, -32022),
    ),
    "a method that nobody knows": ("tools/none", {}, {}, (404, -32601)),
    "a parameter": (
        "tools/call",
        {**CALL, "arguments": {"region": "eu", "count": 3, "dry": True}},
        {"mcp-name": "far_echo", "mcp-param-region": "eu", "mcp-param-count": "3", "mcp-param-dry": "true"},
        OK,
    ),
    "a parameter without its header": (
        "tools/call",
        {**CALL, "arguments": {"region": "eu"}},
        {"mcp-name": "far_echo"},
        MISMATCH,
    ),
    "another parameter": (
        "tools/call",
        {**CALL, "arguments": {"region": "eu"}},
        {"mcp-name": "far_echo", "mcp-param-region": "us"},
        MISMATCH,
    ),
    "a number that is another": (
        "tools/call",
        {**CALL, "arguments": {"count": 3}},
        {"mcp-name": "far_echo", "mcp-param-count": "4"},
        MISMATCH,
    ),
    "a truth that is another": (
        "tools/call",
        {**CALL, "arguments": {"dry": True}},
        {"mcp-name": "far_echo", "mcp-param-dry": "false"},
        MISMATCH,
    ),
    "a parameter that has none": ("tools/call", {**CALL, "arguments": {"plain": "x"}}, {"mcp-name": "far_echo"}, OK),
}


@pytest.mark.parametrize("row", ROWS)
async def test_headers_say_what_the_body_says(row: str, lab: Lab, upstreams: Upstreams) -> None:
    method, params, headers, expected = ROWS[row]
    far = _Headed("far", STATELESS)
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url), lab.normal("w", "get")) as address,
        raw_client(address) as http,
    ):
        status, code = await _posted(http, method, params, headers)
        assert (status, code) == expected or (expected[1] is None and status == expected[0])


@pytest.mark.parametrize("version", VERSIONS)
async def test_hints_for_caches_are_there_where_the_era_has_them(version: str, lab: Lab, upstreams: Upstreams) -> None:
    """A gateway's lists are each client's own, and fresh at once; of what a server reads out its own word counts."""
    old, new = WholeServer("old", "2025-11-25"), WholeServer("new", STATELESS)
    fields = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
    async with (
        upstreams.serve(old.server) as first,
        upstreams.serve(new.server) as second,
        lab.serving(lab.at("old", first), lab.at("new", second)) as address,
        speaking_http(version, address + "/mcp") as client,
    ):
        found = {method: await client.ask(method) for method in fields}
        found |= {key: await client.ask("resources/read", uri=Server(key, "").uri("one")) for key in ("old", "new")}
        found |= {"discover": client.said, "call": await client.ask("tools/call", name="new_echo")}
        hints = {name: (result.get("ttlMs"), result.get("cacheScope")) for name, result in found.items()}
    none = (None, None)
    if version == STATELESS:
        listed = dict.fromkeys(fields, (0, "private"))
        assert hints == {
            **listed,
            "old": (0, "private"),
            "new": (5, "private"),
            "discover": hints["discover"],
            "call": none,
        }
        assert hints["discover"][1] in {"private", "public"}
        assert isinstance(hints["discover"][0], int)
    else:
        assert set(hints.values()) == {none}


LISTENING: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "nothing": ({}, {}),
    "tools": ({"toolsListChanged": True}, {"toolsListChanged": True}),
    "what is off": ({"toolsListChanged": False, "promptsListChanged": True}, {"promptsListChanged": True}),
    "resources that lead somewhere": (
        {"resourceSubscriptions": ["test://far/one", "truename://none/x", "test://far/one"]},
        {"resourceSubscriptions": ["test://far/one"]},
    ),
    "resources that lead nowhere": ({"resourceSubscriptions": ["truename://none/x"]}, {}),
    "what nobody knows": ({"vendor": [1], "resourcesListChanged": True}, {"resourcesListChanged": True}),
}


@pytest.mark.parametrize("row", LISTENING)
async def test_what_is_acknowledged_is_what_will_be_told(row: str, lab: Lab, upstreams: Upstreams) -> None:
    wanted, honoured = LISTENING[row]
    far = WholeServer("far", STATELESS)
    async with (
        upstreams.serve(far.server) as url,
        lab.serving(lab.at("far", url), lab.normal("w", "get")) as address,
        speaking_http(STATELESS, address + "/mcp") as client,
    ):
        number = await client.begin("subscriptions/listen", {"notifications": wanted})
        said = await client.hears("notifications/subscriptions/acknowledged")
        assert said["notifications"] == honoured
        assert said["_meta"][_SUBSCRIPTION] == number
        both = await client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        await client.until(lambda: len(client.told("notifications/subscriptions/acknowledged")) == 2)
        await client.ask("tools/call", name="far_touch")
        await client.ask("tools/call", name="far_grow")
        await client.until(
            lambda: both in [one["_meta"][_SUBSCRIPTION] for one in client.told("notifications/tools/list_changed")]
        )
        about = {
            "notifications/tools/list_changed": "toolsListChanged",
            "notifications/resources/updated": "resourceSubscriptions",
        }
        told = {about[one["method"]] for one in client.heard if one["method"] in about and _about(one) == number}
        assert told <= honoured.keys()
        assert ("resourceSubscriptions" in told) == ("resourceSubscriptions" in honoured)


def _about(message: Mapping[str, Any]) -> Any:
    return message["params"]["_meta"][_SUBSCRIPTION]


async def test_a_stream_of_tasks_has_to_be_declared(lab: Lab, upstreams: Upstreams) -> None:
    async with (
        upstreams.serve(Tasking("far", refuses="handshake").server) as url,
        lab.serving(lab.at("far", url)) as address,
        raw_client(address) as http,
    ):
        with anyio.fail_after(5):
            answer = (await http.post("subscriptions/listen", {"notifications": {"taskIds": ["1"]}})).json()
        assert answer["error"]["code"] == -32021
