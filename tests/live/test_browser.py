"""A person signs in and logs in with a real browser, which keeps to the rules of pages, forms, cookies and origins."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import httpx2
import mcp_types as types
import pytest
from starlette.responses import HTMLResponse

from tests.auth.authority import Authority, authority
from tests.auth.found import Telling
from tests.auth.person import Person
from tests.auth.signing import Flow, close_all, settings_of
from tests.gateway.conftest import anyio_backend, era, text_of, upstreams  # noqa: F401 - fixtures
from tests.live.browser import at_a_browser
from tests.support.auth_found_logins import entered
from truename.auth import html_pages
from truename.auth.network.web import web
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.vault import open_vault
from truename.config import Access, Config, ServerConfig, Settings
from truename.config.credentials import Login
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from mcp import Client

    from tests.gateway.conftest import Upstreams

pytestmark = [
    pytest.mark.live,
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
PATIENCE: Final = 60.0
TOOL: Final = "test_simple_text"
KEY: Final = "a-server-with-a-rather-long-name-" + "x" * 60
NAME: Final = "Ein " + "W" * 76
# Browsers look for an icon where a page names none, and complain if there is none.
HEAD: Final = "<!doctype html><link rel=icon href=data:,>"
ASKS: Final = f"{HEAD}<title>Sign in</title><form method=post><button>Sign in</button></form>"
OPENS: Final = """(url) => {
  window.heard = new Promise((hear) => addEventListener("message", (told) => hear(told.data)));
  window.opened = open(url, "sign-in", "popup");
}"""
ANN: Final = {"sub": "ann", "email": "ann@example.com", "email_verified": True}


@pytest.fixture
def idp() -> Iterator[Authority]:
    """An identity provider on another site than the gateway's: to a browser `localhost` is not 127.0.0.1."""
    with authority() as one:
        one.issuer = one.issuer.replace("127.0.0.1", "localhost")
        one.user = ANN
        yield one


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A gateway with sign-in before a server at which Ann has to log in, and where her client is come back to."""

    app: Telling
    here: str
    callback: str


@asynccontextmanager
async def scene(idp: Authority, upstreams: Upstreams, folder: Path) -> AsyncIterator[Scene]:  # noqa: F811
    app, state = Telling(idp), folder / "access"
    back = HTMLResponse(f"{HEAD}<title>A client</title>You can go back to it.")
    async with upstreams.app(app) as there, upstreams.app(back) as client:
        address = f"{there}/mcp"
        far = ServerConfig(key=KEY, url=address, type="http", auth=Login(), isolation="user")
        access = Access(sign_in=settings_of(idp))
        config = Config(
            path=folder / "truename.toml",
            servers=(far,),
            settings=Settings(state=str(state / "state.db"), access=access),
        )
        with open_vault(config) as vault:
            async with web() as fetch:
                await entered(LoginRegistrations(Login(), address, vault), fetch, "local")
        async with Gateway(config) as gateway, listening(gateway) as here:
            idp.client("gate", f"{here}/sign-in/callback", secret="its-secret")
            idp.asks = ASKS
            try:
                yield Scene(app=app, here=here, callback=f"{client}/callback")
            finally:
                await close_all()


async def test_a_person_signs_in_and_logs_in_while_their_call_waits(
    idp: Authority,
    upstreams: Upstreams,  # noqa: F811
    tmp_path: Path,
    era: str,  # noqa: F811
) -> None:
    errors: list[str] = []
    answered, asked = anyio.Event(), anyio.Event()
    links: list[str] = []
    async with at_a_browser(tmp_path / "profile") as sitting, scene(idp, upstreams, tmp_path) as one:
        page = sitting.page

        async def signs_in(url: str) -> httpx2.URL:
            await page.goto(url)
            assert await page.title() == "Allow this client?"
            assert await page.locator("dd").all_inner_texts() == [
                one.callback.removesuffix("/callback"),
                NAME,
                "it registered itself; its name is not verified",
                "use",
            ]
            errors.extend(await sitting.errors("consent"))
            assert await sitting.focus_order() == ["Allow", "Deny"]
            await sitting.press("Allow")
            assert page.url.startswith(f"{idp.issuer}/authorize?")
            await sitting.press("Sign in")
            return httpx2.URL(page.url)

        async def elicited(_: object, params: Any) -> types.ElicitResult:
            links.append(params.url)
            asked.set()
            return types.ElicitResult(action="accept")

        async def calls(client: Client, name: str) -> None:
            assert text_of(await client.call_tool(name, {})).startswith("This is")
            answered.set()

        person = Person(signs_in, callback=one.callback, name=NAME)
        async with (
            person.connected(f"{one.here}/mcp", era, elicitation_callback=elicited) as client,
            anyio.create_task_group() as tasks,
        ):
            (name,) = [tool.name for tool in (await client.list_tools()).tools if tool.name.endswith(TOOL)]
            assert person.pocket.tokens is not None
            tasks.start_soon(calls, client, name)
            with anyio.fail_after(PATIENCE):
                await asked.wait()
            await page.goto(links[0])
            assert await page.title() == "Log in?"
            errors.extend(await sitting.errors("login"))
            assert await sitting.focus_order() == ["Log in"]
            # First the identity provider says who this is, then they log in at the server's authorization server.
            for button, leads_to in (("Log in", idp.issuer), ("Sign in", idp.issuer), ("Sign in", one.here)):
                assert not answered.is_set()
                await sitting.press(button)
                assert page.url.startswith(f"{leads_to}/")
            assert await page.title() == "Logged in"
            errors.extend(await sitting.errors("logged in"))
            with anyio.fail_after(PATIENCE):
                await answered.wait()
        assert len(one.app.guarded.calls) == 1
    assert errors == []
    assert (sitting.loaded, sitting.said) == ({"document"}, [])


async def test_pages_that_say_no_are_readable_and_lead_back(
    idp: Authority,
    upstreams: Upstreams,  # noqa: F811
    tmp_path: Path,
) -> None:
    async with at_a_browser(tmp_path / "profile") as sitting, scene(idp, upstreams, tmp_path) as one:
        page = sitting.page
        answer = await page.goto(await asking(one))
        assert answer.status == 200
        # By keys alone, and after a look at the page before.
        await page.get_by_role("button", name="Deny").focus()
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
        assert page.url.startswith(f"{one.callback}?error=access_denied&")
        errors: list[str] = []
        for name, path, status in (
            ("sign-in failed", "/sign-in/consent?request=unknown", 400),
            ("not logged in", f"/login/{'A' * 43}", 404),
        ):
            answer = await page.goto(one.here + path)
            assert answer.status == status
            errors.extend(await sitting.errors(name))
        assert errors == []
    assert idp.asked("/authorize")[1:] == []


async def test_a_form_of_a_page_that_tells_no_origin_is_refused(
    idp: Authority,
    upstreams: Upstreams,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The browser does what the pages' referrer policy is for: with another one these tests would fail."""
    monkeypatch.setitem(html_pages.HEADERS, "referrer-policy", "no-referrer")
    async with at_a_browser(tmp_path / "profile") as sitting, scene(idp, upstreams, tmp_path) as one:
        await sitting.page.goto(await asking(one))
        await sitting.press("Allow")
        assert "Invalid Origin header" in await sitting.page.inner_text("body")


async def test_a_client_on_the_web_that_opened_a_window_to_sign_in_hears_from_it(
    idp: Authority,
    upstreams: Upstreams,  # noqa: F811
    tmp_path: Path,
) -> None:
    async with at_a_browser(tmp_path / "profile") as sitting, scene(idp, upstreams, tmp_path) as one:
        client = sitting.page
        await client.goto(one.callback)
        async with client.expect_popup() as opened:
            await client.evaluate(OPENS, await asking(one))
        window = await opened.value
        for button in ("Allow", "Sign in"):
            assert await client.evaluate("opened.closed") is False
            async with window.expect_navigation():
                await window.get_by_role("button", name=button, exact=True).click()
        await window.evaluate("opener.postMessage(location.href, location.origin)")
        heard = await client.evaluate("heard")
        assert heard.startswith(f"{one.callback}?code=")


async def asking(one: Scene) -> str:
    """Return the address to which a client sends its user."""
    flow = Flow(one.here)
    await flow.register(one.callback)
    return flow.asking(redirect_uri=one.callback)
