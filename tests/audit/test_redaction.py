"""What real tools are given, and which of it no journal keeps: secrets in all shapes, and sentences in none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.audit import Redaction

HIDDEN = "[redacted]"
REDACTION = Redaction("redacted")

SAID = {
    "a header with a key": "X-Api-Key: hunter2",
    "a header of another kind": "Authorization: Token hunter2",
    "a cookie": "Cookie: theme=dark; session=hunter2",
    "a variable called a key": "OPENAI_KEY=hunter2",
    "a variable called otherwise": "GITHUB_PAT=hunter2",
    "an account's key": "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=hunter2==",
    "a connection in words": "host=db user=ann password = 'hunter2'",
    "a password without a user": "redis://:hunter2@cache:6379/0",
    "a token for a user": "https://0a1b2c3d4e5f6a7b8c9d@git.example/a/b",
    "a key in an address": "https://api.example/x?key=hunter2zz",
    "a signature in an address": "https://store.example/x?se=1&sig=hunter2zz",
    "an address in an address": "https://login.example/?next=%26password%3Dhunter2",
    "JSON with a header": '{"headers": {"authorization": "hunter2"}}',
    "JSON with a table of secrets": '{"credentials": {"user": "ann", "code": "hunter2"}}',
    "JSON with a field of a form": '[{"name": "password", "value": "hunter2"}]',
    "JSON with a number": '{"pin": 1234}',
    "JSON in JSON": json.dumps(json.dumps({"password": "hunter2"})),
    "JSON within a text": 'Send {\\"password\\": \\"hunter2\\"} there.',
    "YAML": "db:\n  user: ann\n  password: hunter2\n",
    "YAML in a list": "env:\n  - db-password: hunter2\n",
    "an INI file": "[db]\npassword = hunter2\n",
    "a program": "connect({user: 'ann', password: 'hunter2'})",
    "a user on a command line": "curl -u ann:hunter2 https://x",
    "a header on a command line": "curl -H 'X-Api-Key: hunter2' https://x",
    "an option": "tool login --with-token hunter2",
    "an option of a database": "mysqldump -h db -phunter2 all",
    "sshpass": "sshpass -p hunter2 ssh ann@x",
    "SQL": "ALTER USER ann WITH PASSWORD 'hunter2'",
    "SQL of another kind": "CREATE USER ann IDENTIFIED BY 'hunter2'",
    ".netrc": "machine x login ann password hunter2",
    "XML": "<add><password>hunter2</password></add>",
    "XML with attributes": '<add key="db.password" value="hunter2"/>',
    "a token of letters alone": "Send Bearer abcdEFGHijklMNOP to it.",
    "a web hook": "https://hooks.slack.com/services/T00000000/B00000000/hunter2hunter2",
    "a key by its form": "AIzaSyA0123456789012345678901234567890",
    "a token by its form": "dop_v1_0123456789abcdef0123456789abcdef",
    "a bot's token": "1234567890:AAhunter2hunter2hunter2hunter2hunter2",
}


@pytest.mark.parametrize("which", SAID)
def test_a_text_with_a_secret_is_hidden(which: str) -> None:
    text = SAID[which]
    assert REDACTION.of({"text": text, "all": [text]}) == {"text": HIDDEN, "all": [HIDDEN]}


@pytest.mark.parametrize(
    "text",
    [
        "Password: see the wiki.",
        "password: required",
        "password: ${DB_PASSWORD}",
        "Reset the password for Ann, and the token of Bob.",
        "Cookie: with chocolate",
        "Secret Santa: everybody brings something.",
        "See you.\nSignature: Bob",
        "Use --password to be asked, or --token FILE.",
        "docker run -u 1000:1000 -p 8080:80 image",
        "Basic understanding of bearer certificates.",
        "Authorization: needed before Friday",
        "https://shop.example/?key=birthday&code=new",
        "https://example.com/@ann/notes",
        "if token == None: token = read_token()",
        '{"max_tokens": 500, "total_tokens": 12}',
        '{"note": "no secret here", "sort_key": "date", "issueKey": "AB-12"}',
        "max_tokens=500",
        "[not JSON",
    ],
)
def test_a_text_that_tells_no_secret_is_kept(text: str) -> None:
    assert REDACTION.of({"text": text, "all": [text]}) == {"text": text, "all": [text]}


@pytest.mark.parametrize(
    "name", ["OPENAI_KEY", "accountKey", "db.pass", "basicAuth", "X-Auth", "auth", "jwt", "otp_code", "mfaCode", "PAT"]
)
def test_a_name_of_a_secret_is_known_however_it_is_written(name: str) -> None:
    assert REDACTION.of({name: "x"}) == {name: HIDDEN}
    assert REDACTION.of({"env": [{"name": name, "value": "x"}]}) == {"env": [{"name": name, "value": HIDDEN}]}


@pytest.mark.parametrize(
    "table",
    [
        {"author": "ann", "keyboard": "de", "monkey": 1, "compass": "N", "passenger": "bob", "path": "/x"},
        {"sort_key": "date", "issueKey": "AB-12", "pass_rate": 0.5, "auth_method": "none", "pattern": "x"},
        {"max_tokens": 500, "token_count": 7},
        {"element": "Search box in the head of the page", "text": "cats"},
    ],
)
def test_a_name_that_only_sounds_like_one_hides_nothing(table: dict[str, Any]) -> None:
    assert REDACTION.of(table) == table


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (
            {"element": "Password field of the form to log in", "ref": "e5", "text": "x"},
            {"element": "Password field of the form to log in", "ref": "e5", "text": HIDDEN},
        ),
        ({"type": "password", "value": "x"}, {"type": "password", "value": HIDDEN}),
        ({"xpath": "//input[@id='password']", "value": "x"}, {"xpath": "//input[@id='password']", "value": HIDDEN}),
        ({"args": ["-u", "ann:hunter2", "-v"]}, {"args": ["-u", HIDDEN, "-v"]}),
        ({"args": ["--header", "X-Api-Key: hunter2"]}, {"args": ["--header", HIDDEN]}),
        ({"rows": [["user", "ann"], ["password", "x"]]}, {"rows": [["user", "ann"], ["password", HIDDEN]]}),
    ],
)
def test_a_secret_that_another_value_tells_of_is_hidden(said: dict[str, Any], kept: dict[str, Any]) -> None:
    assert REDACTION.of(said) == kept


def test_a_secret_is_known_by_what_stands_behind_the_part_that_is_kept() -> None:
    token = f"eyJ{'a' * 900}.{'b' * 900}.c"
    assert REDACTION.of({"text": "x " * 200 + token}) == {"text": HIDDEN}


def test_how_much_is_looked_at_is_bounded() -> None:
    kept = REDACTION.of({"all": ["password=hunter2 " + "x" * 2_980] * 60})
    assert kept is not None
    assert kept["all"] == [HIDDEN] * 33 + ["[too much]"] * 27


@given(st.recursive(st.text(max_size=5), lambda inner: inner.map(lambda text: json.dumps([text])), max_leaves=20))
def test_json_in_json_is_looked_at_without_harm(text: str) -> None:
    assert REDACTION.of({"text": text}) is not None
