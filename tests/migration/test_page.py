"""The page about renaming: what it shows is accepted, and does what it says."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.shared import ROOT
from truename.cli.app import app
from truename.migration import HISTORY, read_migration

PAGE = (ROOT / "docs" / "teams" / "renaming.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_its_program_runs() -> None:
    (program,) = blocks("python")

    exec(compile(program, "docs/teams/renaming.md", "exec"), {})


def test_its_settings_are_read() -> None:
    (settings,) = blocks("toml")

    read = read_migration(tomllib.loads(settings)["migration"], "truename.toml")

    assert read.protocol_pattern == 'VERSION = "{version}"'


@pytest.mark.parametrize("pattern", HISTORY)
def test_it_names_what_is_history(pattern: str) -> None:
    assert f"`{pattern}`" in PAGE


def test_its_options_are_those_of_the_command() -> None:
    arguments = app["rename"].assemble_argument_collection()
    options = {name for argument in arguments for name in argument.names if name.startswith("--")}

    assert set(re.findall(r"--[a-z][a-z-]+", PAGE)) <= options | {"--json"}
