"""`truename state`: where the state is, whether it is whole, and how to go on after changes were lost."""

from __future__ import annotations

import base64
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.support.state_places import new_place
from tests.support.trust_pending import call, wanted
from truename import ToolId
from truename.audit import AuditLog
from truename.audit.reading import recorded_revision
from truename.auth.vault import open_vault
from truename.config import load
from truename.ledger import Ledger
from truename.storage import StateLocation, known_revision
from truename.trust import PinnedTool, PinStore
from truename.trust.approval_queue import ApprovalQueue
from truename.trust.pins import digest_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "truename.toml"
    path.write_text('state = "state.db"\n[audit]\npath = "audit"\n[mcpServers.a]\ncommand = "true"\n')
    return path


def test_the_path_is_printed_whether_or_not_it_exists(run: Run, source: Path) -> None:
    assert run("state", "path", source).out == f"{source.with_name('state.db')}\n"
    assert run("state", "path", source, "--json").document == {
        "path": str(source.with_name("state.db")),
        "exists": False,
    }
    assert run("state", "check", source).status == 2


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://ann:pw@db.example/tn?sslmode=verify-full&sslrootcert=/a%20b.pem&scope=x&channel_binding=require",
            "postgresql://ann@db.example/tn?sslmode=verify-full&sslrootcert=/a%20b.pem&channel_binding=require&scope=x",
        ),
        ("postgresql://db.example/tn?pass%77ord=pw&sslpassword=pw&user=ann", "postgresql://db.example/tn?user=ann"),
        ("postgres://ann:pw@one,two:5433/tn", "postgresql://ann@one,two:5433/tn"),
    ],
)
def test_a_url_is_printed_with_all_but_the_password(run: Run, source: Path, url: str, shown: str) -> None:
    source.write_text(f'state = "{url}"\n[mcpServers.a]\ncommand = "true"\n')
    assert run("state", "path", source).out == f"{shown}\n"
    assert run("state", "path", source, "--json").document["path"] == shown


def test_a_check_proves_every_pin(run: Run, source: Path) -> None:
    location = load(source).pins_location()
    content = {"name": "push"}
    with PinStore(location) as book:
        id = ToolId.parse("git@1/push@1")
        digest = digest_of(content)
        book.trust([PinnedTool(id=id, server="git", name="push", digest=digest, content=content, at="")])
    assert run("state", "check", source).status == 0
    with closing(sqlite3.connect(source.with_name("state.db"))) as data:
        data.execute("UPDATE pin SET content = ?", ('{"name": "pull"}',))
        data.commit()
    found = run("state", "check", source, "--json")
    (problem,) = found.document["problems"]
    assert (found.status, "'git@1/push@1' is not the one that was trusted" in problem) == (1, True)


def test_a_whole_database_is_said_to_be_whole(run: Run, source: Path) -> None:
    run("token", "add", "ann", source)
    found = run("state", "check", source, "--json")
    assert (found.status, found.document["problems"]) == (0, [])
    assert found.document["parts"]["token"] == 2
    assert "is whole: " in run("state", "check", source.with_name("state.db")).out


@pytest.mark.parametrize("how", ["damaged", "another table", "emptied", "missing"])
def test_a_damaged_or_lost_database_is_reported_and_left_alone(run: Run, source: Path, how: str) -> None:
    run("token", "add", "ann", source)
    path = source.with_name("state.db")
    if how == "damaged":
        path.write_bytes(path.read_bytes()[:9_000])
    elif how == "another table":
        with closing(sqlite3.connect(path)) as data:
            data.execute("ALTER TABLE token ADD COLUMN more TEXT")
            data.commit()
    elif how == "emptied":
        path.write_bytes(b"")
    else:
        path.unlink()
    before = path.read_bytes() if path.exists() else None

    for _ in range(2):
        found = run("state", "check", source, "--json")
        assert (found.status, len(found.document["problems"]) >= 1) == (1, True)
    assert (path.read_bytes() if path.exists() else None) == before


