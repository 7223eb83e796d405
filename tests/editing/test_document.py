"""A configuration is read as tolerantly as any client, or refused with the place where it is broken."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.shared import UNHURRIED
from truename.editing.document import MAX_BYTES, Document, Quirk
from truename.errors import ConfigError

posix = pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")


def parsed(text: str | bytes, language: str) -> Document:
    return Document.parse(text.encode() if isinstance(text, str) else text, Path("mcp.json"), language)


def kinds(document: Document) -> list[tuple[str, int, int]]:
    return [(quirk.kind, quirk.line, quirk.column) for quirk in document.quirks]


def fault(text: str | bytes, language: str) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        parsed(text, language)
    return caught.value


@pytest.mark.parametrize(
    ("text", "value", "quirks"),
    [
        ('{"a": 1}', {"a": 1}, []),
        ("[1, 2]", [1, 2], []),
        ('{"a": 1} // why', {"a": 1}, [("comment", 1, 10)]),
        ('{\n  /* why\n */ "a": 1\n}', {"a": 1}, [("comment", 2, 3)]),
        ('{"a": [1,],\n}', {"a": [1]}, [("trailing-comma", 1, 9), ("trailing-comma", 1, 11)]),
        ('{"a": 1, /* c */ }', {"a": 1}, [("trailing-comma", 1, 8), ("comment", 1, 10)]),
        ('\ufeff{"a": 1}', {"a": 1}, [("bom", 1, 1)]),
        ('{"a": 1,\n "b": {"c": 1, "c": 2}, "a": 3}', {"a": 3, "b": {"c": 2}},
         [("duplicate-key", 2, 16), ("duplicate-key", 2, 25)]),
        ('{"a": 1, "\\u0061": 2}', {"a": 2}, [("duplicate-key", 1, 10)]),
        ("", {}, [("empty", 1, 1)]),
        (" \r\n", {}, [("empty", 1, 1)]),
        ("// nothing yet\n", {}, [("empty", 1, 1), ("comment", 1, 1)]),
        ('{"url": "http://x/*,]//"}', {"url": "http://x/*,]//"}, []),
        ('{"a": "\\"//", } // b', {"a": '"//'}, [("trailing-comma", 1, 13), ("comment", 1, 17)]),
        ('{"a": "\\ud800"}', {"a": "\ud800"}, []),
    ],
)  # fmt: skip
def test_json_is_read_with_what_clients_disagree_about_noted(
    text: str, value: Any, quirks: list[tuple[str, int, int]]
) -> None:
    document = parsed(text, "jsonc")
    assert document.value == value
    assert kinds(document) == quirks
    assert parsed(text, "json").value == value


@pytest.mark.parametrize("language", ["toml", "yaml"])
def test_comments_of_languages_that_have_them_are_no_quirk(language: str) -> None:
    assert parsed("# why\n", language).quirks == ()
    assert parsed("\ufeff# why\n", language).quirks == (Quirk(1, 1, "bom"),)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        ("# only a comment", {}),
        ("---\n", {}),
        ("a: yes\nb: 12:30\nc: 0o17\nd: 017\ne: 1_000\nf: 2024-01-01\ng: ~\nh: .inf\n",
         {"a": "yes", "b": "12:30", "c": 15, "d": 17, "e": "1_000", "f": "2024-01-01", "g": None, "h": float("inf")}),
        ("1: a\ntrue: b\n", {"1": "a", "true": "b"}),
        ("a: &x {b: 1}\nc: *x\nd: {<<: *x, b: 2}\ne:\n  <<: [*x, {f: 3}]\n",
         {"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 2}, "e": {"b": 1, "f": 3}}),
        ('a: "\\u00e9\\x41"\nb: \'it\'\'s\'\nc: |\n  two\n  lines\nd: >-\n  one\n  line\n',
         {"a": "éA", "b": "it's", "c": "two\nlines\n", "d": "one line"}),
        ('a: !!int "3"\nb: !!str 3\nc: !secret x\nd: !!python/object/apply:os.system ["touch /tmp/x"]\n',
         {"a": 3, "b": "3", "c": "x", "d": ["touch /tmp/x"]}),
    ],
)  # fmt: skip
def test_yaml_means_what_its_newest_version_says_and_tags_mean_nothing(text: str, value: Any) -> None:
    assert parsed(text, "yaml").value == value


@pytest.mark.parametrize(
    ("text", "where"),
    [("a: 1\nb: 2\na: 3\n", (3, 1)), ("{a: 1, a: 2}", (1, 8))],
)
def test_a_key_that_stands_twice_in_yaml_is_noted(text: str, where: tuple[int, int]) -> None:
    document = parsed(text, "yaml")
    assert kinds(document) == [("duplicate-key", *where)]


@pytest.mark.parametrize(
    ("text", "language", "place", "word"),
    [
        ('{"a": 1', "json", "line 1, column 8", "the file ends too early: '}' is missing"),
        ('{"a": ["]", {"b": 1}\n\n', "json", "line 3, column 1", "the file ends too early: ']}' is missing"),
        ('{"a": 1, // "b": [', "jsonc", "line 1, column 19", "the file ends too early: '}' is missing"),
        ('{"a": "b', "json", "line 1, column 7", "the file ends inside a string"),
        ('{"a": "b\n}', "json", "line 1, column 9", "a string has no closing quote"),
        ("[" * 99, "json", "line 1, column 100", "Expecting value"),
        ('{"a": 1]', "json", "line 1, column 8", "delimiter"),
        ('{\n"a": }', "jsonc", "line 2, column 6", "Expecting value"),
        ("{'a': 1}", "json", "line 1, column 2", "double quotes"),
        ("[1,,]", "jsonc", "line 1, column 4", "Expecting value"),
        ("[,]", "jsonc", "line 1, column 2", "Expecting value"),
        ("{} /* open", "jsonc", "line 1, column 4", "Extra data"),
        ('{"a": NaN}', "json", "line 1, column 7", "NaN"),
        ('{"NaN": -Infinity}', "json", "line 1, column 9", "Infinity"),
        ('{"a": "\t"}', "json", "line 1, column 8", "control character"),
        (f'{{"a": {"1" * 5000}}}', "json", "", "digits"),
        ("[" * 101 + "]" * 101, "json", "", "too deeply"),
        ("[" * 100_000, "json", "", "too deeply"),
        ("a = 1\nb =\n", "toml", "line 2, column 4", "Invalid value"),
        ("a = 1\r\nb = é\r\n", "toml", "line 2, column 5", "Invalid value"),
        ("a = 1\na = 2", "toml", "line 2, column 6", "overwrite"),
        ('a = "x', "toml", "line 1, column 7", "nterminated"),
        (f"a = {'1' * 5000}", "toml", "", "digits"),
        ("a." * 100_000 + "b = 1", "toml", "line 1, column 201", "too deeply"),
        ("a = " + "[" * 5000, "toml", "line 1, column 106", "too deeply"),
        ("[a]\nb = {c = {d.e = 1}}\n[a.b]", "toml", "line 3, column 5", "Cannot declare"),
        ("a: [\n", "yaml", "line 2, column 1", "not YAML"),
        ("a:\n\t- b", "yaml", "line 2, column 1", "not YAML"),
        ('a: "\x01"', "yaml", "line 1, column 5", "does not allow"),
        ("a: 1\n---\nb: 1\n", "yaml", "line 2, column 1", "several documents"),
        ("a: &x [*x]", "yaml", "line 1, column 8", "complete"),
        ("a: *x", "yaml", "line 1, column 4", "complete"),
        ("? [a]\n: b", "yaml", "line 1, column 3", "not a string"),
        ("<<: 1", "yaml", "line 1, column 5", "not an object"),
        ("[" * 100_000, "yaml", "line 1, column 101", "too deeply"),
        (b"\xff\xfe{\x00}\x00", "json", "", "not UTF-8"),
        (b"{}", "shell", "", "is not supported"),
    ],
)  # fmt: skip
def test_what_is_broken_is_told_with_its_place(text: str | bytes, language: str, place: str, word: str) -> None:
    found = fault(text, language)
    assert found.key == place
    assert word in found.problem
    assert found.file == "mcp.json"
    assert str(found).isprintable()


def test_a_few_lines_of_yaml_can_not_become_a_billion_values() -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]" for old, new in zip("abcdefgh", "bcdefghi", strict=True)]
    assert "too many values" in fault("\n".join(lines), "yaml").problem


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ('"\\' * 1_000_000, "json"),
        ("/*" * 1_000_000, "json"),
        ('{"a":' + " " * 2_000_000, "json"),
        (f"[1{',' + ' ' * 1000}" * 1000, "json"),
        ("a='''" + "''b" * 300_000, "toml"),
        ('a="""' + '"\\' * 300_000, "toml"),
        ("a=" + "[{a=" * 300_000, "toml"),
        ("- " * 300_000, "yaml"),
        ("{a: " * 99 + "x" * 1_000_000, "yaml"),
    ],
)
def test_no_text_however_wicked_takes_long(text: str, language: str) -> None:
    before = os.times()
    fault(text, language)
    after = os.times()
    assert after.user - before.user < UNHURRIED


