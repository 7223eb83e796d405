"""What is taken for a secret in a diff, and which files are left alone because their own client refuses them."""

from __future__ import annotations

import pytest

from truename.clients.selection import secrets_of
from truename.config import ServerConfig

WORDS = [
    "--local-timezone",
    "--allow-dangerous-operations",
    "server-everything-else",
    "--mode=read-only-everything",
    "createIssueFromTemplate",
    "Europe_Amsterdam_Summer",
    "@modelcontextprotocol/server-github",
    "--directory=/home/me/projects",
    "mcp-server-filesystem",
]
SECRETS = [
    "a1b2c3d4e5f6a7b8",
    "--key=a1b2c3d4e5f6a7b8",
    "dGhpc2lzYXNlY3JldHRva2Vu",
    "--session=qWeRtYuIoPaSdFgHjK",
    "550e8400-e29b-41d4-a716-446655440000",
]


@pytest.mark.parametrize("word", WORDS)
def test_words_are_no_secrets(word: str) -> None:
    assert list(secrets_of([ServerConfig(key="s", command="x", args=(word, "Europe/Berlin"))])) == []


@pytest.mark.parametrize("word", SECRETS)
def test_a_random_text_may_be_a_secret(word: str) -> None:
    (found,) = set(secrets_of([ServerConfig(key="s", command="x", args=(word,))]))

    assert found == word.rpartition("=")[2]


@pytest.mark.parametrize("args", [("--api-key", "correct-horse-battery"), ("--token=correct-horse-battery",)])
def test_what_is_called_a_secret_is_one_whatever_it_looks_like(args: tuple[str, ...]) -> None:
    assert set(secrets_of([ServerConfig(key="s", command="x", args=args)])) == {"correct-horse-battery"}
