"""The operator's word on tools in a configuration: read whole, or the configuration is not used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from truename import Catalog
from truename.config import Settings, parse
from truename.errors import ConfigError
from truename.policy import Context

SERVERS = {"phone": {"command": "x"}}


def read(**settings: Any) -> Settings:
    text = json.dumps({"mcpServers": SERVERS, "truename": settings})
    return parse(text, Path("/etc/gateway.json"), {}).settings


def test_metadata_is_read_and_none_is_none() -> None:
    assert read(metadata={"phone/*": {"platforms": ["IOS"]}}).metadata == {"phone/*": {"platforms": ("ios",)}}
    assert read().metadata == {}


@pytest.mark.parametrize(
    "metadata", [None, "x", [], False, {"tap": {}}, {"phone/tap": {"is_for_lm": 1}}, {"phone/tap": {"app": 3}}]
)
def test_metadata_that_can_not_be_read_is_never_taken_for_none(metadata: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        read(metadata=metadata)

    assert "metadata" in caught.value.key
    assert caught.value.file.endswith("gateway.json")


def test_metadata_beside_the_servers_of_a_json_file_is_not_read_over() -> None:
    stray = {"mcpServers": SERVERS, "metadata": {"phone/tap": {"is_for_llm": False}}}
    with pytest.raises(ConfigError, match="settings belong under truename in JSON"):
        parse(json.dumps(stray), Path("/etc/mcp.json"), {})

    other = {"mcpServers": SERVERS, "metadata": {"version": 3}}
    assert parse(json.dumps(other), Path("/etc/mcp.json"), {}).settings.metadata == {}


def test_every_fault_is_told_with_its_key() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        read(metadata={"phone/tap": {"app": 3, "surprise": 1}}, style="no style")

    assert len(caught.value.exceptions) == 3


def test_the_exposure_of_a_configuration_is_made_of_all_that_it_says() -> None:
    settings = read(
        metadata={"phone/tap": {"is_for_llm": False}},
        convention={"preset": "trailblaze", "apps": ["shop"]},
        contexts={"pixel": {"platform": "android"}},
    )
    tools = {tool.origin.name: tool for tool in Catalog.from_mcp({"phone": ["tap", "ios_clear", "swipe"]}).values()}

    def shown(context: Context) -> list[str]:
        return [name for name, tool in tools.items() if settings.exposure.visible(tool, context)]

    assert settings.exposure.required == ("platform",)
    assert shown(Context(platform="ios")) == ["ios_clear", "swipe"]
    assert shown(settings.contexts["pixel"]) == shown(Context()) == ["swipe"]
    assert shown(Context(origin="internal", platform="ios")) == ["tap", "ios_clear", "swipe"]
