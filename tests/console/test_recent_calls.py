"""What the console keeps of calls: little of each, however much a caller sends."""

from __future__ import annotations

from dataclasses import fields

from truename.console.recent_calls import RecentCalls
from truename.policy.call import CallEvent


def test_of_a_call_with_long_texts_only_their_beginning_is_kept() -> None:
    calls = RecentCalls()
    texts = {one.name: f"the {one.name} " + "z" * 2_000_000 for one in fields(CallEvent) if one.type == "str"}
    calls.note(CallEvent(**{**texts, "outcome": "unknown", "began": 0.0, "seconds": 0.0}))  # type: ignore[arg-type]
    (kept,) = calls
    assert sum(len(getattr(kept, name)) for name in texts) < 20_000
    assert kept.wire_name.startswith("the wire_name zzz")
    assert kept.wire_name.endswith("z...")


def test_a_name_that_is_not_long_is_kept_as_it_is() -> None:
    calls = RecentCalls()
    call = CallEvent(wire_name="n" * 300, outcome="ok", began=0.0, seconds=0.0)
    calls.note(call)
    assert list(calls) == [call]
