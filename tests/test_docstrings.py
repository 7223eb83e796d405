"""Every example in a docstring is true."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import truename
from tests.shared import ROOT

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(truename.__path__, "truename.")
    if not module.name.endswith("__main__")
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_are_true(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS).failed == 0


def test_every_page_that_a_source_names_exists() -> None:
    named = {
        page
        for source in Path(truename.__path__[0]).rglob("*.py")
        # The help of commands has files of a user's repository in its examples.
        if source.parent.name != "cli"
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", source.read_text("utf-8"))
    }

    assert "docs/concepts/names.md" in named
    assert {page for page in named if not (ROOT / page).exists()} == set()


def test_no_source_cites_a_document_that_its_reader_does_not_have() -> None:
    cited = re.compile(r"\b(?:specification|seed)\s+00\d", re.IGNORECASE)

    assert [
        path.name for path in Path(truename.__path__[0]).rglob("*.py") if cited.search(path.read_text("utf-8"))
    ] == []
