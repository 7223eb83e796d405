"""Sign-in for the tests of it: a browser, a gateway that signs people in, and a flow taken step by step."""

from __future__ import annotations

import re
import secrets
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager
from hashlib import sha256
from html import unescape
from typing import TYPE_CHECKING, Any

import anyio
import httpx2

from tests.auth.person import CALLBACK
from truename.config import Access, Config, ServerConfig, Settings, SignIn
from truename.gateway import Gateway, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.auth.authority import Authority
    from truename.auth.inbound.authentication import AccessEvent


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


def settings_of(idp: Authority, callback: str = "", **more: Any) -> SignIn:
    idp.client("gate", *([callback] if callback else []), secret="its-secret")
    said = {"allow": ("email:*@example.com",), "scopes": ("use",), "client_secret": "its-secret", **more}
    return SignIn(**{"client_id": "gate", "issuer": idp.issuer, **said})


def origin(page: httpx2.Response) -> dict[str, str]:
    """Return what a browser says of where a form comes from (Fetch, "append a request Origin header")."""
    is_told = page.headers.get("referrer-policy") != "no-referrer"
    return {"origin": f"{page.url.scheme}://{page.url.netloc.decode()}" if is_told else "null"}


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
                answer = await self.http.post(answer.url, data=self.form(answer), headers=origin(answer))
        return httpx2.URL(target)

    def form(self, page: httpx2.Response) -> dict[str, str]:
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page.text)
        return {**{name: unescape(value) for name, value in found}, "answer": self.answer}


@asynccontextmanager
async def signing_in(idp: Authority, tmp_path: Path, *servers: ServerConfig, **more: Any) -> AsyncIterator[str]:
    """Run a gateway with sign-in; its address is known to the provider."""
    access = Access(sign_in=settings_of(idp, **more))
    settings = Settings(state=str(tmp_path / "state.db"), access=access)
    config = Config(path=tmp_path / "truename.toml", servers=servers, settings=settings)
    async with Gateway(config) as gateway, listening(gateway, on_access=SEEN.append) as address:
        idp.client("gate", f"{address}/sign-in/callback", secret="its-secret")
        try:
            yield address
        finally:
            await close_all()


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
