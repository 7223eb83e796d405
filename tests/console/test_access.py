"""Who gets into the console, and what each role may do there: every route with every role, and every forgery."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import PEOPLE, ROLE_OF, serving
from truename.auth.inbound.static_tokens import StaticTokenStore, create_token
from truename.config.console import ROLES, ConsoleAccess
from truename.console import ROUTES

if TYPE_CHECKING:
    from tests.gateway.conftest import Lab
    from truename.console.page import PageRoute

pytestmark = pytest.mark.anyio
READS = [route for route in ROUTES if route.method == "GET"]
WRITES = [route for route in ROUTES if route.method == "POST"]


def concrete(route: PageRoute) -> str:
    """Return an address of a route: of a thing that may not exist."""
    path = route.path.replace("{id:path}", "fs@1/write@1").replace("{key:path}", "fs@1/write@1")
    return "/console" + path.replace("{key}", "0123456789abcdef")


def name_of(route: PageRoute) -> str:
    return f"{route.method} {route.path}"


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
async def test_each_route_is_for_its_role_and_those_above(lab: Lab, route: PageRoute) -> None:
    async with serving(lab) as world:
        for who, role in ROLE_OF.items():
            async with world.browser(who) as browser:
                if route.method == "GET":
                    answer = await browser.get(concrete(route))
                else:
                    answer = await browser.post(concrete(route), csrf=await browser.csrf(), answer="deny", scope="call")
                is_let = role is not None and ROLES.index(role) >= ROLES.index(route.role)
                assert (answer.status_code != 403) is is_let, (who, answer.text)


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
async def test_nobody_gets_in_without_a_session(lab: Lab, route: PageRoute) -> None:
    async with serving(lab) as world, world.browser() as browser:
        if route.method == "GET":
            answer = await browser.get(concrete(route))
        else:
            answer = await browser.post(concrete(route), csrf="0" * 64)
        assert 'name="token"' in answer.text
        assert "fs@1" not in answer.text


@pytest.mark.parametrize("route", WRITES, ids=name_of)
async def test_a_form_of_another_page_or_session_changes_nothing(lab: Lab, route: PageRoute) -> None:
    async with serving(lab) as world, world.browser("op") as browser, world.browser("op") as another:
        own, foreign = await browser.csrf(), await another.csrf()
        fields = {"answer": "accept" if "reviews" in route.path else "grant", "scope": "always"}
        assert own != foreign
        for origin in ("http://127.0.0.1:1", "http://localhost:1", "null"):
            assert (await browser.post(concrete(route), origin=origin, csrf=own, **fields)).status_code == 403
        assert (await browser.post(concrete(route), csrf=foreign, **fields)).status_code == 403
        assert (await browser.post(concrete(route), **fields)).status_code == 403
        # With its own form the request gets as far as what it is about, which does not exist.
        assert (await browser.post(concrete(route), csrf=own, **fields)).status_code == 409
        assert (await browser.get(concrete(route))).status_code == 405


async def test_a_session_ends_with_its_token_and_a_cookie_of_another_kind_is_none(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("val") as browser:
        assert (await browser.get("/console/tools")).status_code == 200
        kept = browser.cookies
        ((name, value),) = kept.items()
        for broken in (value[:-1], value + "A", value[::-1], "", "x" * 5_000):
            browser.forget({name: broken})
            assert 'name="token"' in (await browser.get("/console/tools")).text
        browser.forget(kept)
        assert "fs@1/write@1" in (await browser.get("/console/tools")).text

        with StaticTokenStore(lab.folder / "state.db", {}) as store:
            store.revoke(frozenset(id for id, token in store.now().items() if token.name == "val"))

        assert 'name="token"' in (await browser.get("/console/tools")).text


async def test_the_cookie_is_for_the_browser_alone_and_has_no_token_that_reads(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("val") as browser:
        ((_, value),) = browser.cookies.items()
        assert world.tokens["val"] not in value
        answer = await browser.post("/console/login", token=world.tokens["val"])
        said = answer.history[0].headers["set-cookie"]
        assert {"HttpOnly", "Path=/", "SameSite=lax"} <= set(said.split("; "))


async def test_to_log_in_takes_a_token_that_counts_and_a_form_of_our_own(lab: Lab) -> None:
    async with serving(lab) as world, world.browser() as browser:
        for token in ("", "tnp_nothing", "a b", "x" * 20_000, world.tokens["val"][:-1]):
            assert (await browser.post("/console/login", token=token)).status_code == 403
        answer = await browser.post("/console/login", origin="http://localhost:1", token=world.tokens["val"])
        assert answer.status_code == 403
        assert browser.cookies == {}


async def test_to_log_out_takes_a_form_of_the_session(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("val") as browser:
        assert (await browser.post("/console/logout", csrf="0" * 64)).status_code == 403
        answer = await browser.post("/console/logout", csrf=await browser.csrf())
        assert "You are logged out." in answer.text
        assert 'name="token"' in (await browser.get("/console/tools")).text


async def test_whoever_has_no_role_is_told_so_and_sees_no_page(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("nobody") as browser:
        answer = await browser.get("/console/servers")
        assert answer.status_code == 403
        assert "nobody has no role in this console. Add them to [console] in the configuration." in answer.text
        assert "<nav" not in answer.text


async def test_without_credentials_the_one_user_may_look_and_nothing_else(lab: Lab) -> None:
    async with serving(lab, with_tokens=False, console=ConsoleAccess()) as world, world.browser() as browser:
        assert "fs@1/write@1" in (await browser.get("/console/tools?q=write")).text
        for route in WRITES:
            assert (await browser.post(concrete(route), csrf="0" * 64)).status_code == 403
        # As soon as there is a token, everybody has to show one.
        with StaticTokenStore(lab.folder / "state.db", {}) as store:
            store.add(create_token("val", groups=("viewers",), scopes=(), expires=None)[1])
        assert 'name="token"' in (await browser.get("/console/tools")).text


async def test_every_answer_has_a_strict_policy_and_is_stored_nowhere(lab: Lab) -> None:
    async with serving(lab) as world, world.browser("val") as browser:
        pages = [concrete(route) for route in READS]
        for path in [
            *pages,
            "/console/nothing",
            "/console/login",
            "/console/static/console.css",
            "/console/static/../app.py",
        ]:
            answer = await browser.get(path)
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "'unsafe" not in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            if "/static/" not in path:
                assert answer.headers["cache-control"] == "no-store"
                assert " style=" not in answer.text
                assert "javascript:" not in answer.text
        assert not (await browser.get("/console/static/..%2Fapp.py")).text.startswith('"""')


def test_every_person_has_a_role_or_none() -> None:
    assert set(PEOPLE) == set(ROLE_OF)
