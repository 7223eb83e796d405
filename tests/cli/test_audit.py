"""`truename audit`: a journal proved, followed and exported."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import HOSTILE
from tests.support.gateway_audit import fix_time
from truename.audit import AuditLog, HeadKeeper, anchor_file, open_chain
from truename.audit.chains import host_name
from truename.config.audit import Audit
from truename.storage import StateLocation

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
    told = run("audit", "verify", "truename.toml", "--json").document
    assert {name: told[name] for name in ("log", "records", "broken", "elsewhere", "heads")} == {
        "log": str(journal),
        "records": 4,
        "broken": [],
        "elsewhere": [],
        "heads": "none",
    }
    assert [(one["chain"], one["records"], one["proven"], one["by"]) for one in told["chains"]] == [("", 4, 0, "")]


def test_a_change_is_told_with_its_place(journal: Path, run: Run) -> None:
    file = journal / "000001.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"bob"', b'"ann"'))
    done = run("audit", "verify", "truename.toml")
    assert (done.status, done.out.splitlines()[0]) == (
        1,
        "changed 000001.jsonl:3: the line was changed: its hash does not match its content",
    )
    assert run("audit", "export", "truename.toml").status == 1


def test_a_link_in_place_of_a_file_is_told_to_be_one(journal: Path, run: Run) -> None:
    file = journal / "000001.jsonl"
    file.rename(journal.with_name("moved.jsonl"))
    file.symlink_to(journal.with_name("moved.jsonl"))
    done = run("audit", "verify", "truename.toml")
    assert (done.status, f"{file}: It is a symbolic link, which is not followed here" in done.err) == (2, True)


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
    assert "Pass the key" not in run("audit", "verify", "truename.toml").err

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


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """A log of two chains whose heads are in a state file, and a configuration that names both."""
    (tmp_path / "truename.toml").write_text(
        'state = "state.db"\n[mcpServers.fs]\ncommand = "fs"\n[audit]\npath = "audit"\n'
    )
    settings, location = Audit(path=str(tmp_path / "audit")), StateLocation(tmp_path / "state.db")
    opened = [open_chain(settings, location) for _ in range(2)]
    for number, (log, place) in enumerate(opened):
        fix_time(log, f"2026-01-0{number + 1}T00:00:00.000+00:00")
        heads = HeadKeeper(location, None, place, partial(getattr, log, "head"), lambda: 0)
        heads.begin(log.require_record)
        log.append([("call", {"who": f"caller {number}", "tool": "fs@1/read@1"})])
        heads.close()
    for log, _ in opened:
        log.close()
    return tmp_path / "audit"


def test_all_chains_are_proved_followed_and_exported(several: Path, run: Run) -> None:
    name = f"{host_name()}-1"
    done = run("audit", "verify", "truename.toml")
    assert (done.status, "4 records of" in done.out, "in 2 chains are intact" in " ".join(done.out.split())) == (
        *(0, True, True),
    )
    told = run("audit", "verify", "truename.toml", "--json").document
    assert [(one["chain"], one["proven"], one["by"], one["state"]) for one in told["chains"]] == [
        ("", 2, "database", "closed"),
        (name, 2, "database", "closed"),
    ]
    exported = [json.loads(line) for line in run("audit", "export", "truename.toml").out.splitlines()]
    assert [(one.get("chain"), one["kind"]) for one in exported] == [
        *((None, "segment"), (None, "call"), (name, "segment"), (name, "call")),
    ]
    shown = run("audit", "tail", "truename.toml", "-n", "2").out
    assert ("caller 1" in shown, f"chain={name}" in shown, "caller 0" in shown) == (True, True, False)
    anchors = run("audit", "anchor", "truename.toml").out.split()
    assert run("audit", "verify", "truename.toml", "--expect", anchors[0], "--expect", anchors[1]).status == 0
    assert run("audit", "verify", "truename.toml", "--expect", "\n".join(anchors)).status == 0
    shutil.rmtree(several / name)
    gone = run("audit", "verify", "truename.toml")
    assert (gone.status, gone.out.startswith(f"truncated {name}: the chain is missing; it had 2 records")) == (1, True)
    assert run("audit", "verify", "truename.toml", "--expect", anchors[1]).status == 1
    assert run("audit", "verify", "truename.toml", "--expect", "\n".join(anchors)).status == 1


def test_old_records_are_pruned_by_a_command(several: Path, run: Run) -> None:
    assert "would be removed" in run("audit", "prune", "truename.toml", "--older-than", "90d", "--dry-run").out
    assert (several / f"{host_name()}-1").exists()
    done = run("audit", "prune", "truename.toml", "--older-than", "90d", "--json").document
    assert [(one["chain"], one["records"]) for one in done["pruned"]] == [(f"{host_name()}-1", 2)]
    assert not (several / f"{host_name()}-1").exists()
    assert run("audit", "verify", "truename.toml").status == 0
    assert "only records from before" in " ".join(
        run("audit", "prune", "truename.toml", "--older-than", "90d").out.split()
    )


def test_what_a_killed_prune_left_of_a_chain_is_removed_by_the_next(several: Path, run: Run, tmp_path: Path) -> None:
    chain = several / f"{host_name()}-1"
    shutil.copytree(chain, tmp_path / "kept")
    assert run("audit", "prune", "truename.toml", "--older-than", "90d").status == 0
    shutil.copytree(tmp_path / "kept", chain)
    assert run("audit", "verify", "truename.toml").out.startswith("continued")
    assert run("audit", "prune", "truename.toml", "--older-than", "90d").status == 0
    assert (chain.exists(), run("audit", "verify", "truename.toml").status) == (False, 0)


def test_chains_are_not_proven_while_their_heads_cannot_be_read(several: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "state.db").write_bytes(b"no database" * 100)
    done = run("audit", "verify", "truename.toml")
    assert (done.status, "were not compared" in " ".join(done.err.split())) == (3, True)


def test_what_machines_elsewhere_wrote_is_an_error_if_all_is_asked_for(
    several: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = StateLocation(tmp_path / "state.db")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr("socket.gethostname", lambda: "blue")
        log, place = open_chain(Audit(path=str(tmp_path / "blue")), location)
        heads = HeadKeeper(location, None, place, lambda: log.head, lambda: 0)
        log.append([("call", {})])
        heads.begin(log.require_record)
        heads.close()
        log.close()
    done = run("audit", "verify", "truename.toml")
    assert (done.status, "2 records that blue wrote to" in " ".join(done.err.split())) == (0, True)
    assert run("audit", "verify", "truename.toml", "--complete").status == 1
