"""`truename serve` reads its configuration anew, when it is told to and when the files change, and drops no call."""

from __future__ import annotations

import json
import os
import pty
import signal
import sys
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client, StdioServerParameters

from tests.cli.conftest import fake
from tests.shared import ROOT
from tests.support.cli_ending import until
from tests.support.cli_running import TRUENAME, call, serving
from truename.cli import _reload as reloading
from truename.cli._reload import Reloads, files_of, line_of
from truename.cli._sources import CODE
from truename.config import Config, Settings, load
from truename.config.watch import Reread, Watch
from truename.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "500")


HTTP = ("--http", "127.0.0.1:0", "--json")


def journal(file: Path, *tools: str) -> dict[str, Any]:
    args = ["-m", "tests.gateway.servers.journal", str(file), *tools]
    return {"command": sys.executable, "args": args, "cwd": str(ROOT)}


def write(path: Path, servers: dict[str, Any], **settings: Any) -> None:
    """Write as careful editors do: another file in its place."""
    beside = path.with_suffix(".new")
    beside.write_text(json.dumps({"mcpServers": servers, "truename": settings}, indent=1), "utf-8")
    beside.replace(path)


def url_of(out: Any) -> str:
    document = ""
    while not document.endswith("\n}\n"):
        document += out._lines.get(timeout=30)
    return str(json.loads(document)["url"])


def test_sighup_changes_servers_under_running_calls(tmp_path: Path) -> None:
    source, old, new = tmp_path / "mcp.json", tmp_path / "old", tmp_path / "new"
    write(source, {"j": journal(old, "hold"), "w": fake("w", "get")}, reload="signal")

    with serving(source, *HTTP) as (process, out, err):
        url, answers = url_of(out), list[str]()

        async def story() -> None:
            async with Client(url, mode="legacy") as client, anyio.create_task_group() as tasks:

                async def hold() -> None:
                    answers.append(str((await client.call_tool("j_hold", {})).content))

                for _ in range(3):
                    tasks.start_soon(hold)
                while not old.exists():
                    await anyio.sleep(0.02)
                write(source, {"j": journal(new, "note"), "v": fake("v", "get")}, reload="signal")
                process.send_signal(signal.SIGHUP)
                assert json.loads(await anyio.to_thread.run_sync(err.until, "reloaded")) == {"reloaded": "+v, -w, ~j"}
                while [tool.name for tool in (await client.list_tools()).tools] != ["j_note", "v_get"]:
                    await anyio.sleep(0.05)
                answers.append(str((await client.call_tool("v_get", {})).content))
                assert len(answers) == 1
                old.with_suffix(".gate").touch()

        anyio.run(story)
        assert "v:get" in answers[0]
        assert [("journal:hold" in one) for one in answers[1:]] == [True] * 3
        assert process.poll() is None


def test_a_file_that_changes_is_read_anew_and_a_wrong_one_changes_nothing(tmp_path: Path) -> None:
    source = tmp_path / "mcp.json"
    write(source, {"w": fake("w", "get")})

    with serving(source, "--http", "127.0.0.1:0") as (process, out, err):
        url = out.until("/mcp  ").split()[0]
        source.write_text('{"mcpServers": {\n"w": {"command": 5}\n}}')
        err.until("The new configuration is not used")
        err.until("line 2:")
        err.until("mcpServers.w.command: it is 5, not a text")
        assert anyio.run(call, url, "get")[0] == ["get"]

        source.unlink()
        err.until("it no longer exists, or is not a regular file")
        assert anyio.run(call, url, "get")[0] == ["get"]

        (tmp_path / "truename.toml").write_text("call_timeout = 7\n")
        write(source, {"w": fake("w", "get", "put")})
        err.until("reloaded: ~w, call_timeout")
        until(lambda: "put" in anyio.run(call, url, "get")[0])
        assert process.poll() is None


