"""`truename init`: what is found on a machine becomes one file, no secret in it, nothing overwritten or started."""

from __future__ import annotations

import json
import stat
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.homes import SYSTEMS, cases, machine, written
from truename.cli.init import gather
from truename.clients import find
from truename.config import Settings, load, parse, render
from truename.config.proposal import propose

if TYPE_CHECKING:
    from tests.cli.conftest import Outcome, Run
    from truename.clients.machine import System

SECRET = "ghp_0123456789abcdefABCDEF0123456789abcd"
BEARER = "tok-en-4711-value"
GITHUB = {"command": "npx", "args": ["-y", "@mcp/github"], "env": {"GITHUB_TOKEN": SECRET}}
CURSOR = {
    "mcpServers": {
        "github": GITHUB,
        "far": {"url": "https://a.example/mcp", "headers": {"Authorization": f"Bearer {BEARER}"}},
    }
}
CODEX = """
[mcp_servers.github]
command = "npx"
args = ["@mcp/github@latest"]
env = { GITHUB_TOKEN = "%s" }

[mcp_servers.far]
url = "https://other.example/mcp"
bearer_token_env_var = "FAR_TOKEN"
"""
CLAUDE = {
    "mcpServers": {"clock": {"type": "stdio", "command": "uvx", "args": ["clock"], "env": {"TZ": "${TZ:-UTC}"}}},
    "projects": {"/elsewhere": {"mcpServers": {"local": {"type": "stdio", "command": "y"}}}},
}
OPENCODE = {"mcp": {"off": {"type": "local", "command": ["uvx", "thing"], "enabled": False}}}
VSCODE = {
    "inputs": [{"id": "github_token", "type": "promptString"}],
    "servers": {
        "gh": {
            "type": "stdio",
            "command": "npx",
            "args": ["@mcp/github"],
            "env": {"GITHUB_TOKEN": "${input:github_token}"},
        }
    },
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with five clients, and a project of its own that is the current directory."""
    for name in ("GITHUB_TOKEN", "FAR_TOKEN", "XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "TZ"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    project = home / "work"
    monkeypatch.setenv("HOME", str(home))
    put(home / ".cursor" / "mcp.json", json.dumps(CURSOR))
    put(home / ".codex" / "config.toml", CODEX % SECRET)
    put(home / ".claude.json", json.dumps(CLAUDE))
    put(home / ".config" / "opencode" / "opencode.json", json.dumps(OPENCODE))
    put(home / ".config" / "Code" / "User" / "mcp.json", json.dumps(VSCODE))
    put(project / ".mcp.json", json.dumps({"mcpServers": {"stranger": {"command": "./evil"}}}))
    monkeypatch.chdir(project)
    return home


linux = pytest.mark.skipif(sys.platform != "linux", reason="the made-up home is one of Linux")
pytestmark = linux


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def secrets_in(outcome: Outcome) -> list[str]:
    return [secret for secret in (SECRET, BEARER) if secret in outcome.out + outcome.err]


def test_one_file_of_all_clients_servers(home: Path, run: Run) -> None:
    outcome = run("init")
    text = Path("truename.toml").read_text("utf-8")
    config = load("truename.toml", {"GITHUB_TOKEN": "a", "FAR_TOKEN": "b", "FAR_TOKEN_2": "c", "FAR_CODEX_TOKEN": "d"})

    assert outcome.status == 0, outcome.err
    assert sorted(server.key for server in config.servers) == ["clock", "far", "far-codex", "gh", "github", "off"]
    assert [server.key for server in config.servers if server.disabled] == ["off"]
    assert config.settings.server_name == "tn"
    assert text.startswith("#:schema ./truename.schema.json\n")
    assert "# Cursor: ~/.cursor/mcp.json (mcpServers.github)" in text
    assert "# called far there; far is another server, that differs in url, headers.authorization" in text
    assert SECRET not in text
    assert BEARER not in text
    assert secrets_in(outcome) == []


def test_the_summary_says_which_variables_and_what_next(home: Path, run: Run) -> None:
    out = run("init").out

    assert "GITHUB_TOKEN" in out
    assert "its value is in ~/.cursor/mcp.json: mcpServers.github.env.GITHUB_TOKEN" in out
    assert "${input:github_token}" in out
    assert "truename serve truename.toml --http 127.0.0.1:8750" in out
    assert "truename connect " in out
    assert "6 servers." in out
    assert "far-codex: called far there; far is another server" in out


def test_the_schema_beside_it_accepts_what_was_written(home: Path, run: Run) -> None:
    run("init")
    schema = json.loads(Path("truename.schema.json").read_text("utf-8"))
    tomllib = import_module("tomllib")

    import_module("jsonschema").Draft202012Validator(schema).validate(
        tomllib.loads(Path("truename.toml").read_text("utf-8"))
    )


def test_a_projects_servers_count_only_when_it_is_named(home: Path, run: Run) -> None:
    assert "stranger" not in keys(run("init", "--json", "--dry-run"))
    assert "stranger" in keys(run("init", "--json", "--dry-run", "--project", "."))
    assert keys(run("init", "--json", "--dry-run", ".mcp.json")) == ["stranger"]


def test_a_projects_server_is_started_in_its_project(home: Path, run: Run) -> None:
    run("init", "--project", ".")
    config = load("truename.toml", dict.fromkeys(["GITHUB_TOKEN", "FAR_TOKEN", "FAR_CODEX_TOKEN", "FAR_TOKEN_2"], "x"))

    assert {server.key: server.cwd for server in config.servers}["stranger"] == str(home / "work")


def test_what_was_configured_for_one_project_counts_in_that_project_only(home: Path, run: Run) -> None:
    other = home / "other"
    other.mkdir()
    claude = {"projects": {str(other): {"mcpServers": {"local": {"command": "y"}}}}}
    put(home / ".claude.json", json.dumps(claude))

    assert "local" not in keys(run("init", "--json", "--dry-run", "--project", "."))
    assert "local" in keys(run("init", "--json", "--dry-run", "--project", other))


def keys(outcome: Outcome) -> list[str]:
    return [server["key"] for server in outcome.document["servers"]]


def test_secrets_are_copied_only_when_asked_and_for_oneself_alone(home: Path, run: Run) -> None:
    outcome = run("init", "--copy-secrets")
    path = Path("truename.env")
    config = load("truename.toml", {"FAR_TOKEN": "x"})
    servers = {server.key: server for server in config.servers}

    assert outcome.status == 0, outcome.err
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert servers["github"].env == {"GITHUB_TOKEN": SECRET}
    assert servers["far"].headers == {"Authorization": f"Bearer {BEARER}"}
    assert SECRET not in Path("truename.toml").read_text("utf-8")
    assert secrets_in(outcome) == []
    assert ".gitignore" in outcome.out


def test_secrets_are_in_no_document_for_programs(home: Path, run: Run) -> None:
    outcome = run("init", "--json", "--copy-secrets")

    assert secrets_in(outcome) == []
    names = {variable["name"]: variable for variable in outcome.document["variables"]}
    assert names["GITHUB_TOKEN"]["set"]
    assert outcome.document["written"] == ["truename.env", "truename.schema.json", "truename.toml"]


def test_a_dry_run_prints_the_file_and_writes_nothing(home: Path, run: Run) -> None:
    before = sorted(Path.cwd().iterdir())
    outcome = run("init", "--dry-run", "--copy-secrets")

    assert outcome.out.startswith("#:schema")
    assert "GITHUB_TOKEN" in outcome.out
    assert sorted(Path.cwd().iterdir()) == before
    assert secrets_in(outcome) == []


def test_nothing_is_overwritten_unless_forced_and_then_kept(home: Path, run: Run) -> None:
    Path("truename.toml").write_text("# mine\n", "utf-8")

    refused = run("init")
    assert (refused.status, Path("truename.toml").read_text("utf-8")) == (2, "# mine\n")
    assert "--force" in refused.err
    assert run("init", "--force").status == 0
    assert run("init", "--force").status == 0
    assert Path("truename.toml.bak").read_text("utf-8") == "# mine\n"
    assert Path("truename.toml.bak1").read_text("utf-8") == Path("truename.toml").read_text("utf-8")


def test_an_env_file_that_is_there_is_neither_lost_nor_forgotten(home: Path, run: Run) -> None:
    path = Path("truename.env")
    path.write_text("MINE=1\nGITHUB_TOKEN=2\n", "utf-8")
    path.chmod(0o600)

    assert run("init", "--copy-secrets").status == 2
    assert run("init").status == 0
    assert load("truename.toml", {"FAR_TOKEN": "x", "FAR_CODEX_TOKEN": "y", "FAR_TOKEN_2": "z"}).settings.env_file
    assert run("init", "--copy-secrets", "--force").status == 0
    assert "MINE=1" in path.read_text("utf-8")
    backup = Path("truename.env.bak")
    assert backup.read_text("utf-8") == "MINE=1\nGITHUB_TOKEN=2\n"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["link", "directory", "nowhere/x.toml"])
def test_a_place_that_is_no_file_is_refused(home: Path, run: Run, name: str) -> None:
    Path("link").symlink_to("truename.toml")
    Path("directory").mkdir()

    outcome = run("init", "--force", "--out", name)

    assert outcome.status == 2
    assert not Path("truename.toml").exists()


def test_a_broken_file_of_a_client_is_told_and_the_others_are_used(home: Path, run: Run) -> None:
    put(home / ".gemini" / "settings.json", '{"mcpServers": {')

    outcome = run("init", "--json")

    assert outcome.status == 1
    assert [Path(problem["file"]).name for problem in outcome.document["problems"]] == ["settings.json"]
    assert len(outcome.document["servers"]) == 6


def test_an_entry_that_can_be_no_server_is_told(home: Path, run: Run) -> None:
    put(
        home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"odd": {"url": "ftp://x"}, "good": {"command": "x"}}})
    )

    outcome = run("init", home / ".cursor" / "mcp.json")

    assert outcome.status == 1
    assert "ftp://x" in outcome.err
    assert [server.key for server in load("truename.toml").servers] == ["good"]


NOTHING: list[tuple[dict[str, Any] | None, str]] = [
    (None, "no client on this machine"),
    ({"mcpServers": {"tn": {"url": "http://127.0.0.1:8750/mcp"}}}, "Truename itself"),
    ({"mcpServers": {"a": {"url": "ftp://x"}}}, "cannot be used"),
]


@pytest.mark.parametrize(("content", "fact"), NOTHING, ids=[fact for _, fact in NOTHING])
def test_where_there_is_nothing_it_says_so(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, content: dict[str, Any] | None, fact: str
) -> None:
    home = tmp_path / "empty"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if content is not None:
        put(home / ".cursor" / "mcp.json", json.dumps(content))

    outcome = run("init")

    assert outcome.status == 2
    assert fact in outcome.err
    assert not Path("truename.toml").exists()


def test_nothing_that_is_found_is_run_or_shown_raw(home: Path, run: Run) -> None:
    canary = home / "canary"
    hostile = f"$(touch {canary})`touch {canary}`\x1b[2J\u202e"
    entry = {"command": hostile, "args": [hostile], "env": {"A": hostile, "X_TOKEN": hostile}, "cwd": hostile}
    put(home / ".cursor" / "mcp.json", json.dumps({"mcpServers": {"x": entry, hostile: {"command": "y"}}}))

    for words in (["init", "--dry-run"], ["init", "--json", "--dry-run"], ["init", "--copy-secrets"]):
        outcome = run(*words)
        assert "\x1b" not in outcome.out + outcome.err
        assert "\u202e" not in outcome.out + outcome.err
    assert not canary.exists()


@pytest.mark.parametrize("system", SYSTEMS)
def test_of_a_home_with_everything_in_it_nothing_is_lost(tmp_path: Path, system: System) -> None:
    here = machine(tmp_path, system)
    for number, case in enumerate(cases(system)):
        if not (tmp_path / case.steps).exists():
            written(tmp_path, case, f"s{number}")
    wanted = sorted((str(one.path), one.server.key, one.client) for found in find(here) for one in found.servers)

    gathered = gather([], here, project=True)
    proposal = propose(gathered.seen, here.environ)
    text = render(proposal.config(Settings(server_name="tn")), notes=proposal.notes)
    told = [seen for merged in proposal.servers for seen in merged.seen]

    told += gathered.unnamed
    assert {seen.client for seen in gathered.unnamed} <= {"claude-code"}, "another project's"
    assert (gathered.problems, proposal.refused, proposal.gateways) == ((), (), ())
    assert sorted((seen.server.key, seen.client) for seen in told) == sorted((key, client) for _, key, client in wanted)
    assert len(parse(text, tmp_path / "truename.toml", {}).servers) == len(proposal.servers)
