"""`truename rename --clients`: what names a tool in clients' files changes with the project's, or nothing does."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from truename import Catalog, Ledger, project

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Outcome, Run

OLD, NEW = "push_all", "push_everything"
AGENT = """\
---
name: releases
tools: Read, mcp__git__push_all, mcp__hg__push_all
---
Call mcp__git__push_all. Never mcp__git__push_all_now, x-mcp__git__push_all or mcp__git__push_all.md.
"""
SKILL = "---\nname: s\nallowed-tools: mcp__git__push_all\n---\nFirst `push_all`, then mcp__git__push_all!\n"
CODEX = """\
[mcp_servers.git]
command = "x"  # push_all
enabled_tools = ["other", "push_all"]

[mcp_servers.hg]
command = "y"
disabled_tools = ["push_all"]
"""


class Clients:
    """A home with clients that name tools of two servers, and a project that declares one."""

    def __init__(self, root: Path, run: Run) -> None:
        self.home, self.project, self._run = root / "home", root / "home" / "project", run
        self.project.mkdir(parents=True)
        (self.project / "tools.py").write_text('TOOL = "push_all"\n')
        servers = {"git": {"command": "x"}, "hg": {"command": "y"}}
        self.write(".claude.json", {"mcpServers": servers})
        self.write(
            ".claude/settings.json",
            {
                "permissions": {
                    "allow": ["mcp__git__push_all", "mcp__hg__push_all", "Bash(push_all)"],
                    "deny": ["mcp__git__push_all", "mcp__git__push_everything"],
                },
                "hooks": {"PreToolUse": [{"matcher": "mcp__git__push_all|mcp__hg__push_all", "hooks": []}]},
            },
        )
        self.write(".claude/agents/releases.md", AGENT)
        self.write(".claude/skills/s/SKILL.md", SKILL)
        self.write(".codex/config.toml", CODEX)
        self.write(".cursor/mcp.json", {"mcpServers": servers})
        self.write(".cursor/permissions.json", {"mcpAllowlist": ["git:push_all", "hg:push_all", "git:*"]})
        self.write(".config/opencode/opencode.json", {"mcp": {"git": {}}, "permission": {"git_push_all": "deny"}})

    def write(self, name: str, content: Any) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n", "utf-8")
        return path

    def text(self, name: str) -> str:
        return (self.home / name).read_text("utf-8")

    def value(self, name: str) -> Any:
        return json.loads(self.text(name))

    def everything(self) -> dict[str, bytes]:
        files = (path for path in self.home.rglob("*") if path.is_file() and ".local" not in path.parts)
        return {str(path.relative_to(self.home)): path.read_bytes() for path in files}

    def rename(self, *words: str) -> Outcome:
        return self._run("rename", OLD, NEW, "--clients", *words)


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Clients:
    made = Clients(tmp_path, run)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("USERPROFILE", str(made.home))
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(made.project)
    return made


def test_every_list_hook_agent_and_skill_that_names_the_tool_changes_and_no_other(clients: Clients) -> None:
    done = clients.rename("--server", "git", "--apply", ".")

    assert done.status == 0
    settings = clients.value(".claude/settings.json")
    assert settings["permissions"]["allow"] == ["mcp__git__push_everything", "mcp__hg__push_all", "Bash(push_all)"]
    # The new name was in the list already, so it is there once.
    assert settings["permissions"]["deny"] == ["mcp__git__push_everything"]
    assert settings["hooks"]["PreToolUse"][0]["matcher"] == "mcp__git__push_everything|mcp__hg__push_all"
    assert clients.text(".codex/config.toml") == CODEX.replace('"other", "push_all"', '"other", "push_everything"')
    assert clients.value(".cursor/permissions.json")["mcpAllowlist"] == ["git:push_everything", "hg:push_all", "git:*"]
    assert clients.value(".config/opencode/opencode.json")["permission"] == {"git_push_everything": "deny"}
    assert clients.text(".claude/agents/releases.md") == AGENT.replace(
        "Read, mcp__git__push_all", "Read, mcp__git__push_everything"
    ).replace("Call mcp__git__push_all", "Call mcp__git__push_everything")
    assert clients.text(".claude/skills/s/SKILL.md") == SKILL.replace("mcp__git__push_all", "mcp__git__push_everything")
    assert (clients.project / "tools.py").read_text() == 'TOOL = "push_everything"\n'


def test_one_undo_restores_the_project_and_the_clients_byte_for_byte(clients: Clients, run: Run) -> None:
    before = clients.everything()
    clients.rename("--server", "git", "--apply", ".")
    assert clients.everything() != before

    assert run("rename", "--undo").status == 0
    assert clients.everything() == before
    assert "No rename to undo" in run("rename", "--undo").out


@pytest.mark.parametrize("words", [(), ("--apply", ".", "--dry-run")], ids=["plan", "dry run"])
def test_a_preview_changes_nothing_and_shows_all_places(clients: Clients, words: tuple[str, ...]) -> None:
    before = clients.everything()

    document = clients.rename("--server", "git", "--json", *words).document

    assert clients.everything() == before
    assert document["dry_run"] is True
    changed = {path["path"].rpartition("/")[2] for path in document["changes"]}
    assert changed >= {"settings.json", "config.toml", "permissions.json", "releases.md", "SKILL.md", "opencode.json"}
    edits = [edit for change in document["changes"] for edit in change["edits"]]
    assert {(edit["old"], edit["new"]) for edit in edits} >= {
        ("mcp__git__push_all", "mcp__git__push_everything"),
        ("git:push_all", "git:push_everything"),
        ("push_all", "push_everything"),
    }


def test_what_is_not_certain_is_left_with_the_reason(clients: Clients) -> None:
    clients.write(".claude/settings.local.json", {})
    clients.write(".claude/settings.json", {"permissions": {"deny": ["mcp__git__push_a*", "mcp__git__push_*"]}})
    clients.write(".claude/agents/odd.md", "---\ntools: push_all\n---\n")

    left = clients.rename("--server", "git", "--json").document["leftovers"]

    assert {(one["name"], one["reason"]) for one in left} == {("mcp__git__push_a*", "glob"), ("push_all", "unowned")}
    assert all(one["line"] for one in left)
    said = clients.rename("--server", "git").out
    assert "a pattern that matches the old name and not the new one" in said


def test_one_file_that_cannot_be_changed_leaves_all_others_as_they_are(clients: Clients) -> None:
    before = clients.everything()
    path = clients.home / ".codex" / "config.toml"
    path.chmod(0o400)

    done = clients.rename("--server", "git", "--apply", ".")

    path.chmod(0o644)
    if done.status != 0:
        assert "config.toml" in done.err
        assert clients.everything() == before


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/skills/s/SKILL.md"])
def test_a_link_is_left_and_said(clients: Clients, name: str) -> None:
    path = clients.home / name
    real = clients.home / "dotfiles" / path.name
    real.parent.mkdir()
    path.rename(real)
    path.symlink_to(real)
    before = real.read_bytes()

    done = clients.rename("--server", "git", "--apply", ".")

    assert done.status == 0
    assert real.read_bytes() == before
    assert path.is_symlink()
    assert "a link to another file: change that file by hand" in done.out
    assert NEW in clients.text(".codex/config.toml")


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude.json"])
def test_an_old_name_in_a_file_with_a_syntax_error_is_left_and_said(clients: Clients, name: str) -> None:
    clients.write(name, '{"permissions": {"deny": ["mcp__git__push_all",')
    clients.write(".cursor/mcp.json", '{"push_all_now": ')

    done = clients.rename("--server", "git", "--apply", ".")
    checked = clients.rename("--server", "git", "--check", ".")

    said = " ".join(done.out.split())
    assert (done.status, checked.status) == (0, 1)
    assert "has a syntax error: correct it" in said
    assert f"{name}:1:38:" in said
    assert ".cursor/mcp.json" not in said
    assert "push_all" in clients.text(name)


def test_without_a_server_nothing_can_be_told_and_nothing_is_changed(clients: Clients) -> None:
    before = clients.everything()

    done = clients.rename("--apply", ".")

    assert done.status == 2
    assert "the server is not known" in done.err
    assert clients.everything() == before


def test_the_ledger_of_the_gateway_knows_the_server(clients: Clients, tmp_path: Path) -> None:
    path = tmp_path / "names.ledger"
    with closing(Ledger.open(path)) as ledger:
        project(Catalog.from_mcp({"git": [OLD], "svn": ["other"]}), "universal", ledger=ledger)

    assert clients.rename("--state", str(path), "--check", "tools.py").status == 1
    assert clients.rename("--state", str(path), "--apply", ".").status == 0

    allowed = clients.value(".claude/settings.json")["permissions"]["allow"]
    assert allowed == ["mcp__git__push_everything", "mcp__hg__push_all", "Bash(push_all)"]


def test_a_server_that_no_client_has_changes_no_client(clients: Clients) -> None:
    before = clients.everything()

    assert clients.rename("--server", "svn", "--apply").status == 0
    assert clients.everything() == before


def test_an_entry_of_the_gateway_counts_as_the_server_that_it_shows(clients: Clients) -> None:
    entry = {"url": "http://127.0.0.1:8750/mcp/for/claude-code/only/git", "type": "http"}
    clients.write(".claude.json", {"mcpServers": {"vcs": entry}})
    clients.write(".claude/settings.json", {"permissions": {"deny": ["mcp__vcs__push_all", "mcp__git__push_all"]}})

    clients.rename("--server", "git", "--apply")

    denied = clients.value(".claude/settings.json")["permissions"]["deny"]
    assert denied == ["mcp__vcs__push_everything", "mcp__git__push_all"]


def test_files_of_the_project_that_the_rename_changes_already_are_changed_further(clients: Clients) -> None:
    settings = {"permissions": {"allow": ["mcp__git__push_all"]}, "push": "push_all"}
    project = clients.write("project/.claude/settings.json", settings)
    cursor = clients.write("project/.cursor/permissions.json", {"mcpAllowlist": ["git:push_all"], "x": "push_all"})
    before = clients.everything()

    assert clients.rename("--server", "git", "--apply", ".").status == 0

    allowed = {"permissions": {"allow": ["mcp__git__push_everything"]}, "push": "push_everything"}
    assert json.loads(project.read_text()) == allowed
    assert json.loads(cursor.read_text()) == {"mcpAllowlist": ["git:push_everything"], "x": "push_everything"}
    assert clients._run("rename", "--undo").status == 0
    assert clients.everything() == before


def test_a_name_that_the_client_spells_otherwise_is_found_by_its_spelling(clients: Clients, run: Run) -> None:
    clients.write(".claude/settings.json", {"permissions": {"deny": ["mcp__git__fs_list", "mcp__hg__fs_list"]}})
    clients.write(".claude/agents/releases.md", "Use mcp__git__fs_list, not fs_list or git_fs_list_all.\n")

    assert run("rename", "fs.list", "list_files", "--clients", "--server", "git", "--apply").status == 0

    assert clients.value(".claude/settings.json")["permissions"]["deny"] == ["mcp__git__list_files", "mcp__hg__fs_list"]
    said = "Use mcp__git__list_files, not fs_list or git_fs_list_all.\n"
    assert clients.text(".claude/agents/releases.md") == said


def test_names_that_are_exchanged_are_exchanged(clients: Clients, run: Run) -> None:
    clients.write(".claude/settings.json", {"permissions": {"deny": ["mcp__git__a", "mcp__git__b", "mcp__git__c"]}})
    clients.write(".claude/agents/releases.md", "mcp__git__a, mcp__git__b and mcp__git__c\n")
    names = clients.write("map.json", {"a": "b2", "b": "a2"})

    assert run("rename", "--map", names, "--clients", "--server", "git", "--apply").status == 0

    assert clients.value(".claude/settings.json")["permissions"]["deny"] == [
        "mcp__git__b2",
        "mcp__git__a2",
        "mcp__git__c",
    ]
    assert clients.text(".claude/agents/releases.md") == "mcp__git__b2, mcp__git__a2 and mcp__git__c\n"


def test_check_finds_what_is_left_in_clients(clients: Clients) -> None:
    assert clients.rename("--server", "git", "--check", "tools.py").status == 1
    clients.rename("--server", "git", "--apply", ".")
    clients.write(".claude/skills/s/SKILL.md", "mcp__git__push_everything\n")

    done = clients.rename("--server", "git", "--check", "tools.py")
    assert (done.status, done.out.splitlines()[-1].startswith("No old name is left in ")) == (0, True)


@pytest.mark.parametrize(
    "content", ["{", "[" * 5000, '{"permissions": 5}', '{"permissions": {"allow": {"a": 1}}}', "\x00"]
)
def test_files_that_cannot_be_read_stop_nothing(clients: Clients, content: str) -> None:
    clients.write(".claude/settings.json", content)
    clients.write(".claude/agents/releases.md", "\x00" + "mcp__git__push_all " * 50_000)

    assert clients.rename("--server", "git", "--apply", ".").status == 0
    assert clients.text(".claude/settings.json") == content
    assert NEW in clients.text(".codex/config.toml")
