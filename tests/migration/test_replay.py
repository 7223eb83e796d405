"""Replaying: recorded calls again, for the tools that have their identities now; hidden ones too, foreign ones not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from truename import Catalog, Ledger, ToolId, project
from truename.errors import NotAllowed, RetiredName, UnknownTool
from truename.migration.recordings import BrokenLine, CallRecorder, RecordedCall, ReplayedCall, read_recording, replay
from truename.policy import Approvals, Caller, CallRule, Context, Exposure, Policy, bound_call

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from truename import NameTable
    from truename.policy import Call

TOOLS = [
    {"name": "tap"},
    {"name": "old", "_meta": {"trailblaze/isForLlm": False}},
    {"name": "clear", "_meta": {"trailblaze/supportedPlatforms": ["IOS"]}},
]
ALLOW = Policy(default="allow", exposure=Exposure())
IOS = Context(platform="ios")


def shown(tools: Iterable[Any] = TOOLS, ledger: Ledger | None = None) -> NameTable:
    bound = ledger.bindings() if ledger else None
    return project(Catalog.from_mcp({"phone": list(tools)}, bound=bound), "openai", ledger=ledger)


def recorded(id: str, context: Context = IOS, **more: Any) -> RecordedCall:
    return RecordedCall(id=ToolId.parse(id), arguments={"x": 1}, context=context, **more)


def ran(recording: Iterable[RecordedCall | BrokenLine], names: NameTable, **how: Any) -> list[ReplayedCall]:
    return list(replay(recording, names, lambda call: call.origin.name, **{"policy": ALLOW, **how}))


def outcomes(found: Iterable[ReplayedCall]) -> list[str]:
    return [f"{one.state} {one.result}" if one.state == "done" else one.state for one in found]


def test_calls_are_run_again_in_their_order_with_their_arguments() -> None:
    seen: list[Call] = []
    found = list(replay([recorded("phone/tap"), recorded("phone/clear")], shown(), seen.append, policy=ALLOW))

    assert [one.state for one in found] == ["done", "done"]
    assert [(str(call.id), dict(call.arguments)) for call in seen] == [
        ("phone@1/tap@1", {"x": 1}),
        ("phone@1/clear@1", {"x": 1}),
    ]
    assert {call.caller.context for call in seen} == {Context(platform="ios", origin="replay")}
    assert len({call.call_id for call in seen}) == 2


def test_a_tool_that_is_not_for_models_is_replayed_and_never_called_by_one() -> None:
    names = shown()
    by_model = bound_call(name="phone_old", call_id="c", arguments={}, names=names, caller=Caller(platform="ios"))

    assert outcomes(ran([recorded("phone/old")], names)) == ["done old"]
    with pytest.raises(NotAllowed):
        ALLOW.enforce(by_model)


def test_what_is_of_another_platform_is_refused_in_a_replay_too() -> None:
    (found,) = ran([recorded("phone/clear")], shown(), context=Context(platform="android"))

    assert isinstance(found.error, NotAllowed)
    assert (found.state, found.error.rule) == ("refused", "platform")


def test_a_renamed_tool_is_found_by_its_redirect_and_its_hiding_goes_with_it() -> None:
    ledger = Ledger.memory()
    shown(ledger=ledger)
    ledger.redirect("phone@1/tap@1", "phone@1/press@1")
    (found,) = ran([recorded("phone/tap")], shown([{"name": "press"}], ledger))

    assert (outcomes([found]), found.is_moved) == (["done press"], True)


def test_a_redirected_name_is_followed_where_the_identity_is_gone() -> None:
    ledger = Ledger.memory()
    shown([{"name": "tap"}], ledger)
    names = shown([{"name": "press"}], ledger)
    ledger.redirect("phone_tap", "phone@1/press@1")

    assert outcomes(ran([recorded("phone/tap", name="phone_tap")], names)) == ["done press"]
    assert outcomes(ran([recorded("phone/tap", name="phone_tip")], names)) == ["unknown"]
    assert outcomes(ran([recorded("phone/tap")], names)) == ["unknown"]


def test_without_a_ledger_a_name_is_no_way_to_a_tool() -> None:
    (found,) = ran([recorded("phone/swipe", name="phone_tap")], shown())

    assert (found.state, type(found.error)) == ("unknown", UnknownTool)


def test_an_identity_that_only_resembles_another_is_unknown() -> None:
    names = project(Catalog.from_mcp({"phone": [{"name": "tap.tap"}]}), "openai")

    for id in ("phone/tap", "phone@2/tap.tap@1", "phones/tap.tap", "phone/tap_tap"):
        assert outcomes(ran([recorded(id)], names)) == ["unknown"], id


def test_a_retired_identity_is_not_replaced_by_its_name() -> None:
    ledger = Ledger.memory()
    names = shown(ledger=ledger)
    ledger.retire("phone@1/tap@1")
    (found,) = ran([recorded("phone/tap", name="phone_tap")], names)

    assert (found.state, type(found.error)) == ("unknown", RetiredName)


def test_it_stops_at_the_first_that_is_not_done_or_goes_on() -> None:
    lines: list[RecordedCall | BrokenLine]
    lines = [recorded("phone/tap"), BrokenLine(line=2, problem="cut off"), recorded("phone/x"), recorded("phone/tap")]

    assert outcomes(ran(lines, shown())) == ["done tap", "broken"]
    assert outcomes(ran(lines, shown(), go_on=True)) == ["done tap", "broken", "unknown", "done tap"]


def test_a_line_that_does_not_know_the_definition_says_nothing_of_a_change() -> None:
    names = shown()
    unknown, other = ran([recorded("phone/tap"), recorded("phone/tap", digest="sha256:0")], names)

    assert (unknown.is_changed, other.is_changed) == (False, True)


def test_a_name_that_no_text_could_hold_is_unknown_as_any() -> None:
    assert outcomes(ran([recorded("phone/gone", name="\ud800")], shown(ledger=Ledger.memory()))) == ["unknown"]


def test_a_tool_that_raises_has_failed() -> None:
    def run(call: Call) -> None:
        raise PermissionError(call.origin.name)

    (found,) = replay([recorded("phone/tap")], shown(), run, policy=ALLOW)

    assert (found.state, found.problem, type(found.error)) == ("failed", "tap", PermissionError)


def test_a_replay_needs_what_any_call_needs() -> None:
    approvals = Approvals()
    asks = Policy(rules=[CallRule(name="gate", outcome="ask", tools=("phone/tap",))], approvals=approvals)
    denies = Policy(rules=[CallRule(name="gate", outcome="deny", tools=("phone/tap",))])

    assert outcomes(ran([recorded("phone/tap")], shown(), policy=asks)) == ["refused"]
    assert outcomes(ran([recorded("phone/tap")], shown(), policy=denies)) == ["refused"]


def test_a_recorded_session_is_replayed_from_its_file(tmp_path: Path) -> None:
    names = shown()
    with CallRecorder(tmp_path / "calls.jsonl") as recorder:
        for number, name in enumerate(("phone_tap", "phone_clear")):
            caller = Caller(platform="ios")
            recorder.write(bound_call(name=name, call_id=f"c{number}", arguments={}, names=names, caller=caller))

    assert outcomes(ran(read_recording(tmp_path / "calls.jsonl"), names)) == ["done tap", "done clear"]