REFUSED = {
    "syntax": ('{"mcpServers": {', "line 1"),
    "a key that nobody knows": ('{"mcpServers": {}, "truename": {"max_tols": 3}}', "max_tols: it is not a setting"),
    "the state": ('{"mcpServers": {}, "truename": {"state": "other"}}', "state: it cannot change"),
    "the style": (
        '{"mcpServers": {}, "truename": {"state": "LEDGER", "style": "canonical"}}',
        "This ledger was created",
    ),
    "a variable": ('{"mcpServers": {}, "truename": {"token": "${NOT_SET_ANYWHERE}"}}', "NOT_SET_ANYWHERE is not set"),
    "another kind of file": ('{"mcpServers": [1]}', "is a dump of tools, not a configuration"),
}


def test_whatever_is_wrong_the_gateway_goes_on(tmp_path: Path) -> None:
    source = tmp_path / "mcp.json"
    ledger = str(tmp_path / "l.ledger")
    write(source, {"w": fake("w", "get")}, reload="signal", state=ledger)

    with serving(source, *HTTP) as (process, out, err):
        url = url_of(out)
        for text, told in REFUSED.values():
            source.write_text(text.replace("LEDGER", ledger))
            process.send_signal(signal.SIGHUP)
            refused = json.loads(err.until('"reloaded"'))
            assert refused["reloaded"] is None
            assert told in " ".join(one["text"] for one in refused["errors"])
            assert anyio.run(call, url, "get")[0] == ["get"]
        write(source, {"w": fake("w", "get")}, reload="signal", state=ledger)
        process.send_signal(signal.SIGHUP)
        assert json.loads(err.until('"reloaded"')) == {"reloaded": "nothing changed"}


def test_stdio_is_reloaded_too(tmp_path: Path) -> None:
    source = tmp_path / "mcp.json"
    write(source, {"w": fake("w", "get")}, reload="signal")
    with serving(source) as (process, _, err):
        err.until("Serving over")
        write(source, {"w": fake("w", "get"), "v": fake("v", "get")}, reload="signal")
        process.send_signal(signal.SIGHUP)
        err.until("reloaded: +v")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
def test_a_call_over_stdio_goes_on_while_the_file_changes(tmp_path: Path, era: str) -> None:
    source, old, new = tmp_path / "mcp.json", tmp_path / "old", tmp_path / "new"
    write(source, {"j": journal(old, "hold"), "w": fake("w", "get")})
    answers: list[str] = []

    async def story() -> None:
        started = StdioServerParameters(command=TRUENAME, args=["serve", str(source)], env=dict(os.environ))
        async with Client(started, mode=era) as client, anyio.create_task_group() as tasks:

            async def hold() -> None:
                answers.append(str((await client.call_tool("j_hold", {})).content))

            tasks.start_soon(hold)
            with anyio.fail_after(30):
                while not old.exists():
                    await anyio.sleep(0.02)
                write(source, {"j": journal(new, "note")})
                while [tool.name for tool in (await client.list_tools(cache_mode="bypass")).tools] != ["j_note"]:
                    await anyio.sleep(0.05)
            assert not answers
            assert (await client.call_tool("w_get", {})).is_error
            old.with_suffix(".gate").touch()

    anyio.run(story)
    assert "journal:hold" in answers[0]
    assert old.read_text().count("\n") == 1


def test_a_file_is_news_when_two_looks_saw_the_same(tmp_path: Path) -> None:
    file, other = tmp_path / "a", tmp_path / "b"
    file.write_text("1")
    watch = Watch(lambda: (file, other))
    assert not watch.look()

    file.write_text("12")
    assert [watch.look(), watch.look(), watch.look()] == [False, True, True]
    assert watch.read(file.read_text) == "12"
    assert not watch.look()

    other.write_text("x")
    file.unlink()
    assert [watch.look(), watch.look()] == [False, True]
    with pytest.raises(FileNotFoundError):
        watch.read(file.read_text)
    # Told once.
    assert [watch.look(), watch.look()] == [False, False]

    file.write_text("123")
    assert [watch.look(), watch.look()] == [False, True]


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_written_while_it_is_read_is_read_later(tmp_path: Path, fails: bool) -> None:
    file = tmp_path / "a"
    file.write_text("whole")
    watch = Watch(lambda: (file,))
    file.write_text("ha")

    def load() -> str:
        text = file.read_text()
        file.write_text("half and half")
        if fails:
            raise ValueError(text)
        return text

    assert watch.read(load) is None
    assert [watch.look(), watch.look()] == [False, True]
    assert watch.read(file.read_text) == "half and half"


