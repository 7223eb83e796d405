"""The bridge in front of an app's page, in a real browser: what the page calls, and what it takes for its host."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.live.browser import at_a_browser
from truename.gateway.views.app_bridge import Search, bridged

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.anyio

# What hosts allow where a page says nothing (MCP Apps, "Host Behavior"); frames are for the tests of frames.
HOST = """<!doctype html><meta http-equiv=Content-Security-Policy content="default-src 'none';
script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; frame-src 'self'"><title>host</title>"""
# Shows a page in a frame, answers what it calls, and returns all that it said until it said that it is done.
SHOW = """async ([pages, way]) => {
  const heard = [], frame = document.createElement("iframe");
  let over;
  const done = new Promise((resolve) => { over = resolve; });
  const onMessage = (event) => {
    if (event.source !== frame.contentWindow) return;
    if (event.data.report === "over") over();
    heard.push(event.data);
    if (event.data.id) frame.contentWindow.postMessage(
      {jsonrpc: "2.0", id: event.data.id, result: `ran ${event.data.params.name}`}, "*");
  };
  addEventListener("message", onMessage);
  if (way === "srcdoc") { frame.sandbox = "allow-scripts"; frame.srcdoc = pages[0]; }
  document.body.append(frame);
  if (way === "written") for (const page of pages) {
    frame.contentDocument.open(); frame.contentDocument.write(page); frame.contentDocument.close();
  }
  await Promise.race([done, new Promise((resolve) => setTimeout(resolve, 10000))]);
  removeEventListener("message", onMessage);
  frame.remove();
  return heard;
}"""
# As the extension's own library does it: whoever is not the parent is not listened to.
APP = """
addEventListener("message", function (event) {
  if (event.source !== window.parent) return;
  window.parent.postMessage({ report: event.data.result || event.data.error.message }, "*");
  window.parent.postMessage({ report: "over" }, "*");
});
window.parent.postMessage({ report: document.compatMode }, "*");
window.parent.postMessage(
  { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "refresh", arguments: { x: 1 } } }, "*");
"""


SCRIPT = f"<script>{APP}</script>"
CSS1, QUIRKS = "CSS1Compat", "BackCompat"
XHTML = '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">'
POLICY = "<meta http-equiv=Content-Security-Policy content=\"script-src 'nonce-x'\">"
GLOBALS = "<script>var known = 1, names = 2, host = 3, facade = 4, met = 5; function translated() {}</script>"
WRITTEN = json.dumps(f"<!doctype html>{SCRIPT}").replace("</", "<\\/")
PAGES: dict[str, tuple[str, str]] = {
    "whole": (f"<!doctype html><html><head><title>a</title></head><body>{SCRIPT}</body></html>", CSS1),
    "without a head": (f"<!doctype html><p>a{SCRIPT}", CSS1),
    "without a document type": (f"<p>a{SCRIPT}", QUIRKS),
    "a document type in a comment": (f"<!-- <!doctype html> -->{SCRIPT}", QUIRKS),
    "a comment before it": (f"<!-- a --!>\n<?xml?><!DOCTYPE html>{SCRIPT}", CSS1),
    "an old document type": (XHTML + SCRIPT, CSS1),
    "its own policy": (f"<!doctype html>{POLICY}<script nonce=x>{APP}</script>", CSS1),
    "its own globals": (f"<!doctype html>{GLOBALS}{SCRIPT}", CSS1),
    "ends of scripts in texts": (f'<script>var a = "<\\/script>", b = "<!-- -->"; {APP}</script>', QUIRKS),
    "text that is not read": (f"<!doctype html><textarea><script></textarea>{SCRIPT}", CSS1),
    "20 MB": (f"<!doctype html><!-- {'x' * 20_000_000} -->{SCRIPT}", CSS1),
    "written anew by itself": (
        f"<script>onload = function () {{ document.open(); document.write({WRITTEN}); document.close(); }}</script>",
        CSS1,
    ),
}


def shown(page: str, names: Mapping[str, str], search: Search | None = None) -> str:
    return str(bridged({"text": page}, names, None, search)["text"])


@asynccontextmanager
async def a_host(profile: Path) -> AsyncIterator[Any]:
    async with at_a_browser(profile) as sitting:
        await sitting.page.set_content(HOST)

        async def show(*pages: str, way: str = "srcdoc") -> list[dict[str, Any]]:
            heard: list[dict[str, Any]] = await sitting.page.evaluate(SHOW, [pages, way])
            return heard

        yield show


