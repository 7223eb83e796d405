"""A definition that a server lists again is the one that is known, unless anything in it is written otherwise."""

from __future__ import annotations

from typing import Any

from truename.config import ServerConfig, Settings
from truename.gateway.upstream.known import Known
from truename.gateway.upstream.lists import NOTHING


def _tool(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "annotations": {"readOnlyHint": value}}


def _known() -> Known:
    return Known(ServerConfig(key="s", command="none"), Settings(state="memory"))


def test_a_list_that_is_read_again_is_no_news() -> None:
    known = _known()

    assert known.takes((_tool("a", True),), NOTHING)
    before = known.tools
    assert not known.takes((_tool("a", True),), NOTHING)
    assert known.tools is before


def test_of_a_list_with_one_change_all_else_stays_what_it_was() -> None:
    known = _known()
    known.takes((_tool("a", True), _tool("b", True)), NOTHING)
    before = known.tools or ()

    assert known.takes((_tool("a", True), _tool("b", False)), NOTHING)
    now = known.tools or ()
    assert now[0] is before[0]
    assert now[1] == _tool("b", False)


def test_true_is_not_one() -> None:
    known = _known()
    known.takes((_tool("a", True),), NOTHING)

    assert known.takes((_tool("a", 1),), NOTHING)
    assert known.tools is not None
    assert known.tools[0]["annotations"]["readOnlyHint"] == 1
    assert known.tools[0]["annotations"]["readOnlyHint"] is not True


def test_an_empty_list_is_news_where_none_was_known() -> None:
    known = _known()

    assert known.tools is None
    assert known.takes((), NOTHING)
    assert known.tools == ()
