"""Files of results: read as they were written, small, without anything of a machine, and what they promise."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import clients, places, results, scenarios
from lab.results import SCHEMA, Handshake, Probe, Run, SeenTool, Trial

if TYPE_CHECKING:
    from pathlib import Path

_FILES = sorted(places.RESULTS.glob("*.json"))
EACH_FILE = pytest.mark.parametrize("path", _FILES, ids=lambda path: path.stem)
_TEXT = st.text(max_size=8)
_PAIR = st.none() | st.tuples(_TEXT, _TEXT)
_TRIALS = st.builds(
    Trial,
    scenario=_TEXT,
    mode=_TEXT,
    tools=st.lists(st.builds(SeenTool, upstream=_TEXT, shown=st.none() | _TEXT, reached=_PAIR), max_size=3).map(tuple),
    probes=st.lists(st.builds(Probe, probe=_TEXT, name=_TEXT, reached=_PAIR), max_size=2).map(tuple),
    failure=st.none() | _TEXT,
    handshake=st.none() | st.builds(Handshake, protocol=_TEXT, methods=st.lists(_TEXT, max_size=2).map(tuple)),
)


@given(trials=st.lists(_TRIALS, max_size=3).map(tuple), title=_TEXT)
def test_a_run_is_read_as_it_was_written(trials: tuple[Trial, ...], title: str) -> None:
    run = Run(
        client="c",
        title=title,
        version="1",
        dialect="d",
        packages=("p",),
        date="2026-11-22",
        truename="0",
        walls="none",
        trials=trials,
    )
    assert Run.read(json.loads(run.written())) == run


def test_a_file_of_another_schema_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"schema 0 is not 1: run the client again"):
        Run.read({"schema": SCHEMA - 1})


@EACH_FILE
def test_a_committed_file_belongs_to_a_row_and_is_small(path: Path) -> None:
    run = results.load(path)
    assert path == results.path_of(run.client, run.version)
    assert (run.dialect, run.title) == (clients.get(run.client).dialect, clients.get(run.client).title)
    assert path.stat().st_size < 150_000
    assert run.written() == path.read_text("utf-8")


@EACH_FILE
def test_a_committed_file_says_nothing_of_the_machine(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"127\.0\.0\.1:\d|/(?:work|root|home|tmp|Users)/", text)
    assert "sandbox" not in json.loads(text)


@EACH_FILE
def test_through_truename_every_tool_is_shown_and_every_call_arrives_at_it(path: Path) -> None:
    lost = [
        (trial.scenario, tool.server, tool.upstream, tool.outcome)
        for trial in results.load(path).trials
        if trial.mode == "through" and scenarios.scenario(trial.scenario).plan == "sweep"
        for tool in trial.tools
        if tool.outcome not in {"right", "copy"}
    ]
    assert lost == []


@EACH_FILE
def test_a_committed_file_was_made_behind_walls(path: Path) -> None:
    assert results.load(path).walls == "namespaces"
