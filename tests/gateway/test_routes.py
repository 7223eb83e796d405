"""The paths of the gateway over HTTP: each with its methods and the authentication that it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename.auth.authentication_setup import http_authentication
from truename.config import Config, Settings
from truename.config.access import Access, SignIn
from truename.gateway import Gateway
from truename.gateway.http.app import HttpApp
from truename.gateway.http.connection_limits import ConnectionLimits
from truename.gateway.http.origin_guard import OriginGuard
from truename.gateway.http.routes import Route, Routes
from truename.gateway.quota import share_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio
EVERY = None
READ = ("GET", "HEAD")
OF_EVERY_GATEWAY = {
    "/healthz": (READ, "none"),
    "/readyz": (READ, "none"),
    "/metrics": (READ, "caller"),
    "/login/*": (EVERY, "own"),
    "/*": (EVERY, "caller"),
}
OF_SIGN_IN = {
    "/.well-known/oauth-protected-resource": (EVERY, "none"),
    "/.well-known/oauth-protected-resource/mcp": (EVERY, "none"),
    "/.well-known/oauth-protected-resource/mcp/*": (EVERY, "none"),
    "/.well-known/oauth-authorization-server": (EVERY, "own"),
    "/authorize": (EVERY, "own"),
    "/token": (EVERY, "own"),
    "/register": (EVERY, "own"),
    "/revoke": (EVERY, "own"),
    "/sign-in/consent": (EVERY, "own"),
    "/sign-in/callback": (EVERY, "own"),
}


async def answered(*_: Any) -> Any:
    return None


def route(path: str) -> Route:
    return Route(path=path, methods=None, authentication="none", answer=answered)


def test_which_route_answers_does_not_depend_on_the_order_of_the_table() -> None:
    paths = ["/*", "/a/*", "/a/b", "/a/b/*"]
    for table in (paths, paths[::-1], sorted(paths, key=len)):
        routes = Routes(map(route, table))
        found = {path: routes.find(path) for path in ("/", "/a", "/a/", "/a/b", "/a/b/", "/a/bc", "/a/b/c")}
        assert {path: None if one is None else one.path for path, one in found.items()} == {
            "/": "/*",
            "/a": "/*",
            "/a/": "/a/*",
            "/a/b": "/a/b",
            "/a/b/": "/a/b/*",
            "/a/bc": "/a/*",
            "/a/b/c": "/a/b/*",
        }


@pytest.mark.parametrize("path", ["/a", "/a/*"])
def test_a_path_has_one_route(path: str) -> None:
    with pytest.raises(ValueError, match="two routes have the path"):
        Routes([route(path), route(path)])


@pytest.mark.parametrize("signs_in", [False, True])
async def test_every_route_of_a_gateway_is_listed_with_its_authentication(tmp_path: Path, *, signs_in: bool) -> None:
    sign_in = SignIn(issuer="https://a.example", client_id="truename", allow=("*",)) if signs_in else None
    settings = Settings(state=str(tmp_path / "state.db"), access=Access(sign_in=sign_in))
    config = Config(path=tmp_path / "truename.toml", settings=settings)
    gateway = Gateway(config)
    async with http_authentication(config, "http://127.0.0.1:1") as front:
        limits = ConnectionLimits(share_of(settings, 10), share_of(settings, 10), shared=False)
        app = HttpApp(gateway, OriginGuard.of(settings, "127.0.0.1"), front, limits)
    expected = OF_EVERY_GATEWAY | (OF_SIGN_IN if signs_in else {})
    listed = {
        one.path: (None if one.methods is None else tuple(sorted(one.methods)), one.authentication)
        for one in app.routes
    }
    assert listed == expected
    assert [one.path for one in app.routes if one.is_public is not None] == ["/metrics"]


async def test_a_method_that_a_path_does_not_have_is_refused_with_those_that_it_has(sent: list[Any]) -> None:
    async def send(message: Any) -> None:
        sent.append(message)

    probe = Route(path="/healthz", methods=frozenset(READ), authentication="none", answer=answered)
    await probe.refuse_method({"type": "http", "method": "POST"}, answered, send)
    assert (sent[0]["status"], dict(sent[0]["headers"])[b"allow"]) == (405, b"GET, HEAD")
    assert b"POST is not a method of this path. Use GET, HEAD." in sent[1]["body"]


@pytest.fixture
def sent() -> list[Any]:
    return []
