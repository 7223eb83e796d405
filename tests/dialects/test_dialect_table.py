"""The table itself: complete, sourced, and readable by the names that people use."""

from __future__ import annotations

import json
import keyword
import pickle
import re
from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from tests.shared import ROOT, data
from truename import dialects
from truename.dialects import registry as rows_module
from truename.dialects.dialect import STYLES
from truename.errors import UnknownDialect

RENAMED = {"openai-chat": "openai", "anthropic-messages": "anthropic"}
ALL = dialects.table()


def researched() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(data("facts", "dialects.json").read_text("utf-8"))
    return rows


def test_every_researched_row_is_represented() -> None:
    known = set(dialects.names())

    missing = [row["id"] for row in researched() if RENAMED.get(row["id"], row["id"]) not in known]

    assert missing == ["other-client-names"]  # those are rows of their own


def test_every_researched_client_name_is_recognised() -> None:
    unclear = []
    for row in researched():
        for pattern in row["client_info_names"]:
            name = re.sub(r"\s\(.*", "", pattern).replace("*", "1").replace("{inner}", "cursor")
            if name == "mcp" or name.startswith("{"):
                continue
            if dialects.detect(name).dialect is None:
                unclear.append(name)

    assert unclear == []


def test_every_researched_limit_is_carried_over() -> None:
    measured = {"codex-cli": 128, "mastra": 63}
    with_server_names = {"openai-agents-python", "openai-agents-js"}  # the limit is that of their option
    for row in researched():
        if isinstance(row["max_length"], int) and row["id"] != "other-client-names":
            dialect = dialects.get(row["id"] + "-prefix" * (row["id"] in with_server_names))
            assert dialect.max_length == measured.get(row["id"], row["max_length"]), row["id"]


@pytest.mark.parametrize("dialect", ALL, ids=dialects.names())
def test_every_row_says_where_it_comes_from(dialect: dialects.Dialect) -> None:
    assert dialect.kind in {"own", "provider", "client", "framework", "spec"}
    assert dialect.confidence in {"run", "read"}
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", dialect.date)
    assert dialect.source
    assert dialect.title
    assert set(dialect.unknown) <= {"chars", "first", "last", "words", "max_length"}
    if "chars" not in dialect.unknown and dialect.chars is not None:
        assert dialect.first is not None
        assert dialect.last is not None
        assert dialect.first <= dialect.chars >= dialect.last


def test_names_and_aliases_belong_to_one_row_each() -> None:
    owners: dict[str, set[str]] = {}
    for dialect in ALL:
        for name in (dialect.name, *dialect.aliases):
            owners.setdefault(rows_module.fold(name), set()).add(dialect.name)

    assert {name: rows for name, rows in owners.items() if len(rows) > 1} == {}
    assert len(dialects.names()) == len(set(dialects.names())) == len(ALL)


def test_no_two_rows_claim_one_way_of_being_recognised() -> None:
    patterns = [pattern.lower() for dialect in ALL for pattern in (*dialect.client_info, *dialect.user_agents)]

    assert len(patterns) == len(set(patterns))


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("openai", "openai"),
        ("gpt", "openai"),
        ("openai-chat", "openai"),
        ("OpenAI API clients", "openai"),
        ("anthropic", "anthropic"),
        ("Anthropic_Messages", "anthropic"),
        ("claude", "claude-desktop"),
        ("Claude Desktop", "claude-desktop"),
        ("Claude AI", "claude-ai"),
        ("Claude Code", "claude-code"),
        ("ChatGPT", "chatgpt"),
        ("n8n", "n8n"),
        ("n8n workflow automation", "n8n"),
        ("LangChain", "langchain-mcp-adapters-py"),
        ("LlamaIndex", "llamaindex"),
        ("CURSOR", "cursor"),
        ("Continue", "continue"),
        ("Cline", "cline"),
        ("Windsurf", "windsurf"),
        ("mcp-remote transport library", "mcp-remote"),
        ("vscode", "vscode-copilot"),
        ("VS Code", "vscode-copilot"),
        ("copilot", "vscode-copilot"),
        ("gemini", "google-gemini"),
        ("gemini cli", "gemini-cli"),
        ("codex", "codex-cli"),
        ("bedrock", "bedrock-converse"),
        ("agents sdk", "openai-agents-python"),
        ("qwen", "qwen-code"),
        ("universal", "universal"),
        ("native", "native"),
    ],
)
def test_people_find_a_dialect_by_what_they_call_it(said: str, name: str) -> None:
    assert dialects.get(said).name == name


