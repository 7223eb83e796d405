"""Dumps: every shape and form, and every way in which a file can be broken."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.shared import shared
from truename import Catalog
from truename.errors import ConfigError, InvalidName

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = [{"name": "get"}, {"name": "put"}]


def read(path: Path, content: str | bytes) -> list[tuple[str, str]]:
    path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return [(tool.origin.server, tool.origin.name) for tool in Catalog.from_file(path).values()]


def fault(path: Path, content: str | bytes | None) -> ConfigError:
    if content is not None:
        path.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    with pytest.raises(ConfigError) as caught:
        Catalog.from_file(path)
    assert caught.value.file == str(path)
    assert caught.value.remedy
    return caught.value


SHAPES: list[tuple[Any, list[tuple[str, str]]]] = [
    (TOOLS, [("dump", "get"), ("dump", "put")]),
    (["get", "put"], [("dump", "get"), ("dump", "put")]),
    ([], []),
    ({"tools": TOOLS}, [("dump", "get"), ("dump", "put")]),
    ({"tools": TOOLS, "server": "crm"}, [("crm", "get"), ("crm", "put")]),
    ({"jsonrpc": "2.0", "id": 1, "result": {"tools": TOOLS}}, [("dump", "get"), ("dump", "put")]),
    ({"jsonrpc": "2.0", "id": "7", "result": {"tools": TOOLS}}, [("dump", "get"), ("dump", "put")]),
    ({"a": TOOLS, "b": {"tools": ["get"]}}, [("a", "get"), ("a", "put"), ("b", "get")]),
    ([{"server": "a", "tools": TOOLS}, {"name": "b", "tools": ["x"]}], [("a", "get"), ("a", "put"), ("b", "x")]),
    ([{"tools": ["x"]}, {"tools": ["x"]}], [("dump-1", "x"), ("dump-2", "x")]),
    ([{"server": "a", "tools": ["x"]}, {"server": "a", "tools": ["y"]}], [("a", "x"), ("a", "y")]),
    ({"name": "get", "inputSchema": {}}, [("dump", "get")]),
]


@pytest.mark.parametrize(("content", "expected"), SHAPES)
@pytest.mark.parametrize("form", ["plain", "pretty", "gzip", "bom"])
def test_every_shape_is_read_in_every_form(
    tmp_path: Path, content: Any, expected: list[tuple[str, str]], form: str
) -> None:
    text = json.dumps(content, indent=2 if form == "pretty" else None)
    raw = {"gzip": gzip.compress(text.encode()), "bom": text.encode("utf-8-sig")}.get(form, text.encode())

    assert read(tmp_path / "dump.json.gz", raw) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('{"server": "a", "tools": ["x"]}\n\n{"server": "b", "tools": ["y"]}\n', [("a", "x"), ("b", "y")]),
        ('{"name": "x"}\r\n{"name": "y"}\r\n', [("dump", "x"), ("dump", "y")]),
        ('"x"\n"y"', [("dump", "x"), ("dump", "y")]),
        ('{"name": "x", "description": "one\u2028two\u2029\u0085"}\n{"name": "y"}\n', [("dump", "x"), ("dump", "y")]),
    ],
)
def test_lines_of_json_are_read(tmp_path: Path, content: str, expected: list[tuple[str, str]]) -> None:
    assert read(tmp_path / "dump.jsonl", content) == expected


@pytest.mark.parametrize(
    ("content", "key"),
    [
        ("", "line 1, column 1"),
        ("not json", "line 1, column 1"),
        ('{"tools": [}', "line 1, column 12"),
        ('[\n {"name": "a"},\n {"name": }\n]', "line 3, column 11"),
        ('{"name": "a"}\n{"name": "b"\n{"name": "c"}\n', "line 2, column 13"),
        ('{"name": "a"}\n\n\n{"name": b"}\n', "line 4, column 10"),
        ("[" * 100_000, "line 1, column 1"),
        ('{"name": "x"}\n' + "[" * 100_000, "line 2, column 1"),
    ],
)
def test_broken_json_is_told_with_line_and_column(tmp_path: Path, content: str, key: str) -> None:
    error = fault(tmp_path / "dump.json", content)

    assert error.key == key
    assert error.problem.startswith("it is not JSON (")


@pytest.mark.parametrize(
    "content",
    [
        "5",
        '"text"',
        "null",
        "{}",
        "[1, 2]",
        '[{"a": 1}]',
        '[["a"]]',
        '{"a": 1}',
        '{"dependencies": {"a": "1"}, "scripts": {"b": "2"}}',
    ],
)
def test_json_without_tools_is_told_as_that(tmp_path: Path, content: str) -> None:
    assert fault(tmp_path / "dump.json", content).problem == "it holds no list of tools"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('{"mcpServers": {"a": {"command": "x"}}}', "it is a configuration, not a list of tools"),
        ('{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601}}', "it is an error response of a server"),
    ],
)
def test_what_people_take_for_a_dump_is_called_what_it_is(tmp_path: Path, content: str, problem: str) -> None:
    assert fault(tmp_path / "dump.json", content).problem == problem


def test_a_missing_file_and_a_folder_can_not_be_read(tmp_path: Path) -> None:
    assert "No such file" in fault(tmp_path / "missing.json", None).problem
    assert "cannot be read" in fault(tmp_path, None).problem


def test_what_is_not_utf_8_is_told_with_the_byte(tmp_path: Path) -> None:
    error = fault(tmp_path / "dump.json", '["gr\u00fcn"]'.encode("latin-1"))

    assert error.problem == "it is not UTF-8 (byte 4)"


def test_damaged_compression_is_told_as_that_wherever_the_damage_is(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps([f"tool_{number}" for number in range(500)]).encode())
    length = len(whole)
    damaged = [whole[:cut] for cut in (3, 9, length // 2, length - 1)]
    damaged += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in (2, length // 2, length - 6)]

    for raw in damaged:
        error = fault(tmp_path / "dump.gz", raw)
        assert (error.problem, error.remedy) == ("its gzip data is damaged", "Fetch the file again.")


def test_a_gzip_bomb_ends_at_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.catalog.read.MAX_BYTES", 1_000)

    for raw in (gzip.compress(b" " * 100_000), b" " * 1_001):
        assert fault(tmp_path / "bomb.gz", raw).problem == "it is larger than 1,000 bytes"


def test_aliases_are_given_to_the_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text('["x"]', "utf-8")

    assert Catalog.from_file(path, aliases={"dump": "d"}).aliases == {"dump": "d"}
    assert Catalog.from_file(str(path)).aliases["salesforce"] == "sf"


@pytest.mark.corpus
def test_the_collection_of_real_catalogues_is_read_whole() -> None:
    catalog = Catalog.from_file(shared("corpus", "open.jsonl.gz"))

    assert len({tool.origin.server_id for tool in catalog.values()}) == 815
    assert len(catalog) == 8_998
    assert [notice.code for notice in catalog.notices] == ["duplicate"]


def test_one_bad_name_refuses_a_dump_or_is_left_out_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps([{"name": "ok"}, {"name": "bad\x07"}, {"name": "ok"}]), "utf-8")
    with pytest.raises(ExceptionGroup, match="strict=False omits their tools and reports them") as caught:
        Catalog.from_file(path)
    catalog = Catalog.from_file(path, strict=False)

    assert [type(one) for one in caught.value.exceptions] == [InvalidName]
    assert [str(id) for id in catalog] == ["dump@1/ok@1"]
    assert [(one.code, one.server, one.name) for one in catalog.notices] == [
        ("invalid", "dump", "bad\x07"),
        ("duplicate", "dump", "ok"),
    ]
