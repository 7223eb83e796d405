"""The names that a tool holds in any of several tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truename import Catalog, Ledger, ToolId, project

if TYPE_CHECKING:
    from pathlib import Path

CATALOG = Catalog.from_mcp({"git": ["push"], "hg": ["pushAll"]})
TABLES = ("universal", "native", "cursor")


def test_the_names_that_a_tool_holds_are_those_of_all_its_tables(tmp_path: Path) -> None:
    first, second = CATALOG
    stored = Ledger.open(tmp_path / "ledger")
    for ledger in (Ledger.memory(), stored):
        assert list(ledger.held_anywhere(first, TABLES)) == []
        for dialect in ("universal", "cursor"):
            project(CATALOG, dialect, ledger=ledger)
        assert set(ledger.held_anywhere(first, TABLES)) == {"git_push"}
        assert set(ledger.held_anywhere(second, TABLES)) == {"hg_push_all", "hg_pushAll"}
        project(Catalog.from_mcp({"ssh": ["copy"]}), "cursor", ledger=ledger)
        assert list(ledger.held_anywhere(ToolId.parse("ssh/copy"), TABLES)) == ["ssh_copy"]
    stored.close()
    again = Ledger.open(tmp_path / "ledger")
    assert set(again.held_anywhere(second, TABLES)) == {"hg_push_all", "hg_pushAll"}
    again.close()


def test_an_id_that_was_redirected_is_bound_to_no_tool() -> None:
    ledger = Ledger.memory()
    project(CATALOG, "openai", ledger=ledger)
    bound = ("git", "push")
    assert ledger.bindings().get(bound) == next(iter(CATALOG))

    ledger.redirect("git@1/push@1", "hg@1/pushall@1")
    assert ledger.bindings().get(bound) is None
