"""`truename connect --managed`, as a management tool runs it on many machines: unattended, repeatable, reversible."""

from __future__ import annotations

import errno
import json
import os
import pwd
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Run

URL = "https://tools.example"
GITHUB = {"command": "npx", "args": ["-y", "gh"]}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of somebody who uses three clients; there is no configuration of a gateway on this machine."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("truename.cli.connect.is_running", lambda _: False)
    (home := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"github": GITHUB}}, indent=2))
    (home / ".claude.json").write_text('{"theme": "dark"}')
    # Installed, and without a file of its own yet.
    (home / ".codex").mkdir()
    return home


def files(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def states(document: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {one["client"]: one["state"] for one in document["clients"]}


def test_all_clients_that_are_installed_are_connected_and_given_back(run: Run, home: Path) -> None:
    before = files(home)
    would = run("connect", "--managed", "--url", URL, "--dry-run", "--json")
    assert (would.status, set(states(would.document).values()), files(home)) == (1, {"would_change"}, before)
    done = run("connect", "--managed", "--url", URL, "--json")
    assert (done.status, done.document["ok"]) == (0, True)
    assert states(done.document) == dict.fromkeys(["claude-code", "codex", "cursor"], "changed")
    servers = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]
    assert (servers["github"], servers["tn"]["url"]) == (GITHUB, f"{URL}/mcp")
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["tn"]["url"] == f"{URL}/mcp"
    assert f"{URL}/mcp" in (home / ".codex" / "config.toml").read_text()

    connected = files(home)
    again = run("connect", "--managed", "--url", URL, "--json")
    assert (again.status, set(states(again.document).values()), files(home)) == (0, {"connected"}, connected)
    assert run("connect", "--managed", "--url", URL, "--dry-run").status == 0

    undone = run("connect", "--managed", "--undo", "--json")
    assert (undone.status, set(states(undone.document).values()), files(home)) == (0, {"changed"}, before)
    nothing = run("connect", "--managed", "--undo", "--json")
    assert (nothing.status, nothing.document["clients"]) == (0, [])


def test_a_client_whose_file_cannot_be_read_keeps_no_other_from_it(run: Run, home: Path) -> None:
    broken = home / ".cursor" / "mcp.json"
    broken.write_text('{"mcpServers": {')
    done = run("connect", "--managed", "--url", URL, "--json")
    assert (done.status, done.document["ok"]) == (1, False)
    assert states(done.document) == {"claude-code": "changed", "codex": "changed", "cursor": "failed"}
    (problem,) = [one["problem"] for one in done.document["clients"] if one["client"] == "cursor"]
    assert str(broken) in problem
    assert broken.read_text() == '{"mcpServers": {'


def test_named_clients_are_connected_whether_they_are_installed_or_not(run: Run, home: Path) -> None:
    before = files(home)
    done = run("connect", "cursor", "windsurf", "--managed", "--url", URL, "--json")
    assert (done.status, states(done.document)) == (0, {"cursor": "changed", "windsurf": "changed"})
    assert (home / ".claude.json").read_text() == '{"theme": "dark"}'
    text = run("connect", "cursor", "windsurf", "--managed", "--undo").out
    assert ("cursor" in text, "windsurf" in text, files(home)) == (True, True, before)


def test_what_a_person_changed_since_is_kept(run: Run, home: Path) -> None:
    run("connect", "--managed", "--url", URL)
    path = home / ".cursor" / "mcp.json"
    value = json.loads(path.read_text())
    value["mcpServers"]["mine"] = {"command": "x"}
    path.write_text(json.dumps(value))
    assert run("connect", "--managed", "--url", URL).status == 0
    assert run("connect", "--managed", "--undo").status == 0
    assert json.loads(path.read_text()) == {"mcpServers": {"github": GITHUB, "mine": {"command": "x"}}}


def test_with_a_configuration_servers_go_through_the_gateway_one_by_one(run: Run, home: Path) -> None:
    Path("truename.toml").write_text('[mcpServers.github]\ncommand = "npx"\nargs = ["-y", "gh"]\n')
    done = run("connect", "cursor", "--managed", "--config", "truename.toml", "--url", URL, "--json")
    assert (done.status, states(done.document)) == (0, {"cursor": "changed"})
    assert list(json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]) == ["github"]


@pytest.mark.parametrize("words", [["--undo"], [], ["cursor", "codex"], ["cursor", "--user", "ann"]])
def test_what_only_a_management_tool_may_ask_is_refused_without_saying_so(
    run: Run, home: Path, words: list[str]
) -> None:
    before = files(home)
    assert run("connect", *words, "--url", URL).status == 2
    assert files(home) == before


