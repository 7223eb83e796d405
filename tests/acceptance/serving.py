"""What a running gateway lists to a client: its servers, itself and the client are real, over HTTP, in this process."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.gateway.conftest import Upstreams
from truename.catalog import ServerIdentity
from truename.config import Config, ServerConfig, Settings
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from truename import Catalog

__all__ = ["listed"]

_VERSION: Final = "2025-11-25"
_ACCEPT: Final = {"accept": "application/json, text/event-stream"}
_PATIENCE: Final = 60.0
_UNKNOWN: Final = {"code": -32601, "message": "Method not found"}


def listed(
    catalog: Catalog, *, style: str, path: str = "/mcp", client: Mapping[str, Any] | None, headers: Mapping[str, str]
) -> tuple[Mapping[str, Any], ...]:
    """Return the tools that a gateway in front of these servers lists under this path, as they are on the wire.

    ``client`` is the clientInfo of who asks, ``headers`` what it sends besides. Who is asking is looked at as
    ``names = "detect"`` does it.
    """
    servers = _servers(catalog)
    asked = (servers, dict(catalog.aliases), style, path, client or {"name": ""}, dict(headers))
    return tuple(json.loads(_listed(json.dumps(asked))))


def _servers(catalog: Catalog) -> list[dict[str, Any]]:
    """Return servers whose tools have these ids: a server's entry says which integration and versions it has."""
    servers: list[dict[str, Any]] = []
    for id, tool in catalog.items():
        identity = {"integration": id.integration, "version": id.integration_version}
        name = tool.origin.name
        here = next((one for one in servers if _has_room(one, tool.origin.server, identity, name)), None)
        if here is None:
            key = tool.origin.server if all(one["key"] != tool.origin.server for one in servers) else f"s{len(servers)}"
            here = {"key": key, "label": tool.origin.server, "identity": identity, "versions": {}, "tools": []}
            servers.append(here)
        here["tools"].append(tool.definition)
        here["versions"][name] = id.version
    return servers


def _has_room(server: Mapping[str, Any], label: str, identity: Mapping[str, Any], name: str) -> bool:
    return (server["label"], server["identity"]) == (label, identity) and name not in server["versions"]


@lru_cache(maxsize=256)
def _listed(asked: str) -> str:
    found: list[str] = []
    anyio.run(_ask, json.loads(asked), found)
    return found[0]


async def _ask(asked: Sequence[Any], found: list[str]) -> None:
    servers, aliases, style, path, client, headers = asked
    settings = Settings(style=style, aliases=aliases, names="detect", state="memory", tool_search="off")
    with anyio.fail_after(_PATIENCE):
        async with Upstreams().app(_app(servers)) as address:
            config = Config(
                servers=tuple(_configured(one, f"{address}/{at}") for at, one in enumerate(servers)), settings=settings
            )
            async with Gateway(config) as gateway, listening(gateway) as url, httpx2.AsyncClient() as http:
                await gateway.settle()
                found.append(json.dumps(await _shaken(http, f"{url}{path}", client, headers)))


def _configured(server: Mapping[str, Any], url: str) -> ServerConfig:
    identity = ServerIdentity(**server["identity"], versions=server["versions"])
    return ServerConfig(key=server["key"], url=url, type="http", identity=identity)


def _app(servers: Sequence[Mapping[str, Any]]) -> ASGIApp:
    """Return all servers, each under its number."""

    async def answer(request: Request) -> Response:
        message = await request.json()
        if "id" not in message:
            return Response(status_code=202)
        body = {"jsonrpc": "2.0", "id": message["id"]}
        result = _result(message, servers[request.path_params["at"]]["tools"])
        if result is None:
            return JSONResponse({**body, "error": _UNKNOWN}, status_code=404)
        return JSONResponse({**body, "result": result})

    routed = Starlette(routes=[Route("/{at:int}", answer, methods=["POST"])])

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await routed(scope, receive, send)

    return app


def _result(message: Mapping[str, Any], tools: Sequence[Any]) -> dict[str, Any] | None:
    if message["method"] == "initialize":
        about = {"name": "lister", "version": "1"}
        return {"protocolVersion": _VERSION, "capabilities": {"tools": {}}, "serverInfo": about}
    return {"tools": tools} if message["method"] == "tools/list" else {} if message["method"] == "ping" else None


async def _shaken(
    http: httpx2.AsyncClient, url: str, client: Mapping[str, Any], headers: Mapping[str, str]
) -> list[Any]:
    """Return the tools, page by page, after the handshake of a client that says this of itself."""
    about = {"protocolVersion": _VERSION, "capabilities": {}, "clientInfo": {"version": "1", **client}}
    answered = await _posted(http, url, {**_ACCEPT, **headers}, _request("initialize", about))
    session = {**_ACCEPT, **headers, "mcp-protocol-version": _VERSION}
    session["mcp-session-id"] = answered.headers["mcp-session-id"]
    await _posted(http, url, session, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    tools: list[Any] = []
    cursor: Mapping[str, str] = {}
    while True:
        result = _read(await _posted(http, url, session, _request("tools/list", cursor)))["result"]
        tools += result["tools"]
        if not result.get("nextCursor"):
            return tools
        cursor = {"cursor": result["nextCursor"]}


def _request(method: str, params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": method, "method": method, "params": params}


async def _posted(
    http: httpx2.AsyncClient, url: str, headers: Mapping[str, str], message: Mapping[str, Any]
) -> httpx2.Response:
    answered = await http.post(url, json=message, headers=dict(headers))
    answered.raise_for_status()
    return answered


def _read(answered: httpx2.Response) -> Any:
    if answered.headers["content-type"].startswith("text/event-stream"):
        data = [line.removeprefix("data:") for line in answered.text.splitlines() if line.startswith("data:")]
        return json.loads(next(line for line in data if line.strip()))
    return answered.json()
