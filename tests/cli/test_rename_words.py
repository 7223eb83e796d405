"""What `truename rename` is told: styles, conventions, settings, and words that make no sense."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.renaming import FILES, repository, texts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A small repository, in which one stands."""
    return repository(tmp_path)


def test_a_style_renames_what_breaks_it_and_lists_what_needs_a_person(run: Run, here: Path) -> None:
    (here / "dump.json").write_text(json.dumps({"kenny": ["fs.list", "net.dns_flush", "ping", "é.x"]}))

    done = run("rename", "dump.json", "--style", "underscore", "--apply", "src", "--json")

    assert done.document["renames"] == {"fs.list": "fs_list", "net.dns_flush": "net_dns_flush"}
    assert list(done.document["unclear"]) == ["é.x"]
    assert done.document["spellings"]["mcp__kenny__fs.list"] == "mcp__kenny__fs_list"
    shown = run("rename", "dump.json", "--style", "underscore")
    assert "needs a person: \\xe9.x" in shown.err or "needs a person: é.x" in shown.err


def test_a_convention_says_what_names_become(run: Run, here: Path) -> None:
    (here / "dump.json").write_text(json.dumps({"app": ["clearKeychain_ios", "tap"]}))

    preset = run("rename", "dump.json", "--style", "trailblaze", "--json")
    (here / "truename.toml").write_text('[convention]\npreset = "trailblaze"\n')
    own = run("rename", "dump.json", "--style", "convention", "--json")

    assert preset.document["renames"] == own.document["renames"] == {"clearKeychain_ios": "ios_clearKeychain"}


def test_the_clients_of_the_convention_have_to_accept_a_name(run: Run, here: Path) -> None:
    assert run("rename", "fs_list", "fs.list").status == 0
    (here / "truename.toml").write_text('[convention]\npreset = "mcp"\nclients = ["anthropic"]\n')

    assert run("rename", "fs_list", "fs.list").status == 1
    assert run("rename", "fs_list", "fs.list", "--for", "native").status == 0


def test_names_as_they_should_be_need_no_plan(run: Run, here: Path) -> None:
    (here / "dump.json").write_text(json.dumps({"app": ["ping"]}))

    done = run("rename", "dump.json", "--style", "underscore", "--apply", "src")

    assert done.out.startswith("Nothing to rename: all names are as they should be.")


def test_the_tools_that_there_are_are_looked_at(run: Run, here: Path) -> None:
    (here / "dump.json").write_text(json.dumps({"kenny": ["fs.list", "fs_list"]}))

    clash = run("rename", "fs.list", "fs_list", "--among", "dump.json")
    typo = run("rename", "fs.lost", "fs_lost", "--among", "dump.json")

    assert (clash.status, typo.status) == (1, 0)
    assert "'fs_list' is already in use" in clash.err
    assert "No tool has the name 'fs.lost'" in typo.err


@pytest.mark.parametrize(
    ("new", "status"), [("listing", 1), ("Listing", 1), ("of_another_server", 0), ("free", 0)], ids=str
)
def test_a_name_that_another_tool_of_the_server_has_in_the_files_is_refused(
    run: Run, here: Path, new: str, status: int
) -> None:
    declared = {"a": ("search", "listing"), "b": ("of_another_server",)}
    for server, names in declared.items():
        tools = "".join(f'@mcp.tool\ndef {name}() -> str:\n    """Text."""\n' for name in names)
        (here / "src" / f"{server}.py").write_text(f'from fastmcp import FastMCP\nmcp = FastMCP("{server}")\n{tools}')
    before = (here / "src" / "a.py").read_text()

    done = run("rename", "search", new, "--apply", "src")

    assert done.status == status
    assert ("refused: " in done.err) is bool(status)
    assert ((here / "src" / "a.py").read_text() == before) is bool(status)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "a rename takes two names, an old one and a new one, but none was given"),
        (("a", "b", "c"), "a rename takes two names, an old one and a new one, but 3 were given"),
        (("docs", "--style", "underscore"), "no tool was found in docs"),
        (("a", "b", "--apply"), "no file or directory was named"),
        (("a", "b", "--check"), "no file or directory was named"),
        (("a", "b", "--check", ".", "--apply", "."), "--check and --apply exclude each other"),
        (("a", "b", "--apply", "nowhere"), "nowhere: it does not exist"),
        (("--map", "nowhere.toml"), "nowhere.toml cannot be read"),
        (("--map", "x", "--style", "underscore"), "--map and --style exclude each other"),
        (("--style", "underscore"), "no SOURCE of tools was given"),
        (("x", "--style", "on-conflict"), "which applies only to all tools of a ledger"),
        (("x", "--style", "loud"), "'loud' is not a style for names in files"),
        (("x", "--style", "convention"), "no convention is configured here"),
        (("a", "b", "--all"), "--all takes at most one SOURCE, not 2"),
        (("a", "b", "--listed-for", "90d", "--clean-break"), "the options about the old names exclude each other"),
        (("a", "b", "--listed-for", "soon"), "'soon' is not a duration"),
        (("a", "b", "--listed-for", "0d"), "is not 1 to 3,650 days"),
        (("a", "b", "--listed-until", "tomorrow"), "'tomorrow' is not a date"),
        (("a", "b", "--listed-until", "2001-01-01"), "2001-01-01 is in the past"),
        (("a", "b", "--state", "none.ledger"), "no ledger found at none.ledger"),
        (("a", "b", "--for", "nobody"), "Unknown client or provider: 'nobody'"),
    ],
)
def test_what_can_not_be_done_is_told_with_what_to_type(
    run: Run, here: Path, words: tuple[str, ...], told: str
) -> None:
    done = run("rename", *words)

    assert done.status in {1, 2}
    assert told in " ".join(done.err.split())
    assert texts(here) == FILES


def test_what_a_project_says_about_migrations_holds(run: Run, here: Path) -> None:
    (here / "pyproject.toml").write_text(
        '[tool.truename.migration]\nexclude = ["src/*"]\ncontrol_plane = ["x.run"]\nrecord = "records"\n'
        'protocol = {file = "docs/*", pattern = "CONTRACT: {version}"}\n'
    )
    (here / "docs/adr/0016-names.md").write_text("`fs.list` CONTRACT: 1.0")

    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--protocol")
    flagged = run("rename", "x.run", "x_go")

    assert done.status == 0
    assert texts(here)["src/agent.rs"] == FILES["src/agent.rs"]
    assert (here / "docs/adr/0016-names.md").read_text() == "`fs_list` CONTRACT: 2.0"
    assert (here / "records/0001-rename-fs-list.md").exists()
    assert "'x.run' performs the upgrade" in flagged.err


def test_a_broken_setting_is_told(run: Run, here: Path) -> None:
    (here / "truename.toml").write_text("[migration]\nexclude = 1\n")

    done = run("rename", "fs.list", "fs_list")

    assert done.status == 2
    assert "migration.exclude: it is not a list of strings" in " ".join(done.err.split())


def test_help_says_what_there_is(run: Run) -> None:
    out = run("rename", "--help").out

    for option in ("--apply", "--check", "--map", "--undo", "--clean-break", "--listed-for", "--record", "--protocol"):
        assert option in out
