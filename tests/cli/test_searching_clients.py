"""A client's lists of tools: no address that searches goes around them, and the gateway can be given the same rules."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.cli_connect import servers, words
from truename import Catalog, project
from truename.config import load
from truename.policy import Caller, bound_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Run

GITLAB = {"command": "npx", "args": ["-y", "gitlab"]}
TOOLS = ["delete_branch", "list_branches", "create_branch"]
CONFIGURED = """
[mcpServers.gitlab]
command = "npx"
args = ["-y", "gitlab"]
"""


def claude(home: Path) -> None:
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"gitlab": GITLAB}}), "utf-8")
    (home / ".claude").mkdir()
    permissions = {"deny": ["mcp__gitlab__delete_branch"], "ask": ["mcp__gitlab__create_branch"]}
    (home / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}), "utf-8")


def gemini(home: Path, **lists: list[str]) -> None:
    (home / ".gemini").mkdir()
    text = json.dumps({"mcpServers": {"gitlab": {**GITLAB, **lists}}})
    (home / ".gemini" / "settings.json").write_text(text, "utf-8")


def codex(home: Path, lists: str) -> None:
    (home / ".codex").mkdir()
    text = f'[mcp_servers.gitlab]\ncommand = "npx"\nargs = ["-y", "gitlab"]\n{lists}\n'
    (home / ".codex" / "config.toml").write_text(text, "utf-8")


LISTING: dict[str, Callable[[Path], None]] = {
    "claude-code": claude,
    "gemini-cli": lambda home: gemini(home, excludeTools=["delete_branch"]),
    "codex": lambda home: codex(home, 'disabled_tools = ["delete_branch"]'),
    "gemini-cli that includes": lambda home: gemini(home, includeTools=["list_branches", "create_branch"]),
    "codex that enables": lambda home: codex(home, 'enabled_tools = ["list_branches", "create_branch"]'),
}


@pytest.fixture
def home(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("truename.cli.connect.is_running", lambda _: False)
    (home := tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    Path("truename.toml").write_text(CONFIGURED, "utf-8")
    Path("tools.json").write_text(json.dumps({"gitlab": {"tools": [{"name": name} for name in TOOLS]}}), "utf-8")
    run("allow")
    return home


def files(home: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize("case", LISTING)
@pytest.mark.parametrize("setting", ["", "auto", "on"])
def test_a_client_with_lists_gets_no_address_that_searches(run: Run, home: Path, case: str, setting: str) -> None:
    LISTING[case](home)
    client, before = case.partition(" ")[0], files(home)
    if setting:
        Path("truename.toml").write_text(f'tool_search = "{setting}"\n{CONFIGURED}', "utf-8")
        run("allow")

    done = run("connect", client, "--yes", *([] if setting else ["--search"]))

    assert done.status == 2
    assert f"limits the tools of {client}" in words(done.err)
    assert ("tool_search" if setting else "Connect without --search") in words(done.err)
    assert f"truename policy from-client {client}" in words(done.err)
    assert files(home) == before


@pytest.mark.parametrize("case", LISTING)
def test_its_address_lists_all_tools_and_its_own_lists_stay(run: Run, home: Path, case: str) -> None:
    LISTING[case](home)
    client = case.partition(" ")[0]

    done = run("connect", client, "--yes", "--json")

    assert done.status == 0
    assert json.loads(done.out)["search"] is False
    written = "".join(
        path.read_text("utf-8") for path in home.rglob("*") if path.is_file() and "backup" not in str(path)
    )
    assert "/only/gitlab" in written
    assert "/search" not in written
    assert "_branch" in written


def test_a_client_without_lists_gets_an_address_that_searches_if_it_is_asked_for(run: Run, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"gitlab": GITLAB}}), "utf-8")
    before = path.read_bytes()

    assert run("connect", "cursor", "--search", "--yes").status == 0
    assert servers(path)["gitlab"] == {"url": "http://127.0.0.1:8750/mcp/for/cursor/search/only/gitlab"}
    assert run("disconnect", "cursor", "--yes").status == 0
    assert path.read_bytes() == before
    assert run("connect", "cursor", "--search", "--one", "--yes").status == 0
    assert servers(path) == {"tn": {"url": "http://127.0.0.1:8750/mcp/search/servers/gitlab"}}
    assert run("disconnect", "cursor", "--yes").status == 0
    assert run("connect", "cursor", "--search", "--stdio", "--yes").status == 0
    assert servers(path)["gitlab"]["args"][2:] == ["--for", "cursor", "--search", "--only", "gitlab"]


@pytest.mark.parametrize(
    "settings",
    [
        {"permissions": {"ask": ["mcp__gitlab__delete_branch"]}},
        {"hooks": {"PreToolUse": [{"matcher": "mcp__gitlab__delete_.*", "hooks": []}]}},
    ],
)
def test_a_search_is_refused_beside_questions_and_hooks_too(run: Run, home: Path, settings: Any) -> None:
    (home / ".claude").mkdir()
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"gitlab": GITLAB}}), "utf-8")
    (home / ".claude" / "settings.json").write_text(json.dumps(settings), "utf-8")

    done = run("connect", "claude-code", "--search", "--yes")

    assert done.status == 2
    assert "limits the tools of claude-code" in words(done.err)
    assert servers(home / ".claude.json") == {"gitlab": GITLAB}


def test_a_client_that_would_get_more_tools_than_it_takes_is_told_of_the_search(run: Run, home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"mcpServers": {"gitlab": GITLAB}}), "utf-8")
    tools = [{"name": f"tool_{number}"} for number in range(81)]
    Path("tools.json").write_text(json.dumps({"gitlab": {"tools": tools}}), "utf-8")

    done = run("connect", "cursor", "--catalog", "tools.json", "--yes")

    assert (done.status, servers(path)["gitlab"]["url"][-22:]) == (0, "/for/cursor/only/gitlab"[-22:])
    assert "Cursor accepts 80 tools, and would get 81. Connect with --search" in words(done.out)


@pytest.mark.parametrize("case", LISTING)
def test_rules_from_a_client_deny_what_its_lists_take_away(run: Run, home: Path, case: str) -> None:
    LISTING[case](home)
    client = case.partition(" ")[0]

    done = run("policy", "from-client", client, "--catalog", "tools.json")

    assert done.status == 0
    path = Path("with.toml")
    path.write_text(f"{CONFIGURED}\n{done.out}", "utf-8")
    assert outcomes(path, client)["delete_branch"] == "deny"
    assert outcomes(path, client)["list_branches"] == "allow"
    assert outcomes(path, client)["create_branch"] == ("ask" if client == "claude-code" else "allow")
    assert outcomes(path, "cursor") == dict.fromkeys(TOOLS, "allow")
    assert tomllib.loads(done.out)["policy"]["rules"]


@pytest.mark.parametrize("entries", ["--each", "--one"])
@pytest.mark.parametrize("case", LISTING)
def test_the_rules_are_the_same_after_the_client_is_connected(run: Run, home: Path, case: str, entries: str) -> None:
    LISTING[case](home)
    client = case.partition(" ")[0]
    before = run("policy", "from-client", client, "--catalog", "tools.json", "--json").document["rules"]

    run("connect", client, entries, "--catalog", "tools.json", "--yes")
    after = run("policy", "from-client", client, "--catalog", "tools.json", "--json").document["rules"]

    assert merged(after) == merged(before)


def merged(rules: list[Any]) -> set[tuple[str, str]]:
    """Return which tools get which answer, whichever way the rules say it."""
    return {(rule["outcome"], name) for rule in rules for name in rule.get("upstream", TOOLS)}


def outcomes(path: Path, client: str) -> dict[str, str]:
    """Return what the gateway would say to a call of each tool by this client."""
    policy = load(path).settings.policy
    assert policy is not None
    names = project(Catalog.from_mcp({"gitlab": TOOLS}), "openai")
    caller = Caller(client={"codex": "codex-cli"}.get(client, client))
    calls = {
        tool.origin.name: bound_call(name=names[id], call_id="c", arguments="{}", names=names, caller=caller)
        for id, tool in names.catalog.items()
    }
    return {name: policy.decide(call).outcome for name, call in calls.items()}


def test_a_client_without_lists_has_no_rules(run: Run, home: Path) -> None:
    gemini(home)

    done = run("policy", "from-client", "gemini-cli")

    assert (done.status, done.out) == (1, "")
    assert "has no list that limits tools" in done.err


def test_a_list_of_what_is_offered_needs_to_know_what_there_is(run: Run, home: Path) -> None:
    gemini(home, includeTools=["list_branches"])

    done = run("policy", "from-client", "gemini-cli", "--json")

    told: dict[str, Any] = json.loads(done.out)
    assert (done.status, told["rules"]) == (1, [])
    assert "its tools are unknown" in told["notes"][0]["fact"]


def test_a_list_entry_that_no_name_matches_any_more_is_told(run: Run, home: Path) -> None:
    gemini(home, excludeTools=["drop_branch"])

    done = run("connect", "gemini-cli", "--catalog", "tools.json", "--yes")

    assert done.status == 0
    assert "'drop_branch' in" in words(done.out)
    assert "was left unchanged: it matches no tool. Check it by hand." in words(done.out)
