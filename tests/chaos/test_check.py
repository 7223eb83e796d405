"""The checker of the chaos runs finds each kind of fault, and none where there is none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.check import Call, Return, faults_in, late, leaks
from tests.chaos.journal import Entry


def call(**more: Any) -> Call:
    return Call(**{"server": "a", "tool": "echo", "nonce": "1", "at": 0.0, "text": "a:echo:1", **more})


def ran(**more: Any) -> Entry:
    return Entry(**{"server": "a", "pid": 1, "at": 0.0, "tool": "echo", "nonce": "1", **more})


LOST = call(text="It was lost.", code="upstream_unavailable")
UNSENT = call(text="The server is busy; this call was not sent.", code="upstream_unavailable")
GOOD = [
    (call(), [ran()]),
    (LOST, [ran()]),
    (LOST, []),
    (UNSENT, []),
    (call(), [ran(), ran(tool="", nonce="")]),
]
BAD = [
    (call(), [], "was answered and never run"),
    (call(), [ran(), ran()], "was run 2 times"),
    (LOST, [ran(), ran()], "was run 2 times"),
    (LOST, [ran(server="b")], "was run by b/echo"),
    (LOST, [ran(tool="other")], "was run by a/other"),
    (call(text="a:echo:2"), [ran()], "got another answer"),
    (call(text="b:echo:1"), [ran()], "got another answer"),
    (UNSENT, [ran()], "was run, and its error says that it was not"),
    (call(broken="ReadError"), [ran()], "neither with an answer nor with a typed error"),
    (call(), [ran(), ran(nonce="9")], "a call that nobody made"),
    (call(text="KeyError", code="-32603"), [], "something broke in the gateway"),
    (call(server="steady", code="upstream_unavailable", text="x"), [], "though nobody tormented its server"),
]


@pytest.mark.parametrize(("made", "entries"), GOOD)
def test_what_is_well_is_no_fault(made: Call, entries: list[Entry]) -> None:
    assert faults_in([made], entries, steady="steady") == []


@pytest.mark.parametrize(("made", "entries", "fault"), BAD, ids=[row[2] for row in BAD])
def test_each_fault_is_found(made: Call, entries: list[Entry], fault: str) -> None:
    found = faults_in([made], entries, steady="steady")
    assert len(found) == 1
    assert fault in found[0]


def test_servers_that_are_called_too_late_or_never_are_found() -> None:
    returns = [Return(server="a", torment="killed", at=0.0, seconds=seconds) for seconds in (0.1, 2.0, 2.1, None)]
    assert len(late(returns)) == 2


def test_what_the_gateway_takes_to_start_a_server_counts_and_what_the_machine_takes_does_not() -> None:
    slow = Return(server="a", torment="killed", at=0.0, seconds=1.5, restart=1.0)
    assert len(late([slow])) == 1
    assert late([replace(slow, control=0.2)]) == []


def test_only_what_grew_is_a_leak() -> None:
    assert leaks({"tasks": 3, "threads": 2}, {"tasks": 3, "threads": 1}) == []
    assert leaks({"tasks": 3}, {"tasks": 5, "threads": 1}) == ["tasks: 3 before, 5 after", "threads: 0 before, 1 after"]
