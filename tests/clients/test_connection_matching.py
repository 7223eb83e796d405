"""Which server of the gateway is the one that a client has, and which names it then gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename import dialects
from truename.clients.gateway_address import ONLY_STYLE, alone_path, names_alone, names_together
from truename.clients.selection import find_counterpart
from truename.config import Config, ServerConfig, Settings, parse, render
from truename.config.entries import FoundEntry
from truename.config.interpolate import UnsetReference
from truename.config.proposal import propose
from truename.gateway.views.choice import fixed_view
from truename.gateway.views.view import read_path

UNSET = UnsetReference(name="UNSET", problem="the environment variable UNSET is not set", remedy="Set it.")
GITHUB = ServerConfig(key="github", command="npx", args=("-y", "server-github"), env={"TOKEN": "one"})
LISTED = {"github": ["search", "fs.list", "Create-Issue"], "weather": ["search"]}


def seen(server: ServerConfig, *, client: str = "cursor", spelling: str = "braces", **more: Any) -> FoundEntry:
    return FoundEntry(client=client, title=client, file="f", where=server.key, server=server, spelling=spelling, **more)


def npx(key: str, *args: str, command: str = "npx", **more: Any) -> ServerConfig:
    return ServerConfig(key=key, command=command, args=args, **more)


def at(url: str, key: str = "a", **headers: str) -> ServerConfig:
    return ServerConfig(key=key, url=url, type="http", headers=headers)


SAME = [
    (GITHUB, GITHUB),
    (GITHUB, replace(GITHUB, key="other")),
    (GITHUB, replace(GITHUB, command="/usr/bin/npx")),
    (GITHUB, replace(GITHUB, command="npx.cmd")),
    *(
        (npx("github", *args, command=command, env=GITHUB.env), GITHUB)
        for command, *args in (
            ("npx", "server-github"),
            ("npx", "--yes", "server-github@latest"),
            ("cmd", "/c", "npx", "-y", "server-github"),
            ("C:\\Windows\\System32\\cmd.exe", "/C", "npx.cmd", "server-github"),
            ("/opt/node/bin/npx", "${PACKAGE}"),
        )
    ),
    (npx("x", "a", command="/opt/node/bin/node"), npx("x", "a", command="node")),
    (npx("x", "a", env={"TOKEN": "${UNSET}"}), npx("x", "a", env={"TOKEN": "${UNSET}"}, unset=(UNSET,))),
    (npx("x", "${UNSET:-a}"), npx("x", "a")),
    (npx("x", "${SET_AND_EMPTY}"), npx("x", "")),
    (at("https://X.test/mcp/"), at("https://x.test/mcp", "b")),
    (at("${BASE}/mcp"), at("https://x.test/mcp")),
    (at("https://x.test/mcp", Authorization="Bearer a"), at("https://x.test/mcp", authorization="Bearer a")),
]
OTHER = [
    (GITHUB, replace(GITHUB, env={"TOKEN": "two"}), "env.TOKEN"),
    (GITHUB, replace(GITHUB, key="work", env={"TOKEN": "two"}), "env.TOKEN"),
    (GITHUB, replace(GITHUB, env={}), "env.TOKEN"),
    (replace(GITHUB, env={}), GITHUB, "env.TOKEN"),
    (GITHUB, replace(GITHUB, env={**GITHUB.env, "DEBUG": "1"}), "env.DEBUG"),
    (GITHUB, npx("github", "-y", "server-gitlab", env=GITHUB.env), "args"),
    (npx("github", "server-github@2", env=GITHUB.env), GITHUB, "args"),
    (npx("github", "-y", "server-github", "--read-only", env=GITHUB.env), GITHUB, "args"),
    (npx("github", "/c", command="cmd", env=GITHUB.env), GITHUB, "command args"),
    (npx("x", "a", command="/opt/one/node"), npx("x", "a", command="/opt/two/node"), "command"),
    (npx("x", "a", cwd="/one"), npx("x", "a", cwd="/two"), "cwd"),
    (npx("x", "a", cwd="/one"), npx("x", "a"), "cwd"),
    (npx("x", "--token", "one"), npx("x", "--token", "two"), "args"),
    (at("https://x.test/mcp?key=one"), at("https://x.test/mcp?key=two"), "url"),
    (at("https://me:Secret@x.test/mcp"), at("https://me:secret@x.test/mcp"), "url"),
    (
        at("https://x.test/mcp", Authorization="Bearer a"),
        at("https://x.test/mcp", Authorization="Bearer b"),
        "headers.authorization",
    ),
    (at("https://x.test/mcp"), at("https://x.test/mcp", **{"X-Key": "b"}), "headers.x-key"),
    (GITHUB, at("https://x.test/mcp", "github"), "command args env.TOKEN url"),
    (GITHUB, ServerConfig(key="github", disabled=True), ""),
    (GITHUB, npx("gitlab", "-y", "server-gitlab"), ""),
]
ENVIRON = {"PACKAGE": "server-github", "BASE": "https://x.test", "SET_AND_EMPTY": ""}


@pytest.mark.parametrize(("client", "gateway"), SAME, ids=str)
def test_a_server_is_found_by_all_that_decides_what_it_does(client: ServerConfig, gateway: ServerConfig) -> None:
    assert find_counterpart(seen(client), [gateway], ENVIRON).server is gateway


@pytest.mark.parametrize(("client", "gateway", "places"), OTHER, ids=str)
def test_what_differs_in_one_thing_is_another_server(client: ServerConfig, gateway: ServerConfig, places: str) -> None:
    found = find_counterpart(seen(client), [gateway], ENVIRON)

    assert (found.server, set(found.differing)) == (None, set(places.split()))
    assert found.near == (gateway.key if places else "")


def test_of_several_the_one_with_this_clients_values_is_taken() -> None:
    claude, cursor = GITHUB, replace(GITHUB, key="github-cursor", env={})

    for known in ([claude, cursor], [cursor, claude]):
        assert find_counterpart(seen(GITHUB), known, {}).server is claude
        assert find_counterpart(seen(replace(GITHUB, env={})), known, {}).server is cursor


def test_the_server_of_the_same_key_goes_first() -> None:
    twins = [replace(GITHUB, key=key) for key in ("a", "github")]

    assert find_counterpart(seen(GITHUB), twins, {}).server is twins[1]


def test_the_same_command_goes_before_another_spelling_of_it() -> None:
    known = [npx("x", command="/opt/node"), npx("x-zed", command="node")]

    assert find_counterpart(seen(npx("x", command="node")), known, {}).server is known[1]


@pytest.mark.parametrize("text", ["${UNSET}", "a ${UNSET} b ${UNSET}", "Bearer ${UNSET}"])
def test_without_its_variable_a_server_is_known_by_what_it_was_made_of_alone(text: str) -> None:
    client = npx("x", env={"A": text.replace("${UNSET}", "value")})
    gateway = npx("x", env={"A": text}, unset=(UNSET,))

    unknown = find_counterpart(seen(client), [gateway], {})

    assert (unknown.server, unknown.near, unknown.unset) == (None, "x", ("UNSET",))
    assert find_counterpart(seen(client), [gateway], {}, lambda key, _: key == "x").server is gateway
    assert find_counterpart(seen(replace(client, env={"A": "other text"})), [gateway], {}, lambda *_: True).server is (
        gateway if text == "${UNSET}" else None
    )


def test_what_only_the_client_can_fill_in_is_no_value_of_the_gateway() -> None:
    found = find_counterpart(
        seen(npx("x", env={"A": "${input:token}"}), client="vscode"), [npx("x", env={"A": "v"})], {}
    )

    assert (found.server, found.near, found.differing) == (None, "x", ("env.A",))


def test_no_text_passes_for_a_variable_that_has_no_value() -> None:
    gateway = npx("x", "${UNSET}", unset=(UNSET,))

    assert find_counterpart(seen(npx("x", "\0$UNSET\0")), [gateway], {}).server is None


def test_an_entry_with_a_file_of_variables_is_not_the_gateways() -> None:
    found = find_counterpart(seen(GITHUB, left_out=("envFile",)), [GITHUB], {})

    assert (found.server, found.near, found.differing) == (None, "github", ("envFile",))


def test_a_client_that_replaces_nothing_means_its_text(tmp_path: Path) -> None:
    client = seen(npx("x", "${HOME}"), client="claude-desktop", spelling="literal")

    assert find_counterpart(client, [npx("x", "${HOME}")], {"HOME": "/h"}).server is not None
    assert find_counterpart(client, [npx("x", "/h")], {"HOME": "/h"}).server is None


def test_a_projects_server_may_have_no_directory_in_the_gateway() -> None:
    client = seen(npx("x", cwd="/p"), base=Path("/p"))

    assert find_counterpart(client, [npx("x")], {}).server is not None
    assert find_counterpart(client, [npx("x", cwd="/q")], {}).server is None
    relative = find_counterpart(seen(npx("x", cwd="sub")), [npx("x", cwd="/p/sub")], {}, lambda *_: True)
    assert relative.server is not None


def test_many_unknowns_cost_no_more_than_their_length() -> None:
    gateway = npx("x", "${A}a" * 20_000 + "b", unset=(replace(UNSET, name="A"),))

    assert find_counterpart(seen(npx("x", "a" * 20_000)), [gateway], {}).differing == ("args",)


ENTRIES = st.builds(
    lambda client, key, args, env, spelling, cwd: seen(
        npx(key, *args, env=env, cwd=cwd), client=client, spelling=spelling
    ),
    st.sampled_from(["cursor", "zed", "codex"]),
    st.sampled_from(["a", "A", "b", "b-zed"]),
    st.lists(st.sampled_from(["-y", "p", "--token=s3cret-one", "--token=s3cret-two", "$X", "${X}"]), max_size=3),
    st.dictionaries(st.just("TOKEN"), st.sampled_from(["s3cret-one", "s3cret-two", "${TOKEN}", "1", "$TOKEN"])),
    st.sampled_from(["braces", "literal", "dollar"]),
    st.sampled_from([None, "/one", "/two"]),
)


@given(st.lists(ENTRIES, max_size=6))
def test_each_entry_is_brought_to_a_server_with_its_own_values_and_to_no_other(
    client_servers: list[FoundEntry],
) -> None:
    client_servers = [replace(one, file=f"f{number}") for number, one in enumerate(client_servers)]
    proposal = propose(client_servers, {})
    environ = {one.name: one.value for one in proposal.variables if one.value is not None}
    servers = parse(render(proposal.config(Settings())), Path("/t.toml"), environ).servers

    for merged, made in zip(proposal.servers, servers, strict=True):
        for one in merged.seen:
            found = find_counterpart(one, servers, environ).server
            assert found is not None
            assert replace(found, key="") == replace(made, key="")
            literal = {name: value for name, value in one.server.env.items() if "$" not in value}
            assert {name: found.env[name] for name in literal} == literal


def test_one_server_alone_is_named_as_the_gateway_names_it() -> None:
    asked = read_path(alone_path("github", "claude-code"), ["github"])
    spec = fixed_view(asked, Settings())

    assert (spec.rules, spec.style, spec.scope) == (dialects.own("claude-code", "github"), ONLY_STYLE, "only/github")
    assert names_alone(LISTED, Config(), dialect="claude-code")["github"] == {
        "search": "search", "fs.list": "fs_list", "Create-Issue": "Create-Issue"
    }  # fmt: skip


def test_all_servers_together_get_universal_names() -> None:
    names = names_together(LISTED, Config(), dialect="universal")

    assert names["github"]["search"] == "github_search"
    assert names["weather"] == {"search": "weather_search"}


def test_a_long_name_stays_as_it_is_where_the_client_has_room_for_it() -> None:
    long = "create_issue_from_template_with_labels_and_assignees_in_project"

    roomy = names_alone({"github": [long]}, Config(), dialect="claude-code")
    tight = names_alone({"github": [long]}, Config(), dialect="universal")

    assert roomy["github"][long] == long
    assert len(tight["github"][long]) <= 46
