"""Sign-in by the gateway: real clients, a real identity provider, and everybody who tries to come in between."""

from __future__ import annotations

import json
import logging
import re
import secrets
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager
from hashlib import sha256
from html import unescape
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from joserfc.jws import extract_compact

from tests.access.authority import Authority, authority
from tests.access.person import CALLBACK, Person
from truename.access.addresses import Nearness
from truename.access.fetching import Fetched, FetchFault, Web
from truename.access.front import Front, front_of
from truename.access.sign_in.clients import digest_of_client, is_document, wrong_redirect
from truename.config import Access, Config, ServerConfig, Settings, SignIn
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.gateway.conftest import Lab
    from truename.access.events import AccessEvent

pytestmark = pytest.mark.anyio


FORM = "application/x-www-form-urlencoded"
OPEN: list[httpx2.AsyncClient] = []
SEEN: list[AccessEvent] = []


def fresh() -> httpx2.AsyncClient:
    """Return a client that is closed after the test."""
    OPEN.append(httpx2.AsyncClient(timeout=10))
    return OPEN[-1]


async def close_all() -> None:
    SEEN.clear()
    while OPEN:
        await OPEN.pop().aclose()


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        one.user = {"sub": "ann", "groups": ["eng"], "email": "Ann@Example.com", "email_verified": True}
        yield one


def settings_of(idp: Authority, callback: str = "", **more: Any) -> SignIn:
    idp.client("gate", *([callback] if callback else []), secret="its-secret")
    said = {"allow": ("email:*@example.com",), "scopes": ("use",), "client_secret": "its-secret", **more}
    return SignIn(**{"client_id": "gate", "issuer": idp.issuer, **said})


class Browser:
    """A browser with cookies, that says yes (or no) where it is asked."""

    def __init__(self, answer: str = "allow") -> None:
        self.http = fresh()
        self.answer = answer
        self.pages: list[httpx2.Response] = []

    async def __call__(self, url: str) -> httpx2.URL:
        with anyio.fail_after(20):
            answer = await self.http.get(url)
            while not (target := str(answer.url.join(answer.headers.get("location", "")))).startswith(CALLBACK):
                if answer.is_redirect:
                    answer = await self.http.get(target)
                    continue
                assert answer.status_code == 200, (answer.status_code, answer.text)
                self.pages.append(answer)
                answer = await self.http.post(answer.url, data=self.form(answer))
        return httpx2.URL(target)

    def form(self, page: httpx2.Response) -> dict[str, str]:
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
        return {**{name: unescape(value) for name, value in found}, "answer": self.answer}


@asynccontextmanager
async def signing_in(idp: Authority, tmp_path: Path, *servers: ServerConfig, **more: Any) -> AsyncIterator[str]:
    """Run a gateway with sign-in; its address is known to the provider."""
    access = Access(sign_in=settings_of(idp, **more), state=str(tmp_path / "access"))
    settings = Settings(ledger="memory", access=access)
    config = Config(path=tmp_path / "truename.toml", servers=servers, settings=settings)
    async with Gateway(config) as gateway, listening(gateway, on_access=SEEN.append) as address:
        idp.client("gate", f"{address}/sign-in/callback", secret="its-secret")
        try:
            yield address
        finally:
            await close_all()


