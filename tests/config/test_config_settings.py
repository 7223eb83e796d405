"""What clients write in their own ways, and what settings may be, in a file or as options."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.config_load import one, read, server, settings
from truename.config import Config, Settings, verify
from truename.errors import ConfigError
from truename.ledger import MAX_CLAIMS


@pytest.mark.parametrize(
    ("entry", "runs"),
    [
        ({}, True),
        ({"enabled": True}, True),
        ({"enabled": None}, True),
        ({"disabled": False}, True),
        ({"enabled": False}, False),
        ({"disabled": True}, False),
        ({"enabled": True, "disabled": True}, False),
        ({"enabled": False, "disabled": False}, False),
    ],
)
def test_a_server_may_be_switched_off_in_either_way(entry: dict[str, Any], runs: bool) -> None:
    assert [found.key for found in read(one(command="x", **entry)).enabled] == (["s"] if runs else [])


@pytest.mark.parametrize("name", ["url", "httpUrl", "serverUrl"])
def test_an_address_has_many_names(name: str) -> None:
    found = server(**{name: "https://h/mcp"})

    assert (found.url, found.type) == ("https://h/mcp", "http")


def test_how_much_a_server_may_hold_can_be_set() -> None:
    assert settings(max_claims=7).max_claims == 7
    assert Settings().max_claims == MAX_CLAIMS


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("server_name", {"server_name": "\x1b[31m"}),
        ("server_name", {"server_name": ""}),
        ("token", {"token": "a b"}),
        ("token", {"token": "é"}),
        ("aliases.sales", {"aliases": {"sales": "\n"}}),
    ],
)
def test_options_may_not_make_what_no_file_may_have(key: str, changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        verify(Config(path=Path("/etc/mcp.json"), settings=Settings(**changes)))

    assert (caught.value.file, caught.value.key) == ("/etc/mcp.json", key)
    assert str(caught.value).isprintable()


def test_sound_settings_are_let_through() -> None:
    verify(Config(settings=Settings(server_name="lab", token="s3cret", aliases={"sales": "sf"})))