def test_a_pipe_is_never_news(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    watch = Watch(lambda: (pipe,))
    os.utime(pipe)
    assert [watch.look(), watch.look()] == [False, False]


def test_the_files_are_those_of_which_the_configuration_is_made(tmp_path: Path) -> None:
    source = tmp_path / "mcp.json"
    secrets = Settings(env_file=str(tmp_path / "x.env"))
    assert files_of(Config(path=source, settings=secrets)) == (
        source,
        tmp_path / "truename.toml",
        tmp_path / "x.env",
    )
    assert files_of(Config(path=tmp_path / "truename.toml")) == (tmp_path / "truename.toml",)
    assert files_of(Config()) == ()


LOCATED = [
    ("mcp.json", '{\n"mcpServers": {\n"a.b": {\n"command": 5}}}', 4),
    ("mcp.json", '{\n"mcpServers": {},\n"truename": {\n"max_tools": 0}}', 4),
    ("mcp.toml", '[mcpServers.a]\ncommand = "x"\nargs = [{}]\n', 3),
    ("mcp.toml", "max_tools = 0\n[mcpServers]\n", 1),
    ("mcp.json", "{", None),
]


@pytest.mark.parametrize(("name", "text", "line"), LOCATED)
def test_an_error_is_placed_by_its_key(tmp_path: Path, name: str, text: str, line: int | None) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises((ConfigError, ExceptionGroup)) as caught:
        load(path)
    error: Any = caught.value
    assert line_of(error.exceptions[0] if isinstance(error, ExceptionGroup) else error) == line


def test_what_has_no_place_has_no_line(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone.json")
    assert line_of(ValueError("x")) is None
    assert line_of(ConfigError(file=gone, key="max_tools", problem="x", remedy="y")) is None
    (tmp_path / "mcp.json").write_text("{}")
    assert line_of(ConfigError(file=str(tmp_path / "mcp.json"), key="token", problem="x", remedy="y")) is None


def test_a_closed_terminal_is_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = pty.openpty()
    monkeypatch.setattr(reloading, "TERMINALS", (terminal,))

    async def story() -> list[bool]:
        reloads = Reloads(Reread(Config), Config(), as_json=False)
        found = [reloads.hang_up()]
        os.close(controller)
        return [*found, reloads.hang_up()]

    try:
        assert anyio.run(story) == [True, False]
    finally:
        os.close(terminal)


def test_a_found_configuration_that_changes_is_taken_when_it_is_allowed(tmp_path: Path, run: Run) -> None:
    source, canary = tmp_path / "mcp.json", tmp_path / "canary"
    write(source, {"w": fake("w", "get")})
    run("allow")

    with serving(*HTTP) as (process, out, err):
        url = url_of(out)
        write(source, {"w": fake("w", "get", "put"), "evil": journal(canary, "x")})
        refused = json.loads(err.until('"reloaded"'))
        assert (refused["reloaded"], refused["errors"][0]["code"]) == (None, CODE)
        assert anyio.run(call, url, "get")[0] == ["get"]
        assert not canary.exists()

        run("allow")
        assert json.loads(err.until('"reloaded"')) == {"reloaded": "+evil, ~w"}

        run("allow", "--revoke")
        assert json.loads(err.until('"reloaded"'))["reloaded"] is None
        assert process.poll() is None
