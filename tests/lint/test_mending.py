"""What is mended: comments and entries that do nothing, byte for byte, whole or not at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename.conventions import Convention
from truename.errors import ConfigError
from truename.lint import Fix, LintConfiguration, read_declared, weigh
from truename.lint.fixes import remove_unused_comments, replace_bytes

if TYPE_CHECKING:
    from pathlib import Path


def mended(path: Path) -> bytes:
    report = weigh(read_declared([path]), LintConfiguration(convention=Convention(), base=path.parent))
    for fix in remove_unused_comments(report.unused):
        replace_bytes(fix)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"@m.tool  # truename: ignore[TN103] x\ndef f(): ...\n", b"@m.tool\ndef f(): ...\n"),
        (
            b"@m.tool  # truename: ignore[TN103, TN999] x\ndef f(): ...\n",
            b"@m.tool  # truename: ignore[TN999] x\ndef f(): ...\n",
        ),
        (b"x = 1\n  # truename: ignore[TN103] x\ny = 2\n", b"x = 1\ny = 2\n"),
        (b"\xef\xbb\xbfx = 1  # truename: ignore[TN103] x", b"\xef\xbb\xbfx = 1"),
        (b"x = 1\r\n# \x0c\r\ny = 1 #truename:ignore[TN103]x\r\n", b"x = 1\r\n# \x0c\r\ny = 1\r\n"),
        (b"# coding: latin-1\nx = '\xe4' # truename: ignore[TN103] \xe4\n", b"# coding: latin-1\nx = '\xe4'\n"),
        (b"x = '# truename: ignore[TN103] no comment'\n",) * 2,
        (b"@m.tool(name='a b')  # truename: ignore[TN103] used\ndef f(): ...\n",) * 2,
        (b"@m.tool  # truename: ignore[TN103]\ndef f(): ...\n",) * 2,
    ],
)
def test_only_what_does_nothing_is_removed(tmp_path: Path, before: bytes, after: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(before)
    assert mended(path) == after
    assert mended(path) == after


def test_a_file_that_somebody_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"other")
    with pytest.raises(ConfigError, match="another program changed it"):
        replace_bytes(Fix(path=path, before=b"what was read", after=b"new", done=()))
    assert [one.name for one in tmp_path.iterdir()] == ["a.py"]
    assert path.read_bytes() == b"other"


def test_a_new_file_is_made_only_where_there_is_none(tmp_path: Path) -> None:
    path = tmp_path / "b.jsonl"
    replace_bytes(Fix(path=path, before=None, after=b"new", done=()))
    with pytest.raises(ConfigError):
        replace_bytes(Fix(path=path, before=None, after=b"newer", done=()))
    assert path.read_bytes() == b"new"
