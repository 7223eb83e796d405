"""Sets of tools that a model sees together: what cannot stand side by side, and who loses where that is allowed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.errors import DuplicateTool
from truename.identity import ToolNames, ToolSetMember, check, clashes, collisions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from truename.identity.toolsets import Kind


def tool(text: str, kind: Kind = "function", owner: str = "") -> ToolSetMember:
    """Write ``n/x`` for a tool in a namespace and ``?x`` for a deferred one."""
    namespace, _, name = text.rpartition("/")
    return ToolSetMember(
        ToolNames(name=name.lstrip("?"), namespace=namespace or None, defer_loading="?" in text), kind, owner
    )


def tools(*texts: str) -> list[ToolSetMember]:
    return [tool(text, owner=str(number)) for number, text in enumerate(texts)]


@pytest.mark.parametrize(
    "texts",
    [
        (),
        ("x", "y"),
        ("x", "n/x"),
        ("x", "?x"),
        ("x", "n/x", "?x"),
        ("x", "X"),
        ("n/x", "m/x"),
        ("?x", "n/?x"),
        ("x", "x"),
        ("n.x", "?n.x"),
    ],
)
def test_these_stand_side_by_side_on_any_path(texts: Sequence[str]) -> None:
    check(tools(*texts))


@pytest.mark.parametrize(
    ("texts", "code", "name"),
    [
        (("x/x",), "reserved_namespace", "x.x"),
        (("x/?x",), "reserved_namespace", "x.x"),
        (("?x", "?x"), "duplicate_deferred", "x"),
        (("n/x", "n/x"), "duplicate_name", "n.x"),
        (("n/?x", "n/?x"), "duplicate_name", "n.x"),
        (("n.x", "n/x"), "ambiguous_qualified_name", "n.x"),
        (("n/x", "n.x"), "ambiguous_qualified_name", "n.x"),
        (("?n.x", "n/x"), "ambiguous_qualified_name", "n.x"),
        (("a/b.c", "a.b/c"), "ambiguous_qualified_name", "a.b.c"),
    ],
)
@pytest.mark.parametrize("policy", ["error", "warn"])
def test_no_policy_settles_these(texts: Sequence[str], code: str, name: str, policy: str) -> None:
    with pytest.raises(DuplicateTool) as caught:
        collisions(tools(*texts), "warn" if policy == "warn" else "error")

    assert (caught.value.code, caught.value.name) == (code, name)


def test_several_faults_are_all_told() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        check(tools("x/x", "?y", "?y", "n/z", "n.z"))

    codes = [error.code for error in caught.value.exceptions if isinstance(error, DuplicateTool)]
    assert codes == ["reserved_namespace", "duplicate_deferred", "ambiguous_qualified_name"]


def test_a_handoff_that_reads_like_a_tool_in_a_namespace_is_refused_too() -> None:
    with pytest.raises(DuplicateTool) as caught:
        check([tool("n/x"), tool("n.x", "handoff")])

    assert caught.value.code == "ambiguous_qualified_name"


KINDS: list[Kind] = ["function", "agent_tool", "handoff", "custom", "hosted"]


def naive_clash(one: ToolSetMember, other: ToolSetMember) -> bool:
    """The way of the reference: only functions and handoffs are compared."""
    return {one.kind, other.kind} <= {"function", "agent_tool", "handoff"} and one.names.name == other.names.name


@pytest.mark.parametrize("one", KINDS)
@pytest.mark.parametrize("other", KINDS)
def test_any_two_kinds_of_tools_of_one_name_are_an_error_by_default(one: Kind, other: Kind) -> None:
    pair = [tool("x", one, "first"), tool("x", other, "second")]

    with pytest.raises(DuplicateTool) as caught:
        collisions(pair)

    assert {caught.value.existing, caught.value.duplicate} == set(map(str, pair))
    assert "'first'" in str(caught.value)
    assert "'second'" in str(caught.value)


def test_a_comparison_of_functions_alone_would_let_a_custom_tool_pass() -> None:
    pair = [tool("x"), tool("x", "custom")]

    assert not naive_clash(*pair)
    assert len(clashes(pair)) == 1


def test_several_collisions_are_all_told() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        collisions(tools("x", "x", "y", "y"))

    assert [getattr(error, "name", "") for error in caught.value.exceptions] == ["x", "y"]


@pytest.mark.parametrize(
    ("members", "left"),
    [
        ([tool("x", owner="1"), tool("x", owner="2"), tool("y")], ["2", ""]),
        ([tool("x", "handoff", "1"), tool("x", owner="2")], ["1"]),
        ([tool("x", "handoff", "1"), tool("x", "handoff", "2"), tool("x", owner="3")], ["2"]),
        ([tool("x", "custom", "1"), tool("x", owner="2"), tool("x", "hosted", "3")], ["3"]),
        ([tool("x", owner="1"), tool("?x", "function", "2"), tool("n/x", owner="3")], ["1", "2", "3"]),
        ([tool("", owner="1"), tool("", owner="2")], ["1", "2"]),
    ],
)
def test_with_warn_the_last_handoff_or_else_the_last_tool_keeps_the_name(
    members: list[ToolSetMember], left: list[str]
) -> None:
    assert [member.owner for member in collisions(members, "warn").members] == left


def test_with_warn_the_losers_are_named_in_the_log_and_in_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        kept = collisions(
            [tool("x", owner="docs"), tool("x", "custom", "local"), tool("x", "handoff", "sales")], "warn"
        )

    assert [member.owner for member in kept.losers] == ["docs", "local"]
    (message,) = caplog.messages
    assert "'docs'" in message
    assert "'local'" in message
    assert message.endswith("handoff 'x' of 'sales' has the name")


def test_equal_members_are_still_two_and_one_of_them_stays() -> None:
    assert len(collisions([tool("x"), tool("x")], "warn").members) == 1


def test_one_member_that_is_given_twice_stays_once() -> None:
    member = tool("x")

    kept = collisions([member, member], "warn")

    assert kept.members == (member,)
    assert kept.losers == (member,)


MEMBERS = st.lists(
    st.builds(tool, st.sampled_from(["x", "y", "n/x", "n.x", "?x", "x/x", "m/y"]), st.sampled_from(KINDS)), max_size=6
)


@given(MEMBERS)
def test_what_is_kept_can_be_called_apart(members: list[ToolSetMember]) -> None:
    try:
        kept = collisions(members, "warn")
    except (DuplicateTool, ExceptionGroup):
        return

    keys = [member.names.lookup_key for member in kept.members]
    assert len(set(keys)) == len(keys)
    assert len(kept.members) + len(kept.losers) == len(members)
    assert {member.names.lookup_key for member in members} == set(keys)
    assert collisions(kept.members).members == kept.members
