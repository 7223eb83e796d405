"""What somebody may try so that a decision counts for more than it was made for, or a call is run twice."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from tests.policy.calls import call, search_of, shown, tool
from truename import Catalog, Ledger, ToolId, project
from truename.errors import CallRepeated, InvalidCall, StoreError
from truename.policy import Approvals, Call, Caller, CallRule, Decision, Outcome, Policy, SqlApprovalStore
from truename.policy import store as book_module
from truename.policy.former_ids import former_ids, formerly

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def allow(_: Call) -> Outcome:
    return "allow"


def test_two_ids_that_differ_in_a_separator_only_have_redirects_of_their_own() -> None:
    ledger = Ledger.memory()
    before = shown({"docs": [tool("get_data", "Look."), tool("get-data", "Look.")]}, ledger=ledger)
    approvals = Approvals()
    approvals.approve(call(before, "docs@1/get_data@1", "c1"), "always")
    after = shown({"docs": [tool("one", "Look."), tool("two", "Look.")]}, ledger=ledger)
    ledger.redirect("docs/get_data", "docs/one")
    ledger.redirect("docs/get-data", "docs/two")

    assert approvals.status(call(after, "docs/one", "c2")).state == "approved"
    assert approvals.status(call(after, "docs/two", "c3")).state == "undecided"


def test_an_id_that_was_retired_after_its_redirect_carries_nothing_any_more() -> None:
    ledger = Ledger.memory()
    before = shown({"docs": [tool("find", "Look.")]}, ledger=ledger)
    after = shown({"docs": [tool("search", "Look.")]}, ledger=ledger)
    approvals = Approvals()
    approvals.approve(call(before, "docs/find", "c1"), "always")
    ledger.redirect("docs/find", "docs/search")
    ledger.retire("docs/find")

    assert approvals.status(call(after, "docs/search", "c2")).state == "undecided"


def test_a_clean_break_lifts_no_gate_and_the_tool_is_still_the_one_that_was_approved() -> None:
    ledger = Ledger.memory()
    before = shown({"docs": [tool("fs.find", "Look.")]}, ledger=ledger)
    after = shown({"docs": [tool("fs_find", "Look.")]}, ledger=ledger)
    approvals = Approvals()
    approvals.approve(call(before, "docs/fs.find", "c1"), "always")
    gate = Policy(rules=[CallRule(name="no looking", outcome="deny", tools=("docs/fs.find",))], default="allow")
    assert gate.decide(call(after, "docs/fs_find", "c2")).outcome == "allow"
    ledger.break_name("docs/fs.find", "docs/fs_find", protocol="0.3")

    found = call(after, "docs/fs_find", "c3")
    assert gate.decide(found).rule == "no looking"
    assert approvals.status(found).state == "approved"


def test_what_is_said_of_a_tool_holds_where_one_server_is_shown_alone() -> None:
    ledger = Ledger.memory()
    ledger.redirect("docs/find", "docs/search")
    ledger.scoped("only/docs").redirect("docs/look", "docs/search")
    names = shown({"docs": [tool("search", "Look.")]}, ledger=ledger.scoped("only/docs"))

    assert [str(id) for id in call(names, "search", "c1").formerly] == ["docs@1/find@1", "docs@1/look@1"]
    assert formerly(ToolId.parse("docs/search"), ledger) == (ToolId.parse("docs/find"),)


@pytest.mark.parametrize("scope", ["", "only/docs"])
def test_redirects_are_read_once_until_there_are_others(scope: str) -> None:
    ledger = Ledger.memory()
    shown_alone, search = ledger.scoped(scope), ToolId.parse("docs/search")
    ledger.redirect("docs/find", "docs/search")
    before = former_ids(shown_alone)
    assert before(search) == (ToolId.parse("docs/find"),)
    assert former_ids(shown_alone) is before
    ledger.redirect("docs/look", "docs/search")
    assert former_ids(shown_alone)(search) == (ToolId.parse("docs/find"), ToolId.parse("docs/look"))
    ledger.retire("docs/find")
    assert former_ids(shown_alone)(search) == (ToolId.parse("docs/look"),)
    assert formerly(search, None) == ()


@pytest.mark.parametrize("name", ["аda", "ada ", "Ada", "ada\u200b", "a\u0308da", ""])
@pytest.mark.parametrize("field", ["principal", "agent", "session"])
def test_a_caller_that_only_looks_alike_is_another_one(field: str, name: str) -> None:
    known: dict[str, Any] = {"principal": "ada", "agent": "ada", "session": "ada"}
    approvals = Approvals()
    approvals.approve(search_of("docs", caller=Caller(**known)), "session")

    assert approvals.status(search_of("docs", "c2", caller=Caller(**known))).state == "approved"
    assert approvals.status(search_of("docs", "c2", caller=Caller(**{**known, field: name}))).state == "undecided"


@pytest.mark.parametrize("value", [2**70, float(2**70), "\ud800"])
@pytest.mark.parametrize("changed", ["description", "inputSchema", "annotations"])
def test_a_definition_that_is_changed_in_place_after_an_approval_suspends_it(value: Any, changed: str) -> None:
    entry = {**tool("search", "Look.", readOnlyHint=True), "inputSchema": {"type": "object", "x": value}}
    names = shown({"docs": [entry]})
    approvals = Approvals()
    approvals.approve(call(names, "docs_search"), "always")
    definition: Any = names.catalog["docs@1/search@1"].definition
    definition[changed] = {"y": 1}

    assert approvals.status(call(names, "docs_search", "c2")).state == "suspended"


def test_a_check_can_not_change_the_call_nor_the_tool() -> None:
    def tamper(one: Call) -> Outcome:
        arguments: Any = one.arguments
        arguments["paths"].append("/etc")
        annotations: Any = one.annotations
        annotations["readOnlyHint"] = True
        return "ask"

    names = shown({"docs": [tool("search", readOnlyHint=False)]})
    made = call(names, "docs_search", arguments={"paths": ["/tmp"]})
    Policy(checks=[tamper, tamper]).decide(made)

    assert made.arguments == {"paths": ["/tmp"]}
    assert made.annotations == {"readOnlyHint": False}
    assert names.catalog["docs@1/search@1"].definition["annotations"] == {"readOnlyHint": False}


def test_who_holds_a_call_can_not_change_what_the_tool_says_of_itself() -> None:
    names = shown({"docs": [tool("search", readOnlyHint=False)]})
    annotations: Any = call(names, "docs_search").annotations
    annotations["readOnlyHint"] = True

    assert call(names, "docs_search").annotations == {"readOnlyHint": False}


def test_a_tool_that_uses_up_its_arguments_has_run_all_the_same() -> None:
    policy = Policy(checks=[allow], approvals=Approvals())
    made = search_of("docs", arguments='{"query": "x"}')
    with policy.running(made):
        arguments: Any = made.arguments
        arguments.pop("query")
    with pytest.raises(CallRepeated) as caught, policy.running(search_of("docs", arguments='{"query": "x"}')):
        raise AssertionError

    assert caught.value.state == "done"


@pytest.mark.parametrize("outcome", [[], {}, None, 1])
def test_a_check_that_gives_a_decision_of_its_own_making_denies(outcome: Any) -> None:
    decision = Policy(checks=[lambda _: Decision(outcome=outcome)], default="allow").decide(search_of("docs"))

    assert decision.outcome == "deny"


@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_that_can_not_be_written_is_refused(sign: int) -> None:
    with pytest.raises(InvalidCall) as caught:
        search_of("docs", arguments={"pages": [sign * 10**5_000]})

    assert (caught.value.field, caught.value.problem) == (
        "arguments.pages[0]",
        "is an integer of more than 4,300 digits",
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"a": "x" * (4 * 1024 * 1024)}, "arguments has .* characters, more than 4,194,304"),
        ({"a": ["x" * 42] * 100_000}, "arguments has .* characters, more than 4,194,304"),
        ({"a": [0] * 200_001}, "arguments contains more than 200,000 keys and items"),
        ({str(number): 0 for number in range(200_001)}, "arguments contains more than 200,000 keys and items"),
    ],
    ids=["text", "texts", "items", "keys"],
)
def test_arguments_are_bounded_whatever_they_come_as(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidCall, match=problem):
        search_of("docs", arguments=arguments)


def test_a_link_to_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    with pytest.raises(StoreError, match="it is a symbolic link"):
        Approvals.open(tmp_path / "link.db")

    assert not (tmp_path / "real.db").exists()


def test_another_working_directory_is_no_other_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    approvals = Approvals.open("approvals.json")
    approvals.begin(search_of("docs"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")

    with pytest.raises(CallRepeated):
        approvals.begin(search_of("docs"))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(StoreError) as caught:
        Approvals.open(tmp_path / "pipe")
    assert caught.value.code == "unusable"


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = SqlApprovalStore(path)
    Approvals(store).reject(search_of("docs"), "always")
    store.close()
    whole = path.read_bytes()
    for length in range(0, len(whole), 997):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError) as caught:
            SqlApprovalStore(path)
        assert caught.value.code == "corrupt"
        assert path.read_bytes() == whole[:length]
    path.write_bytes(whole)

    assert Approvals.open(path).status(search_of("docs", "c3")).state == "rejected"


def test_a_call_that_went_on_is_not_the_first_to_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(book_module, "MAX_CALLS", 3)
    approvals = Approvals()
    approvals.approve(search_of("docs", "c0"))
    approvals.approve(search_of("docs", "c1"))
    with approvals.once(search_of("docs", "c0")):
        pass
    for number in (2, 3):
        approvals.approve(search_of("docs", f"c{number}"))

    assert approvals.status(search_of("docs", "c1")).state == "undecided"
    with pytest.raises(CallRepeated):
        approvals.begin(search_of("docs", "c0"))


def test_a_clock_that_goes_back_changes_no_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "approvals.json"
    first, second = Approvals.open(path), Approvals.open(path)
    first.approve(search_of("docs"), "always")
    os.utime(path, (0, 0))
    monkeypatch.setattr("truename.policy.approvals.present_time", lambda: "1970-01-01T00:00:00+00:00")
    first.reject(search_of("docs", "c2"), "always")
    os.utime(path, (0, 0))

    assert second.status(search_of("docs", "c3")).state == "rejected"


@pytest.mark.parametrize("texts", [("Look.", "Look."), ("Look.", "Look here.")])
def test_two_servers_of_one_label_that_change_places_inherit_nothing(texts: tuple[str, str]) -> None:
    def made(id: str, order: tuple[int, int]) -> Call:
        names = project(Catalog.from_mcp([("docs", [tool("search", texts[server])]) for server in order]), "openai")
        servers = dict.fromkeys(found.origin.server_id for found in names.catalog.values())
        endpoints = {server: f"sha256:{place}" for server, place in zip(servers, order, strict=True)}
        return call(names, "docs@1/search@1", id, endpoints=endpoints)

    approvals = Approvals()
    approvals.approve(made("c1", (0, 1)), "always")

    assert approvals.status(made("c2", (0, 1))).state == "approved"
    assert approvals.status(made("c3", (1, 0))).state == "suspended"


def test_a_call_that_runs_while_its_session_ends_is_not_run_again_and_ends_well() -> None:
    approvals = Approvals()
    with approvals.once(search_of("docs")):
        approvals.end_session("ada", "monday")
        with pytest.raises(CallRepeated) as caught:
            approvals.begin(search_of("docs"))
    assert caught.value.state == "running"
    approvals.end_session("ada", "monday")
    approvals.begin(search_of("docs"))


def test_what_has_no_session_does_not_end_with_one() -> None:
    approvals = Approvals()
    caller = Caller(principal="ada")
    approvals.begin(search_of("docs", caller=caller))
    with pytest.raises(InvalidCall) as caught:
        approvals.end_session("ada", "")

    assert caught.value.field == "session"
    with pytest.raises(CallRepeated):
        approvals.begin(search_of("docs", caller=caller))


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow during the block."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("when", ["begin", "finish"])
def test_a_disk_that_is_full_runs_nothing_or_nothing_again(tmp_path: Path, when: str) -> None:
    approvals = Approvals.open(tmp_path / "state.db")
    approvals.approve(search_of("docs"))
    ran: list[str] = []

    def run() -> None:
        with ExitStack() as stack:
            if when == "begin":
                stack.enter_context(full_disk())
            with approvals.once(search_of("docs")):
                ran.append("c1")
                stack.enter_context(full_disk())

    with pytest.raises(StoreError) as refused:
        run()

    assert (refused.value.code, ran) == ("unusable", [] if when == "begin" else ["c1"])
    if when == "finish":
        with pytest.raises(CallRepeated):
            run()
