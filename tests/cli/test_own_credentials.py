"""Each client reaches its own servers through the gateway, with its own credentials, and one variable stops one server.

The servers are processes that tell which credential they were given.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from tests.cli.conftest import fake
from tests.shared import ROOT
from tests.support.cli_own_credentials import gateway
from tests.support.cli_running import call, serving

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.cli.conftest import Run

pytestmark = pytest.mark.slow

CLAUDE, CURSOR = "tok-of-claude-4711", "tok-of-cursor-0815"
FILES = {"claude-code": ".claude.json", "cursor": ".cursor/mcp.json"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME", "ACCOUNT_TOKEN", "GITHUB_CURSOR_ACCOUNT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    (home := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    return home


def account(token: str | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": sys.executable, "args": ["-m", "tests.gateway.servers.accounting"]}
    entry["env"] = {"PYTHONPATH": str(ROOT), **({} if token is None else {"ACCOUNT_TOKEN": token})}
    return entry


def put(home: Path, client: str, servers: Mapping[str, Any]) -> Path:
    path = home / FILES[client]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}, indent=3), "utf-8")
    return path


def entries(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))["mcpServers"]
    return found


@pytest.mark.parametrize(("claude", "cursor"), [(CLAUDE, None), (None, CURSOR), (CLAUDE, CURSOR)])
def test_each_client_reaches_the_server_with_its_own_credential(
    home: Path, run: Run, tmp_path: Path, claude: str | None, cursor: str | None
) -> None:
    tokens = {"claude-code": claude, "cursor": cursor}
    files = {client: put(home, client, {"github": account(token)}) for client, token in tokens.items()}
    before = {client: path.read_bytes() for client, path in files.items()}

    told = [run("init", "--copy-secrets")]
    with gateway() as (document, url, _):
        told += [run("connect", client, "--url", url, "--yes") for client in files]
        urls = {client: entries(path)["github"]["url"] for client, path in files.items()}
        seen = {client: anyio.run(call, address, "whoami")[1] for client, address in urls.items()}

    assert [one.status for one in told] == [0, 0, 0], [one.err for one in told]
    assert [one["state"] for one in document["servers"]] == ["ready", "ready"]
    assert urls["cursor"].endswith("/mcp/for/cursor/only/github-cursor")
    assert urls["claude-code"].endswith("/mcp/for/claude-code/only/github")
    for client, token in tokens.items():
        assert f"I see {token or 'no token'}." in seen[client]
    assert "github-cursor: called github there; github is another server, that differs in env.ACCOUNT_TOKEN" in (
        told[0].out
    )
    for client, path in files.items():
        told.append(run("disconnect", client, "--yes"))
        assert path.read_bytes() == before[client]
    shown = "".join(one.out + one.err for one in told) + Path("truename.toml").read_text("utf-8")
    kept = [path for path in (tmp_path / "state" / "truename" / "origins").rglob("*") if path.is_file()]
    assert kept
    shown += "".join(path.read_text("utf-8") for path in kept)
    assert CLAUDE not in shown
    assert CURSOR not in shown


def test_without_its_value_a_server_is_told_and_the_others_start(home: Path, run: Run) -> None:
    env = home / "some.env"
    env.touch(0o600)
    broken = {"type": "stdio", **account("${ACCOUNT_TOKEN}")}
    content = {"mcpServers": {"github": broken, **{f"s{n}": fake(f"s{n}", "get") for n in range(3)}}}
    Path("mcp.json").write_text(json.dumps({**content, "truename": {"state": "memory", "env_file": str(env)}}), "utf-8")

    with gateway("mcp.json") as (document, url, err):
        states = {one["key"]: one["state"] for one in document["servers"]}
        (error,) = [one["error"] for one in document["servers"] if one["key"] == "github"]
        answer = anyio.run(call, f"{url}/mcp/only/s1", "get")[1]
        env.write_text("ACCOUNT_TOKEN=later\n", "utf-8")
        err.until("~github")
        err.until("ready")
        later = anyio.run(call, f"{url}/mcp/only/github", "whoami")[1]

    assert states == {"github": "failed", "s0": "ready", "s1": "ready", "s2": "ready"}
    assert "ACCOUNT_TOKEN" in error
    assert "truename init --copy-secrets" in error
    assert "s1:get" in answer
    assert "I see later." in later


def test_a_call_to_a_server_without_its_value_says_what_is_missing(home: Path, run: Run) -> None:
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"github": account("${ACCOUNT_TOKEN}")}}), "utf-8")

    done = run("names", "mcp.json", "--json")

    assert done.status == 3
    assert "the environment variable ACCOUNT_TOKEN is not set" in done.err


def test_what_is_probably_not_meant_is_told_at_the_start_and_at_a_reload(home: Path, run: Run) -> None:
    path = Path("mcp.json")
    path.write_text('{"servers": {}, "truename": {"state": "memory"}}', "utf-8")

    with gateway("mcp.json") as (document, _, err):
        path.write_text(
            json.dumps({"servers": {"s": {**fake("s", "get"), "timeuot": 3}}, "truename": {"state": "memory"}}),
            "utf-8",
        )
        reloaded = json.loads(err.until("}\n"))

    (empty,) = document["warnings"]
    assert "it has no servers" in empty["problem"]
    assert "truename init" in empty["remedy"]
    assert reloaded["reloaded"] == "+s"
    assert [(one["key"], one["remedy"]) for one in reloaded["warnings"]] == [
        ("servers.s.timeuot", "Did you mean 'timeout'?")
    ]
    path.write_text('{"servers": {}, "truename": {"state": "memory"}}', "utf-8")
    with serving("mcp.json", "--http", "127.0.0.1:0") as (_, _, err):
        assert "warning: " in err.until("truename init")


def test_doctor_tells_of_a_misspelt_key(home: Path, run: Run) -> None:
    path = put(home, "cursor", {"github": {"command": "x", "timeuot": 3, "autoApprove": []}})

    (found,) = [one for one in run("doctor", path, "--json").document["findings"] if one["code"] == "TN017"]

    assert (found["server"], found["remedy"]) == ("github", "Did you mean 'timeout'?")


def test_doctor_tells_of_a_variable_that_is_not_set_and_starts_nothing(home: Path, run: Run) -> None:
    put(home, "claude-code", {"github": account("${ACCOUNT_TOKEN}"), "other": fake("other", "get")})
    run("init")

    done = run("doctor", "truename.toml", "--json")

    (found,) = [one for one in done.document["findings"] if one["code"] == "TN014"]
    assert found["server"] == "github"
    assert "the environment variable ACCOUNT_TOKEN is not set" in found["fact"]
    assert "truename init --copy-secrets" in found["remedy"]


def test_a_client_without_the_variables_finds_the_server_made_of_its_entry(
    home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = put(home, "claude-code", {"github": account(CLAUDE)})
    cursor = put(home, "cursor", {"github": account(CURSOR)})
    run("init")

    assert run("connect", "cursor", "--yes").status == 0
    assert run("connect", "claude-code", "--yes").status == 0
    assert entries(cursor)["github"]["url"].endswith("only/github-cursor")
    assert entries(claude)["github"]["url"].endswith("only/github")

    run("disconnect", "cursor", "--yes")
    put(home, "cursor", {"github": account("another")})
    refused = run("connect", "cursor", "--yes")

    assert refused.status == 1
    assert "ACCOUNT_TOKEN is not set here" in " ".join(refused.out.split())
    assert "truename init --copy-secrets" in " ".join(refused.out.split())
    monkeypatch.setenv("GITHUB_CURSOR_ACCOUNT_TOKEN", CURSOR)
    monkeypatch.setenv("ACCOUNT_TOKEN", CLAUDE)
    differs = run("connect", "cursor", "--yes")
    assert differs.status == 1
    assert "differs in 'env.ACCOUNT_TOKEN'" in " ".join(differs.out.split())
    assert "another" not in refused.out + refused.err + differs.err


def test_a_configuration_that_clients_are_connected_to_is_not_replaced(home: Path, run: Run) -> None:
    """A new one would give the key of a connected client's server to another client's."""
    claude = put(home, "claude-code", {"github": account(CLAUDE)})
    put(home, "cursor", {"github": account(CURSOR)})
    run("init", "--copy-secrets")
    run("connect", "claude-code", "--yes")
    before = Path("truename.toml").read_bytes()

    again = run("init", "--copy-secrets", "--force")
    run("disconnect", "claude-code", "--yes")
    last = run("init", "--copy-secrets", "--force")

    assert again.status == 2
    assert "`truename disconnect claude-code`" in again.err
    assert "mcpServers.github" in again.err
    assert before == Path("truename.toml").read_bytes()
    assert last.status == 0
    assert entries(claude)["github"]["command"] == sys.executable


def test_an_entry_that_leads_to_a_server_which_is_gone_is_told(home: Path, run: Run) -> None:
    put(home, "claude-code", {"github": account(CLAUDE), "other": fake("other", "get")})
    run("init", "--copy-secrets")
    run("connect", "claude-code", "--yes")
    text = Path("truename.toml").read_text("utf-8")
    Path("truename.toml").write_text(text.replace("[mcpServers.other", "[mcpServers.another"), "utf-8")
    run("allow")

    done = run("connect", "claude-code", "--yes")

    assert "'other' points at 'other', which the gateway's configuration does not have" in " ".join(done.out.split())


def test_a_denial_holds_when_the_server_gets_a_tool_of_nearly_the_same_name(home: Path, run: Run) -> None:
    """The list has the name as the client shows it; the gateway keeps that name for the tool that it was about."""
    put(home, "claude-code", {"git": fake("git", "get.file", "search")})
    run("init", "--copy-secrets")
    with gateway() as (_, url, _):
        run("connect", "claude-code", "--url", url, "--yes")
    text = Path("truename.toml").read_text("utf-8")
    Path("truename.toml").write_text(text.replace('"get.file"', '"get_file", "get.file"'), "utf-8")
    run("allow")

    with gateway() as (_, url, _):
        _, answer = anyio.run(call, f"{url}/mcp/for/claude-code/only/git", "get_file")

    assert "get.file" in answer
