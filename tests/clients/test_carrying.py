"""Names that clients keep, carried over to the names at the gateway: each of the six spellings, and nothing widened."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from truename.clients import Machine, find
from truename.clients.connection import ConnectRequest, plan_connection
from truename.clients.gateway_address import GatewayAddress, UpcomingNames, names_alone, names_together
from truename.clients.kept_names import KeptName
from truename.clients.name_translation import NameMove, carry, replace_name
from truename.config import Config, ServerConfig

if TYPE_CHECKING:
    from truename.clients.plan import ConnectionPlan

GIT = {"command": "npx", "args": ["git"]}
JIRA = {"command": "npx", "args": ["jira"]}
LISTED = {"git": ["log", "get_it", "get_more", "fs.list"], "jira": ["search"]}
SERVERS = tuple(ServerConfig(key=key, command="npx", args=(key,)) for key in LISTED)


def planned(base: Path, files: dict[str, str], client: str, *, one: bool = True) -> ConnectionPlan:
    for name, text in files.items():
        path = base / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    home = base / "home"
    machine = Machine(system="linux", home=home, environ={}, project=home / "project", root=base)
    config = Config(path=base / "truename.toml", servers=SERVERS)
    address = GatewayAddress(config=config, url="http://127.0.0.1:8750", program="/opt/truename")
    names = UpcomingNames(
        names_alone(LISTED, Config(), dialect="gemini-cli"), names_together(LISTED, Config(), dialect="universal")
    )
    return plan_connection(
        machine, find(machine), address, ConnectRequest(client=client, entries="one" if one else "each"), names
    )


def texts(plan: ConnectionPlan) -> dict[str, str]:
    return {step.path.name: (step.after or b"").decode() for step in plan.steps}


def servers(**more: Any) -> str:
    return json.dumps({"mcpServers": {"git": {**GIT, **more}, "jira": JIRA}})


def entry(plan: ConnectionPlan, file: str) -> Any:
    return json.loads(texts(plan)[file])["mcpServers"]["tn"]


def test_lists_in_entries_are_joined_and_who_had_none_offers_all(tmp_path: Path) -> None:
    files = {".gemini/settings.json": servers(includeTools=["log", "fs.list"], excludeTools=["get_it"], trust=True)}

    plan = planned(tmp_path, files, "gemini-cli")

    found = entry(plan, "settings.json")
    assert found["includeTools"] == ["git_log", "git_fs_list", "jira_search"]
    assert found["excludeTools"] == ["git_get_it"]
    assert "trust" not in found
    assert any("trust" in note.fact for note in plan.notes)


def test_lists_that_say_everything_go_on_to_say_it(tmp_path: Path) -> None:
    listed = {"tools": ["*"], "type": "local"}
    text = json.dumps({"mcpServers": {"git": {**GIT, **listed}, "jira": {**JIRA, **listed}}})

    plan = planned(tmp_path, {".copilot/mcp-config.json": text}, "copilot-cli")

    assert entry(plan, "mcp-config.json")["tools"] == ["*"]


def test_a_list_beside_one_that_says_everything_offers_both(tmp_path: Path) -> None:
    text = json.dumps({"mcpServers": {"git": {**GIT, "tools": ["log"]}, "jira": {**JIRA, "tools": ["*"]}}})

    found = entry(planned(tmp_path, {".copilot/mcp-config.json": text}, "copilot-cli"), "mcp-config.json")

    assert found["tools"] == ["git_log", "jira_search"]


def test_an_empty_list_of_what_is_offered_goes_on_to_offer_nothing(tmp_path: Path) -> None:
    plan = planned(tmp_path, {".gemini/settings.json": servers(includeTools=[])}, "gemini-cli")

    assert entry(plan, "settings.json")["includeTools"] == ["jira_search"]


def test_settings_of_single_tools_move_with_their_names(tmp_path: Path) -> None:
    text = """[mcp_servers.git]
