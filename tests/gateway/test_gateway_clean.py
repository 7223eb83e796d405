"""What servers are given of the gateway's own: no variable that they were not promised, and no client's credential."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.gateway.conftest import connected
from truename.config import ServerConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from starlette.requests import Request

    from tests.gateway.conftest import Lab, Upstreams

pytestmark = pytest.mark.anyio

CANARY = "canary-7f1c2e"
SECRETS = (
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GITHUB_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    *("KUBECONFIG", "DATABASE_URL", "SSH_AUTH_SOCK", "PGPASSWORD", "NPM_TOKEN", "UV_INDEX_URL", "PIP_INDEX_URL"),
    *("TRUENAME_VAULT_KEY", "TRUENAME_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP", "NODE_OPTIONS", "BASH_ENV", "GIT_SSH_COMMAND"),
)
# All that a program may have of the gateway's environment: what the page says.
PROMISED = {
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("UV_CACHE_DIR", "UV_SYSTEM_CERTS", "npm_config_cache"),
}
# Python's own, made where the locale says nothing.
OWN = {"LC_CTYPE"}


async def test_a_program_has_what_its_entry_names_and_nothing_of_anybody_else(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SECRETS:
        monkeypatch.setenv(name, CANARY)
    for name in PROMISED - set(os.environ):
        monkeypatch.setenv(name, "promised")
    told = tmp_path / "told.json"
    code = f"import json, os; open({str(told)!r}, 'w').write(json.dumps(dict(os.environ)))"
    near = ServerConfig(key="near", command=sys.executable, args=("-c", code), env={"MINE": "1", "HOME": "/mine"})
    other = ServerConfig(key="other", command=sys.executable, args=("-c", ""), env={"OTHERS_TOKEN": CANARY})
    async with lab.gateway(other, near):
        pass
    found: dict[str, str] = json.loads(told.read_text())
    assert CANARY not in told.read_text()
    assert set(found) - OWN == PROMISED | {"MINE"}
    assert (found["MINE"], found["HOME"], found["PATH"]) == ("1", "/mine", os.environ["PATH"])


async def test_a_shell_function_is_no_promised_value(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "() { canary; }")
    told = tmp_path / "told"
    code = f"import os; open({str(told)!r}, 'w').write(str('TERM' in os.environ))"
    async with lab.gateway(ServerConfig(key="near", command=sys.executable, args=("-c", code))):
        pass
    assert told.read_text() == "False"


class Listener:
    """A server of the stateless era that keeps all that it is sent: heads, bodies, addresses."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.called = 0

    async def hear(self, request: Request) -> Response:
        body = await request.body()
        self.heard.append(f"{request.url} {request.headers.raw!r} {body!r}")
        if request.method != "POST":
            return Response(status_code=405)
        message = json.loads(body)
        if "id" not in message:
            return Response(status_code=202)
        return JSONResponse({"jsonrpc": "2.0", "id": message["id"], "result": self.answer(message["method"])})

    def answer(self, method: str) -> dict[str, Any]:
        if method == "tools/call":
            self.called += 1
            return {"resultType": "complete", "content": [{"type": "text", "text": "done"}]}
        listed = {"ttlMs": 0, "cacheScope": "public", "resultType": "complete"}
        if method == "tools/list":
            return {**listed, "tools": [{"name": "get", "inputSchema": {"type": "object"}}]}
        if method == "initialize":
            version = "2025-06-18"
            return {
                "protocolVersion": version,
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "s", "version": "1"},
            }
        return {
            **listed,
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s"},
        }


@pytest.mark.parametrize("isolation", ["shared", "session", "user"])
async def test_what_a_client_shows_at_the_door_reaches_no_server(
    isolation: Any, lab: Lab, upstreams: Upstreams, era: str, raw: Callable[[str], Any]
) -> None:
    """A token is for the gateway alone: a server that got it could be anybody to others (token passthrough)."""
    listener = Listener()
    app = Starlette(routes=[Route("/mcp", listener.hear, methods=["GET", "POST", "DELETE"])])
    shown = {
        "authorization": f"Bearer {CANARY}",
        "cookie": f"session={CANARY}",
        "proxy-authorization": f"Basic {CANARY}",
        "x-api-key": CANARY,
        "x-forwarded-for": CANARY,
    }
    async with upstreams.app(app) as url:
        far = lab.at("far", f"{url}/mcp", headers={"x-own": "gateway"}, isolation=isolation)
        async with lab.serving(far, token=CANARY) as address, raw(address) as http:
            http.http.headers.update(shown)
            if era == "legacy":
                target = streamable_http_client(address + "/mcp", http_client=http.http)
                async with connected(target, era) as client:
                    await client.call_tool("get", {"text": "x"})
            else:
                await http.result("tools/call", {"name": "get", "arguments": {"text": "x"}})
    assert listener.called == 1
    assert all("x-own" in one for one in listener.heard)
    assert not [one for one in listener.heard if CANARY in one]
