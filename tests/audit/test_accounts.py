"""What a record says of a call, and what of its arguments it never says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from truename import ToolId
from truename.audit import AuditLog, Redaction, call_record
from truename.catalog import Origin
from truename.policy.call import CallEvent
from truename.policy.principal import Principal

if TYPE_CHECKING:
    from pathlib import Path

EVENT = CallEvent(
    wire_name="git_push\x1b[31m",
    outcome="ok",
    began=1.0,
    seconds=0.25,
    id=ToolId.parse("git@1/push@1"),
    digest="sha256:1",
    origin=Origin(server="git", name="push", server_id="git"),
    principal=Principal(name="ann", issuer="https://idp.example", client="desk"),
    arguments_digest="sha256:2",
    decision="allow",
    rule="all",
    arguments={"branch": "main", "token": "hunter2"},
)


def test_a_record_names_the_tool_by_identity_and_who_called() -> None:
    assert call_record(EVENT, Redaction()) == {
        "who": '["https://idp.example", "ann"]',
        "oauth_client": "desk",
        "tool": "git@1/push@1",
        "server": "git",
        "upstream_name": "push",
        "digest": "sha256:1",
        "name": "git_push\x1b[31m",
        "decision": "allow",
        "rule": "all",
        "outcome": "ok",
        "seconds": 0.25,
    }


@pytest.mark.parametrize(
    ("kept", "more"),
    [
        ("none", {}),
        ("digest", {"arguments_digest": "sha256:2"}),
        ("redacted", {"arguments_digest": "sha256:2", "arguments": {"branch": "main", "token": "[redacted]"}}),
    ],
)
def test_arguments_are_kept_only_as_asked(kept: Any, more: dict[str, Any]) -> None:
    plain = call_record(EVENT, Redaction())
    assert call_record(EVENT, Redaction(kept)) == plain | more


SECRETS = {
    "password": "hunter2",
    "DB_PASSWD": "hunter2",
    "authorization": "x",
    "Set-Cookie": "x",
    "client_secret": "x",
    "accessKey": "x",
    "api-key": "x",
    "a": "-----BEGIN RSA PRIVATE KEY-----",
    "b": "see eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
    "c": "ghp_0123456789abcdefghij0123456789abcdef",
    "d": "AKIA0123456789ABCDEF",
    "e": "curl -H 'Authorization: bearer abcdefghijkl'",
    "f": "postgres://ann:hunter2@db/x",
    "g": "sk-proj-0123456789abcdefgh",
    "h": '{"user": "ann", "password": "hunter2"}',
    "i": "https://api.example/v1?user=ann&access_token=hunter2",
    "j": "mysql -u ann --password=hunter2",
    "k": "export DB_PASSWORD=hunter2",
    "pwd": "hunter2",
}


@pytest.mark.parametrize(("key", "value"), SECRETS.items())
def test_what_looks_like_a_secret_is_hidden_at_any_depth(key: str, value: str) -> None:
    found = Redaction("redacted").of({"list": [{"deep": {key: value}}]})
    assert found == {"list": [{"deep": {key: "[redacted]"}}]}


@pytest.mark.parametrize(
    "text", ["The password: see the wiki.", "a token is a word", "https://x/?next=token", '{"token": 7}', "key=value"]
)
def test_a_text_that_only_speaks_of_secrets_is_kept(text: str) -> None:
    assert Redaction("redacted").of({"note": text}) == {"note": text}


HIDDEN = "[redacted]"


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ({"name": "password", "value": "x"}, {"name": "password", "value": HIDDEN}),
        ({"Value": "x", "Key": "API Key"}, {"Value": HIDDEN, "Key": "API Key"}),
        ({"field": "otp", "value": {"of": ["x"]}}, {"field": "otp", "value": HIDDEN}),
        ({"header": "Authorization", "values": ["x"]}, {"header": "Authorization", "values": HIDDEN}),
        ({"id": "patient_name", "text": "ann"}, {"id": "patient_name", "text": HIDDEN}),
        (["--user", "ann", "--password", "x"], ["--user", "ann", "--password", HIDDEN]),
        (["Cookie", "x"], ["Cookie", HIDDEN]),
        ({"name": "city", "value": "Rome"}, {"name": "city", "value": "Rome"}),
        (
            {"name": "How to reset a password", "text": "By mail."},
            {"name": "How to reset a password", "text": "By mail."},
        ),
        (["Choose a new password now.", "Thanks."], ["Choose a new password now.", "Thanks."]),
    ],
)
def test_a_secret_whose_name_stands_beside_it_is_hidden(said: Any, kept: Any) -> None:
    redaction = Redaction("redacted", keys=("patient*",))
    assert redaction.of({"all": [said]}) == {"all": [kept]}
    if isinstance(said, dict):
        assert redaction.of(said) == kept


def test_an_operator_may_hide_more() -> None:
    assert Redaction("redacted", keys=("patient*",)).of({"PatientName": "ann"}) == {"PatientName": "[redacted]"}


@given(
    st.dictionaries(
        st.text(st.characters()),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=20,
        ),
    )
)
def test_whatever_the_arguments_are_a_journal_can_hold_them(arguments: dict[str, Any]) -> None:
    found = Redaction("redacted").of(arguments)
    assert json.loads(rfc8785.dumps(found)) is not None


def test_what_is_kept_is_bounded() -> None:
    deep: Any = "end"
    for _ in range(100):
        deep = [deep]
    found = Redaction("redacted").of({"text": "x" * 100_000, "many": list(range(10_000)), "deep": deep})
    assert len(json.dumps(found)) < 4_000


def test_no_arguments_are_too_large_to_be_written_down(tmp_path: Path) -> None:
    wide: Any = "x" * 10
    for _ in range(4):
        wide = {f"{number}" * 50: wide for number in range(20)}
    event = replace(EVENT, arguments={"wide": wide}, arguments_digest="")
    account = call_record(event, Redaction("redacted"))
    assert len(json.dumps(account)) < 200_000
    assert str(account["arguments_digest"]).startswith("sha256:")
    with AuditLog(tmp_path) as journal:
        journal.append([("call", account)])