command = "npx"
args = ["git"]
enabled_tools = ["log", "get_it"]
[mcp_servers.git.tools.log]
approval_mode = "approve"
"""
    plan = planned(tmp_path, {".codex/config.toml": text}, "codex")

    found = tomllib.loads(texts(plan)["config.toml"])["mcp_servers"]
    assert found == {
        "tn": {
            "url": "http://127.0.0.1:8750/mcp/servers/git",
            "enabled_tools": ["git_log", "git_get_it"],
            "tools": {"git_log": {"approval_mode": "approve"}},
        }
    }


def test_with_an_entry_for_each_server_names_change_only_where_they_must(tmp_path: Path) -> None:
    text = servers(includeTools=["log", "fs.list"])

    plan = planned(tmp_path, {".gemini/settings.json": text}, "gemini-cli", one=False)

    found = json.loads(texts(plan)["settings.json"])["mcpServers"]["git"]
    assert found == {
        "httpUrl": "http://127.0.0.1:8750/mcp/for/gemini-cli/only/git",
        "includeTools": ["log", "fs_list"],
    }


@pytest.mark.parametrize(
    ("client", "file", "before", "after"),
    [
        (
            "cursor",
            ".cursor/permissions.json",
            '{"mcpAllowlist": ["git:log", "git:get_*", "*:search", "mine:x"]}',
            '{"mcpAllowlist": ["tn:git_log", "tn:git_get_it", "tn:git_get_more", "*:jira_search", "mine:x"]}',
        ),
        (
            "cursor",
            ".cursor/cli-config.json",
            '{"permissions": {"allow": ["Mcp(git:log)"], "deny": ["Mcp(jira:search)", "Shell(rm)"]}}',
            '{"permissions": {"allow": ["Mcp(tn:git_log)"], "deny": ["Mcp(tn:jira_search)", "Shell(rm)"]}}',
        ),
        (
            "claude-code",
            ".claude/settings.json",
            '{"permissions": {"allow": ["mcp__git__log", "mcp__git__fs_list", "mcp__git__gone"]}}',
            '{"permissions": {"allow": ["mcp__tn__git_log", "mcp__tn__git_fs_list", "mcp__git__gone"]}}',
        ),
        (
            "claude-code",
            ".claude/settings.json",
            '{"hooks": {"PreToolUse": [{"matcher": "Edit|mcp__git__log|mcp__jira__search", "hooks": []}]}}',
            '{"hooks": {"PreToolUse": [{"matcher": "Edit|mcp__tn__git_log|mcp__tn__jira_search", "hooks": []}]}}',
        ),
    ],
)
def test_names_with_their_servers_part_are_respelled(
    client: str, file: str, before: str, after: str, tmp_path: Path
) -> None:
    config = {"cursor": ".cursor/mcp.json", "claude-code": ".claude.json"}[client]

    plan = planned(tmp_path, {config: servers(), file: before}, client)

    assert texts(plan)[file.rpartition("/")[2]] == after


def test_names_in_yaml_are_respelled(tmp_path: Path) -> None:
    config = "extensions:\n  git:\n    type: stdio\n    name: git\n    cmd: npx\n    args: [git]\n    enabled: true\n"
    kept = "user:\n  always_allow:\n    - git__log  # mine\n    - developer__shell\n"

    plan = planned(tmp_path, {".config/goose/config.yaml": config, ".config/goose/permission.yaml": kept}, "goose")

    assert texts(plan)["permission.yaml"] == kept.replace("git__log", "tn__git_log")
    assert list(yaml.safe_load(texts(plan)["config.yaml"])["extensions"]) == ["tn"]


def test_names_that_are_keys_are_respelled(tmp_path: Path) -> None:
    entries = {"git": {"type": "local", "command": ["npx", "git"]}}
    text = json.dumps({"mcp": entries, "tools": {"git_log": False, "bash": True, "git_get_*": True}})

    plan = planned(tmp_path, {".config/opencode/opencode.json": text}, "opencode")

    found = json.loads(texts(plan)["opencode.json"])["tools"]
    assert found == {"tn_git_log": False, "bash": True, "tn_git_get_it": True, "tn_git_get_more": True}


def test_rules_are_repeated_where_one_name_becomes_several(tmp_path: Path) -> None:
    rules = '[[rule]]\ntoolName = "mcp_git_get_*"\ndecision = "allow"\npriority = 5\n'
    files = {".gemini/settings.json": servers(), ".gemini/policies/mine.toml": rules}

    plan = planned(tmp_path, files, "gemini-cli")

    found = tomllib.loads(texts(plan)["mine.toml"])["rule"]
    assert found == [
        {"toolName": f"mcp_tn_{tool}", "decision": "allow", "priority": 5} for tool in ("git_get_it", "git_get_more")
    ]


def test_names_that_a_text_alone_can_not_carry_stay_and_are_told(tmp_path: Path) -> None:
    profile = {"w": {"context_servers": {"git": {"tools": {"log": True}}}}}
    zed = json.dumps({"context_servers": {"git": GIT}, "agent": {"profiles": profile}})
    rules = '[[rule]]\nmcpName = "git"\ndecision = "allow"\n\n[[rule]]\nmcpName = "git"\ntoolName = "log"\n'
    gemini = {".gemini/settings.json": servers(), ".gemini/policies/mine.toml": rules}

    one = planned(tmp_path / "1", {".config/zed/settings.json": zed}, "zed")
    two = planned(tmp_path / "2", gemini, "gemini-cli")

    assert json.loads(texts(one)["settings.json"])["agent"]["profiles"] == profile
    assert texts(two)["mine.toml"].endswith('mcpName = "tn"\ntoolName = "git_log"\n')
    assert texts(two)["mine.toml"].startswith('[[rule]]\nmcpName = "git"\ndecision = "allow"\n')
    assert [note.kind for note in (*one.notes, *two.notes)] == ["names", "names"]


def test_names_in_agents_are_told_with_what_to_write(tmp_path: Path) -> None:
    files = {".claude.json": servers(), ".claude/agents/x.md": "---\nname: x\ntools: Read, mcp__git__log\n---\n"}

    plan = planned(tmp_path, files, "claude-code")

    assert [note.advice for note in plan.notes] == ["Replace it with mcp__tn__git_log."]


def kept(text: str, server: str | None, tool: str | None, **more: Any) -> KeptName:
    values: dict[str, Any] = {"spelling": "mcp__server__tool", "where": ("a", 0), "effect": "allow", **more}
    return KeptName(text=text, path=Path("settings.json"), server=server, tool=tool, **values)


ALONE = NameMove(key="git", new_key="git", names={"a.b": "a_b"})
TWINS = NameMove(key="git", new_key="git", names={"git.status": "git_git_status", "git_status": "git_status"})
MOVE = NameMove(key="git", new_key="tn", names={"log": "git_log", "get_it": "git_get_it"})


@pytest.mark.parametrize(
    ("name", "moves", "carried"),
    [
        (kept("mcp__git__log", "git", "log"), [MOVE], ("mcp__tn__git_log",)),
        (kept("mcp__other__log", "other", "log"), [MOVE], ("mcp__other__log",)),
        (kept("mcp__git", "git", None), [MOVE], ("mcp__tn__git_log", "mcp__tn__git_get_it")),
        (kept("mcp__git__get_*", "git", "get_*"), [MOVE], ("mcp__tn__git_get_it",)),
        (
            kept("mcp__git__log", "git", "log"),
            [NameMove(key="git", new_key="tn", names={"log": "git_log"}, stays=True)],
            ("mcp__git__log", "mcp__tn__git_log"),
        ),
        (kept("mcp__git", "git", None), [ALONE], ("mcp__git",)),
        (kept("mcp__git__a_b", "git", "a_b"), [ALONE], ("mcp__git__a_b",)),
        (kept("git", "git", None, spelling="server", template="{server}"), [MOVE], ("tn",)),
        (kept("git_status", "git", "git_status", spelling="tool", template="{tool}"), [TWINS], ("git_status",)),
        (kept("git.status", "git", "git.status", spelling="tool", template="{tool}"), [TWINS], ("git_git_status",)),
        (kept("mcp__git__git_status", "git", "git_status"), [TWINS], ("mcp__git__git_status",)),
    ],
)  # fmt: skip
def test_a_name_means_the_same_tools_as_before(name: KeptName, moves: list[NameMove], carried: tuple[str, ...]) -> None:
    assert carry(name, moves) == (carried, "")


@pytest.mark.parametrize(
    ("name", "move", "problem"),
    [
        (kept("mcp__git__log", "git", "log"), NameMove(key="git", new_key="tn", names=None), "the tools of git"),
        (kept("mcp__git__gone", "git", "gone"), MOVE, "it matches no tool"),
    ],
)
def test_what_can_not_be_carried_stays_and_is_told(name: KeptName, move: NameMove, problem: str) -> None:
    found = carry(name, [move])

    assert found.texts == (name.text,)
    assert problem in found.problem


def test_a_name_that_is_not_at_its_place_is_not_replaced() -> None:
    with pytest.raises(ValueError, match="no longer in the file"):
        replace_name({"a": ["other"]}, kept("mcp__git__log", "git", "log"), ["x"])


def test_a_name_that_is_there_already_is_not_put_twice() -> None:
    name = kept("mcp__git__log", "git", "log")

    assert replace_name({"a": ["mcp__git__log", "x"]}, name, ["x", "y"]) == {"a": ["y", "x"]}
    key = kept("old", None, "old", is_key=True, where=("a", "old"))
    assert replace_name({"a": {"old": 1, "new": 2}}, key, ["new"]) == {"a": {"new": 2}}


def test_several_names_have_no_room_where_there_is_no_list() -> None:
    with pytest.raises(ValueError, match="only one name"):
        replace_name({"a": {"b": "old"}}, kept("old", None, "old", where=("a", "b")), ["x", "y"])
