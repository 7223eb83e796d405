"""Redirects of servers: followed to listed hosts only, as a stranger, and never nearer than the server is itself."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.conformance.fixture import Everything
from tests.gateway.conftest import Upstreams, connected, text_of
from tests.support.auth_client_tokens import SECRET, Guarded
from tests.support.auth_pinned import Names
from tests.support.auth_whereabouts import certificate_of, listening_safely
from truename.auth.network.addresses import AddressRefused, HostResolver
from truename.config import ServerConfig, parse
from truename.config.credentials import ClientCredentials
from truename.config.render import render
from truename.errors import ConfigError
from truename.gateway.upstream import redirecting
from truename.gateway.upstream.redirecting import Redirecting
from truename.gateway.upstream.web import RedirectRefused

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send

    from tests.auth.authority import Authority
    from tests.gateway.conftest import Lab

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
FAR = "https://far.example/mcp"


class Answers(httpx2.AsyncBaseTransport):
    """A server that leads on as it is told; what it was sent is kept."""

    def __init__(self, *places: str, status: int = 307) -> None:
        self.places = list(places)
        self.status = status
        self.sent: list[httpx2.Request] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request)
        if not self.places:
            return httpx2.Response(200, content=b"own", extensions={"http_version": b"HTTP/1.1"})
        return httpx2.Response(self.status, headers={"location": self.places.pop(0)})


async def _followed(
    own: Answers, *allowed: str, url: str = FAR, at: str = "8.8.8.8", method: str = "POST", then: str = "8.8.8.8"
) -> httpx2.Response:
    """Send a request to a server whose host was found at an address; all others are found where ``then`` says."""
    where = HostResolver(resolve=Names((at,), (then,), (then,)))
    await where.addresses(httpx2.URL(url).host, 443)
    server = ServerConfig(key="far", url=url, headers={"X-Key": "k3y"}, allow_redirects=allowed)
    transport = Redirecting(own, server, where.named_by(httpx2.URL(url).host))
    headers = {
        "accept": "application/json",
        "authorization": "Bearer t0ken",
        "cookie": "c=00kie",
        "mcp-session-id": "s3ssion",
        "mcp-method": "tools/call",
        "mcp-param-city": "Bonn",
        "x-key": "k3y",
        "traceparent": "00-0-0-00",
    }
    timeout = {"connect": 5.0, "read": 5.0}
    content = b'{"a":1}' if method == "POST" else None
    request = httpx2.Request(method, url, headers=headers, content=content, extensions={"timeout": timeout})
    try:
        response = await transport.handle_async_request(request)
        await response.aread()
        return response
    finally:
        await transport.aclose()


@pytest.mark.parametrize(
    ("place", "allowed"),
    [
        ("https://files.example/x", ()),
        ("https://files.example/x", ("other.example",)),
        ("https://files.example/x", ("example",)),
        ("https://files.example.evil.example/x", ("files.example",)),
        ("https://sub.files.example/x", ("files.example",)),
        ("https://files.example:8443/x", ("files.example",)),
        ("https://files.example/x", ("files.example:8443",)),
        ("https://me@files.example/x", ("files.example",)),
        ("https://files.example\\@evil.example/x", ("files.example",)),
        ("http://files.example/x", ("files.example",)),
        ("http://files.example/x", ("files.example:80",)),
        ("//files.example:99999/x", ("files.example",)),
        ("ftp://files.example/x", ("files.example",)),
        ("file:///etc/passwd", ("files.example",)),
        ("http://127.0.0.1:9/x", ("127.0.0.1:9",)),
    ],
)
async def test_what_is_not_listed_is_not_followed(place: str, allowed: tuple[str, ...]) -> None:
    own = Answers(place)
    response = await _followed(own, *allowed)
    assert (response.status_code, len(own.sent)) == (307, 1)


@pytest.mark.parametrize(
    ("url", "at", "place", "then", "problem"),
    [
        (FAR, "8.8.8.8", "https://files.example/x", "10.0.0.7", "private"),
        (FAR, "8.8.8.8", "https://files.example/x", "127.0.0.1", "loopback"),
        (FAR, "8.8.8.8", "https://files.example/x", "169.254.169.254", "a metadata service"),
        (FAR, "8.8.8.8", "https://10.0.0.7/x", "", "private"),
        (FAR, "8.8.8.8", "https://[::1]/x", "", "loopback"),
        (FAR, "8.8.8.8", "https://[::ffff:10.0.0.7]/x", "", "private"),
        (FAR, "8.8.8.8", "https://2130706433/x", "", "loopback"),
        (FAR, "10.0.0.1", "https://files.example/x", "127.0.0.1", "loopback"),
        (FAR, "127.0.0.1", "https://169.254.169.254/x", "", "a metadata service"),
    ],
)
async def test_nobody_is_led_nearer_than_the_server_is(url: str, at: str, place: str, then: str, problem: str) -> None:
    listed = ("files.example", "10.0.0.7", "[::1]", "[::ffff:10.0.0.7]", "2130706433", "169.254.169.254")
    with pytest.raises(AddressRefused, match=f"which is {problem}"):
        await _followed(Answers(place), *listed, url=url, at=at, then=then or "8.8.8.8")


HERE = "http://far.localhost/mcp"


@pytest.mark.parametrize("status", [307, 308])
async def test_a_listed_host_gets_the_message_and_nothing_of_who_sends_it(status: int) -> None:
    got: list[Any] = []
    async with _host(got) as port:
        own = Answers(f"http://127.0.0.1:{port}/x?y", status=status)
        response = await _followed(own, f"127.0.0.1:{port}", url=HERE, at="127.0.0.1")
    ((method, path, headers, body),) = got
    assert (response.status_code, method, path, body) == (200, "POST", "/x?y", b'{"a":1}')
    assert headers == {
        "host": f"127.0.0.1:{port}",
        "accept": "application/json",
        "mcp-method": "tools/call",
        "mcp-param-city": "Bonn",
        "content-length": "7",
    }
    # Nor does it say who we are from now on.
    assert not {"set-cookie", "mcp-session-id", "www-authenticate"} & set(response.headers)
    assert response.headers["content-type"] == "application/json"


async def test_the_certificate_is_that_of_the_listed_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate, context = certificate_of(tmp_path, "files.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    async with listening_safely(context) as (port, asked_for):
        for host in ("files.example", "other.example"):
            followed = _followed(
                Answers(f"https://{host}:{port}/x"), f"{host}:{port}", url=HERE, at="127.0.0.1", then="127.0.0.1"
            )
            if host == "files.example":
                assert (await followed).status_code == 200
            else:
                with pytest.raises(httpx2.ConnectError, match="certificate"):
                    await followed
    assert asked_for == ["files.example", "other.example"]


@pytest.mark.parametrize(
    ("status", "method", "is_followed"),
    [(301, "POST", False), (302, "POST", False), (303, "POST", False), (302, "GET", True), (307, "DELETE", False)],
)
async def test_only_what_keeps_the_message_is_followed(status: int, method: str, is_followed: bool) -> None:
    got: list[Any] = []
    async with _host(got) as port:
        own = Answers(f"http://127.0.0.1:{port}/x", status=status)
        response = await _followed(own, f"127.0.0.1:{port}", url=HERE, at="127.0.0.1", method=method)
    assert (response.status_code, len(got)) == ((200, 1) if is_followed else (status, 0))


@pytest.mark.parametrize(
    ("back", "problem"),
    [
        ("http://far.localhost/other", "redirect of 127.0.0.1 to http://far.localhost/other"),
        ("http://other.localhost/x", "redirect of 127.0.0.1 to http://other.localhost/x"),
        ("https://elsewhere.example/", "redirect of 127.0.0.1"),
        ("/again", "more than 5 redirects"),
    ],
)
async def test_who_was_led_to_leads_to_nobody_but_who_is_listed(back: str, problem: str) -> None:
    got: list[Any] = []
    async with _host(got, back) as port:
        own = Answers(f"http://127.0.0.1:{port}/x")
        with pytest.raises(RedirectRefused, match=problem):
            await _followed(own, f"127.0.0.1:{port}", url=HERE, at="127.0.0.1")
    assert len(own.sent) == 1
    assert len(got) == (5 if back == "/again" else 1)


async def test_five_redirects_are_followed_and_not_six_wherever_they_lead() -> None:
    own = Answers(*(f"/{number}" for number in range(5)))
    assert (await _followed(own, "files.example")).status_code == 200
    assert [one.headers["authorization"] for one in own.sent] == ["Bearer t0ken"] * 6
    with pytest.raises(RedirectRefused):
        await _followed(Answers(*(f"/{number}" for number in range(6))), "files.example")


class Elsewhere:
    """All hosts but the server's own: each leads on as it is told, and what each was sent is kept."""

    def __init__(self, **places: str) -> None:
        self.places = places
        self.hosts: dict[str, Answers] = {}

    def transport_to(self, url: str, _: object) -> Answers:
        place = self.places.get(httpx2.URL(url).host.partition(".")[0])
        self.hosts[url] = Answers(*([place] if place else []))
        return self.hosts[url]


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    found = Elsewhere()
    monkeypatch.setattr(redirecting, "transport_to", found.transport_to)
    return found


