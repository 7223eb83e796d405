"""Who is asked about calls, as a configuration says it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from truename.config import json_schema, parse
from truename.config.approvals import Asking
from truename.errors import ConfigError

SERVER = '\n[mcpServers.a]\ncommand = "true"\n'
HERE = Path("/home/me/truename.toml")


def test_all_that_can_be_said_is_read() -> None:
    text = '[approvals]\nask = "both"\nwait = 30\nmax_pending = 5\nexpiry = 60\ngrant_expiry = 86400\n'
    config = parse(text + SERVER, HERE, {})
    assert config.settings.approvals == Asking(ask="both", wait=30.0, max_pending=5, expiry=60.0, grant_expiry=86_400.0)
    jsonschema.validate(tomllib.loads(text + SERVER), json_schema())


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("approvals = 3", "approvals"),
        ('[approvals]\nask = "model"', "approvals.ask"),
        ("[approvals]\nwait = -1", "approvals.wait"),
        ("[approvals]\nmax_pending = 0", "approvals.max_pending"),
        ("[approvals]\nexpiry = 0", "approvals.expiry"),
        ('[approvals]\ngrant_expiry = "never"', "approvals.grant_expiry"),
        ("[approvals]\nasks = true", "approvals.asks"),
        ('[approvals]\npath = "x"', "approvals.path"),
    ],
)
def test_what_is_wrong_is_refused_with_its_place(text: str, key: str) -> None:
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        parse(text + SERVER, HERE, {})
    error = caught.value
    errors = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
    assert key in {one.key for one in errors if isinstance(one, ConfigError)}
