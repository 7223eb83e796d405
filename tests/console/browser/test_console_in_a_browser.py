"""The console in a real browser: accessible, usable by keyboard, live, narrow, and unmoved by hostile servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import pytest

from tests.console.browser.pages import PAGES, at_the_console
from tests.console.conftest import called, serving
from tests.console.scene import busy, tools_file
from tests.shared import shared
from truename.config.trust import Trust
from truename.policy import read_policy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.console.browser.pages import AtTheConsole
    from tests.gateway.conftest import Lab

pytestmark = [pytest.mark.slow, pytest.mark.anyio]
ALLOW = read_policy({"default": "allow"})
WITH_DETAILS = (
    *PAGES,
    "/console/servers/runner",
    "/console/tools/github@1/search@1",
    "/console/tools?q=search&client=cursor&client=gemini-cli",
    "/console/names?name=serch",
    "/console/names?name=jira_search&client=claude-code",
    "/console/access?profile=readers",
    "/console/nothing",
)
# The colours are all in which the schemes differ.
SCHEMES: dict[str, tuple[str, ...]] = {"light": (), "dark": ("color-contrast",)}


async def test_axe_finds_nothing_serious_on_any_page_dark_or_light_and_none_is_wider_than_its_window(
    lab: Lab, tmp_path: Path
) -> None:
    found: list[str] = []
    async with busy(lab) as world, at_the_console(world, tmp_path) as person:
        for path in WITH_DETAILS:
            await person.page.set_viewport_size({"width": 1280, "height": 800})
            await person.open(path)
            for scheme, rules in SCHEMES.items():
                await person.page.emulate_media(color_scheme=scheme)
                found += [f"{path}, {scheme}: {fault}" for fault in await person.serious(*rules)]
            await person.page.set_viewport_size({"width": 400, "height": 800})
            wide, window = await person.width()
            if wide > window:
                found.append(f"{path}: {wide} wide in {window}")
        assert found == []
        # The page that does not exist is what the browser complains of.
        assert all("404" in complaint for complaint in person.complaints)
        assert person.hosts == {urlsplit(world.address).netloc}


async def test_everything_is_reached_by_tab_and_is_seen_to_have_the_focus(lab: Lab, tmp_path: Path) -> None:
    async with busy(lab) as world, at_the_console(world, tmp_path) as person:
        for path in ("/console/approvals", "/console/reviews", "/console/tools"):
            await person.open(path)
            wanted = await person.page.locator(
                "a[href]:visible, button:visible, input:not([type=hidden]):visible, select:visible"
            ).count()
            order = await person.focus_order()
            assert order[0]["name"] == "Skip to the content"
            assert [one for one in order if not one["isVisible"]] == []
            assert len([one for one in order if one["tag"] in {"A", "BUTTON", "INPUT", "SELECT"}]) == wanted, path


async def test_the_skip_link_leads_past_the_navigation(lab: Lab, tmp_path: Path) -> None:
    async with serving(lab) as world, at_the_console(world, tmp_path) as person:
        await person.open("/console/tools")
        await person.page.keyboard.press("Tab")
        await person.page.keyboard.press("Enter")
        await person.page.keyboard.press("Tab")
        assert await person.page.evaluate("document.activeElement.name") == "q"


async def test_a_call_is_granted_and_a_decision_revoked_by_keyboard_alone(lab: Lab, tmp_path: Path) -> None:
    async with serving(lab) as world, at_the_console(world, tmp_path) as person:
        await called(world, "fs_write", text="x")
        await person.open("/console/approvals")
        await _press(person, "Grant the call of fs@1/write@1")
        await person.page.get_by_text("0 calls wait").wait_for()
        await _press(person, "Revoke the decision on fs@1/write@1 for val")
        await person.page.get_by_text("There are no decisions.").wait_for()


async def _press(person: AtTheConsole, name: str) -> None:
    """Go to a button by Tab, and press it by Enter."""
    for _ in range(100):
        await person.page.keyboard.press("Tab")
        if await person.page.evaluate("document.activeElement.getAttribute('aria-label')") == name:
            break
    await person.page.keyboard.press("Enter")


async def test_a_waiting_call_is_announced_without_taking_the_focus_or_what_was_typed(lab: Lab, tmp_path: Path) -> None:
    async with serving(lab) as world, at_the_console(world, tmp_path) as person:
        await called(world, "fs_write", text="x")
        await person.open("/console/approvals")
        message = person.page.get_by_label("Message to the model, if you deny it")
        await message.fill("Not on a Friday")
        await called(world, "fs_read", text="y")
        news = person.page.locator("[aria-live=polite]", has_text="2 calls wait")
        await news.wait_for()
        assert await person.page.evaluate("document.activeElement.name") == "message"
        assert await message.input_value() == "Not on a Friday"


async def test_calls_appear_while_somebody_types_a_filter(lab: Lab, tmp_path: Path) -> None:
    async with serving(lab, policy=ALLOW) as world, at_the_console(world, tmp_path) as person:
        await person.open("/console/calls")
        tool = person.page.get_by_label("Tool", exact=True)
        await tool.press_sequentially("write")
        await called(world, "fs_read", text="y")
        await called(world, "fs_write", text="x")
        await person.page.locator("#calls td", has_text="fs_write").first.wait_for()
        assert await person.page.locator("#calls td", has_text="fs_read").count() == 0
        assert await tool.input_value() == "write"
        assert await person.page.evaluate("document.activeElement.name") == "tool"


async def test_a_link_in_the_list_of_calls_keeps_the_focus_when_more_calls_come(lab: Lab, tmp_path: Path) -> None:
    async with serving(lab, policy=ALLOW) as world, at_the_console(world, tmp_path) as person:
        await called(world, "fs_write", text="x")
        await person.open("/console/calls")
        await person.page.get_by_role("link", name="fs@1/write@1").focus()
        await called(world, "fs_read", text="y")
        await person.page.locator("#calls td", has_text="fs_read").first.wait_for()
        assert await person.page.evaluate("document.activeElement.innerText") == "fs@1/write@1"
        await person.page.keyboard.press("Enter")
        await person.page.get_by_role("heading", name="fs@1/write@1").wait_for()


async def test_one_of_ten_thousand_tools_is_found_as_it_is_typed(lab: Lab, tmp_path: Path) -> None:
    servers = [lab.script(f"many{number}", "many", "2000") for number in range(5)]
    async with serving(lab, *servers) as world, at_the_console(world, tmp_path) as person:
        await person.open("/console/tools")
        await person.page.get_by_text("10000 of 10000 tools, page 1 of 100.").wait_for()
        assert await person.page.locator("tbody tr").count() == 100
        await person.page.get_by_role("searchbox").press_sequentially("many3@1/tool_1711")
        await person.page.get_by_text("1 of 10000 tools.").wait_for()
        await person.page.get_by_role("link", name="many3@1/tool_1711@1").press("Enter")
        await person.page.get_by_role("heading", name="many3@1/tool_1711@1").wait_for()


MARKUP = (
    "<img src=//evil.example/x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>"
    "'\"></a></pre><iframe src=https://evil.example></iframe><a href='javascript:alert(4)'>x</a>"
    "<div hx-get='https://evil.example' hx-trigger='load'></div><style>@import 'https://evil.example'</style>"
    "\u202e\u200b\u2066\x1b[31m{{7*7}}"
)
STRANGE = (
    "script:not([src$='htmx.min.js']), iframe, main img, svg, object, embed, main style, [hx-get^='http'], [onerror]"
)


async def test_what_hostile_servers_say_runs_nothing_loads_nothing_and_hides_nothing(lab: Lab, tmp_path: Path) -> None:
    rows = json.loads(shared("corpus", "attacks-detect.json").read_text("utf-8"))["entries"]
    tools: list[dict[str, Any]] = [{"inputSchema": {"type": "object"}, **row["tool"]} for row in rows]
    tools = [*{one["name"]: one for one in tools}.values()]
    tools.append({"name": "hostile", "description": MARKUP, "inputSchema": {"type": "object", "title": MARKUP}})
    server = lab.script("evil", "listing", str(tools_file(lab.folder, "evil", tools)))
    review = Trust(first="review")
    async with (
        serving(lab, server, lab.normal("fs", "write"), trust=review) as world,
        at_the_console(world, tmp_path) as person,
    ):
        await called(world, "fs_write", who="op", text=MARKUP)
        await called(world, "<script>alert(5)</script>", who="op")
        some = [*world.gateway.catalog][:: max(1, len(world.gateway.catalog) // 10)]
        ids = [*some, "evil@1/hostile@1"]
        typed = quote(MARKUP)
        paths = [*PAGES, *(f"/console/tools/{quote(str(id))}" for id in ids), f"/console/names?name={typed}"]
        for path in [*paths, f"/console/access?principal={typed}", f"/console/tools?q={typed}"]:
            await person.open(path)
            assert await person.page.locator(STRANGE).count() == 0, path
            text = await person.page.inner_text("body")
            assert not {"\u202e", "\u200b", "\u2066", "\x1b"} & set(text), path
            assert ">49<" not in await person.page.content()
        await person.open("/console/tools/evil@1/hostile@1")
        assert "\\u202e\\u200b\\u2066\\x1b[31m" in await person.page.inner_text("dl")
        assert person.dialogs == []
        assert person.complaints == []
        assert person.hosts == {urlsplit(world.address).netloc}
