"""Profiles as a configuration says them: every doubt is a fault, for it may be what hides a tool."""

from __future__ import annotations

import tomllib
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest

from truename.config import json_schema, parse
from truename.errors import ConfigError
from truename.policy.profiles import Profile, Profiles

WHOLE = """
[profiles.support]
tools = ["tickets/*", "${SERVER}/read"]
servers = ["docs*"]
except = ["tickets/delete_*"]
annotations = {readOnlyHint = true}
families = ["tickets"]
owners = ["support"]
prompts = []
resources = ["docs"]
groups = ["support"]
scopes = ["tickets"]
principals = ["ann"]
everyone = false
[profiles.rest]
tools = ["*"]
default = true
"""


def read(text: str) -> Profiles:
    text += '\n[mcpServers.a]\ncommand = "true"\n'
    return parse(text, Path("/home/me/truename.toml"), {"SERVER": "wiki"}).settings.profiles


def test_all_that_can_be_said_is_read() -> None:
    assert dict(read(WHOLE)) == {
        "support": Profile(
            tools=("tickets/*", "wiki/read"),
            servers=("docs*",),
            excluded=("tickets/delete_*",),
            annotations={"readOnlyHint": True},
            families=("tickets",),
            owners=("support",),
            prompts=(),
            resources=("docs",),
            groups=("support",),
            scopes=("tickets",),
            principals=("ann",),
        ),
        "rest": Profile(tools=("*",), default=True),
    }


def test_no_word_of_them_is_no_profile() -> None:
    assert read("") == Profiles()
    assert not read("")


@pytest.mark.parametrize(
    ("text", "key", "told"),
    [
        ("[profiles]", "profiles", "it has no profile"),
        ("profiles = 3", "profiles", "not an object"),
        ("[profiles]\na = 3", "profiles.a", "not an object"),
        ("[profiles.a]", "profiles.a", "it shows nothing"),
        ('[profiles.a]\ntools = ["*"]', "profiles.a", "nobody has it"),
        ('[profiles.a]\ntools = ["*"]\neveryone = false', "profiles.a", "nobody has it"),
        ('[profiles.a]\ntools = []\neveryone = true', "profiles.a.tools", "it does not have 1 to 1,000 texts"),
        ('[profiles.a]\ntools = "*"\neveryone = true', "profiles.a.tools", "it is a text, not a list"),
        ('[profiles.a]\ntools = ["read"]\neveryone = true', "profiles.a.tools[0]", "is not a glob on tool ids"),
        ('[profiles.a]\nexcept = ["read"]\neveryone = true', "profiles.a.except[0]", "is not a glob on tool ids"),
        ('[profiles.a]\ntool = ["*"]\neveryone = true', "profiles.a.tool", "it is not a setting"),
        ('[profiles.a]\ntools = ["*"]\neveryone = "yes"', "profiles.a.everyone", "not true or false"),
        ('[profiles.a]\nannotations = {hint = true}\neveryone = true', "profiles.a.annotations.hint", "an annotation"),
        ('[profiles.a.annotations]\nreadOnlyHint = "x"', "profiles.a.annotations.readOnlyHint", "not true or false"),
        ('[profiles."a/b"]\ntools = ["*"]\neveryone = true', "profiles.a/b", "cannot be a name"),
        ('[profiles.a]\nservers = [" "]\neveryone = true', "profiles.a.servers", "it does not have"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(text: str, key: str, told: str) -> None:
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        read(text)
    error = caught.value
    found = error.exceptions if isinstance(error, ExceptionGroup) else (error,)
    assert any(isinstance(one, ConfigError) and one.key == key and told in one.problem for one in found), found


def test_the_schema_takes_what_the_reader_takes() -> None:
    jsonschema.validate(tomllib.loads(WHOLE), json_schema())
    for bad in ({"a": {"tool": ["*"]}}, {"a/b": {"tools": ["*"]}}, {"a": {"everyone": 3}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"profiles": bad}, json_schema())
