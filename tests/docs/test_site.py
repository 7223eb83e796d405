"""The site builds strictly, and the check of its HTML finds each way in which it can be wrong."""

from __future__ import annotations

import doctest
import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from docsite.check import problems
from tests.shared import ROOT

if TYPE_CHECKING:
    from pathlib import Path

needs_mkdocs = pytest.mark.skipif(find_spec("mkdocs") is None, reason="make docs installs MkDocs, and runs the same")


def site(folder: Path, pages: dict[str, str], indexed: list[str] | None = None) -> list[str]:
    for name, text in pages.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (folder / "search").mkdir()
    entries = [{"location": name} for name in (pages if indexed is None else indexed)]
    (folder / "search" / "search_index.json").write_text(json.dumps({"docs": entries}), "utf-8")
    return list(problems(folder))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<a href="b/c.html#x">', ""),
        ('<a href="https://example.com/">', ""),
        ('<a href="#here"><p id="here">', ""),
        ('<a href="b/d.html">', "a.html: b/d.html leads nowhere"),
        ('<a href="/b/c.html">', "a.html: /b/c.html begins at the root of the host"),
        ('<a href="b/c.html#y">', "a.html: b/c.html#y names an anchor that its page does not have"),
        ('<img src="picture.svg">', "a.html: picture.svg leads nowhere"),
        ('<script src="https://unpkg.com/x.js">', "a.html: loads https://unpkg.com/x.js from another host"),
        ('<link href="//fonts.example/x.css">', "a.html: loads //fonts.example/x.css from another host"),
    ],
)
def test_a_page_that_leads_nowhere_or_loads_from_another_host_is_found(text: str, problem: str, tmp_path: Path) -> None:
    assert site(tmp_path, {"a.html": text, "b/c.html": '<p id="x">'}) == ([problem] if problem else [])


def test_a_style_sheet_that_loads_from_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("a {background: url(data:x)} b {background: url('https://a.example/b.png')}")

    assert site(tmp_path, {}) == ["a.css: loads https://a.example/b.png from another host"]


def test_a_page_that_the_search_misses_is_found_unless_it_leads_to_another(tmp_path: Path) -> None:
    moved = '<meta http-equiv="refresh" content="0; url=a.html">'

    assert site(tmp_path, {"a.html": "", "old.html": moved}, []) == ["a.html: the search does not have it"]


def test_make_docs_builds_although_there_is_a_folder_of_that_name() -> None:
    phony = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)

    assert {"docs", "docs-reference", "readability"} <= set(" ".join(phony).split())


@needs_mkdocs
def test_the_hooks_do_what_their_examples_say() -> None:
    tested = doctest.testmod(import_module("docsite.hooks"))

    assert tested.attempted > 2
    assert tested.failed == 0


@needs_mkdocs
def test_the_site_builds_without_a_warning_and_has_no_dead_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert built.returncode == 0, built.stderr
    assert list(problems(tmp_path / "site")) == []
