"""Which entries a client gets when nobody says which: its own, or a common one where it would confuse tools."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.connecting import Home, known
from truename.clients.gateway_address import UpcomingNames

if TYPE_CHECKING:
    from pathlib import Path

    from truename.clients.plan import ConnectionPlan

MCP = "http://127.0.0.1:8750/mcp"
# Claude Code joins key and name with `__`, so that both are mcp__a__b__c.
CONFUSED = UpcomingNames(
    alone={"a": {"b__c": "b__c"}, "a__b": {"c": "c"}, "plain": {"get": "get"}},
    together={"a": {"b__c": "a_b_c"}, "a__b": {"c": "a_b_c_2"}, "plain": {"get": "plain_get"}},
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.gateway("a", "a__b", "plain")
    return made


def entries(home: Home) -> dict[str, Any]:
    return {key: one.get("url", one.get("command")) for key, one in home.read()["mcpServers"].items()}


def allow(home: Home, **permissions: list[str]) -> None:
    home.settings.write_text(json.dumps({"permissions": permissions}), "utf-8")


def permissions(home: Home) -> Any:
    return json.loads(home.settings.read_text("utf-8"))["permissions"]


def facts(plan: ConnectionPlan, kind: str) -> list[str]:
    return [note.fact for note in plan.notes if note.kind == kind]


def test_servers_whose_tools_the_client_tells_apart_keep_their_entries(home: Home) -> None:
    apart = known({"a": {"b": "b"}, "a__b": {"c": "c"}, "plain": {"get": "get"}})

    home.connect(names=apart)

    assert entries(home) == {key: f"{MCP}/for/claude-code/only/{key}" for key in ("a", "a__b", "plain")}


def test_servers_whose_tools_the_client_would_confuse_share_an_entry_that_shows_them_alone(home: Home) -> None:
    plan = home.plan(names=CONFUSED)
    home.connect(names=CONFUSED)

    assert entries(home) == {"tn": f"{MCP}/servers/a,a__b,plain"}
    assert plan.joined == ("a", "a__b", "plain")
    assert any(
        "'a', 'a__b', 'plain' share one entry, 'tn'" in fact and "2 of 3 tools" in fact for fact in facts(plan, "info")
    )
    assert facts(plan, "names") == []


@pytest.mark.parametrize("chosen", ["each", "one", "all"])
def test_who_says_which_entries_gets_them(home: Home, chosen: Any) -> None:
    home.connect(names=CONFUSED, entries=chosen)

    assert (
        sorted(entries(home).values())
        == {
            "each": [f"{MCP}/for/claude-code/only/{key}" for key in ("a", "a__b", "plain")],
            "one": [f"{MCP}/servers/a,a__b,plain"],
            "all": [MCP],
        }[chosen]
    )


def test_permissions_for_single_tools_follow_them_into_the_common_entry(home: Home) -> None:
    allow(home, deny=["mcp__plain__get"], allow=["mcp__a", "Bash(ls)"])

    home.connect(names=CONFUSED)

    assert permissions(home) == {"deny": ["mcp__tn__plain_get"], "allow": ["mcp__tn__a_b_c", "Bash(ls)"]}


@pytest.mark.parametrize("effect", ["deny", "ask"])
@pytest.mark.parametrize("text", ["mcp__plain__*", "mcp__plain__g*", "mcp__plain", "mcp__plain__gone"])
def test_a_server_with_a_denial_of_more_than_its_present_tools_keeps_its_entry(
    home: Home, text: str, effect: str
) -> None:
    """In a common entry the denial would be spelled out, and a tool that comes later would be allowed."""
    allow(home, **{effect: [text]})

    home.connect(names=CONFUSED)

    assert entries(home) == {"tn": f"{MCP}/servers/a,a__b", "plain": f"{MCP}/for/claude-code/only/plain"}
    assert permissions(home) == {effect: [text]}


@pytest.mark.parametrize("effect", ["allow", "deny"])
@pytest.mark.parametrize("place", [".claude/settings.json", ".claude/skills/mine/SKILL.md"])
def test_a_server_that_a_file_names_which_is_not_changed_keeps_its_entry(home: Home, place: str, effect: str) -> None:
    """Neither a project's file, which others have too, nor a skill's text follows its tools to another entry."""
    project = home.machine.home / "work"
    home.machine = replace(home.machine, project=project)
    path = project / place if place.endswith("json") else home.machine.home / place
    path.parent.mkdir(parents=True)
    text = {
        "json": json.dumps({"permissions": {effect: ["mcp__plain__get"]}}),
        ".md": "---\nname: mine\ndescription: Mine.\nallowed-tools: mcp__plain__get\n---\nGet it.\n",
    }[place[-3:] if place.endswith(".md") else "json"]
    path.write_text(text, "utf-8")

    home.connect(names=CONFUSED)

    assert entries(home) == {"tn": f"{MCP}/servers/a,a__b", "plain": f"{MCP}/for/claude-code/only/plain"}
    assert path.read_text("utf-8") == text


@pytest.mark.parametrize(
    "settings",
    [
        {"disabledMcpServers": ["plain"]},
        {"future": {"mcp__plain__get": False}},
    ],
)
def test_a_server_that_is_mentioned_where_no_list_is_known_keeps_its_entry(home: Home, settings: Any) -> None:
    home.settings.write_text(json.dumps(settings), "utf-8")

    home.connect(names=CONFUSED)

    assert entries(home) == {"tn": f"{MCP}/servers/a,a__b", "plain": f"{MCP}/for/claude-code/only/plain"}


@pytest.mark.parametrize("matcher", [".*__delete_.*", "Bash|.*mcp__plain__.*", "mcp__.*__x"])
def test_a_hook_for_tools_of_all_servers_by_their_names_keeps_all_entries(home: Home, matcher: str) -> None:
    """`mcp__tn__a_delete_it` is not `mcp__a__delete_it`, and a hook may be what stops it."""
    hook = {"matcher": matcher, "hooks": [{"type": "command", "command": "deny"}]}
    home.settings.write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}), "utf-8")

    assert home.plan(names=CONFUSED).joined == ()


@pytest.mark.parametrize("matcher", ["*", "", ".*", "Bash", "Edit|Write"])
def test_a_hook_that_holds_for_a_common_entry_too_keeps_none(home: Home, matcher: str) -> None:
    hook = {"matcher": matcher, "hooks": [{"type": "command", "command": "/home/ann/plain/deny"}]}
    home.settings.write_text(json.dumps({"hooks": {"PreToolUse": [hook]}}), "utf-8")

    assert home.plan(names=CONFUSED).joined == ("a", "a__b", "plain")


def test_an_entry_with_settings_of_its_own_stays(home: Home) -> None:
    home.meddle(lambda value: value["mcpServers"]["plain"].update(default_tools_approval_mode="prompt"))

    assert home.plan(names=CONFUSED).joined == ("a", "a__b")


def test_a_file_of_lists_that_cannot_be_read_keeps_all_entries(home: Home) -> None:
    home.settings.with_name("settings.local.json").write_text('{"permissions": {"deny": ["mcp__a__x"', "utf-8")

    assert home.plan(names=CONFUSED).joined == ()


def test_nothing_is_joined_where_that_saves_no_tool(home: Home) -> None:
    allow(home, deny=["mcp__a__*"])

    plan = home.plan(names=CONFUSED)

    # What is left to join is not what clashes once a is on its own: mcp__tn__a_b_c_2 and mcp__a__b__c differ.
    assert plan.joined == ("a__b", "plain")
    allow(home, deny=["mcp__a__*", "mcp__a__b__*"])
    assert home.plan(names=CONFUSED).joined == ()


def test_a_server_that_comes_later_joins_the_common_entry(home: Home) -> None:
    home.gateway("a", "a__b", "plain", "new")
    home.meddle(lambda value: value["mcpServers"].pop("new"))
    home.connect(names=CONFUSED)
    before_new = home.servers.read_bytes()
    home.meddle(lambda value: value["mcpServers"].update(new={"command": "npx", "args": ["new"]}))
    with_new = known({**CONFUSED.alone, "new": {"tn__x": "tn__x"}})
    confused = UpcomingNames(with_new.alone, {**CONFUSED.together, "new": {"tn__x": "new_x"}})

    home.connect(names=confused, entries="one")

    assert entries(home) == {"tn": f"{MCP}/servers/a,a__b,new,plain"}
    assert not home.plan(names=confused).steps
    home.undo()
    assert set(entries(home)) == {"a", "a__b", "plain", "new"}
    assert json.loads(before_new)["mcpServers"].keys() == {"tn"}


LATER = UpcomingNames(
    alone={**CONFUSED.alone, "new": {"b__c": "b__c"}, "new__b": {"c": "c"}},
    together={**CONFUSED.together, "new": {"b__c": "new_x"}, "new__b": {"c": "new_y"}},
)


def connected_before(home: Home) -> dict[str, Any]:
    """Connect the client before two more servers come, and return their entries."""
    home.gateway("a", "a__b", "plain", "new", "new__b")
    later = {key: home.read()["mcpServers"][key] for key in ("new", "new__b")}
    home.meddle(lambda value: [value["mcpServers"].pop(key) for key in later])
    home.connect(names=LATER)
    return later


@pytest.mark.parametrize("granted", [["mcp__tn"], ["mcp__tn__*"], ["mcp__tn__new_x"]])
def test_a_server_that_comes_later_gets_no_permission_that_was_meant_for_others(home: Home, granted: list[str]) -> None:
    later = connected_before(home)
    home.meddle(lambda value: value["mcpServers"].update(later))
    joining = home.plan(names=LATER).joined
    allow(home, allow=granted)

    assert joining == ("new", "new__b")
    assert home.plan(names=LATER).joined == ()


def test_a_common_entry_that_its_client_trusts_takes_in_no_other_server(home: Home) -> None:
    later = connected_before(home)
    home.meddle(lambda value: (value["mcpServers"].update(later), value["mcpServers"]["tn"].update(trust=True)))

    assert home.plan(names=LATER).joined == ()


def test_an_entry_with_the_key_of_a_server_has_the_names_that_are_unique(home: Home) -> None:
    allow(home, deny=["mcp__plain__get"])

    home.connect(names=CONFUSED, entries="one", name="plain")

    assert entries(home) == {"plain": f"{MCP}/servers/a,a__b,plain"}
    assert permissions(home) == {"deny": ["mcp__plain__plain_get"]}


def test_a_client_that_is_connected_with_losses_is_told_how_to_end_them(home: Home) -> None:
    home.connect(names=CONFUSED, entries="each")

    plan = home.plan(names=CONFUSED)

    assert not plan.steps
    (note,) = (note for note in plan.notes if note.kind == "names")
    assert "truename disconnect claude-code" in note.advice


def test_what_is_written_is_given_back_to_the_byte(home: Home) -> None:
    allow(home, deny=["mcp__plain__get"], ask=["mcp__a__b__c"])
    before = home.servers.read_bytes(), home.settings.read_bytes()

    home.connect(names=CONFUSED)
    home.undo()

    assert (home.servers.read_bytes(), home.settings.read_bytes()) == before
