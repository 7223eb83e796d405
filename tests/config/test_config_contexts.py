"""Contexts, protocol and recording in a configuration: what cannot be read is a fault, and lifts no limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.config_load import faults_of, settings
from truename.config import Config, parse, render
from truename.policy import Context

FILE = """
protocol = "0.3"
recording = "calls.jsonl"

[context]
app = "Payments"

[contexts.phone]
platform = "${PLATFORM}"
origin = "replay"

[contexts."a.b-c_1"]

[mcpServers]
"""


def test_contexts_are_read_and_filled() -> None:
    found = parse(FILE, Path("/etc/truename.toml"), {"PLATFORM": "iOS"}).settings

    assert found.context == Context(app="payments")
    assert found.contexts == {"phone": Context(platform="ios", origin="replay"), "a.b-c_1": Context()}
    assert (found.protocol, found.recording) == ("0.3", "/etc/calls.jsonl")
    assert settings().context == Context()
    assert (settings().protocol, settings().recording, dict(settings().contexts)) == (None, None, {})


def test_they_are_written_as_they_are_read() -> None:
    found = parse(FILE, Path("/etc/truename.toml"), {"PLATFORM": "iOS"})
    text = render(found)

    assert '[contexts.phone]\nplatform = "ios"\norigin = "replay"\n' in text
    assert parse(text, Path("/etc/truename.toml"), {}).settings == found.settings
    assert "context" not in render(Config())


@pytest.mark.parametrize(
    ("values", "key", "problem"),
    [
        ({"context": None}, "context", "it is null, not an object"),
        ({"context": "ios"}, "context", "it is a text, not an object"),
        ({"context": []}, "context", "it is a list"),
        ({"context": {"platfrom": "ios"}}, "context.platfrom", "it is not a setting"),
        ({"context": {"platform": 1}}, "context.platform", "it is 1, not a text"),
        ({"context": {"origin": "root"}}, "context.origin", "'root' is not an origin"),
        ({"context": {"origin": ""}}, "context.origin", "'' is not an origin"),
        ({"context": {"app": "${UNSET}"}}, "context.app", "UNSET"),
        ({"context": {"app": "x" * 5000}}, "context.app", "it is not a text of at most"),
        ({"contexts": []}, "contexts", "it is a list"),
        ({"contexts": {"a b": {}}}, "contexts.a b", "'a b' cannot be a name"),
        ({"contexts": {"a/b": {}}}, "contexts.a/b", "cannot be a name"),
        ({"contexts": {"": {}}}, "contexts.", "cannot be a name"),
        ({"contexts": {"x\n": {}}}, "contexts.x\\n", "cannot be a name"),
        ({"contexts": {"a=b": {}}}, "contexts.a=b", "cannot be a name"),
        ({"contexts": {"phone": None}}, "contexts.phone", "not an object"),
        ({"contexts": {"phone": {"origin": 1}}}, "contexts.phone.origin", "it is 1, not a text"),
        ({"protocol": "newest"}, "protocol", "'newest' is not a protocol version"),
        ({"protocol": ""}, "protocol", "'' is not a protocol version"),
        ({"protocol": 0.3}, "protocol", "it is 0.3, not a text"),
        ({"recording": 1}, "recording", "it is 1, not a text"),
    ],
)
def test_what_can_not_be_read_is_a_fault(values: dict[str, Any], key: str, problem: str) -> None:
    (fault,) = faults_of({"mcpServers": {}, "truename": values})

    assert (fault.key, problem in fault.problem) == (key, True), fault.problem


def test_all_faults_of_a_context_are_told_at_once() -> None:
    values = {"contexts": {"a": {"x": 1, "platform": 2}, "b c": {}}}

    found = faults_of({"mcpServers": {}, "truename": values})

    assert [fault.key for fault in found] == ["contexts.a.x", "contexts.a.platform", "contexts.b c"]
