"""Who is at the identity provider just now: the gateway holds nothing of them, so nobody can push them out."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.auth.person import CALLBACK
from tests.auth.signing import Flow, is_let_in, origin, settings_of, signing_in
from tests.support.auth_login_questions import kept_in, pressed
from truename.auth.authentication_setup import http_authentication
from truename.auth.authorization_server.provider import AuthorizationStates
from truename.auth.network.web import web
from truename.auth.outbound.login_pages import LoginAttempt, PendingLogins
from truename.auth.sealed_values import SealedValues
from truename.config import Access, Config, Settings
from truename.config.credentials import Login
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.auth.authority import Authority

pytestmark = pytest.mark.anyio
HERE = "http://127.0.0.1:1"


@pytest.fixture
def most(monkeypatch: pytest.MonkeyPatch) -> int:
    """Have little held at most, so that a flood need not be long."""
    monkeypatch.setattr("truename.auth.owned_caches.MAX_PENDING", 10)
    monkeypatch.setattr("truename.auth.authorization_server.codes.MOST_OF_ONE", 10)
    monkeypatch.setattr("truename.auth.outbound.login_attempts.MOST_OF_ONE", 10)
    return 10


def states(clock: Callable[[], float] = lambda: 0.0) -> AuthorizationStates:
    values = SealedValues(None, clock=clock)
    values.open()
    return AuthorizationStates(values)


async def agreed(flow: Flow, **more: Any) -> str:
    """Agree to what a client asks, and return where that leads."""
    page = await flow.browser.http.get(flow.asking(**more), follow_redirects=True)
    sent = await flow.browser.http.post(page.url, data=flow.browser.form(page), headers=origin(page))
    assert sent.headers["location"].startswith("http")
    return str(sent.headers["location"])


async def home(flow: Flow, to_provider: str) -> httpx2.URL:
    """Go to the provider and back, and return where that leads."""
    back = (await flow.browser.http.get(to_provider)).headers["location"]
    return httpx2.URL((await flow.browser.http.get(back)).headers["location"])


async def registered(address: str) -> Flow:
    flow = Flow(address)
    await flow.register()
    return flow


def padded(text: str) -> str:
    return text + "=" * (-len(text) % 4)


async def test_nobody_is_pushed_out_by_those_who_agree_and_never_come_back(
    idp: Authority, tmp_path: Path, most: int
) -> None:
    async with signing_in(idp, tmp_path) as address:
        ann, stranger = await registered(address), await registered(address)
        to_provider = await agreed(ann)
        asked = await stranger.browser.http.get(stranger.asking(), follow_redirects=True)
        form = stranger.browser.form(asked)
        states = set()
        for _ in range(3 * most):
            sent = await stranger.browser.http.post(asked.url, data=form)
            states.add(httpx2.URL(sent.headers["location"]).params["state"])
        assert len(states) == 3 * most
        done = await home(ann, to_provider)
        tokens = (await ann.exchange(done.params["code"])).json()
        assert is_let_in(await ann.status(tokens["access_token"]))


async def test_nobody_who_logs_in_at_a_server_is_pushed_out_by_another(
    idp: Authority, tmp_path: Path, most: int
) -> None:
    access = Access(sign_in=settings_of(idp, f"{HERE}/sign-in/callback"))
    config = Config(path=tmp_path / "truename.toml", settings=Settings(state=str(tmp_path / "state.db"), access=access))
    async with web() as fetch, http_authentication(config, HERE, fetch=fetch) as front:
        transport = httpx2.ASGITransport(app=front.pages)
        assert front.logins is not None
        links = []
        for name in ("ann", "eve"):
            who = Principal(name=name, issuer=idp.issuer)
            attempt = await front.logins.attempt("far", Login(issuer=idp.issuer), "https://far.example/mcp", who)
            assert attempt is not None
            links.append(front.logins.url(attempt))
        async with (
            httpx2.AsyncClient(transport=transport) as ann,
            httpx2.AsyncClient(transport=transport) as eve,
            httpx2.AsyncClient() as net,
        ):
            sent = [
                await browser.post(url, data=pressed(await browser.get(url)))
                for browser, url in zip((ann, eve), links, strict=True)
            ]
            for _ in range(3 * most):
                await eve.post(links[1], data=pressed(await eve.get(links[1])))
            backs = [(await net.get(one.headers["location"])).headers["location"] for one in sent]
            assert (await eve.get(backs[0])).status_code == 403
            begun = await ann.get(backs[0])
            assert begun.headers["location"].startswith(f"{idp.issuer}/authorize?")
            assert (await ann.get(backs[0])).status_code == 400


async def test_only_who_signed_in_fills_what_remembers_those_who_came_back(
    idp: Authority, tmp_path: Path, most: int
) -> None:
    async with signing_in(idp, tmp_path) as address:
        ann, stranger = await registered(address), await registered(address)
        back = (await ann.browser.http.get(await agreed(ann))).headers["location"]
        assert (await ann.browser.http.get(back)).status_code == 303
        for _ in range(most + 1):
            state = httpx2.URL(await agreed(stranger)).params["state"]
            guess = {"state": state, "code": "guessed", "iss": idp.issuer}
            sent = await stranger.browser.http.get(f"{address}/sign-in/callback", params=guess)
            assert httpx2.URL(sent.headers["location"]).params["error"] == "access_denied"
        assert (await ann.browser.http.get(back)).status_code == 400


async def test_of_two_who_come_back_from_one_visit_at_once_one_is_signed_in(idp: Authority, tmp_path: Path) -> None:
    answers: list[int] = []
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        to_provider = await agreed(flow)

        async def comes_back(back: str) -> None:
            answers.append((await flow.browser.http.get(back)).status_code)

        backs = [(await flow.browser.http.get(to_provider)).headers["location"] for _ in range(2)]
        assert len(set(backs)) == 2
        async with anyio.create_task_group() as group:
            for back in backs:
                group.start_soon(comes_back, back)
    assert len(idp.asked("/token")) == 2
    assert sorted(answers) == [303, 400]


async def test_who_said_no_at_the_provider_can_think_better_of_it(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        to_provider = await agreed(flow)
        refused = {"state": httpx2.URL(to_provider).params["state"], "error": "access_denied", "iss": idp.issuer}
        sent = await flow.browser.http.get(f"{address}/sign-in/callback", params=refused)
        assert httpx2.URL(sent.headers["location"]).params["error"] == "access_denied"
        assert "code" in (await home(flow, to_provider)).params


async def test_a_browser_never_sees_what_proves_that_a_code_is_the_gateways(idp: Authority, tmp_path: Path) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        to_provider = await agreed(flow)
        back = (await flow.browser.http.get(to_provider)).headers["location"]
        await flow.browser.http.get(back)
        cookies = "".join(flow.browser.http.cookies.values())
    (form,) = idp.asked("/token")
    sealed = urlsafe_b64decode(padded(httpx2.URL(to_provider).params["state"]))
    for hidden in (form["code_verifier"], CALLBACK):
        assert hidden.encode() not in sealed
    assert form["code_verifier"] not in to_provider + back + cookies
    assert len(form["code_verifier"]) == 43


# As MCP clients send them: a loopback address or a page of the client's, and a state of some 40 to 200 characters.
@pytest.mark.parametrize(
    ("uri", "state", "longest"),
    [
        ("http://127.0.0.1:33418/callback", "s" * 43, 320),
        ("http://localhost:3118/oauth/callback", "s" * 64, 352),
        ("https://app.example.com/api/mcp/auth_callback", "s" * 200, 544),
    ],
)
async def test_a_usual_client_makes_a_short_address(
    idp: Authority, tmp_path: Path, uri: str, state: str, longest: int
) -> None:
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        # What else a client registered makes nothing longer.
        assert (await flow.register(uri, *(f"https://app.example.com/{n}" for n in range(9)))).status_code == 201
        to_provider = await agreed(flow, redirect_uri=uri, state=state)
        assert len(httpx2.URL(to_provider).params["state"]) <= longest
        assert len(to_provider) <= 1_024
        done = await home(flow, to_provider)
        assert str(done).startswith(f"{uri}?code=")
        assert done.params["state"] == state


@pytest.mark.parametrize("letter", ["s", "\u00e9", "\U0001f511", '"'])
async def test_what_would_make_it_too_long_is_refused_and_said(idp: Authority, tmp_path: Path, letter: str) -> None:
    def size(state: str) -> int:
        return len(json.dumps([CALLBACK, state], ensure_ascii=False).encode())

    most = (1_024 - size("")) // (size(letter) - size(""))
    async with signing_in(idp, tmp_path) as address:
        flow = Flow(address)
        await flow.register()
        refused = await flow.ask(state=letter * (most + 1))
        assert (refused.status_code, "location" in refused.headers) == (400, False)
        assert f"have {size(letter * (most + 1)):,} bytes, more than 1,024" in refused.text
        to_provider = await agreed(flow, state=letter * most)
        assert len(to_provider) < 2_048
        assert (await home(flow, to_provider)).params["state"] == letter * most


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@given(WORDS, WORDS, st.lists(st.one_of(WORDS, st.none(), st.lists(WORDS, max_size=3)), max_size=5), st.data())
def test_a_visit_opens_unchanged_for_its_browser_and_its_purpose(
    kind: str, browser: str, said: list[Any], data: st.DataObject
) -> None:
    authorizations = states()
    state, pending = authorizations.begin(kind, browser, said)
    assert authorizations.back(kind, browser, state) == pending
    assert states().back(kind, browser, state) is None
    assert authorizations.back(kind + "x", browser, state) is None
    assert authorizations.back(kind, browser + "x", state) is None
    whole = bytearray(urlsafe_b64decode(padded(state)))
    whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
    assert authorizations.back(kind, browser, urlsafe_b64encode(whole).decode().rstrip("=")) is None
    assert authorizations.back(kind, browser, state[: data.draw(st.integers(0, len(state) - 1))]) is None


@given(st.text(max_size=200))
def test_what_is_no_state_is_nobodys(text: str) -> None:
    assert states().back("sign-in", "browser", text) is None


def test_a_visit_is_over_after_ten_minutes() -> None:
    now = [1_000.0]
    authorizations = states(lambda: now[0])
    state, pending = authorizations.begin("sign-in", "browser", [])
    now[0] += 599
    assert authorizations.back("sign-in", "browser", state) == pending
    now[0] += 1
    assert authorizations.back("sign-in", "browser", state) is None


def test_what_a_visit_proves_itself_with_is_not_written_out() -> None:
    _, pending = states().begin("sign-in", "browser", [])
    assert pending.verifier not in repr(pending)
    assert pending.nonce not in repr(pending)
    assert pending.verifier != pending.nonce


async def test_one_persons_many_codes_take_no_code_of_anothers(idp: Authority, tmp_path: Path, most: int) -> None:
    async with signing_in(idp, tmp_path) as address:
        ann, eve = Flow(address), Flow(address)
        await ann.register()
        await eve.register()
        code = await ann.code()
        idp.user = {"sub": "eve", "email": "eve@example.com", "email_verified": True}
        codes = [await eve.code() for _ in range(most + 1)]
        assert (await eve.exchange(codes[0])).json()["error"] == "invalid_grant"
        assert (await eve.exchange(codes[-1])).status_code == 200
        assert (await ann.exchange(code)).status_code == 200


async def test_one_persons_many_logins_take_no_login_of_anothers(tmp_path: Path, most: int) -> None:
    desk = PendingLogins(HERE, kept_in(tmp_path), is_near=True)
    said = Login(issuer="https://idp.example")

    async def asked(name: str, server: int) -> LoginAttempt:
        attempt = await desk.attempt("far", said, f"https://far.example/{server}", Principal(name=name))
        assert attempt is not None
        return attempt

    ann = await asked("ann", 0)
    eves = [await asked("eve", server) for server in range(most + 1)]
    assert await desk.at(ann.link) is await asked("ann", 0) is ann
    assert await desk.at(eves[0].link) is None
    assert await desk.at(eves[-1].link) is await asked("eve", most)
    await desk.close()
