"""The mix-up: a hostile authorization server has people log in at another, to be given the code (RFC 9700 section 4.4).

The other one does not say whose its answers are (RFC 9207), and its clients are public: who has code and verifier has
the tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import anyio
import httpx2
import pytest

from tests.auth.authority import Authority, authority
from tests.auth.found import Telling
from tests.support.auth_found_logins import entered
from tests.support.auth_login_questions import kept_in, pressed
from truename.auth.network.fetch import FetchError
from truename.auth.network.web import web
from truename.auth.outbound.authorization import log_in, start_login
from truename.auth.outbound.discovery import LoginRegistrations, find_login_site
from truename.auth.outbound.login_pages import LoginPages, PendingLogins
from truename.auth.vault import Vault
from truename.config.credentials import Login
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.gateway.conftest import Upstreams

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]
HERE = "http://127.0.0.1:1"


@pytest.fixture
def honest() -> Iterator[Authority]:
    with authority() as one:
        yield one


@pytest.fixture
def hostile(honest: Authority) -> Iterator[Authority]:
    with authority() as one:
        one.metadata = {
            "authorization_endpoint": f"{honest.issuer}/authorize",
            "authorization_response_iss_parameter_supported": False,
        }
        yield one


def _asked(url: str) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(url).query))


async def _mixed_up(honest: Authority, own: dict[str, str], url: str) -> str:
    """Return where a browser comes back to that was sent to the honest one, as its own client, in a hostile login."""
    said = {**own, **{name: _asked(url)[name] for name in ("state", "code_challenge")}}
    async with httpx2.AsyncClient() as browser:
        back = httpx2.URL((await browser.get(f"{honest.issuer}/authorize", params=said)).headers["location"])
    assert "code" in back.params
    return str(back.copy_remove_param("iss"))


def _start(tasks: Any, browse: Callable[[str], Any], url: str) -> None:
    tasks.start_soon(browse, url)


def _stolen(hostile: Authority, honest: Authority) -> list[str]:
    return [form["code"] for form in hostile.asked("/token") if form.get("code") in honest.codes]


async def test_a_page_sends_no_code_of_one_authorization_server_to_another(
    honest: Authority, hostile: Authority, tmp_path: Path
) -> None:
    desk = PendingLogins(HERE, kept_in(tmp_path), is_near=True)
    ann = Principal(name="ann")
    transport = httpx2.ASGITransport(app=LoginPages(desk, "Truename"))
    async with httpx2.AsyncClient(transport=transport, base_url=HERE) as browser:
        urls: list[str] = []
        for key, idp in (("far", honest), ("evil", hostile)):
            attempt = await desk.attempt(key, Login(issuer=idp.issuer), f"http://127.0.0.1:2/{key}", ann)
            assert attempt is not None
            page = await browser.get(desk.url(attempt))
            urls.append((await browser.post(desk.url(attempt), data=pressed(page))).headers["location"])
        back = await _mixed_up(honest, _asked(urls[0]), urls[1])
        assert (await browser.get(back)).status_code == 400
        assert _stolen(hostile, honest) == []
        # What was begun at the honest one goes on.
        async with httpx2.AsyncClient() as other:
            right = (await other.get(urls[0])).headers["location"]
        assert "You are logged in at far" in (await browser.get(right)).text
    await desk.close()


async def test_the_command_sends_no_code_of_one_authorization_server_to_another(
    honest: Authority, hostile: Authority
) -> None:
    with Vault(None, [bytes(32)]) as vault:
        async with web() as fetch:
            await entered(LoginRegistrations(Login(issuer=honest.issuer), "http://127.0.0.1:2/far", vault), fetch)
            own = honest.asked("/authorize")[-1]
            kept = LoginRegistrations(Login(issuer=hostile.issuer), "http://127.0.0.1:2/evil", vault)
            answers: list[int] = []

            async def browse(url: str) -> None:
                async with httpx2.AsyncClient() as browser:
                    answers.append((await browser.get(await _mixed_up(honest, own, url))).status_code)
                    # That one is waited for still.
                    over = {"state": _asked(url)["state"], "error": "access_denied"}
                    answers.append((await browser.get(_asked(url)["redirect_uri"], params=over)).status_code)

            port = urlsplit(own["redirect_uri"]).port or 0
            async with anyio.create_task_group() as tasks:
                with pytest.raises(FetchError, match="refused the login"):
                    await log_in(kept, fetch, lambda url: _start(tasks, browse, url), port=port)
    assert answers == [400, 200]
    assert _stolen(hostile, honest) == []


@pytest.mark.parametrize("client_id", ["truename", "https://tools.example/login/client.json"])
async def test_one_client_at_whatever_issuer_a_server_names_needs_answers_that_say_whose_they_are(
    client_id: str, honest: Authority, upstreams: Upstreams
) -> None:
    honest.client(client_id, f"{HERE}/callback")
    async with upstreams.app(Telling(honest)) as url, web() as fetch:
        with Vault(None, [bytes(32)]) as vault:
            for issuer, is_begun in (("", False), (honest.issuer, True)):
                honest.metadata = {"authorization_response_iss_parameter_supported": False}
                kept = LoginRegistrations(Login(client_id=client_id, issuer=issuer), f"{url}/mcp", vault)
                site = await find_login_site(kept, fetch)
                if is_begun:
                    assert (await start_login(site, f"{HERE}/callback")).url
                    continue
                with pytest.raises(FetchError, match="set it as issuer"):
                    await start_login(site, f"{HERE}/callback")
                honest.metadata = {}
                assert (await start_login(await find_login_site(kept, fetch), f"{HERE}/callback")).url
