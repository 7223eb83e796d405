"""A call that needs a login: its own user is sent to a page of the gateway, logs in there, and the call goes on."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import anyio
import httpx2
import mcp_types as types
import pytest

from tests.auth.authority import Authority, authority
from tests.auth.found import Telling
from tests.auth.person import Person
from tests.auth.signing import Browser, close_all, settings_of
from tests.gateway.conftest import text_of
from tests.support.auth_found_logins import entered
from tests.support.auth_login_questions import TOOL, kept_in, logs_in, pressed, scene
from truename.auth.network.fetch import FetchError
from truename.auth.network.web import web
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.outbound.login_pages import PendingLogins
from truename.auth.vault import open_vault
from truename.config import Access, Config, ServerConfig, Settings
from truename.config.approvals import Asking
from truename.config.credentials import Login
from truename.gateway import Gateway, listening
from truename.policy import read_policy
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.gateway.conftest import Upstreams
    from truename.auth.authorization_server.provider import BrowserIdentification


@pytest.fixture
def idp() -> Iterator[Authority]:
    with authority() as one:
        yield one


pytestmark = [
    pytest.mark.slow,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


async def test_a_call_asks_for_the_login_that_it_needs_and_goes_on(
    idp: Authority,
    upstreams: Upstreams,
    tmp_path: Path,
    era: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    pages: list[httpx2.Response] = []

    async def browse(url: str) -> None:
        pages.append(await logs_in(url))

    async with scene(idp, upstreams, tmp_path) as one:
        async with one.client("ann", era, one.user(browse)) as client:
            for _ in range(2):
                assert text_of(await client.call_tool(TOOL, {})).startswith("This is")
        (asked,) = one.asked
        assert asked.mode == "url"
        assert asked.url.startswith(f"{one.here}/login/")
        # What is known of it by an id is not what opens it; the stateless era has no id.
        assert (asked.elicitation_id is None) is (era != "legacy")
        assert asked.elicitation_id is None or asked.elicitation_id not in asked.url
        assert "You are logged in at far" in pages[0].text
        assert len(one.app.guarded.calls) == 2
        # Bob is not logged in by that, and his client cannot ask.
        async with one.client("bob", era) as other:
            refused = await other.call_tool(TOOL, {})
            assert refused.is_error
            assert "truename login far --for WHO" in text_of(refused)
        spent = await logs_in(asked.url)
        assert spent.status_code == 404
    ours = [one.getMessage() for one in caplog.records if one.name.startswith(("truename", "mcp.server", "uvicorn"))]
    link = asked.url.rpartition("/")[2]
    codes = [form["code"] for form in idp.asked("/token") if form.get("grant_type") == "authorization_code"]
    assert not any(secret in line for line in ours for secret in (link, *codes, idp.tokens[-1].access_token))


async def test_a_call_that_is_asked_about_and_needs_a_login_is_decided_on_once_and_run_once(
    idp: Authority, upstreams: Upstreams, tmp_path: Path, era: str
) -> None:
    kinds: list[str] = []

    async def elicited(_: object, params: Any) -> types.ElicitResult:
        kinds.append(params.mode)
        if params.mode == "url":
            await logs_in(params.url)
            return types.ElicitResult(action="accept")
        return types.ElicitResult(action="accept", content={"decision": "allow once"})

    asking: dict[str, Any] = {
        "policy": read_policy({"default": "ask"}),
        "approvals": Asking(),
    }
    async with scene(idp, upstreams, tmp_path, **asking) as one, one.client("ann", era, elicited) as client:
        assert text_of(await client.call_tool(TOOL, {})).startswith("This is")
        assert kinds == ["form", "url"]
        assert len(one.app.guarded.calls) == 1


@pytest.mark.parametrize(("action", "era"), [("decline", "legacy"), ("cancel", "2026-07-28")])
async def test_who_does_not_log_in_gets_the_error_and_is_asked_anew_the_next_time(
    action: str, era: str, idp: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    async def nothing(_: str) -> None:
        pass

    async with scene(idp, upstreams, tmp_path) as one:
        async with one.client("ann", era, one.user(nothing, action)) as client:
            for _ in range(2):
                refused = await client.call_tool(TOOL, {})
                assert refused.is_error
                assert "needs a login" in text_of(refused)
        first, second = one.asked
        assert first.url == second.url
        assert one.app.guarded.calls == []


async def test_a_login_that_ends_is_asked_for_again_by_the_next_call(
    idp: Authority, upstreams: Upstreams, tmp_path: Path, era: str
) -> None:
    running = scene(idp, upstreams, tmp_path, old=True)
    async with running as one, one.client("ann", era, one.user(logs_in)) as client:
        for times in (1, 2):
            assert text_of(await client.call_tool(TOOL, {})).startswith("This is")
            assert len(one.asked) == times
            idp.revoke()


async def test_calls_at_once_of_one_session_ask_once(idp: Authority, upstreams: Upstreams, tmp_path: Path) -> None:
    begun = anyio.Event()

    async def browse(url: str) -> None:
        begun.set()
        await logs_in(url)

    async with scene(idp, upstreams, tmp_path) as one, one.client("ann", "legacy", one.user(browse)) as client:
        found: list[str] = []

        async def call() -> None:
            found.append(text_of(await client.call_tool(TOOL, {})))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(call)
        assert [text.startswith("This is") for text in found] == [True] * 3
        assert len(one.asked) == 1


async def test_a_login_by_the_command_line_lets_the_waiting_call_go_on(
    idp: Authority, upstreams: Upstreams, tmp_path: Path, era: str
) -> None:
    async with scene(idp, upstreams, tmp_path) as one:

        async def by_command(_: str) -> None:
            with open_vault(one.config) as vault:
                async with web() as fetch:
                    await entered(LoginRegistrations(Login(), one.address, vault), fetch, "ann")

        async with one.client("ann", era, one.user(by_command)) as client:
            assert text_of(await client.call_tool(TOOL, {})).startswith("This is")


async def test_a_page_is_good_for_the_browser_that_opened_it_and_by_its_own_button(
    idp: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    answers: list[int] = []

    async def browse(url: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=True) as browser, httpx2.AsyncClient() as other:
            page = await browser.get(url)
            for header, value in (
                ("x-frame-options", "DENY"),
                ("cache-control", "no-store"),
                ("referrer-policy", "same-origin"),
            ):
                assert page.headers[header] == value
            assert "HttpOnly" in page.headers["set-cookie"]
            assert "ann" in page.text
            for http, form in ((other, pressed(page)), (browser, {"csrf": "guessed"}), (browser, {})):
                answers.append((await http.post(url, data=form)).status_code)
            answers.append((await browser.put(url)).status_code)
            answers.append((await browser.get(url[:-1] + ("A" if url[-1] != "A" else "B"))).status_code)
            answers.append((await browser.get(url.rpartition("/")[0] + "/client.json")).status_code)
            to = (await browser.post(url, data=pressed(page), follow_redirects=False)).headers["location"]
            back = (await other.get(to)).headers["location"]
            # Somebody else finishes what this browser began: their account would be Ann's then.
            answers.append((await other.get(back)).status_code)
            answers.append((await browser.get(back + "&state=twice")).status_code)
            answers.append((await browser.get(back)).status_code)
            answers.append((await browser.get(back)).status_code)

    async with scene(idp, upstreams, tmp_path) as one, one.client("ann", "2026-07-28", one.user(browse)) as client:
        assert text_of(await client.call_tool(TOOL, {})).startswith("This is")
    assert answers == [400, 403, 400, 405, 404, 404, 400, 400, 200, 400]


async def test_a_login_is_begun_so_often_and_no_more(idp: Authority, tmp_path: Path) -> None:
    desk = PendingLogins("http://127.0.0.1:1", kept_in(tmp_path), is_near=True)
    attempt = await desk.attempt("far", Login(issuer=idp.issuer), "https://far.example/mcp", Principal(name="ann"))
    assert attempt is not None
    for _ in range(20):
        assert (await desk.begin(attempt, "browser")).startswith(f"{idp.issuer}/authorize?")
    with pytest.raises(FetchError, match="too often"):
        await desk.begin(attempt, "browser")
    assert len(idp.registered) == 1
    await desk.close()


async def test_a_server_that_names_another_issuer_sends_nobody_there(
    idp: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    pages: list[httpx2.Response] = []

    async def browse(url: str) -> None:
        pages.append(await logs_in(url))

    with authority() as other:
        async with scene(idp, upstreams, tmp_path) as one:
            one.app.issuers = [other.issuer]
            async with one.client("ann", "legacy", one.user(browse, "cancel")) as client:
                assert (await client.call_tool(TOOL, {})).is_error
        assert other.asked("/authorize") == []
    assert idp.issuer in pages[0].text
    assert other.issuer in pages[0].text


async def test_a_link_that_is_sent_to_somebody_else_logs_nobody_in(
    idp: Authority, upstreams: Upstreams, tmp_path: Path
) -> None:
    """The confused deputy by phishing: Eve is asked to log in, and has Ann do it, whose tokens would be Eve's."""
    app = Telling(idp)
    people = {name: {"sub": name, "email": f"{name}@example.com", "email_verified": True} for name in ("ann", "eve")}
    pages: list[httpx2.Response] = []
    async with upstreams.app(app) as url:
        address = f"{url}/mcp"
        far = ServerConfig(key="far", url=address, type="http", auth=Login(), isolation="user")
        access = Access(sign_in=settings_of(idp))
        settings = Settings(state=str(tmp_path / "state.db"), access=access)
        config = Config(path=tmp_path / "truename.toml", servers=(far,), settings=settings)
        with open_vault(config) as vault:
            async with web() as fetch:
                await entered(LoginRegistrations(Login(), address, vault), fetch, "local")
        async with Gateway(config) as gateway, listening(gateway) as here:
            idp.client("gate", f"{here}/sign-in/callback", secret="its-secret")
            for victim in ("ann", "eve"):
                is_shown = anyio.Event()

                async def elicited(
                    _: object, params: Any, victim: str = victim, is_shown: anyio.Event = is_shown
                ) -> types.ElicitResult:
                    idp.user = people[victim]
                    pages.append(await logs_in(params.url))
                    is_shown.set()
                    return types.ElicitResult(action="cancel" if pages[-1].is_error else "accept")

                idp.user = people["eve"]
                async with Person(Browser()).connected(f"{here}/mcp", "legacy", elicitation_callback=elicited) as eve:
                    result = await eve.call_tool(TOOL, {})
                    assert result.is_error is (victim == "ann")
                    # The call goes on when the login is stored, which is before its page is shown.
                    await is_shown.wait()
            await close_all()
    assert pages[0].status_code == 403
    assert "You are not the person who was asked to log in" in pages[0].text
    assert "You are logged in at far" in pages[1].text
    assert app.guarded.calls == [] or {one.removeprefix("Bearer ") for one in app.guarded.calls} == {
        idp.tokens[-1].access_token
    }


