"""Test support: logins, used by tests of several modules."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
import httpx2

from truename.auth.outbound.authorization import log_in
from truename.auth.outbound.discovery import LoginRegistrations
from truename.auth.vault import Vault
from truename.config.credentials import Login

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.auth.authority import Authority
    from truename.auth.oauth import TokenResponse

ADDRESS = "https://far.example/mcp"


SECRET = "s3cr3t-of-the-client"


def _login(idp: Authority, **more: Any) -> Login:
    client = idp.client("truename", secret=more.get("client_secret", SECRET))
    client.check_redirect_uri = _is_loopback  # type: ignore[method-assign, assignment]
    return Login(
        **{"client_id": "truename", "client_secret": SECRET, "issuer": idp.issuer, "scopes": ("read",), **more}
    )


def _is_loopback(uri: str) -> bool:
    parts = urlsplit(uri)
    return (parts.scheme, parts.hostname, parts.path) == ("http", "127.0.0.1", "/callback")


async def _entered(
    said: Login, fetch: Any, browse: Callable[[str], Any], address: str = ADDRESS, **more: Any
) -> TokenResponse:
    """Log in, with a browser that does something with the address that is shown."""
    with Vault(None, [bytes(32)]) as vault:
        async with anyio.create_task_group() as tasks:
            kept = LoginRegistrations(said, address, vault)
            return (await log_in(kept, fetch, partial(_start, tasks, browse), **more)).tokens
    raise AssertionError


def _start(tasks: Any, browse: Callable[[str], Any], url: str) -> None:
    tasks.start_soon(browse, url)


async def _follow(url: str) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        answer = await browser.get(url)
        assert answer.text == "You are logged in. This window can be closed."
