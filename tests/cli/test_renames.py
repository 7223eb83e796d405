"""`truename renames`: what servers renamed is listed with reasons and decided on, and nothing hostile is printed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import HOSTILE
from tests.gateway.staged import Stage
from truename import ToolId
from truename.config import Config
from truename.errors import StoreError
from truename.ledger import open_ledger
from truename.trust import PinStore
from truename.trust.rename_decisions import complete_decisions
from truename.trust.renames import RenameStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run

READ: dict[str, Any] = {"name": "read", "description": "Read a page of one book.", "inputSchema": {"type": "object"}}
PAGE = {**READ, "name": "page"}
SORT: dict[str, Any] = {
    "name": "sort",
    "description": "Sort all shelves of a library.",
    "inputSchema": {"type": "object"},
}
ODD: dict[str, Any] = {**SORT, "name": "shelve [bold red]boo[/]", "description": f"Sort all shelves by size. {HOSTILE}"}
Lists = tuple[dict[str, Any], ...]


@pytest.fixture
def renamed(tmp_path: Path) -> Callable[..., Config]:
    """Have a server list these tools, one list after the other, behind a gateway with this configuration."""
    file = tmp_path / "truename.toml"
    file.write_text('[mcpServers.fs]\ncommand = "fs"\n')
    config = Config(path=file)

    def run_gateway(*lists: Lists) -> Config:
        location = config.state_location()
        ledger = open_ledger(location)
        with PinStore(location) as pins, RenameStore(location) as book:
            stage = Stage(config.settings, pins, ledger=ledger, renames=book)
            for tools in lists:
                stage.lists(*tools)
                stage.registry.catch_up()
        ledger.close()
        return config

    return run_gateway


def standing(config: Config, id: str) -> Any:
    ledger = open_ledger(config.state_location(), readonly=True)
    try:
        return ledger.withdrawn.get(id)
    finally:
        ledger.close()


def test_what_was_renamed_is_listed_accepted_by_its_old_name_and_undone(
    renamed: Callable[..., Config], run: Run
) -> None:
    config = renamed((READ, SORT), (PAGE, SORT))
    listed = run("renames", "list", "truename.toml")
    assert listed.status == 1
    assert "certain" in listed.out
    assert "fs@1/read@1" in listed.out
    assert "fs@1/page@1" in listed.out

    accepted = run("renames", "accept", "fs/read", "--config", "truename.toml", "--listed-for", "30d")
    assert (accepted.status, accepted.out.strip()) == (0, "Accepted fs@1/page@1")
    found = standing(config, "fs@1/read@1")
    assert (found.status, found.id) == ("redirected", ToolId.parse("fs/page"))
    assert found.until > "2026"
    assert run("renames", "list", "truename.toml").status == 0
    assert run("renames", "accept", "fs/page", "--config", "truename.toml").status == 1

    undone = run("renames", "undo", "fs/page", "--config", "truename.toml")
    assert (undone.status, undone.out.strip()) == (0, "Undone fs@1/page@1")
    assert standing(config, "fs@1/read@1").id == ToolId.parse("fs/read")


def test_lint_tells_of_a_skill_that_has_the_old_name_before_and_after_the_decision(
    renamed: Callable[..., Config], run: Run, tmp_path: Path
) -> None:
    renamed((READ, SORT), (PAGE, SORT))
    (tmp_path / "AGENTS.md").write_text("Call mcp__fs__read, then mcp__fs__sort.\n")

    def told() -> list[tuple[str, str, str]]:
        found = run("lint", "AGENTS.md", "--beside", "truename.toml", "--json").document["findings"]
        return [(one["rule"], one["tools"][0], one["suggested"]) for one in found]

    assert told() == [("former_name", "mcp__fs__read", "")]
    assert run("renames", "accept", "fs/read", "--config", "truename.toml").status == 0
    assert told() == [("former_name", "mcp__fs__read", "mcp__fs__page")]
    assert run("renames", "undo", "fs/page", "--config", "truename.toml").status == 0
    # The gateway proposes it anew when it runs.
    assert told() == []


def test_a_tool_may_be_another_than_was_proposed_and_nothing_that_never_left(
    renamed: Callable[..., Config], run: Run
) -> None:
    renamed((READ, SORT), (PAGE,))
    wrong = run("renames", "accept", "fs/page", "--was", "fs/nothing", "--config", "truename.toml")
    assert wrong.status == 2
    assert "did not leave server 'fs'" in wrong.err
    right = run("renames", "accept", "fs/page", "--was", "fs/sort", "--config", "truename.toml")
    assert right.status == 0


def test_only_the_definition_that_was_looked_at_is_decided_on(renamed: Callable[..., Config], run: Run) -> None:
    renamed((READ,), (PAGE,))
    (one,) = json.loads(run("renames", "list", "truename.toml", "--json").out)["renames"]
    assert (one["state"], one["certain"], one["may_be"]) == ("proposed", True, ["fs@1/read@1"])
    for command in ("accept", "reject"):
        other = run("renames", command, "fs/page", "--digest", f"sha256:{'0' * 64}", "--config", "truename.toml")
        assert other.status == 1
        assert f"was left unchanged: its definition has the digest {one['digest']}." in " ".join(other.out.split())
    right = run("renames", "reject", "fs/page", "--digest", one["digest"], "--config", "truename.toml", "--json")
    assert json.loads(right.out) == {"rejected": ["fs@1/page@1"], "unchanged": []}


def test_what_stays_as_it_is_is_told_with_the_reason(renamed: Callable[..., Config], run: Run) -> None:
    renamed((READ,), (PAGE,))
    told = []
    for words in (
        *(("undo", "fs/page"), ("accept", "fs/page"), ("accept", "fs/page"), ("reject", "fs/page")),
        *(("undo", "fs/page"), ("accept",), ("reject",)),
    ):
        outcome = run("renames", *words, "--config", "truename.toml")
        told.append(" ".join((outcome.out + outcome.err).split()))

    already = (
        "fs@1/page@1 was left unchanged: it is accepted already; `truename renames undo fs@1/page@1` takes that back."
    )
    assert told == [
        "fs@1/page@1 was left unchanged: nobody has decided on it.",
        "Accepted fs@1/page@1",
        already,
        already,
        "Undone fs@1/page@1",
        "error: no tool is named Name some, or use --certain.",
        "error: no tool is named Name some, or use --all.",
    ]


DECIDED: dict[str, Callable[[RenameStore], object]] = {
    "accepted": lambda book: book.accept(ToolId.parse("fs/page"), ToolId.parse("fs/read"), by="ben"),
    "rejected": lambda book: book.reject(ToolId.parse("fs/page"), by="ben"),
}


@pytest.mark.parametrize("meanwhile", DECIDED)
@pytest.mark.parametrize("word", ["accept", "reject"])
def test_of_two_who_decide_at_once_the_first_does(
    renamed: Callable[..., Config],
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    meanwhile: str,
    word: str,
) -> None:
    config = renamed((READ,), (PAGE,))
    Path("truename.toml").write_text('[audit]\npath = "log"\n[mcpServers.fs]\ncommand = "fs"\n')

    def ann() -> str:
        # It is asked who decides when the record was read, and nothing is decided yet.
        with RenameStore(config.state_location()) as book:
            assert DECIDED[meanwhile](book) is not None
        return "ann"

    monkeypatch.setattr("truename.cli.renames.whoami", ann)
    done = run("renames", word, "fs/page", "--config", "truename.toml")
    assert (done.status, "fs@1/page@1 was left unchanged" in done.out) == (1, True)
    with RenameStore(config.state_location()) as book:
        assert [(one.word, one.by) for one in book.arrived.values()] == [(meanwhile, "ben")]
    assert not Path("log").exists()


def test_decisions_before_an_error_are_in_the_audit_log(
    renamed: Callable[..., Config], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    renamed((READ, SORT), (PAGE, {**SORT, "name": "order"}))
    Path("truename.toml").write_text('[audit]\npath = "log"\n[mcpServers.fs]\ncommand = "fs"\n')
    whole = RenameStore.reject

    def once(book: RenameStore, new: ToolId, **more: Any) -> object:
        if new.tool == "order":
            raise StoreError(file="names.db", key="", problem="it is locked", remedy="Repeat it.", code="busy")
        return whole(book, new, **more)

    monkeypatch.setattr(RenameStore, "reject", once)
    assert run("renames", "reject", "fs/page", "fs/order", "--config", "truename.toml").status != 0

    records = [json.loads(line) for file in Path("log").rglob("*.jsonl") for line in file.read_text().splitlines()]
    assert [one["tool"] for one in records if one.get("what") == "rename_rejected"] == ["fs@1/page@1"]


def test_certain_ones_are_accepted_together_and_the_rest_rejected(renamed: Callable[..., Config], run: Run) -> None:
    renamed((READ, SORT), (PAGE, ODD))
    accepted = run("renames", "accept", "--certain", "--config", "truename.toml")
    assert accepted.out.split() == ["Accepted", "fs@1/page@1"]
    rejected = run("renames", "reject", "--all", "--config", "truename.toml")
    assert (rejected.status, rejected.out.count("Rejected")) == (0, 1)
    assert run("renames", "list", "truename.toml").status == 0


def test_an_old_id_means_the_tool_that_it_may_be_now_and_not_one_that_it_was_said_not_to_be(
    renamed: Callable[..., Config], run: Run
) -> None:
    def decided(word: str, text: str) -> tuple[int, str]:
        done = run("renames", word, text, "--config", "truename.toml")
        return done.status, " ".join((done.out + done.err).split())

    page = {**PAGE, "description": "Read a page of one book aloud."}
    renamed((READ,), (page,))
    assert decided("reject", "fs/page")[0] == 0
    renamed((page, {**READ, "name": "leaf"}))
    with RenameStore(Config(path=Path("truename.toml")).state_location(), readonly=True) as book:
        assert {one.id.tool: (one.word, one.old is None) for one in book.arrived.values()} == {
            "page": ("rejected", False),
            "leaf": ("proposed", False),
        }

    assert decided("accept", "fs/read") == (0, "Accepted fs@1/leaf@1")
    assert decided("undo", "fs/read") == (0, "Undone fs@1/leaf@1")


def test_a_decision_of_which_a_part_has_no_effect_is_told_by_the_exit_status(
    renamed: Callable[..., Config], run: Run
) -> None:
    renamed((READ, SORT), (PAGE, {**SORT, "name": "order"}))
    assert run("renames", "accept", "fs/page", "--config", "truename.toml").status == 0
    done = run("renames", "undo", "fs/page", "fs/order", "--config", "truename.toml", "--json")

    assert (done.status, done.document) == (1, {"undone": ["fs@1/page@1"], "unchanged": ["fs@1/order@1"]})


def test_nothing_hostile_reaches_a_terminal(renamed: Callable[..., Config], run: Run) -> None:
    renamed((READ, SORT), (PAGE, ODD))
    for words in (("list", "truename.toml"), ("reject", "--all", "--config", "truename.toml")):
        shown = run("renames", *words)
        assert all(character.isprintable() or character == "\n" for character in shown.out + shown.err)
        assert ("[boldred]boo[/]" in "".join(shown.out.split())) is (words[0] == "list")


@pytest.mark.parametrize(
    ("words", "fact"),
    [
        (("accept",), "no tool is named"),
        (("reject",), "no tool is named"),
        (("undo",), "no tool is named"),
        (("accept", "fs/raed"), "is no tool that is new on its server"),
        (("accept", "read"), "is no tool that is new on its server"),
        (("accept", "fs/page", "--listed-for", "soon"), "is not a duration"),
    ],
)
def test_what_is_not_known_is_refused_with_what_to_do(
    renamed: Callable[..., Config], run: Run, words: tuple[str, ...], fact: str
) -> None:
    renamed((READ,), (PAGE,))
    refused = run("renames", *words, "--config", "truename.toml")
    assert refused.status == 2
    assert fact in refused.err


def test_an_id_that_is_written_well_gets_no_advice_how_to_write_it(renamed: Callable[..., Config], run: Run) -> None:
    renamed((READ,), (PAGE,))
    refused = run("renames", "reject", "slack/post", "--config", "truename.toml")
    assert (refused.status, "renames list" in refused.err, "Write it as" in refused.err) == (2, True, False)


def test_without_a_gateway_that_ran_there_is_nothing_to_list(run: Run, tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[mcpServers.fs]\ncommand = "fs"\n')
    found = run("renames", "list", "truename.toml")
    assert found.status == 2
    assert "truename serve" in found.err


_KILLED = """
import os, signal, sys
from truename.trust import rename_decisions
rename_decisions.complete_decisions = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
from truename.cli import main
main(["renames", sys.argv[2], "fs/page", "--config", sys.argv[1]])
"""


def killed(command: str, tmp_path: Path) -> None:
    """Run a command that is killed when its decision is on record, and the ledger does not follow it yet."""
    words = [sys.executable, "-c", _KILLED, str(tmp_path / "truename.toml"), command]
    done = subprocess.run(words, check=False, env=dict(os.environ), timeout=60)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
def test_a_command_that_is_killed_between_its_two_steps_is_completed_by_the_gateway(
    renamed: Callable[..., Config], tmp_path: Path
) -> None:
    config = renamed((READ,), (PAGE,))
    killed("accept", tmp_path)
    assert standing(config, "fs@1/read@1") is None
    renamed((PAGE,))
    assert standing(config, "fs@1/read@1").id == ToolId.parse("fs/page")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
@pytest.mark.parametrize("then", ["undo", "reject", "a gateway"])
def test_a_killed_undo_is_completed_by_the_next_command_or_gateway(
    renamed: Callable[..., Config], run: Run, tmp_path: Path, then: str
) -> None:
    config = renamed((READ,), (PAGE,))
    assert run("renames", "accept", "fs/page", "--config", "truename.toml").status == 0
    killed("undo", tmp_path)
    assert standing(config, "fs@1/read@1").id == ToolId.parse("fs/page")
    if then == "a gateway":
        renamed((PAGE,))
    else:
        assert run("renames", then, "fs/page", "--config", "truename.toml").status == 0
    assert standing(config, "fs@1/read@1").id == ToolId.parse("fs/read")


def test_a_record_that_somebody_damaged_is_refused(renamed: Callable[..., Config], run: Run) -> None:
    config = renamed((READ,), (PAGE,))
    path = config.state_location().path
    assert path is not None
    with sqlite3.connect(path) as data:
        data.execute("UPDATE rename_come SET old = 'nothing/at/all' WHERE old != ''")
    refused = run("renames", "list", "truename.toml")
    assert refused.status == 2
    assert "is no tool's" in refused.err


def test_nothing_is_done_twice(renamed: Callable[..., Config]) -> None:
    config = renamed((READ,), (PAGE,))
    ledger = open_ledger(config.state_location())
    with RenameStore(config.state_location()) as book:
        book.accept(ToolId.parse("fs/page"), ToolId.parse("fs/read"), by="ann")
        assert [complete_decisions(book, ledger) for _ in range(2)] == [True, False]
    ledger.close()
