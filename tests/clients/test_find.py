"""Stories of a machine with several clients, and of a file that somebody names."""
# ruff: noqa: E501 - one file a row

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.homes import machine
from truename.clients import FoundFile, find, read_source

if TYPE_CHECKING:
    from pathlib import Path

SERVER = {"command": "x"}


def put(folder: Path, steps: str, content: Any) -> Path:
    path = folder / steps
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def told(found: FoundFile) -> tuple[str, str, list[str]]:
    return found.file.client, found.file.scope, [client_server.server.key for client_server in found.servers]


def test_one_file_of_claude_code_has_two_scopes_and_is_read_once(tmp_path: Path) -> None:
    put(tmp_path, "home/.claude.json", {"mcpServers": {"a": SERVER}, "projects": {"/w": {"mcpServers": {"b": SERVER}}}})

    user, local = find(machine(tmp_path, "linux"))

    assert told(user) == ("claude-code", "user", ["a"])
    assert told(local) == ("claude-code", "local", ["b"])
    assert local.servers[0].where == ("projects", "/w", "mcpServers", "b")
    assert user.document is local.document


def test_a_file_that_several_clients_read_is_found_for_each(tmp_path: Path) -> None:
    put(tmp_path, "home/project/.mcp.json", {"mcpServers": {"a": SERVER}})

    assert [told(found) for found in find(machine(tmp_path, "linux"))] == [
        ("claude-code", "project", ["a"]),
        ("copilot-cli", "project", ["a"]),
        ("jetbrains-air", "project", ["a"]),
    ]


def test_a_catalogue_of_plugins_is_not_what_is_installed(tmp_path: Path) -> None:
    put(tmp_path, "home/.claude/plugins/marketplaces/m/p/.mcp.json", {"mcpServers": {"a": SERVER}})

    assert find(machine(tmp_path, "linux")) == ()


def test_a_plugin_may_leave_the_wrapper_out(tmp_path: Path) -> None:
    put(
        tmp_path,
        "home/.claude/plugins/cache/m/p/.mcp.json",
        {"a": SERVER, "description": {"text": "no server"}, "version": 1},
    )

    assert told(find(machine(tmp_path, "linux"))[0]) == ("claude-code", "plugin", ["a"])


@pytest.mark.parametrize("named", ["./servers/mcp.json", ["servers/mcp.json", "./absent.json"]])
def test_a_plugin_may_name_other_files(named: Any, tmp_path: Path) -> None:
    plugin = "home/.claude/plugins/cache/m/p"
    put(tmp_path, f"{plugin}/.claude-plugin/plugin.json", {"name": "p", "mcpServers": named})
    put(tmp_path, f"{plugin}/servers/mcp.json", {"mcpServers": {"a": SERVER}})

    found = [told(one) for one in find(machine(tmp_path, "linux")) if one.servers]

    assert found == [("claude-code", "plugin", ["a"])]


@pytest.mark.parametrize(
    "named", ["../q/mcp.json", "/etc/passwd", "\0.json", "x.mcpb", 5, [["a"]], "a" * 9999 + ".json"]
)
def test_a_plugin_names_no_file_that_is_not_its_own(named: Any, tmp_path: Path) -> None:
    put(tmp_path, "home/.claude/plugins/cache/m/p/.claude-plugin/plugin.json", {"mcpServers": named})
    put(tmp_path, "home/.claude/plugins/cache/m/q/mcp.json", {"mcpServers": {"a": SERVER}})

    assert [told(found)[2] for found in find(machine(tmp_path, "linux"))] == [[]]


def test_a_search_that_was_not_finished_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truename.clients.machine.MAX_FOLDERS", 4)
    for name in "abcd":
        put(tmp_path, f"home/.claude/plugins/cache/{name}/x/.mcp.json", {"mcpServers": {name: SERVER}})

    found = find(machine(tmp_path, "linux"))

    assert [key for one in found for key in told(one)[2]] == ["a", "b"]
    assert {(one.path.name, one.problem.problem) for one in found if one.problem} == {
        ("cache", "it has too many files to search, so some may be missing")
    }


def test_what_goose_brings_along_is_no_server(tmp_path: Path) -> None:
    put(
        tmp_path,
        "home/.config/goose/config.yaml",
        "extensions:\n  developer: {type: builtin}\n  a: {type: stdio, cmd: x}\n",
    )

    assert told(find(machine(tmp_path, "linux"))[0]) == ("goose", "user", ["a"])


@pytest.mark.parametrize(
    ("mcp", "keys"),
    [
        ({"a": {"type": "local", "command": ["x"]}}, ["a"]),
        ({"servers": {"a": {"type": "local", "command": ["x"]}}}, ["a"]),
        ({"servers": {"type": "local", "command": ["x"]}}, ["servers"]),
        ({"servers": {}}, []),
    ],
)
def test_both_forms_of_opencode_are_read(mcp: dict[str, Any], keys: list[str], tmp_path: Path) -> None:
    put(tmp_path, "home/.config/opencode/opencode.json", {"mcp": mcp})

    assert told(find(machine(tmp_path, "linux"))[0]) == ("opencode", "user", keys)


def test_an_overlay_of_codex_is_found_beside_the_file_itself(tmp_path: Path) -> None:
    put(tmp_path, "home/.codex/config.toml", '[mcp_servers.a]\ncommand = "x"\n')
    put(tmp_path, "home/.codex/work.config.toml", '[mcp_servers.b]\nurl = "http://x"\n')

    assert [told(found)[2] for found in find(machine(tmp_path, "linux"))] == [["a"], ["b"]]


