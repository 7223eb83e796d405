"""The generated pages of the reference are those that the code makes, and their tables have everything."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

import truename
from docsite.reference import FOLDER, PAGES
from tests.shared import ROOT
from truename import errors
from truename.audit.fields import CALL_FIELDS, CHAIN_FIELDS, EVENTS, OTHER_FIELDS
from truename.audit.records import KINDS
from truename.dialects import table
from truename.errors import TruenameError

if TYPE_CHECKING:
    from collections.abc import Iterator


def read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_the_one_that_the_code_makes(name: str) -> None:
    assert read(name) == PAGES[name](), "make docs-reference"


@pytest.mark.parametrize("code", errors.CODES)
def test_every_code_has_a_class_on_the_page_of_errors(code: str) -> None:
    assert re.search(rf"^\| `{code}` \| .* \| \[`\w+`\]", read("errors.md"), re.MULTILINE)


def test_every_class_of_error_is_on_its_page() -> None:
    def below(kind: type[TruenameError]) -> Iterator[str]:
        for one in kind.__subclasses__():
            if one.__module__.startswith("truename."):
                yield one.__name__
            yield from below(one)

    # Bases that are never raised themselves, and an upstream error that never leaves the gateway.
    without = {"ResolutionError", "PolicyError", "BrokenOff"}
    assert set(below(TruenameError)) - without <= set(re.findall(r"^### (\w+)$", read("errors.md"), re.MULTILINE))


@pytest.mark.parametrize("name", truename.__all__)
def test_every_public_name_is_on_the_page_of_the_api(name: str) -> None:
    assert f"`{name}`" in read("python.md")


def test_every_dialect_is_on_its_page() -> None:
    assert {row.name for row in table()} == set(re.findall(r"^### (.+)$", read("dialects.md"), re.MULTILINE))


def keywords(source: str, *functions: str) -> set[str]:
    """Return the keywords with which some functions are called in a file."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    named = (node for node in calls if getattr(node.func, "id", getattr(node.func, "attr", "")) in functions)
    return {keyword.arg for node in named for keyword in node.keywords if keyword.arg}


def test_every_field_that_a_record_is_built_with_is_described() -> None:
    described = {*CALL_FIELDS, *OTHER_FIELDS, *CHAIN_FIELDS}
    for path in ("audit/records.py", "gateway/auditing.py", "gateway/trust/requests.py"):
        source = (ROOT / "src" / "truename" / path).read_text("utf-8")
        assert keywords(source, "record_fields", "note") <= described, path


def test_events_are_of_known_kinds() -> None:
    assert EVENTS.keys() <= KINDS.keys()