async def test_nobody_is_asked_who_could_not_be_told_from_others(tmp_path: Path) -> None:
    """At a public gateway a link can be sent to anybody: only who signed in by a browser is known again in one."""
    ann = Principal(name="ann")
    signed_in = Principal(name="ann", issuer="https://idp.example")
    recognizer = cast("BrowserIdentification", SimpleNamespace(vouches="https://idp.example"))
    for more, who, is_asked in (
        ({}, ann, False),
        ({}, signed_in, False),
        ({"recognizer": recognizer}, ann, False),
        ({"recognizer": recognizer}, signed_in, True),
        ({"is_near": True}, ann, True),
    ):
        desk = PendingLogins("https://tools.example", kept_in(tmp_path), **cast("Any", more))
        attempt = await desk.attempt("far", Login(), "https://far.example/mcp", who)
        assert (attempt is not None) is is_asked
        if attempt is not None:
            assert attempt.link not in repr(attempt)
            await desk.close()


async def test_the_gateway_says_of_itself_what_client_it_is(idp: Authority, tmp_path: Path) -> None:
    access = Access(public_url="https://tools.example", token_name="ann")
    settings = Settings(state=str(tmp_path / "state.db"), access=access, token="t" * 40)
    config = Config(path=tmp_path / "truename.toml", settings=settings)
    url = "https://tools.example/login/client.json"
    idp.metadata = {"client_id_metadata_document_supported": True}
    async with Gateway(config) as gateway, listening(gateway) as here, web() as fetch:

        def read(id: str) -> dict[str, Any]:
            with httpx2.Client(headers={"host": "tools.example"}) as http:
                said: dict[str, Any] = http.get(f"{here}/login/client.json").json()
            assert said["redirect_uris"] == ["https://tools.example/login/callback", "http://127.0.0.1/callback"]
            # At any port (RFC 8252 section 7.3).
            return {**said, "redirect_uris": [idp.asked("/authorize")[-1]["redirect_uri"]]}

        idp.read = read
        with open_vault(config) as vault:
            kept = LoginRegistrations(Login(issuer=idp.issuer, client_id=url), "https://far.example/mcp", vault)
            assert (await entered(kept, fetch)).said.client_id == url
    assert idp.registered == []
