"""What the adapters for frameworks share: names of what is listed, calls that are checked, and no second run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename import Catalog, project
from truename.adapters.toolbox import Toolbox, ToolboxNames, error_text
from truename.errors import ApprovalRequired, InvalidCall, NotAllowed, TruenameError, UnknownTool
from truename.ledger import Ledger
from truename.policy import Approvals, Call, Caller, CallRule, Policy, Presentation

if TYPE_CHECKING:
    from collections.abc import Mapping

LISTED: Mapping[str, Any] = {"docs": ["search", "read"], "crm": ["search"]}
ALLOW = Policy(default="allow")


def box(policy: Policy = ALLOW, **more: Any) -> Toolbox:
    return Toolbox(names=ToolboxNames().table(LISTED), policy=policy, **more)


def test_what_can_not_be_admitted_is_left_out_and_reported() -> None:
    names = ToolboxNames().table({"docs": [{"name": "search"}, {"name": ""}, {"name": 7}, {}]})

    assert list(names.values()) == ["docs_search"]
    assert [notice.code for notice in names.catalog.notices] == ["invalid"] * 3


def test_a_model_reads_what_the_operator_says_of_a_tool() -> None:
    said = Presentation({"docs/search": {"description": "Mine."}})
    catalog = said.over(Catalog.from_mcp({"docs": [{"name": "search", "description": "Theirs."}]}))
    offers = Toolbox(names=project(catalog, "openai"), policy=ALLOW).offered

    assert [(offer.description, offer.tool.definition["description"]) for offer in offers] == [("Mine.", "Theirs.")]


def test_names_stay_with_a_ledger_whatever_joins() -> None:
    naming = ToolboxNames(ledger=Ledger.memory())
    before = dict(naming.table({"docs": ["search"]}))

    assert before.items() <= dict(naming.table({"docs-": ["search"], "docs": ["search", "Search"]})).items()


@pytest.mark.parametrize(
    ("name", "call_id", "arguments", "field"),
    [
        (None, "c", {}, "name"),
        ("", "c", {}, "name"),
        (7, "c", {}, "name"),
        (b"docs_search", "c", {}, "name"),
        ("docs_search", None, {}, "call_id"),
        ("docs_search", "", {}, "call_id"),
        ("docs_search", 12, {}, "call_id"),
        ("docs_search", "c", None, "arguments"),
        ("docs_search", "c", "[]", "arguments"),
        ("docs_search", "c", "{", "arguments"),
        ("docs_search", "c", '{"q": NaN}', "arguments"),
        ("docs_search", "c", '{"q": 1, "q": 2}', "arguments.q"),
        ("docs_search", "c", {"q": object()}, "arguments.q"),
        ("docs_search", "c", {7: 1}, "arguments"),
    ],
)
def test_a_call_that_is_none_is_an_error_that_names_the_field(
    name: Any, call_id: Any, arguments: Any, field: str
) -> None:
    with pytest.raises(InvalidCall) as caught:
        box().call(name, call_id, arguments)
    assert caught.value.field == field


def test_a_tool_that_is_hidden_from_the_caller_is_as_unknown_as_one_that_never_was() -> None:
    rule = CallRule(name="no crm", outcome="deny", tools=("crm/*",), agents=("clerk",))
    clerk = box(Policy(rules=[rule], default="allow"), caller=Caller(agent="clerk"))
    chief = box(Policy(rules=[rule], default="allow"), caller=Caller(agent="chief"))

    assert "crm_search" not in [offer.key.name for offer in clerk.offered]
    with pytest.raises(UnknownTool):
        clerk.call("crm_search", "c", {})
    assert chief.call("crm_search", "c", {}).origin.server == "crm"


def run(box: Toolbox, call: Call, ran: list[str]) -> str | None:
    try:
        with box.running(call):
            ran.append(str(call.id))
    except TruenameError as error:
        return error.code
    return None


def test_a_call_is_run_once_also_by_a_policy_without_approvals() -> None:
    ran: list[str] = []
    one = box()
    call = one.call("docs_search", "c", {})

    assert [run(one, call, ran), run(one, call, ran)] == [None, "call_repeated"]
    assert run(one, one.call("docs_read", "c", {}), ran) == "call_reused"
    assert ran == ["docs@1/search@1"]


def test_a_call_that_failed_is_not_run_again() -> None:
    one = box()
    call = one.call("docs_search", "c", {})
    with pytest.raises(ZeroDivisionError), one.running(call):
        _ = 1 / 0

    assert run(one, call, []) == "call_repeated"


def test_an_approval_waits_for_a_person_and_is_kept_by_identity() -> None:
    ran: list[str] = []
    one = box(Policy(approvals=Approvals()))
    call = one.call("docs_search", "c1", {})
    assert run(one, call, ran) == "approval_required"
    one.approve(call, "always")
    assert run(one, call, ran) is None
    assert one.decide(one.call("docs/search", "c2", {"q": 1})).outcome == "allow"
    assert one.decide(one.call("crm_search", "c3", {})).outcome == "ask"

    one.reject(one.call("docs_search", "c4", {}), message="no")
    assert one.decide(one.call("docs_search", "c4", {})).outcome == "deny"


def test_what_a_model_is_told_has_no_keys_in_it_and_is_never_empty() -> None:
    id = next(iter(box().names))

    assert error_text(NotAllowed(id=id, rule="rejected", decision="no")) == f"{id} was rejected: no. Nothing was run."
    assert "under" not in error_text(ApprovalRequired(id=id, approval_key="key"))
    assert error_text(ValueError()) == "ValueError"
