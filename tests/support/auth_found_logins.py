"""Test support: found logins, used by tests of several modules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import httpx2

from truename.auth.outbound.authorization import LoggedIn, log_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from truename.auth.network.web import Web
    from truename.auth.outbound.discovery import LoginRegistrations


async def entered(
    kept: LoginRegistrations, fetch: Web, who: str = "ann", browse: Callable[[str], Any] | None = None, **more: Any
) -> LoggedIn:
    """Log in by a browser, and keep it, as the command does."""
    async with anyio.create_task_group() as tasks:

        def show(url: str) -> None:
            tasks.start_soon(browse or _follow, url)

        had = await log_in(kept, fetch, show, seconds=10, **more)
    kept.keep(who, *had)
    return had


async def _follow(url: str) -> None:
    async with httpx2.AsyncClient(follow_redirects=True) as browser:
        assert "You are logged in" in (await browser.get(url)).text