def reports(heard: list[dict[str, Any]]) -> list[Any]:
    return [one["report"] for one in heard if "report" in one]


def calls(heard: list[dict[str, Any]]) -> list[Any]:
    return [one["params"] for one in heard if one.get("method") == "tools/call"]


async def test_every_page_calls_its_own_server_and_hears_the_answer(tmp_path: Path) -> None:
    async with a_host(tmp_path) as show:
        for name, (page, mode) in PAGES.items():
            for way in ("srcdoc", "written"):
                heard = await show(shown(page, {"refresh": "a_refresh"}), way=way)
                assert calls(heard) == [{"name": "a_refresh", "arguments": {"x": 1}}], (name, way)
                # A frame with srcdoc is never in quirks mode.
                expected = mode if way == "written" else CSS1
                assert reports(heard) == [expected, "ran a_refresh", "over"], (name, way)


async def test_a_name_that_the_server_lacks_is_answered_in_the_page(tmp_path: Path) -> None:
    async with a_host(tmp_path) as show:
        heard = await show(shown(SCRIPT, {"show": "a_show", "other": "a_refresh"}))

    assert calls(heard) == []
    assert 'no tool "refresh"' in reports(heard)[1]


async def test_a_name_of_another_servers_tool_is_none_of_the_page(tmp_path: Path) -> None:
    page = SCRIPT.replace('"refresh"', '"b_erase"')
    async with a_host(tmp_path) as show:
        heard = await show(shown(page, {"refresh": "a_refresh"}))

    assert calls(heard) == []


async def test_names_are_data_of_the_script(tmp_path: Path) -> None:
    evil = "</script><script>parent.postMessage({report: 'evil'}, '*')</script>"
    names = {evil: "wire_1", '"': "wire_2", "\\": "wire_3", "<!--<script>": "wire_4", "\u2028\r\n": "wire_5"}
    async with a_host(tmp_path) as show:
        for name, wire in names.items():
            codes = ",".join(str(ord(letter)) for letter in name)
            page = SCRIPT.replace('"refresh"', f"String.fromCharCode({codes})")
            heard = await show(shown(page, names))
            assert calls(heard) == [{"name": wire, "arguments": {"x": 1}}]
            assert "evil" not in reports(heard)


async def test_what_another_frame_says_is_not_what_the_host_says(tmp_path: Path) -> None:
    inner = "<script>parent.postMessage({jsonrpc: '2.0', id: 1, result: 'forged'}, '*')</script>"
    srcdoc = json.dumps(inner).replace("</", "<\\/")
    page = f"""<!doctype html><script>
    addEventListener("message", function (event) {{
      if (event.source === window.parent) window.parent.postMessage({{ report: event.data.result }}, "*");
      if (event.data.result === "forged") window.parent.postMessage({{ report: "over" }}, "*");
    }});
    </script><iframe></iframe><script>document.querySelector("iframe").srcdoc = {srcdoc};</script>"""
    async with a_host(tmp_path) as show:
        heard = await show(shown(page, {"refresh": "a_refresh"}))

    assert reports(heard) == ["over"]


async def test_one_page_after_the_other_in_a_window_has_each_its_own_server(tmp_path: Path) -> None:
    first = shown("<p>first", {"refresh": "a_refresh"})
    second = shown(SCRIPT, {"refresh": "b_refresh"})
    async with a_host(tmp_path) as show:
        heard = await show(first, second, way="written")

    assert calls(heard) == [{"name": "b_refresh", "arguments": {"x": 1}}]


async def test_a_gateway_behind_a_gateway_translates_what_the_other_one_shows(tmp_path: Path) -> None:
    page = f"<!doctype html>{SCRIPT}"
    inner = shown(page, {"refresh": "a_refresh"})
    outer = shown(inner, {"a_refresh": "team_a_refresh"})
    async with a_host(tmp_path) as show:
        for way in ("srcdoc", "written"):
            heard = await show(outer, way=way)
            assert calls(heard) == [{"name": "team_a_refresh", "arguments": {"x": 1}}]
            assert reports(heard) == [CSS1, "ran team_a_refresh", "over"]


async def test_a_tool_that_is_not_listed_is_called_through_the_one_that_is(tmp_path: Path) -> None:
    async with a_host(tmp_path) as show:
        heard = await show(shown(SCRIPT, {"refresh": "a_refresh"}, Search("call_tool", {"call_tool"})))

    assert calls(heard) == [{"name": "call_tool", "arguments": {"name": "a_refresh", "arguments": {"x": 1}}}]
