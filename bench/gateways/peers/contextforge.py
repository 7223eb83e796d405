"""ContextForge with SQLite and one worker; its servers are registered by its API."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import ssl
import time
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Final

from bench.gateways.environments import PythonEnvironment
from bench.gateways.peers.base import HANDSHAKE_ONLY, MESSAGES_TO_4_MIB, Launch, Peer

if TYPE_CHECKING:
    from bench.gateways.peers.base import Place

__all__ = ["PEERS"]

_ADMIN: Final = "admin@example.com"
_START_SECONDS: Final = 90.0
_REGISTERED_SECONDS: Final = 240.0
_SETTINGS: Final = {
    "PLATFORM_ADMIN_EMAIL": _ADMIN,
    "LOG_LEVEL": "ERROR",
    "PLUGINS_ENABLED": "false",
    # The servers are on loopback, and a load is what limits are there to stop.
    "SSRF_PROTECTION_ENABLED": "false",
    "RATE_LIMITING_ENABLED": "false",
    "TOOL_RATE_LIMIT": "1000000000",
}


def _token(secret: str) -> str:
    """Return a token of the administrator, as its own command makes one."""
    now = int(time.time())
    claims = {
        "sub": _ADMIN,
        "username": _ADMIN,
        "iss": "mcpgateway",
        "aud": "mcpgateway-api",
        "env": "development",
        "iat": now,
        "exp": now + 24 * 3600,
        "jti": secrets.token_hex(8),
        "teams": None,
        "user": {"email": _ADMIN, "full_name": "Benchmark", "is_admin": True, "auth_provider": "cli"},
    }
    parts = [_base64(json.dumps(one).encode()) for one in ({"alg": "HS256", "typ": "JWT"}, claims)]
    signed = ".".join(parts)
    return f"{signed}.{_base64(hmac.digest(secret.encode(), signed.encode(), hashlib.sha256))}"


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _register(place: Place, token: str) -> str:
    """Register every server, and return the path at which all their tools are; raise OSError if that fails."""
    certificate = str(place.certificate.certificate)
    context = ssl.create_default_context(cafile=certificate) if place.setup.tls_to_clients else None

    def ask(path: str, body: dict[str, Any] | None = None) -> None:
        request = urllib.request.Request(place.base_url + path, method="GET" if body is None else "POST")
        request.add_header("authorization", f"Bearer {token}")
        request.add_header("content-type", "application/json")
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(request, data, timeout=60, context=context) as answer:
            answer.read()

    began = time.monotonic()
    while True:
        try:
            ask("/health")
            break
        except OSError:
            if time.monotonic() > began + _START_SECONDS:
                raise
            time.sleep(0.02)
    for number, server in enumerate(place.servers):
        if time.monotonic() > began + _REGISTERED_SECONDS:
            raise TimeoutError(f"{number} of {len(place.servers)} after {_REGISTERED_SECONDS:g} seconds")
        ask("/gateways", {"name": server.key, "url": server.url, "transport": "STREAMABLEHTTP"})
    return "/mcp/"


def _launch(place: Place) -> Launch:
    secret = secrets.token_hex(32)
    password = f"Aa1-{secrets.token_hex(16)}"
    env = {
        **_SETTINGS,
        "DATABASE_URL": f"sqlite:///{place.folder / 'contextforge.db'}",
        "JWT_SECRET_KEY": secret,
        "AUTH_ENCRYPTION_SECRET": secrets.token_hex(32),
        "BASIC_AUTH_PASSWORD": password,
        "PLATFORM_ADMIN_PASSWORD": password,
        "DEFAULT_USER_PASSWORD": password,
        **place.trust,
    }
    program = str(place.installed / "bin" / "mcpgateway")
    pair = ("--ssl-certfile", str(place.certificate.certificate), "--ssl-keyfile", str(place.certificate.key))
    command = (program, "--host", "127.0.0.1", "--port", str(place.port))
    token = _token(secret)
    return Launch(
        command + (pair if place.setup.tls_to_clients else ()),
        env,
        headers={"authorization": f"Bearer {token}"},
        register=lambda: _register(place, token),
    )


PEERS: Final = (
    Peer(
        "contextforge",
        "ContextForge",
        "one worker, SQLite, JSON answers, rate limits and plugins off; the servers are registered by its API",
        _launch,
        PythonEnvironment(("mcp-contextforge-gateway==1.0.7.post20260921",)),
        lacks={
            "stdio servers": "it reaches servers over HTTP; a bridge to stdio is a process of its own",
            **HANDSHAKE_ONLY,
            **MESSAGES_TO_4_MIB,
        },
    ),
)
