"""Asking servers: with leave, each once, one that fails stops no other; addresses that are typed are asked."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import fake
from tests.shared import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Outcome, Run

    Doctor = Callable[..., Outcome]

MISSING = {"command": "no-such-program-anywhere"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    (made / "project").mkdir(parents=True)
    return made


def write(home: Path, name: str, servers: dict[str, Any]) -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


@pytest.fixture
def doctor(run: Run, home: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Run the command in this process, for whom this home is the home."""
    monkeypatch.setenv("HOME", str(home))

    def doctor(*words: object) -> Outcome:
        return run("doctor", "--project", home / "project", *words)

    return doctor


def test_servers_are_started_with_leave_and_each_once(home: Path, doctor: Doctor) -> None:
    lab = fake("lab", "a/b", "a_b")
    write(home, ".claude.json", {"lab": lab, "other": fake("other", "x")})
    write(home, ".gemini/settings.json", {"mine": lab})
    done = doctor("--start", "--json")

    assert done.status == 1
    assert done.document["asked"] == 2
    lost = {one["client"]: one["tools"]["lost"] for one in done.document["clients"]}
    assert lost == {"claude-code": 1, "gemini-cli": 1}
    assert done.err.count("ready") == 2


def test_without_leave_the_report_is_made_without_tools_and_says_so(home: Path, doctor: Doctor) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "a/b", "a_b") | {"env": {"LAB_KEY": "k3y-k3y"}}})
    done = doctor()

    assert done.status == 0
    assert "1 server not started, so their tools are unknown." in " ".join(done.out.split())
    assert "LAB_KEY=***" in done.out
    assert "k3y-k3y" not in done.out + done.err


def test_a_first_word_means_all_clients_that_begin_with_it(home: Path, doctor: Doctor) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "a")})
    write(home, ".gemini/settings.json", {"lab": fake("lab", "a")})
    done = doctor("--for", "claude", "--start", "--json")

    assert [one["client"] for one in done.document["clients"]] == ["claude-code"]


def test_one_that_fails_is_one_finding_and_the_others_are_examined(home: Path, doctor: Doctor) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "a/b", "a_b"), "gone": MISSING})
    done = doctor("--start", "--json")

    assert done.status == 1
    assert {"TN014", "TN024"} <= {one["code"] for one in done.document["findings"]}
    (client,) = done.document["clients"]
    assert (client["servers_not_asked"], client["tools"]["lost"]) == (["gone"], 1)


def test_a_failed_server_and_nothing_else_ends_with_3(home: Path, doctor: Doctor) -> None:
    write(home, ".claude.json", {"gone": MISSING, "fine": fake("fine", "get_x")})
    done = doctor("--start", "--json")

    assert done.status == 3
    assert [one["code"] for one in done.document["findings"]] == ["TN014"]


@pytest.mark.parametrize(
    "server",
    [
        {"command": "x", "args": ["${TRUENAME_TEST_IS_NOT_SET}"]},
        {"command": "x", "env": {"A": "${input:key}"}},
        {"url": "ftp://host"},
        {"command": "x\0y"},
    ],
)
def test_what_can_not_be_filled_in_is_not_started(home: Path, doctor: Doctor, server: dict[str, Any]) -> None:
    path = write(home, ".claude.json", {"odd": server, "fine": fake("fine", "get_x")})
    done = doctor("--start", "--json")

    (found,) = [one for one in done.document["findings"] if one["code"] == "TN014"]
    assert (found["server"], found["location"]["file"], found["location"]["line"]) == ("odd", str(path), 1)
    assert found["fact"].startswith("Server 'odd' of Claude Code was not started: ")
    assert done.document["clients"][0]["servers_not_asked"] == ["odd"]


def test_a_project_s_server_is_started_when_its_file_is_named(home: Path, doctor: Doctor) -> None:
    path = write(home, "project/.mcp.json", {"lab": fake("lab", "a/b", "a_b")})

    assert doctor("--start", "--json").document["asked"] == 0
    assert doctor(path, "--start", "--json").document["asked"] == 1


def test_two_servers_of_one_key_are_both_asked(home: Path, doctor: Doctor) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "one")})
    write(home, ".gemini/settings.json", {"lab": fake("lab", "two", "three")})
    told = {one["client"]: one for one in doctor("--start", "--json").document["clients"]}

    assert told["claude-code"]["tools"]["listed"] == 1
    assert told["gemini-cli"]["tools"]["listed"] == 2


def test_the_settings_of_truename_itself_are_examined_as_what_clients_would_have(home: Path, doctor: Doctor) -> None:
    path = home / "truename.toml"
    lab = fake("lab", "a/b", "a_b")
    path.write_text(
        f"[mcpServers.lab]\ncommand = {json.dumps(lab['command'])}\nargs = {json.dumps(lab['args'])}\n"
        f"cwd = {json.dumps(lab['cwd'])}\n",
        "utf-8",
    )
    done = doctor(path, "--start", "--for", "gemini-cli", "--json")

    assert [(one["client"], one["tools"]["lost"]) for one in done.document["clients"]] == [("gemini-cli", 1)]


