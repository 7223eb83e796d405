"""`truename connect` and `truename disconnect` as they are typed."""

from __future__ import annotations

import io
import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from tests.cli.conftest import HOSTILE, Run, fake
from tests.support.cli_connect import servers, words
from tests.support.cli_running import call, serving
from truename.cli._gateway_names import is_running
from truename.clients import config_files
from truename.clients.gateway_address import UpcomingNames

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "s3cret-value"
GITHUB = {"command": "npx", "args": ["-y", "gh"], "env": {"TOKEN": SECRET}}
CONFIGURED = """
[mcpServers.github]
command = "npx"
args = ["-y", "gh"]
env = { TOKEN = "${GITHUB_TOKEN}" }
"""


@pytest.fixture
def home(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with a configuration of the gateway, which its user allowed, in the current directory."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GITHUB_TOKEN", SECRET)
    # Whoever runs the tests may have a gateway at the default address.
    monkeypatch.setattr("truename.cli.connect.is_running", lambda url: not url.endswith(":8750") and is_running(url))
    (home := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    Path("truename.toml").write_text(CONFIGURED, "utf-8")
    run("allow")
    return home


@pytest.fixture
def cursor(home: Path) -> Path:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"github": GITHUB, "mine": {"command": "x"}}}, indent=2), "utf-8")
    return path


@pytest.mark.parametrize(
    "words_again", [("--all", "--stdio"), ("--all", "--url", "http://127.0.0.1:8751")], ids=" ".join
)
def test_connecting_in_another_way_says_that_the_first_one_has_to_be_undone(
    run: Run, home: Path, words_again: tuple[str, ...]
) -> None:
    assert run("connect", "cursor", "--all", "--yes").status == 0
    before = (home / ".cursor" / "mcp.json").read_bytes()

    again = run("connect", "cursor", *words_again, "--yes")

    assert "`truename disconnect cursor` first" in words(again.out + again.err)
    assert (home / ".cursor" / "mcp.json").read_bytes() == before


def test_a_rule_about_a_server_that_the_client_gets_now_is_said_not_to_hold(run: Run, home: Path) -> None:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {}}), "utf-8")
    (home / ".claude").mkdir()
    permissions = {"deny": ["mcp__github__delete_repo", "mcp__other__x"], "allow": ["mcp__github__search"]}
    (home / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}), "utf-8")

    done = run("connect", "claude-code", "--all", "--yes")

    said = words(done.out + done.err)
    assert done.status == 0
    assert "'mcp__github__delete_repo' in" in said
    assert "does not hold for the tools of 'github' that the client gets through 'tn'" in said
    assert "mcp__other__x" not in said
    assert "mcp__github__search" not in said


def test_connect_says_what_it_changed_and_disconnect_gives_it_back(run: Run, cursor: Path) -> None:
    before = cursor.read_bytes()

    done = run("connect", "cursor", "--yes")

    assert done.status == 0
    assert servers(cursor)["github"] == {"url": "http://127.0.0.1:8750/mcp/for/cursor/only/github"}
    assert servers(cursor)["mine"] == {"command": "x"}
    for told in (str(cursor), "server github", "'mine'", "truename init", "Backup of", "truename disconnect cursor"):
        assert told in words(done.out)
    assert f"truename serve {Path('truename.toml').absolute()} --http 127.0.0.1:8750\n" in done.out

    again = run("connect", "cursor", "--yes")

    assert (again.status, "already connected: 'github'" in again.out) == (0, True)

    undone = run("disconnect", "cursor", "--yes")

    assert undone.status == 0
    assert "mcp.json: restored" in words(undone.out)
    assert cursor.read_bytes() == before
    assert "nothing to undo" in run("disconnect", "cursor").out


def test_a_dry_run_shows_a_diff_without_secrets_and_changes_nothing(run: Run, cursor: Path) -> None:
    before = cursor.read_bytes()

    done = run("connect", "cursor", "--dry-run")

    assert done.status == 0
    assert '-        "TOKEN": "***"' in done.out
    assert "mcp/for/cursor/only/github" in done.out
    assert SECRET not in done.out + done.err
    assert "Nothing was changed." in done.out
    assert cursor.read_bytes() == before


def test_a_dry_run_of_disconnect_shows_no_secrets_either(run: Run, cursor: Path) -> None:
    run("connect", "cursor", "--yes")
    connected = cursor.read_bytes()

    done = run("disconnect", "cursor", "--dry-run")

    assert done.status == 0
    assert '+        "TOKEN": "***"' in done.out
    assert SECRET not in done.out + done.err
    assert cursor.read_bytes() == connected


