"""Sign-in and logins where each request may reach another gateway of the same state."""

from __future__ import annotations

from contextlib import asynccontextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from tests.auth.signing import Flow, close_all, origin, settings_of
from tests.support.auth_login_questions import pressed
from truename.auth.authentication_setup import http_authentication
from truename.auth.network.web import web
from truename.auth.vault import open_vault
from truename.config import Access, Config, Settings
from truename.config.credentials import Login
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.auth.authority import Authority
    from truename.auth.authentication_setup import HttpAuthentication
    from truename.storage import StateLocation

pytestmark = pytest.mark.anyio
HERE = "http://127.0.0.1:2"
FAR = "https://far.example/mcp"


class RoundRobin(httpx2.AsyncBaseTransport):
    """A balancer without affinity: each request goes to the next gateway."""

    def __init__(self, fronts: list[HttpAuthentication]) -> None:
        self.seen: list[int] = []
        self._next = cycle(enumerate(httpx2.ASGITransport(app=front.pages) for front in fronts))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        number, transport = next(self._next)
        self.seen.append(number)
        return await transport.handle_async_request(request)


class Replicas:
    """Two gateways, and clients that reach them by a balancer."""

    def __init__(self, fronts: list[HttpAuthentication]) -> None:
        self.fronts = fronts
        self.balancer = RoundRobin(fronts)
        self.clients: list[httpx2.AsyncClient] = []

    def client(self, *fronts: HttpAuthentication) -> httpx2.AsyncClient:
        transport = RoundRobin([*fronts]) if fronts else self.balancer
        self.clients.append(httpx2.AsyncClient(timeout=10, mounts={HERE: transport}))
        return self.clients[-1]

    async def flow(self) -> Flow:
        flow = Flow(HERE)
        flow.http, flow.browser.http = self.client(), self.client()
        assert (await flow.register()).status_code == 201
        return flow


@asynccontextmanager
async def replicas(idp: Authority, place: StateLocation, tmp_path: Path, **more: Any) -> AsyncIterator[Replicas]:
    access = Access(sign_in=settings_of(idp, f"{HERE}/sign-in/callback"))
    config = Config(path=tmp_path / "truename.toml", settings=Settings(state=place.address, access=access))
    async with (
        web() as fetch,
        http_authentication(config, HERE, fetch=fetch, **more) as first,
        http_authentication(config, HERE, fetch=fetch, **more) as second,
    ):
        found = Replicas([first, second])
        yield found
        for client in found.clients:
            await client.aclose()
        await close_all()


async def test_a_person_signs_in_at_whichever_gateways_they_reach(
    idp: Authority, place: StateLocation, tmp_path: Path
) -> None:
    async with replicas(idp, place, tmp_path) as both:
        for _ in range(2):
            flow = await both.flow()
            tokens = (await flow.exchange(await flow.code())).json()
            again = (await flow.renew(tokens["refresh_token"])).json()
            assert again["refresh_token"] != tokens["refresh_token"]
            # The next sign-in takes each step at the other gateway.
            next(both.balancer._next)
        assert {*both.balancer.seen} == {0, 1}


async def test_a_code_is_redeemed_once_at_whichever_gateway_and_a_second_time_ends_its_session(
    idp: Authority, place: StateLocation, tmp_path: Path
) -> None:
    async with replicas(idp, place, tmp_path) as both:
        flow = await both.flow()
        code = await flow.code()
        answers: list[httpx2.Response] = []

        async def exchange() -> None:
            answers.append(await flow.exchange(code))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(exchange)
            tasks.start_soon(exchange)
        assert sorted(answer.status_code for answer in answers) == [200, 400]
        (tokens,) = [answer.json() for answer in answers if answer.status_code == 200]
        for _ in range(2):
            assert (await flow.exchange(code)).json()["error"] == "invalid_grant"
        assert (await flow.renew(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_who_came_back_from_the_provider_comes_back_nowhere_again(
    idp: Authority, place: StateLocation, tmp_path: Path
) -> None:
    async with replicas(idp, place, tmp_path) as both:
        flow = await both.flow()
        page = await flow.browser.http.get(flow.asking(), follow_redirects=True)
        sent = await flow.browser.http.post(page.url, data=flow.browser.form(page), headers=origin(page))
        back = (await flow.browser.http.get(sent.headers["location"])).headers["location"]
        assert (await flow.browser.http.get(back)).status_code == 303
        assert [(await flow.browser.http.get(back)).status_code for _ in range(2)] == [400, 400]


async def test_a_login_at_a_server_goes_over_several_gateways_and_the_one_that_waits_is_told(
    idp: Authority, place: StateLocation, tmp_path: Path
) -> None:
    said, ann = Login(issuer=idp.issuer), Principal(name="ann")
    async with replicas(idp, place, tmp_path, is_near=True) as both:
        first, second = (front.logins for front in both.fronts)
        assert first is not None
        assert second is not None
        attempt = await first.attempt("far", said, FAR, ann)
        other = await second.attempt("far", said, FAR, ann)
        assert attempt is not None
        assert other is not None
        # Whichever gateway asks, it is one login with one address.
        assert first.url(attempt) == second.url(other)
        ended: list[bool] = []

        async def wait() -> None:
            ended.append(await first.wait(attempt, 20))

        here, there = (both.client(front) for front in both.fronts)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait)
            page = await there.get(second.url(other))
            here.cookies = there.cookies
            sent = await here.post(first.url(attempt), data=pressed(page))
            back = (await there.get(sent.headers["location"])).headers["location"]
            done = await there.get(back)
            assert (done.status_code, "You are logged in" in done.text) == (200, True)
        assert ended == [True]
        assert [(await client.get(back)).status_code for client in (here, there)] == [400, 400]
        assert [(await client.get(first.url(attempt))).status_code for client in (here, there)] == [404, 404]
        assert [await front.open(said, FAR, ann) for front in (first, second)] == [None, None]


async def test_links_and_codes_are_in_the_database_as_digests_and_what_they_lead_to_is_sealed(
    idp: Authority, place: StateLocation, tmp_path: Path
) -> None:
    said = Login(issuer=idp.issuer, client_id="gate", client_secret="canary-4711")
    async with replicas(idp, place, tmp_path, is_near=True) as both:
        logins = both.fronts[0].logins
        assert logins is not None
        attempt = await logins.attempt("far", said, FAR, Principal(name="ann"))
        assert attempt is not None
        flow = await both.flow()
        code = await flow.code()
        with open_vault(Config(settings=Settings(state=place.address))) as vault:
            tables = ("login_attempt", "authorization_code", "sealed_value_used", "secret")
            rows = {table: vault._file.rows(f"SELECT * FROM {table}") for table in tables}
    assert all(rows.values())
    stored = str(rows)
    assert [text in stored for text in (attempt.link, code, "canary-4711")] == [False] * 3


async def test_a_page_without_a_usable_key_says_to_try_later_and_names_no_file(
    idp: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config(path=tmp_path / "truename.toml", settings=Settings(state=str(tmp_path / "state.db")))
    monkeypatch.setenv("TRUENAME_VAULT_KEY", "no key")
    async with http_authentication(config, HERE, is_near=True) as front:
        transport = httpx2.ASGITransport(app=front.pages)
        async with httpx2.AsyncClient(transport=transport, base_url=HERE) as browser:
            answer = await browser.get(f"/login/{'x' * 43}")
    assert (answer.status_code, "Try again later" in answer.text, "TRUENAME" in answer.text) == (503, True, False)
