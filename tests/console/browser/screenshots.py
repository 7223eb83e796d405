"""Take the pictures of the documentation: python -m tests.console.browser.screenshots FOLDER [--all].

With ``--all`` every page is taken, in both colour schemes, on a wide and on a narrow screen: for people to look at.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

import anyio

from tests.console.browser.pages import PAGES, AtTheConsole, at_the_console
from tests.console.scene import busy
from tests.gateway.conftest import Lab

__all__: list[str] = []

_PICTURE: Final = {"width": 1100, "height": 640}
_WIDE, _NARROW = {"width": 1400, "height": 850}, {"width": 400, "height": 850}
_SHOWN: Final = (
    ("servers-light", "/console/servers", "light"),
    ("tools-light", "/console/tools?client=claude-code", "light"),
    ("approvals-dark", "/console/approvals", "dark"),
    ("reviews-light", "/console/reviews", "light"),
    ("try-a-name-dark", "/console/names?name=serch&client=claude-code", "dark"),
    ("calls-dark", "/console/calls", "dark"),
)
_MORE: Final = (
    "/console/servers/runner",
    "/console/servers/database",
    "/console/tools/jira@1/search@1",
    "/console/tools?client=claude-code&client=gemini-cli",
    "/console/names?name=serch&client=claude-code",
    "/console/names?name=jira_search",
    "/console/access?profile=readers",
    "/console/nothing",
)


async def _take(person: AtTheConsole, folder: Path, name: str, path: str, scheme: str, *, whole: bool = False) -> None:
    await person.page.emulate_media(color_scheme=scheme)
    await person.open(path)
    await person.page.screenshot(path=folder / f"{name}.png", full_page=whole)


async def _all(person: AtTheConsole, folder: Path) -> None:
    for path in (*PAGES, *_MORE):
        name = path.removeprefix("/console/").translate(str.maketrans("/?&=@", "-----"))
        for word, size, scheme in (("wide", _WIDE, "light"), ("narrow", _NARROW, "dark")):
            await person.page.set_viewport_size(size)
            await _take(person, folder, f"{name}-{word}", path, scheme, whole=True)


async def main(folder: Path, *, everything: bool) -> None:
    """Start a gateway whose pages have something to show, and take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        async with busy(Lab(Path(scratch))) as world, at_the_console(world, Path(scratch)) as person:
            if everything:
                await _all(person, folder)
                return
            await person.page.set_viewport_size(_PICTURE)
            for name, path, scheme in _SHOWN:
                await _take(person, folder, name, path, scheme)


if __name__ == "__main__":
    anyio.run(lambda: main(Path(sys.argv[1]), everything="--all" in sys.argv))
