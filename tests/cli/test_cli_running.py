"""Commands that start servers, and the installed command in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

import anyio
import pytest
from mcp import StdioServerParameters

from tests.cli.conftest import Run, entry, fake
from tests.support.cli_running import TRUENAME, call, serving
from truename.config import state_path

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

MISSING = {"command": "no-such-program-anywhere"}


def test_names_of_a_configuration_come_from_its_running_servers(run: Run, configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"], "two": ["search", "add"]})

    done = run("names", source, "--json")

    assert done.status == 0
    assert [tool["name"] for tool in done.document["tools"]] == ["one_search", "two_search", "two_add"]
    assert "one  ready" in done.err


def test_a_server_that_fails_is_told_and_does_not_stop_the_others(run: Run, configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"]}, servers={"gone": MISSING})

    done = run("names", source, "--json")

    assert done.status == 3
    assert [tool["id"] for tool in done.document["tools"]] == ["one@1/search@1"]
    assert done.document["failed"] == ["gone"]
    assert "gone  failed" in done.err
    assert done.err.count("no-such-program-anywhere") == 1


def test_without_a_source_the_configuration_here_is_used(run: Run, configure: Callable[..., Path]) -> None:
    configure({"one": ["search"]})
    run("allow")

    assert run("resolve", "search", "--json").document["id"] == "one@1/search@1"


def test_a_configuration_is_told_by_its_content_not_its_name(run: Run, configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"]}).rename("settings.txt")

    assert [tool["id"] for tool in run("names", source, "--json").document["tools"]] == ["one@1/search@1"]


def test_dumps_and_configurations_can_be_mixed(run: Run, configure: Callable[..., Path], dump: Path) -> None:
    tools = run("names", configure({"one": ["search"]}), dump, "--json").document["tools"]

    assert {"one@1/search@1", "github@1/search@1"} <= {tool["id"] for tool in tools}


def test_http_serves_until_interrupted_and_ends_with_0(configure: Callable[..., Path]) -> None:
    asking = {"policy": {"rules": [{"outcome": "ask", "tools": ["one/search"]}]}}
    source = configure({"one": ["search", "fs.list"], "two": ["search"]}, servers={"gone": MISSING}, truename=asking)

    with serving(source, "--http", "127.0.0.1:0") as (process, out, err):
        err.until("gone  failed")
        out.until("Policy: 1 rule; calls that no rule matches are allowed (policy.default).")
        connect = out.until("claude mcp add")
        url = connect.split()[-1]
        out.until("Ctrl-C ends it.")
        listed, answer = anyio.run(call, url, "two_search")
        only, _ = anyio.run(call, url.replace("/mcp", "/mcp/only/two"), "search")
        process.send_signal(signal.SIGINT)
        status = process.wait(30)

    assert listed == ["one_search", "one_fs_list", "two_search"]
    assert only == ["search"]
    assert "two" in answer
    assert any(line.startswith("one/fs.list") and "one_fs_list" in line for line in out.seen)
    assert status == 0


def test_the_start_says_where_the_web_console_is(configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"]})
    with serving(source, "--http", "127.0.0.1:0", "--console") as (_, out, _):
        line = out.until("The web console is at ")
        assert line.startswith("The web console is at http://127.0.0.1:")
        assert line.endswith("/console.\n")


def test_a_start_with_many_tools_is_told_in_a_few_lines(
    configure: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / ".cursor").mkdir()
    (home / ".cursor" / "mcp.json").write_text('{"mcpServers": {}}', "utf-8")
    source = configure({f"server{number}": [f"tool_{n}" for n in range(9)] for number in range(10)})

    with serving(source, "--http", "127.0.0.1:0") as (process, out, _):
        out.until("Ctrl-C ends it.")
        process.send_signal(signal.SIGINT)
        process.wait(30)
    with serving(source, "--http", "127.0.0.1:0", "--verbose") as (process, whole, _):
        whole.until("Ctrl-C ends it.")
        process.send_signal(signal.SIGINT)
        process.wait(30)

    # What is longer than a terminal's line takes several.
    assert sum(max(1, -(-len(line) // 80)) for line in out.seen) <= 30
    assert "90 tools of 10 servers" in out.seen[1]
    losses = [line for line in out.seen if line.startswith("Without Truename, ")]
    # It counts as `truename doctor` does: of tools that share a name it is not known that they cannot be called.
    said = "Without Truename, Cursor with all 10 servers could not call 0 of 90 tools, 90 uncertain."
    assert [line.strip() for line in losses] == [said]
    assert any("server7/tool_3" in line for line in whole.seen)
    assert not any("server7/tool_3" in line for line in out.seen)


def test_the_start_is_one_json_document_when_asked(configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"]}, servers={"gone": MISSING})

    with serving(source, "--http", "127.0.0.1:0", "--json") as (process, out, _):
        while (line := out.until("}")) != "}\n":
            assert line
        document = json.loads("\n".join(out.seen))
        process.send_signal(signal.SIGTERM)
        status = process.wait(30)

    assert document["url"].startswith("http://127.0.0.1:")
    assert [(one["key"], one["state"]) for one in document["servers"]] == [("one", "ready"), ("gone", "failed")]
    assert document["tools"] == [{"id": "one@1/search@1", "name": "one_search"}]
    assert document["policy"] is None
    assert status == 0


def test_stdio_serves_a_client_and_tells_the_rest_on_stderr(configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"], "two": ["search"]})
    target = StdioServerParameters(command=TRUENAME, args=["serve", str(source)], env=dict(os.environ))

    listed, answer = anyio.run(call, target, "two_search")

    assert listed == ["one_search", "two_search"]
    assert "two" in answer


def test_stdio_ends_with_its_input(configure: Callable[..., Path]) -> None:
    with serving(configure({"one": ["search"]}), "--only", "one") as (process, _, err):
        err.until("Serving over standard input and output.")
        assert process.stdin is not None
        process.stdin.close()
        status = process.wait(30)

    assert status == 0
    assert any(line.split() == ["tool", "name", "at", "/mcp/only/one"] for line in err.seen)


def test_stdio_ends_when_interrupted(configure: Callable[..., Path]) -> None:
    with serving(configure({"one": ["search"]})) as (process, _, err):
        err.until("Serving over standard input and output.")
        process.send_signal(signal.SIGINT)
        status = process.wait(30)

    assert status == 0


def test_a_public_address_needs_a_token(run: Run, configure: Callable[..., Path]) -> None:
    done = run("serve", configure({"one": ["search"]}), "--http", "0.0.0.0:0", "--state", "memory")

    assert (done.status, done.out) == (2, "")
    assert "no authentication is configured" in " ".join(done.err.split())


def test_an_address_of_all_interfaces_is_shown_as_one_that_can_be_used(configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"]}, truename={"token": "t"})
    with serving(source, "--http", "0.0.0.0:0", "--state", "memory") as (_, out, err):
        assert out.until("/mcp  ").strip().startswith("http://127.0.0.1:")
        err.until("Listening on all interfaces")


def test_the_start_shows_the_addresses_of_profiles_and_contexts(tmp_path: Path) -> None:
    source = tmp_path / "truename.json"
    settings = {
        "profiles": {"all": {"servers": ["one"], "everyone": True}, "none": {"tools": ["one/x"], "default": True}},
        "contexts": {"phone": {"platform": "ios"}},
    }
    source.write_text(json.dumps({"mcpServers": {"one": fake("one", "search")}, "truename": settings}))
    with serving(source, "--http", "127.0.0.1:0") as (_, out, _):
        assert "the tools of a profile: all, none" in out.until("/mcp/profile/NAME")
        assert "the tools of a context: phone" in out.until("/mcp/in/CONTEXT")


def test_serving_remembers_and_history_and_rename_find_it(run: Run, configure: Callable[..., Path]) -> None:
    source = configure({"one": ["search"], "two": ["search"]})
    with serving(source, "--style", "prefixed") as (_, _, err):
        err.until("Serving over")

    held = run("history", "one_search", source)
    renamed = run("rename", source, "--all", "--alias", "one=uno", "--json")

    assert state_path(source).is_file()
    assert "is held, one@1/search@1" in held.out
    assert [change["new"] for change in renamed.document["renamed"]] == ["uno_search"]


def test_what_a_server_says_is_told_without_escapes(run: Run, configure: Callable[..., Path]) -> None:
    dying = fake("dying") | {"args": ["-m", "tests.gateway.servers.dying"]}

    done = run("names", configure({}, servers={"[red]d[/red]": dying}))

    assert done.status == 3
    assert "[red]d[/red]  failed" in done.err
    assert "\x1b" not in done.err


def test_the_version_is_the_packages() -> None:
    assert entry("--version").out.strip() == version("truename")


@pytest.mark.parametrize("words", [(), ("--help",)])
def test_help_names_every_command(words: tuple[str, ...]) -> None:
    done = entry(*words, COLUMNS="80")

    assert (done.status, done.err) == (0, "")
    for command in ("names", "resolve", "clients", "serve", "history", "rename", "demo"):
        assert f"│ {command} " in done.out


@pytest.mark.parametrize("command", ["names", "resolve", "clients", "serve", "history", "rename", "demo"])
def test_every_command_explains_itself(run: Run, command: str) -> None:
    done = run(command, "--help")

    assert (done.status, done.err) == (0, "")
    assert "--json" in done.out


def test_help_does_not_import_what_only_commands_need() -> None:
    code = "import sys; from truename.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    loaded = set(done.stderr.split())
    assert not loaded & {
        "mcp",
        "uvicorn",
        "httpx2",
        "anyio",
        "truename.gateway",
        "truename.config",
        "importlib.metadata",
    }


def test_serve_does_not_import_what_a_plain_configuration_does_not_need() -> None:
    code = "import sys, truename.cli.serve, truename.gateway; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)

    loaded = set(done.stdout.split())
    assert {"truename.gateway.gateway", "truename.config.settings"} <= loaded
    unneeded = {
        # What prints, before there is something to print.
        "rich",
        # Clients' files, names that change, the rules about texts: for other commands, and for tools that are new.
        "truename.adapters",
        "truename.clients",
        "truename.conventions.rules",
        "truename.editing",
        "truename.lint",
        "truename.migration",
        "truename.trust.screening",
        # Servers behind a proxy, with cookies or an authorization server; sign-in; metrics; secrets in a keyring.
        "http.cookiejar",
        "httpx2",
        "joserfc",
        "keyring",
        "mcp",
        "prometheus_client",
        "pydantic",
        "urllib.request",
        "yaml",
    }
    assert loaded & unneeded == set()


def test_a_pipe_gets_no_colours_and_no_broken_lines(dump: Path) -> None:
    environ = {"COLUMNS": "", "FORCE_COLOR": ""}

    done = entry("names", dump, **environ)

    assert done.status == 0
    assert "\x1b" not in done.out
    assert any(line.split() == ["github/create_issue", "github_create_issue"] for line in done.out.splitlines())


def test_an_ascii_terminal_is_no_reason_to_fail(dump: Path) -> None:
    done = entry("names", dump, "--compare", PYTHONIOENCODING="ascii")

    assert (done.status, done.err) == (0, "")
    assert done.out.isascii()


def test_a_reader_that_has_seen_enough_is_no_fault(dump: Path) -> None:
    script = f"{TRUENAME} clients --json | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)

    assert (done.stdout, done.stderr) == ("[\n", "")


def test_over_stdio_a_server_that_was_taken_away_does_not_stop_the_others(
    run: Run, configure: Callable[..., Path]
) -> None:
    source = configure({"one": ["search"], "two": ["search"]}, truename={"state": "memory"})

    with serving(source, "--server", "one", "--server", "gone") as (_, _, err):
        told = err.until("Serving over standard input")
    refused = run("serve", source, "--server", "gone")

    assert "two  ready" not in told
    assert refused.status == 2
    assert "'gone'" in refused.err
