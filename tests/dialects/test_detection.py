"""Who is asking: everything that clients were seen to say of themselves."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from tests.shared import ROOT
from truename import dialects
from truename.errors import UnknownDialect

if TYPE_CHECKING:
    from pathlib import Path

LAB: Final = ROOT / "lab" / "results"


@dataclass
class Implementation:
    name: object


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("claude-code", "claude-code"),
        ("codex-mcp-client", "codex-cli"),
        ("gemini-cli-mcp-client", "gemini-cli"),
        ("gemini-cli-browser-agent", "gemini-cli"),
        ("qwen-cli-mcp-client-lab", "qwen-code"),
        ("qwen-cli-mcp-client-My Server", "qwen-code"),
        ("opencode", "opencode"),
        ("@cline/core", "cline"),
        ("Cline", "cline"),
        ("continue-cli-client", "continue-cli"),
        ("continue-client", "continue"),
        ("inspector-cli", "inspector"),
        ("fastmcp", "pydantic-ai"),
        ("ai-sdk-mcp-client", "vercel-ai-sdk"),
        ("@langchain/mcp-adapters", "langchain-mcp-adapters-js"),
        ("google-adk", "google-adk"),
        ("claude-ai", "claude-desktop"),
        ("claude-desktop-3p", "claude-desktop"),
        ("local-agent-mode-x", "claude-desktop"),
        ("Anthropic/ClaudeAI", "claude-ai"),
        ("Anthropic/API", "claude-ai"),
        ("openai-mcp", "chatgpt"),
        ("cursor-vscode", "cursor"),
        ("Visual Studio Code - Insiders", "vscode-copilot"),
        ("Code - OSS", "vscode-copilot"),
        ("github-copilot-developer", "copilot-cli"),
        ("windsurf-client", "windsurf"),
        ("Roo Code", "roo-code"),
        ("Zed", "zed"),
        ("goose-desktop", "goose"),
        ("@librechat/api-client", "librechat"),
        ("@n8n/n8n-nodes-langchain.mcpClientTool", "n8n"),
        ("huggingface_hub.MCPClient", "huggingface-inference"),
        ("Mistral", "mistral-chat"),
        ("kiro-ide", "kiro"),
        ("spring-ai-mcp-client - one", "spring-ai"),
        ("connectors-manager", "grok"),
        ("mcp-remote", "mcp-remote"),
        ("mcp-remote transport library", "mcp-remote"),
        ("Claude Desktop", "claude-desktop"),
        ("OpenAI API clients", "openai"),
        ("n8n workflow automation", "n8n"),
        ("cursor-vscode (via mcp-remote 0.1.18)", "cursor"),
        ("somebody new (via mcp-remote 0.1.18)", "mcp-remote"),
        ("mcp (via mcp-remote 0.1.18)", "mcp-remote"),
        ("(via mcp-remote)", "mcp-remote"),
    ],
)
def test_a_client_is_recognised_by_its_name(said: str, name: str) -> None:
    for client_info in (said, {"name": said, "version": "1"}, Implementation(said), said.upper()):
        found = dialects.detect(client_info)
        assert found.dialect is dialects.get(name)
        assert "clientInfo.name" in found.evidence


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-code/2.1.330 (sdk-cli)", "claude-code"),
        ("claude-code/2.1.330 (claude-desktop, agent-sdk/0.3.330)", "claude-desktop"),
        ("codex-mcp-client/0.169.0", "codex-cli"),
        ("opencode/1.18.33", "opencode"),
        ("ai-sdk/2.0.99 node.js/24", "vercel-ai-sdk"),
        ("google-adk/2.13.0 gl-python/3.12.1", "google-adk"),
        ("goose/1.9", "goose"),
        ("openai-mcp/1.0.0 (Responses API)", "chatgpt"),
        ("openai-mcp/1.0.0", "chatgpt"),
        ("Claude-User", "claude-ai"),
        ("grok-connectors-manager/0.1.0", "grok"),
        ("node", None),
        ("undici", None),
        ("Bun/1.3.13", None),
        ("python-httpx2/2.16.2", None),
    ],
)
def test_a_user_agent_speaks_where_the_name_is_silent(agent: str, name: str | None) -> None:
    for client_info, silent in ((None, None), ("mcp", "universal"), ({"name": "mcp"}, "universal")):
        found = dialects.detect(client_info, {"USER-AGENT": agent}).dialect
        wanted = name or silent
        assert found is (dialects.get(wanted) if wanted else None)


# Who sends the server's key in the place of a name of its own.
_KEYS: Final = ("mastra", "openai-agents-js")


@pytest.mark.parametrize("path", sorted(LAB.glob("*.json")), ids=lambda path: path.stem)
def test_what_a_client_was_seen_to_send_is_recognised(path: Path) -> None:
    run = json.loads(path.read_bytes())
    said = [trial["handshake"] for trial in run["trials"] if trial.get("handshake", {}).get("client_info")]
    assert said
    for one in said:
        found = dialects.detect(one["client_info"], {"user-agent": one["user_agent"] or ""}).dialect
        if one["client_info"]["name"] == "mcp":
            assert found is dialects.get("universal")
            assert path.name in dialects.get("universal").lab
        elif run["dialect"].startswith(_KEYS):
            assert found is None
        else:
            assert found is not None
            # Variants of one client say the same of themselves.
            assert run["packages"][0] in {json.loads((LAB / name).read_bytes())["packages"][0] for name in found.lab}


def test_the_row_of_the_sdk_cites_only_runs_that_show_it() -> None:
    for name in dialects.get("universal").lab:
        trials = json.loads((LAB / name).read_bytes())["trials"]
        assert {one["handshake"]["client_info"]["name"] for one in trials if one.get("handshake")} == {"mcp"}


def test_the_name_counts_for_more_than_the_user_agent() -> None:
    assert dialects.detect("cursor", {"user-agent": "claude-code/2.1"}).dialect is dialects.get("cursor")


def test_a_vendors_header_counts() -> None:
    found = dialects.detect(None, {"X-Anthropic-Client": "ClaudeAI"})

    assert found == dialects.Detection(dialects.get("claude-ai"), "header x-anthropic-client: 'ClaudeAI'")
    assert dialects.detect(None, {"X-Anthropic-Client": "Cowork"}).dialect is None


def test_headers_decide_before_everything_else() -> None:
    assert dialects.detect("cursor", {"X-OpenAI-Mode": "true"}).dialect is dialects.get("openai")
    assert dialects.detect("cursor", {"X-OpenAI-Mode": "false"}).dialect is None
    assert dialects.detect("cursor", {"X-OpenAI-Mode": "perhaps"}).dialect is dialects.get("cursor")
    both = {"X-Truename-Dialect": "Gemini CLI", "X-OpenAI-Mode": "true"}
    assert dialects.detect("cursor", both).dialect is dialects.get("gemini-cli")
    with pytest.raises(UnknownDialect):
        dialects.detect("cursor", {"x-truename-dialect": "cursr"})


@pytest.mark.parametrize(
    ("client_info", "headers", "evidence"),
    [
        (None, None, "the client sent neither a name nor a header"),
        ("my-own-native-client", None, "clientInfo.name 'my-own-native-client' not known"),
        ("native", None, "clientInfo.name 'native' not known"),
        ("universal", None, "clientInfo.name 'universal' not known"),
        ("lab", {"User-Agent": "node"}, "clientInfo.name 'lab' and User-Agent 'node' not known"),
        ({"name": 5}, {}, "the client sent neither a name nor a header"),
        ({}, {}, "the client sent neither a name nor a header"),
        (Implementation(None), {}, "the client sent neither a name nor a header"),
        (7, {"user-agent": 7, 8: "x"}, "the client sent neither a name nor a header"),
        ("x" * 10_000_000, {"user-agent": "(" * 10_000_000}, "the client sent neither a name nor a header"),
        ("(via mcp-remote" * 10, None, "clientInfo.name "),
    ],
)
def test_what_tells_nothing_is_none(client_info: object, headers: dict[str, str] | None, evidence: str) -> None:
    found = dialects.detect(client_info, headers)

    assert found.dialect is None
    assert found.evidence.startswith(evidence)
