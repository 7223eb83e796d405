"""Scopes, the fixed order of lists, and tools that go and come back."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.ledger.stories import claim, settings, show
from truename import Catalog, Ledger, ToolId, project, resolve
from truename.errors import UnknownTool

if TYPE_CHECKING:
    from pathlib import Path

AB, AC = ToolId.parse("a/b"), ToolId.parse("a/c")


def test_scopes_are_spaces_of_their_own(ledger: Ledger) -> None:
    one, other = ledger.scoped("one"), ledger.scoped("other")
    one.record([claim("x", "a/b"), settings("on-conflict")])
    other.record([claim("x", "a/c")])
    one.retire("x")

    assert (ledger.holder("x"), other.holder("x")) == (None, AC)
    assert one.is_withdrawn("x")
    assert not other.is_withdrawn("x")
    assert one.settings is not None
    assert (ledger.settings, other.settings) == (None, None)
    assert one.scoped("other").holder("x") == AC
    assert [event.scope for event in one.history("x")] == ["one", "one"]


def test_identities_and_the_pinned_order_are_shared_by_all_scopes(ledger: Ledger) -> None:
    show(ledger.scoped("one"), "b/x", "a/y")
    show(ledger, "a/z", "b/w", "c/v", "a/y", "b/x")

    assert [str(id) for id in ledger.pinned(map(ToolId.parse, ["c/v", "a/z", "a/y", "new/n", "b/w", "b/x"]))] == [
        "b@1/x@1",
        "b@1/w@1",
        "a@1/y@1",
        "a@1/z@1",
        "c@1/v@1",
        "new@1/n@1",
    ]
    assert ledger.origin_of(ToolId.parse("c/v")) is not None
    assert ledger.origin_of(ToolId.parse("new/n")) is None


def test_a_list_keeps_its_order_whatever_joins(ledger: Ledger) -> None:
    first = list(show(ledger, "m/b", "m/a", "z/x"))

    second = list(show(ledger, "a/new", "z/x", "m/c", "m/a", "m/b"))

    assert [id for id in second if id in first] == first
    assert [str(id) for id in second] == ["m@1/b@1", "m@1/a@1", "m@1/c@1", "z@1/x@1", "a@1/new@1"]


def test_bindings_bring_an_identity_back(ledger: Ledger) -> None:
    first = Catalog.from_mcp({"a": ["GET"]}, bound=ledger.bindings())
    project(first, "openai", ledger=ledger)

    second = Catalog.from_mcp({"a": ["get", "GET"]}, bound=ledger.bindings())

    assert second["a@1/get@1"].origin.name == "GET"
    with pytest.raises(TypeError):
        ledger.bindings()["a", "x"] = AB  # type: ignore[index]


def test_a_vanished_tool_gets_its_name_back(ledger: Ledger) -> None:
    ids = ("salesforce@1/lead@1", "salesforce@2/lead@1")
    before = dict(show(ledger, *ids))

    without = show(ledger, ids[1])
    after = dict(show(ledger, *ids))

    assert dict(without) == {ToolId.parse(ids[1]): "sf_lead_2"}
    assert before == after
    with pytest.raises(UnknownTool, match="not available now"):
        resolve("sf_lead", without)


def test_identities_are_counted_and_nobody_is_silent_who_needs_nobody(tmp_path: Path) -> None:
    with closing(Ledger.open(tmp_path / "ledger")) as stored, closing(Ledger.memory()) as memory:
        for ledger in (stored, memory):
            for _ in range(2):
                ledger.remember(None, (), [("a", name, ToolId.parse(f"a/{name}")) for name in ("x", "y")])
            assert (ledger.identities, ledger.silence) == (2, 0)
    # Nothing is read of a ledger that does not exist.
    assert Ledger.open(tmp_path / "none", readonly=True).silence == 0
