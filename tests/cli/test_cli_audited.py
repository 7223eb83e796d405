"""What commands decide is in the audit journal: by whom and how; and where it has to be, else nothing is decided."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from truename import Catalog, project
from truename.audit import AuditLog, AuditRecord, read_records, verify_log
from truename.auth.oauth import TokenResponse
from truename.auth.outbound.logins import Logins
from truename.auth.vault import open_vault
from truename.config import load
from truename.config.credentials import Login
from truename.config.trust import Trust
from truename.files.user import whoami
from truename.policy import Approvals, Caller, bound_call, subject_of
from truename.trust import OfferedTools, PinStore, admit
from truename.trust.approval_queue import ApprovalQueue, PendingCall

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Outcome, Run

TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("read", "write")]
CONFIGURATION = """
[mcpServers.fs]
command = "fs"

[audit]
path = "audit"
required = {required}
key = "{key}"
"""
KEY = "k" * 40


class House:
    """A configuration with a journal, as a gateway that ended left it."""

    def __init__(self, folder: Path, required: bool) -> None:
        self.file = folder / "truename.toml"
        self.file.write_text(CONFIGURATION.format(required=str(required).lower(), key=KEY))
        self.journal = folder / "audit"
        self.config = load(self.file)

    def pins(self) -> PinStore:
        return PinStore(self.config.pins_location())

    def offers(self) -> None:
        """Have two tools wait for a review."""
        tools = list(Catalog.from_mcp({"fs": TOOLS}).values())
        with self.pins() as book:
            found = admit(OfferedTools(tools), book.pins(), book.seen(), Trust(first="review"))
            book.note(found.notes)

    def asks(self) -> str:
        """Have a call wait for a decision, and return its key."""
        names = project(Catalog.from_mcp({"git": ["push"]}), "openai", style="prefixed")
        call = bound_call(
            name="git_push", call_id="c1", arguments={"to": "s3cr3t"}, names=names, caller=Caller(principal="ada")
        )
        wanted = PendingCall(
            principal="ada",
            fingerprint=call.fingerprint,
            subject=subject_of(call),
            arguments_digest=call.arguments_digest,
            arguments="to: s3cr3t",
            wire_name=call.wire_name,
            rule="look first",
        )
        with ApprovalQueue(self.approvals) as book:
            return book.ask(wanted, most=10, lasts=600.0).key

    @property
    def approvals(self) -> Path:
        found = self.config.state_location().path
        assert found is not None
        return found

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        if not self.journal.exists():
            return []
        assert verify_log(self.journal, KEY.encode())[1] == ()
        found = [one for one in read_records(self.journal, KEY.encode()) if isinstance(one, AuditRecord)]
        return [{"kind": one.kind, **one.body} for one in found if one.kind in kinds]

    @contextmanager
    def unwritable(self) -> Iterator[None]:
        """Have a journal whose end was cut off: nothing is added to it."""
        with AuditLog(self.journal, KEY.encode()) as journal:
            journal.append([("start", {}), ("stop", {})])
        file = self.journal / "000001.jsonl"
        whole = file.read_bytes()
        file.write_bytes(whole[:-20])
        try:
            yield
        finally:
            assert file.read_bytes() == whole[:-20]
            assert len(list(self.journal.glob("*.jsonl"))) == 1


@pytest.fixture(params=[False, True], ids=["told", "required"])
def house(tmp_path: Path, request: pytest.FixtureRequest) -> House:
    return House(tmp_path, required=request.param)


def _grant(run: Run, house: House) -> Outcome:
    return run("approvals", "grant", house.asks(), "--config", house.file, "--scope", "always")


def _deny(run: Run, house: House) -> Outcome:
    return run("approvals", "deny", house.asks(), "--config", house.file)


def _accept(run: Run, house: House) -> Outcome:
    house.offers()
    return run("pins", "accept", "fs@1/read@1", "--config", house.file)


def _reject(run: Run, house: House) -> Outcome:
    house.offers()
    return run("pins", "reject", "--all", "--config", house.file)


def _forget(run: Run, house: House) -> Outcome:
    house.offers()
    return run("pins", "forget", "fs@1/read@1", "--config", house.file)


def _token(run: Run, house: House) -> Outcome:
    return run("token", "add", "ann", house.file, "--groups", "eng", "--expires", "90d")


DECISIONS = {
    "grant": (_grant, "approval", {"what": "granted", "who": "ada", "covers": "always", "rule": "look first"}),
    "deny": (_deny, "approval", {"what": "denied", "who": "ada", "covers": "call", "tool": "git@1/push@1"}),
    "accept": (_accept, "definition", {"what": "accepted", "tool": "fs@1/read@1", "server": "fs"}),
    "reject": (_reject, "definition", {"what": "rejected", "tool": "fs@1/read@1", "upstream_name": "read"}),
    "forget": (_forget, "definition", {"what": "forgotten", "tool": "fs@1/read@1"}),
    "token": (_token, "access", {"what": "token_made", "who": "ann", "groups": "eng"}),
}


@pytest.mark.parametrize("which", DECISIONS)
def test_a_decision_is_in_the_journal_with_who_made_it_and_how(run: Run, house: House, which: str) -> None:
    decide, kind, wanted = DECISIONS[which]
    assert decide(run, house).status == 0
    first, *others = house.records(kind)
    assert {name: first[name] for name in wanted} == wanted
    assert (first["by"], first["via"]) == (whoami(), "command")
    assert [one["tool"] for one in others] == (["fs@1/write@1"] if which == "reject" else [])
    begun = house.records("begin")
    if not house.config.settings.audit.required:
        assert begun == []
        return
    # It was on the disk before anything was decided.
    (before,) = begun
    assert (before["of"], before["what"], before["by"]) == (kind, wanted["what"], whoami())
    assert before.get("count") == (2 if which == "reject" else None)
    numbers = [one.number for one in read_records(house.journal, KEY.encode()) if isinstance(one, AuditRecord)]
    assert numbers == list(range(1, 3 + len(others) + 1))


@pytest.mark.parametrize("which", DECISIONS)
def test_what_can_not_be_written_down_is_not_done_where_that_is_required_and_else_told(
    run: Run, house: House, which: str
) -> None:
    decide, _, _ = DECISIONS[which]
    with house.unwritable():
        done = decide(run, house)
    is_required = house.config.settings.audit.required
    assert (done.status == 0) != is_required
    said = " ".join(done.err.split())
    assert ("Nothing was done" in said) == is_required
    assert ("Not in the audit log" in said) != is_required
    decided = [
        *(one.key for one in Approvals.open(house.approvals).grants()),
        *_words(house),
        *(run("token", "list", house.file, "--json").document["tokens"]),
    ]
    if which == "forget":
        assert decided == (["waiting"] * 2 if is_required else ["waiting"])
    else:
        assert (decided in ([], ["waiting"] * 2)) == is_required


def _words(house: House) -> list[str]:
    with house.pins() as book:
        return [*(one.word for one in book.seen().values()), *("pinned" for _ in book.pins())]


def test_a_decision_that_is_taken_back_and_a_token_that_is_revoked(run: Run, house: House) -> None:
    key = _grant(run, house).out.split("approvals revoke ")[1].split("`")[0]
    assert run("approvals", "revoke", key, "--config", house.file).status == 0
    assert run("approvals", "revoke", key, "--config", house.file).status == 1
    granted, revoked = house.records("approval")
    assert granted["grant"] == revoked["grant"] == key
    assert (revoked["what"], revoked["who"], revoked["tool"]) == ("revoked", "ada", "git@1/push@1")
    text = _token(run, house).out.strip()
    assert run("token", "revoke", "ann", house.file).status == 0
    made, gone = house.records("access")
    assert (gone["what"], gone["who"], gone["token"]) == ("revoked", "ann", made["token"])
    # Neither arguments nor the text of a token are anywhere.
    written = b"".join(file.read_bytes() for file in house.journal.iterdir())
    assert b"s3cr3t" not in written
    assert text[-43:].encode() not in written


def test_who_logs_out_is_in_the_journal_and_their_token_is_not(run: Run, house: House) -> None:
    source = house.file.read_text() + '\n[mcpServers.far]\nurl = "https://far.example/mcp"\n'
    source += '[mcpServers.far.auth]\ntype = "login"\nissuer = "http://127.0.0.1:1"\nclient_id = "c"\n'
    house.file.write_text(source)
    config = load(house.file)
    (server,) = (one for one in config.enabled if one.key == "far")
    assert isinstance(server.auth, Login)
    with open_vault(config) as vault:
        Logins(server.auth, server.url or "", vault).keep("ann", TokenResponse("t0k3n", 2e9, ""))
    # The authorization server cannot be reached: the tokens were deleted here all the same.
    assert run("logout", "far", house.file, "--for", "ann").status == 3
    (record,) = house.records("credential")
    assert (record["what"], record["who"], record["server"], record["by"]) == ("logged_out", "ann", "far", whoami())
    assert run("logout", "far", house.file, "--for", "ann").status == 1
    assert len(house.records("credential")) == 1
    assert b"t0k3n" not in b"".join(file.read_bytes() for file in house.journal.iterdir())


def test_a_login_that_cannot_be_revoked_is_deleted_and_told(run: Run, house: House) -> None:
    source = house.file.read_text() + '\n[mcpServers.far]\nurl = "https://far.example/mcp"\n'
    source += '[mcpServers.far.auth]\ntype = "login"\nissuer = "http://127.0.0.1:1"\nclient_id = "c"\n'
    house.file.write_text(source)
    config = load(house.file)
    (server,) = (one for one in config.enabled if one.key == "far")
    assert isinstance(server.auth, Login)
    with open_vault(config) as vault:
        Logins(server.auth, server.url or "", vault).keep("ann", TokenResponse("t0k3n", 2e9, ""))
    done = run("deprovision", "ann", house.file)
    assert (done.status, "may still be valid at its issuer. far: " in " ".join(done.err.split())) == (3, True)
    (record,) = house.records("access")
    assert (record["what"], record["who"], record["logins"], record["by"]) == ("deprovisioned", "ann", 1, whoami())
    assert run("deprovision", "ann", house.file).status == 0


def test_what_decides_nothing_writes_nothing(run: Run, house: House) -> None:
    house.offers()
    for words in (
        *(("pins", "accept", "fs@1/none@1"), ("pins", "list"), ("approvals", "grant", "none")),
        *(("approvals", "revoke", "none"), ("approvals", "list")),
    ):
        run(*words, *(() if words[1] == "list" else ("--config", house.file)))
    assert run("token", "revoke", "nobody", house.file).status == 1
    assert not house.journal.exists()


def test_a_journal_that_a_command_begins_is_its_owners_alone(run: Run, house: House) -> None:
    assert _token(run, house).status == 0
    assert not any(path.stat().st_mode & 0o077 for path in (house.journal, *house.journal.iterdir()))
