"""A person at the console with a real browser: logged in, watched for what the page does, checked by axe."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest

from tests.live.browser import at_a_browser
from tests.shared import ROOT
from truename.console import ROUTES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.console.conftest import World

__all__ = ["PAGES", "AtTheConsole", "at_the_console"]

PAGES: Final = tuple(f"/console{route.path}" for route in ROUTES if route.method == "GET" and "{" not in route.path)
_AXE: Final = ROOT / ".cache" / "axe" / "axe.min.js"
_RUN: Final = "async (more) => (await axe.run(document, {resultTypes: ['violations'], ...more})).violations"
_SERIOUS: Final = frozenset({"serious", "critical"})
_FOCUSED: Final = """() => {
  const one = document.activeElement;
  if (!one || one === document.body) return null;
  const style = getComputedStyle(one), box = one.getBoundingClientRect();
  return {
    tag: one.tagName, name: one.getAttribute("aria-label") || one.innerText || one.name || one.id,
    isVisible: style.outlineStyle !== "none" && box.width > 0 && box.right > 0 && box.bottom > 0,
    mark: one.dataset.mark ??= String(Math.random()),
  };
}"""


@dataclass
class AtTheConsole:
    """A window of the browser, and what happened in it: dialogs, errors, and requests by host."""

    page: Any
    address: str
    dialogs: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)

    async def open(self, path: str) -> None:
        """Show a page."""
        await self.page.goto(self.address + path)

    async def serious(self, *rules: str) -> list[str]:
        """Return what axe finds that is serious, by these rules or by all: the rule, and what breaks it first."""
        if not await self.page.evaluate("'axe' in window"):
            await self.page.evaluate(_axe())
        found = await self.page.evaluate(_RUN, {"runOnly": list(rules)} if rules else {})
        return [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in found if one["impact"] in _SERIOUS]

    async def focus_order(self) -> list[dict[str, Any]]:
        """Return the elements to which Tab leads, one after the other."""
        found: list[dict[str, Any]] = []
        marks: set[str] = set()
        while True:
            await self.page.keyboard.press("Tab")
            one = await self.page.evaluate(_FOCUSED)
            if one is None or one["mark"] in marks:
                return found
            marks.add(one["mark"])
            found.append(one)

    async def width(self) -> tuple[int, int]:
        """Return how wide the page is, and how wide the window."""
        wide, window = await self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        return int(wide), int(window)


def _axe() -> str:
    """Return the source of axe, run by the debugger: the content security policy has no say in that."""
    if _AXE.is_file():
        return _AXE.read_text("utf-8") + ";undefined"
    text = "There is no axe-core here. Run: .venv/bin/python requirements/axe.py"
    if os.environ.get("CI") == "true":
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@asynccontextmanager
async def at_the_console(world: World, folder: Path, who: str = "op") -> AsyncIterator[AtTheConsole]:
    """Start a browser and log in by the form."""
    async with at_a_browser(folder / "profile") as sitting:
        page = sitting.page
        found = AtTheConsole(page, world.address)

        async def dismiss(dialog: Any) -> None:
            found.dialogs.append(dialog.message)
            await dialog.dismiss()

        page.on("dialog", dismiss)
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.on("console", lambda line: found.complaints.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: found.hosts.add(urlsplit(request.url).netloc))
        if world.tokens:
            await found.open("/console/login")
            await page.get_by_label("Access token").fill(world.tokens[who])
            await page.get_by_role("button", name="Log in").press("Enter")
            await page.get_by_role("heading", name="Servers", level=1).wait_for()
        yield found
