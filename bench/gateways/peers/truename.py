"""Truename from this repository, run by the interpreter that runs the benchmark."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bench.gateways.cases import LARGE
from bench.gateways.peers.base import Launch, Peer

if TYPE_CHECKING:
    from bench.gateways.peers.base import Place

__all__ = ["PEERS"]

_SOURCE: Final = str(Path(__file__).resolve().parents[3] / "src")
_RULES: Final = [
    {"name": "no deleting", "outcome": "deny", "tools": ["*/delete*", "*/drop*"]},
    {"name": "look first", "outcome": "ask", "tools": ["*/pay*"]},
    {"name": "the rest", "outcome": "allow", "tools": ["*"]},
]


def _all_off(_: Place) -> dict[str, Any]:
    return {"trust": {"pins": "memory"}}


def _defaults(_: Place) -> dict[str, Any]:
    return {}


def _all_on(place: Place) -> dict[str, Any]:
    return {
        "policy": {"default": "allow", "rules": _RULES},
        "audit": {"path": str(place.folder / "audit")},
        "telemetry": {"metrics": True, "traces": True},
    }


def _launch(place: Place, settings: Any) -> Launch:
    large = {"max_body": 4 * place.setup.largest} if place.setup.largest >= LARGE else {}
    ours = {"state": str(place.folder / "state.db"), **large, **settings(place)}
    if place.setup.tls_to_clients:
        ours |= {"tls_certificate": str(place.certificate.certificate), "tls_key": str(place.certificate.key)}
    config = {"mcpServers": {one.key: one.entry() for one in place.servers}, "truename": ours}
    command = ("-m", "truename", "serve", place.write("mcp.json", config), "--http", f"127.0.0.1:{place.port}")
    paths = os.pathsep.join(filter(None, (_SOURCE, os.environ.get("PYTHONPATH", ""))))
    spans = f"http://127.0.0.1:{place.spans_port}"
    env = {"PYTHONPATH": paths, "OTEL_EXPORTER_OTLP_ENDPOINT": spans, **place.trust}
    return Launch((sys.executable, *command), env)


PEERS: Final = (
    Peer(
        "truename-off",
        "Truename, all off",
        "pins in memory; no policy, audit log, metrics or traces",
        partial(_launch, settings=_all_off),
    ),
    Peer(
        "truename",
        "Truename, defaults",
        "as installed: pins in the state database",
        partial(_launch, settings=_defaults),
    ),
    Peer(
        "truename-on",
        "Truename, all on",
        "a policy of three rules, pins, audit log, metrics, traces of every call",
        partial(_launch, settings=_all_on),
        lacks={"messages over 4 MiB": "it refuses larger arguments where a policy decides on a call"},
    ),
)
