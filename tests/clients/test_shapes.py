"""An entry is read whatever it holds, and written as its client wants it."""
# ruff: noqa: E501 - one entry a line

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from truename.clients import read_entry, speaks_http, write_entry
from truename.clients.server_entries import FORMS, carries
from truename.config import ServerConfig
from truename.errors import ConfigError

URL = "http://127.0.0.1:8420/mcp/only/git"
HEADERS = {"Authorization": "Bearer ${TOKEN}"}
OVER_HTTP = ServerConfig(key="git", url=URL, headers=HEADERS, type="http")
PROGRAM = ServerConfig(key="git", command="uvx", args=("mcp-server-git", "-v"), env={"A": "b"})

WRITTEN_HTTP: dict[str, dict[str, Any]] = {
    "claude-code": {"type": "http", "url": URL, "headers": HEADERS},
    "vscode": {"type": "http", "url": URL, "headers": HEADERS},
    "typed": {"type": "http", "url": URL, "headers": HEADERS},
    "cursor": {"url": URL, "headers": HEADERS},
    "plain": {"url": URL, "headers": HEADERS},
    "kiro": {"url": URL, "headers": HEADERS},
    "warp": {"url": URL, "headers": HEADERS},
    "zed": {"url": URL, "headers": HEADERS},
    "windsurf": {"serverUrl": URL, "headers": HEADERS},
    "antigravity": {"serverUrl": URL, "headers": HEADERS},
    "cline": {"transport": {"type": "streamableHttp", "url": URL, "headers": HEADERS}},
    "cline-flat": {"type": "streamableHttp", "url": URL, "headers": HEADERS},
    "roo": {"type": "streamable-http", "url": URL, "headers": HEADERS},
    "continue": {"name": "git", "type": "streamable-http", "url": URL, "requestOptions": {"headers": HEADERS}},
    "codex": {"url": URL, "bearer_token_env_var": "TOKEN"},
    "grok": {"url": URL, "headers": HEADERS},
    "gemini": {"httpUrl": URL, "headers": HEADERS},
    "qwen": {"httpUrl": URL, "headers": HEADERS},
    "opencode": {"type": "remote", "url": URL, "headers": HEADERS, "enabled": True},
    "goose": {
        "name": "git",
        "type": "streamable_http",
        "uri": URL,
        "headers": HEADERS,
        "description": "",
        "env_keys": [],
        "envs": {},
        "enabled": True,
    },
    "copilot": {"type": "http", "url": URL, "headers": HEADERS, "tools": ["*"]},
    "amazon-q": {"type": "http", "url": URL, "headers": HEADERS},
    "librechat": {"type": "streamable-http", "url": URL, "headers": HEADERS},
    "crush": {"type": "http", "url": URL, "headers": HEADERS},
    "kimi": {"transport": "http", "url": URL, "headers": HEADERS},
    "vibe": {"name": "git", "transport": "streamable-http", "url": URL, "headers": HEADERS},
    "5ire": {"key": "git", "type": "remote", "url": URL, "headers": HEADERS, "isActive": True},
    "cherry-studio": {"type": "streamableHttp", "baseUrl": URL, "headers": HEADERS, "isActive": True},
    "any": {"type": "http", "url": URL, "headers": HEADERS},
}

PLAIN = {"command": "uvx", "args": ["mcp-server-git", "-v"], "env": {"A": "b"}}
TYPED = {"type": "stdio", **PLAIN}
WRITTEN_PROGRAM: dict[str, dict[str, Any]] = {
    **dict.fromkeys(
        ("plain", "stdio-only", "cursor", "kiro", "warp", "zed", "windsurf", "antigravity", "codex", "grok", "gemini"),
        PLAIN,
    ),
    **dict.fromkeys(("qwen", "amazon-q"), PLAIN),
    **dict.fromkeys(("claude-code", "vscode", "typed", "roo", "cline-flat", "librechat", "crush", "any"), TYPED),
    "cline": {"transport": {"type": "stdio", **PLAIN}},
    "continue": {"name": "git", "type": "stdio", **PLAIN},
    "copilot": {"type": "local", **PLAIN, "tools": ["*"]},
    "kimi": {"transport": "stdio", **PLAIN},
    "vibe": {"name": "git", "transport": "stdio", **PLAIN},
    "5ire": {"key": "git", "type": "local", **PLAIN, "isActive": True},
    "cherry-studio": {"type": "stdio", **PLAIN, "isActive": True},
    "opencode": {
        "type": "local",
        "command": ["uvx", "mcp-server-git", "-v"],
        "environment": {"A": "b"},
        "enabled": True,
    },
    "goose": {
        "name": "git",
        "type": "stdio",
        "cmd": "uvx",
        "args": ["mcp-server-git", "-v"],
        "envs": {"A": "b"},
        "description": "",
        "env_keys": [],
        "enabled": True,
    },
}


