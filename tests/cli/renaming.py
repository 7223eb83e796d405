"""A small repository for `truename rename`: a contract, its history, a source, a fixture."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FILES", "repository", "texts"]

FILES = {
    "docs/protocol.md": '| `fs.list` | lists |\nPROTOCOL_VERSION = "0.2"\nsee fs.* too\n',
    "docs/adr/0016-names.md": "`fs.list` it was\n",
    "src/agent.rs": 'match tool { "fs.list" => list(), _ => refuse() } // kenny-agent.updater.exe\n',
    "fixtures/request_fs.list.json": '{"tool": "fs.list"}',
}


def repository(root: Path) -> Path:
    """Write the files below a directory."""
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    return root


def texts(root: Path) -> dict[str, str]:
    """Return what those of the files hold that are there."""
    return {name: (root / name).read_text("utf-8") for name in FILES if (root / name).exists()}
