"""Compaction: a journal that says the same again and again is made shorter, in one step, and keeps every promise."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.ledger.stories import claim, settings, show
from truename import Catalog, Ledger, ToolId, project
from truename.errors import LedgerError
from truename.ledger import Bind, Event, Redirect, Retire, State
from truename.ledger.journal import compacted

if TYPE_CHECKING:
    from pathlib import Path

SMALL = 60
IDS = tuple(f"a/tool_{number}" for number in range(10))
STYLES = ("prefixed", "on-conflict")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.ledger.journal._COMPACT_FROM", SMALL)


def restyled(ledger: Ledger, times: int) -> None:
    """Change the style back and forth: each time all tools are shown under names that they had before."""
    for turn in range(times):
        style = STYLES[turn % 2]
        ledger.restyle(settings(style))
        show(ledger, *IDS, style=style)


def answers(ledger: Ledger) -> dict[str, object]:
    names = [*(f"a_tool_{n}" for n in range(12)), *(f"tool_{n}" for n in range(12)), "old", "gone"]
    return {
        "standing": [ledger.standing(name) for name in names],
        "folded": [ledger.standing_folded(name) for name in names],
        "bindings": dict(ledger.bindings()),
        "order": ledger.pinned(ledger.bindings().values()),
        "style": ledger.settings and ledger.settings.style,
        "shown": dict(ledger.held("openai")),
        "scope": ledger.scoped("one").standing("x"),
    }


def test_a_journal_that_repeats_itself_is_made_shorter_and_answers_as_before(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    lone = Ledger.memory()
    for each in (ledger, lone):
        each.scoped("one").record([claim("x", "b/x")])
        each.record([claim("gone", "a/gone")])
        each.retire("gone")
        each.redirect("old", "b/x")
        restyled(each, 40)

    lines = path.read_bytes().count(b"\n")
    assert lines < 200
    assert len(lone._core.state.events) > 400
    reopened = Ledger.open(path)
    for left, right in ((ledger, reopened), (ledger, lone)):
        mine, others = answers(left), answers(right)
        assert mine.keys() == others.keys()
        assert mine["bindings"] == others["bindings"]
        assert mine["order"] == others["order"]
        assert mine["shown"] == others["shown"]
        assert mine["style"] == others["style"]
        assert [s and s[:2] for s in mine["standing"]] == [s and s[:2] for s in others["standing"]]  # type: ignore[attr-defined]
        assert [s and s[:2] for s in mine["folded"]] == [s and s[:2] for s in others["folded"]]  # type: ignore[attr-defined]
    with pytest.raises(LedgerError):
        reopened.record([claim("a_tool_1", "b/x")])


def test_a_journal_that_says_something_new_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)

    for number in range(3 * SMALL):
        ledger.record([claim(f"n{number}", f"a/n{number}")])

    assert path.read_bytes().count(b"\n") == 3 * SMALL + 1


def test_other_processes_go_on_across_a_compaction(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    show(ledger, *IDS)

    for _ in range(12):
        other, reader = Ledger.open(path), Ledger.open(path, readonly=True)
        before = path.read_bytes()[:40]
        while path.read_bytes()[:40] == before:
            restyled(ledger, 4)
        restyled(ledger, 20)

        other.refresh()
        reader.refresh()
        assert answers(other) == answers(reader) == answers(Ledger.open(path))
        other.record([claim(f"mine_{len(before)}", "a/mine")])


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_compaction_that_fails_is_a_warning_and_the_journal_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    path = tmp_path / "ledger"
    ledger = Ledger.open(path)
    real = os.fsync
    syncs = 0

    def fails(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    def every_second_fails(descriptor: int) -> None:
        nonlocal syncs
        if os.fstat(descriptor).st_ino != path.stat().st_ino:
            fails()
        syncs += 1
        real(descriptor)

    if step == "fsync":
        monkeypatch.setattr(os, "fsync", every_second_fails)
    else:
        monkeypatch.setattr("pathlib.Path.replace", fails)

    show(ledger, *IDS)
    restyled(ledger, 30)

    assert "could not be made smaller" in caplog.text
    assert {file.name for file in tmp_path.iterdir()} == {"ledger", "ledger.lock"}
    assert path.read_bytes().count(b"\n") > 300
    assert answers(Ledger.open(path)) == answers(ledger)


def test_what_is_said_again_and_again_is_kept_the_first_and_the_last_time() -> None:
    tool = ToolId.parse("a/x")
    bind, redirect = Bind(server="a", name="x", id=tool), Redirect(name="q", id=tool)
    x, y = claim("x", "a/x"), claim("y", "a/x")
    events: list[Event] = [settings(), x, bind, y, Retire(name="q"), x, x, bind, redirect]

    kept = compacted(events)

    assert [event.kind for event in kept] == [
        *("settings", "claim", "bind", "claim", "retire", "claim", "bind", "redirect")
    ]
    assert State(kept).spaces[""].tables == State(events).spaces[""].tables


def test_styles_that_alternate_are_all_kept() -> None:
    events = [settings(style) for style in STYLES * 3]

    assert compacted(events) == events


def test_a_large_catalogue_is_projected_again_and_again_without_growing_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    catalog = Catalog.of(*(f"s/t{number}" for number in range(500)))
    project(catalog, "openai", ledger=Ledger.open(path))
    before = path.read_bytes()

    for _ in range(3):
        project(catalog, "openai", ledger=Ledger.open(path))

    assert path.read_bytes() == before


def test_what_was_led_there_and_back_within_a_second_is_kept_in_that_order() -> None:
    there, back = (Redirect(name="old", id=ToolId.parse(id), at="2026-11-22T08:00:00+00:00") for id in ("a/x", "a/y"))
    events: list[Event] = [there, back, there, back, there]

    kept = State(compacted(events)).spaces[""].standing("old")

    assert kept == State(events).spaces[""].standing("old")
    assert kept is not None
    assert kept.id == there.id


def test_a_name_that_went_to_another_tool_and_back_has_the_holders_that_it_had() -> None:
    events: list[Event] = [
        claim("x", "a/one"),
        claim("x", "a/two"),
        settings(),
        claim("x", "a/one"),
        claim("x", "a/one"),
    ]

    full, kept = State(events), State(compacted(events))

    assert kept.keeps(full)
    assert full.spaces[""].holder("x") == kept.spaces[""].holder("x") == ToolId.parse("a/one")
