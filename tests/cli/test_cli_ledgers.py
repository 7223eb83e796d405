"""Commands about the memory of names: history and rename, and how the others read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from truename import Catalog, Ledger, project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


@pytest.fixture
def ledger(dump: Path, tmp_path: Path) -> Path:
    """A ledger in which the dump's tools have prefixed names."""
    path = tmp_path / "names.ledger"
    memory = Ledger.open(path)
    project(Catalog.from_file(dump), "universal", ledger=memory)
    memory.close()
    return path


def test_history_tells_whose_a_name_is(run: Run, ledger: Path) -> None:
    done = run("history", "GitHub-Search", "--state", ledger)

    assert done.status == 0
    assert "shown   github_search" in done.out
    assert done.out.endswith("GitHub-Search is held, github@1/search@1.\n")


def test_history_as_json_has_every_event(run: Run, ledger: Path) -> None:
    memory = Ledger.open(ledger)
    memory.redirect("old_search", "github_search")
    memory.retire("github_search", "old_search")

    redirected = run("history", "old_search", "--state", ledger, "--json").document
    retired = run("history", "github_search", "--state", ledger, "--json").document

    assert redirected["standing"] == {
        "status": "redirected",
        "id": "github@1/search@1",
        "successor": "github@1/search@1",
    }
    assert [event["event"] for event in retired["events"]] == ["claim", "retire"]
    assert retired["standing"]["successor"] == "old_search"


def test_a_name_never_shown_is_a_finding(run: Run, ledger: Path) -> None:
    done = run("history", "nope", "--state", ledger)

    assert (done.status, done.out.split()[:4]) == (1, ["'nope'", "was", "never", "shown."])


def test_a_rehearsal_records_nothing(run: Run, dump: Path, ledger: Path) -> None:
    before = ledger.read_bytes()

    done = run("rename", dump, "--all", "--style", "on-conflict", "--state", ledger, "--dry-run", "--json")

    assert done.status == 0
    assert {"id": "github@1/create_issue@1", "old": "github_create_issue", "new": "create_issue"} in done.document[
        "renamed"
    ]
    assert ledger.read_bytes() == before


def test_after_a_rename_old_names_go_on_resolving(run: Run, dump: Path, ledger: Path) -> None:
    done = run("rename", dump, "--all", "--style", "on-conflict", "--state", ledger)

    assert done.status == 0
    assert "github/create_issue" in done.out
    assert run("rename", dump, "--all", "--state", ledger).out.startswith("Nothing to rename")
    for name in ("github_create_issue", "create_issue"):
        found = run("resolve", name, dump, "--state", ledger, "--json").document
        assert (found["id"], found["name"]) == ("github@1/create_issue@1", "create_issue")


def test_a_style_that_can_not_name_all_tools_changes_nothing(run: Run, dump: Path, ledger: Path) -> None:
    before = ledger.read_bytes()

    done = run("rename", dump, "--all", "--style", "server-prefix", "--state", ledger)

    assert done.status == 1
    assert ledger.read_bytes() == before


def test_a_style_other_than_the_ledgers_names_the_whole_command_to_run(run: Run, dump: Path, ledger: Path) -> None:
    done = run("names", dump, "--style", "on-conflict", "--alias", "github=gh", "--state", ledger)

    command = f"`truename rename {dump} --all --style on-conflict --alias github=gh --state {ledger}`"
    assert done.status == 2
    assert command in done.err
    assert run(*command.strip("`").split()[1:]).status == 0
    assert run("names", dump, "--style", "on-conflict", "--alias", "github=gh", "--state", ledger).status == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--server-name", "lab"), "server_name is now lab (before: truename)."),
        (("--alias", "crm=c"), "aliases are now"),
    ],
)
def test_a_rename_that_changes_no_name_is_recorded_and_told(
    run: Run, dump: Path, ledger: Path, words: tuple[str, ...], told: str
) -> None:
    done = run("rename", dump, "--all", *words, "--state", ledger)

    assert done.status == 0
    assert told in done.out
    assert "Running gateways apply it at the next call" in done.out
    assert run("names", dump, *words, "--state", ledger).status == 0


def test_a_server_name_that_no_client_could_have_is_not_recorded(run: Run, dump: Path, ledger: Path) -> None:
    before = ledger.read_bytes()

    done = run("rename", dump, "--all", "--server-name", " ", "--state", ledger)

    assert done.status == 2
    assert "--server-name: ' ' cannot be a server's name" in done.err
    assert ledger.read_bytes() == before


def test_looking_takes_over_what_the_ledger_remembers(run: Run, dump: Path, ledger: Path) -> None:
    run("rename", dump, "--all", "--server-name", "lab", "--alias", "github=gh", "--state", ledger)

    document = run("names", dump, "--state", ledger, "--json").document
    found = run("resolve", "gh_search", dump, "--state", ledger, "--json").document
    again = run("rename", dump, "--all", "--style", "on-conflict", "--state", ledger, "--json").document

    assert (document["server_name"], document["tools"][0]["name"]) == ("lab", "gh_search")
    assert found["id"] == "github@1/search@1"
    assert (again["to"]["server_name"], again["to"]["aliases"]["github"]) == ("lab", "gh")


def test_a_ledger_without_names_has_nothing_to_rename(run: Run, dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "fresh.ledger"
    path.write_bytes(b"")

    done = run("rename", dump, "--all", "--style", "on-conflict", "--state", path)

    assert done.status == 2
    assert "has no names yet" in " ".join(done.err.split())


def test_a_damaged_ledger_is_refused(run: Run, dump: Path, ledger: Path) -> None:
    ledger.write_bytes(ledger.read_bytes()[:20_000])

    for words in (("names", dump), ("history", "x"), ("rename", dump, "--all"), ("resolve", "x", dump)):
        done = run(*words, "--state", ledger, "--json")
        assert done.status == 2
        assert [error["code"] for error in done.document["errors"]] == ["corrupt"]


def test_json_of_a_rename_says_from_what_to_what(run: Run, dump: Path, ledger: Path) -> None:
    done = run("rename", dump, "--all", "--alias", "github=gh", "--state", ledger, "--json")

    document = json.loads(done.out)
    assert document["from"]["aliases"] == {"salesforce": "sf", "quickbooks": "qb", "data-grout": "dg"}
    assert document["to"]["aliases"]["github"] == "gh"
    assert {"id": "github@1/search@1", "old": "github_search", "new": "gh_search"} in document["renamed"]