def test_an_unknown_dialect_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownDialect) as caught:
        dialects.get("cursr")

    assert "cursor" in caught.value.suggestions
    with pytest.raises(UnknownDialect) as caught:
        dialects.get("x" * 10_000_000)
    assert len(str(caught.value)) < 300


def test_a_dialect_can_not_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        dialects.get("openai").max_length = 1  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(dialects.get("gpt"))) == dialects.get("gpt")
    assert repr(dialects.get("gpt")) == "Dialect('openai')"
    assert len({dialects.get("gpt"), dialects.get("openai")}) == 1


def test_universal_is_what_all_have_in_common() -> None:
    universal = dialects.get("universal")

    assert universal.chars == frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
    assert universal.first == frozenset("abcdefghijklmnopqrstuvwxyz")
    assert universal.last == universal.chars - {"_"}
    assert (universal.max_length, universal.words, universal.unknown) == (46, "snake", ())
    assert universal.reserved.issuperset({"web_search", *keyword.kwlist})
    assert universal.room("any server, however long its key may be") == 46


def test_what_is_unknown_is_universal_and_said_to_be_unknown() -> None:
    universal, windsurf = dialects.get("universal"), dialects.get("windsurf")

    assert windsurf.unknown == ("chars", "first", "last", "max_length", "words")
    assert (windsurf.chars, windsurf.max_length, windsurf.room()) == (universal.chars, 46, 46)
    assert (
        windsurf.check("get-weather")[0].text == "'-' at 3 is not in [a-z0-9_] (assumed; Windsurf's rule is not known)"
    )
    assert dialects.get("cohere").unknown == ("max_length",)


@pytest.mark.parametrize(
    ("name", "server", "room"),
    [
        ("vscode", "lab", 46),
        ("vscode", "a very long server key", 46),
        ("cursor", "lab", 56),
        ("claude-code", "lab", 118),
        ("gemini-cli", "lab", 55),
        ("qwen-code", "lab", 53),
        ("codex", "lab", 118),
        ("cline", "lab", 59),
        ("roo", "lab", 54),
        ("mastra", "lab", 59),
        ("open-webui", "lab", 60),
        ("openai-agents-python-prefix", "lab", 55),
        ("n8n", "lab", 62),
        ("openai", "lab", 64),
        ("anthropic", "lab", 128),
        ("native", "lab", None),
        ("mcp-2025-06-18", "lab", None),
        ("librechat", "lab", 46),
        ("librechat", "x" * 40, 19),
        ("cursor", "x" * 70, 0),
    ],
)
def test_the_room_for_a_name_is_what_the_prefix_leaves(name: str, server: str, room: int | None) -> None:
    assert dialects.get(name).room(server) == room


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("native", ()),
        ("openai", ("canonical",)),
        ("anthropic", ("canonical",)),
        ("universal", ("server-prefix", "canonical", "dotted-double")),
        ("crewai", ("server-prefix", "canonical", "dotted-double")),
        ("mcp-sep-986", ("canonical",)),
    ],
)
def test_styles_are_those_that_can_be_legal(name: str, missing: tuple[str, ...]) -> None:
    assert dialects.get(name).styles == tuple(style for style in STYLES if style not in missing)


def test_a_row_with_a_misspelt_field_is_refused() -> None:
    with pytest.raises(ValueError, match="max_lenght"):
        rows_module._dialect({"name": "x", "kind": "client", "title": "X", "max_lenght": 5})


def test_the_public_names_are_these() -> None:
    values = ["ClientRun", "ClientVersion", "Detection", "Dialect", "Reason", "Simulation"]
    assert dialects.__all__ == [*values, "detect", "get", "names", "own", "table", "versions"]


def test_the_data_holds_no_path_and_no_registry() -> None:
    text = (ROOT / "src" / "truename" / "dialects" / "table.json").read_text("utf-8")

    assert not re.search(r"https?://|/home/|/root/|pypi|npmjs|registry\.", text)
