"""`truename token`: made once, listed without the text, revoked by id or name; sign-ins beside them."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from truename.auth.authorization_server.sessions import PLACE, SignInSession, SignInSessions
from truename.auth.inbound.authentication import token_store
from truename.auth.vault import Vault
from truename.config import load

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "true"}}}))
    return path


def test_a_token_is_printed_once_and_listed_without_its_text(run: Run, source: Path) -> None:
    made = run("token", "add", "ann", source, "--groups", "eng, ops", "--scopes", "read", "--expires", "90d")
    text = made.out.strip()
    assert made.status == 0
    assert re.fullmatch(r"tn1_[0-9a-f]{16}_[A-Za-z0-9_-]{43}", text)
    listed = run("token", "list", source)
    assert re.search(r"\bann +eng ops +read ", listed.out)
    assert text[21:] not in made.err + listed.out + listed.err
    (row,) = run("token", "list", source, "--json").document["tokens"]
    assert (row["name"], row["groups"], row["scopes"], row["expired"]) == ("ann", ["eng", "ops"], ["read"], False)
    kept = token_store(load(source)).holder(text, time.time())
    assert kept is not None
    assert kept.expires is not None
    assert abs(kept.expires - time.time() - 90 * 86_400) < 60


def test_json_has_the_token_and_what_is_kept(run: Run, source: Path) -> None:
    made = run("token", "add", "ann", source, "--json").document
    assert made["token"].startswith(f"tn1_{made['id']}_")
    assert made["expires"] is None


def test_a_token_for_the_configuration_is_kept_nowhere(run: Run, source: Path, tmp_path: Path) -> None:
    made = run("token", "add", "ci", source, "--print-hash", "--groups", "robots", "--expires", "1d")
    assert run("token", "list", source, "--json").document["tokens"] == []
    lines = [line for line in made.err.splitlines() if line.startswith(("[", "hash", "groups", "expires"))]
    toml = tmp_path / "truename.toml"
    toml.write_text("\n".join(["[mcpServers.a]", 'command = "true"', *lines]))
    found = token_store(load(toml)).holder(made.out.strip(), time.time())
    assert found is not None
    assert (found.name, found.groups) == ("ci", ("robots",))
    refused = run("token", "revoke", "ci", toml)
    assert (refused.status, "is in the configuration" in refused.err) == (2, True)


def test_revoking_takes_an_id_a_name_or_the_token_itself(run: Run, source: Path) -> None:
    texts = [run("token", "add", name, source).out.strip() for name in ("ann", "ann", "bob", "eve")]
    assert len(run("token", "revoke", "ann", source, "--json").document["revoked"]) == 2
    assert run("token", "revoke", texts[2], source).status == 0
    assert run("token", "revoke", texts[3][4:20], source).status == 0
    assert run("token", "list", source, "--json").document["tokens"] == []
    nobody = run("token", "revoke", "zed", source)
    assert (nobody.status, "There is no token or sign-in 'zed'" in nobody.out) == (1, True)


@pytest.mark.parametrize(
    "words",
    [
        ("add", "a b"),
        ("add", "\x1b[31mann"),
        ("add", ""),
        ("add", "ann", "--expires", "soon"),
        ("add", "ann", "--expires", "0d"),
        ("add", "ann", "--expires", "99999w"),
        ("add", "ann", "--groups", "a b"),
        ("frobnicate",),
    ],
)
def test_what_can_t_be_is_a_usage_fault(run: Run, source: Path, words: tuple[str, ...]) -> None:
    verb, *rest = words
    done = run("token", verb, *rest[:1], *([source] if rest else []), *rest[1:])
    assert done.status == 2
    assert done.err.startswith("error: ")
    assert "\x1b" not in done.err


def test_people_who_signed_in_are_listed_and_revoked(run: Run, source: Path) -> None:
    location = load(source).state_location()
    now = int(time.time())
    sessions = SignInSessions(location, time.time)
    for name, until in (("ann", now + 600), ("old", now - 1)):
        sessions.begin(SignInSession(id=name * 8, name=name, issuer="https://idp", client="c", made=now, until=until))
    with Vault(location, [bytes(32)]) as vault:
        vault.put(PLACE, "ann" * 8, b"refresh")
    (row,) = run("token", "list", source, "--json").document["sign_ins"]
    assert (row["name"], row["issuer"]) == ("ann", "https://idp")
    assert len(run("token", "revoke", "ann", source, "--json").document["ended"]) == 1
    assert sessions.all() == ()
    sessions.close()
    with Vault(location, [bytes(32)]) as vault:
        assert vault.get(PLACE, "ann" * 8) is None


def test_a_damaged_file_is_told_and_left_alone(run: Run, source: Path) -> None:
    run("token", "add", "ann", source)
    path = load(source).state_location().path
    assert path is not None
    path.write_text("{")
    for words in (("list",), ("add", "bob"), ("revoke", "ann")):
        done = run("token", *words, source)
        assert done.status == 2
        assert "Restore it from a copy" in done.err
    assert path.read_text() == "{"
