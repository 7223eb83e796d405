"""The page about comparisons and the lock says what is so."""

from __future__ import annotations

import re

from tests.shared import ROOT
from truename.migration import Kind, Lock

PAGE = (ROOT / "docs" / "diff-and-lock.md").read_text("utf-8")


def test_the_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(compile(code, "page", "exec"), {})


def test_every_kind_of_change_is_explained() -> None:
    assert {kind.value for kind in Kind} <= set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))


def test_the_lock_that_is_shown_is_one_but_for_its_short_digests() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tool,) = Lock.parse(re.sub(r"sha256:\w+\.\.\.", f"sha256:{'0' * 64}", text)).tools

    assert (tool.name, tool.parameters) == ("fs_list", ("depth?", "path"))
