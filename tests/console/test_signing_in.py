"""People sign in to the console at an identity provider: by their groups they have a role, or none."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.auth.authority import Authority, authority
from tests.auth.signing import settings_of
from tests.console.conftest import ACCESS, Browser, sessions_in
from truename.auth.inbound.static_tokens import StaticTokenStore
from truename.config import Access
from truename.console import console_routes
from truename.gateway import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
ANN: dict[str, Any] = {"sub": "ann", "email": "ann@example.com", "email_verified": True, "groups": ["approvers"]}


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        one.user = dict(ANN)
        yield one


@asynccontextmanager
async def serving_with(idp: Authority, lab: Lab, **more: Any) -> AsyncIterator[str]:
    """Serve a gateway whose people sign in at a provider; give its address."""
    state = str(lab.folder / "state.db")
    access = Access(sign_in=settings_of(idp, **more))
    async with (
        lab.gateway(lab.normal("fs", "write"), state=state, access=access, console=ACCESS) as gateway,
        listening(gateway, more=partial(console_routes, gateway)) as address,
    ):
        idp.client("gate", f"{address}/sign-in/callback", secret="its-secret")
        yield address


async def test_somebody_signs_in_and_has_the_role_of_their_groups(idp: Authority, lab: Lab) -> None:
    async with serving_with(idp, lab) as address, Browser(address) as browser:
        assert 'href="/console/sign-in"' in (await browser.get("/console/tools")).text
        page = await browser.get("/console/sign-in")
        assert (page.status_code, page.url.path) == (200, "/console/servers")
        assert "approver" in page.text
        assert "fs@1/write@1" in (await browser.get("/console/tools")).text
        assert "its-secret" not in page.text
        # Signed in, nobody is asked again; logged out, everybody is.
        assert "You are logged out." in (await browser.post("/console/logout", csrf=await browser.csrf())).text
        assert 'href="/console/sign-in"' in (await browser.get("/console/tools")).text


async def test_who_is_in_no_group_with_a_role_sees_nothing(idp: Authority, lab: Lab) -> None:
    idp.user["groups"] = ["others"]
    async with serving_with(idp, lab) as address, Browser(address) as browser:
        page = await browser.get("/console/sign-in")
        assert page.status_code == 403
        assert "has no role in this console" in page.text


async def test_somebody_with_more_groups_than_a_cookie_has_room_for_is_told_so(idp: Authority, lab: Lab) -> None:
    idp.user = {**ANN, "groups": [f"{number:08}-0000-0000-0000-000000000000" for number in range(100)]}
    async with serving_with(idp, lab) as address, Browser(address) as browser:
        page = await browser.get("/console/sign-in")
        assert page.status_code == 400
        assert "does not fit into a cookie" in page.text
        assert not sessions_in(browser.cookies)


async def test_who_may_not_connect_does_not_get_in(idp: Authority, lab: Lab) -> None:
    idp.user["email"] = "ann@elsewhere.example"
    async with serving_with(idp, lab) as address, Browser(address) as browser:
        assert (await browser.get("/console/sign-in")).status_code == 403
        assert 'href="/console/sign-in"' in (await browser.get("/console/tools")).text


async def test_who_is_deprovisioned_has_no_session_any_more_and_gets_none(idp: Authority, lab: Lab) -> None:
    async with serving_with(idp, lab) as address, Browser(address) as browser:
        assert (await browser.get("/console/sign-in")).status_code == 200
        with StaticTokenStore(lab.folder / "state.db", {}) as store:
            store.bar(f'["{idp.issuer}", "ann"]', by="op")
        assert "fs@1" not in (await browser.get("/console/tools")).text
        again = await browser.get("/console/sign-in")
        assert again.status_code == 403
        assert "This account was deprovisioned here." in again.text


async def test_an_answer_of_the_provider_is_for_the_browser_that_asked_and_counts_once(
    idp: Authority, lab: Lab
) -> None:
    async with serving_with(idp, lab) as address, httpx2.AsyncClient(base_url=address, timeout=20) as victim:
        sent = (await victim.get("/console/sign-in")).headers["location"]
        async with httpx2.AsyncClient(timeout=20) as elsewhere:
            answer = (await elsewhere.get(sent)).headers["location"]
            # Somebody else's browser, which is given the address: login CSRF.
            assert (await elsewhere.get(answer)).status_code != 303
            assert not sessions_in(elsewhere.cookies)
        assert (await victim.get(answer)).headers["location"] == "/console/servers"
        (session,) = sessions_in(victim.cookies)
        victim.cookies.delete(session)
        assert (await victim.get(answer)).status_code != 303
        assert not sessions_in(victim.cookies)


async def test_the_cookie_of_a_sign_in_that_has_not_ended_is_no_session(idp: Authority, lab: Lab) -> None:
    async with serving_with(idp, lab) as address, httpx2.AsyncClient(base_url=address, timeout=20) as http:
        await http.get("/console/sign-in")
        (name,) = http.cookies
        async with Browser(address) as another:
            await another.get("/console/sign-in")
            (session,) = sessions_in(another.cookies)
        assert name != session
        http.cookies.set(session, http.cookies[name])
        assert "fs@1" not in (await http.get("/console/tools")).text


async def test_a_provider_that_cannot_be_reached_is_said_on_the_page(idp: Authority, lab: Lab) -> None:
    async with serving_with(idp, lab, issuer="http://127.0.0.1:1") as address, Browser(address) as browser:
        page = await browser.get("/console/sign-in")
        assert page.status_code == 502
        assert "The identity provider cannot be reached" in page.text
