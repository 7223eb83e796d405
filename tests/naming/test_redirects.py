"""Redirects of ids: followed to the last, in a row and never in a circle."""

from __future__ import annotations

from itertools import pairwise

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

    assert {found(text, names) for text in ("docs_old", "docs/find", "docs/look", "docs@1~look", "Docs@1~Look")} == {
        ("docs@1/search@1", "ledger")
    }
    assert found("DOCS-OLD", names) == ("docs@1/search@1", "folded")
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


def test_the_latest_redirect_of_a_circle_counts() -> None:
    ledger = Ledger.memory()
    before = project(Catalog.from_mcp({"docs": ["look"]}), "openai", ledger=ledger)
    ledger.redirect("docs/look", "docs/search")
    between = project(Catalog.from_mcp({"docs": ["search"]}), "openai", ledger=ledger)
    ledger.redirect("docs/search", "docs/look")
    after = project(Catalog.from_mcp({"docs": ["look"]}), "openai", ledger=ledger)

    for text in (*before.values(), *between.values(), "docs/look", "docs/search"):
        assert str(resolve(text, after).id) == "docs@1/look@1"


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_circle_of_any_length_ends_at_the_tool_that_was_named_last(length: int) -> None:
    ledger = Ledger.memory()
    ids = [ToolId.parse(f"docs/t{number}") for number in range(length)]
    names = project(Catalog.of(*ids), "openai", ledger=ledger)
    for old, new in zip(ids, (*ids[1:], ids[0]), strict=True):
        ledger.redirect(str(old), new)

    assert {resolve(str(id), names).id for id in ids} == {ids[0]}


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


def test_redirects_are_followed_to_the_thirty_second() -> None:
    ledger = Ledger.memory()
    ids = [ToolId.parse(f"docs/t{number}") for number in range(40)]
    names = project(Catalog.of(ids[-1]), "openai", ledger=ledger)
    for old, new in pairwise(ids):
        ledger.redirect(str(old), new)

    assert resolve(str(ids[-32]), names).id == ids[-1]
    with pytest.raises(UnknownTool) as caught:
        resolve(str(ids[0]), names)
    assert caught.value.reason == "absent"
    assert caught.value.trail[-1] == "ledger: a chain of more than 32 redirects"
    assert len(list(ledger.successors(ids[0]))) == 32


def listed(ledger: Ledger, *tools: str) -> NameTable:
    catalog = Catalog.from_mcp({"docs": tools}, bound=ledger.bindings(), owners=ledger.origins())
    return project(catalog, "universal", ledger=ledger)


@pytest.mark.parametrize("name", ["docs_look", "docs/look", "docs@1~look"])
def test_what_a_server_later_lists_under_a_redirected_tools_name_is_another_tool(name: str) -> None:
    ledger = Ledger.memory()
    listed(ledger, "look")
    ledger.redirect("docs/look", "docs/search")
    listed(ledger, "search")

    names = listed(ledger, "look", "search")
    (newcomer,) = (id for id, tool in names.catalog.items() if tool.origin.name == "look")

    assert str(resolve(name, names).id) == "docs@1/search@1"
    for text in (str(newcomer), names[newcomer]):
        assert resolve(text, names).id == newcomer
    again = listed(ledger, "look", "search")
    assert dict(again) == dict(names)


def test_a_redirected_tool_keeps_its_id_until_its_successor_was_seen_and_where_the_redirect_was_taken_back() -> None:
    ledger = Ledger.memory()
    listed(ledger, "look")
    ledger.redirect("docs/look", "docs/search")
    assert "docs@1/look@1" in map(str, listed(ledger, "look"))

    ledger.redirect("docs/look", "docs/look")
    listed(ledger, "search")
    assert "docs@1/look@1" in map(str, listed(ledger, "look", "search"))


@pytest.mark.parametrize("text", ["files@1_get@1", "Files@1_get@1", "files@1:get@1"])
def test_the_redirect_of_an_id_does_not_take_a_name_that_folds_like_it(text: str) -> None:
    ledger = Ledger.memory()
    before = project(Catalog.from_mcp({"disk": ["files@1/get@1"]}), "native", style="on-conflict", ledger=ledger)
    assert [str(name) for name in before.values()] == ["files@1_get@1"]

    ledger.redirect("files@1/get@1", "docs/read")
    names = project(Catalog.from_mcp({"docs": ["read"]}), "universal", style="on-conflict", ledger=ledger)

    with pytest.raises(UnknownTool):
        resolve(text, names)


def test_a_name_with_slashes_that_is_no_id_is_redirected_as_a_name() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.from_mcp({"docs": ["read"]}), "universal", ledger=ledger)

    ledger.redirect("a/b/c", "docs/read")

    assert found("a/b/c", names) == ("docs@1/read@1", "ledger")
    assert ledger.standing_folded("a_b_c") is not None
