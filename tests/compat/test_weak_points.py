"""Weak points of the reference, each beside the naive way that has it: 3, 4, 7 and 10 of its specification."""

from __future__ import annotations

import pytest

from tests.compat.tools import call, served, tool
from truename import Catalog, Ledger, dialects, project
from truename.compat.openai_approvals import AgentApprovals
from truename.compat.openai_mcp import prefixed_names, reserved_names
from truename.errors import DuplicateTool
from truename.identity import ToolNames, ToolSetMember, collisions, is_reserved
from truename.policy import Approvals, bound_call

LONG = "the-very-long-name-of-a-server-that-somebody-installed-yesterday"
TOOLS = ["create_invoice", "delete_invoice", "list_invoices"]


class NaiveApprovals:
    """Grants by joined text, as in the reference before it had a second mechanism (weak point 3)."""

    def __init__(self) -> None:
        self.granted: set[str] = set()

    def approve(self, names: ToolNames) -> None:
        self.granted.add(names.qualified_name or "")

    def is_approved(self, names: ToolNames) -> bool:
        return names.qualified_name in self.granted


def test_3_a_grant_for_a_dotted_tool_is_none_for_the_tool_in_a_namespace() -> None:
    dotted, spaced = tool("n.x"), tool("n/x")
    naive, ours = NaiveApprovals(), AgentApprovals()

    naive.approve(dotted.names)
    ours.approve_tool(call(dotted, "1"), always_approve=True)

    assert naive.is_approved(spaced.names)
    assert ours.get_approval_status(call(spaced, "2")) is None
    assert ours.get_approval_status(call(dotted, "3")) is True


def test_3_a_tool_that_is_called_like_the_key_of_another_has_no_part_in_its_grants() -> None:
    deferred, literal = tool("?x"), tool("deferred_top_level:x")
    ours = AgentApprovals()

    ours.approve_tool(call(deferred, "1"), always_approve=True)

    assert deferred.names.approval_keys()[-1] == literal.names.approval_keys()[-1]
    assert ours.get_approval_status(call(literal, "2")) is None


def naive_may_be(name: str, namespace: str) -> bool:
    """A namespace that equals the name is the sign of deferred loading, so no tool may have it (weak point 4)."""
    return not is_reserved(name, namespace)


def test_4_tool_search_of_server_search_is_a_tool_like_any_other() -> None:
    catalog = Catalog.from_mcp({"search": ["search", "fetch"], "files": ["search"]})
    names = project(catalog, dialects.get("openai-responses"))
    own, other = "search@1/search@1", "files@1/search@1"
    approvals = Approvals()

    approvals.approve(bound_call(name=names[own], call_id="1", arguments={}, names=names), "always")

    assert not naive_may_be("search", "search")
    assert len(set(names.values())) == 3
    assert approvals.status(bound_call(name=names[own], call_id="2", arguments={}, names=names)).state == "approved"
    assert approvals.status(bound_call(name=names[other], call_id="3", arguments={}, names=names)).state == "undecided"


def test_7_a_long_server_leaves_the_tool_readable() -> None:
    naive = [name.public for name in prefixed_names([(LONG, TOOLS)])]
    ours = project(Catalog.from_mcp({LONG: TOOLS}), "openai", style="server-prefix").values()

    assert not any(verb in name for name in naive for verb in ("create", "delete", "list"))
    for verb, name in zip(("create", "delete", "list"), ours, strict=True):
        assert verb in name
        assert "invoice" in name
        assert dialects.get("openai").check(name) == ()


def test_7_names_of_other_scripts_are_told_apart_and_can_be_read() -> None:
    naive = [name.public for name in prefixed_names([("天气", ["检索"]), ("文件", ["写入"])])]
    ours = list(
        project(Catalog.from_mcp({"天气": ["检索"], "文件": ["写入"]}), "openai", style="server-prefix").values()
    )

    assert [name.rpartition("_")[0] for name in naive] == ["mcp_server__tool", "mcp_server__tool"]
    assert len(set(ours)) == 2
    assert all(name.isascii() and "tool" not in name for name in ours)


def test_2_and_7_a_name_that_was_shown_stays_when_a_server_joins() -> None:
    ledger = Ledger.memory()
    before = project(Catalog.from_mcp({"foo": ["create"]}), "openai", style="server-prefix", ledger=ledger)
    after = project(
        Catalog.from_mcp({"foo": ["create"], "foo!": ["create"]}), "openai", style="server-prefix", ledger=ledger
    )
    naive = [
        prefixed_names(servers)[0].public
        for servers in ([("foo", ["create"])], [("foo", ["create"]), ("foo!", ["create"])])
    ]

    assert naive[0] != naive[1]
    assert after["foo@1/create@1"] == before["foo@1/create@1"]


def naive_reserved(members: list[ToolSetMember]) -> set[str]:
    """Only function tools and handoffs are looked at (weak point 10)."""
    return {member.names.name for member in members if member.kind in {"function", "handoff"}}


def test_10_no_mcp_tool_gets_the_name_of_a_custom_tool() -> None:
    custom = tool("mcp_docs__search", "custom")
    naive = prefixed_names([("docs", ["search"])], naive_reserved([custom]))
    ours = prefixed_names([("docs", ["search"])], reserved_names([custom]))

    assert naive[0].public == custom.names.name
    assert ours[0].public == "mcp_docs__search_15de6fa1"


@pytest.mark.parametrize("kind", ["custom", "hosted", "handoff", "agent_tool"])
def test_10_tools_of_any_kind_collide(kind: str) -> None:
    members = [served("docs", "search"), tool("search", kind)]  # type: ignore[arg-type]

    with pytest.raises(DuplicateTool):
        collisions(members)
