"""The page about comparisons and the lock says what is so."""

from __future__ import annotations

import re

from tests.shared import ROOT
from truename.identity import definition_digest
from truename.migration import ChangeKind, Lock

PAGE = (ROOT / "docs" / "teams" / "diff-and-lock.md").read_text("utf-8")


def test_the_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

    exec(compile(code, "page", "exec"), {})


def test_every_kind_of_change_is_explained() -> None:
    assert {kind.value for kind in ChangeKind} <= set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))


def test_the_lock_that_is_shown_is_one_but_for_what_is_cut_short() -> None:
    (text,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    said = {"description": "List the files of a directory."}
    digest = definition_digest({"name": "fs_list", **said})
    (tool,) = Lock.parse(text.replace(", ...}", "}").replace("sha256:3fd4...", digest)).tools

    assert (tool.name, tool.parameters) == ("fs_list", ("depth?", "path"))
    assert tool.definition == {"name": "fs_list", **said}
