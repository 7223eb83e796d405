"""Secrets are recognised by name and shape, and never shown."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.clients.doctor import would_start
from truename.clients.doctor.file_findings import MASK, literal_secrets, masked
from truename.config import ServerConfig

GITHUB = "ghp_" + "a1B2c3D4e5" * 4

ENTRIES: list[tuple[Any, list[str]]] = [
    ({"env": {"GITHUB_TOKEN": "anything"}}, ["GITHUB_TOKEN"]),
    ({"env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}, []),
    ({"env": {"GITHUB_TOKEN": "${env:GITHUB_TOKEN}", "API_KEY": "{env:KEY}", "PASSWORD": "$PASS"}}, []),
    ({"env": {"API_KEY": "${input:key}", "SECRET": "op://vault/item", "AUTH_TOKEN": "<your token>"}}, []),
    ({"env": {"API_KEY": "YOUR_API_KEY", "TOKEN": "xxxxxxxx", "SECRET": ""}}, []),
    ({"env": {"TOKEN_FILE": "/run/secret", "AUTH_URL": "https://a", "AUTH_TYPE": "none"}}, []),
    ({"env": {"ANYTHING": GITHUB}}, ["ANYTHING"]),
    ({"env": {"AUTHOR": "Ada Lovelace", "TOKENIZERS": "yes"}}, []),
    ({"args": ["--api-key=abc12345", "run"]}, ["--api-key"]),
    ({"args": ["--token", "abc12345", "--verbose", "plain"]}, ["--token"]),
    ({"args": ["--token", "--verbose"]}, []),
    ({"args": ["postgres://ada:pass@host/db"]}, ["args"]),
    ({"headers": {"Authorization": "Bearer abcdef123456"}}, ["Authorization"]),
    ({"transport": {"headers": [{"x-api-key": "abcdef"}]}}, ["x-api-key"]),
    ({"url": "https://host/mcp?access_token=abcdef"}, ["url"]),
    ({"url": "https://host/mcp?a=1&apiKey=abcdef"}, ["url"]),
    ({"url": "https://host/mcp?token=${TOKEN}&monkeys=3"}, []),
    ({"url": "https://host/mcp?page=3"}, []),
    ("not an entry", []),
    (None, []),
]


@pytest.mark.parametrize(("entry", "names"), ENTRIES)
def test_what_is_written_out_is_told_by_its_name_and_what_is_referred_to_is_not(entry: Any, names: list[str]) -> None:
    found = [leaf.name or "args" for leaf in literal_secrets(entry)]

    assert found == names


def test_a_secret_is_found_where_it_stands() -> None:
    entry = {"args": ["run", "--token", "abc12345"], "env": {"A": "b"}}

    assert [leaf.where for leaf in literal_secrets(entry)] == [("args", 2)]


def test_what_would_be_started_is_told_in_full_but_for_secrets() -> None:
    server = ServerConfig(
        key="lab",
        command="npx",
        args=("-y", "@x/lab", "--token", "abc12345", "--api-key=abc", GITHUB, "postgres://ada:pass@host/db", "a b"),
        env={"ANY": "thing"},
        cwd="/srv",
    )

    assert would_start(server) == (
        f"ANY={MASK} npx -y @x/lab --token {MASK} --api-key={MASK} {MASK} postgres://{MASK}@host/db 'a b' (in /srv)"
    )


def test_an_address_is_told_without_its_query_and_login() -> None:
    server = ServerConfig(
        key="web", url="https://ada:pass@host:8080/mcp?key=abc", headers={"X-Key": "abc"}, type="http"
    )

    assert would_start(server) == f"HTTP https://{MASK}@host:8080/mcp?{MASK} (headers X-Key)"


def test_a_token_in_an_address_among_the_arguments_is_masked() -> None:
    server = ServerConfig(key="a", command="npx", args=("mcp-remote", "https://host/mcp?v=1&access_token=abcdef&x=2"))

    assert would_start(server) == f"npx mcp-remote 'https://host/mcp?v=1&access_token={MASK}&x=2'"


@pytest.mark.parametrize("url", ["http://[", "https://a\x00b", "", "no address"])
def test_an_address_that_is_none_is_still_told(url: str) -> None:
    assert would_start(ServerConfig(key="web", url=url, type="http"))


@given(st.text(alphabet="abcxyz0189", min_size=12, max_size=40))
def test_no_token_of_a_known_form_survives_in_what_is_shown(tail: str) -> None:
    token = f"ghp_{tail}"

    assert tail not in masked(f"--header=Authorization: Bearer {token}")
    assert tail not in would_start(ServerConfig(key="a", command="run", args=(token, f"x={token}")))
