"""Sign-in by the gateway: real clients, a real identity provider, and everybody who tries to come in between."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.auth.person import CALLBACK, Person
from tests.auth.signing import FORM, SEEN, Browser, Flow, fresh, is_let_in, signing_in
from truename.auth.authorization_server.clients import digest_of_client, redirect_error

if TYPE_CHECKING:
    from pathlib import Path

    from tests.auth.authority import Authority
    from tests.gateway.conftest import Lab

pytestmark = pytest.mark.anyio


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
    written = b"".join(path.read_bytes() for path in tmp_path.glob("state.db*") if path.is_file())
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
        ({"redirect_uri": CALLBACK.replace("/callback", "/x/../callback")}, "invalid_request"),
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


_EXACT = "https://app.example/cb?x=1"
_OTHERWISE = [
    "https://APP.example/cb?x=1",
    "HTTPS://app.example/cb?x=1",
    "https://app.example:443/cb?x=1",
    "https://app.example/a/../cb?x=1",
    "https://app.example/./cb?x=1",
    "https:/app.example/cb?x=1",
    "https:\\\\app.example\\cb?x=1",
    "https://app.exa\tmple/cb?x=1",
    " https://app.example/cb?x=1",
    "https://app.example/cb?x=1 ",
    "https://\uff41pp.example/cb?x=1",
    "https://app.example/cb?x=1#",
    "https://app.example/cb?x=%31",
]
_LOOPBACK = "http://127.0.0.1:7777/cb"
_LOOPBACK_OTHERWISE = [
    "http://127.1:7777/cb",
    "http://0x7f.1/cb",
    "http://2130706433/cb",
    "HTTP://127.0.0.1:7777/cb",
    "http://127.0.0.1:7777/a/../cb",
    "http://127.0.0.1:7777/c\tb",
    "http://127.0.0.1:7777//cb",
    "http://127.0.0.1:7777/cb?",
    "http://localhost:7777/cb",
    "http://LOCALHOST:7777/cb",
    "https://127.0.0.1:7777/cb",
]


@pytest.mark.parametrize(
    ("registered", "asked"),
    [(_EXACT, asked) for asked in _OTHERWISE] + [(_LOOPBACK, asked) for asked in _LOOPBACK_OTHERWISE],
)
async def test_another_text_for_a_registered_address_is_another_address(
    idp: Authority, tmp_path: Path, registered: str, asked: str
) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register(registered)

        answer = await flow.ask(redirect_uri=asked)

        assert (answer.status_code, "location" in answer.headers) == (400, False)
        assert (await flow.ask(redirect_uri=registered)).status_code == 302


@pytest.mark.parametrize("registered", ["https://app.example", "http://localhost:3000", "https://app.example:443/cb"])
async def test_a_client_may_use_its_own_text_and_the_one_that_it_was_answered(
    idp: Authority, tmp_path: Path, registered: str
) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        body = {"redirect_uris": [registered], "token_endpoint_auth_method": "none"}
        said = (await flow.http.post(f"{address}/register", json=body)).json()
        flow.client_id = said["client_id"]

        for own in (registered, *said["redirect_uris"]):
            assert (await flow.ask(redirect_uri=own)).status_code == 302


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
    assert redirect_error("cursor://anysphere.cursor-mcp/oauth/callback", ("cursor",)) is None
    assert redirect_error("cursor://anysphere.cursor-mcp/oauth/callback", ()) is not None


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
