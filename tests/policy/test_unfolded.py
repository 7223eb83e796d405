"""What is denied of a tool stays denied, whichever of two look-alikes gets the plain id."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from truename import Catalog, project
from truename.config import Settings
from truename.config.trust import Trust
from truename.config.unmatched import idle
from truename.conventions import Metadata
from truename.identity import lower_ascii
from truename.policy import Approvals, Caller, CallRule, Context, Exposure, Policy, bound_call, parity
from truename.policy.presentation import Presentation
from truename.policy.profiles import Profile
from truename.trust import OfferedTools, PinStore, admit

if TYPE_CHECKING:
    from truename.catalog import Tool

TWINS = Catalog.from_mcp({"alpha": ["Danger", "danger"]})
MOVED = next(tool for tool in TWINS.values() if tool.origin.name == "Danger")
OTHER = next(tool for tool in TWINS.values() if tool.origin.name == "danger")
NAMES = st.text("aAbB.-_ é~", min_size=1, max_size=4).filter(str.strip)
COMPANY = st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=5, unique=True), min_size=1, max_size=3)


def rule(outcome: Any, glob: str, *but: str) -> CallRule:
    return CallRule(name="r", outcome=outcome, tools=(glob,), but=but)


def applies(one: CallRule, tool: Tool) -> bool:
    return one.applies(tool.id, tool.origin, {}, Caller())


def alone(tool: Tool) -> str:
    """Return the id that a tool has where there is no other."""
    (found,) = Catalog.from_mcp({tool.origin.server: [tool.origin.name]})
    return str(found)


def replaced(text: str) -> str:
    lower = lower_ascii(text)
    return lower if re.fullmatch("[a-z0-9_-]+", lower) else re.sub(r"[^a-z0-9_-]+", "-", lower).strip("-")


@given(COMPANY)
def test_a_tool_is_denied_and_asked_about_under_the_id_that_it_has_alone_and_allowed_under_its_own_only(
    servers: dict[str, list[str]],
) -> None:
    for tool in Catalog.from_mcp(servers).values():
        glob = alone(tool)
        assert applies(rule("deny", glob), tool)
        assert applies(rule("ask", glob), tool)
        assert applies(rule("allow", glob), tool) is (glob == str(tool.id))
        # An exception is for the tool that has the id.
        assert applies(rule("deny", "*", glob), tool) is (glob != str(tool.id))


@given(COMPANY)
def test_a_tool_is_denied_under_the_names_that_are_left_of_foreign_ones_without_a_digest(
    servers: dict[str, list[str]],
) -> None:
    for tool in Catalog.from_mcp(servers).values():
        server, name = replaced(tool.origin.server), replaced(tool.origin.name)
        if re.search("[a-z0-9]", server) and re.search("[a-z0-9]", name) and "." not in tool.origin.name:
            assert applies(rule("deny", f"{server}/{name}"), tool)
            assert applies(rule("deny", f"{server}/*"), tool)


@given(COMPANY, NAMES, NAMES)
@example({"A-": ["A"]}, "A", "A")
@example({"-a": ["A"]}, "A", "A")
def test_a_rule_is_about_no_tool_whose_server_or_name_only_begins_alike(
    servers: dict[str, list[str]], server: str, name: str
) -> None:
    (glob,) = map(str, Catalog.from_mcp({server: [name]}))
    for tool in Catalog.from_mcp(servers).values():
        alike = lower_ascii(tool.origin.server) == lower_ascii(server) or replaced(tool.origin.server) == replaced(
            server
        )
        if not alike:
            assert not applies(rule("deny", glob), tool)


@pytest.mark.parametrize(
    ("server", "name", "glob"),
    [
        ("alpha", "drop table", "alpha/drop-table"),
        ("alpha", "drop table", "alpha/drop?table"),
        ("alpha", "admin.drop table", "alpha/admin.*"),
        ("My Server", "danger", "my-server/danger"),
        ("Alpha", "Danger", "alpha/danger"),
        ("alpha", "dаnger", "alpha/d-nger"),
    ],
)
def test_foreign_names_are_denied_as_they_are_written_and_as_they_are_read(server: str, name: str, glob: str) -> None:
    (tool,) = Catalog.from_mcp({server: [name]}).values()
    assert applies(rule("deny", glob), tool)
    assert applies(rule("allow", glob), tool) is (tool.id.short == glob)


def test_what_is_excluded_from_a_profile_stays_out_under_the_plain_id() -> None:
    everything = Profile(tools=("alpha/*",), excluded=("alpha/danger",))
    assert not everything.shows(MOVED, Metadata())
    assert not Profile(tools=("alpha/danger",)).shows(MOVED, Metadata())
    assert Profile(tools=("alpha/danger",)).shows(OTHER, Metadata())


def test_metadata_that_limits_a_tool_limits_it_under_the_plain_id() -> None:
    exposure = Exposure(metadata={"alpha/danger": {"is_for_llm": False}})
    assert not exposure.visible(MOVED, Context())


def test_an_operators_hint_that_warns_stays_with_the_tool_and_one_that_soothes_does_not() -> None:
    own = Presentation({"alpha/danger": {"annotations": {"destructiveHint": True, "idempotentHint": True}}})
    shown = own.over(TWINS)
    assert shown[MOVED.id].shown["annotations"] == {"destructiveHint": True}
    assert shown[OTHER.id].shown["annotations"] == {"destructiveHint": True, "idempotentHint": True}


def test_a_persons_no_stays_with_the_tool_and_a_yes_does_not() -> None:
    first = project(Catalog.from_mcp({"alpha": ["Danger"]}), "openai")
    then = project(TWINS, "openai")

    def call(names: Any, tool: Any, key: str) -> Any:
        return bound_call(name=str(tool), call_id=key, arguments={}, names=names, caller=Caller(principal="ann"))

    for approved, state in ((False, "rejected"), (True, "undecided")):
        approvals = Approvals()
        decide = approvals.approve if approved else approvals.reject
        decide(call(first, "alpha/danger", "1"), "always")
        assert approvals.status(call(then, MOVED.id, "2")).state == state
        # It was about another tool of the same server.
        assert approvals.status(call(then, OTHER.id, "3")).state != ("approved" if approved else "rejected")


@pytest.mark.parametrize("drift", ["quarantine", "block"])
def test_a_pin_and_a_rejection_stay_with_the_tool(drift: Any) -> None:
    book, trust = PinStore(), Trust(drift=drift)
    alone = [*Catalog.from_mcp({"alpha": [{"name": "Danger", "description": "x"}]}).values()]
    book.trust(admit(OfferedTools(alone), book.pins(), book.seen(), trust).pins)
    changed = {"name": "Danger", "description": "y"}
    tools = [*Catalog.from_mcp({"alpha": [changed, {"name": "danger"}]}).values()]
    found = admit(OfferedTools(tools), book.pins(), book.seen(), trust)
    assert {one.key: one.kind for one in found.drifts}[str(MOVED.id)] == "drifted"
    assert MOVED.id in found.hidden or MOVED.id in found.replaced
    # What somebody said no to is no newcomer under another id.
    book.note([one for one in found.notes or found.rejected if one.name == "Danger"], "rejected", by="me")
    again = PinStore()
    again.note(admit(OfferedTools(alone), {}, {}, trust).pins, "rejected", by="me")
    same = [*Catalog.from_mcp({"alpha": [{"name": "Danger", "description": "x"}, {"name": "danger"}]}).values()]
    assert MOVED.id in admit(OfferedTools(same), again.pins(), again.seen(), trust).hidden


def test_settings_that_keep_a_tool_from_somebody_are_not_said_to_be_about_none() -> None:
    names = Catalog.from_mcp({"alpha": ["drop table"]})
    for outcome, said in (("deny", ()), ("allow", ("rule 'r': 'alpha/drop-table'",))):
        policy = Policy(rules=[rule(outcome, "alpha/drop-table")])
        assert idle(Settings(policy=policy), names) == said
        assert any(one.rule.code == "TN101" for one in parity(policy, names)) is bool(said)