@pytest.mark.parametrize(
    ("place", "allowed"),
    [
        ("https://files.example./x", "files.example"),
        ("https://FILES.example/x", "files.example"),
        ("https://files.example:443/x", "files.example"),
        ("https://files.example/x", "files.example:443"),
        ("https://[2001:db8::1]/x", "[2001:db8::1]"),
        ("https://[2001:db8::1]:8443/x", "[2001:db8::1]:8443"),
    ],
)
async def test_a_listed_host_is_known_in_each_of_its_spellings(elsewhere: Elsewhere, place: str, allowed: str) -> None:
    response = await _followed(Answers(place), allowed)
    assert (response.status_code, response.content) == (200, b"own")
    assert response.extensions["http_version"] == b"HTTP/1.1"
    ((sent,),) = [host.sent for host in elsewhere.hosts.values()]
    assert sent.url.path == "/x"


@pytest.mark.parametrize(
    ("url", "place", "is_followed"),
    [
        (HERE, "http://localhost:9/x", True),
        (HERE, "http://[::1]:9/x", True),
        (HERE, "http://127.8.8.8:9/x", True),
        (HERE, "http://files.example:9/x", False),
        (FAR, "http://localhost:9/x", False),
    ],
)
async def test_plain_http_leads_from_plain_http_to_this_machine_only(
    elsewhere: Elsewhere, url: str, place: str, is_followed: bool
) -> None:
    listed = ("localhost:9", "[::1]:9", "127.8.8.8:9", "files.example:9")
    response = await _followed(Answers(place), *listed, url=url, at="127.0.0.1")
    assert (response.status_code == 200, len(elsewhere.hosts)) == (is_followed, int(is_followed))