@pytest.mark.parametrize("language", MAX_BYTES)
def test_what_is_larger_than_any_configuration_is_not_read(language: str, tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as stream:
        stream.truncate(MAX_BYTES[language] + 1)
    with pytest.raises(ConfigError, match="larger than"):
        Document.read(path, language)


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot be read \(No such file"):
        Document.read(tmp_path / "mcp.json", "json")
    with pytest.raises(ConfigError, match="it is a directory"):
        Document.read(tmp_path, "json")
    with pytest.raises(ConfigError, match="cannot be read"):
        Document.read(tmp_path / "a\0b", "json")


@posix
def test_a_pipe_or_device_is_refused_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "mcp.json")
    with pytest.raises(ConfigError, match="it is a pipe"):
        Document.read(tmp_path / "mcp.json", "json")
    with pytest.raises(ConfigError, match="it is a device"):
        Document.read(Path("/dev/zero"), "json")


@posix
def test_reading_follows_links_for_clients_do(tmp_path: Path) -> None:
    (tmp_path / "real.json").write_bytes(b'{"a": 1}')
    (tmp_path / "mcp.json").symlink_to("real.json")
    assert Document.read(tmp_path / "mcp.json", "json").value == {"a": 1}


_JSON = '\ufeff{"a": {"b": [1,\n  {"c": 2}]}, // x\n "d": null, "d": 3}'
_TOML = '[a]\nx = 1\n[b.c]\n"d e" = { f = [1, [2,\n 3]] }\n[[l]]\nn = 1\n[[l]]\nn = 2\n[l.s]\n'
_YAML = "a:\n  - b: 1\n    c: {d: [x, y]}\n  - &q z\n'e': *q\n"


@pytest.mark.parametrize(
    ("text", "language", "where", "position"),
    [
        (_JSON, "jsonc", (), (1, 1)),
        (_JSON, "jsonc", ("a",), (1, 2)),
        (_JSON, "jsonc", ("a", "b"), (1, 8)),
        (_JSON, "jsonc", ("a", "b", 0), (1, 14)),
        (_JSON, "jsonc", ("a", "b", 1, "c"), (2, 4)),
        (_JSON, "jsonc", ("a", "b", 7), (1, 8)),
        (_JSON, "jsonc", ("a", "zz", "y"), (1, 2)),
        (_JSON, "jsonc", ("d",), (3, 13)),
        (_TOML, "toml", ("a", "x"), (2, 1)),
        (_TOML, "toml", ("b",), (3, 1)),
        (_TOML, "toml", ("b", "c", "d e"), (4, 1)),
        (_TOML, "toml", ("b", "c", "d e", "f", 1, 1), (5, 2)),
        (_TOML, "toml", ("b", "c", "zz"), (3, 1)),
        (_TOML, "toml", ("l", 1), (8, 1)),
        (_TOML, "toml", ("l", 1, "n"), (9, 1)),
        (_TOML, "toml", ("l", 1, "s"), (10, 1)),
        (_TOML, "toml", ("zz",), (1, 1)),
        (_YAML, "yaml", ("a",), (1, 1)),
        (_YAML, "yaml", ("a", 0, "c", "d", 1), (3, 16)),
        (_YAML, "yaml", ("a", 1), (4, 5)),
        (_YAML, "yaml", ("e",), (5, 1)),
        (_YAML, "yaml", ("e", "zz"), (5, 1)),
        ("", "yaml", ("a",), (1, 1)),
        ("", "json", ("a",), (1, 1)),
    ],
)
def test_each_key_and_item_has_its_line_and_column(
    text: str, language: str, where: tuple[str | int, ...], position: tuple[int, int]
) -> None:
    assert parsed(text, language).position(where) == position


def test_documents_are_equal_by_their_bytes_and_can_be_kept_in_sets() -> None:
    one, other = parsed("{}", "json"), parsed("{}", "json")
    assert one == other
    assert len({one, other, parsed("[]", "json")}) == 2


def test_many_comments_cost_no_more_than_their_length() -> None:
    raw = b"[" + b"1, //\n" * 400_000 + b"1]"

    quirks = Document.parse(raw, Path("mcp.json"), "jsonc").quirks

    assert (len(quirks), quirks[-1].line) == (400_000, 400_000)