def test_without_somebody_to_ask_nothing_is_changed(run: Run, cursor: Path) -> None:
    before = cursor.read_bytes()

    done = run("connect", "cursor")

    assert (done.status, "--yes" in done.err) == (2, True)
    assert cursor.read_bytes() == before

    run("connect", "cursor", "--yes")
    assert run("disconnect", "cursor").status == 2
    assert cursor.read_bytes() != before


def test_a_program_gets_one_document(run: Run, cursor: Path) -> None:
    done = run("connect", "cursor", "--one", "--yes", "--json")

    document = done.document
    assert (document["mode"], document["connected"], document["changed"]) == ("one", ["github"], True)
    assert document["gateway"] == {
        "url": "http://127.0.0.1:8750",
        "answers": False,
        "start": f"truename serve {Path('truename.toml').absolute()} --http 127.0.0.1:8750",
    }
    (file,) = document["files"]
    assert Path(file["backup"]).read_bytes()
    assert [note["subject"] for note in document["notes"]] == ["mine"]
    assert servers(cursor) == {"mine": {"command": "x"}, "tn": {"url": "http://127.0.0.1:8750/mcp/servers/github"}}

    undone = run("disconnect", "cursor", "--yes", "--json").document

    assert undone["files"] == [{"path": str(cursor), "exact": True, "removed": False}]


def test_a_client_without_a_file_gets_one_and_it_is_removed_again(run: Run, home: Path) -> None:
    assert run("connect", "cursor", "--yes").status == 1

    assert run("connect", "cursor", "--one", "--name", "gate", "--yes").status == 0
    assert servers(home / ".cursor" / "mcp.json") == {"gate": {"url": "http://127.0.0.1:8750/mcp"}}

    assert "deleted, since it was new" in words(run("disconnect", "cursor", "--yes").out)
    assert not (home / ".cursor").exists()


def test_a_client_can_start_the_gateway_itself(run: Run, cursor: Path) -> None:
    run("connect", "cursor", "--stdio", "--yes")

    found = servers(cursor)["github"]
    assert Path(found["command"]).name.startswith("truename")
    assert found["args"] == ["serve", str(Path("truename.toml").absolute()), "--for", "cursor", "--only", "github"]
    assert "env" not in found


def test_a_token_is_written_as_a_reference_where_the_client_reads_one(run: Run, cursor: Path) -> None:
    Path("truename.toml").write_text(f'token = "{SECRET}-token"\n{CONFIGURED}', "utf-8")
    run("allow")

    done = run("connect", "cursor", "--yes")

    assert servers(cursor)["github"]["headers"] == {"Authorization": "Bearer ${env:TRUENAME_TOKEN}"}
    assert "Set TRUENAME_TOKEN in the environment of the client." in words(done.out)
    assert f"{SECRET}-token" not in cursor.read_text("utf-8") + done.out + done.err


def test_a_token_that_a_client_can_not_read_is_told(run: Run, home: Path) -> None:
    Path("truename.toml").write_text(f'token = "{SECRET}-token"\n{CONFIGURED}', "utf-8")
    run("allow")

    done = run("connect", "zed", "--one", "--yes")

    assert "Write the header Authorization: Bearer TOKEN" in words(done.out)
    assert "Authorization" not in (home / ".config" / "zed" / "settings.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["connect", "cursr"], "Did you mean cursor"),
        (["connect", "cursor", "--url", "ftp://x"], "not the address of a gateway"),
        (["connect", "cursor", "--url", "http://x/?a"], "not the address of a gateway"),
        (["connect", "cursor", "--config", "missing.toml"], "missing.toml"),
        (["connect", "cursor", "--catalog", "missing.json"], "missing.json"),
        (["disconnect", "nobody"], "is not a client with a known configuration file"),
    ],
)
def test_what_can_not_be_is_told_and_nothing_is_changed(words: list[str], told: str, run: Run, cursor: Path) -> None:
    before = cursor.read_bytes()

    done = run(*words, "--yes")

    assert (done.status, told in done.err) == (2, True)
    assert cursor.read_bytes() == before


def test_a_broken_file_is_left_alone_with_its_line(run: Run, cursor: Path) -> None:
    cursor.write_text('{"mcpServers": {\n  "github": }\n', "utf-8")

    done = run("connect", "cursor", "--yes", "--json")

    assert done.status == 2
    assert done.document["errors"][0]["code"] == "left_alone"
    assert "line 2" in words(done.err)


