"""Files of renames, readable ones and broken ones."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.errors import ConfigError
from truename.migration import MAX_MAP, read_map


@pytest.mark.parametrize(
    ("raw", "file"),
    [
        (b'[renames]\n"fs.list" = "fs_list"\n', "renames.toml"),
        (b'\xef\xbb\xbf[renames]\r\n"fs.list" = "fs_list"\r\n', "RENAMES.TOML"),
        (b'{"fs.list": "fs_list"}', "renames.json"),
        (b'{"renames": {"fs.list": "fs_list"}}', "renames"),
    ],
)
def test_a_map_says_old_and_new_names(raw: bytes, file: str) -> None:
    assert read_map(raw, file) == {"fs.list": "fs_list"}


@pytest.mark.parametrize(
    ("raw", "file", "key", "problem"),
    [
        (b"[renames]\na = 1", "r.toml", "'a'", "the new name is not a string"),
        (b"[renames\n", "r.toml", "line 1, column 9", "it is not TOML"),
        (b'[renames]\na = "b"\na = "c"\n', "r.toml", "line 3, column 8", "it is not TOML"),
        (b"[renames]\na = '", "r.toml", "line 2 (the end)", "it is not TOML"),
        (b'a = "b"', "r.toml", "renames", "it has no renames"),
        (b"[renames]", "r.toml", "renames", "it has no renames"),
        (b'{"a": "b", "a": "c"}', "r.json", "'a'", "it is repeated"),
        (b'{"a": }', "r.json", "line 1, column 7", "it is not JSON"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "r.json", "", "it is not JSON"),
        (b"[]", "r.json", "", "it is not an object"),
        (b'{"renames": []}', "r.json", "renames", "it has no renames"),
        (b"\xff\xfe{", "r.json", "", "it is not UTF-8"),
        (b'{"a":' * 50_000, "r.json", "", "it is nested too deeply"),
        (b" " * (MAX_MAP + 1), "r.json", "", "it is larger than"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_broken_map_is_told_with_its_place(raw: bytes, file: str, key: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=r"Write \[renames\]") as caught:
        read_map(raw, file)

    error = caught.value
    assert (error.file, error.key) == (file, key)
    assert error.problem.startswith(problem)


@given(st.one_of(st.binary(max_size=60), st.text(alphabet="[]{}\":,=\n renames\\'", max_size=60).map(str.encode)))
def test_whatever_a_file_holds_it_is_a_map_or_a_fault_of_that_file(raw: bytes) -> None:
    for file in ("renames.toml", "renames.json"):
        with contextlib.suppress(ConfigError):
            found = read_map(raw, file)
            assert all(isinstance(name, str) for pair in found.items() for name in pair)
