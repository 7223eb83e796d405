"""Whatever lies where a configuration should be: it is told, nothing waits, nothing fails, nothing is run."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.clients.homes import cases, content, machine, written
from tests.shared import UNHURRIED
from truename.clients import FoundFile, find, read_source

if TYPE_CHECKING:
    from collections.abc import Callable

CODEX = "home/.codex/config.toml"
CURSOR = "home/.cursor/mcp.json"


def put(folder: Path, steps: str, raw: bytes | str) -> Path:
    path = folder / steps
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(raw.encode() if isinstance(raw, str) else raw)
    return path


def only(folder: Path) -> FoundFile:
    """Return the one file that is there."""
    (found,) = find(machine(folder, "linux"))
    return found


@pytest.mark.parametrize(
    ("steps", "raw"),
    [
        (CURSOR, b""),
        (CURSOR, b"{"),
        (CURSOR, b"\xff\xfe{\x00}\x00"),
        (CURSOR, b"[" * 100_000),
        (CURSOR, b'{"a":' * 50_000),
        (CURSOR, b'{"mcpServers": {"a": 1' + b"0" * 5_000 + b"}}"),
        (CURSOR, b"\x00" * 1_000),
        (CURSOR, b"5"),
        (CURSOR, b"null"),
        (CODEX, b"[mcp_servers"),
        (CODEX, b"a = " + b"[" * 20_000),
        ("home/.config/goose/config.yaml", b"extensions: [\n"),
        ("home/.config/goose/config.yaml", b"extensions: !!python/object/apply:os.system ['false']\n"),
    ],
)
def test_a_broken_file_is_told_and_nothing_is_made_of_it(steps: str, raw: bytes, tmp_path: Path) -> None:
    path = put(tmp_path, steps, raw)

    found = only(tmp_path)

    assert found.path == path
    assert found.servers == ()
    if found.problem is None:  # an empty file and a mere oddity are for the reader to judge
        assert found.document is not None
    else:
        assert found.problem.file == str(path)
        assert str(found.problem).isprintable()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(path.parent)
        server.bind(path.name)


def loop(path: Path) -> None:
    path.symlink_to(path)


def nowhere(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [Path.mkdir, pipe, listening, loop, nowhere, device])
@pytest.mark.parametrize("steps", [CURSOR, CODEX, "home/.config/crush/crushrc", "home/.claude/skills/x/SKILL.md"])
def test_what_is_no_file_is_told_and_nothing_waits(
    make: Callable[[Path], None], steps: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / steps
    path.parent.mkdir(parents=True)
    make(path)

    found = only(tmp_path)

    assert found.path == path
    assert found.problem is not None
    assert found.problem.file == str(path)


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    path = put(tmp_path, CURSOR, "{}")
    path.chmod(0)

    found = only(tmp_path)

    # The superuser may read it all the same.
    assert (found.problem is None) == (os.geteuid() == 0)


def test_a_file_too_large_is_told_and_not_read(tmp_path: Path) -> None:
    path = put(tmp_path, CURSOR, "")
    with path.open("wb") as stream:
        stream.truncate(1 << 32)

    problem = only(tmp_path).problem

    assert problem is not None
    assert "larger" in problem.problem


@pytest.mark.parametrize(
    "servers",
    [None, 5, "x", [], [1], {"a": None}, {"a": [1]}, {"": {}}, {"a\x1b[31m": {"command": "x"}}, {"a": {"command": {}}}],
)
def test_servers_that_are_none_make_nothing_fail(servers: Any, tmp_path: Path) -> None:
    for at, case in enumerate(cases("linux")):
        if case.path.endswith((".json", ".jsonc")):
            keys = json.loads(content(case, "NAME"))
            put(tmp_path / str(at), case.steps, json.dumps(dict.fromkeys(keys, servers)))
            for found in find(machine(tmp_path / str(at), "linux")):
                assert found.problem is None


def test_an_alias_in_an_entry_is_no_command(tmp_path: Path) -> None:
    put(tmp_path, "home/.config/goose/config.yaml", "a: &a [x, x]\nb: &b [*a, *a]\nextensions: {q: *b, r: {cmd: *a}}\n")

    assert [(one.server.key, one.server.command) for one in only(tmp_path).servers] == [("q", None), ("r", "x")]


def test_an_entry_that_is_no_object_is_still_a_server_of_the_file(tmp_path: Path) -> None:
    put(tmp_path, CURSOR, '{"mcpServers": {"a": null, "b": {"command": "x"}}}')

    assert [(one.server.key, one.server.command) for one in only(tmp_path).servers] == [("a", None), ("b", "x")]


CANARIES = [
    "$(touch {})",
    "`touch {}`",
    "${{IFS}};touch {}",
    "!!python/object/apply:os.system ['touch {}']",
    "; touch {} #",
]


@pytest.mark.parametrize("canary", CANARIES)
def test_nothing_in_a_file_is_run(canary: str, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    bait = canary.format(trap)
    for at, case in enumerate(cases("linux")):
        folder = tmp_path / str(at)
        path = written(folder, case, "NAME")
        text = path.read_text("utf-8")
        shown = json.dumps(bait) if case.path.endswith(("json", "jsonc", "toml", "yaml")) else bait
        path.write_text(text.replace('"node"', shown).replace("command node", f"command {bait}"), "utf-8")
        find(machine(folder, "linux", XDG_CONFIG_HOME=bait, CODEX_HOME=bait))
        read_source(path)

    assert not trap.exists()


def test_what_a_script_says_is_told_as_it_stands(tmp_path: Path) -> None:
    script = """#!/bin/sh
