"""The policy of a configuration: used whole, or the configuration is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truename.config import load, parse
from truename.errors import ConfigError

SERVERS = {"git": {"command": "x"}}


def read(policy: Any) -> Any:
    text = json.dumps({"mcpServers": SERVERS, "truename": {"policy": policy}})
    return parse(text, Path("/etc/gateway.json"), {}).settings.policy


def test_a_policy_stands_before_calls_and_none_allows_them() -> None:
    found = read({"rules": [{"outcome": "deny", "tools": ["git/push"]}]})

    assert (found.default, [rule.outcome for rule in found.rules]) == ("allow", ["deny"])
    assert parse(json.dumps({"mcpServers": SERVERS}), Path("/etc/gateway.json"), {}).settings.policy is None
    assert read({}).default == "allow"
    assert read({"rules": [{"outcome": "allow", "tools": ["git/log"]}]}).default == "ask"


@pytest.mark.parametrize("policy", [None, "allow", [], 0, False, {"rule": []}, {"rules": None}, {"default": None}])
def test_a_policy_that_can_not_be_read_is_never_taken_for_none(policy: Any) -> None:
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        read(policy)

    assert "policy" in str(caught.value)


def test_a_policy_beside_the_servers_of_a_json_file_is_not_read_over(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {}, "policy": {"default": "deny"}}')

    with pytest.raises(ConfigError, match="settings belong under truename in JSON"):
        load(path)
