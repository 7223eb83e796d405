"""`truename audit`: a journal proved, followed and exported."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import HOSTILE
from truename.audit import AuditLog, anchor_file

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run

KEY = "k" * 40


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of three calls, and a configuration that names it."""
    path = tmp_path / "audit"
    (tmp_path / "truename.toml").write_text(
        f'[mcpServers.fs]\ncommand = "fs"\n[audit]\npath = "audit"\nkey = "{KEY}"\n'
    )
    with AuditLog(path, KEY.encode(), now=lambda: "2026-11-22T10:00:00.000+00:00") as open_journal:
        for number, who in enumerate(("ann", "bob", "ann")):
            body = {"who": who, "tool": "fs@1/read@1", "outcome": "ok", "call": f"c{number}", "name": f"={HOSTILE}"}
            open_journal.append([("call", body)])
    return path


def test_a_journal_is_proved(journal: Path, run: Run) -> None:
    done = run("audit", "verify", "truename.toml")
    assert (done.status, " ".join(done.out.split())) == (0, f"4 records of {journal} are intact.")
    assert run("audit", "verify", "truename.toml", "--json").document == {
        "log": str(journal),
        "records": 4,
        "broken": [],
    }


def test_a_change_is_told_with_its_place(journal: Path, run: Run) -> None:
    file = journal / "000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"bob"', b'"ann"'))
    done = run("audit", "verify", "truename.toml")
    assert (done.status, done.out.splitlines()[0]) == (
        1,
        "changed 000001.jsonl:3: the line was changed: its hash does not match its content",
    )
    assert run("audit", "export", "truename.toml").status == 1


def anchored(path: Path, tool: str) -> None:
    with AuditLog(path, KEY.encode(), anchor=anchor_file(path)) as open_journal:
        open_journal.append([("call", {"tool": tool})])


def test_what_is_kept_elsewhere_finds_a_journal_that_was_put_back_with_its_state(
    journal: Path, run: Run, tmp_path: Path
) -> None:
    shutil.copytree(journal, tmp_path / "older")
    anchored(journal, "x")
    kept = run("audit", "anchor", "truename.toml").out.strip()
    told = run("audit", "anchor", "truename.toml", "--json").document
    assert (told["expect"], told["number"], told["broken"]) == (kept, 6, [])
    assert run("audit", "verify", "truename.toml", "--expect", kept).status == 0
    shutil.rmtree(journal)
    shutil.copytree(tmp_path / "older", journal)

    by_state = run("audit", "verify", "truename.toml")
    assert (by_state.status, by_state.out.splitlines()[0].startswith("truncated record 6, ")) == (1, True)
    refused = run("audit", "anchor", "truename.toml")
    assert (refused.status, refused.out) == (1, "")
    assert run("audit", "anchor", "truename.toml", "--json").document["expect"] is None
    anchor_file(journal).unlink()
    alone = run("audit", "verify", "truename.toml")
    assert (alone.status, "This machine stores no anchor" in alone.err) == (0, True)
    assert run("audit", "verify", "truename.toml", "--expect", kept).status == 1


def test_a_journal_whose_directory_is_gone_is_missed(journal: Path, run: Run) -> None:
    anchored(journal, "x")
    shutil.rmtree(journal)

    gone = run("audit", "verify", "truename.toml", "--json")

    assert (gone.status, [one["kind"] for one in gone.document["broken"]]) == (1, ["truncated"])
    assert run("audit", "anchor", "truename.toml").status == 2


@pytest.mark.parametrize("text", ["", "7", "x:y", f"1:{'g' * 64}"])
def test_what_is_no_anchor_is_told(journal: Path, run: Run, text: str) -> None:
    done = run("audit", "verify", "--log", journal, "--expect", text)

    assert (done.status, "truename audit anchor" in done.err) == (2, True)


def test_a_chain_with_a_key_is_not_proved_without_it(journal: Path, run: Run) -> None:
    proved, shown = run("audit", "verify", "--log", journal), run("audit", "tail", "--log", journal)
    assert (proved.status, shown.status, shown.out) == (1, 1, "")
    for done in (proved, shown):
        assert "Pass the key with which the log was written" in done.err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes there")
@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir])
@pytest.mark.parametrize("command", ["verify", "tail", "export"])
def test_what_is_no_file_of_records_is_told_and_not_waited_for(
    journal: Path, run: Run, command: str, plant: Callable[[Path], None]
) -> None:
    plant(journal / "000002.jsonl")
    done = run("audit", command, "truename.toml")
    assert (done.status, "000002.jsonl: It is not a regular file" in " ".join(done.err.split())) == (2, True)


def test_records_are_exported_by_who_and_what(journal: Path, run: Run) -> None:
    lines = run("audit", "export", "truename.toml", "--principal", "ann", "--kind", "call").out.splitlines()
    assert [json.loads(line)["call"] for line in lines] == ["c0", "c2"]
    assert run("audit", "export", "truename.toml", "--tool", "fs@1/write@1").out == ""
    assert run("audit", "export", "truename.toml", "--since", "2026-11-23").out == ""
    assert len(run("audit", "export", "truename.toml", "--since", "2026-11-22T10:00").out.splitlines()) == 4


def test_a_table_gives_no_orders_to_spreadsheets_or_terminals(journal: Path, run: Run) -> None:
    out = run("audit", "export", "truename.toml", "--format", "csv", "--kind", "call").out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["call"] for row in rows] == ["c0", "c1", "c2"]
    assert all(row["name"].startswith("'=") for row in rows)
    assert "\x1b" not in out
    assert "\u202e" not in run("audit", "tail", "truename.toml").out


def test_the_last_records_are_shown(journal: Path, run: Run) -> None:
    shown = run("audit", "tail", "truename.toml", "-n", "2").out.splitlines()
    assert [line.split()[3] for line in shown if line.startswith("2026")] == ["bob", "ann"]
    assert run("audit", "tail", "truename.toml", "-n", "0").out == ""


def test_records_that_come_are_followed(journal: Path) -> None:
    command = [
        str(Path(sys.executable).with_name("truename")),
        "audit",
        "tail",
        "truename.toml",
        "-f",
        "-n",
        "1",
        "--json",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy()) as following:
        assert following.stdout is not None
        try:
            assert json.loads(following.stdout.readline())["call"] == "c2"
            with AuditLog(journal, KEY.encode()) as open_journal:
                open_journal.append([("call", {"call": "c3"})])
            assert json.loads(following.stdout.readline())["kind"] == "segment"
            assert json.loads(following.stdout.readline())["call"] == "c3"
        finally:
            following.kill()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["verify", "--log", "nowhere"], "no audit log found at"),
        (["export", "truename.toml", "--since", "yesterday"], "is not a date"),
    ],
)
def test_what_can_not_be_meant_is_told(journal: Path, run: Run, words: list[str], told: str) -> None:
    done = run("audit", *words)
    assert (done.status, told in done.err) == (2, True)


def test_without_a_journal_it_is_said_how_to_have_one(tmp_path: Path, run: Run) -> None:
    (tmp_path / "truename.toml").write_text('[mcpServers.fs]\ncommand = "fs"\n')
    done = run("audit", "verify", "truename.toml")
    assert (done.status, "audit.path" in done.err) == (2, True)
