"""The checker of histories of replicas finds each kind of violation, and none in a good history."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from tests.chaos.replicas.checker import CHECKS, Evidence, Ran, fold, violations
from tests.chaos.replicas.history import History, Operation, read_history

if TYPE_CHECKING:
    from pathlib import Path

_numbers = count(1)


def operation(what: str, at: float = 0.0, **more: Any) -> Operation:
    found = {"process": "p", "what": what, "replica": 0, "invoked": at, "ended": at + 0.1, "outcome": "ok", **more}
    return Operation(number=next(_numbers), **found)


def call(name: str = "lead", origin: str = "a/lead", nonce: str = "1", at: float = 0.0, **more: Any) -> Operation:
    """Return a call that was answered; ``code`` is that of one that was refused."""
    server, tool = origin.split("/")
    answer = {"server": server, "tool": tool, "nonce": nonce}
    if "code" in more:
        answer, more["outcome"] = {"code": more.pop("code")}, more.get("outcome", "fail")
    needs = {"needs_approval": True} if more.pop("needs_approval", False) else {}
    return operation("call", at, asked={"name": name, "nonce": nonce, **needs}, answer=answer, **more)


def listed(at: float = 0.0, replica: int = 0, **names: Any) -> Operation:
    """Return a list: names with ids, or with ids and the number of a definition."""
    tools = {name: one if isinstance(one, tuple) else (one, 1) for name, one in names.items()}
    return operation("list", at, replica=replica, answer={"tools": tools})


def ran(origin: str = "a/lead", nonce: str = "1", at: float = 0.05) -> Ran:
    server, tool = origin.split("/")
    return Ran(server=server, tool=tool, nonce=nonce, at=at)


def evidence(*operations: Operation, **more: Any) -> Evidence:
    """Return evidence in which whatever was listed is claimed and pinned, and whatever ran is recorded."""
    runs = more.pop(
        "ran",
        tuple(
            ran(f"{one.answer['server']}/{one.answer['tool']}", one.asked["nonce"], one.invoked)
            for one in operations
            if one.what == "call" and one.outcome == "ok"
        ),
    )
    shown = [(name, id) for one in operations if one.what == "list" for name, (id, _) in one.answer["tools"].items()]
    found = {
        "claims": frozenset(shown),
        "holders": {fold(name): (id, id) for name, id in shown},
        "pins": {id: "sha256:1" for _, id in shown},
        "audited": frozenset(one.nonce for one in runs),
        "decided": frozenset(one.asked[key] for one in operations for key in ("key", "digest") if key in one.asked),
        **more,
    }
    return Evidence(operations=operations, ran=runs, **found)


def served(by: int, at: float, nonce: str, replica: int = 0) -> tuple[Operation, Ran]:
    """Return a call in a session, and that it ran at one replica for another one."""
    made = call(nonce=nonce, at=at, replica=replica)
    asked = {**made.asked, "session": "1.1"}
    return replace(made, asked=asked), replace(ran(nonce=nonce, at=at + 0.05), by=by)


def sessions(*calls: tuple[Operation, Ran], more: tuple[Operation, ...] = ()) -> Evidence:
    return evidence(*(one for one, _ in calls), *more, ran=tuple(one for _, one in calls))


A, B = "a@1/lead@1", "b@1/lead@1"
GRANT = operation("grant", 1.0, asked={"nonce": "1", "key": "k"})
GUARDED = call(at=2.0, needs_approval=True)
AGAIN = call(at=9.0, needs_approval=True, code="approval_required")
ACCEPT = operation("accept", 2.0, asked={"tool": "delta@1/t@1", "digest": "sha256:2", "version": 2})
KILL = operation("kill", 10.0, replica=1)
UP = [operation("down", 0.0, replica=number) for number in (0, 1)]
STEADY = {"name": "echo", "origin": "steady/echo"}

GOOD = {
    "nothing": evidence(),
    "one name at two replicas": evidence(listed(lead=A), listed(replica=1, lead=A), call(), call(nonce="2", replica=1)),
    "a name that is absent at one": evidence(listed(lead=A), listed(replica=1), call(code="unknown_tool")),
    "a lost call that ran": evidence(call(code="lost", outcome="info"), ran=[ran()]),
    "a lost call that did not run": evidence(call(code="lost", outcome="info")),
    "an approved call": evidence(GRANT, GUARDED),
    "an approval that was not seen at once": evidence(GRANT, replace(AGAIN, invoked=3.0, ended=3.1), GUARDED),
    "an approval that an interrupted call used": evidence(
        GRANT, call(needs_approval=True, at=2.0, code="lost", outcome="info"), AGAIN
    ),
    "a definition that was accepted": evidence(
        listed(t=("delta@1/t@1", 1)), ACCEPT, listed(3.0, t=("delta@1/t@1", 2)), pins={"delta@1/t@1": "sha256:2"}
    ),
    "a death": evidence(*UP, KILL, call(**STEADY, at=11.0)),
    "a death while the other is down": evidence(*UP, KILL, operation("down", 9.5, ended=30.0)),
    "a death while the database is away": evidence(*UP, KILL, operation("away", 9.5, ended=30.0)),
    "a session that is asked for anywhere": sessions(served(0, 1.0, "1"), served(0, 1.2, "2", replica=1)),
    "a session whose owner was killed": sessions(
        served(1, 9.5, "1"), served(0, 10.2, "2"), more=(operation("down", 10.0, replica=1, ended=12.0), KILL)
    ),
    "a session that was taken over of who was silent for long": sessions(served(0, 1.0, "1"), served(1, 3.0, "2")),
    "a session of who is cut off from the database, and goes on": sessions(
        served(0, 1.0, "1"), served(1, 3.0, "2"), served(0, 3.2, "3"), more=(operation("silence", 1.1, ended=3.3),)
    ),
    "a slow machine": evidence(*UP, KILL, operation("direct", 10.0, ended=11.0), call(**STEADY, at=14.0)),
}
BAD = {
    ("no name means two tools", "'lead' ran a/lead (at 0) and b/lead"): evidence(call(), call("lead", "b/lead", "2")),
    ("no name means two tools", "spellings of 'lead_1' ran"): evidence(call("Lead-1"), call("lead_1", "b/x", "2")),
    ("no two replicas disagree", "'lead' was listed for"): evidence(
        listed(lead=A), listed(replica=1, lead=B), holders={"lead": (A, A)}
    ),
    ("no two replicas disagree", "a/lead has the ids"): evidence(
        listed(lead=A, lead_2=B), call(), call("lead_2", nonce="2")
    ),
    ("no claim is lost", "the ledger has no such claim"): evidence(listed(lead=A), claims=frozenset()),
    ("no claim is lost", "its holders are"): evidence(listed(lead=A), holders={"lead": (B, A)}),
    ("no claim is lost", "has claims of 'lead' for"): evidence(claims=frozenset({("lead", A), ("Lead", B)})),
    ("no call is made twice", "was run 2 times"): evidence(call(), ran=[ran(), ran()]),
    ("no call is made twice", "nobody made"): evidence(ran=[ran()]),
    ("no call is made twice", "was answered and not run"): evidence(call(), ran=[]),
    ("no call is made twice", "was refused and run"): evidence(call(code="unknown_tool"), ran=[ran()]),
    ("no call is made twice", "got the answer of another"): evidence(call(), ran=[ran("b/lead")]),
    ("no approval is lost", "without an approval"): evidence(GUARDED),
    ("no approval is lost", "an approval was lost"): evidence(GRANT, AGAIN),
    ("no pin is lost", "has no pin"): evidence(listed(lead=A), pins={}),
    ("no pin is lost", "the pin of delta@1/t@1 is"): evidence(ACCEPT, pins={"delta@1/t@1": "sha256:1"}),
    ("no pin is lost", "which nobody accepted"): evidence(
        listed(t=("delta@1/t@1", 1)), listed(1.0, t=("delta@1/t@1", 2))
    ),
    ("no audit record is lost", "is in no audit log"): evidence(call(), audited=frozenset()),
    ("no audit record is lost", "a decision is in no audit log"): evidence(GRANT, decided=frozenset()),
    ("no audit record is lost", "cut off"): evidence(damaged=["it is cut off"]),
    ("no session is lost", "was not found at 0"): evidence(call(code="session not found")),
    ("a session has one owner", "was served by 1, and then by 0"): sessions(
        served(0, 1.0, "1"),
        served(1, 6.0, "2"),
        served(0, 6.3, "3"),
        more=(operation("down", 1.5, replica=0, ended=5.9), operation("stop", 1.5, replica=0, ended=5.9)),
    ),
    ("calls go on", "no call was answered at 0"): evidence(*UP, KILL, call(**STEADY, at=12.5)),
    ("calls go on", "within 2.00 s of the death of 2"): evidence(
        *UP, operation("stop", 10.0, replica=2, ended=20.0), call(**STEADY, at=9.0), call(**STEADY, at=13.0, nonce="2")
    ),
}


@pytest.mark.parametrize("found", GOOD.values(), ids=GOOD)
def test_a_good_history_has_no_violation(found: Evidence) -> None:
    assert {promise: several for promise, several in violations(found).items() if several} == {}


@pytest.mark.parametrize(("expected", "found"), BAD.items(), ids=[text for _, text in BAD])
def test_each_violation_is_found(expected: tuple[str, str], found: Evidence) -> None:
    promise, text = expected
    several = violations(found)
    assert any(text in one for one in several[promise])
    # A name that is listed for two tools is held by one of them at most.
    assert {name for name, sentences in several.items() if sentences} <= {promise, "no claim is lost"}


def test_each_promise_has_an_example_of_its_violation() -> None:
    assert {promise for promise, _ in BAD} == {*CHECKS}


def test_an_operation_that_never_ended_may_have_happened(tmp_path: Path) -> None:
    path = tmp_path / "history"
    with History(path) as history:
        history.end(history.invoke("p", "call", 1, name="lead"), "ok", server="a")
        history.invoke("p", "grant", key="k")
    first, last = read_history(path.read_text().splitlines())
    assert (first.outcome, first.replica, first.asked, first.answer) == ("ok", 1, {"name": "lead"}, {"server": "a"})
    assert (last.outcome, last.ended, last.asked) == ("info", float("inf"), {"key": "k"})
    assert all(json.loads(line)["at"] for line in path.read_text().splitlines())