def test_a_file_that_can_not_be_given_back_is_told_with_its_backup(run: Run, cursor: Path) -> None:
    backup = run("connect", "cursor", "--yes", "--json").document["files"][0]["backup"]
    cursor.write_text("{", "utf-8")

    done = run("disconnect", "cursor", "--yes")

    assert done.status == 2
    assert backup in done.err.replace("\n", "").replace("  ", "")
    assert cursor.read_text("utf-8") == "{"


def test_a_client_is_known_by_the_names_of_its_dialect(run: Run, home: Path) -> None:
    assert run("connect", "codex-cli", "--one", "--yes").status == 0

    assert "[mcp_servers.tn]" in (home / ".codex" / "config.toml").read_text("utf-8")


def test_kept_names_are_carried_with_the_help_of_a_dump(run: Run, cursor: Path, tmp_path: Path) -> None:
    kept = cursor.with_name("permissions.json")
    kept.write_text('{"mcpAllowlist": ["github:search"]}', "utf-8")
    (dump := tmp_path / "tools.json").write_text('{"github": ["search", "add"]}', "utf-8")

    blind = run("connect", "cursor", "--one", "--dry-run", "--json").document
    done = run("connect", "cursor", "--one", "--catalog", dump, "--yes", "--json").document

    assert blind["connected"] == []
    assert blind["files"] == []
    assert any("are unknown" in note["fact"] for note in blind["notes"])
    assert done["connected"] == ["github"]
    assert kept.read_text("utf-8") == '{"mcpAllowlist": ["tn:search"]}'


def test_hostile_keys_reach_no_terminal(run: Run, cursor: Path) -> None:
    cursor.write_text(json.dumps({"mcpServers": {HOSTILE: GITHUB}}), "utf-8")

    done = run("connect", "cursor", "--yes")

    assert "\x1b" not in done.out + done.err
    assert "\u202e" not in done.out + done.err


@pytest.mark.parametrize("one", [False, True])
def test_a_client_reaches_its_servers_through_the_gateway_that_runs(
    one: bool, run: Run, home: Path, configure: Callable[..., Path]
) -> None:
    source = configure({"one": ["search", "get_it"], "two": ["search"]}, truename={"state": "memory"})
    Path("truename.toml").unlink()
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"one": fake("one", "search", "get_it")}}), "utf-8")
    allowed = path.with_name("permissions.json")
    allowed.write_text('{"mcpAllowlist": ["one:search"]}', "utf-8")

    with serving(source, "--http", "127.0.0.1:0") as (process, out, _):
        url = out.until("claude mcp add").split()[-1].removesuffix("/mcp")
        out.until("Ctrl-C ends it.")
        done = run("connect", "cursor", "--config", source, "--url", url, "--yes", *(["--one"] if one else []))
        (entry,) = servers(path).values()
        name = json.loads(allowed.read_text("utf-8"))["mcpAllowlist"][0].partition(":")[2]
        listed, answer = anyio.run(call, entry["url"], name)
        process.send_signal(signal.SIGINT)
        process.wait(30)

    assert done.status == 0
    assert "To start it" not in done.out
    assert listed == (["one_search", "one_get_it"] if one else ["search", "get_it"])
    assert "one" in answer


def test_every_client_of_the_table_can_be_named(run: Run, home: Path) -> None:
    for client in dict.fromkeys(file.client for file in config_files()):
        done = run("connect", client, "--dry-run")

        assert (done.status, "Nothing" in done.out or "nothing to connect" in done.out) in {(1, True), (2, False)}


def test_a_client_that_takes_programs_only_is_not_told_to_start_a_gateway(run: Run, home: Path) -> None:
    (pattern,) = {one for file in config_files("claude-desktop") for one in file.paths["linux"][:1]}
    path = home / pattern.removeprefix("~/")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcpServers": {"github": GITHUB}}), "utf-8")

    done = run("connect", "claude-desktop", "--dry-run")
    plan = run("connect", "claude-desktop", "--dry-run", "--json").document

    assert "To start it" not in done.out
    assert (plan["transport"], plan["gateway"]["start"]) == ("stdio", None)


