"""Every path of the gateway over HTTP, from the tables of a gateway that has all of them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from docsite.reference.text import code, head, table
from truename.auth.authentication_setup import http_authentication
from truename.config import Config, Settings
from truename.config.access import Access, SignIn
from truename.console.app import ROOT, ROUTES
from truename.gateway import Gateway
from truename.gateway.http.app import HttpApp
from truename.gateway.http.connection_limits import ConnectionLimits
from truename.gateway.http.origin_guard import OriginGuard
from truename.gateway.quota import share_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from truename.gateway.http.routes import Route

__all__ = ["PURPOSES", "page"]

PURPOSES: Final = {
    "/healthz": "liveness: the process runs",
    "/readyz": "readiness: whether a load balancer should send calls here, with the reasons why not",
    "/metrics": "[metrics](metrics.md) in the format of Prometheus; `telemetry.metrics_public` opens it to everybody",
    "/.well-known/oauth-protected-resource": "metadata of the protected resource (RFC 9728)",
    "/.well-known/oauth-protected-resource/mcp": "the same, for the path of the endpoint",
    "/.well-known/oauth-protected-resource/mcp/*": "the same, for each view",
    "/.well-known/oauth-authorization-server": "metadata of the authorization server (RFC 8414)",
    "/authorize": "authorization endpoint: begins a sign-in",
    "/token": "token endpoint: codes and refresh tokens become access tokens",
    "/register": "dynamic client registration (RFC 7591)",
    "/revoke": "revocation of tokens (RFC 7009)",
    "/sign-in/consent": "page on which a person lets a client in",
    "/sign-in/callback": "redirect target of the identity provider",
    "/login/*": "pages on which a person logs in at a server ([credentials](../gateway/credentials.md))",
    "/*": "the MCP endpoint and its views; every other path answers 404",
}
# The applications of these paths see to the methods themselves.
_METHODS: Final = {
    "/.well-known/oauth-protected-resource": "GET",
    "/.well-known/oauth-protected-resource/mcp": "GET",
    "/.well-known/oauth-protected-resource/mcp/*": "GET",
    "/.well-known/oauth-authorization-server": "GET",
    "/authorize": "GET",
    "/token": "POST",
    "/register": "POST",
    "/revoke": "POST",
    "/sign-in/consent": "GET, POST",
    "/sign-in/callback": "GET",
    "/login/*": "GET, POST",
    "/*": "GET, POST, DELETE",
}
_GUARDS: Final = {
    "none": "none",
    "own": "no token; the path checks a cookie, a code or client credentials where it needs them",
    "caller": "a token, if the configuration requires one",
}
_INTRODUCTION: Final = """`truename serve --http HOST:PORT` serves these paths. *Access* is the credential that a request needs. The gateway refuses a
foreign HTTP `Origin` or `Host` header on every path, and other methods than the listed ones with 405. [Access control](../gateway/access.md) shows how callers
authenticate. On a loopback address no credential is needed until you configure one."""
_VIEWS: Final = """| path | list of tools |
|---|---|
| `/mcp` | all that the caller may see |
| `/mcp/for/CLIENT` | with the names of one client's dialect |
| `/mcp/profile/NAME` | of a [profile](../gateway/profiles.md) |
| `/mcp/in/CONTEXT` | in a [context](../gateway/contexts.md) |
| `/mcp/search` | three tools to search the others ([large catalogues](../gateway/large-catalogues.md)) |
| `/mcp/only/SERVER` | of one server |
| `/mcp/servers/SERVER,SERVER` | of several servers |

The parts combine in this order: `/mcp/for/cursor/profile/staff/in/phone/search/only/github`. Each takes POST (requests), GET (the stream of an
older session) and DELETE (the end of a session), as the Streamable HTTP transport of MCP defines them ([protocol](protocol.md))."""
# Paths of the console that need no session.
_ENTRANCE: Final = (
    ("", "GET", "redirects to the first page"),
    ("/login", "GET, POST", "form for an access token"),
    ("/sign-in", "GET", "sign-in at the identity provider, where `access.sign_in` is set"),
    ("/logout", "POST", "ends the session"),
    ("/static/*", "GET", "style sheets and scripts"),
)
_SIGN_IN_PATHS: Final = (
    "/authorize",
    "/token",
    "/register",
    "/revoke",
    "/sign-in/",
    "/.well-known/oauth-authorization",
)


def page() -> str:
    """Return the page. Raises KeyError for a path without a purpose."""
    routes = asyncio.run(_routes())
    own = [route for route in routes if not route.path.startswith(_SIGN_IN_PATHS)]
    parts = [head("HTTP routes", "the gateway's tables of routes"), _INTRODUCTION]
    parts += ["## Gateway", _table(own), "## MCP endpoint", _VIEWS]
    parts += [
        "## Sign-in",
        "These exist where `access.sign_in` is set.",
        _table([one for one in routes if one not in own]),
    ]
    parts += ["## Console", *_console()]
    return "\n\n".join(parts) + "\n"


async def _routes() -> list[Route]:
    """Return the routes of a gateway with sign-in."""
    with tempfile.TemporaryDirectory() as folder:
        sign_in = SignIn(issuer="https://a.example", client_id="truename", allow=("*",))
        settings = Settings(state=str(Path(folder) / "state.db"), access=Access(sign_in=sign_in))
        config = Config(path=Path(folder) / "truename.toml", settings=settings)
        async with http_authentication(config, "http://127.0.0.1:1") as front:
            limits = ConnectionLimits(share_of(settings, 10), share_of(settings, 10), shared=False)
            return list(HttpApp(Gateway(config), OriginGuard.of(settings, "127.0.0.1"), front, limits).routes)


def _table(routes: list[Route]) -> str:
    rows = sorted(routes, key=lambda route: route.path)
    return table(
        ("path", "methods", "access", "purpose"),
        (
            (
                code(route.path),
                _METHODS[route.path] if route.methods is None else ", ".join(sorted(route.methods)),
                _GUARDS[route.authentication],
                PURPOSES[route.path],
            )
            for route in rows
        ),
    )


def _console() -> Iterator[str]:
    yield (
        f"`truename serve --console` adds the [console](../gateway/console.md) below `{ROOT}`. A person signs in, and needs at "
        "least the role of the row."
    )
    yield table(
        ("path", "method", "purpose"), ((code(f"{ROOT}{path}"), method, text) for path, method, text in _ENTRANCE)
    )
    yield table(
        ("path", "method", "role", "page or decision"),
        ((code(f"{ROOT}{one.path}"), one.method, one.role, _action(one.path, one.method)) for one in ROUTES),
    )


def _action(path: str, method: str) -> str:
    words = path.strip("/").replace("{", "").replace("}", "").replace(":path", "").split("/")
    return f"page of {words[0]}" if method == "GET" else f"{words[-1]} about {words[0]}"
