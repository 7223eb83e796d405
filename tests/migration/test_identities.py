"""Servers that get other identities, again and again: what once meant a tool never means another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.catalog import ServerIdentity
from truename.errors import LedgerError, MigrationError, ResolutionError
from truename.migration import plan_identities, record_identities

if TYPE_CHECKING:
    from pathlib import Path

SERVERS = {"a": ["get", "Get", "put"], "b": ["get", "a.get"]}
DECLARED = st.fixed_dictionaries(
    dict.fromkeys(
        SERVERS,
        st.builds(
            ServerIdentity,
            integration=st.sampled_from([None, "a", "b", "c"]),
            version=st.sampled_from([None, 2]),
            versions=st.dictionaries(st.sampled_from(["get", "put"]), st.integers(1, 2), max_size=2),
        ),
    )
)


def tool(id: ToolId, catalog: Catalog) -> tuple[str, str]:
    return catalog[id].origin.server, catalog[id].origin.name


@given(st.lists(DECLARED, min_size=1, max_size=5), st.sampled_from(["prefixed", "on-conflict"]), st.booleans())
def test_every_name_and_id_that_was_shown_goes_on_meaning_its_tool(
    steps: list[dict[str, ServerIdentity]], style: str, scoped: bool
) -> None:
    ledger = Ledger.memory()
    here = ledger.scoped("only/a") if scoped else ledger
    meant: dict[str, tuple[str, str]] = {}
    for declared in steps:
        plan = plan_identities(ledger, declared)
        if not plan.ok:
            with pytest.raises(MigrationError):
                record_identities(ledger, plan)
            with pytest.raises(LedgerError, match="truename rename --ids"):
                Catalog.from_mcp(SERVERS, bound=ledger.bindings(), identities=declared)
            continue
        record_identities(ledger, plan)
        catalog = Catalog.from_mcp(
            SERVERS, bound=ledger.bindings(), owners=ledger.origins(), identities=declared, strict=False
        )
        names = project(catalog, "universal", style=style, ledger=here)
        for id, name in names.items():
            for text in (name, str(id)):
                assert meant.setdefault(text, tool(id, catalog)) == tool(id, catalog)
        present = {tool(id, catalog) for id in names}
        for text, whose in meant.items():
            if whose in present:
                assert tool(resolved(text, names), catalog) == whose
            else:
                with pytest.raises(ResolutionError):
                    resolve(text, names)


def resolved(text: str, names: NameTable) -> ToolId:
    found = resolve(text, names).id
    assert found is not None
    return found


def test_a_plan_is_in_the_order_of_the_ledger() -> None:
    ledger = Ledger.memory()
    ledger.remember(None, (), [("s", name, ToolId.parse(f"s/{name}")) for name in ("z", "a", "m")])

    plan = plan_identities(ledger, {"s": ServerIdentity(version=2)})
    record_identities(ledger, plan)

    assert [change.name for change in plan.changes] == ["z", "a", "m"]
    assert [str(id) for id in ledger.pinned(ledger.bindings().values())] == ["s@2/z@1", "s@2/a@1", "s@2/m@1"]


def test_a_tool_with_another_version_stays_where_it_was_in_the_list(tmp_path: Path) -> None:
    ledger = Ledger.open(tmp_path / "ledger")
    ledger.remember(None, (), [("s", name, ToolId.parse(f"s/{name}")) for name in ("z", "a", "m")])

    record_identities(ledger, plan_identities(ledger, {"s": ServerIdentity(versions={"a": 3})}))

    again = Ledger.open(tmp_path / "ledger", readonly=True)
    for memory in (ledger, again):
        assert [str(id) for id in memory.pinned(memory.bindings().values())] == ["s@1/z@1", "s@1/a@3", "s@1/m@1"]


def test_a_retired_id_is_not_given_to_a_tool() -> None:
    ledger = Ledger.memory()
    ledger.remember(None, (), [("s", "get", ToolId.parse("s/get"))])
    ledger.redirect("t/get", "s/get")

    (refusal,) = plan_identities(ledger, {"s": ServerIdentity(integration="t")}).refusals

    assert refusal.kind == "taken"
    assert "was redirected" in refusal.fact
