"""Which text a configuration had: as everybody can compute it, and nothing of what its references name."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from truename.config import Config, load
from truename.config.files import digest_of

if TYPE_CHECKING:
    from pathlib import Path


def test_it_is_the_sum_of_each_file_by_its_name(tmp_path: Path) -> None:
    servers, beside, secret = tmp_path / "mcp.json", tmp_path / "truename.toml", tmp_path / "secret"
    secret.write_text("hunter2")
    entry = {"url": "https://a.example", "headers": {"k": f"${{file:{secret}}}"}}
    servers.write_text(json.dumps({"mcpServers": {"a": entry}}))
    config = load(servers, {})
    assert config.files == (secret,)
    said = f"mcp.json=sha256:{hashlib.sha256(servers.read_bytes()).hexdigest()}"
    assert digest_of(config) == said
    beside.write_text("call_timeout = 5\n")
    assert digest_of(config) == f"{said} truename.toml=sha256:{hashlib.sha256(beside.read_bytes()).hexdigest()}"
    servers.unlink()
    assert digest_of(config).startswith("truename.toml=")


def test_what_was_never_a_file_has_none() -> None:
    assert digest_of(Config()) == ""
