"""What is kept of a lazy server between two starts: read back only if it is whole, ours, and of this very entry."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from truename.config import ServerConfig
from truename.gateway.upstream import kept as kept_module
from truename.gateway.upstream.kept import ListCache, Remembered
from truename.gateway.upstream.lists import Lists

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
]


SAID = Remembered(
    tools=({"name": "get", "inputSchema": {"type": "object"}},),
    lists=Lists(prompts=({"name": "greet"},), resources=({"uri": "a:b", "name": "b"},)),
    capabilities=frozenset({"tools", "prompts"}),
    instructions="Be brief.",
)
SERVER = ServerConfig(key="w", command="x")


def test_what_is_kept_is_read_back_and_is_nobody_elses(tmp_path: Path) -> None:
    kept = ListCache(tmp_path / "lists", 10)
    assert kept.read(SERVER) is None
    kept.write(SERVER, SAID)
    assert kept.read(SERVER) == SAID
    assert kept.read(replace(SERVER, args=("y",))) is None
    (file,) = (tmp_path / "lists").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)


DAMAGED: list[tuple[str, Any]] = [
    ("half a document", '{"format": 1, "tools": ['),
    ("another document", "[]"),
    ("another format", {"format": 2}),
    ("no list of tools", {"tools": {}}),
    ("no text", {"instructions": 5}),
    ("no capabilities", {"capabilities": "tools"}),
    ("too deep", "[" * 100_000),
    ("no Unicode", b"\xff"),
]


@pytest.mark.parametrize(("what", "content"), DAMAGED, ids=[what for what, _ in DAMAGED])
def test_what_is_damaged_is_nothing(tmp_path: Path, what: str, content: Any) -> None:
    kept = ListCache(tmp_path, 10)
    kept.write(SERVER, SAID)
    (file,) = tmp_path.iterdir()
    if isinstance(content, dict):
        content = json.dumps({**json.loads(file.read_text()), **content})
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert kept.read(SERVER) is None


def test_what_no_client_would_take_is_left_out(tmp_path: Path) -> None:
    kept = ListCache(tmp_path, 2)
    kept.write(SERVER, SAID)
    (file,) = tmp_path.iterdir()
    document = json.loads(file.read_text())
    bad = ["x", {"name": "bad", "inputSchema": 5}, {"name": "odd", "inputSchema": {"type": "array"}}]
    good = [{"name": str(number), "inputSchema": {"type": "object"}} for number in range(5)]
    document |= {"tools": [*bad, *good], "prompts": [{"name": 5}, {"name": "a"}, {"name": "a"}], "resources": {}}
    document["capabilities"] = ["tools", "everything", 5]
    file.write_text(json.dumps(document))
    found = kept.read(SERVER)
    assert found is not None
    assert found.tools == tuple(good[:2])
    assert found.lists == Lists(prompts=({"name": "a"},))
    assert found.capabilities == {"tools"}


@pytest.mark.parametrize("kind", ["link", "pipe", "too large"])
def test_only_a_plain_file_of_ours_is_read(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ListCache(tmp_path / "lists", 10)
    kept.write(SERVER, SAID)
    (file,) = (tmp_path / "lists").iterdir()
    if kind == "too large":
        monkeypatch.setattr(kept_module, "MAX_BYTES", 10)
    else:
        file.rename(tmp_path / "other")
        if kind == "link":
            file.symlink_to(tmp_path / "other")
        else:
            os.mkfifo(file)
    assert kept.read(SERVER) is None


def test_what_is_too_large_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = ListCache(tmp_path, 10)
    kept.write(SERVER, SAID)
    monkeypatch.setattr(kept_module, "MAX_BYTES", 10)
    kept.write(SERVER, SAID)
    assert not list(tmp_path.iterdir())


def test_the_oldest_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_module, "MAX_FILES", 2)
    kept, servers = ListCache(tmp_path, 10), [replace(SERVER, key=str(number)) for number in range(3)]
    for time, server in enumerate(servers):
        kept.write(server, SAID)
        for file in tmp_path.iterdir():
            if file.stat().st_mtime > 1_000:
                os.utime(file, (time, time))
    assert [kept.read(server) is not None for server in servers] == [False, True, True]


def test_where_nothing_can_be_kept_that_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "lists").write_text("")
    ListCache(tmp_path / "lists", 10).write(SERVER, SAID)
    assert "the lists of server 'w' cannot be stored" in caplog.text
