"""Where servers may lead the gateway: an address is judged whenever it is connected to, in every transport."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tests.conformance.fixture import Everything, refusing
from tests.gateway.conftest import connected, text_of
from tests.gateway.old_transport import old_app
from tests.support.gateway_addresses import Service
from truename.config import ServerConfig

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from tests.gateway.conftest import Lab, Upstreams


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Service:
    service = Service("tools.example", socket.getaddrinfo)
    monkeypatch.setattr(socket, "getaddrinfo", service)
    return service


pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.parametrize(
    "host",
    [
        *("169.254.169.254", "2852039166", "0xa9.0xfe.0xa9.0xfe", "0251.0xfea9fe", "[::ffff:169.254.169.254]"),
        *("[fe80::1]", "100.100.100.200", "[fd00:ec2::254]", "0.0.0.0"),
    ],
)
async def test_metadata_services_are_never_gone_to_however_they_are_written(host: str, kind: Any, lab: Lab) -> None:
    async with lab.gateway(ServerConfig(key="far", url=f"http://{host}/mcp", type=kind)) as gateway:
        told = gateway.status().servers[0].error or ""
    assert "is not contacted" in told
    assert "allow_addresses" in told


def _closing(app: ASGIApp) -> ASGIApp:
    """Have each request come on a connection of its own."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def close(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"connection", b"close")]
            await send(message)

        await app(scope, receive, close if scope["type"] == "http" else send)

    return answer


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_name_that_is_bound_anew_leads_nowhere_and_comes_back_when_it_does(
    kind: Any, lab: Lab, upstreams: Upstreams, names: Service
) -> None:
    server = Everything().server
    server.middleware.append(refusing("stateless"))
    app = _closing(server.streamable_http_app(host="tools.example") if kind == "http" else old_app(server))
    async with upstreams.app(app) as url:
        named = url.replace("127.0.0.1", "tools.example") + ("/mcp" if kind == "http" else "/sse")
        far = ServerConfig(key="far", url=named, type=kind)
        async with lab.serving(far) as address, connected(address + "/mcp", "2026-07-28") as client:
            assert text_of(await client.call_tool("test_simple_text", {})).startswith("This is")
            names.last = "169.254.169.254"
            refused = await client.call_tool("test_simple_text", {})
            assert refused.is_error
            assert "resolves to 169.254.169.254, which is a metadata service" in text_of(refused)
            names.last = "127.0.0.1"
            assert text_of(await client.call_tool("test_simple_text", {})).startswith("This is")


async def test_a_name_of_a_metadata_service_is_not_gone_to(lab: Lab, names: Service) -> None:
    names.last = "169.254.169.254"
    async with lab.gateway(lab.at("far", "http://tools.example:8000/mcp")) as gateway:
        told = gateway.status().servers[0].error or ""
    assert "'far' is not contacted (tools.example resolves to 169.254.169.254, which is a metadata service)" in told


@pytest.mark.parametrize("kind", ["http", "sse"])
@pytest.mark.parametrize("place", ["http://169.254.169.254/latest", "http://127.0.0.2:1/mcp", "//0/x"])
async def test_a_redirect_leads_to_no_other_host(place: str, kind: Any, lab: Lab, upstreams: Upstreams) -> None:
    reached = []

    async def away(request: Request) -> Response:
        reached.append(request.url.path)
        return RedirectResponse(place, 307)

    app = Starlette(routes=[Route("/mcp", away, methods=["GET", "POST", "DELETE"])])
    async with (
        upstreams.app(app) as url,
        lab.gateway(ServerConfig(key="far", url=f"{url}/mcp", type=kind)) as gateway,
    ):
        told = gateway.status().servers[0].error or ""
    assert reached
    assert "another address" in told or "redirect to" in told


async def test_an_allowed_network_is_gone_to(lab: Lab) -> None:
    async with lab.gateway(lab.at("far", "http://0.0.0.0:9/mcp"), allow_addresses=("0.0.0.0/32",)) as gateway:
        told = gateway.status().servers[0].error or ""
    assert "cannot be reached" in told
