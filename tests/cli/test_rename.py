"""`truename rename` in files: the plan, the change, what is left, the way back."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import HOSTILE
from truename import Catalog, Ledger, project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Run

FILES = {
    "docs/protocol.md": '| `fs.list` | lists |\nPROTOCOL_VERSION = "0.2"\nsee fs.* too\n',
    "docs/adr/0016-names.md": "`fs.list` it was\n",
    "src/agent.rs": 'match tool { "fs.list" => list(), _ => refuse() } // kenny-agent.updater.exe\n',
    "fixtures/request_fs.list.json": '{"tool": "fs.list"}',
}
MAP = '[renames]\n"fs.list" = "fs_list"\n"agent.update" = "agent_update"\n'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A small repository, in which one stands."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger in which a server's tools were shown."""
    path = tmp_path / "names.ledger"
    catalog = Catalog.from_mcp({"kenny": [{"name": name} for name in ("fs.list", "ping")]})
    project(catalog, "universal", ledger=Ledger.open(path), style="on-conflict")
    return path


def texts(root: Path) -> dict[str, str]:
    return {name: (root / name).read_text("utf-8") for name in FILES if (root / name).exists()}


def test_without_apply_only_the_plan_is_shown(run: Run, here: Path) -> None:
    done = run("rename", "fs.list", "fs_list")

    assert done.status == 0
    assert "fs_list" in done.out
    assert "Nothing was changed. --apply PATH... makes the change" in done.out
    assert texts(here) == FILES


def test_applying_changes_files_and_lists_what_is_left(run: Run, here: Path) -> None:
    done = run("rename", "fs.list", "fs_list", "--apply", "docs", "src", "fixtures", "--protocol", "--rename-files")

    assert done.status == 0
    assert (here / "docs/protocol.md").read_text() == '| `fs_list` | lists |\nPROTOCOL_VERSION = "0.3"\nsee fs.* too\n'
    assert (here / "src/agent.rs").read_text().startswith('match tool { "fs_list" => list(), _ => refuse() } // kenny')
    assert (here / "fixtures/request_fs_list.json").read_text() == '{"tool": "fs_list"}'
    assert (here / "docs/adr/0016-names.md").read_text() == FILES["docs/adr/0016-names.md"]
    assert "docs/protocol.md:3:5: fs.*" in done.out
    assert "The protocol version goes from 0.2 to 0.3." in done.out
    assert "Left out as history: CHANGELOG*" in done.out
    assert "3 files changed, in 4 places. `truename rename --undo` gives them back." in done.out