async def test_a_real_client_signs_in_and_calls(
    lab: Lab, idp: Authority, tmp_path: Path, era: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with signing_in(idp, tmp_path, lab.normal("w", "get")) as address:
        browser = Browser()
        person = Person(browser)
        async with person.connected(f"{address}/mcp", era) as client:
            assert not (await client.call_tool("w_get", {})).is_error
    (page,) = browser.pages
    assert "<strong>http://127.0.0.1:1</strong>" in page.text
    assert "A client" in page.text
    assert page.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "HttpOnly; Max-Age=3600; Path=/; SameSite=lax" in page.headers["set-cookie"]
    assert person.pocket.client is not None
    assert person.pocket.client.client_secret is None
    (asked,) = idp.asked("/authorize")
    # Both legs have a proof of their own, and a state of their own.
    (ours,) = [httpx2.URL(url).params for url in person.visited]
    assert asked["code_challenge"] != ours["code_challenge"]
    assert asked["state"] != ours["state"]
    assert asked["client_id"] == "gate"
    assert person.pocket.tokens is not None
    theirs = [token.access_token for token in idp.tokens] + [token.refresh_token for token in idp.tokens]
    for token in (person.pocket.tokens.access_token, person.pocket.tokens.refresh_token):
        assert token not in theirs
    written = b"".join(path.read_bytes() for path in (tmp_path / "access").iterdir())
    # The client, the browser and the provider run in this process too, and write down what they do.
    theirs_to_log = ("mcp.client", "client", "httpx2", "httpcore2", "authlib")
    said = "\n".join(one.getMessage() for one in caplog.records if not one.name.startswith(theirs_to_log))
    secrets_of_all = [
        *theirs,
        *(person.pocket.tokens.access_token, person.pocket.tokens.refresh_token, "its-secret"),
        *(form["code"] for form in idp.asked("/token")),
    ]
    for secret in secrets_of_all:
        assert secret is not None
        assert secret.encode() not in written
        assert secret not in said


class Flow:
    """A sign-in by hand, step by step, for what no good client does."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.browser = Browser()
        self.http = fresh()
        self.verifier = secrets.token_urlsafe(40)
        self.client_id = ""

    async def register(self, *uris: str, **more: Any) -> httpx2.Response:
        body = {"redirect_uris": uris or (CALLBACK,), "token_endpoint_auth_method": "none", "client_name": "X", **more}
        answer = await self.http.post(f"{self.address}/register", json=body)
        if answer.status_code == 201:
            self.client_id = answer.json()["client_id"]
        return answer

    def asking(self, **more: Any) -> str:
        challenge = urlsafe_b64encode(sha256(self.verifier.encode()).digest()).decode().rstrip("=")
        said = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": CALLBACK,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "st",
            "resource": f"{self.address}/mcp",
            **more,
        }
        kept = {name: value for name, value in said.items() if value is not None}
        return str(httpx2.URL(f"{self.address}/authorize", params=kept))

    async def ask(self, **more: Any) -> httpx2.Response:
        return await self.browser.http.get(self.asking(**more))

    async def code(self, **more: Any) -> str:
        return (await self.browser(self.asking(**more))).params["code"]

    async def exchange(self, code: str, **more: Any) -> httpx2.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "client_id": self.client_id,
            "code_verifier": self.verifier,
            "resource": f"{self.address}/mcp",
            **more,
        }
        return await self.http.post(f"{self.address}/token", data=form)

    async def renew(self, token: str, **more: Any) -> httpx2.Response:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": self.client_id, **more}
        return await self.http.post(f"{self.address}/token", data=form)

    async def status(self, token: str) -> int:
        body = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
        return (await self.http.post(f"{self.address}/mcp", json=body, headers=headers)).status_code


def is_let_in(status: int) -> bool:
    return status not in {401, 403, 503}


async def test_a_code_is_good_once_and_its_thief_ends_the_session(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        code = await flow.code()
        tokens = (await flow.exchange(code)).json()
        assert is_let_in(await flow.status(tokens["access_token"]))
        again = await flow.exchange(code)
        assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
        ann = json.dumps([idp.issuer, "ann"])
        assert [(event.what, event.principal, event.why) for event in SEEN] == [
            ("signed_in", ann, ""),
            ("sign_in_ended", ann, "a code was used again"),
        ]
        assert {event.client for event in SEEN} == {digest_of_client(flow.client_id)}
        assert await flow.status(tokens["access_token"]) == 401
        assert (await flow.renew(tokens["refresh_token"])).status_code == 400


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"code_verifier": "x" * 43}, "invalid_grant"),
        ({"code_verifier": ""}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:2/callback"}, "invalid_request"),
        ({"resource": "https://other.example/mcp"}, "invalid_target"),
        ({"client_id": "other"}, "invalid_client"),
        ({"grant_type": "password"}, "invalid_request"),
    ],
)
async def test_a_code_is_for_who_asked_for_it(idp: Authority, tmp_path: Path, more: dict[str, str], error: str) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        code = await flow.code()
        answer = await flow.exchange(code, **more)
        assert answer.json()["error"] == error
        assert answer.headers["cache-control"] == "no-store"
        other = Flow(address)
        await other.register(client_name="another")
        stolen = await other.exchange(code, code_verifier=flow.verifier)
        assert stolen.json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "more",
    [
        {"code_challenge": None},
        {"code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"response_type": "token"},
        {"redirect_uri": "https://evil.example/"},
        {"redirect_uri": None},
        {"redirect_uri": CALLBACK + "/../x"},
        {"redirect_uri": "http://127.0.0.1:1@evil.example/callback"},
        {"client_id": "nobody"},
        {"resource": "https://other.example/mcp"},
        {"state": "s" * 3_000},
    ],
)
async def test_what_is_asked_wrongly_leads_nowhere(idp: Authority, tmp_path: Path, more: dict[str, Any]) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        answer = await flow.ask(**more)
        assert (answer.status_code, "location" in answer.headers) == (400, False)
        twice = await flow.browser.http.get(flow.asking() + "&client_id=x")
        assert (twice.status_code, "location" in twice.headers) == (400, False)


async def test_a_loopback_client_may_have_another_port(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register("http://127.0.0.1:7777/callback")
        assert (await flow.ask(redirect_uri=CALLBACK)).status_code == 302
        assert (await flow.ask(redirect_uri="http://localhost:1/callback")).status_code == 400
        assert (await flow.ask(redirect_uri="http://127.0.0.1:1/other")).status_code == 400


@pytest.mark.parametrize(
    "uris",
    [
        ["http://evil.example/cb"],
        ["javascript:alert(1)"],
        ["data:text/html,x"],
        ["https://user@app.example/cb"],
        ["https://app.example/cb#x"],
        ["https://*.example/cb"],
        ["cursor://x/cb"],
        ["http://127.0.0.1.evil.example/cb"],
        [CALLBACK, "http://evil.example/cb"],
        [f"https://app.example/{n}" for n in range(11)],
        [],
    ],
)
async def test_addresses_that_answers_must_not_go_to_are_not_registered(
    idp: Authority, tmp_path: Path, uris: list[str]
) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        body = {"redirect_uris": uris, "token_endpoint_auth_method": "none"}
        answer = await flow.http.post(f"{address}/register", json=body)
        assert answer.status_code == 400
        assert answer.json()["error"] in {"invalid_redirect_uri", "invalid_client_metadata"}


def test_a_program_s_own_scheme_is_an_address_where_it_is_allowed() -> None:
    assert wrong_redirect("cursor://anysphere.cursor-mcp/oauth/callback", ("cursor",)) is None
    assert wrong_redirect("cursor://anysphere.cursor-mcp/oauth/callback", ()) is not None


async def test_a_client_is_whatever_it_said_and_has_no_secret(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        name = "<script>alert(1)</script>\u202e\x1b[31m" + "x" * 500
        said = (
            await flow.register(
                token_endpoint_auth_method="client_secret_post", client_name=name, logo_uri="https://evil.example/x.png"
            )
        ).json()
        assert said["token_endpoint_auth_method"] == "none"
        assert not {"client_secret", "logo_uri"} & said.keys()
        page = await flow.browser.http.get(flow.asking(), follow_redirects=True)
        assert "<script" not in page.text
        assert "&lt;script&gt;" in page.text
        assert "\u202e" not in page.text
        assert "\x1b" not in page.text
        head, body, signature = flow.client_id.split(".")
        flow.client_id = f"{head}.{body}.{signature[:-2]}xx"
        assert (await flow.ask()).status_code == 400


async def test_another_browser_can_t_finish_what_one_began(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        page = await flow.browser.http.get(flow.asking(), follow_redirects=True)
        form = flow.browser.form(page)
        other = fresh()
        # A form that another page posts for somebody, with or without a cookie of their own.
        assert (await other.post(page.url, data=form)).status_code == 400
        await other.get(page.url)
        assert (await other.post(page.url, data=form)).status_code == 403
        assert (await flow.browser.http.post(page.url, data={**form, "csrf": "0" * 64})).status_code == 403
        to_provider = (await flow.browser.http.post(page.url, data=form)).headers["location"]
        back = (await other.get(to_provider)).headers["location"]
        stolen = await other.get(back)
        assert (stolen.status_code, "location" in stolen.headers) == (403, False)
        done = await flow.browser.http.get(back)
        assert done.headers["location"].startswith(CALLBACK + "?code=")
        replayed = await flow.browser.http.get(back)
        assert (replayed.status_code, "location" in replayed.headers) == (400, False)


async def test_who_says_no_is_not_signed_in(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        flow.browser.answer = "deny"
        await flow.register()
        back = await flow.browser(flow.asking())
        assert dict(back.params) == {"error": "access_denied", "state": "st", "iss": address}
    assert idp.asked("/authorize") == []


async def test_every_time_a_person_is_asked(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        for _ in range(2):
            await flow.code()
        assert len(flow.browser.pages) == 2


async def test_the_answer_of_another_issuer_is_not_used(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        for change in ({"iss": "https://evil.example"}, {"iss": None}):
            flow = Flow(address)
            await flow.register()
            page = await flow.browser.http.get(flow.asking(), follow_redirects=True)
            sent = await flow.browser.http.post(page.url, data=flow.browser.form(page))
            back = httpx2.URL((await flow.browser.http.get(sent.headers["location"])).headers["location"])
            said = {**dict(back.params), **change}
            mixed = back.copy_with(params={name: value for name, value in said.items() if value is not None})
            before = len(idp.asked("/token"))
            done = await flow.browser.http.get(mixed)
            assert httpx2.URL(done.headers["location"]).params["error"] == "access_denied"
            assert len(idp.asked("/token")) == before


WRONG_PEOPLE: list[dict[str, Any]] = [
    {"sub": "eve", "email": "eve@evil.example", "email_verified": True},
    {"sub": "eve", "email": "eve@example.com", "email_verified": False},
    {"sub": "eve", "email": "eve@example.com"},
    {"sub": "eve", "email": "eve@example.com.evil.example", "email_verified": True},
    {"sub": "eve", "email_verified": True},
]


@pytest.mark.parametrize("user", WRONG_PEOPLE)
async def test_only_those_who_are_allowed_come_in(idp: Authority, tmp_path: Path, user: dict[str, Any]) -> None:
    idp.user = user
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        back = await flow.browser(flow.asking())
        assert back.params["error"] == "access_denied"
        assert [(event.what, event.principal) for event in SEEN] == [("sign_in_refused", "")]


async def test_groups_and_people_are_allowed_by_name(idp: Authority, tmp_path: Path) -> None:
    idp.user = {"sub": "7", "groups": ["ops"]}
    for number, (allow, is_in) in enumerate([("group:ops", True), ("group:op", False), ("sub:7", True), ("*", True)]):
        async with signing_in(idp, tmp_path / str(number), allow=(allow,)) as address:
            flow = Flow(address)
            await flow.register()
            back = await flow.browser(flow.asking())
            assert (allow, "code" in back.params) == (allow, is_in)


async def test_a_refresh_token_is_good_once_and_its_thief_ends_the_session(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        second = (await flow.renew(first["refresh_token"])).json()
        assert is_let_in(await flow.status(second["access_token"]))
        other = Flow(address)
        await other.register(client_name="another")
        assert (await other.renew(second["refresh_token"])).json()["error"] == "invalid_grant"
        assert (await flow.renew(second["access_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(second["refresh_token"]) == 401
        assert is_let_in(await flow.status(second["access_token"]))
        assert (await flow.renew(first["refresh_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(second["access_token"]) == 401
        assert (await flow.renew(second["refresh_token"])).json()["error"] == "invalid_grant"


async def test_two_who_renew_at_once_are_one_too_many(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        statuses: list[int] = []

        async def renew() -> None:
            statuses.append((await flow.renew(first["refresh_token"])).status_code)

        async with anyio.create_task_group() as tasks:
            for _ in range(2):
                tasks.start_soon(renew)
        assert 400 in statuses
        assert await flow.status(first["access_token"]) == 401


async def test_the_provider_is_asked_again_whether_somebody_may(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        idp.refuses = "/token"
        assert (await flow.renew(first["refresh_token"])).status_code == 503
        idp.refuses = ""
        second = (await flow.renew(first["refresh_token"])).json()
        assert is_let_in(await flow.status(second["access_token"]))
        idp.revoke()
        assert (await flow.renew(second["refresh_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(second["access_token"]) == 401


async def test_who_is_no_longer_allowed_is_out_at_the_next_renewal(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        first = (await flow.exchange(await flow.code())).json()
        idp.user = {**idp.user, "email": "ann@elsewhere.example"}
        assert (await flow.renew(first["refresh_token"])).json()["error"] == "invalid_grant"
        assert await flow.status(first["access_token"]) == 401


async def test_a_client_can_sign_out(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        for kind in ("access_token", "refresh_token"):
            flow = Flow(address)
            await flow.register()
            tokens = (await flow.exchange(await flow.code())).json()
            other = {"token": tokens[kind], "client_id": "another"}
            assert (await flow.http.post(f"{address}/revoke", data=other)).status_code == 200
            assert is_let_in(await flow.status(tokens["access_token"]))
            own = {"token": tokens[kind], "client_id": flow.client_id}
            assert (await flow.http.post(f"{address}/revoke", data=own)).status_code == 200
            assert await flow.status(tokens["access_token"]) == 401
        assert (await flow.http.post(f"{address}/revoke", data={"token": "x", "client_id": "y"})).status_code == 200


async def test_tokens_of_the_provider_are_no_tokens_here(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        tokens = (await flow.exchange(await flow.code())).json()
        for theirs in idp.tokens:
            assert await flow.status(theirs.access_token) == 401
        claims = json.loads(_decoded(tokens["access_token"]))
        assert (claims["aud"], claims["iss"]) == (f"{address}/mcp", address)
        forged = idp.sign(**{**claims, "alg": None})
        assert await flow.status(forged) == 401


def _decoded(token: str) -> bytes:
    return extract_compact(token.encode()).payload


async def test_sign_ins_outlive_the_gateway(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        port = int(address.rpartition(":")[2])
        flow = Flow(address)
        await flow.register()
        tokens = (await flow.exchange(await flow.code())).json()
    access = Access(sign_in=settings_of(idp), state=str(tmp_path / "access"))
    config = Config(path=tmp_path / "truename.toml", settings=Settings(ledger="memory", access=access))
    flow.http = fresh()
    async with Gateway(config) as gateway, listening(gateway, port=port):
        assert is_let_in(await flow.status(tokens["access_token"]))
        assert (await flow.renew(tokens["refresh_token"])).status_code == 200
        await close_all()


class Documents:
    """The network, with one client's document on it."""

    def __init__(self, url: str, document: object, status: int = 200) -> None:
        self.web = Web()
        self.url = url
        self.document = document
        self.status = status
        self.asked: list[tuple[str, Nearness]] = []

    async def __call__(self, url: str, *, named_by: Nearness = Nearness.LOOPBACK, **more: Any) -> Fetched:
        self.asked.append((url, named_by))
        if url == self.url:
            return Fetched(self.status, json.dumps(self.document).encode())
        return await self.web(url, named_by=named_by, **more)

    async def nearness(self, url: str) -> Nearness:
        return await self.web.nearness(url)


@asynccontextmanager
async def documented(idp: Authority, net: Documents) -> AsyncIterator[tuple[Front, httpx2.AsyncClient]]:
    here = "https://tools.example.com"
    access = Access(public_url=here, sign_in=settings_of(idp))
    async with (
        front_of(Config(settings=Settings(access=access)), "http://127.0.0.1:1", fetch=net) as front,
        httpx2.AsyncClient(transport=httpx2.ASGITransport(front.pages), base_url=here) as http,
    ):
        yield front, http
    await close_all()


URL = "https://client.example/app.json"


async def test_a_client_s_document_is_its_registration(idp: Authority) -> None:
    net = Documents(URL, {"client_id": URL, "client_name": "Doc", "redirect_uris": [CALLBACK]})
    async with documented(idp, net) as (_, http):
        said = (await http.get("/.well-known/oauth-authorization-server")).json()
        assert said["client_id_metadata_document_supported"] is True
        flow = Flow("https://tools.example.com")
        flow.client_id = URL
        for _ in range(3):
            sent = await http.get(flow.asking())
            assert sent.status_code == 302
        page = await http.get(sent.headers["location"])
        assert URL in page.text
        assert "__Host-truename-sign-in=" in page.headers["set-cookie"]
        assert "Secure" in page.headers["set-cookie"]
        assert (await http.get(flow.asking(redirect_uri="https://evil.example/cb"))).status_code == 400
    # A stranger names it: it is fetched from public addresses only, and once.
    assert net.asked == [(URL, Nearness.PUBLIC)]


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"client_id": "https://other.example/app.json", "redirect_uris": [CALLBACK]}, 200),
        ({"redirect_uris": [CALLBACK]}, 200),
        ({"client_id": URL}, 200),
        ({"client_id": URL, "redirect_uris": CALLBACK}, 200),
        ({"client_id": URL, "redirect_uris": ["http://evil.example"]}, 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK], "client_secret": "x"}, 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "private_key_jwt"}, 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK]}, 302),
        (["x"], 200),
        ({"client_id": URL, "redirect_uris": [CALLBACK], "x": "x" * 70_000}, 200),
    ],
)
async def test_a_document_that_is_no_client_s_is_not_used(idp: Authority, document: object, status: int) -> None:
    async with documented(idp, Documents(URL, document, status)) as (_, http):
        flow = Flow("https://tools.example.com")
        flow.client_id = URL
        answer = await http.get(flow.asking())
        assert (answer.status_code, "location" in answer.headers) == (400, False)


