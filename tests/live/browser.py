"""Somebody at a real browser: Debian's Chromium, with a profile of its own, that shows pages of loopback alone."""

from __future__ import annotations

import importlib
import os
import shutil
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Sitting", "at_a_browser"]

_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
_INSTALL: Final = (
    "apt-get install chromium, and .venv/bin/python -m pip install -c requirements/constraints.txt -r "
    "requirements/browser.txt"
)
_FLAGS: Final = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Nothing but loopback has an address.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
)
_WIDE, _NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 640}
# Pictures of all pages are put here, for people to look at.
_PICTURES: Final = os.environ.get("TRUENAME_PICTURES", "")
_MILLISECONDS: Final = 20_000

# What is wrong with a page as it is shown: WCAG 2.2's contrast (1.4.3), reflow (1.4.10), language (3.1.1), title
# (2.4.2), target size (2.5.8).
_FAULTS: Final = """() => {
  const errors = [];
  const say = (what) => errors.push(what);
  const light = (colour) => {
    const [r, g, b] = colour.match(/[0-9.]+/g).map((part) => part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (one) => {
    for (; one; one = one.parentElement) {
      const colour = getComputedStyle(one).backgroundColor;
      if (!/^rgba\\(.*, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  if (document.documentElement.lang !== "en") say("no language");
  if (!document.title) say("no title");
  if (document.compatMode !== "CSS1Compat") say("quirks");
  if (document.querySelectorAll("h1").length !== 1) say("not one heading");
  if (!document.querySelector("main h1")) say("no main");
  if (document.documentElement.scrollWidth > innerWidth) say(`${document.documentElement.scrollWidth} wide`);
  for (const one of document.querySelectorAll("body *:not(input)")) {
    const text = [...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    const box = one.getBoundingClientRect();
    if (text && (box.left < 0 || box.right > innerWidth)) say(`${one.tagName} is cut off`);
    if (one.tagName === "BUTTON" && Math.min(box.width, box.height) < 24) say(`${one.tagName} is small`);
    if (!text) continue;
    const lights = [light(getComputedStyle(one).color), light(ground(one))].sort((a, b) => b - a);
    const contrast = (lights[0] + 0.05) / (lights[1] + 0.05);
    if (contrast < 4.5) say(`${one.tagName} has a contrast of ${contrast.toFixed(1)}`);
  }
  return errors;
}"""

_FOCUSED: Final = """() => {
  const one = document.activeElement;
  if (one === document.body) return "";
  return one.innerText + (getComputedStyle(one).outlineStyle === "none" ? ", unseen" : "");
}"""


def _installed() -> tuple[str, Any]:
    """Return Chromium and playwright; where one of them is not there, the test is skipped and says what to do."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    try:
        found = importlib.import_module("playwright.async_api")
    except ModuleNotFoundError:
        found = None
    if program is None or found is None:
        missing = " and no ".join(name for name, one in (("Chromium", program), ("playwright", found)) if one is None)
        text = f"There is no {missing} here. Install: {_INSTALL}"
        if os.environ.get("CI") == "true":
            pytest.fail(text)
        pytest.skip(text)
    return program, found.async_playwright


@dataclass
class Sitting:
    """A window, and what happened in it."""

    page: Any
    # What kinds of things were loaded, and what the browser complains of.
    loaded: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)

    async def press(self, name: str) -> None:
        """Press a button, and wait for what comes then."""
        async with self.page.expect_navigation():
            await self.page.get_by_role("button", name=name, exact=True).click()

    async def focus_order(self) -> list[str]:
        """Return what Tab leads to, one after the other."""
        found: list[str] = []
        while (name := await self._next()) not in {"", *found}:
            found.append(name)
        return found

    async def _next(self) -> str:
        await self.page.keyboard.press("Tab")
        name: str = await self.page.evaluate(_FOCUSED)
        return name

    async def errors(self, name: str) -> list[str]:
        """Return what is wrong with the page as it is, on a wide and on a narrow screen."""
        found: list[str] = []
        for kind, size in (("wide", _WIDE), ("narrow", _NARROW)):
            await self.page.set_viewport_size(size)
            found += [f"{name}, {kind}: {fault}" for fault in await self.page.evaluate(_FAULTS)]
            if _PICTURES:
                await self.page.screenshot(path=Path(_PICTURES) / f"{name}-{kind}.png", full_page=True)
        return found


@asynccontextmanager
async def at_a_browser(profile: Path) -> AsyncIterator[Sitting]:
    """Start a browser with an empty profile, and end it when the block ends."""
    program, playwright = _installed()
    async with playwright() as driver:
        context = await driver.chromium.launch_persistent_context(
            profile, executable_path=program, args=[*_FLAGS], viewport=_WIDE, chromium_sandbox=False
        )
        context.set_default_timeout(_MILLISECONDS)
        try:
            sitting = Sitting(context.pages[0])
            context.on("request", lambda request: sitting.loaded.add(request.resource_type))
            context.on("console", lambda line: sitting.said.append(line.text))
            yield sitting
        finally:
            await context.close()
