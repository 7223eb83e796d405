"""What a wrong name is answered with names only what this session could call."""

from __future__ import annotations

from truename import ToolId
from truename.errors import AmbiguousName, RetiredName, UnknownTool
from truename.gateway.views.wording import among

SHOWN, HIDDEN = ("read",), ("a_secret", "b_secret")
AMBIGUOUS = AmbiguousName(text="secret", candidates=("a_secret", "b_secret", "read"))
RETIRED = RetiredName(text="old", id=ToolId.parse("a/old"), successor="a_secret", since="2026-11-22")


def test_hidden_tools_are_no_candidates_successors_or_suggestions() -> None:
    assert among(AMBIGUOUS, SHOWN, HIDDEN) == AmbiguousName(text="secret", candidates=("read",))
    assert among(RETIRED, SHOWN, HIDDEN) == RetiredName(text="old", id=ToolId.parse("a/old"), since="2026-11-22")
    assert among(UnknownTool(text="x", suggestions=HIDDEN), SHOWN, HIDDEN) == UnknownTool(text="x")


def test_where_all_candidates_are_hidden_there_is_no_such_tool() -> None:
    assert among(AMBIGUOUS, (), (*HIDDEN, "read")) == UnknownTool(text="secret")


def test_a_successor_that_is_shown_is_told() -> None:
    assert among(RETIRED, ("a_secret",), HIDDEN) is RETIRED