def test_a_client_that_nobody_knows_changes_nothing(run: Run, home: Path) -> None:
    before = files(home)
    assert run("connect", "cursor", "nosuch", "--managed", "--url", URL).status == 2
    assert files(home) == before


def records(home: Path, client: str) -> list[Path]:
    return sorted((home / ".local" / "state" / "truename" / "backups").glob(f"*-{client}-*.json"))


@pytest.fixture
def state(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of the user, in their home."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))
    return home / ".local" / "state" / "truename"


@pytest.mark.usefixtures("state")
def test_a_damaged_record_of_a_change_is_told_until_no_entry_is_left(run: Run, home: Path) -> None:
    run("connect", "cursor", "codex", "--managed", "--url", URL)
    (record,) = records(home, "cursor")
    record.write_text("junk")
    for words in ([], ["--url", URL], ["--dry-run"]):
        for clients in ([], ["cursor"]):
            undone = run("connect", *clients, "--managed", "--undo", "--json", *words)
            (problem,) = [one["problem"] for one in undone.document["clients"] if one["client"] == "cursor"]
            assert (undone.status, states(undone.document)["cursor"], str(record) in problem) == (1, "failed", True)
    (one,) = run("connect", "cursor", "--managed", "--undo", "--url", URL, "--json").document["clients"]
    assert f"{home / '.cursor' / 'mcp.json'}: tn: it still leads to the gateway" in one["problem"]
    assert str(record) in run("disconnect", "cursor", "--yes").err
    assert not (home / ".codex" / "config.toml").exists()

    (home / ".cursor" / "mcp.json").write_text("{}")
    undone = run("connect", "--managed", "--undo", "--url", URL, "--json")
    assert (undone.status, states(undone.document)) == (0, {"cursor": "disconnected"})
    record.unlink()
    assert run("connect", "--managed", "--undo").status == 0


def test_records_that_cannot_be_listed_are_no_proof_that_nothing_was_changed(
    run: Run, home: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("connect", "cursor", "--managed", "--url", URL)
    connected = files(home)

    listed, searched = Path.iterdir, Path.glob

    def refused(path: Path) -> Iterator[Path]:
        if path == state / "backups":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return listed(path)

    # As the system does to a user to whom the directory does not belong; root may list any.
    monkeypatch.setattr(Path, "iterdir", refused)
    monkeypatch.setattr(
        Path, "glob", lambda path, pattern: iter(()) if path == state / "backups" else searched(path, pattern)
    )
    undone = run("connect", "--managed", "--undo")
    assert (undone.status, str(state / "backups") in undone.err, "Permission denied" in undone.err) == (2, True, True)
    for words in (["cursor"], ["--url", URL], ["cursor", "--url", URL]):
        named = run("connect", "--managed", "--undo", "--json", *words)
        assert (named.status, states(named.document)) == (1, {"cursor": "failed"})
    assert files(home) == connected


@pytest.mark.usefixtures("state")
def test_an_entry_without_any_record_is_found_by_the_address(run: Run, home: Path) -> None:
    run("connect", "cursor", "--managed", "--url", URL)
    (record,) = records(home, "cursor")
    record.unlink()
    undone = run("connect", "--managed", "--undo", "--url", URL, "--json")
    assert (undone.status, states(undone.document)) == (1, {"cursor": "failed"})
    assert run("connect", "--managed", "--undo", "--url", "https://other.example").status == 0


@pytest.mark.usefixtures("state")
@pytest.mark.parametrize("words", [[], ["--url", URL]])
def test_a_client_that_was_removed_is_disconnected(run: Run, home: Path, words: list[str]) -> None:
    run("connect", "cursor", "codex", "--managed", "--url", URL)
    shutil.rmtree(home / ".cursor")
    assert run("connect", "--managed", "--undo", "--dry-run", *words).status == 1
    undone = run("connect", "--managed", "--undo", "--json", *words)
    assert (undone.status, states(undone.document)) == (0, {"codex": "changed", "cursor": "disconnected"})
    (note,) = [note for one in undone.document["clients"] for note in one["notes"]]
    assert (note["kind"], "it no longer exists" in note["fact"]) == ("file", True)
    for _ in range(2):
        again = run("connect", "--managed", "--undo", "--json", *words)
        assert (again.status, states(again.document)) == (0, {"cursor": "disconnected"})


@pytest.fixture
def ann(home: Path, monkeypatch: pytest.MonkeyPatch) -> pwd.struct_passwd:
    """The account whose home it is."""
    account = pwd.struct_passwd(("ann", "x", os.geteuid(), os.getegid(), "", str(home), "/bin/sh"))
    monkeypatch.setattr("pwd.getpwnam", lambda _: account)
    return account


@pytest.mark.usefixtures("ann")
def test_another_user_is_served_in_a_process_of_their_own(run: Run, home: Path) -> None:
    before = files(home)
    state = home / ".local" / "state"
    done = run("connect", "--managed", "--user", "ann", "--url", URL, "--json")
    assert (done.status, set(states(done.document).values())) == (0, {"changed"})
    assert state.is_dir()
    assert run("connect", "--managed", "--user", "ann", "--url", URL, "--dry-run").status == 0
    undone = run("connect", "--managed", "--user", "ann", "--undo", "--json")
    assert (undone.status, set(states(undone.document).values())) == (0, {"changed"})
    assert {name: raw for name, raw in files(home).items() if not name.startswith(".local")} == before


@pytest.mark.usefixtures("ann")
@pytest.mark.parametrize("name", ["random.py", "truename.py", "truename/__init__.py"])
def test_no_module_in_the_home_of_a_user_is_run_in_place_of_ours(run: Run, home: Path, name: str) -> None:
    (home / name).parent.mkdir(exist_ok=True)
    (home / name).write_text("raise SystemExit('mine')")
    done = run("connect", "cursor", "--managed", "--user", "ann", "--url", URL, "--json")
    assert (done.status, states(done.document)) == (0, {"cursor": "changed"})


REPORT = {"client": "cursor", "state": "connected", "files": [], "problem": "", "notes": []}


@pytest.mark.usefixtures("ann")
@pytest.mark.parametrize(
    ("printed", "said"),
    [
        (b"[]", "its report lists no clients"),
        (b"123", "its report lists no clients"),
        (b"{}", "its report lists no clients"),
        (b"\xff", "it printed no report, but"),
        (b"my lottery", "it printed no report, but 'my lottery'"),
        (b"[" * 100_000, "it printed no report, but '[[["),
        (b"", "it printed nothing, and ended with status 0"),
        (b"x" * 3_000_000, "it printed more than 1 MiB"),
        (
            b'{"errors": [{"text": "the address is \\u001b[2J none. Check it."}]}',
            "the address is \\x1b[2J none\n  Check it",
        ),
        ({**REPORT, "evil": 1}, "other fields than this version's"),
        ([], "other fields than this version's"),
        ({**REPORT, "state": "fine"}, "no known state"),
        ({**REPORT, "state": []}, "no known state"),
        ({**REPORT, "client": "\x1b]0;owned\x07cursor"}, "an unknown client, '\\x1b]0;owned"),
        ({**REPORT, "client": "codex"}, "not about the clients that were named"),
        ({**REPORT, "files": "abc"}, "are not paths"),
        ({**REPORT, "files": [1]}, "are not paths"),
        ({**REPORT, "notes": [{"kind": "left"}]}, "are not texts"),
        ({**REPORT, "notes": {}}, "are not texts"),
    ],
)
def test_what_a_users_process_prints_in_place_of_a_report_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: bytes | object, said: str
) -> None:
    raw = printed if isinstance(printed, bytes) else json.dumps({"clients": [printed]}).encode()
    (tmp_path / "printed").write_bytes(raw)
    (program := tmp_path / "python").write_text(f"#!/bin/sh\nexec cat '{tmp_path}/printed'\n")
    program.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))
    done = run("connect", "cursor", "--managed", "--user", "ann", "--url", URL)
    assert (done.status, done.out) == (2, "")
    assert said in done.err
    assert "bug" not in done.err


@pytest.mark.usefixtures("ann")
def test_why_the_command_of_a_user_failed_is_told(run: Run) -> None:
    done = run("connect", "cursor", "--managed", "--user", "ann", "--url", "ftp://x")
    assert done.status == 2
    assert "as ann it failed: " in done.err
    assert "ftp://x" in done.err


def test_a_user_without_a_home_is_told(run: Run, ann: pwd.struct_passwd, home: Path) -> None:
    home.rename(home.with_name("moved"))
    done = run("connect", "--managed", "--user", "ann", "--url", URL)
    assert (done.status, f"ann has no home: {ann.pw_dir} does not exist" in done.err) == (2, True)


def test_a_user_that_does_not_exist_is_named(run: Run, home: Path) -> None:
    done = run("connect", "--managed", "--user", "no-such-user", "--url", URL)
    assert (done.status, "there is no user no-such-user" in done.err, files(home) != {}) == (2, True, True)
