"""The convention of a project: where it is found, what is told of it, and that serving and the schema know it too."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from truename.config import Config, Settings, convention_in, find_convention, json_schema, load, parse, render
from truename.config.schema import settings_schema
from truename.conventions import Convention, Suppression
from truename.conventions.convention import PRESETS
from truename.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

CHECK = import_module("jsonschema").Draft202012Validator(settings_schema())
SEED = '[convention]\npreset = "trailblaze"\napps = ["myapp"]\n'
PROJECT = '[project]\nname = "x"\n\n[tool.truename.convention]\npreset = "provider-safe"\n'


def place(root: Path, **files: str) -> Path:
    """Write files, named with ``__`` for a slash and ``_toml`` at the end."""
    for name, text in files.items():
        path = root.joinpath(*f"{name.removesuffix('_toml')}.toml".split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return root


def test_the_nearest_one_upwards_is_found(tmp_path: Path) -> None:
    place(tmp_path, truename_toml=SEED, below__pyproject_toml=PROJECT, below__deeper__other_toml="")
    above, below = find_convention(tmp_path), find_convention(tmp_path / "below" / "deeper")

    assert above is not None
    assert (above.convention.preset, above.section, above.file.name) == ("trailblaze", "convention", "truename.toml")
    assert below is not None
    assert (below.convention.preset, below.section) == ("provider-safe", "tool.truename.convention")
    assert below.convention.file == str(tmp_path / "below" / "pyproject.toml")


def test_it_is_looked_for_beside_a_file_too(tmp_path: Path) -> None:
    place(tmp_path, truename_toml=SEED, tools__other_toml="")
    found = find_convention(tmp_path / "tools" / "other.toml")

    assert found is not None
    assert found.file == tmp_path / "truename.toml"


def test_files_without_the_table_are_passed_by(tmp_path: Path) -> None:
    place(
        tmp_path,
        truename_toml=SEED,
        a__truename_toml='[mcpServers.x]\ncommand = "x"\n',
        a__pyproject_toml="[project]\n",
        a__b__pyproject_toml="[tool.ruff]\n[tool.truename.lint]\nsources = []\n",
    )
    found = find_convention(tmp_path / "a" / "b")

    assert found is not None
    assert found.file == tmp_path / "truename.toml"


def test_of_two_in_one_directory_our_own_file_is_taken(tmp_path: Path) -> None:
    found = find_convention(place(tmp_path, truename_toml=SEED, pyproject_toml=PROJECT))

    assert found is not None
    assert found.file.name == "truename.toml"


BROKEN = [
    ("truename_toml", "[convention", "", "is not TOML"),
    ("truename_toml", "convention = 3\n", "convention", "it is not a table"),
    ("truename_toml", "[convention]\nmax_length = 'x'\n", "convention.max_length", "whole number"),
    ("truename_toml", '[convention]\nappz = ["a"]\n', "convention.appz", "Did you mean 'apps'"),
    ("truename_toml", 'preset = "mcp"\n', "preset", r"Move it below \[convention\]"),
    (
        "pyproject_toml",
        '[tool.truename]\npreset = "mcp"\n',
        "tool.truename.preset",
        r"Move it below \[tool.truename.conv",
    ),
    (
        "pyproject_toml",
        '[tool.truename.conventions]\npreset = "mcp"\n',
        "tool.truename.conventions",
        r"Did you mean \[tool.truename.convention\]",
    ),
    ("truename_toml", '[Convention]\npreset = "mcp"\n', "Convention", r"Did you mean \[convention\]"),
    ("pyproject_toml", "tool = 1\n", "tool.truename.convention", "not in a table"),
    ("pyproject_toml", "[tool]\ntruename = 'x'\n", "tool.truename.convention", "not in a table"),
]


@pytest.mark.parametrize(("name", "text", "key", "said"), BROKEN)
def test_a_broken_one_is_never_passed_by(tmp_path: Path, name: str, text: str, key: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        find_convention(place(tmp_path, **{name: text}))

    assert caught.value.key.startswith(key)
    assert caught.value.file.startswith(str(tmp_path))


def test_one_that_can_not_be_decoded_is_told(tmp_path: Path) -> None:
    (tmp_path / "truename.toml").write_bytes(b"\xff")

    with pytest.raises(ConfigError, match="not UTF-8"):
        find_convention(tmp_path)


def test_any_toml_file_may_hold_one(tmp_path: Path) -> None:
    place(tmp_path, house_toml=SEED, empty_toml="")
    found = convention_in(tmp_path / "house.toml")

    assert found is not None
    assert found.convention.apps == ("myapp",)
    assert convention_in(tmp_path / "empty.toml") is None


SERVERS = '[mcpServers.git]\ncommand = "x"\n'


def test_where_the_settings_of_a_gateway_have_a_table_the_convention_is_in_it(tmp_path: Path) -> None:
    place(tmp_path, truename_toml=f'[truename.convention]\npreset = "trailblaze"\n{SERVERS}')
    found = find_convention(tmp_path)

    assert found is not None
    assert (found.section, found.convention.preset) == ("truename.convention", "trailblaze")
    assert load(tmp_path / "truename.toml").settings.convention == found.convention


def test_a_file_with_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is at convention and at truename"):
        find_convention(place(tmp_path, truename_toml="[convention]\n[truename.convention]\n"))


def test_a_gateway_reads_it_too_and_leaves_what_only_the_linter_reads(tmp_path: Path) -> None:
    place(tmp_path, truename_toml=f'{SEED}[lint]\nsources = ["src"]\n{SERVERS}')

    assert load(tmp_path / "truename.toml").settings.convention == Convention.of("trailblaze", apps=("myapp",))


@pytest.mark.parametrize("table", [None, [], "trailblaze", {"presets": "mcp"}, {"apps": "a"}])
def test_one_that_can_not_be_read_is_never_taken_for_none(tmp_path: Path, table: Any) -> None:
    text = json.dumps({"mcpServers": {}, "truename": {"convention": table}})

    with pytest.raises((ConfigError, ExceptionGroup), match="convention"):
        parse(text, tmp_path / "mcp.json", {})


WRITTEN = [
    *map(Convention.of, PRESETS),
    Convention.of(
        "trailblaze",
        apps=["myapp"],
        categories={"org": False, "mobile": "mobile_{verbNoun}"},
        owners={"ios_*": "core", 'a "quoted" name': "core"},
        severities={"TN120": "off", "casing": "note"},
        suppressions=[Suppression(rule="TN123", tools=("a*", "b"), reason="old\\new")],
        families={"files": ["fs_*"]},
    ),
]


@pytest.mark.parametrize("convention", WRITTEN, ids=lambda one: one.preset)
def test_one_that_is_rendered_is_read_back_to_the_same(convention: Convention, tmp_path: Path) -> None:
    text = render(Config(settings=Settings(convention=convention)))

    assert parse(text, tmp_path / "truename.toml", {}).settings.convention == convention


ACCEPTED: list[dict[str, Any]] = [
    {},
    {"preset": "trailblaze", "apps": [], "categories": {"org": False, "x": "{verbNoun}"}},
    {"severities": {"TN104": "off"}, "suppressions": [{"rule": "TN104", "tools": ["*"], "reason": ""}]},
    {"characters": "", "separator": "", "casing": "snake", "max_length": 0, "unique": "everywhere"},
]
REFUSED: list[dict[str, Any]] = [
    {"preset": "house"},
    {"prest": "mcp"},
    {"apps": "a"},
    {"apps": [""]},
    {"max_length": -1},
    {"separator": "__"},
    {"casing": "loud"},
    {"categories": {"org": True}},
    {"severities": {"TN104": "loud"}},
    {"suppressions": [{"tools": []}]},
    {"suppressions": [{"rule": "TN104", "tool": "a"}]},
    {"owners": {"tap": ""}},
]


def is_read(table: dict[str, Any], path: Path) -> bool:
    try:
        parse(json.dumps({"mcpServers": {}, "truename": {"convention": table}}), path, {})
    except (ConfigError, ExceptionGroup):
        return False
    return True


@pytest.mark.parametrize("table", ACCEPTED, ids=str)
def test_reader_and_schema_accept(table: dict[str, Any], tmp_path: Path) -> None:
    assert CHECK.is_valid({"convention": table})
    assert is_read(table, tmp_path / "mcp.json")


@pytest.mark.parametrize("table", REFUSED, ids=str)
def test_reader_and_schema_refuse(table: dict[str, Any], tmp_path: Path) -> None:
    assert not CHECK.is_valid({"convention": table})
    assert not is_read(table, tmp_path / "mcp.json")


def test_the_linters_table_is_in_the_schema_of_a_whole_file() -> None:
    assert "lint" in json_schema()["properties"]
    assert "lint" not in settings_schema()["properties"]