def test_undoing_gives_everything_back(run: Run, here: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", ".", "--rename-files", "--record", "docs/adr")

    done = run("rename", "--undo")

    assert done.status == 0
    assert "given back as before the rename of" in done.out
    assert texts(here) == FILES
    assert [path.name for path in (here / "docs/adr").iterdir()] == ["0016-names.md"]
    again = run("rename", "--undo", "--json")
    assert (again.status, again.document["undone"]) == (1, None)
    assert run("rename", "--undo").out.startswith("No rename was made from this directory")


def test_an_undo_says_which_it_was_as_json_too(run: Run, here: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", "src")

    document = run("rename", "--undo", "--json").document

    assert document["files"] == 1
    assert document["undone"].startswith("20")


def test_a_dry_run_says_what_would_change(run: Run, here: Path) -> None:
    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--dry-run", "--diff")

    assert done.status == 0
    assert '-match tool { "fs.list"' in done.out
    assert '+match tool { "fs_list"' in done.out
    assert "3 files would change, in 3 places. Nothing was changed." in done.out
    assert texts(here) == FILES


def test_a_second_run_finds_nothing_to_change(run: Run, here: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", ".", "--protocol")

    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--protocol", "--record", "docs/adr")

    assert "Nothing to change in 3 files" in done.out
    assert 'PROTOCOL_VERSION = "0.3"' in (here / "docs/protocol.md").read_text()
    assert len(list((here / "docs/adr").iterdir())) == 1


def test_a_map_renames_several_and_is_not_rewritten_itself(run: Run, here: Path) -> None:
    (here / "renames.toml").write_text(MAP)

    done = run("rename", "--map", "renames.toml", "--apply", ".", "--json")

    assert done.document["renames"] == {"fs.list": "fs_list", "agent.update": "agent_update"}
    assert done.document["control_plane"] == ["agent.update"]
    assert [warning["kind"] for warning in done.document["warnings"]] == ["control_plane"]
    assert done.document["applied"] == 3
    assert (here / "renames.toml").read_text() == MAP


def test_the_document_has_every_place(run: Run, here: Path) -> None:
    document = run("rename", "fs.list", "fs_list", "--apply", "docs", "--dry-run", "--json").document

    assert document["dry_run"] is True
    assert document["changes"] == [
        {
            "path": "docs/protocol.md",
            "target": "docs/protocol.md",
            "edits": [{"line": 1, "column": 4, "old": "fs.list", "new": "fs_list"}],
        }
    ]
    (left,) = document["leftovers"]
    assert left | {"path": ""} == {
        "path": "", "line": 3, "column": 5, "name": "fs.*", "reason": "several", "text": "see fs.* too"
    }  # fmt: skip
    assert "ledger" in document
    assert "docs/adr/*" in document["excluded"]


def test_a_record_takes_the_next_number_and_is_no_leftover(run: Run, here: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", "src", "--record", "docs/adr", "--because", "Dots are refused.")
    run("rename", "x.y", "x_y", "--apply", "src", "--record", "decisions")

    text = (here / "docs/adr/0017-rename-fs-list.md").read_text()
    assert text.startswith("# 0017. Rename fs.list to fs_list\n")
    assert "Dots are refused." in text
    assert not (here / "decisions").exists()


def test_what_ci_checks_is_that_no_old_name_is_left(run: Run, here: Path) -> None:
    before = run("rename", "fs.list", "fs_list", "--check", ".")
    run("rename", "fs.list", "fs_list", "--apply", ".", "--rename-files")
    between = run("rename", "fs.list", "fs_list", "--check", ".")
    (here / "docs/protocol.md").write_text("`fs_list`\n")
    after = run("rename", "fs.list", "fs_list", "--check", ".")

    assert [done.status for done in (before, between, after)] == [1, 1, 0]
    assert "src/agent.rs:1:15  fs.list" in before.out
    assert "5 left of the old names in 3 files." in before.out
    assert "1 left of the old names in 3 files." in between.out
    assert after.out == "No old name is left in 3 files.\n"


def test_a_check_as_json_says_whether_all_is_clean(run: Run, here: Path) -> None:
    (here / "renames.json").write_text(json.dumps({"fs.list": "fs_list"}))

    done = run("rename", "--map", "renames.json", "--check", "src", "--json")

    assert (done.status, done.document["clean"], done.document["files"]) == (1, False, 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("fs.list", "fs.list"), "'fs.list' would stay what it is"),
        (("fs_list", "fs.list", "--for", "anthropic"), "'fs.list' is not legal for anthropic"),
        (("fs.list", "a b"), "'a b' can't be a name in files"),
    ],
)
def test_a_refused_plan_changes_nothing(run: Run, here: Path, words: tuple[str, ...], told: str) -> None:
    done = run("rename", *words, "--apply", ".")

    assert done.status == 1
    assert f"refused: {told}" in " ".join(done.err.split())
    assert "Nothing was changed: the plan has to be mended first." in done.out
    assert texts(here) == FILES


def test_two_names_that_would_become_one_are_refused(run: Run, here: Path) -> None:
    (here / "m.toml").write_text('[renames]\n"net.dns_flush" = "net_dns_flush"\n"net_dns.flush" = "net_dns_flush"\n')

    done = run("rename", "--map", "m.toml", "--json")

    assert done.status == 1
    assert [refusal["kind"] for refusal in done.document["refusals"]] == ["merged"]


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


def test_names_as_they_should_be_need_no_plan(run: Run, here: Path) -> None:
    (here / "dump.json").write_text(json.dumps({"app": ["ping"]}))

    done = run("rename", "dump.json", "--style", "underscore", "--apply", "src")

    assert done.out.startswith("Nothing is to be renamed: all names are as they should be.")


def test_the_tools_that_there_are_are_looked_at(run: Run, here: Path) -> None:
    (here / "dump.json").write_text(json.dumps({"kenny": ["fs.list", "fs_list"]}))

    clash = run("rename", "fs.list", "fs_list", "--among", "dump.json")
    typo = run("rename", "fs.lost", "fs_lost", "--among", "dump.json")

    assert (clash.status, typo.status) == (1, 0)
    assert "'fs_list' is there already" in clash.err
    assert "No tool is called 'fs.lost'" in typo.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "only all tools together can be renamed, or one name to another"),
        (("a", "b", "c"), "only all tools together can be renamed, or one name to another"),
        (("a", "b", "--apply"), "no file or directory was named"),
        (("a", "b", "--check"), "no file or directory was named"),
        (("a", "b", "--check", ".", "--apply", "."), "--check only looks, and --apply changes"),
        (("a", "b", "--apply", "nowhere"), "nowhere: there is nothing"),
        (("--map", "nowhere.toml"), "nowhere.toml can't be read"),
        (("--map", "x", "--style", "underscore"), "--map and --style both say what the names become"),
        (("--style", "underscore"), "nothing says which tools there are"),
        (("x", "--style", "on-conflict"), "with it only all tools together can be renamed"),
        (("x", "--style", "loud"), "'loud' is no style that names in files can have"),
        (("x", "--style", "convention"), "there is no convention here"),
        (("a", "b", "--all"), "2 words were given with --all"),
        (("a", "b", "--listed-for", "90d", "--clean-break"), "two things are said about the old names"),
        (("a", "b", "--listed-for", "soon"), "'soon' is no span of time"),
        (("a", "b", "--listed-for", "0d"), "is not 1 to 3,650 days"),
        (("a", "b", "--listed-until", "tomorrow"), "'tomorrow' is no day"),
        (("a", "b", "--listed-until", "2001-01-01"), "2001-01-01 has been already"),
        (("a", "b", "--ledger", "none.ledger"), "there is no ledger at none.ledger"),
        (("a", "b", "--for", "nobody"), "No client or provider is known as 'nobody'"),
    ],
)
def test_what_can_not_be_done_is_told_with_what_to_type(
    run: Run, here: Path, words: tuple[str, ...], told: str
) -> None:
    done = run("rename", *words)

    assert done.status in {1, 2}
    assert told in " ".join(done.err.split())
    assert texts(here) == FILES


