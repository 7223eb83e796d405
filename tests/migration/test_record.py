"""The decision record, and what a project says about its migrations."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from truename.errors import ConfigError
from truename.migration import (
    FIELDS,
    HISTORY,
    OldNamesDecision,
    ProtocolStatement,
    decision_record,
    next_number,
    plan,
    read_migration,
    record_file_name,
)

DAY = date(2026, 6, 5)


def test_a_record_has_every_field_and_says_what_was_decided() -> None:
    decision = OldNamesDecision(
        number=16, day=DAY, clean_break=True, protocol=ProtocolStatement.after("0.2"), reason="The API refuses dots."
    )

    text = decision_record(plan({"powershell.exec": "powershell_exec", "agent.update": "agent_update"}), decision)
    lines = text.splitlines()

    assert lines[0] == "# 0016. Rename powershell.exec to powershell_exec, agent.update to agent_update"
    assert lines[2:4] == ["- Status: accepted", "- Date: 2026-06-05"]
    for field in FIELDS:
        assert any(line.startswith((f"## {field}", f"- {field}: ")) for line in lines), field
    assert "The API refuses dots." in lines
    assert "| `powershell.exec` | `powershell_exec` |" in lines
    assert "the protocol version goes from 0.2 to 0.3." in text
    assert "Chosen: **Rename in one step, a clean break.**" in text
    assert "`agent.update` performs the upgrade" in text
    assert text.endswith("\n")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"until": "2027-02-01"}, "keep the old names listed until 2027-02-01"),
        ({}, "Chosen: **Rename in the files.**"),
    ],
)
def test_what_becomes_of_old_names_is_told(more: dict[str, Any], told: str) -> None:
    assert told in decision_record(plan({"fs.list": "fs_list"}), OldNamesDecision(number=1, day=DAY, **more))


def test_many_renames_are_counted_and_listed_up_to_a_limit() -> None:
    made = plan({f"a.b{number}": f"a_b{number}" for number in range(300)})

    text = decision_record(made, OldNamesDecision(number=1, day=DAY))

    assert text.startswith("# 0001. Rename 300 tools\n")
    assert "| and 100 more | |" in text
    assert record_file_name(made, 7) == "0007-rename-300-tools.md"


@pytest.mark.parametrize(
    ("names", "number"),
    [
        ([], 1),
        (["README.md", "template.md", "adr.txt"], 1),
        (["0001-a.md", "0016-b.md", "0003-c.md"], 17),
        (["0009-a.md", "0010", "00100-a.md"], 10),
        (["0002_a.rst"], 3),
    ],
)
def test_the_next_free_number_is_taken(names: list[str], number: int) -> None:
    assert next_number(names) == number


@pytest.mark.parametrize(
    ("old", "name"),
    [("fs.list", "0001-rename-fs-list.md"), ("天気", "0001-rename-a-tool.md"), ("../x", "0001-rename-x.md")],
)
def test_the_files_name_holds_only_plain_letters(old: str, name: str) -> None:
    assert record_file_name(plan({old: "new"}), 1) == name


def test_a_hostile_name_stays_one_cell() -> None:
    text = decision_record(plan({"a\nb": "c"}), OldNamesDecision(number=1, day=DAY))

    assert "\nb" not in text


def test_what_a_project_says_is_read() -> None:
    read = read_migration(
        {
            "exclude": ["old/*"],
            "control_plane": ["agent.push"],
            "record": "docs/adr",
            "protocol": {"file": "docs/*.md", "pattern": "VERSION: {version}"},
        },
        "truename.toml",
    )

    assert (read.exclude, read.control_plane, read.record) == (("old/*",), ("agent.push",), "docs/adr")
    assert (read.protocol_file, read.protocol_pattern) == ("docs/*.md", "VERSION: {version}")
    assert read_migration({}, "truename.toml").exclude == HISTORY


@pytest.mark.parametrize(
    ("table", "key", "problem"),
    [
        ([], "migration", "it is not a table"),
        ({"excludes": []}, "migration.excludes", "it is not a setting"),
        ({"exclude": "x"}, "migration.exclude", "it is not a list of strings"),
        ({"exclude": [1]}, "migration.exclude", "it is not a list of strings"),
        ({"record": 1}, "migration.record", "it is not a string"),
        ({"protocol": "0.2"}, "migration.protocol", "it is not a table"),
        ({"protocol": {"version": "0.2"}}, "migration.protocol.version", "it is not a setting"),
        ({"protocol": {"pattern": 1}}, "migration.protocol.pattern", "it is not a string"),
        ({"protocol": {"pattern": "x"}}, "migration.protocol.pattern", "'x' is not a pattern of a protocol version"),
    ],
)
def test_what_is_no_setting_is_told_with_its_key(table: object, key: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_migration(table, "truename.toml")

    error = caught.value
    assert (error.file, error.key, error.problem) == ("truename.toml", key, problem)


def test_names_that_mean_something_to_a_shell_or_a_table_are_written_so_that_they_do_not() -> None:
    text = decision_record(plan({"fs list|all": "fs_list"}), OldNamesDecision(number=1, day=date(2026, 6, 5)))

    assert "`truename rename 'fs list|all' fs_list --check PATH`" in text
    assert "| `fs list\\|all` | `fs_list` |" in text


@pytest.mark.parametrize("fate", [{"until": "2027-02-01"}, {"clean_break": True}, {}])
def test_what_is_chosen_is_among_what_was_considered(fate: dict[str, Any]) -> None:
    text = decision_record(plan({"fs.list": "fs_list"}), OldNamesDecision(number=1, day=DAY, **fate))

    chosen = next(line for line in text.splitlines() if line.startswith("Chosen: "))
    assert f"- {chosen.removeprefix('Chosen: ')}" in text.splitlines()