def test_changes_that_the_audit_log_knows_of_are_missed_and_can_be_given_up(run: Run, source: Path) -> None:
    run("token", "add", "ann", source)
    config = load(source)
    with AuditLog.beside(config.settings.audit.directory) as log:
        log.append([("state", {"database": "0" * 32, "revision": 7})])
    source.with_name("state.db.revision").unlink()

    found = run("state", "check", source)
    assert found.status == 1
    assert "another database was put in its place, but it had 7 changes" in " ".join(found.out.split())
    assert "It is another database than before." in " ".join(run("state", "accept", source).out.split())
    assert run("state", "check", source).status == 0
    assert run("token", "list", source, "--json").document["tokens"][0]["name"] == "ann"


def test_every_command_refuses_a_state_that_is_older_than_the_audit_log(run: Run, source: Path) -> None:
    folder = source.parent
    run("token", "add", "ann", source)
    copies = {name: (folder / name).read_bytes() for name in ("state.db", "state.db.revision")}
    for name in ("bob", "eve"):
        run("token", "add", name, source)
    with AuditLog.beside(load(source).settings.audit.directory) as log, closing(Ledger.open(folder / "state.db")):
        found = known_revision(StateLocation(folder / "state.db"))
        assert found is not None
        log.append([("state", {"database": found.database, "revision": found.number})])
    for name, content in copies.items():
        (folder / name).write_bytes(content)

    for words in (("token", "add", "mallory"), ("token", "list"), ("approvals", "list"), ("state", "check")):
        told = run(*words, source)
        assert told.status != 0, words
        assert f"but it had {found.number} changes" in " ".join(f"{told.out} {told.err}".split()), words
    accepted = " ".join(run("state", "accept", source).out.split())
    assert "later changes are lost: names may mean other tools." in accepted
    assert run("token", "add", "mallory", source).status == 0


def test_a_lost_database_is_given_up_by_its_path(run: Run, source: Path) -> None:
    run("token", "add", "ann", source)
    path = source.with_name("state.db")
    path.unlink()
    assert "it is missing, but it had" in " ".join(run("token", "add", "bob", source).err.split())

    assert "the next start creates one" in run("state", "accept", path).out
    assert run("token", "add", "bob", source).status == 0