async def test_each_host_has_a_connection_of_its_own(elsewhere: Elsewhere) -> None:
    elsewhere.places = {"one": "https://two.example/b"}
    response = await _followed(Answers("https://one.example/a"), "one.example", "two.example")
    assert response.status_code == 200
    assert {url: [str(one.url) for one in host.sent] for url, host in elsewhere.hosts.items()} == {
        "https://one.example/a": ["https://one.example/a"],
        "https://two.example/b": ["https://two.example/b"],
    }


async def test_how_long_to_wait_goes_along_and_headers_that_were_configured_do_not(elsewhere: Elsewhere) -> None:
    own = Answers("https://files.example/x")
    server = ServerConfig(key="far", url=FAR, headers={"ACCEPT": "s3cret"}, allow_redirects=("files.example",))
    transport = Redirecting(own, server, HostResolver(resolve=Names()).named_by("far.example"))
    extensions = {"timeout": {"connect": 5.0}}
    request = httpx2.Request("POST", FAR, headers={"accept": "s3cret"}, content=b"{}", extensions=extensions)
    await transport.handle_async_request(request)

    ((sent,),) = [host.sent for host in elsewhere.hosts.values()]
    assert sent.extensions["timeout"] == {"connect": 5.0}
    assert "accept" not in sent.headers


