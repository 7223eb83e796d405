"""What the README says is true: its code runs, its values are right, its commands exist, its numbers are counted."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.commands import options_of
from tests.shared import ROOT
from truename import Catalog, dialects, project, resolve
from truename.cli.app import app, main
from truename.errors import UnknownTool
from truename.gateway.views.view import read_path
from truename.lint import RULES

if TYPE_CHECKING:
    from pathlib import Path

README = (ROOT / "README.md").read_text("utf-8")
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
(CODE,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
ROOMS = "|".join(sorted(path.name for path in (ROOT / "src" / "truename").iterdir() if path.is_dir()))
TEAM = README.partition("\n## For a team that writes tools\n")[2].partition("\n## ")[0]
COMMANDS = sorted(set(re.findall(r"truename ((?!-)[a-z]+)\b((?: [^`\n]*)?)`", README)))


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}(?: [^\n]*)?\n(.*?)```", text, re.DOTALL)


def executed(code: str) -> tuple[list[tuple[str, Any, Any]], dict[str, Any]]:
    """Run a block; return each expression that has a comment, its value, and the value that the comment tells."""
    scope: dict[str, Any] = {}
    told = []
    lines = code.splitlines()
    for statement in ast.parse(code).body:
        assert statement.end_lineno is not None
        text = ast.unparse(statement)
        _, comment, expected = lines[statement.end_lineno - 1].partition("  # ")
        if isinstance(statement, ast.Expr) and comment:
            value = eval(text, scope)
            # An id shows itself as what people type, which is not how one is made.
            told.append((text, value, value if repr(value) == expected else eval(expected, scope)))
        else:
            exec(text, scope)
    return told, scope


def test_the_code_runs_and_every_value_is_the_one_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    told, _ = executed(CODE)

    assert len(told) >= 5
    for text, value, expected in told:
        assert value == expected, text


def test_the_error_is_told_as_it_is() -> None:
    names = project(Catalog.from_mcp({"weather": ["get_data"], "database": ["get_data"]}), "openai")
    with pytest.raises(UnknownTool) as caught:
        resolve("weather_data", names)

    assert f"`{caught.value}`" in README


@pytest.mark.parametrize(("command", "words"), COMMANDS, ids=[" ".join(pair) for pair in COMMANDS])
def test_every_command_exists_with_its_options(command: str, words: str) -> None:
    assert set(re.findall(r"--[a-z-]+", words)) <= options_of(app[command])


def test_every_command_is_there() -> None:
    commands = {command for command in app if not command.startswith("-") and command != "install-completion"}

    assert commands == {command for command, _ in COMMANDS}


def test_the_clients_are_counted() -> None:
    counted = sum(row.kind != "own" for row in dialects.table())

    assert f"{counted} clients, frameworks, providers and specifications" in README


def test_the_rules_are_counted() -> None:
    assert f"runs [{len(RULES)} rules]" in README


def test_what_a_team_types_prints_what_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "140")
    for path, text in {
        "truename.toml": blocks(TEAM, "toml")[0],
        "tools/wallet.py": blocks(TEAM, "python")[0],
    }.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")

    sessions = [told for block in blocks(TEAM, "console") for told in block.split("$ truename ")[1:]]
    for told in sessions:
        command, _, output = told.partition("\n")
        main(command.split())
        assert capsys.readouterr().out.strip() == output.removeprefix("# exit status 1\n").strip(), command

    assert len(sessions) == 3


def test_the_hook_calls_a_command_that_there_is() -> None:
    (block,) = blocks(TEAM, "yaml")
    (hook,) = yaml.safe_load(block)["repos"][0]["hooks"]
    published, _ = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))

    shared = ("id", "name", "entry", "pass_filenames")
    assert [hook[key] for key in shared] == [published[key] for key in shared]


@pytest.mark.parametrize("address", re.findall(r"^\| `(/mcp[^`]*)` \|", README, re.MULTILINE))
def test_every_address_leads_somewhere(address: str) -> None:
    assert read_path(
        address.format(client="cursor", profile="staff", context="phone", server="github"),
        {"github"},
        {"phone"},
        {"staff"},
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_file_named_exists(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    named = re.findall(rf"`((?:src/truename|{ROOMS})/[\w/]+\.\w+)`", text)

    assert [link for link in links if link and not (page.parent / link).exists()] == []
    assert [name for name in named if not (ROOT / name).exists() and not (ROOT / "src/truename" / name).exists()] == []


def test_every_make_target_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

    for page in PAGES:
        assert set(re.findall(r"(?:`|\$ )make ([a-z-]+)", page.read_text("utf-8"))) <= targets, page


def test_the_sdist_has_what_the_two_commands_need() -> None:
    included = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["sdist"]

    assert {"Makefile", "requirements", "bench", ".ci", "examples", "tests", "src"} <= set(included["include"])


def test_every_path_that_contributing_names_for_a_change_exists() -> None:
    rows = (
        (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Where to make a change\n")[2].partition("\n## ")[0]
    )

    paths = re.findall(r"`(src/[^`]+)`", rows)
    changes = [row for row in rows.splitlines() if "`src/" in row]

    assert len(changes) == 14
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert all(row.count("`src/") <= 3 for row in changes)