def test_a_change_too_long_for_its_line_goes_on_under_its_own_beginning(
    run: Run, cursor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    lines = run("connect", "cursor", "--yes").out.splitlines()

    (place,) = [at for at, line in enumerate(lines) if line.startswith("  server github:  npx ...")]
    assert lines[place + 1] == f"{'':18}http://127.0.0.1:8750/mcp/for/cursor/only/github"


GEMINI = {
    "a trailing comma": ('{"mcpServers": {"github": %s,}}', "it has a trailing comma"),
    "a byte order mark": ('\ufeff{"mcpServers": {"github": %s}}', "byte order mark"),
}


@pytest.mark.parametrize(("text", "told"), GEMINI.values(), ids=GEMINI)
def test_a_file_that_its_client_refuses_is_left_alone_with_the_place(
    text: str, told: str, run: Run, home: Path
) -> None:
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text(text.replace("%s", json.dumps(GITHUB)), "utf-8")
    before = path.read_bytes()

    done = run("connect", "gemini-cli", "--yes")

    assert done.status == 2
    assert told in words(done.err)
    assert "line 1, column" in words(done.err)
    assert "which Gemini CLI does not accept" in words(done.err)
    assert path.read_bytes() == before


def test_a_comment_that_its_client_reads_is_no_reason(run: Run, home: Path) -> None:
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text(f'// mine\n{{"mcpServers": {{"github": {json.dumps(GITHUB)}}}}}', "utf-8")

    assert run("connect", "gemini-cli", "--yes").status == 0


def test_a_comment_that_its_client_may_not_read_is_told(run: Run, cursor: Path) -> None:
    cursor.write_text(f"// mine\n{cursor.read_text('utf-8')}", "utf-8")

    done = run("connect", "cursor", "--yes")

    assert done.status == 0
    assert "line 1: it has a comment. Cursor may not accept that" in words(done.out)


@pytest.mark.parametrize("command", ["connect", "disconnect"])
@pytest.mark.parametrize(
    ("word", "clients"), [("claude", ["claude-desktop", "claude-code"]), ("copilot", ["vscode", "copilot-cli"])]
)
def test_a_word_that_fits_several_clients_takes_none_of_them(
    command: str, word: str, clients: list[str], run: Run, home: Path
) -> None:
    done = run(command, word, "--yes")

    assert done.status == 2
    assert all(client in done.err for client in clients)


@pytest.mark.parametrize(("answer", "status"), [("claude-code", 0), ("claude", 2), ("", 2)])
def test_a_person_is_asked_which_client_is_meant(
    answer: str, status: int, run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("truename.cli._connections.is_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{answer}\n"))
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"github": GITHUB}}), "utf-8")

    done = run("connect", "claude", "--yes")

    assert done.status == status
    assert "Which? [claude-desktop/claude-code]" in done.err
    assert ("only/github" in (home / ".claude.json").read_text("utf-8")) is (status == 0)


def test_from_the_home_a_file_counts_once(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = Path("truename.toml").absolute()
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"github": GITHUB}}), "utf-8")
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"permissions": {"allow": ["mcp__github__search"]}}', "utf-8")
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text(json.dumps({"mcpServers": {"mine": {"command": "x"}}}), "utf-8")
    elsewhere = {one: run("connect", one, "--config", config, "--dry-run", "--json").document for one in CLIENTS}
    monkeypatch.chdir(home)

    for client, before in elsewhere.items():
        here = run("connect", client, "--config", config, "--dry-run", "--json").document
        assert here == before
    found = run("doctor", "--json").document["findings"]
    assert [one["fact"] for one in found if one["code"] in {"TN012", "TN013"}] == []


CLIENTS = ["claude-code", "cursor"]


def test_nobody_is_told_to_start_a_gateway_that_runs(run: Run, cursor: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "start the gateway first" in words(run("connect", "cursor", "--dry-run").out)
    monkeypatch.setattr("truename.cli.connect.is_running", lambda _: True)
    monkeypatch.setattr("truename.cli._gateway_names.ask_names", lambda *_, **__: UpcomingNames({}, {}))

    for more in ([], ["--stdio"]):
        done = words(run("connect", "cursor", "--dry-run", *more).out)
        assert "tart the gateway" not in done
        assert "names the servers that failed" in done


def test_on_a_terminal_something_is_shown_while_it_works(
    run: Run, cursor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = run("connect", "cursor", "--dry-run")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    shown = run("connect", "cursor", "--dry-run")

    assert "Asking for a gateway" not in silent.err
    assert "Looking for a gateway at http://127.0.0.1:8750" in shown.err