@pytest.mark.parametrize("host", ["127.0.0.1", "169.254.169.254", "localhost", "10.0.0.1", "[::1]", "2130706433"])
async def test_a_document_on_a_near_address_is_not_fetched(idp: Authority, host: str) -> None:
    url = f"https://{host}/app.json"
    async with documented(idp, Documents("", {})) as (front, http):
        flow = Flow("https://tools.example.com")
        flow.client_id = url
        assert (await http.get(flow.asking())).status_code == 400
        assert front.is_page("/authorize")
    with pytest.raises(FetchFault):
        await Web()(url, named_by=Nearness.PUBLIC)


@pytest.mark.parametrize(
    ("url", "is_one"),
    [
        (URL, True),
        ("https://client.example/a/b", True),
        ("http://client.example/app.json", False),
        ("https://client.example", False),
        ("https://client.example/", False),
        ("https://client.example/../x", False),
        ("https://client.example/x#y", False),
        ("https://me@client.example/x", False),
        ("https://client.example/x\n", False),
    ],
)
def test_which_ids_are_documents(url: str, is_one: bool) -> None:
    assert is_document(url) is is_one


async def test_bodies_and_queries_are_bounded(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address, httpx2.AsyncClient() as http:
        assert (await http.post(f"{address}/register", content=b"x" * 70_000)).status_code == 413
        assert (await http.get(f"{address}/authorize?x={'y' * 20_000}")).status_code == 414
        assert (await http.put(f"{address}/token")).status_code == 405
        for content in (b"", b"{", b"\xff", b"[" * 10_000):
            answer = await http.post(f"{address}/register", content=content)
            assert answer.status_code == 400
            answer = await http.post(f"{address}/token", content=content)
            assert answer.status_code in {400, 401}
        for kind in (
            "multipart/form-data; boundary=x",
            "multipart/form-data",
            "text/plain",
            "",
            FORM,
            FORM + "; charset=x",
        ):
            for path in ("/token", "/revoke", "/sign-in/consent"):
                for content in (b"", b"--x", b"\xff" * 100, b"a=%zz&%ff=%", b"=&=&&&" * 1000, b"client_id=%00"):
                    headers = {"content-type": kind, "cookie": "truename-sign-in=x; =; \\"}
                    answer = await http.post(f"{address}{path}", content=content, headers=headers)
                    assert answer.status_code in {400, 401, 403}
        foreign = await http.post(f"{address}/sign-in/consent", headers={"origin": "https://evil.example"})
        assert foreign.status_code == 403
