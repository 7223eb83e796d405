"""`truename replay`: a recording shown or run again, by people, programs and CI."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.adapters.offline import upstreams
from tests.cli.conftest import HOSTILE
from truename import Catalog, Ledger, ToolId, project
from truename.migration.recordings import CallRecorder
from truename.policy import Caller, bound_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

TOOLS = [
    {"name": "tap"},
    {"name": "old", "_meta": {"trailblaze/isForLlm": False}},
    {"name": "clear", "_meta": {"trailblaze/supportedPlatforms": ["IOS"]}},
]


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """Record calls of these tools on iOS."""

    def record(*names: str, server: str = "phone") -> Path:
        table = project(Catalog.from_mcp({server: [*names]}), "universal")
        with CallRecorder(tmp_path / "calls.jsonl") as recorder:
            for number, name in enumerate(names):
                text, id = f"{server}/{name}", f"c{number}"
                caller = Caller(platform="ios")
                recorder.write(bound_call(name=text, call_id=id, arguments={"q": name}, names=table, caller=caller))
        return tmp_path / "calls.jsonl"

    return record


@pytest.fixture
def phone(tmp_path: Path) -> Path:
    path = tmp_path / "phone.json"
    path.write_text(json.dumps({"phone": TOOLS}))
    return path


def states(done: Any) -> list[str]:
    return [one["state"] for one in done.document["calls"]]


def test_what_each_call_would_reach_now_is_shown_and_nothing_is_run(
    run: Run, recorded: Callable[..., Path], phone: Path
) -> None:
    done = run("replay", recorded("tap", "old", "clear"), phone)

    assert done.status == 0
    assert [line.split()[:3] for line in done.out.splitlines()[2:]] == [
        ["1", "ready", "phone/tap"],
        ["2", "ready", "phone/old"],
        ["3", "ready", "phone/clear"],
    ]


def test_what_would_not_run_is_a_finding_with_its_reason(run: Run, recorded: Callable[..., Path], phone: Path) -> None:
    path = recorded("tap", "clear", "gone")
    with path.open("a") as file:
        file.write('{"truename": 1, "id": "pho')
    done = run("replay", path, phone, "--context", "platform=android", "--json")

    assert done.status == 1
    assert states(done) == ["ready", "refused", "unknown", "broken"]
    problems = [one["problem"] for one in done.document["calls"]]
    assert "it works on ios, and this session is on android" in problems[1]
    assert "does not exist" in problems[2]
    assert "is incomplete" in problems[3]
    assert run("replay", path, phone, "--context", "platform=android").status == 1


def test_a_renamed_tool_is_shown_with_its_new_identity(
    run: Run, recorded: Callable[..., Path], phone: Path, tmp_path: Path
) -> None:
    ledger = Ledger.open(tmp_path / "names.ledger")
    project(Catalog.from_mcp({"phone": ["press", "tap"]}), "universal", ledger=ledger)
    ledger.redirect("phone@1/press@1", ToolId.parse("phone/tap"))
    done = run("replay", recorded("press"), phone, "--state", tmp_path / "names.ledger", "--json")

    (call,) = done.document["calls"]
    assert (done.status, call["moved"], call["now"]) == (0, True, "phone@1/tap@1")
    shown = run("replay", recorded("press"), phone, "--state", tmp_path / "names.ledger")
    assert shown.out.splitlines()[2].split() == ["1", "ready", "phone/press", "phone/tap"]


def test_a_tool_that_was_changed_since_is_told(run: Run, recorded: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "now.json").write_text(json.dumps({"phone": [{"name": "tap", "description": "Taps twice."}]}))
    done = run("replay", recorded("tap"), "now.json")

    assert (done.status, "the same tool, with another definition" in done.out) == (0, True)


@pytest.mark.parametrize("where", ["platfrom=ios", "lab", "origin=root", "platform=ios,"])
def test_a_context_that_is_not_understood_is_a_fault_of_usage(
    run: Run, recorded: Callable[..., Path], phone: Path, where: str
) -> None:
    done = run("replay", recorded("tap"), phone, "--context", where)

    assert done.status == 2
    assert done.err.startswith("error: --context: ")


def test_a_context_of_the_configuration_is_meant_by_its_name(
    run: Run, recorded: Callable[..., Path], configure: Callable[..., Path]
) -> None:
    settings = {"contexts": {"pixel": {"platform": "android"}}, "metadata": {"phone/clear": {"platforms": ["ios"]}}}
    path = configure({"phone": ["tap", "clear"]}, truename=settings)

    assert states(run("replay", recorded("tap", "clear"), path, "--context", "pixel", "--json")) == ["ready", "refused"]


def test_calls_are_run_again_by_the_servers_that_have_them(
    run: Run, recorded: Callable[..., Path], configure: Callable[..., Path]
) -> None:
    settings = {"metadata": {"phone/old": {"is_for_llm": False}}, "state": "memory"}
    path = configure({"phone": ["tap", "old"]}, truename=settings)
    done = run("replay", recorded("tap", "old"), path, "--run", "--json")

    assert done.status == 0
    assert states(done) == ["done", "done"]
    texts = [one["result"]["content"][0]["text"] for one in done.document["calls"]]
    assert all(name in text for name, text in zip(("tap", "old"), texts, strict=True))


def test_a_run_stops_where_a_call_is_not_done_and_goes_on_if_asked(
    run: Run, recorded: Callable[..., Path], configure: Callable[..., Path]
) -> None:
    path = configure({"phone": ["tap"]}, truename={"state": "memory"})
    calls = recorded("gone", "tap")

    stopped = run("replay", calls, path, "--run")
    assert (stopped.status, "1 more was not run" in stopped.out) == (1, True)
    assert states(run("replay", calls, path, "--run", "--go-on", "--json")) == ["unknown", "done"]


def test_a_tool_that_fails_is_told_in_its_own_words(
    run: Run, recorded: Callable[..., Path], configure: Callable[..., Path]
) -> None:
    path = configure({"phone": ["boom", "tap"]}, truename={"state": "memory"})
    done = run("replay", recorded("boom", "tap"), path, "--run", "--json")

    assert (done.status, states(done), done.document["left"]) == (1, ["failed"], 1)
    assert "boom" in done.document["calls"][0]["problem"]


def test_a_tool_that_says_it_failed_has_failed(run: Run, recorded: Callable[..., Path], tmp_path: Path) -> None:
    with upstreams(docs=["search", "err_iserror"]) as up:
        config = {"mcpServers": {"docs": {"url": up.urls["docs"]}}, "truename": {"state": "memory"}}
        (tmp_path / "mcp.json").write_text(json.dumps(config))
        done = run("replay", recorded("search", "err_iserror", server="docs"), "mcp.json", "--run", "--json")

    assert states(done) == ["done", "failed"]


def test_without_the_gateway_s_part_nothing_is_run_and_it_is_told(
    run: Run, recorded: Callable[..., Path], configure: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "truename.cli._rerun", None)
    done = run("replay", recorded("tap"), configure({"phone": ["tap"]}), "--run")

    assert (done.status, "truename[gateway]" in done.err) == (2, True)


def test_a_server_that_can_not_be_started_is_told(
    run: Run, recorded: Callable[..., Path], configure: Callable[..., Path]
) -> None:
    more = {"down": {"command": "/nowhere/at/all"}}
    path = configure({"phone": ["tap"]}, servers=more, truename={"state": "memory"})

    for words in ((), ("--run",)):
        done = run("replay", recorded("tap"), path, *words)
        assert (done.status, "down" in done.err) == (3, True)


@pytest.mark.parametrize("sources", [("a.json", "b.json"), ("phone.json",)])
def test_calls_are_run_by_one_configuration_only(
    run: Run, recorded: Callable[..., Path], phone: Path, sources: tuple[str, ...]
) -> None:
    done = run("replay", recorded("tap"), *sources, "--run")

    assert (done.status, phone.exists()) == (2, True)


def test_an_empty_recording_is_no_fault_and_a_missing_one_is(run: Run, tmp_path: Path, phone: Path) -> None:
    (tmp_path / "empty.jsonl").touch()

    assert "no calls" in run("replay", "empty.jsonl", phone).out
    assert run("replay", "empty.jsonl", phone).status == 0
    assert run("replay", "none.jsonl", phone).status == 2


def test_a_hostile_recording_writes_nothing_to_the_terminal(run: Run, tmp_path: Path, phone: Path) -> None:
    plain: dict[str, Any] = {"truename": 1, "id": "a/b", "arguments": {}, "context": {}}
    lines = [plain | {"id": HOSTILE}, plain | {"name": HOSTILE, "context": {"app": HOSTILE}}]
    (tmp_path / "bad.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n" + HOSTILE + "\n")
    done = run("replay", "bad.jsonl", phone)

    assert done.status == 1
    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err