async def test_a_place_is_told_as_far_as_it_can_be_shown(elsewhere: Elsewhere) -> None:
    there = "https://evil.example/"
    for length, shown in ((200, there.ljust(200, "x")), (201, there.ljust(200, "x") + "...")):
        elsewhere.places = {"one": there.ljust(length, "x")}
        with pytest.raises(RedirectRefused) as caught:
            await _followed(Answers("https://one.example/a"), "one.example")
        assert str(caught.value) == f"HTTP 307: redirect of one.example to {shown}"


@asynccontextmanager
async def _host(got: list[Any], back: str | None = None) -> AsyncIterator[int]:
    """A host on loopback that answers, or leads on, and says more than it may."""

    async def answer(request: Request) -> Response:
        headers = {name: value for name, value in request.headers.items() if name != "connection"}
        path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        got.append((request.method, path, headers, await request.body()))
        own = {"set-cookie": "a=b", "mcp-session-id": "x", "www-authenticate": "Bearer"}
        return JSONResponse({}, headers=own) if back is None else RedirectResponse(back, 307, headers=own)

    app = Starlette(routes=[Route("/{rest:path}", answer, methods=["GET", "POST", "DELETE"])])
    async with Upstreams().app(app) as url:
        yield int(url.rpartition(":")[2])


class Leading:
    """A server that leads calls elsewhere, and answers everything else."""

    def __init__(self, app: ASGIApp, place: str) -> None:
        self._app = app
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if (b"mcp-method", b"tools/call") in scope.get("headers", ()):
            await RedirectResponse(self._place, 307)(scope, receive, send)
        else:
            await self._app(scope, receive, send)


class Noting:
    """A server that keeps what it was sent."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.seen: list[dict[str, str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self.seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        await self._app(scope, receive, send)


@pytest.mark.parametrize("is_listed", [True, False])
async def test_a_call_goes_where_its_server_leads_and_no_secret_goes_along(
    is_listed: bool, idp: Authority, lab: Lab, upstreams: Upstreams
) -> None:
    idp.client("truename", secret=SECRET)
    auth = ClientCredentials(client_id="truename", client_secret=SECRET, issuer=idp.issuer)
    other = Noting(Everything().server.streamable_http_app())
    async with upstreams.app(other) as there:
        own = Guarded(Leading(Everything().server.streamable_http_app(), f"{there}/mcp"), idp)
        async with upstreams.app(own) as url:
            listed = (there.removeprefix("http://"),) if is_listed else ()
            far = lab.at("far", f"{url}/mcp", auth=auth, headers={"X-Key": "k3y"}, allow_redirects=listed)
            async with lab.serving(far) as here, connected(here + "/mcp", "2026-07-28") as client:
                told = text_of(await client.call_tool("test_simple_text", {}))
    assert len(own.calls) == 1
    if is_listed:
        assert told.startswith("This is")
        ((sent),) = other.seen
        assert not {"authorization", "x-key", "cookie", "mcp-session-id", "traceparent"} & set(sent)
        assert not any(token.access_token in str(sent) for token in idp.tokens)
    else:
        assert "redirects to another address" in told
        assert "add the host to allow_redirects" in told
        assert other.seen == []


_ENTRY = "[mcpServers.far]\n{}\nallow_redirects = {}\n"


def test_an_entry_says_to_which_hosts(tmp_path: Path) -> None:
    text = _ENTRY.format(f'url = "{FAR}"', '["Files.example", "files.example:8443", "[::1]:80"]')
    config = parse(text, tmp_path / "truename.toml", {})
    (server,) = config.servers
    assert server.allow_redirects == ("files.example", "files.example:8443", "[::1]:80")
    assert parse(render(config), tmp_path / "truename.toml", {}).servers == config.servers


@pytest.mark.parametrize(
    ("entry", "hosts", "problem"),
    [
        ('command = "x"', '["files.example"]', "only a server with a url"),
        *(
            (f'url = "{FAR}"', f'["{host}"]', "is not a host")
            for host in ("*", "*.example", "https://files.example", "files.example/x", "me@files.example", "a b", "")
        ),
    ],
)
def test_a_pattern_or_an_address_is_no_host(entry: str, hosts: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        parse(_ENTRY.format(entry, hosts), tmp_path / "truename.toml", {})
    told = caught.value.exceptions if isinstance(caught.value, ExceptionGroup) else (caught.value,)
    assert any(problem in str(one) for one in told)
