"""`truename deprovision`: all that a person has is ended at once, and nothing lets them in any more."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.state_places import new_place
from truename import Catalog, project
from truename.audit import AuditRecord, in_order_of_time
from truename.auth.authorization_server.sessions import PLACE, SignInSession, SignInSessions, load_sessions
from truename.auth.inbound.authentication import token_store
from truename.auth.vault import Vault, open_vault
from truename.config import load
from truename.policy import Approvals, Caller, SqlApprovalStore, bound_call, subject_of
from truename.policy.principal import Principal
from truename.trust.approval_queue import ApprovalQueue, PendingCall, decided

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Run
    from truename.config import Config

IDP = "https://idp.example"
ANN = Principal(name="ann", issuer=IDP).key
NAMES = project(Catalog.from_mcp({"git": ["push"]}), "openai", style="prefixed")


@pytest.fixture(params=["sqlite", "postgresql"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A configuration in whose state ann (of an identity provider), ann (of a token) and bob have all there is."""
    path = tmp_path / "truename.toml"

    def written(state: str) -> Path:
        path.write_text(
            f'state = "{state}"\n[mcpServers.a]\ncommand = "true"\n[audit]\npath = "audit"\nrequired = true\n'
        )
        return path

    if request.param == "sqlite":
        yield written("state.db")
        return
    with new_place() as place:
        yield written(str(place.address))


def given(config: Config, principal: Principal) -> None:
    """Let somebody have a sign-in, a login, a decision and a pending call."""
    location, key = config.state_location(), principal.key
    session = SignInSession(
        id=f"id of {key}", name=principal.name, issuer=principal.issuer, client="c", until=int(time.time()) + 1_000
    )
    with closing(SignInSessions(location, time.time)) as sessions, open_vault(config) as vault:
        sessions.begin(session)
        vault.put(PLACE, session.id, b"refresh")
        vault.put("https://server.example", key, b"tokens")
    with ApprovalQueue(location) as queue:
        for number in range(2):
            made = bound_call(
                name="git_push",
                call_id=f"c{number}",
                arguments={"n": number},
                names=NAMES,
                caller=Caller(principal=key),
            )
            wanted = PendingCall(
                principal=key,
                fingerprint=made.fingerprint,
                subject=subject_of(made),
                arguments_digest=made.arguments_digest,
                arguments="{}",
                wire_name=made.wire_name,
            )
            asked = queue.ask(wanted, most=10, lasts=600.0)
        store = SqlApprovalStore(location)
        decided(asked, "always", Approvals(store), queue, approved=True, by="eve", lasts=600.0)
        store.close()


def counts(document: dict[str, Any]) -> dict[str, int]:
    return {name: len(document[name]) for name in ("tokens", "sign_ins", "logins", "approvals", "pending")}


ALL = {"tokens": 0, "sign_ins": 1, "logins": 1, "approvals": 1, "pending": 1}
NONE = dict.fromkeys(ALL, 0)


def test_all_of_one_person_is_ended_and_nothing_of_others(run: Run, source: Path) -> None:
    run("token", "add", "bob", source)
    for one in (Principal(name="ann", issuer=IDP), Principal(name="bob")):
        given(load(source), one)

    shown = run("deprovision", ANN, source, "--dry-run", "--json").document
    assert (shown["principal"], shown["barred"], counts(shown)) == (ANN, False, ALL)
    assert "4 items" in run("deprovision", "ann", source, "--dry-run").out
    done = run("deprovision", "ann", source, "--json")
    assert (done.status, done.document["principal"], counts(done.document)) == (0, ANN, ALL)
    again = run("deprovision", ANN, source, "--json")
    assert (again.status, again.document["was_barred"], counts(again.document)) == (0, True, NONE)

    config = load(source)
    others = run("deprovision", "bob", source, "--dry-run", "--json").document
    assert counts(others) == {**ALL, "tokens": 1}
    assert [one.name for one in load_sessions(config)] == ["bob"]
    with open_vault(config) as vault:
        assert vault.get("https://server.example", "bob") == b"tokens"
        assert vault.get("https://server.example", ANN) is None
        assert vault.get(PLACE, f"id of {ANN}") is None
    with token_store(config) as tokens:
        assert (tokens.is_barred(ANN), tokens.is_barred("bob"), tokens.is_barred("ann")) == (True, False, False)


def test_the_audit_log_has_who_ended_what(run: Run, source: Path) -> None:
    given(load(source), Principal(name="ann", issuer=IDP))
    run("deprovision", ANN, source)
    run("deprovision", ANN, source, "--readmit")
    directory = load(source).settings.audit.directory
    records = [one for _, one in in_order_of_time(directory) if isinstance(one, AuditRecord) and one.kind == "access"]
    assert [one.body["what"] for one in records] == ["deprovisioned", "readmitted"]
    first = records[0].body
    assert (first["who"], first["sign_ins"], first["logins"], first["approvals"], first["pending"]) == (ANN, 1, 1, 1, 1)
    assert "by" in first