def test_a_file_without_servers_is_found_all_the_same(tmp_path: Path) -> None:
    put(tmp_path, "home/.claude.json", {"machineID": "x"})

    assert [told(found) for found in find(machine(tmp_path, "linux"))] == [
        ("claude-code", "user", []),
        ("claude-code", "local", []),
    ]


def test_quirks_are_for_the_reader_to_judge(tmp_path: Path) -> None:
    put(tmp_path, "home/project/.mcp.json", '{"mcpServers": {"a": {"command": "x",},} // mine\n}')

    found = find(machine(tmp_path, "linux"))[0]

    assert told(found)[2] == ["a"]
    assert found.document is not None
    kinds = {quirk.kind for quirk in found.document.quirks}
    assert kinds & found.file.refuses == {"comment", "trailing-comma"}


def test_a_home_without_clients_has_nothing(tmp_path: Path) -> None:
    assert find(machine(tmp_path, "linux")) == ()


def test_the_environment_of_this_process_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "elsewhere/config.toml", '[mcp_servers.a]\ncommand = "x"\n')
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("HOME", str(tmp_path / "elsewhere"))

    assert find(machine(tmp_path, "linux")) == ()


NAMED = [
    # name, content, client, keys
    ("mcp.json", {"mcpServers": {"a": SERVER}}, "", ["a"]),
    ("whatever.txt", {"mcpServers": {"a": SERVER}}, "", ["a"]),
    ("mcp.json", {"servers": {"a": SERVER}}, "vscode", ["a"]),
    ("flat.json", {"a": SERVER, "b": {"url": "http://x"}}, "", ["a", "b"]),
    ("x.yaml", "mcpServers:\n  - name: a\n    command: x\n", "continue", ["a"]),
    ("x.yaml", "mcpServers:\n  a:\n    command: x\n", "", ["a"]),
    ("x.yaml", "extensions:\n  a: {type: stdio, cmd: x}\n", "goose", ["a"]),
    ("x.toml", '[mcp_servers.a]\ncommand = "x"\n', "codex", ["a"]),
    ("x.toml", '[[mcp_servers]]\nname = "a"\ncommand = "x"\n', "mistral-vibe", ["a"]),
    ("settings.json", {"context_servers": {"a": SERVER}}, "zed", ["a"]),
    ("settings.json", {"amp.mcpServers": {"a": SERVER}}, "amp", ["a"]),
    ("settings.json", {"mcp": {"servers": {"a": SERVER}}}, "vscode", ["a"]),
    ("x.json", {"mcp": {"a": {"type": "local", "command": ["x"]}}}, "opencode", ["a"]),
    ("x.json", {"mcp": {"a": {"type": "stdio", "command": "x"}}}, "crush", ["a"]),
    ("x.json", {"projects": {"/w": {"mcpServers": {"a": SERVER}}}}, "claude-code", ["a"]),
    ("crushrc", "mcp add a --command x\n", "crush", ["a"]),
    (".claude.json", {"mcpServers": {"a": SERVER}, "projects": {"/w": {"mcpServers": {"b": SERVER}}}}, "claude-code", ["a", "b"]),
    ("claude_desktop_config.json", {"mcpServers": {"a": SERVER}}, "claude-desktop", ["a"]),
    ("config.toml", '[mcp_servers.a]\ncommand = "x"\n', "codex", ["a"]),
    ("opencode.json", {"mcpServers": {"a": SERVER}}, "", ["a"]),
    ("Claude/claude_desktop_config.json", {"mcpServers": {"a": SERVER}}, "claude-desktop", ["a"]),
    (".cursor/mcp.json", {"mcpServers": {"a": SERVER}}, "cursor", ["a"]),
    (".cursor/mcp.json", {"servers": {"a": SERVER}}, "vscode", ["a"]),
    (".codex/work.config.toml", '[mcp_servers.a]\ncommand = "x"\n', "codex", ["a"]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content", "client", "keys"), NAMED)
def test_a_named_file_is_read_whoever_it_belongs_to(
    name: str, content: Any, client: str, keys: list[str], tmp_path: Path
) -> None:
    found = read_source(put(tmp_path, name, content))

    assert found.problem is None
    assert (found.file.client, [client_server.server.key for client_server in found.servers]) == (client, keys)
    assert {client_server.client for client_server in found.servers} == {client}


@pytest.mark.parametrize(
    "content", ["{}", "[]", "[1]", '{"tools": []}', "5", "null", '{"mcpServers": {}}', '{"a": {"b": 1}}']
)
def test_a_named_file_without_servers_is_told(content: str, tmp_path: Path) -> None:
    found = read_source(put(tmp_path, "x.json", content))

    assert found.problem is not None
    assert found.problem.problem == "it has no MCP servers"
    assert found.document is not None


@pytest.mark.parametrize("name", ["x.json", ".cursor/mcp.json", "x.toml", "x.yaml", "crushrc", "x.md"])
def test_a_named_file_that_is_not_there_is_told(name: str, tmp_path: Path) -> None:
    found = read_source(tmp_path / name)

    assert found.problem is not None
    assert found.problem.file == str(tmp_path / name)
    assert found.servers == ()
