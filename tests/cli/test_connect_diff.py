"""The diff that a dry run shows: nothing in it that others must not see."""

from __future__ import annotations

from pathlib import Path

import pytest

from truename.cli._rendering import diff


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ('"primaryApiKey": "sk-abc",', '"primaryApiKey": "***",'),
        ("api_key: sk-abc", "api_key: ***"),
        ('token = "abc" # mine', 'token = "***" # mine'),
        ('"Authorization": "Bearer ${TRUENAME_TOKEN}"', '"Authorization": "Bearer ${TRUENAME_TOKEN}"'),
        ('bearer_token_env_var = "TRUENAME_TOKEN"', 'bearer_token_env_var = "TRUENAME_TOKEN"'),
        ('"maxTokens": {"a": 1}', '"maxTokens": {"a": 1}'),
    ],
)
def test_secrets_around_a_change_are_not_shown(line: str, shown: str) -> None:
    assert list(diff(Path("x"), b"", line.encode(), ()))[-1] == f"+{shown}"


def test_long_lines_and_new_files_of_a_diff_are_shown_in_short() -> None:
    lines = list(diff(Path("x"), None, b"a" * 500 + b"\nkey: s3cret\n", ["s3cret", "ab"]))

    assert lines[0] == "--- /dev/null"
    assert lines[3].endswith("... (501 characters)")
    assert lines[4] == "+key: ***"
