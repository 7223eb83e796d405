"""`truename rename` in files: the plan, the change, what is left, the way back."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import HOSTILE
from tests.cli.renaming import FILES, repository, texts

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

MAP = '[renames]\n"fs.list" = "fs_list"\n"agent.update" = "agent_update"\n'


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A small repository, in which one stands."""
    return repository(tmp_path)


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
    assert "3 files changed, in 4 places. `truename rename --undo` restores them." in done.out
    assert "no gateway knows of the rename" in done.out


def test_undoing_gives_everything_back(run: Run, here: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", ".", "--rename-files", "--record", "docs/adr")

    done = run("rename", "--undo")

    assert done.status == 0
    assert "restored to the state before the rename of" in done.out
    assert texts(here) == FILES
    assert [path.name for path in (here / "docs/adr").iterdir()] == ["0016-names.md"]
    again = run("rename", "--undo", "--json")
    assert (again.status, again.document["undone"]) == (1, None)
    assert run("rename", "--undo").out.startswith("No rename to undo in this directory")


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
    assert "5 old names are left in 3 files." in before.out
    assert "1 old name is left in 3 files." in between.out
    assert after.out == "No old name is left in 3 files.\n"


def test_a_check_as_json_says_whether_all_is_clean(run: Run, here: Path) -> None:
    (here / "renames.json").write_text(json.dumps({"fs.list": "fs_list"}))

    done = run("rename", "--map", "renames.json", "--check", "src", "--json")

    assert (done.status, done.document["clean"], done.document["files"]) == (1, False, 1)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("fs.list", "fs.list"), "'fs.list' would not change"),
        (("fs_list", "fs.list", "--for", "anthropic"), "'fs.list' is not legal for anthropic"),
        (("fs.list", "a b"), "'a b' cannot be written as a name in files"),
    ],
)
def test_a_refused_plan_changes_nothing(run: Run, here: Path, words: tuple[str, ...], told: str) -> None:
    done = run("rename", *words, "--apply", ".")

    assert done.status == 1
    assert f"refused: {told}" in " ".join(done.err.split())
    assert "Nothing was changed: fix the refused renames first." in done.out
    assert texts(here) == FILES


def test_two_names_that_would_become_one_are_refused(run: Run, here: Path) -> None:
    (here / "m.toml").write_text('[renames]\n"net.dns_flush" = "net_dns_flush"\n"net_dns.flush" = "net_dns_flush"\n')

    done = run("rename", "--map", "m.toml", "--json")

    assert done.status == 1
    assert [refusal["kind"] for refusal in done.document["refusals"]] == ["merged"]


def test_a_file_in_the_way_stops_it_all(run: Run, here: Path) -> None:
    (here / "src/agent.rs").chmod(0o444)

    done = run("rename", "fs.list", "fs_list", "--apply", ".")

    assert done.status == 2
    assert "it is read-only" in " ".join(done.err.split())
    assert texts(here) == FILES


def test_a_run_that_was_cut_short_is_told(run: Run, here: Path) -> None:
    run("rename", "fs.list", "fs_list", "--apply", ".")
    journals = list((here / "state/truename/migrations").glob("*/journal.json"))
    journals[0].write_text(journals[0].read_text().replace('"done"', '"begun"'))

    done = run("rename", "fs.list", "fs_list", "--apply", ".")

    assert "was interrupted; its files were restored first" in done.err
    assert done.status == 0
    assert texts(here)["src/agent.rs"].startswith('match tool { "fs_list"')


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


def test_history_is_named_once(run: Run, here: Path) -> None:
    done = run("rename", "fs.list", "fs_list", "--apply", ".", "--dry-run", "--record", "./docs/adr/")

    assert done.out.count("docs/adr/*") == 1


def test_a_protocol_version_that_no_file_states_is_told(run: Run, here: Path) -> None:
    done = run("rename", "fs.list", "fs_list", "--apply", "src", "--protocol")

    assert "No file states a protocol version" in done.err


def test_the_setting_of_the_gateway_states_the_version_too(run: Run, here: Path) -> None:
    (here / "truename.toml").write_text('# ours\r\nprotocol = "0.2"\r\n\r\n[mcpServers.x]\r\nprotocol = "0.1"\r\n')

    run("rename", "fs.list", "fs_list", "--apply", ".", "--protocol")

    settings = (here / "truename.toml").read_bytes()
    assert settings == b'# ours\r\nprotocol = "0.3"\r\n\r\n[mcpServers.x]\r\nprotocol = "0.1"\r\n'
    assert 'PROTOCOL_VERSION = "0.3"' in texts(here)["docs/protocol.md"]


@pytest.mark.parametrize("more", [("--dry-run",), ("--check", "."), ("fs.list", "fs_list"), ("--clean-break",)])
def test_undoing_takes_no_other_words(run: Run, here: Path, more: tuple[str, ...]) -> None:
    run("rename", "fs.list", "fs_list", "--apply", "src")

    done = run("rename", "--undo", *more)

    assert done.status == 2
    assert "--undo excludes other options" in done.err
    assert texts(here) != FILES


def test_what_is_left_stands_below_the_reason(run: Run, here: Path) -> None:
    (here / "src/x.py").write_text("fs.list()")

    lines = run("rename", "fs.list", "fs_list", "--check", "src").out.splitlines()

    assert lines[lines.index("  src/x.py:1:1: fs.list  fs.list()") - 1].startswith(" code without quotes")


def test_what_clients_show_is_left_over_where_the_server_is_not_named(run: Run, here: Path) -> None:
    (here / "src/settings.json").write_text('{"allow": ["mcp__kenny__fs.list"]}')

    left = run("rename", "fs.list", "fs_list", "--check", "src", "--json")
    run("rename", "fs.list", "fs_list", "--apply", "src", "--server", "kenny")

    assert [one["reason"] for one in left.document["leftovers"]] == ["shown"]
    assert (here / "src/settings.json").read_text() == '{"allow": ["mcp__kenny__fs_list"]}'


BARE = "from fastmcp import FastMCP\n\nmcp = FastMCP('shop')\n\n\n@mcp.tool\ndef get_order(id: int) -> str: ...\n"


def test_a_tool_that_has_its_functions_name_is_renamed_as_lint_says_it(run: Run, here: Path) -> None:
    server = here / "server.py"
    server.write_text(BARE)

    checked = run("rename", "get_order", "fetch_order", "--check", "server.py")
    done = run("rename", "get_order", "fetch_order", "--apply", "server.py")
    again = run("rename", "get_order", "fetch_order", "--check", "server.py")

    assert checked.status == 1
    assert 'server.py:6:10  (name="fetch_order")' in checked.out
    assert "1 file changed, in 1 place." in done.out
    assert server.read_text() == BARE.replace("@mcp.tool", '@mcp.tool(name="fetch_order")')
    assert (again.status, again.out) == (0, "No old name is left in 1 file.\n")