# mcp add commented --command no
export TOKEN=$(cat ~/.secret)
mcp add git --type stdio --command uvx --args mcp-server-git,-v --env "TOKEN=$TOKEN" \\
    --disabled-tools push,pull
mcp add web --type http --url 'https://$HOST/mcp' --header "Authorization: Bearer $(pass show web)" --timeout 5
mcp add "unbalanced --command x
mcp add rest -- node s.js --flag
mcp remove git
if true; then mcp add inner; fi
"""
    put(tmp_path, "home/.config/crush/crushrc", script)

    git, web, rest = (client_server.server for client_server in only(tmp_path).servers)

    assert (git.key, git.command, git.args, dict(git.env)) == (
        "git",
        "uvx",
        ("mcp-server-git", "-v"),
        {"TOKEN": "$TOKEN"},
    )
    assert (web.url, dict(web.headers)) == ("https://$HOST/mcp", {"Authorization": "Bearer $(pass show web)"})
    assert (rest.command, rest.args) == ("node", ("s.js", "--flag"))


@settings(max_examples=40)
@given(raw=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@pytest.mark.parametrize("steps", ["home/.config/crush/crushrc", "home/.claude/agents/x.md", CODEX, CURSOR])
def test_no_content_makes_it_fail(raw: bytes, steps: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("home")
    put(folder, steps, raw)

    assert len(find(machine(folder, "linux"))) == 1


SCRIPT = st.lists(
    st.sampled_from(
        [
            "mcp",
            "add",
            "x",
            "--command",
            "--args",
            "--env",
            "A=b",
            "--url",
            "$(",
            ")",
            "'",
            '"',
            "\\",
            "--",
            "\n",
            "--disabled",
        ]
    ),
    max_size=14,
)


@settings(max_examples=60)
@given(words=SCRIPT)
def test_no_script_makes_it_fail(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("home")
    put(folder, "home/.config/crush/crushrc", "mcp add " + " ".join(words))

    assert only(folder).problem is None


FRONT = st.lists(
    st.sampled_from(
        ["---", "tools:", "tools: a, b", "  - x", "  k: v", "  'q': true", "x", "tools: [a, 'b", ": :", "  - ", "..."]
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(lines=FRONT)
def test_no_frontmatter_makes_it_fail(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("home")
    put(folder, "home/.config/opencode/agent/x.md", "---\n" + "\n".join(lines))

    assert only(folder).problem is None


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path) -> None:
    put(tmp_path, CURSOR, "{")
    put(tmp_path, CODEX, '[mcp_servers.a]\ncommand = "x"\n')

    found = find(machine(tmp_path, "linux"))

    assert [(one.file.client, one.problem is None) for one in found] == [("cursor", False), ("codex", True)]


def test_a_home_full_of_everything_takes_a_moment(tmp_path: Path) -> None:
    here = machine(tmp_path, "linux")
    for at, case in enumerate(cases("linux")):
        if not (tmp_path / case.steps).exists():
            written(tmp_path, case, f"s{at}")
    for number in range(2_000):
        put(tmp_path, f"home/.claude/plugins/cache/m/p{number}/deep/er/x.json", "{}")
    started = time.process_time()

    find(here)

    assert time.process_time() - started < UNHURRIED


def test_many_names_and_many_servers_take_a_moment(tmp_path: Path) -> None:
    servers = {f"s{number}": {"command": "x"} for number in range(500)}
    names = [f"mcp__s{number % 600}__tool_{number}" for number in range(5_000)]
    put(tmp_path, "home/.claude.json", json.dumps({"mcpServers": servers}))
    put(tmp_path, "home/.claude/settings.json", json.dumps({"permissions": {"allow": names}}))
    started = time.process_time()

    found = find(machine(tmp_path, "linux"))

    assert sum(len(one.kept) for one in found) == 5_000
    assert time.process_time() - started < UNHURRIED
