"""A rendered configuration is read back to the same, and is fit to be read by people."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.catalog import ServerIdentity
from truename.config import Config, ServerConfig, Settings, literal, parse, render
from truename.errors import ConfigError
from truename.policy import CallRule, Policy

PATH = Path("/etc/truename.toml")
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20).map(literal)
KEYS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12)
HEADERS = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,10}", fullmatch=True)
ASCII = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=120).map(literal)
FILLED = TEXT.filter(lambda text: bool(text.strip()))
TIMES = st.none() | st.integers(1, 10**9).map(float) | st.floats(0.001, 3600, allow_nan=False)
STDIO = st.builds(
    ServerConfig,
    key=KEYS,
    command=FILLED,
    args=st.lists(TEXT, max_size=6).map(tuple),
    env=st.dictionaries(TEXT, TEXT, max_size=4),
    cwd=st.sampled_from([None, "/srv/a b", "/天気"]),
    timeout=TIMES,
    isolation=st.sampled_from(["shared", "session", "user"]),
    start=st.sampled_from([None, "eager", "lazy"]),
    identity=st.builds(
        ServerIdentity,
        integration=st.sampled_from([None, "salesforce", "data-grout"]),
        version=st.none() | st.integers(1, 10**18 - 1),
        versions=st.dictionaries(KEYS, st.integers(1, 99), max_size=3),
    ),
    idle_timeout=st.sampled_from([None, 0.0, 2.5]),
)
HTTP = st.builds(
    ServerConfig,
    key=KEYS,
    url=st.sampled_from(["https://a.example/mcp", "http://[::1]:8/x?y=z%20#q"]),
    headers=st.dictionaries(HEADERS, ASCII, max_size=4),
    type=st.sampled_from(["http", "sse"]),
    timeout=TIMES,
)
WORDS = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True)
RULES = st.builds(
    CallRule,
    name=WORDS,
    outcome=st.sampled_from(["allow", "ask", "deny"]),
    tools=st.just(("*",)) | st.just(("git/*", "github/issues.create")),
    but=st.just(()) | st.just(("git/log",)),
    annotations=st.just({}) | st.just({"readOnlyHint": True}),
    clients=st.just(()) | st.just(("cursor",)),
)
SETTINGS = st.builds(
    Settings,
    aliases=st.none() | st.dictionaries(KEYS, WORDS, max_size=3),
    style=st.sampled_from([None, "prefixed", "on-conflict"]),
    server_name=WORDS,
    names=st.sampled_from(["universal", "detect", "canonical"]),
    state=st.sampled_from([None, "memory", "/var/x.db"]),
    token=st.none() | st.just("a-b"),
    call_timeout=st.floats(0.001, 1e300, allow_nan=False),
    max_body=st.integers(1, 10**12),
    policy=st.none() | st.builds(Policy, rules=st.lists(RULES, max_size=3, unique_by=lambda rule: rule.name)),
    metadata=st.dictionaries(
        st.sampled_from(["phone/*", "a@1/b@1"]),
        st.fixed_dictionaries(
            {},
            optional={
                "is_for_llm": st.booleans(),
                "platforms": st.just(()) | st.just(("ios", "android")),
                "app": st.just("") | WORDS,
                "parameter_platforms": st.dictionaries(WORDS, st.just(("ios",)), max_size=2),
            },
        ),
        max_size=2,
    ),
    overrides=st.dictionaries(
        st.sampled_from(["universal", "cursor"]), st.dictionaries(st.just("a@1/b@1"), WORDS, max_size=1), max_size=2
    ),
)


def plain(server: ServerConfig) -> ServerConfig:
    """Return a server as the reader gives it: escapes undone, one that is off empty."""
    if server.disabled:
        return ServerConfig(key=server.key, disabled=True)

    def read(text: Any) -> Any:
        return text.replace("$${", "${") if isinstance(text, str) else text

    return replace(
        server,
        command=read(server.command),
        args=tuple(map(read, server.args)),
        env=MappingProxyType({key: read(value) for key, value in server.env.items()}),
        headers=MappingProxyType({key: read(value) for key, value in server.headers.items()}),
    )


@given(st.lists(STDIO | HTTP, max_size=5, unique_by=lambda server: server.key), SETTINGS, st.data())
def test_a_rendered_configuration_is_read_back_to_the_same(
    servers: list[ServerConfig], settings: Settings, data: st.DataObject
) -> None:
    servers = [replace(server, disabled=data.draw(st.booleans())) for server in servers]
    notes = {server.key: data.draw(st.lists(st.text(max_size=20), max_size=2)) for server in servers}
    text = render(
        Config(servers=tuple(servers), settings=settings), head=["a\nb", *notes], notes=notes, schema="./x.json"
    )

    again = parse(text, PATH, {})

    assert again.servers == tuple(plain(server) for server in servers)
    assert again.settings == settings


def test_references_stay_references_and_literal_texts_stay_texts() -> None:
    server = ServerConfig(key="s", command="sh", args=("-c", literal("echo ${A} $B")), env={"T": "x${A}"})
    text = render(Config(servers=(server,)))

    (again,) = parse(text, PATH, {"A": "1"}).servers

    assert again.args == ("-c", "echo ${A} $B")
    assert again.env == {"T": "x1"}


def test_the_text_is_one_that_people_would_write() -> None:
    servers = (
        ServerConfig(key="git", command="uvx", args=("mcp-server-git",), env={"A": "b"}, timeout=30.0),
        ServerConfig(key="far away", url="https://a.example/mcp", type="http", headers={"X": "1"}),
        ServerConfig(key="off", command="x", disabled=True),
    )
    settings = Settings(server_name="tn", aliases={"git": "g"}, overrides={"universal": {"git@1/log@1": "git_log"}})

    text = render(
        Config(servers=servers, settings=settings),
        schema="./truename.schema.json",
        head=["What truename init found."],
        notes={"git": ["found in Cursor: ~/.cursor/mcp.json"]},
    )

    assert text == (
        "#:schema ./truename.schema.json\n"
        "# What truename init found.\n"
        "\n"
        'server_name = "tn"\n'
        "\n"
        "# found in Cursor: ~/.cursor/mcp.json\n"
        "[mcpServers.git]\n"
        'command = "uvx"\n'
        'args = ["mcp-server-git"]\n'
        "timeout = 30\n"
        'env = { A = "b" }\n'
        "\n"
        '[mcpServers."far away"]\n'
        'url = "https://a.example/mcp"\n'
        'headers = { X = "1" }\n'
        "\n"
        "[mcpServers.off]\n"
        "disabled = true\n"
        'command = "x"\n'
        "\n"
        "[aliases]\n"
        'git = "g"\n'
        "\n"
        "[overrides.universal]\n"
        '"git@1/log@1" = "git_log"\n'
    )


def test_a_comment_can_end_no_line_and_act_on_no_terminal() -> None:
    hostile = 'x\n[mcpServers.evil]\ncommand = "y"\x1b[2J\u202e\ud800'

    text = render(Config(), head=[hostile], schema=hostile, notes={})

    assert parse(text, PATH, {}).servers == ()
    assert text.isascii()


def test_half_a_character_is_told() -> None:
    with pytest.raises(ConfigError, match="surrogate"):
        render(Config(servers=(ServerConfig(key="s", command="\ud800"),)))


TABLES: dict[str, dict[str, Any]] = {
    "approvals": {"ask": "both", "wait": 5},
    "audit": {"path": "/var/audit", "arguments": "redacted", "hide": ["*x*"], "key": "k" * 32},
    "telemetry": {"metrics": True, "metrics_for": ["prom*"], "metrics_tools": 3},
    "trust": {
        "drift": "block",
        "rules": {"near_name": "warn"},
        "servers": {"a": {"first": "review"}, "b/c": {"drift": "block"}},
    },
    "profiles": {
        "ops": {"tools": ["*"], "except": ["a/*"], "groups": ["g"]},
        "rest": {"servers": ["a"], "default": True},
    },
    "access": {
        "public_url": "https://tools.example",
        "oauth": {"idp": {"issuer": "https://idp.example", "scopes": ["use"]}},
        "tokens": {"ann": {"hash": f"tn1:{'0' * 16}:{'a' * 64}", "groups": ["g"], "expires": "2027-01-01T00:00:00Z"}},
    },
}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_its_own_is_read_back_to_the_same(name: str) -> None:
    given = {"mcpServers": {"a": {"command": "x"}}, "truename": {name: TABLES[name]}}
    config = parse(json.dumps(given), Path("/etc/mcp.json"), {})
    assert getattr(config.settings, name) != getattr(Settings(), name)
    assert parse(render(config), PATH, {}).settings == config.settings
