"""LiteLLM's proxy with its MCP gateway, without a database."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.gateways.environments import PythonEnvironment
from bench.gateways.peers.base import HANDSHAKE_ONLY, MESSAGES_TO_4_MIB, Launch, Peer

if TYPE_CHECKING:
    from bench.gateways.peers.base import Address, Place

__all__ = ["PEERS"]

_KEY: Final = f"sk-{secrets.token_hex(16)}"


def _server(server: Address) -> dict[str, Any]:
    if server.url:
        return {"url": server.url, "transport": "http", "allow_all_keys": True}
    return {**server.entry(), "transport": "stdio", "allow_all_keys": True}


def _launch(place: Place) -> Launch:
    config = {
        "model_list": [],
        "general_settings": {"master_key": _KEY},
        "mcp_servers": {one.key: _server(one) for one in place.servers},
    }
    # JSON is YAML.
    command = (
        *(str(place.installed / "bin" / "litellm"), "--config", place.write("litellm.yaml", config)),
        *("--host", "127.0.0.1", "--port", str(place.port), "--telemetry", "False"),
    )
    tls = place.setup.tls_to_clients
    pair = ("--ssl_certfile_path", str(place.certificate.certificate), "--ssl_keyfile_path", str(place.certificate.key))
    env = {
        "LITELLM_ENABLE_MCP_STDIO": "true",
        "LITELLM_MCP_STDIO_EXTRA_COMMANDS": Path(sys.executable).name,
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "LITELLM_LOG": "ERROR",
        **place.trust,
    }
    return Launch(command + (pair if tls else ()), env, "/mcp/", {"authorization": f"Bearer {_KEY}"})


PEERS: Final = (
    Peer(
        "litellm",
        "LiteLLM",
        "its proxy with one worker, servers in its configuration file, no database, a master key",
        _launch,
        PythonEnvironment(("litellm[proxy]==1.108.7",)),
        lacks=HANDSHAKE_ONLY | MESSAGES_TO_4_MIB,
    ),
)
