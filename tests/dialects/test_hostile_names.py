"""Names that are wrong in every way: everything is reported, and nothing takes long."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from tests.shared import UNHURRIED
from truename import dialects
from truename.dialects.dialect import problems

HUGE = 10_000_000


@pytest.mark.parametrize(
    ("dialect", "name", "codes"),
    [
        ("openai", "", ["empty"]),
        ("native", "", ["empty"]),
        ("openai", "get_weather\n", ["control"]),
        ("openai", "a.b/c", ["character", "character"]),
        ("openai", "x" * 65, ["length"]),
        ("anthropic", "." + "x" * 128, ["character", "length"]),
        ("gemini", "1digit", ["first"]),
        ("gemini", ".x", ["first"]),
        ("openai-agents-python-prefix", "_x-", ["first", "last"]),
        ("universal", "a__b_", ["last", "shape"]),
        ("universal", "_A", ["character", "first"]),
        ("universal", "class", ["reserved"]),
        ("xai", "web_search", ["reserved"]),
        ("native", "a\u0000b", ["control"]),
        ("native", "salesforce@1/get_leads@1", []),
        ("native", "a" * 20_000 + "\n", ["control"]),
        ("openai", "a\ud800", ["control"]),
        ("ollama", "has space", ["character"]),
        ("mcp-2025-11-25", "a/b", ["character"]),
    ],
)
def test_everything_wrong_with_a_name_is_reported(dialect: str, name: str, codes: list[str]) -> None:
    assert [reason.code for reason in dialects.get(dialect).check(name)] == codes


def test_nothing_is_found_wrong_with_what_is_right() -> None:
    for client in ("native", "openai"):
        assert problems(dialects.get(client), "lab", "get_weather") == ()


def test_the_texts_are_for_people() -> None:
    assert dialects.get("anthropic").check("fs.list") == (
        dialects.Reason("character", "'.' at 2 is not in [a-zA-Z0-9_-]"),
    )
    (reason,) = dialects.get("cursor").check("x" * 60, "lab")
    assert reason.text == "it has 60 characters, 56 are allowed for the server key 'lab'"
    (reason,) = dialects.get("codex").check("x", "My Server")
    assert reason == dialects.Reason("server", "Codex never connects a server with the key 'My Server'")
    (reason,) = dialects.get("cline").check("x", "My Server")
    assert reason.text == "Cline adds a digest to every name of a server with the key 'My Server'"
    assert [reason.code for reason in dialects.get("cline").check("", "My Server")] == ["empty", "server"]


@pytest.mark.parametrize("unit", ["a", "_", ".", "天", "\n", "a_", "aA"])
def test_ten_megabytes_are_answered_at_once_and_briefly(unit: str) -> None:
    name = unit * (HUGE // len(unit))

    for client in ("universal", "native", "openai", "gemini-cli", "crewai", "cursor", "ollama", "windsurf"):
        began = time.process_time()
        reasons = dialects.get(client).check(name)
        assert time.process_time() - began < UNHURRIED
        assert sum(len(reason.text) for reason in reasons) < 2000
        assert max(Counter(reason.code for reason in reasons).values(), default=0) <= 5


def test_a_megabyte_is_shown_in_linear_time() -> None:
    began = time.process_time()
    for client in ("claude-code", "gemini-cli", "qwen", "cline", "vscode", "n8n"):
        shown = dialects.get(client).shown("lab", "a." * (HUGE // 20))
        assert shown is None or len(shown) <= 128 or client == "n8n"
    assert time.process_time() - began < UNHURRIED


def test_a_long_list_is_simulated_in_linear_time() -> None:
    names = [f"tool.number_{number}" for number in range(10_000)]

    began = time.process_time()
    for client in ("gemini-cli", "codex", "crewai", "openai"):
        dialects.get(client).simulate("lab", names)
    assert time.process_time() - began < UNHURRIED