def test_every_shape_is_in_the_tables_of_this_file() -> None:
    assert set(WRITTEN_PROGRAM) == set(FORMS)
    assert set(WRITTEN_HTTP) == {shape for shape in FORMS if speaks_http(shape)}


@pytest.mark.parametrize("shape", WRITTEN_HTTP)
def test_an_address_is_written_as_the_client_wants_it(shape: str) -> None:
    assert write_entry(shape, OVER_HTTP) == WRITTEN_HTTP[shape]


@pytest.mark.parametrize("shape", WRITTEN_PROGRAM)
def test_a_program_is_written_as_the_client_wants_it(shape: str) -> None:
    assert write_entry(shape, PROGRAM) == WRITTEN_PROGRAM[shape]


def test_what_was_written_can_be_changed_without_changing_the_next() -> None:
    write_entry("copilot", PROGRAM)["tools"].append("x")

    assert write_entry("copilot", PROGRAM)["tools"] == ["*"]


@pytest.mark.parametrize(
    ("shape", "server", "problem"),
    [
        ("stdio-only", OVER_HTTP, "accepts no url"),
        ("codex", ServerConfig(key="x", url=URL, type="sse"), "SSE"),
        ("goose", ServerConfig(key="x", url=URL, type="sse"), "SSE"),
        ("vscode", ServerConfig(key="x"), "neither"),
    ],
)
def test_what_a_client_can_not_be_told_is_refused(shape: str, server: ServerConfig, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        write_entry(shape, server)

    assert problem in caught.value.problem
    assert caught.value.key == server.key


READ = [
    # shape, entry, what it means
    ("cline", {"url": URL}, {"url": URL, "type": "sse"}),
    ("cline", {"transport": {"type": "stdio", "command": "a"}}, {"command": "a"}),
    ("cline", {"type": "stdio", "command": "a", "timeout": 30}, {"command": "a", "timeout": 30}),
    ("cursor", {"url": URL}, {"url": URL, "type": "http"}),
    ("gemini", {"url": URL}, {"url": URL, "type": "sse"}),
    ("gemini", {"url": URL, "type": "http"}, {"url": URL, "type": "http"}),
    ("gemini", {"httpUrl": URL, "url": "http://other", "command": "x"}, {"url": URL, "type": "http"}),
    ("gemini", {"command": "x", "timeout": 600_000}, {"command": "x", "timeout": 600}),
    ("antigravity", {"serverUrl": URL, "command": "x"}, {"url": URL, "type": "http"}),
    ("cursor", {"url": URL, "command": "x"}, {"command": "x"}),
    ("vscode", {"type": "sse", "url": URL}, {"url": URL, "type": "sse"}),
    ("vscode", {"type": "http", "url": URL, "command": "x"}, {"url": URL, "type": "http"}),
    ("vscode", {"type": "http", "command": "x"}, {"command": "x"}),
    ("vscode", {"type": "stdio", "url": URL}, {"url": URL, "type": "http"}),
    ("claude-code", {"type": "ws", "url": "ws://x"}, {"url": "ws://x", "type": "http"}),
    ("zed", {"command": {"path": "a", "args": ["b"], "env": {"C": "d"}}}, {"command": "a", "args": ("b",), "env": {"C": "d"}}),
    ("zed", {"source": "custom", "command": "a", "enabled": False}, {"command": "a", "disabled": True}),
    ("opencode", {"type": "local", "command": ["a", "b"], "timeout": 5000}, {"command": "a", "args": ("b",)}),
    ("opencode", {"type": "local", "command": []}, {}),
    ("goose", {"type": "streamable_http", "uri": URL, "env_keys": ["K"]}, {"url": URL, "type": "http", "env": {"K": "${K}"}}),
    ("codex", {"command": "a", "env_vars": ["K", {"name": "L"}]}, {"command": "a", "env": {"K": "${K}", "L": "${L}"}}),
    (
        "codex",
        {"url": URL, "env_http_headers": {"X-A": "VAR"}, "http_headers": {"X-B": "b"}, "tool_timeout_sec": 9.5},
        {"url": URL, "type": "http", "headers": {"X-A": "${VAR}", "X-B": "b"}, "timeout": 9.5},
    ),
    ("continue", {"name": "x", "url": URL, "apiKey": "k"}, {"url": URL, "type": "http", "headers": {"Authorization": "Bearer k"}}),
    ("kimi", {"transport": "sse", "url": URL}, {"url": URL, "type": "sse"}),
    ("warp", {"command": "a", "working_directory": "/w"}, {"command": "a", "cwd": "/w"}),
    ("copilot", {"type": "local", "command": "a", "disabled": True}, {"command": "a"}),
    ("5ire", {"type": "local", "command": "a", "isActive": False}, {"command": "a", "disabled": True}),
    ("plain", {"command": "a", "args": [1, True, None, {}], "env": {"N": 5, "T": True, "X": None}},
     {"command": "a", "args": ("1", "true"), "env": {"N": "5", "T": "true"}}),
    ("plain", {"command": "$(rm -rf /)", "args": ["${VAR:-`x`}"]}, {"command": "$(rm -rf /)", "args": ("${VAR:-`x`}",)}),
    ("no such shape", {"command": "a"}, {"command": "a"}),
    ("plain", None, {}),
    ("plain", [1], {}),
    ("plain", "node s.js", {}),
    ("plain", {"command": 5, "args": "x", "env": ["a"], "timeout": True, "cwd": 1, "url": None}, {}),
    ("gemini", {"command": "a", "timeout": float("nan")}, {"command": "a"}),
    ("gemini", {"command": "a", "timeout": float("inf")}, {"command": "a"}),
    ("gemini", {"command": "a", "timeout": -1}, {"command": "a"}),
    ("gemini", {"command": "a", "timeout": 10**400}, {"command": "a"}),
    ("plain", {"command": "a", "env": {"A": 10**5000}}, {"command": "a"}),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "entry", "meant"), READ)