def test_an_address_is_asked_because_it_was_typed(home: Path, doctor: Doctor) -> None:
    config = write(home, "mcp.json", {"lab": fake("lab", "get_x", "get_y")})
    command = [sys.executable, "-m", "tests.gateway.servers.gateway_http", str(config)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=ROOT) as gateway:
        try:
            assert gateway.stdout is not None
            address = gateway.stdout.readline().strip()
            done = doctor(f"{address}/mcp", "--for", "claude-code", "--json")
        finally:
            gateway.terminate()

    assert [one["tools"]["listed"] for one in done.document["clients"]] == [2]
    assert done.status == 0


def test_references_are_read_as_their_client_writes_them(
    home: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_TOOL", "get_x")
    lab = fake("lab", "{env:LAB_TOOL}", "$LAB_TOOL")
    opencode = {"type": "local", "command": [lab["command"], *lab["args"]], "cwd": lab["cwd"]}
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcp": {"lab": opencode}}), "utf-8")
    write(home, ".gemini/settings.json", {"lab": fake("lab", "{env:LAB_TOOL}", "$LAB_TOOL", "p$5")})
    told = {one["client"]: one for one in doctor("--start", "--all", "--json").document["clients"]}

    assert {fate["tool"] for fate in told["opencode"]["tools"]["fates"]} == {"$LAB_TOOL"}
    assert {fate["tool"] for fate in told["gemini-cli"]["tools"]["fates"]} == {"{env:LAB_TOOL}", "p$5"}


def test_what_only_a_client_can_fill_in_is_not_started(home: Path, doctor: Doctor) -> None:
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"mcp": {"lab": {"type": "local", "command": ["x", "{file:~/key}"]}}}), "utf-8")
    (found,) = doctor("--start", "--json").document["findings"]

    assert found["fact"] == "Server 'lab' of opencode was not started: only the client can fill in {file:~/key}."


def test_what_stands_behind_a_reference_is_never_shown(
    home: Path, doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAB_WORD", "behind-the-reference")
    path = home / "truename.toml"
    (home / "lab.env").write_text("LAB_FILE=from-the-env-file\n", "utf-8")
    (home / "lab.env").chmod(0o600)
    path.write_text(
        'env_file = "lab.env"\n[mcpServers.lab]\ncommand = "no-such-program-anywhere"\n'
        'args = ["${LAB_WORD}", "${LAB_FILE}", "pa$$$${x}"]\n',
        "utf-8",
    )
    quiet, started = doctor(path, "--json"), doctor(path, "--start")

    assert quiet.document["not_asked"][0]["would_start"].startswith("no-such-program-anywhere '${LAB_WORD}'")
    for done in (quiet, started, doctor(path)):
        assert "behind-the-reference" not in done.out + done.err
        assert "from-the-env-file" not in done.out + done.err
    assert "cannot find the program" in " ".join(started.out.split())


def test_last_words_do_not_give_a_secret_away(home: Path, doctor: Doctor) -> None:
    script = "import os, sys; sys.exit(f'bad key {os.environ[chr(75)]} and {sys.argv[2]}')"
    server = {
        "command": sys.executable,
        "args": ["-c", script, "--token", "argument-s3cret"],
        "env": {"K": "hidden-k3y"},
    }
    write(home, ".claude.json", {"lab": server})
    for words in ([], ["--json"], ["--sarif", "-"]):
        done = doctor("--start", *words)

        assert "bad key ***" in " ".join(done.out.split())
        assert "hidden-k3y" not in done.out
        assert "argument-s3cret" not in done.out


def test_a_failed_server_is_told_by_the_key_of_its_own_file(home: Path, doctor: Doctor) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "x")})
    write(home, ".gemini/settings.json", {"lab": MISSING})
    (found,) = [one for one in doctor("--start", "--json").document["findings"] if one["code"] == "TN014"]

    assert found["fact"].startswith("Server 'lab' of Gemini CLI cannot be started")


def on_a_terminal(home: Path, answer: str) -> tuple[int, str]:
    """Run the command on a terminal, type an answer, and return the exit status and everything shown."""
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).with_name("truename")), "doctor", "--project", str(home / "project")]
    environ = os.environ | {"HOME": str(home), "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, f"{answer}\n".encode())
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                break
            if not piece:
                break
            shown += piece
    os.close(ours)
    return process.returncode, shown.decode("utf-8", "replace")


@pytest.mark.parametrize(("answer", "status"), [("y", 1), ("n", 0), ("", 0)])
def test_on_a_terminal_it_shows_what_it_would_start_and_asks(home: Path, answer: str, status: int) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "a/b", "a_b")})
    done, shown = on_a_terminal(home, answer)

    assert done == status
    assert "tests.gateway.servers.normal lab a/b a_b" in " ".join(shown.split())
    assert ("through Truename" in shown) is (answer == "y")


def test_the_moving_line_is_gone_before_another_is_printed(home: Path) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "one"), "other": fake("other", "two")})
    _, shown = on_a_terminal(home, "y")

    lines = [line for line in re.split(r"\r|\n", shown) if "ready" in line]
    assert len(lines) == 2
    assert not any("starting:" in line for line in lines)


def test_who_has_just_said_no_is_not_shown_everything_again(home: Path) -> None:
    write(home, ".claude.json", {"lab": fake("lab", "a/b", "a_b")})
    _, shown = on_a_terminal(home, "n")

    assert shown.count("tests.gateway.servers.normal") == 1
    assert "1 server not started, so their tools are unknown." in shown
