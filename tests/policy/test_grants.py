"""Which tools an operator led to others: what a decision of a person goes along with, and whatever is denied."""

from __future__ import annotations

from typing import Any

import pytest

from tests.policy.calls import call, shown, tool
from tests.policy.ruled import rule
from truename import Ledger, ToolId
from truename.policy import Approvals, Policy
from truename.policy import former_ids as former_ids_module
from truename.policy.approval_validity import Grant, Subject, suspension
from truename.policy.former_ids import chain, formerly

FIND, LOOK, SEARCH = (ToolId.parse(f"docs/{name}") for name in ("find", "look", "search"))


def led() -> Ledger:
    """Return a ledger in which two tools, one after the other, were led to a third."""
    ledger = Ledger.memory()
    shown({"docs": ["find", "look", "search"]}, ledger=ledger)
    ledger.redirect(str(FIND), str(LOOK))
    ledger.redirect(str(LOOK), str(SEARCH))
    return ledger


@pytest.mark.parametrize("scope", ["", "docs"])
def test_a_tool_is_followed_to_where_it_was_led_step_by_step(scope: str) -> None:
    ledger = led().scoped(scope)

    assert [list(chain(id, ledger)) for id in (FIND, LOOK, SEARCH)] == [[FIND, LOOK, SEARCH], [LOOK, SEARCH], [SEARCH]]
    assert [formerly(id, ledger) for id in (FIND, LOOK, SEARCH)] == [(), (FIND,), (FIND, LOOK)]


def test_what_was_led_is_read_once_and_again_when_more_was(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Ledger] = []

    def reading(ledger: Ledger) -> Any:
        read.append(ledger)
        return original(ledger)

    original = former_ids_module._read_former_ids
    monkeypatch.setattr(former_ids_module, "_read_former_ids", reading)
    ledger = Ledger.memory()
    shown({"docs": ["find", "look", "search"]}, ledger=ledger)
    assert (formerly(SEARCH, ledger), read) == ((), [])
    ledger.redirect(str(LOOK), str(SEARCH))
    assert [formerly(SEARCH, ledger) for _ in range(3)] == [(LOOK,)] * 3
    assert len(read) == 1
    ledger.redirect(str(FIND), str(SEARCH))
    assert [formerly(SEARCH, ledger) for _ in range(3)] == [(FIND, LOOK)] * 3
    assert len(read) == 2


def test_without_a_ledger_nothing_was_led_anywhere() -> None:
    assert (list(chain(FIND, None)), formerly(SEARCH, None)) == ([FIND], ())


def test_what_is_led_in_a_circle_is_followed_for_32_steps() -> None:
    ledger = led()
    ledger.redirect(str(SEARCH), str(FIND))

    assert len(list(chain(SEARCH, ledger))) == 32


def test_what_is_retired_is_led_nowhere() -> None:
    ledger = led()
    ledger.retire(str(LOOK), successor=str(SEARCH))

    assert [list(chain(id, ledger)) for id in (FIND, LOOK)] == [[FIND, LOOK], [LOOK]]
    assert formerly(SEARCH, ledger) == ()


def test_a_suspended_approval_is_told_where_the_rules_ask() -> None:
    approvals = Approvals()
    before, after = (shown({"s": [tool("x", text)]}) for text in ("Before.", "After."))
    approvals.approve(call(before, "s/x", "c1"), "always")
    policy = Policy(rules=[rule("ask", "s/x")], approvals=approvals)

    assert policy.decide(call(before, "s/x", "c2")).outcome == "allow"
    decision = policy.decide(call(after, "s/x", "c3"))
    assert (decision.outcome, decision.rule) == ("ask", "ask s/x")
    assert decision.reason.startswith("the earlier decision is suspended: the tool's definition changed since then (")


NOON = "2026-11-22T12:00:00+00:00"
BEFORE, AFTER = NOON.replace("12:", "11:"), NOON.replace("12:", "13:")
SUBJECT = Subject(FIND, "sha256:" + "d" * 64, "sha256:" + "5" * 64, "docs", "find", "sha256:e")


def grant(**changes: Any) -> Grant:
    fields: dict[str, Any] = {"key": "1", "approved": True, "scope": "always", "principal": "ada", "agent": ""}
    return Grant(**{**fields, "subject": SUBJECT, **changes})


@pytest.mark.parametrize(
    ("changes", "over"),
    [
        ({"until": ""}, [False, False, False]),
        ({"until": NOON}, [False, True, True]),
        ({"until": NOON, "scope": "session"}, [False, True, True]),
        ({"until": NOON, "approved": False}, [False, False, False]),
        ({"until": NOON, "approved": False, "scope": "arguments"}, [False, False, False]),
        ({"until": NOON, "approved": False, "scope": "call"}, [False, True, True]),
        ({"until": "", "approved": False, "scope": "call"}, [False, False, False]),
    ],
)
def test_an_approval_and_a_rejection_of_one_call_end_at_their_time(changes: dict[str, Any], over: list[bool]) -> None:
    assert [grant(**changes).is_over(now) for now in (BEFORE, NOON, AFTER)] == over


DIGEST, SHAPE = "sha256:" + "e" * 64, "sha256:" + "6" * 64
DECIDED = "the decision was for tool 'find' of server 'docs'"
CHANGED = f"the tool's definition changed since then (sha256:{'d' * 12}, now "


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        ({}, ""),
        ({"digest": DIGEST}, f"{CHANGED}sha256:{'e' * 12})"),
        ({"endpoint": "sha256:f"}, "server 'docs' has another command or URL than at the time of the decision"),
        ({"server": "files"}, f"{DECIDED}, and this is tool 'find' of server 'files'"),
        ({"name": "look"}, f"{DECIDED}, and this is tool 'look' of server 'docs'"),
        # What an operator led here may be called otherwise, and be elsewhere; what it does is the same.
        ({"id": LOOK, "server": "files", "name": "look", "digest": DIGEST}, ""),
        ({"id": LOOK, "digest": DIGEST, "shape": SHAPE}, f"{CHANGED}sha256:{'e' * 12})"),
        ({"id": LOOK, "digest": SUBJECT.digest, "shape": ""}, f"{CHANGED}sha256:{'d' * 12})"),
        (
            {"id": LOOK, "endpoint": "sha256:f"},
            "server 'docs' has another command or URL than at the time of the decision",
        ),
    ],
)
def test_a_decision_counts_for_what_it_was_about(now: dict[str, Any], reason: str) -> None:
    assert suspension(grant(), SUBJECT._replace(**now)) == reason


def test_a_decision_about_a_tool_of_no_known_shape_goes_along_with_nothing() -> None:
    unknown = SUBJECT._replace(shape="")

    assert suspension(grant(subject=unknown), unknown) == ""
    assert suspension(grant(subject=unknown), unknown._replace(id=LOOK)) == f"{CHANGED}sha256:{'d' * 12})"