def test_an_entry_is_read_as_its_client_reads_it(shape: str, entry: object, meant: dict[str, Any]) -> None:
    assert read_entry(shape, "x", entry) == ServerConfig(key="x", **meant)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["command", "args", "env", "url", "httpUrl", "type", "transport", "headers", "timeout", "cwd", "env_vars",
             "bearer_token_env_var", "requestOptions", "env_http_headers", "disabled", "enabled", "path", "uri"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(shape=st.sampled_from(sorted(FORMS)), raw=ANYTHING)
def test_nothing_in_an_entry_makes_reading_fail(shape: str, raw: object) -> None:
    server = read_entry(shape, "key", raw)

    assert server.key == "key"
    assert server.command is None or server.url is None
    assert (server.type == "stdio") or server.url is not None


TEXTS = st.text(min_size=1, max_size=12)
REFERENCES = st.from_regex(r"\$\{[A-Z]{1,3}\}|Bearer \$\{[A-Z]{1,3}\}", fullmatch=True)
VALUES = TEXTS | REFERENCES
PAIRS = st.dictionaries(st.sampled_from(["A", "AB", "Authorization", "X-Key"]), VALUES, max_size=3)


@st.composite
def servers(draw: st.DrawFn, shape: str) -> ServerConfig:
    """Make a server that entries of this shape can tell."""
    told, form = carries(shape), FORMS[shape]
    # Where no word is written, an address cannot say that it is for SSE.
    kinds = [kind for kind, word in form.kinds.items() if kind != "sse" or word or form.bare]
    kind = draw(st.sampled_from(kinds))
    off = draw(st.booleans()) if "disabled" in told else False
    seconds = draw(st.none() | st.integers(1, 3_000)) if "timeout" in told else None
    if kind != "stdio":
        headers = draw(PAIRS) if "headers" in told else {}
        return ServerConfig(key="k", url=draw(TEXTS), headers=headers, type=kind, disabled=off, timeout=seconds)
    cwd = draw(st.none() | TEXTS) if "cwd" in told else None
    args = tuple(draw(st.lists(VALUES, max_size=3)))
    return ServerConfig(
        key="k", command=draw(TEXTS), args=args, env=draw(PAIRS), cwd=cwd, disabled=off, timeout=seconds
    )


@pytest.mark.parametrize("shape", sorted(FORMS))
def test_what_is_written_is_read_back_equal(shape: str) -> None:
    @settings(max_examples=40)
    @given(server=servers(shape))
    def holds(server: ServerConfig) -> None:
        assert read_entry(shape, "k", write_entry(shape, server)) == server

    holds()
