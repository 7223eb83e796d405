"""`truename rename` and the ledger: what becomes of old names, and when."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.cli.renaming import FILES, repository, texts
from truename import Catalog, Ledger, project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A small repository, in which one stands."""
    return repository(tmp_path)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger in which a server's tools were shown."""
    path = tmp_path / "names.ledger"
    catalog = Catalog.from_mcp({"kenny": [{"name": name} for name in ("fs.list", "ping")]})
    with closing(Ledger.open(path)) as opened:
        project(catalog, "universal", ledger=opened, style="on-conflict")
    return path


def test_the_ledger_is_told_after_the_files(run: Run, here: Path, ledger: Path) -> None:
    done = run("rename", "ping", "agent_ping", "--apply", ".", "--state", ledger, "--listed-for", "12w")

    day = (datetime.now(UTC).date() + timedelta(weeks=12)).isoformat()
    standing = Ledger.open(ledger, readonly=True).standing("ping")
    assert standing is not None
    assert (standing.status, standing.until) == ("redirected", day)
    assert f"Ledger: the old name keeps working, listed until {day}." in done.out


def test_undoing_files_says_that_the_ledger_keeps_its_word(run: Run, here: Path, ledger: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", ".", "--state", ledger)
    assert "The ledger keeps its entries" in run("rename", "--undo").out

    run("rename", "fs.list", "fs_list", "--apply", "src")
    assert "The ledger keeps its entries" not in run("rename", "--undo").out


def test_a_clean_break_ends_the_old_name(run: Run, here: Path, ledger: Path) -> None:
    words = ("rename", "fs.list", "fs_list", "--apply", ".", "--state", ledger, "--clean-break", "--protocol")

    done = run(*words, "--json")

    standing = Ledger.open(ledger, readonly=True).standing("fs.list")
    assert standing is not None
    assert (standing.status, standing.protocol) == ("broken", "0.3")
    assert {"old": "fs.list", "new": "kenny@1/fs_list@1"} in done.document["ledger"]["entered"]
    assert "Ledger: the old name ended" in run(*words).out


def test_a_name_that_the_ledger_does_not_know_is_told(run: Run, here: Path, ledger: Path) -> None:
    done = run("rename", "x.y", "x_y", "--apply", ".", "--state", ledger, "--clean-break")

    assert "'x.y' is not in the ledger" in done.err


def test_a_plan_leaves_the_ledger_as_it_is(run: Run, here: Path, ledger: Path) -> None:
    before = ledger.read_bytes()

    run("rename", "ping", "agent_ping", "--state", ledger, "--clean-break")
    run("rename", "ping", "agent_ping", "--state", ledger, "--clean-break", "--apply", ".", "--dry-run")
    run("rename", "ping", "fs.list", "--state", ledger, "--clean-break", "--apply", ".")

    assert ledger.read_bytes() == before


def test_where_the_ledger_can_not_be_told_the_files_are_given_back(
    run: Run, here: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(ledger))

    monkeypatch.setattr("truename.cli.rename.record_entries", full)

    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--state", ledger, "--clean-break")

    assert done.status == 2
    assert texts(here) == FILES


@pytest.mark.parametrize("settings", ["", '[convention]\npreset = "mcp"\n'])
def test_a_clean_break_needs_no_gateway(run: Run, here: Path, settings: str) -> None:
    (here / "truename.toml").write_text(settings)

    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--clean-break", "--record", "docs/adr")

    assert done.status == 0
    assert "fs_list" in texts(here)["src/agent.rs"]
    assert "No ledger was found" in done.out
    assert "a clean break" in (here / "docs/adr/0017-rename-fs-list.md").read_text()


def test_where_no_ledger_is_nothing_can_be_listed(run: Run, here: Path) -> None:
    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--listed-for", "90d")

    assert done.status == 2
    assert "old names can be listed only with a ledger" in " ".join(done.err.split())
    assert texts(here) == FILES
