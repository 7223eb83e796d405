"""Canaries: a secret in every place where secrets live, and none in anything that the process says, sends or stores.

A real `truename serve` runs in a process of its own; each canary may be seen only by whom it is for. Those of people,
and of the gateway as a client of authorization servers, are in `test_canary_credentials.py`.
"""

from __future__ import annotations

import json
import signal
import sys
from typing import TYPE_CHECKING

import anyio
import httpx2
import pytest

from tests.auth.canaries import Far, canary, environment, farther, found_in, served, written
from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

TOKEN = canary("static-token")
UPSTREAM = canary("upstream-header")
ENVIRON = canary("environment")
ENV_FILE = canary("env-file")
AUDIT_KEY = canary("audit-key")
ARGUMENT = canary("argument")
PASSWORD = canary("password")
WRONG = canary("wrong-token")
QUERY = canary("query")
ALL = (TOKEN, UPSTREAM, ENVIRON, ENV_FILE, AUDIT_KEY, ARGUMENT, PASSWORD, WRONG, QUERY)


@pytest.fixture
def far() -> Iterator[Far]:
    with farther() as server:
        yield server


def configuration(folder: Path, far: Far) -> Path:
    (folder / "secrets.env").touch(mode=0o600)
    (folder / "secrets.env").write_text(f"FAR_TOKEN={UPSTREAM}\nCHILD={ENV_FILE}\n")
    child = {
        "command": sys.executable,
        "args": ["-m", "tests.gateway.servers.normal", "near", "read", "die"],
        "cwd": str(ROOT),
        "env": {"CHILD": "${CHILD}"},
    }
    document = {
        "mcpServers": {
            "far": {"type": "http", "url": f"{far.address}/mcp", "headers": {"Authorization": "Bearer ${FAR_TOKEN}"}},
            "near": child,
            "gone": {"type": "http", "url": f"http://127.0.0.1:9/mcp?key={QUERY}"},
        },
        "truename": {
            "env_file": "secrets.env",
            "token": "${GATE_TOKEN}",
            "audit": {"path": "audit", "key": "${AUDIT_KEY}"},
            "telemetry": {"metrics": True, "traces": True},
            "policy": {"default": "allow"},
        },
    }
    path = folder / "mcp.json"
    path.write_text(json.dumps(document))
    return path


async def call(http: httpx2.AsyncClient, url: str, name: str, token: str = TOKEN, **arguments: str) -> str:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": name, "arguments": arguments, "_meta": meta}
    headers = {
        "authorization": f"Bearer {token}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": name,
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return (await http.post(url, json=body, headers=headers)).text


async def test_no_secret_leaves_the_place_where_it_belongs(tmp_path: Path, far: Far) -> None:
    told: list[str] = []
    environ = environment(
        tmp_path,
        GATE_TOKEN=TOKEN,
        AUDIT_KEY=AUDIT_KEY,
        UNRELATED=ENVIRON,
        OTEL_EXPORTER_OTLP_ENDPOINT=f"{far.address}/otlp",
    )
    with served(tmp_path, configuration(tmp_path, far), environ) as (process, url):
        async with httpx2.AsyncClient(timeout=30) as http:
            for name in ("far_read", "far_fails", "near_read", "near_die", "gone_x", "nothing"):
                arguments = {"text": "x"} if name == "near_read" else {"text": ARGUMENT, "password": PASSWORD}
                told.append(await call(http, url, name, **arguments))
            told.append(await call(http, url, "far_read", token=WRONG))
            metrics = await http.get(
                url.removesuffix("/mcp") + "/metrics", headers={"authorization": f"Bearer {TOKEN}"}
            )
            assert metrics.status_code == 200
            told.append(metrics.text)
            told += [(await http.get(url.removesuffix("/mcp") + path)).text for path in ("/readyz", "/metrics")]
        (tmp_path / "mcp.json").write_text(f'{{"mcpServers": {{"far": 5}}, "truename": {{"token": "{TOKEN}"}}}}')
        process.send_signal(signal.SIGHUP)
        with anyio.fail_after(15):
            while '"errors"' not in (tmp_path / "err").read_text():
                await anyio.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        await anyio.to_thread.run_sync(process.wait)

    calls = far.at("/mcp")
    spans = [text for path, text in far.heard if path != "/mcp"]
    # The search finds what is there: the server was sent its own token and the arguments, and spans were sent.
    assert any(UPSTREAM in text for text in calls)
    assert any(ARGUMENT in text for text in calls)
    assert any("truename.tool.id" in text for text in spans)
    assert '"kind":"call"' in "".join(path.read_text() for path in (tmp_path / "audit").glob("*.jsonl"))
    for line in (tmp_path / "err").read_text().splitlines():
        assert line.isprintable()

    places = {
        "answers": told,
        "spans": spans,
        "calls": [text.replace(UPSTREAM, "").replace(ARGUMENT, "").replace(PASSWORD, "") for text in calls],
        **written(tmp_path, {"secrets.env", "mcp.json"}),
    }
    assert found_in(places, {one: one for one in ALL}) == []
