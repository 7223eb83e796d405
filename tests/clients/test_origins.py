"""What is kept of the entries that servers were made of tells whose they are, and nothing of their values."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from truename.clients.origins import EntryOrigins
from truename.config import ServerConfig
from truename.config.entries import FoundEntry

if TYPE_CHECKING:
    from pathlib import Path

SERVER = ServerConfig(key="github", command="npx", args=("gh",), env={"TOKEN": "s3cret-value", "A": "b"})
ENTRY = FoundEntry(client="cursor", title="Cursor", file="~/.cursor/mcp.json", where="mcpServers.github", server=SERVER)


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "LOCALAPPDATA": str(tmp_path / "state")}


def test_an_entry_is_known_again_as_it_was_and_not_otherwise(tmp_path: Path, environ: dict[str, str]) -> None:
    config = tmp_path / "truename.toml"
    EntryOrigins(config, environ).remember({"github": [ENTRY], "other": []})

    again = EntryOrigins(config, environ)

    assert again.has("github", ENTRY)
    assert again.has(
        "github", replace(ENTRY, server=replace(SERVER, key="gh", env={"A": "b", "TOKEN": "s3cret-value"}))
    )
    assert not again.has("other", ENTRY)
    assert not again.has("missing", ENTRY)
    assert not again.has("github", replace(ENTRY, server=replace(SERVER, env={"TOKEN": "another", "A": "b"})))
    assert not again.has("github", replace(ENTRY, client="zed"))
    assert not EntryOrigins(tmp_path / "another.toml", environ).has("github", ENTRY)


def test_what_is_kept_is_for_its_owner_and_holds_no_value(tmp_path: Path, environ: dict[str, str]) -> None:
    EntryOrigins(tmp_path / "truename.toml", environ).remember({"github": [ENTRY]})
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]

    assert len(files) == 2
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)
    assert all(b"s3cret" not in path.read_bytes() for path in files)


def test_two_users_have_other_digests_of_one_entry(tmp_path: Path) -> None:
    kept = []
    for user in ("ann", "bob"):
        EntryOrigins(tmp_path / "truename.toml", {"XDG_STATE_HOME": str(tmp_path / user)}).remember({"github": [ENTRY]})
        (file,) = (tmp_path / user).rglob("*.json")
        kept.append(json.loads(file.read_text("utf-8"))["github"])

    assert kept[0] != kept[1]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"github": 1}', '{"github": ["x"]}'])
def test_a_broken_record_knows_nothing(text: str, tmp_path: Path, environ: dict[str, str]) -> None:
    config = tmp_path / "truename.toml"
    EntryOrigins(config, environ).remember({"github": [ENTRY]})
    (file,) = (tmp_path / "state").rglob("*.json")
    file.write_text(text, "utf-8")

    assert not EntryOrigins(config, environ).has("github", ENTRY)


def test_without_its_key_a_record_knows_nothing_and_the_next_one_does(tmp_path: Path, environ: dict[str, str]) -> None:
    config = tmp_path / "truename.toml"
    EntryOrigins(config, environ).remember({"github": [ENTRY]})
    next((tmp_path / "state").rglob("origins.key")).unlink()

    assert not EntryOrigins(config, environ).has("github", ENTRY)
    EntryOrigins(config, environ).remember({"github": [ENTRY]})
    assert EntryOrigins(config, environ).has("github", ENTRY)
