"""What is said of a tool follows from what was noted on both sides, and from nothing else."""

from __future__ import annotations

import pytest

from lab import evidence
from lab.awkward import Received
from lab.model import Offered, Script, Step, Turn
from lab.model.approaches import approach
from lab.scenarios import Server


def _played(shown: dict[int, str], told: int) -> Script:
    """Return a script whose client showed these names and reported that many results."""
    tools = tuple(Offered(name=name, description=f"[lab:{mark}]") for mark, name in shown.items())
    script = Script(approach("direct"), lambda offered: [Step(name=tool.name, mark=tool.mark) for tool in offered])
    for results in range(told + 1):
        script.next(Turn(tools=tools, results=("told",) * results))
    return script


def _call(number: int, name: str) -> Received:
    return Received({"method": "tools/call", "params": {"name": name, "arguments": {"q": f"k{number}"}}})


@pytest.mark.parametrize(
    ("shown", "told", "arrived", "outcomes"),
    [
        ({1: "a", 2: "b"}, 2, [(0, "a"), (1, "b")], ["right", "right"]),
        ({1: "a"}, 1, [(0, "a")], ["right", "missing"]),
        ({1: "x", 2: "b"}, 2, [(0, "b"), (1, "b")], ["misrouted", "right"]),
        ({1: "a", 2: "b"}, 2, [(0, "A"), (1, "b")], ["unreachable", "right"]),
        ({1: "a", 2: "b"}, 2, [(0, "a")], ["right", "unreachable"]),
        ({1: "a", 2: "b"}, 1, [(0, "a")], ["right", "uncalled"]),
        ({}, 0, [], ["failed", "failed"]),
    ],
)
def test_an_outcome_is_what_was_shown_and_where_the_call_arrived(
    shown: dict[int, str], told: int, arrived: list[tuple[int, str]], outcomes: list[str]
) -> None:
    servers = [Server("lab", ("a", "b"))]
    reached = evidence.arrivals(servers, [[_call(number, name) for number, name in arrived]])
    seen = evidence.seen_tools(servers, _played(shown, told), reached, None)
    assert [tool.outcome for tool in seen] == outcomes


def test_a_call_that_arrives_at_another_server_is_misrouted_though_the_name_is_equal() -> None:
    servers = [Server("one", ("same",)), Server("two", ("same",))]
    reached = evidence.arrivals(servers, [[_call(0, "same"), _call(1, "same")], []])
    first, second = evidence.seen_tools(servers, _played({1: "same", 1001: "same"}, 2), reached, None)
    assert (first.outcome, second.outcome, second.reached) == ("right", "misrouted", ("one", "same"))


def test_the_second_entry_of_a_name_that_is_right_is_a_copy() -> None:
    servers = [Server("lab", ("same", "same"))]
    reached = evidence.arrivals(servers, [[_call(0, "same")]])
    seen = evidence.seen_tools(servers, _played({1: "same"}, 1), reached, {1: "same"})
    assert [(tool.outcome, tool.listed) for tool in seen] == [("right", "same"), ("copy", None)]


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("Traceback\nValueError: no\nbye", "ValueError: no"),
        ("\x1b[31mError at http://127.0.0.1:4711/x\x1b[0m", "Error at http://127.0.0.1:PORT/x"),
        ("error first\nLAB FAILURE KeyError: 'a'\nerror in the end", "KeyError: 'a'"),
        ("opened /tmp/t/home/file", "opened TRIAL/home/file"),
        ('{"type": "error", "error": {"message": "too many mistakes"}}\n{"type": "end"}', "too many mistakes"),
        ("{not JSON", "{not JSON"),
        ("", "it said nothing"),
    ],
)
def test_a_failure_is_the_line_that_says_most_without_what_differs_from_run_to_run(output: str, text: str) -> None:
    assert evidence.failure_text(output, {"/tmp/t": "TRIAL"}) == text


def test_the_handshake_of_a_client_that_discovers_first_is_read_from_its_meta() -> None:
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "me"}}
    message = {"method": "server/discover", "params": {"_meta": meta}}
    seen = evidence.handshake([Received(message, {"MCP-Protocol-Version": "2026-07-28", "User-Agent": "me/1"})])
    assert seen is not None
    assert (seen.client_info, seen.protocol, seen.user_agent, seen.discovers_first) == (
        {"name": "me"},
        "2026-07-28",
        "me/1",
        True,
    )
    assert evidence.handshake([]) is None
