"""A whole trial with a small client: servers, model and gateway run for real; nothing is installed."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from lab import clients, places, sandbox, trial
from lab.clients import Client
from lab.drivers import Launch, Stage
from lab.trial import Order

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lab.scenarios import Mode

_SMALL = Client(
    name="small", title="Small", dialect="cline", kind="python", driver="small", folder="small", packages=("small==1",)
)


def _launch(stage: Stage) -> Launch:
    servers = {entry.key: entry.url for entry in stage.servers}
    told = json.dumps({"model": stage.model, "servers": servers})
    return Launch(command=(sys.executable, "-m", "tests.lab.small_client", told), env={"PYTHONPATH": str(places.ROOT)})


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Client:
    def driver(_: str) -> Callable[[Stage], Launch]:
        return _launch

    def get(_: str) -> Client:
        return _SMALL

    monkeypatch.setattr(trial, "driver", driver)
    monkeypatch.setattr(clients, "get", get)
    return _SMALL


@pytest.mark.parametrize(
    ("mode", "lost"), [("bare", [("a", "b__c")]), ("through", [])], ids=["without Truename", "through Truename"]
)
def test_a_client_that_joins_loses_a_tool_without_truename_only(
    small: Client, mode: Mode, lost: list[tuple[str, str]], tmp_path: Path
) -> None:
    seen = trial.play(Order(client=small.name, scenario="joins", mode=mode), tmp_path)
    assert seen.failure is None
    assert [(tool.server, tool.upstream) for tool in seen.tools if tool.outcome != "right"] == lost
    assert (seen.api, seen.ordered) == ("chat", mode == "through")


def test_a_client_that_stops_half_way_is_a_failure_with_its_own_words(
    small: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(_: str) -> Callable[[Stage], Launch]:
        return lambda _: Launch(command=("/bin/sh", "-c", "echo begun; echo 'Error: no such luck' >&2; exit 3"))

    monkeypatch.setattr(trial, "driver", stopping)
    seen = trial.play(Order(client=small.name, scenario="duplicates"), tmp_path)
    assert seen.failure == "Error: no such luck"
    assert {tool.outcome for tool in seen.tools} == {"failed"}


def test_what_a_command_leaves_behind_is_ended_with_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = ["/bin/sh", "-c", "sleep 300 & echo started"]
    ended = sandbox.run(command, env={"PATH": "/usr/bin:/bin"}, cwd=tmp_path, out=out, limit=30)
    assert (ended.code, out.read_text()) == (0, "started\n")


def test_a_command_that_takes_too_long_is_ended_and_has_no_exit_code(tmp_path: Path) -> None:
    ended = sandbox.run(["/bin/sleep", "300"], env={}, cwd=tmp_path, out=tmp_path / "out", limit=0.2)
    assert ended.code is None
