"""What the operator says of tools in a configuration, and the lock that definitions are pinned by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truename.config import Config, Settings, parse, render
from truename.config.trust import Trust
from truename.errors import ConfigError
from truename.policy.presentation import Presentation

SERVERS = {"disk": {"command": "x"}}
SAID = {"disk/tidy": {"title": "Delete", "description": 'Deletes "all".\n', "annotations": {"readOnlyHint": False}}}


def read(**settings: Any) -> Settings:
    text = json.dumps({"mcpServers": SERVERS, "truename": settings})
    return parse(text, Path("/etc/gateway.json"), {}).settings


def test_what_is_said_of_tools_is_read_and_written_again_the_same() -> None:
    settings = read(tools=SAID)
    assert settings.tools == Presentation(SAID)
    assert read().tools == Presentation()
    written = render(Config(path=Path("/etc/truename.toml"), settings=settings))
    assert '[tools."disk/tidy"]' in written
    assert parse(written, Path("/etc/truename.toml"), {}).settings.tools == Presentation(SAID)


def test_texts_are_taken_as_they_stand_or_clients_would_be_shown_a_secret() -> None:
    text = '[mcpServers.disk]\ncommand = "x"\n[tools."disk/tidy"]\ntitle = "${TOKEN}"\n'
    settings = parse(text, Path("/etc/truename.toml"), {"TOKEN": "s3cret"}).settings
    assert settings.tools.table["disk/tidy"]["title"] == "${TOKEN}"


@pytest.mark.parametrize("tools", [None, "x", [], {"tidy": {}}, {"disk/tidy": {"title": "\u202e"}}])
def test_what_can_not_be_read_is_never_taken_for_nothing(tools: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tools=tools)
    assert caught.value.key.startswith("tools")
    assert caught.value.file.endswith("gateway.json")


def test_tools_beside_the_servers_of_a_json_file_are_not_read_over() -> None:
    with pytest.raises(ConfigError, match="settings belong under truename in JSON"):
        parse(json.dumps({"mcpServers": SERVERS, "tools": SAID}), Path("/etc/mcp.json"), {})
    other = {"mcpServers": SERVERS, "tools": {"web": True}}
    assert parse(json.dumps(other), Path("/etc/mcp.json"), {}).settings.tools == Presentation()


def test_files_of_trust_are_seen_from_the_configuration() -> None:
    said = read(trust={"lock": "truename.lock", "pins": "pins/disk"}).trust
    assert (said.lock, said.pins) == ("/etc/truename.lock", "/etc/pins/disk")
    said = read(trust={"lock": "/srv/truename.lock", "pins": "memory"}).trust
    assert (said.lock, said.pins) == ("/srv/truename.lock", "memory")
    assert read(trust={"first": "review"}).trust.lock is None


def test_rules_that_are_not_named_keep_their_defaults_in_python_as_in_a_file() -> None:
    told = {"near_name": "block"}
    assert Trust(rules=told).rules == read(trust={"rules": told}).trust.rules == {**Trust().rules, **told}  # type: ignore[arg-type]
    own = read(trust={"rules": told, "servers": {"disk": {"rules": {"shadowed_tool": "warn"}}}}).trust
    assert own.of("disk").rules == {**Trust().rules, **told, "shadowed_tool": "warn"}


@pytest.mark.parametrize("rules", [{"near_nme": "block"}, {"near_name": "blck"}])
def test_a_rule_or_a_word_that_is_none_is_told_in_python_too(rules: Any) -> None:
    with pytest.raises(ConfigError, match="Did you mean"):
        Trust(rules=rules)