def test_a_table_shows_what_was_ended_and_a_token_of_the_configuration_is_named(run: Run, source: Path) -> None:
    run("token", "add", "carl", source)
    made = run("token", "add", "carl", source, "--print-hash")
    digest = next(line for line in made.err.splitlines() if line.startswith("hash"))
    source.write_text(f"{source.read_text()}[access.tokens.carl]\n{digest}\n")
    done = run("deprovision", "carl", source)
    assert done.status == 0
    assert "Deprovisioned carl: 2 items ended; carl is barred." in " ".join(done.out.split())
    assert "remove it from the configuration" in " ".join(done.err.split())
    with token_store(load(source)) as tokens:
        assert [one.name for one in tokens.now().values()] == ["carl"]
        assert tokens.holder(made.out.strip(), time.time()) is not None
        assert tokens.is_barred("carl")
    assert "carl is barred since" in " ".join(run("token", "list", source).err.split())
    readmitted = run("deprovision", "carl", source, "--readmit").out
    assert "carl is no longer barred" in readmitted
    assert "is not barred" in run("deprovision", "carl", source, "--readmit").out
    assert run("token", "list", source, "--json").document["barred"] == []


def test_a_name_that_several_have_is_not_guessed(run: Run, source: Path) -> None:
    for issuer in (IDP, "https://other.example"):
        given(load(source), Principal(name="ann", issuer=issuer))
    refused = run("deprovision", "ann", source)
    assert refused.status == 2
    assert "is the name of 2 principals" in refused.err
    assert run("deprovision", ANN, source, "--dry-run").status == 0


def test_somebody_of_whom_nothing_is_known_is_barred_too(run: Run, source: Path) -> None:
    key = json.dumps([IDP, "dora"])
    assert run("deprovision", key, source).status == 0
    with token_store(load(source)) as tokens:
        assert tokens.is_barred(key)


def test_a_principal_with_an_issuer_is_barred_however_its_json_is_written(run: Run, source: Path) -> None:
    assert run("deprovision", '["https:\\/\\/idp.example","dora"]', source).status == 0
    with token_store(load(source)) as tokens:
        assert tokens.is_barred(json.dumps([IDP, "dora"]))


OAUTH = f"""
[access.oauth.idp]
issuer = "{IDP}"
"""


@pytest.mark.parametrize(
    ("person", "fact"),
    [
        ("carl", "nothing is known of a principal 'carl'"),
        ('["https://idp.example/", "carl"]', "nobody comes from the issuer 'https://idp.example/'"),
        ("[broken", "is not a principal"),
        ('["https://idp.example"]', "is not a principal"),
        ('["https://idp.example", 5]', "is not a principal"),
        ("an n", "nothing is known of a principal 'an n'"),
    ],
)
def test_whoever_can_be_nobody_is_not_said_to_be_barred(run: Run, tmp_path: Path, person: str, fact: str) -> None:
    path = tmp_path / "truename.toml"
    path.write_text(f'state = "state.db"\n[mcpServers.a]\ncommand = "true"\n{OAUTH}')

    told = run("deprovision", person, path)

    assert told.status == 2
    assert fact in told.err
    with token_store(load(path)) as tokens:
        assert not tokens.barred


def test_a_person_of_an_issuer_of_whom_nothing_is_known_is_barred(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "truename.toml"
    path.write_text(f'state = "state.db"\n[mcpServers.a]\ncommand = "true"\n{OAUTH}')
    assert run("deprovision", json.dumps([IDP, "carl"]), path).status == 0
    with token_store(load(path)) as tokens:
        assert tokens.is_barred(json.dumps([IDP, "carl"]))


def test_no_token_is_made_for_whom_none_lets_in(run: Run, source: Path) -> None:
    assert run("deprovision", "bob", source).status == 0
    told = run("token", "add", "bob", source)
    assert (told.status, "bob was deprovisioned, and is barred" in told.err) == (2, True)
    assert run("deprovision", "bob", source, "--readmit").status == 0
    assert run("token", "add", "bob", source).status == 0


def test_logins_are_ended_without_the_key_of_the_vault(run: Run, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(load(source), Principal(name="bob"))
    monkeypatch.setenv("TRUENAME_VAULT_KEY", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
    assert run("deprovision", "bob", source).status == 0
    with Vault(load(source).state_location(), ()) as vault:
        assert [principal for _, principal, _ in vault.entries() if principal == "bob"] == []


def test_a_state_in_memory_has_nothing_to_end(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "truename.toml"
    path.write_text('state = "memory"\n[mcpServers.a]\ncommand = "true"\n')
    assert run("deprovision", "ann", path).status == 2
