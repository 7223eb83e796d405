"""Metadata of declared tools: what the operator's table says, and what cannot be read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from truename.conventions import Severity, catalog_of, tool
from truename.lint import load_lint_configuration, read_declared, weigh

if TYPE_CHECKING:
    from pathlib import Path

    from truename.conventions import Finding
    from truename.lint import LintReport


def dump(path: Path, *tools: dict[str, Any], server: str = "phone") -> Path:
    file = path / "tools.json"
    file.write_text(json.dumps({server: {"tools": list(tools)}}, indent=1), "utf-8")
    return file


def linted(file: Path) -> LintReport:
    return weigh(read_declared([file]), load_lint_configuration(file.parent))


def unreadable(file: Path) -> list[Finding]:
    return [one for one in linted(file).findings if one.rule.name == "unreadable_metadata"]


def test_metadata_that_cant_be_read_is_told_at_the_tool(tmp_path: Path) -> None:
    file = dump(tmp_path, {"name": "tap"}, {"name": "wipe", "_meta": {"dev.truename/platforms": "ios"}})
    (found,) = unreadable(file)
    assert found.rule.severity is Severity.ERROR
    assert found.location is not None
    assert (found.location.line, found.tools, found.server) == (8, ("wipe",), "phone")
    assert found.fact == (
        "'wipe' has invalid metadata, so it is hidden from everybody (platforms: it is not a list of at most 64 words)."
    )


@pytest.mark.parametrize(
    ("meta", "severity", "said"),
    [
        ({"dev.truename/owner": 3}, Severity.WARNING, "'tap' has invalid metadata (owner: it is not a printable text"),
        ({"truename": []}, Severity.ERROR, "(is_for_llm, is_recordable, platforms, app, owner, family,"),
        ({"truename": {"\x1b[31m" * 200: 1}}, Severity.WARNING, "\\x1b[31m"),
        ({"truename": {"app": "a"}, "dev.truename/app": "b"}, Severity.ERROR, "it is declared as b and as a"),
    ],
)
def test_each_tool_has_one_finding_that_is_as_bad_as_what_follows(
    tmp_path: Path, meta: dict[str, Any], severity: Severity, said: str
) -> None:
    (found,) = unreadable(dump(tmp_path, {"name": "tap", "_meta": meta}))
    assert found.rule.severity is severity
    assert said in found.fact
    assert len(found.fact) < 600
    assert found.fact.isprintable()


def test_what_the_operator_says_of_a_field_mends_it(tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[metadata."phone/tap"]\nplatforms = ["ios"]\n', "utf-8")
    wrong = {"name": "Tap", "_meta": {"dev.truename/platforms": "ios"}}
    assert unreadable(dump(tmp_path, wrong)) == []
    assert len(unreadable(dump(tmp_path, wrong, server="tablet"))) == 1


@pytest.mark.parametrize("name", ["truename.toml", "pyproject.toml"])
def test_rules_go_by_what_the_operator_says(tmp_path: Path, name: str) -> None:
    table = "" if name == "truename.toml" else "tool.truename."
    (tmp_path / name).write_text(
        f'[{table}convention]\npreset = "trailblaze"\napps = []\n\n'
        f'[{table}metadata."*/ios_*"]\nplatforms = ["android"]\n',
        "utf-8",
    )
    found = linted(dump(tmp_path, {"name": "ios_tap"}, {"name": "tap"})).findings
    assert [(one.rule.name, one.tools) for one in found] == [("platform_mismatch", ("ios_tap",))]


def test_of_tools_in_a_source_only_entries_for_every_server_tell(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("@mcp.tool\ndef ios_tap(): ...\n", "utf-8")
    told = '[convention]\npreset = "trailblaze"\napps = []\n\n[metadata."{}"]\nplatforms = ["android"]\n'
    cases: dict[str, list[str]] = {"phone/ios_tap": [], "x/*": [], "*/ios_tap": ["platform_mismatch"]}
    for glob, expected in cases.items():
        (tmp_path / "truename.toml").write_text(told.format(glob), "utf-8")
        assert [one.rule.name for one in linted(file).findings] == expected, glob


def test_a_table_that_cant_be_read_is_a_finding_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_text('[metadata."phone/tap"]\nplatforms = []\nis_for_lm = false\n', "utf-8")
    (found,) = linted(dump(tmp_path, {"name": "tap"})).findings
    assert found.rule.name == "unreadable_source"
    assert found.location is not None
    assert found.location.line == 3
    assert "Did you mean 'is_for_llm'?" in found.remedy


def test_a_comment_takes_it_back_and_is_not_unused(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    text = "from truename.conventions import tool\n@tool(platforms='ios'){}\ndef tap(): ...\n"
    file.write_text(text.format(""), "utf-8")
    assert [one.rule.name for one in linted(file).findings] == ["unreadable_metadata"]
    file.write_text(text.format("  # truename: ignore[TN196] it is not run yet"), "utf-8")
    assert [one.rule.name for one in linted(file).findings] == []


def test_a_source_has_the_metadata_that_the_library_writes(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text(
        "from truename.conventions import tool\n\n"
        "@tool(platforms=['IOS'], is_for_llm=True, owner='core')\n"
        "def tap() -> None: ...\n",
        "utf-8",
    )

    @tool(platforms=["IOS"], is_for_llm=True, owner="core")
    def tap() -> None: ...

    (declared,) = read_declared([file]).declarations
    (made,) = catalog_of(tap).values()
    assert declared.definition["_meta"] == made.definition["_meta"]
    assert declared.metadata.platforms == ("ios",)
