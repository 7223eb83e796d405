"""A small repository in which a name changes, and where its originals are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from truename.migration import FileRewrite, plan, survey

if TYPE_CHECKING:
    from pathlib import Path

PLAN = plan({"fs.list": "fs_list"})


def changes(root: Path, *, rename_files: bool = False) -> tuple[FileRewrite, ...]:
    return survey(PLAN, [root], rename_files=rename_files).changes


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small repository, in which one stands."""
    files = {
        "a.py": b'"fs.list"',
        "b/c.md": b"\xef\xbb\xbf`fs.list`\r\nmore\r\n",
        "d.txt": b"none",
        "e.json": b'{"fs.list":1}',
    }
    for name, raw in files.items():
        path = tmp_path / "repository" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    monkeypatch.chdir(tmp_path / "repository")
    return tmp_path / "repository"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The directory of originals."""
    return tmp_path / "state" / "migrations"
