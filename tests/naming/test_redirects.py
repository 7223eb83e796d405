"""Redirects of ids: followed to the last, in a row and never in a circle."""

from __future__ import annotations

import pytest

from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.errors import RetiredName, UnknownTool


def found(text: str, names: NameTable) -> tuple[str, str]:
    resolution = resolve(text, names)
    return str(resolution.id), resolution.step


def test_redirects_of_ids_are_followed_to_the_last() -> None:
    ledger = Ledger.memory()
    for name in ("find", "look", "search"):
        names = project(Catalog.from_mcp({"docs": [name]}), "openai", ledger=ledger)
    ledger.redirect("docs_old", "docs/find")
    ledger.redirect("docs/find", "docs/look")
    ledger.redirect("docs/look", "docs/search")

    assert {found(text, names) for text in ("docs_old", "docs/find", "docs/look", "Docs@1~Look", "DOCS-OLD")} == {
        ("docs@1/search@1", "ledger")
    }
    assert resolve("docs/find", names).trail[-2:] == (
        "ledger: redirected to docs@1/look@1, which is withdrawn too",
        "ledger: redirected",
    )


def test_a_redirect_to_a_tool_that_is_still_there_is_followed_further_too() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.from_mcp({"docs": ["look", "search"]}), "openai", ledger=ledger)
    ledger.redirect("docs/find", "docs/look")
    ledger.redirect("docs/look", "docs/search")

    assert found("docs/find", names) == found("docs/look", names) == ("docs@1/search@1", "ledger")


def test_a_redirect_to_a_retired_id_is_retired() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.from_mcp({"docs": ["look", "search"]}), "openai", ledger=ledger)
    ledger.redirect("docs/find", "docs/look")
    ledger.retire("docs/look", successor="docs@1/search@1")

    with pytest.raises(RetiredName) as caught:
        resolve("docs/find", names)

    assert caught.value.successor == "docs_search"


@pytest.mark.parametrize("circle", [("docs/look", "docs/search"), ("docs/a", "docs/b", "docs/search")])
def test_redirects_in_a_circle_lead_to_no_tool(circle: tuple[str, ...]) -> None:
    ledger = Ledger.memory()
    names = project(Catalog.from_mcp({"docs": ["look", "search"]}), "openai", ledger=ledger)
    ledger.redirect("old", circle[0])
    for old, new in zip(circle, (*circle[1:], circle[0]), strict=True):
        ledger.redirect(old, ToolId.parse(new))

    for text in ("old", *circle):
        with pytest.raises(UnknownTool) as caught:
            resolve(text, names)
        assert caught.value.reason == "absent"
        assert caught.value.trail[-1] == "ledger: its redirects are a circle"


def test_a_redirect_is_taken_back_by_one_to_itself() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.from_mcp({"docs": ["find"]}), "openai", ledger=ledger)
    ledger.redirect("docs/find", "docs/look")
    ledger.redirect("docs/look", "docs/find")
    ledger.redirect("docs/find", "docs/find")

    assert found("docs/look", names) == found("docs/find", names) == ("docs@1/find@1", "ledger")


@pytest.mark.parametrize("form", ["docs/{}", "docs@1/{}@1", "Docs/{}", "docs%401~{}"])
def test_ids_that_differ_in_a_hyphen_only_are_redirected_each_to_its_own(form: str) -> None:
    ledger = Ledger.memory()
    names = project(Catalog.from_mcp({"docs": ["get_data", "get-data", "one", "two"]}), "openai", ledger=ledger)
    ledger.redirect("docs/get_data", "docs/one")
    ledger.redirect("docs/get-data", "docs/two")

    assert found(form.format("get_data"), names)[0] == "docs@1/one@1"
    assert found(form.format("get-data"), names)[0] == "docs@1/two@1"
