"""Many sightings become one configuration: merged where they are one server, apart where they are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truename.config import ServerConfig, Settings, parse, render
from truename.config.entries import FoundEntry
from truename.config.proposal import Proposal, propose

SECRET = "s3cr3t-value"
OTHER = "0ther-value"


def seen(client: str, key: str = "s", *, file: str = "", spelling: str = "braces", **fields: Any) -> FoundEntry:
    file = file or f"~/.{client}.json"
    server = ServerConfig(key=key, **fields)
    return FoundEntry(
        client=client, title=client.title(), file=file, where=f"m.{key}", server=server, spelling=spelling
    )


def npx(*args: str, **env: str) -> dict[str, Any]:
    return {"command": "npx", "args": args, "env": env}


def keys(proposal: Proposal) -> dict[str, list[str]]:
    return {merged.server.key: [one.client for one in merged.seen] for merged in proposal.servers}


SAME = [
    (npx("pkg"), npx("-y", "pkg")),
    (npx("pkg@latest"), npx("pkg")),
    (npx("@a/pkg@latest"), {"command": "/usr/bin/npx", "args": ("--yes", "@a/pkg")}),
    (npx("pkg"), {"command": "cmd", "args": ("/c", "npx", "pkg")}),
    (npx("pkg"), {"command": "C:\\Program Files\\nodejs\\npx.cmd", "args": ("pkg",)}),
    (npx("pkg", TOKEN=SECRET), npx("pkg", TOKEN=SECRET)),
    (npx("pkg", TOKEN="${TOKEN}"), npx("pkg", TOKEN="${env:TOKEN}")),
    ({"url": "https://A.example/mcp/"}, {"url": "https://a.example/mcp"}),
    (
        {"url": "https://a.example/mcp", "headers": {"authorization": "Bearer x"}},
        {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer x"}},
    ),
]
DIFFERENT = [
    (npx("pkg@1.0.0"), npx("pkg@2.0.0")),
    (npx("pkg@1.0.0"), npx("pkg")),
    (npx("pkg", "/a"), npx("pkg", "/b")),
    (npx("pkg", A="1"), npx("pkg", B="1")),
    (npx("pkg", DIRECTORY="/a"), npx("pkg", DIRECTORY="/b")),
    (npx("pkg"), {"command": "uvx", "args": ("pkg",)}),
    (npx("pkg") | {"cwd": "/a"}, npx("pkg") | {"cwd": "/b"}),
    ({"url": "https://a.example/mcp"}, {"url": "https://b.example/mcp"}),
    ({"url": "https://a.example/mcp"}, {"url": "https://a.example/mcp", "headers": {"X-Team": "a"}}),
    (npx("pkg", TOKEN=SECRET), npx("pkg")),
    (npx("pkg", TOKEN=SECRET), npx("pkg", TOKEN=OTHER)),
    (npx("pkg", TOKEN=SECRET), npx("pkg", TOKEN="${TOKEN}")),
    (npx("pkg", TOKEN="${WORK}"), npx("pkg", TOKEN="${HOME_TOKEN}")),
    (npx("pkg", TOKEN="${input:a}"), npx("pkg", TOKEN="${input:a}")),
    (npx("pkg", "--api-key", SECRET), npx("pkg", "--api-key", OTHER)),
    ({"url": f"https://a.example/?token={SECRET}"}, {"url": f"https://a.example/?token={OTHER}"}),
    (
        {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer x"}},
        {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer y"}},
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME, ids=str)
def test_the_same_server_of_two_clients_is_one_entry(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert keys(propose([seen("cursor", **one), seen("zed", **other)], {})) == {"s": ["cursor", "zed"]}


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=str)
def test_different_servers_of_one_key_get_keys_of_their_own(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert keys(propose([seen("cursor", **one), seen("zed", **other)], {})) == {"s": ["cursor"], "s-zed": ["zed"]}


def test_two_entries_of_one_file_are_never_merged() -> None:
    both = [seen("cursor", "work", **npx("pkg", TOKEN=SECRET)), seen("cursor", "home", **npx("pkg", TOKEN=SECRET))]

    assert keys(propose(both, {})) == {"work": ["cursor"], "home": ["cursor"]}


def test_one_entry_that_two_clients_read_is_one_server() -> None:
    both = [seen(client, file="/p/.mcp.json", **npx("pkg")) for client in ("claude-code", "cursor")]

    assert keys(propose(both, {})) == {"s": ["claude-code", "cursor"]}


def test_other_accounts_under_other_keys_stay_apart() -> None:
    both = [seen("cursor", "work", **npx("pkg", TOKEN=SECRET)), seen("zed", "home", **npx("pkg", TOKEN=OTHER))]
    proposal = propose(both, {})

    assert keys(proposal) == {"work": ["cursor"], "home": ["zed"]}
    assert [variable.name for variable in proposal.variables] == ["TOKEN", "HOME_TOKEN"]


def test_the_key_that_more_clients_have_is_kept() -> None:
    sightings = [seen("a", "gh", **npx("p")), seen("b", "github", **npx("p")), seen("c", "github", **npx("p"))]
    (merged,) = propose(sightings, {}).servers

    assert merged.server.key == "github"
    assert "also known as gh" in merged.notes


def test_a_key_stays_with_the_server_that_more_clients_know() -> None:
    sightings = [seen("a", "x", **npx("one")), seen("b", "X", **npx("two")), seen("c", "X", **npx("two"))]

    assert keys(propose(sightings, {})) == {"x-a": ["a"], "X": ["b", "c"]}


@pytest.mark.parametrize(("a", "b", "off"), [(True, True, True), (True, False, False), (False, False, False)])
def test_a_server_is_off_if_it_is_off_everywhere(a: bool, b: bool, off: bool) -> None:
    (merged,) = propose([seen("cursor", **npx("p"), disabled=a), seen("zed", **npx("p"), disabled=b)], {}).servers

    assert merged.server.disabled is off
    assert ("switched off in Cursor" in merged.notes) is (a and not b)


@pytest.mark.parametrize(
    ("kinds", "url", "kind"),
    [
        (("sse", "http"), "https://a.example/x", "http"),
        (("sse", "sse"), "https://a.example/x", "sse"),
        (("http", "http"), "https://a.example/sse?a=b", "sse"),
    ],
)
def test_the_transport_is_the_one_of_whoever_knows_more(kinds: tuple[str, str], url: str, kind: str) -> None:
    sightings = [seen(f"c{number}", url=url, type=given) for number, given in enumerate(kinds)]

    assert propose(sightings, {}).servers[0].server.type == kind


def test_a_secret_is_in_no_text_and_its_places_are_told() -> None:
    entry = npx("pkg", "--api-key", SECRET, TOKEN=SECRET) | {"cwd": None}
    far: dict[str, Any] = {
        "url": f"https://me:{SECRET}@a.example/?token={SECRET}",
        "headers": {"Authorization": f"Bearer {SECRET}"},
    }
    proposal = propose([seen("cursor", **entry), seen("zed", "far", type="http", **far)], {})
    text = render(proposal.config(Settings()), notes=proposal.notes)

    assert SECRET not in text
    assert SECRET not in repr(proposal.variables)
    assert {variable.name: variable.places for variable in proposal.variables} == {
        "S_API_KEY": ("~/.cursor.json: m.s.args[2]",),
        "TOKEN": ("~/.cursor.json: m.s.env.TOKEN",),
        "FAR_PASSWORD": ("~/.zed.json: m.far.url",),
        "FAR_TOKEN": ("~/.zed.json: m.far.url", "~/.zed.json: m.far.headers.Authorization"),
    }


def test_a_secret_is_found_in_a_key_a_command_and_a_default() -> None:
    address = f"https://a.example/mcp?token={SECRET}"
    sightings = [
        seen("cursor", address, url=address, type="http"),
        seen("zed", "b", command=f"x --token {SECRET}1"),
        seen("kiro", "c", **npx("c", TOKEN=f"${{TOKEN:-{SECRET}2}}")),
        seen("crush", "d", **npx("d", A=f"$(curl -H 'Authorization: Bearer {SECRET}3')"), spelling="shell"),
    ]
    proposal = propose(sightings, {})
    text = render(proposal.config(Settings()), notes=proposal.notes)

    assert SECRET not in text.lower().replace("_", "-")
    assert SECRET not in repr([(one.name, one.places, one.said) for one in proposal.variables]).lower().replace(
        "_", "-"
    )
    assert [one.value for one in proposal.variables if one.name == "TOKEN"] == [f"{SECRET}2"]


def test_written_with_its_variables_each_server_is_what_its_client_had() -> None:
    entry = npx("pkg", "--api-key", SECRET, "$5 ${HOME}", TOKEN=OTHER)
    proposal = propose([seen("cursor", **entry)], {"HOME": "/h"})
    environ = {variable.name: variable.value or "" for variable in proposal.variables} | {"HOME": "/h"}

    (again,) = parse(render(proposal.config(Settings())), Path("/t.toml"), environ).servers

    assert again == ServerConfig(
        key="s", command="npx", args=("pkg", "--api-key", SECRET, "$5 /h"), env={"TOKEN": OTHER}
    )


def test_what_is_a_secret_in_one_place_is_one_everywhere() -> None:
    proposal = propose([seen("cursor", **npx("p", f"a {SECRET} b", TOKEN=SECRET)), seen("zed", "x", **npx(SECRET))], {})

    assert SECRET not in render(proposal.config(Settings()))
    assert [variable.name for variable in proposal.variables] == ["TOKEN"]


def test_a_variable_that_means_something_else_already_is_not_taken() -> None:
    sightings = [seen("cursor", **npx("a", TOKEN=SECRET)), seen("zed", "t", **npx("b", TOKEN=OTHER))]

    assert [one.name for one in propose(sightings, {"TOKEN": "outside"}).variables] == ["S_TOKEN", "T_TOKEN"]
    assert [one.name for one in propose(sightings, {"TOKEN": SECRET}).variables] == ["TOKEN", "T_TOKEN"]
    reference = seen("gemini-cli", "u", **npx("c", TOKEN="$TOKEN"), spelling="dollar")
    assert [one.name for one in propose([*sightings, reference], {}).variables] == ["S_TOKEN", "T_TOKEN", "TOKEN"]


@pytest.mark.parametrize("reverse", [False, True])
def test_two_that_differ_in_a_secret_keep_theirs(reverse: bool) -> None:
    claude = seen("claude-code", "github", **npx("gh", TOKEN=SECRET))
    cursor = seen("cursor", "github", **npx("gh"))
    proposal = propose([cursor, claude] if reverse else [claude, cursor], {})
    (mine,), (theirs,) = ([one for one in proposal.servers if one.seen == (it,)] for it in (claude, cursor))

    assert mine.server.env == {"TOKEN": "${TOKEN}"}
    assert theirs.server.env == {}
    assert {mine.server.key, theirs.server.key} == ({"github", "github-claude-code" if reverse else "github-cursor"})
    renamed = mine if reverse else theirs
    assert "called github there; github is another server, that differs in env.TOKEN" in renamed.notes
    assert [(one.name, one.value) for one in proposal.variables] == [("TOKEN", SECRET)]


def test_each_of_several_secrets_has_a_variable() -> None:
    values = [SECRET, OTHER, "a-third-0ne"]
    sightings = [seen(f"c{number}", **npx("p", TOKEN=value)) for number, value in enumerate(values)]
    proposal = propose(sightings, {})

    assert keys(proposal) == {"s": ["c0"], "s-c1": ["c1"], "s-c2": ["c2"]}
    assert {one.name: one.value for one in proposal.variables} == {
        "TOKEN": SECRET, "S_C1_TOKEN": OTHER, "S_C2_TOKEN": "a-third-0ne"
    }  # fmt: skip


def test_a_reference_and_a_text_are_one_where_the_environment_has_that_text() -> None:
    sightings = [seen("cursor", **npx("p", TOKEN=SECRET)), seen("zed", **npx("p", TOKEN="${TOKEN}"))]

    assert keys(propose(sightings, {"TOKEN": OTHER})) == {"s": ["cursor"], "s-zed": ["zed"]}
    (merged,) = propose(sightings, {"TOKEN": SECRET}).servers
    assert merged.server.env == {"TOKEN": "${TOKEN}"}


def test_two_defaults_of_one_variable_are_two_values() -> None:
    sightings = [
        seen(client, **npx("p", TOKEN=f"${{TOKEN:-{value}}}")) for client, value in [("a", SECRET), ("b", OTHER)]
    ]
    proposal = propose(sightings, {})

    assert keys(proposal) == {"s": ["a"], "s-b": ["b"]}
    assert {one.name: one.value for one in proposal.variables} == {"TOKEN": SECRET, "S_B_TOKEN": OTHER}
    assert keys(propose(sightings, {"TOKEN": "outside"})) == {"s": ["a", "b"]}


def test_what_only_a_client_can_fill_in_is_that_clients_alone() -> None:
    asked = npx("p", TOKEN="${input:token}")
    sightings = [
        seen("zed", **npx("p", TOKEN=SECRET)),
        seen("vscode", **asked),
        seen("vscode", "b", file="~/2", **asked),
    ]
    proposal = propose(sightings, {})

    assert keys(proposal) == {"s-zed": ["zed"], "s": ["vscode", "vscode"]}
    assert [(one.name, one.value, one.said) for one in proposal.variables] == [
        ("TOKEN", SECRET, ""), ("S_TOKEN", None, "${input:token}")
    ]  # fmt: skip


def test_an_entry_with_what_can_not_be_told_is_no_other_one() -> None:
    sightings = [seen("cursor", **npx("p")), replace(seen("vscode", **npx("p")), left_out=("envFile",))]

    assert keys(propose(sightings, {})) == {"s": ["cursor"], "s-vscode": ["vscode"]}


def test_variables_of_servers_that_are_off_are_not_needed() -> None:
    (variable,) = propose([seen("cursor", **npx("p", TOKEN=SECRET), disabled=True)], {}).variables

    assert not variable.needed


GATEWAYS: list[dict[str, Any]] = [
    {"url": "http://127.0.0.1:8750/mcp"},
    {"url": "http://localhost:9000/mcp/only/github"},
    {"command": "/home/me/.venv/bin/truename", "args": ("serve", "x.toml")},
    {"command": "uvx", "args": ("truename[gateway]", "serve")},
]


@pytest.mark.parametrize("entry", GATEWAYS, ids=str)
def test_truename_itself_is_left_out(entry: dict[str, Any]) -> None:
    proposal = propose([seen("cursor", "tn", **entry)], {})

    assert (len(proposal.servers), len(proposal.gateways)) == (0, 1)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"url": f"ftp://me:{SECRET}@a.example"}, "http(s)"),
    ({"command": " "}, "empty"),
    ({}, "neither"),
    ({"command": "x", "args": ("a\0b",)}, "NUL"),
    ({"command": "\ud800"}, "half a character"),
    ({"url": "https://a.example", "headers": {"a b": SECRET}}, "header"),
]


@pytest.mark.parametrize(("entry", "problem"), REFUSED, ids=[problem for _, problem in REFUSED])
def test_what_the_reader_would_not_take_is_left_out_and_told(entry: dict[str, Any], problem: str) -> None:
    proposal = propose([seen("cursor", **entry), seen("cursor", "good", **npx("p"))], {})

    assert [merged.server.key for merged in proposal.servers] == ["good"]
    (refused,) = proposal.refused
    assert problem in refused.problem
    assert refused.remedy
    assert SECRET not in refused.problem


def test_a_variable_may_be_a_whole_address_or_a_port() -> None:
    sightings = [seen("a", "one", url="${ADDRESS}"), seen("a", "two", url="http://h.example:${PORT}/mcp")]

    assert propose(sightings, {}).refused == ()


ENTRIES = st.builds(
    seen,
    st.sampled_from(["cursor", "zed", "codex"]),
    st.sampled_from(["a", "A", "b", "b-zed", "c"]),
    command=st.sampled_from(["npx", "uvx"]),
    args=st.lists(st.sampled_from(["-y", "p", "p@latest", f"--token={SECRET}", "$X", "${X}"]), max_size=4).map(tuple),
    env=st.dictionaries(st.just("TOKEN"), st.sampled_from([SECRET, OTHER, "${TOKEN}", "1"]), max_size=1),
    disabled=st.booleans(),
    spelling=st.sampled_from(["braces", "literal", "dollar"]),
)


@given(st.lists(ENTRIES, max_size=8))
def test_every_sighting_is_in_exactly_one_server_and_all_is_readable(sightings: list[FoundEntry]) -> None:
    sightings = [replace(one, where=f"{one.where}{number}") for number, one in enumerate(sightings)]
    proposal = propose(sightings, {})
    told = [one.where for merged in proposal.servers for one in merged.seen]
    text = render(proposal.config(Settings()), notes=proposal.notes)
    names = [merged.server.key.casefold() for merged in proposal.servers]

    assert sorted(told) == sorted(one.where for one in sightings)
    assert len(set(names)) == len(names)
    assert not {SECRET, OTHER} & set(text.split('"'))
    again = parse(text, Path("/t.toml"), {variable.name: "v" for variable in proposal.variables})
    assert [server.key for server in again.servers] == [merged.server.key for merged in proposal.servers]
    assert keys(propose(sightings, {})) == keys(proposal)
