"""Files and directories: what is read, what is left out, and what cannot be read is told with its line."""

from __future__ import annotations

import gzip
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truename.lint import read_declared
from truename.lint.dumps import places_of

if TYPE_CHECKING:
    from pathlib import Path

TOOL = "@mcp.tool\ndef {}(): ...\n"


def names(*paths: Path | str, exclude: tuple[str, ...] = ()) -> list[str]:
    return [one.name for one in read_declared(paths, exclude=exclude).declarations]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with sources of its own and much that others wrote."""
    base = tmp_path / "project"
    for place in (
        "a.py", "src/b.py", "src/deep/c.py", ".git/x.py", ".venv/x.py", "env/x.py", "node_modules/x.py",
        "src/__pycache__/x.py", "lib/site-packages/x.py", "generated/d.py", "notes.txt", "tools.json",
    ):  # fmt: skip
        path = base / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TOOL.format(path.stem), "utf-8")
    (base / "env" / "pyvenv.cfg").touch()
    (base / "src" / "linked.py").symlink_to(base / "a.py")
    (base / "src" / "around").symlink_to(base)
    return base


def test_a_directory_is_its_own_python_files_in_order(project: Path) -> None:
    assert names(project) == ["a", "d", "b", "c"]


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (("generated",), ["a", "b", "c"]),
        (("generated/",), ["a", "b", "c"]),
        (("src/*",), ["a", "d"]),
        (("*.py",), []),
        (("c.py",), ["a", "d", "b"]),
        (("src/deep/c.py",), ["a", "d", "b"]),
    ],
)
def test_what_is_excluded_is_left_out(project: Path, exclude: tuple[str, ...], left: list[str]) -> None:
    assert names(project, exclude=exclude) == left


def test_a_file_that_is_named_twice_counts_once(project: Path) -> None:
    assert names(project / "a.py", project / "a.py") == ["a"]


@pytest.mark.parametrize(
    ("raw", "line", "said"),
    [
        (b"x = 1\ndef f(:\n", 2, "it is not Python"),
        (b"x = 1\ny = '\xff'\n", 2, "utf-8"),
        (b"# coding: rot13\n", 1, "rot13"),
        (b"# coding: punycode\n", 1, "punycode"),
        (b"# coding: no_such_thing\n", 1, "its encoding is not readable"),
        (b"x = '\0'\n", 0, "null bytes"),
        (b"x = " + b"(" * 1000 + b")" * 1000, 1, "nested"),
        (b"x = " + b"-" * 100_000 + b"1", 0, "nested"),
        (b"#" * (4 * 1024 * 1024 + 1), 0, "larger"),
    ],
)  # fmt: skip
def test_a_source_that_cant_be_read_is_a_finding_and_the_others_are_read(
    tmp_path: Path, raw: bytes, line: int, said: str
) -> None:
    (tmp_path / "a.py").write_bytes(raw)
    (tmp_path / "b.py").write_text(TOOL.format("fine"), "utf-8")
    declared = read_declared([tmp_path])
    assert [one.name for one in declared.declarations] == ["fine"]
    (finding,) = declared.findings
    assert finding.rule.code == "TN193"
    assert said in finding.fact
    assert finding.location is not None
    assert finding.location.file == str(tmp_path / "a.py")
    assert finding.location.line == line


@pytest.mark.parametrize("encoding", ["latin-1", "latin1", "utf-8-sig", "cp1252"])
def test_a_source_is_read_in_the_encoding_that_it_says(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(
        f"# coding: {encoding.removesuffix('-sig')}\n@mcp.tool(name='wäre')\ndef f(): ...\n".encode(encoding)
    )
    assert names(path) == ["wäre"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_whatever_ends_them(tmp_path: Path, end: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(f"x = '\\x0c'{end}# \x0c \u2028{end}@mcp.tool(name='a.b'){end}def f(): ...{end}".encode())
    (one,) = read_declared([path]).declarations
    assert one.location is not None
    assert (one.location.line, one.location.column) == (3, 17)


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    findings = read_declared([tmp_path / "pipe.py", tmp_path / "gone.py", tmp_path / "gone.json", "\0.py"]).findings
    assert [one.rule.code for one in findings] == ["TN193"] * 4


def test_a_dump_gives_every_entry_of_it_admissible_or_not(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    lists = {
        "a": ["x", "x", "bad\x07"],
        "b": {"tools": [{"name": ""}, {"name": 3}, {"title": "no name"}, {"name": "y"}]},
    }
    path.write_text(json.dumps(lists, indent=1), "utf-8")
    declared = read_declared([path])
    assert [(one.server, one.name) for one in declared.declarations] == [
        ("a", "x"), ("a", "x"), ("a", "bad\x07"), ("b", ""), ("b", "y"),
    ]  # fmt: skip
    assert [one.rule.code for one in declared.findings] == ["TN193", "TN193"]


SHAPES: list[Any] = [
    ["one", "two"],
    [{"name": "one"}, {"description": "x", "name": "two"}],
    {"tools": [{"name": "one"}, {"name": "two"}]},
    {"jsonrpc": "2.0", "result": {"tools": [{"name": "one"}, {"name": "two", "inputSchema": {"name": "not this"}}]}},
    {"first": ["one"], "second": {"tools": [{"name": "two"}]}},
    [{"server": "s", "tools": [{"name": "one"}]}, {"server": "t", "tools": [{"name": "two"}]}],
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("shape", SHAPES)
def test_names_of_a_dump_have_the_place_where_they_stand(tmp_path: Path, shape: Any, indent: int | None) -> None:
    path = tmp_path / "tools.json"
    path.write_text(text := json.dumps(shape, indent=indent), "utf-8")
    for one in read_declared([path]).declarations:
        assert one.location is not None
        assert text.split("\n")[one.location.line - 1][one.location.column - 1 :].startswith(f'{one.name}"')


def test_names_of_lines_have_the_line(tmp_path: Path) -> None:
    path = tmp_path / "tools.jsonl"
    path.write_text(
        '{"server": "s", "tools": [{"name": "one"}]}\n\n{"server": "t", "tools": [{"name": "two"}]}\n', "utf-8"
    )
    assert [one.location.line for one in read_declared([path]).declarations if one.location] == [1, 3]


def test_a_packed_dump_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "tools.json.gz"
    path.write_bytes(gzip.compress(b'["one"]'))
    (one,) = read_declared([path]).declarations
    assert one.location is not None
    assert (one.location.file, one.location.line) == (str(path), 0)


def test_a_broken_dump_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "tools.json"
    path.write_text('[\n{"name": "a"},\n{"name": }\n]', "utf-8")
    (finding,) = read_declared([path]).findings
    assert finding.location is not None
    assert (finding.location.line, finding.location.column) == (3, 10)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet='{}[]",:\\ \nnametoolsresult123u', max_size=80))
def test_whatever_a_dump_holds_looking_for_places_ends(text: str) -> None:
    assert isinstance(places_of(text), list)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_of_a_source_raise(tmp_path_factory: pytest.TempPathFactory, raw: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "a.py"
    path.write_bytes(raw)
    read_declared([path])