def test_a_file_in_the_way_stops_it_all(run: Run, here: Path) -> None:
    (here / "src/agent.rs").chmod(0o444)

    done = run("rename", "fs.list", "fs_list", "--apply", ".")

    assert done.status == 2
    assert "it is read-only" in done.err
    assert texts(here) == FILES


def test_the_ledger_is_told_after_the_files(run: Run, here: Path, ledger: Path) -> None:
    done = run("rename", "ping", "agent_ping", "--apply", ".", "--ledger", ledger, "--listed-for", "12w")

    day = (datetime.now(UTC).date() + timedelta(weeks=12)).isoformat()
    standing = Ledger.open(ledger, readonly=True).standing("ping")
    assert standing is not None
    assert (standing.status, standing.until) == ("redirected", day)
    assert f"Ledger: the old name goes on working, listed until {day}." in done.out


def test_a_clean_break_ends_the_old_name(run: Run, here: Path, ledger: Path) -> None:
    words = ("rename", "fs.list", "fs_list", "--apply", ".", "--ledger", ledger, "--clean-break", "--protocol")

    done = run(*words, "--json")

    standing = Ledger.open(ledger, readonly=True).standing("fs.list")
    assert standing is not None
    assert (standing.status, standing.protocol) == ("broken", "0.3")
    assert {"old": "fs.list", "new": "kenny@1/fs_list@1"} in done.document["ledger"]["entered"]
    assert "Ledger: the old name ended" in run(*words).out


def test_a_name_that_the_ledger_does_not_know_is_told(run: Run, here: Path, ledger: Path) -> None:
    done = run("rename", "x.y", "x_y", "--apply", ".", "--ledger", ledger, "--clean-break")

    assert "The ledger never showed 'x.y'" in done.err


def test_a_plan_leaves_the_ledger_as_it_is(run: Run, here: Path, ledger: Path) -> None:
    before = ledger.read_bytes()

    run("rename", "ping", "agent_ping", "--ledger", ledger, "--clean-break")
    run("rename", "ping", "agent_ping", "--ledger", ledger, "--clean-break", "--apply", ".", "--dry-run")
    run("rename", "ping", "fs.list", "--ledger", ledger, "--clean-break", "--apply", ".")

    assert ledger.read_bytes() == before


def test_where_the_ledger_can_not_be_told_the_files_are_given_back(
    run: Run, here: Path, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(ledger))

    monkeypatch.setattr("truename.cli.migrating.enter", full)

    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--ledger", ledger, "--clean-break")

    assert done.status == 2
    assert texts(here) == FILES


def test_a_run_that_was_cut_short_is_told(run: Run, here: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", ".")
    journals = list((here / "state/truename/migrations").glob("*/journal.json"))
    journals[0].write_text(journals[0].read_text().replace('"done"', '"begun"'))

    done = run("rename", "fs.list", "fs_list", "--apply", ".")

    assert "had been cut short; its files were given back first" in done.err
    assert done.status == 0
    assert texts(here)["src/agent.rs"].startswith('match tool { "fs_list"')


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
    assert "migration.exclude: it is no list of texts" in " ".join(done.err.split())


def test_hostile_names_and_files_reach_no_terminal(run: Run, here: Path) -> None:
    (here / "src/evil.txt").write_text(f'fs.list {HOSTILE} "fs.list"')

    for more in ((), ("--diff",)):
        done = run("rename", "fs.list", "fs_list", "--apply", ".", "--dry-run", *more)
        assert "\x1b" not in done.out + done.err
        assert "\u202e" not in done.out + done.err


def test_long_lists_are_cut_and_told(run: Run, here: Path) -> None:
    for number in range(120):
        (here / "src" / f"{number}.py").write_text('"fs.list" fs.list()')

    done = run("rename", "fs.list", "fs_list", "--apply", "src", "--dry-run")

    assert done.out.count("more; --json lists all.") == 2


def test_help_says_what_there_is(run: Run, configure: Callable[..., Path]) -> None:
    out = run("rename", "--help").out

    for option in ("--apply", "--check", "--map", "--undo", "--clean-break", "--listed-for", "--record", "--protocol"):
        assert option in out