def test_accepting_a_loss_names_the_files_that_are_imported_again(
    run: Run, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source.write_text('[mcpServers.a]\ncommand = "true"\n')
    monkeypatch.setenv("XDG_STATE_HOME", str(source.parent / "home"))
    former = load(source).state_location().former["token"]
    former.parent.mkdir(parents=True)
    former.write_text("{}")

    told = " ".join(run("state", "accept", source).out.split())

    assert f"imports the files of an earlier version again: {former}" in told
    assert "move the files away to start without them" in told


def test_what_a_refusal_advises_to_run_is_what_makes_the_state_be_accepted(run: Run, source: Path) -> None:
    """The audit log has a later revision on record, so a path alone cannot be accepted: the advice names no path."""
    state, log = source.with_name("state.db"), source.with_name("audit")
    source.write_text(
        f'state = "{state}"\n[audit]\npath = "{log}"\nrequired = true\n[mcpServers.a]\ncommand = "true"\n'
    )
    assert run("token", "add", "ann", source).status == 0
    older = state.read_bytes()
    assert run("token", "add", "bob", source).status == 0
    # As a gateway does when it starts.
    with AuditLog.beside(log) as written:
        known = known_revision(StateLocation(state))
        assert known is not None
        written.append([("state", {"database": known.database, "revision": known.number})])
    for file in source.parent.glob("state.db*"):
        if file.is_file():
            file.unlink()
    state.write_bytes(older)
    state.chmod(0o600)

    refused = run("token", "list", source)
    assert refused.status != 0
    told = " ".join(refused.err.split())

    assert "run `truename state accept CONFIGURATION` with the gateway's file." in told
    accepted = run("state", "accept", source)
    assert (accepted.status, "Not in the audit log" in accepted.err) == (0, False)
    assert run("token", "list", source).status == 0


def test_a_state_that_lacks_nothing_is_not_accepted_again_and_no_audit_record_says_so(run: Run, source: Path) -> None:
    run("token", "add", "ann", source)
    log, beside = source.with_name("audit"), source.with_name("state.db.revision")
    before = {path: path.read_bytes() for path in (*log.iterdir(), beside) if path.is_file()}
    found = run("state", "accept", source)
    assert (found.status, " ".join(found.out.split()).startswith("Nothing to accept: no change of")) == (0, True)
    assert run("state", "accept", source, "--json").document["accepted"] is False
    assert {path: path.read_bytes() for path in (*log.iterdir(), beside) if path.is_file()} == before


def test_a_postgresql_state_that_lacks_nothing_is_not_accepted_again(run: Run, source: Path) -> None:
    with new_place() as place:
        source.write_text(f'state = "{place.address}"\n[audit]\npath = "audit"\n[mcpServers.a]\ncommand = "true"\n')
        run("token", "add", "ann", source)
        before = len(run("audit", "export", source).out.splitlines())
        assert "Nothing to accept" in " ".join(run("state", "accept", source).out.split())
        assert len(run("audit", "export", source).out.splitlines()) == before


def test_one_secret_is_not_counted_as_several(run: Run, source: Path) -> None:
    with open_vault(load(source)) as vault:
        vault.put("https://idp.example", "ann", b"token")
    location = load(source).state_location()
    told = " ".join(run("state", "rotate", source).out.split())
    assert told == f"1 secret of {location.name} is encrypted with the first key. 0 were encrypted anew."


def test_what_is_no_database_is_not_accepted(run: Run, source: Path) -> None:
    source.with_name("state.db").write_text("something else " * 99)
    found = run("state", "accept", source)
    assert found.status != 0
    assert "file is not a database" in " ".join(found.err.split())


def test_state_in_memory_has_no_place(run: Run, source: Path) -> None:
    source.write_text('state = "memory"\n[mcpServers.a]\ncommand = "true"\n')
    assert run("state", "path", source).status == 2


@pytest.mark.parametrize("command", ["export", "import", "verify"])
def test_memory_is_no_place_of_another_state(run: Run, source: Path, command: str) -> None:
    run("token", "add", "ann", source)
    refused = run("state", command, "memory", source)
    assert (refused.status, "./memory" in refused.err, source.with_name("memory").exists()) == (2, True, False)
    assert run("state", "export", "./memory", source).status == 0


def test_a_state_moves_to_postgresql_and_back_and_its_tokens_go_on(run: Run, source: Path) -> None:
    folder = source.parent
    run("token", "add", "ann", source)
    with new_place() as place:
        moved = folder / "moved.toml"
        text = f'state = "{place.address}"\n[audit]\npath = "moved"\n[mcpServers.a]\ncommand = "true"\n'
        moved.write_text(text)
        assert run("state", "path", moved, "--json").document == {"path": place.public_address, "exists": True}
        done = run("state", "import", folder / "state.db", moved)
        assert (done.status, "has all 2 rows of" in " ".join(done.out.split())) == (0, True)
        assert "token: 1 row\n" in done.err
        assert run("state", "import", folder / "state.db", moved).status == 2
        assert run("state", "verify", folder / "state.db", moved).out == "The two states are equal.\n"
        found = run("state", "check", moved, "--json")
        assert (found.status, found.document["problems"], found.document["path"]) == (0, [], place.name)
        assert run("state", "check", place.address).status == 0

        run("token", "add", "bob", moved)
        differing = run("state", "verify", folder / "state.db", moved, "--json")
        assert (differing.status, len(differing.document["differences"])) == (1, 3)

        back = run("state", "export", folder / "back.db", moved, "--json")
        assert (back.status, back.document["tables"]["token"]["rows"]) == (0, 2)
    names = [one["name"] for one in run("token", "list", back_of(source), "--json").document["tokens"]]
    assert names == ["ann", "bob"]


def back_of(source: Path) -> Path:
    """Return a configuration whose state is the copy that came back."""
    path = source.with_name("back.toml")
    path.write_text('state = "back.db"\n[mcpServers.a]\ncommand = "true"\n')
    return path


def test_a_state_that_moves_goes_on_with_the_same_audit_log(run: Run, source: Path) -> None:
    run("token", "add", "ann", source)
    old = source.with_name("state.db")
    found = known_revision(StateLocation(old))
    assert found is not None
    with AuditLog.beside(load(source).settings.audit.directory) as log:
        log.append([("state", {"database": found.database, "revision": found.number})])
    with new_place() as place:
        source.write_text(source.read_text().replace("state.db", str(place.address)))
        assert "it is empty, but it had" in " ".join(run("token", "add", "eve", source).err.split())
        assert run("state", "import", old, source).status == 0
        assert run("token", "add", "bob", source).status == 0
        later = recorded_revision(load(source).settings.audit.directory)
        assert later == found
    with new_place() as place:
        log_of = load(source).settings.audit.directory
        with AuditLog.beside(log_of) as log:
            log.append([("state", {"database": found.database, "revision": found.number + 5})])
        source.write_text(f'state = "{place.address}"\n[audit]\npath = "audit"\n[mcpServers.a]\ncommand = "true"\n')
        refused = run("state", "import", old, source)
        assert (refused.status != 0, "had a later one" in " ".join(refused.err.split())) == (True, True)
        assert run("state", "accept", source).status == 0
        assert run("state", "import", old, source).status == 0


def test_an_upgrade_makes_the_tables_before_any_gateway_starts(run: Run, source: Path) -> None:
    done = run("state", "upgrade", source, "--json")
    assert (done.status, set(done.document["versions"].values())) == (0, {1, 2, 3})
    assert run("state", "check", source).status == 0
    with new_place() as place:
        assert "has no state" in " ".join(run("state", "check", place.address).out.split())
        assert "has the tables of this version" in " ".join(run("state", "upgrade", place.address).out.split())
        assert run("state", "check", place.address).status == 0


def test_keys_are_rotated_by_one_command(run: Run, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]
    monkeypatch.setenv("TRUENAME_VAULT_KEY", keys[0])
    with open_vault(load(source)) as vault:
        vault.put("https://idp.example", "ann", b"token")
    location = load(source).state_location()
    with ApprovalQueue(location) as queue:
        asked = queue.ask(wanted(call(x=1)), most=1, lasts=60.0)
    monkeypatch.setenv("TRUENAME_VAULT_KEY", f"{keys[1]},{keys[0]}")
    assert run("state", "rotate", source, "--json").document["secrets"] == 2
    again = " ".join(run("state", "rotate", source).out.split())
    assert again == f"2 secrets of {location.name} are encrypted with the first key. 0 were encrypted anew."
    assert run("state", "rotate", source, "--json").document["all"] == 2
    monkeypatch.setenv("TRUENAME_VAULT_KEY", keys[1])
    with open_vault(load(source)) as vault, ApprovalQueue(location) as queue:
        assert vault.get("https://idp.example", "ann") == b"token"
        assert queue.find(asked.key) == asked


def test_what_a_lost_key_opens_is_deleted_if_that_is_said(
    run: Run, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2)]
    monkeypatch.setenv("TRUENAME_VAULT_KEY", keys[0])
    location = load(source).state_location()
    with open_vault(load(source)) as vault, ApprovalQueue(location) as queue:
        vault.put("https://idp.example", "ann", b"token")
        queue.ask(wanted(call(x=1)), most=1, lasts=60.0)
    monkeypatch.setenv("TRUENAME_VAULT_KEY", keys[1])
    refused = run("state", "rotate", source)
    assert (refused.status != 0, "--forget-lost" in refused.err) == (True, True)
    forgot = run("state", "rotate", source, "--forget-lost")
    assert (forgot.status, "2 were deleted. 0 were encrypted anew." in " ".join(forgot.out.split())) == (0, True)
    with open_vault(load(source)) as vault, ApprovalQueue(location) as queue:
        assert (vault.get("https://idp.example", "ann"), queue.all()) == (None, [])


def test_a_url_that_cannot_be_used_is_an_error_of_the_configuration(run: Run, source: Path) -> None:
    source.write_text('state = "postgresql://db.example/names?scope=Team-A"\n[mcpServers.a]\ncommand = "true"\n')
    refused = run("state", "path", source)
    assert (refused.status, "the scope in the URL is not valid" in " ".join(refused.err.split())) == (2, True)
