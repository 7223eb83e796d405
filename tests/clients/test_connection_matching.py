"""Which server of the gateway is the one that a client has, and which names it then gets."""

from __future__ import annotations

import pytest

from truename import dialects
from truename.clients.matching import counterpart, same_text
from truename.clients.upcoming import ONLY_STYLE, alone, alone_path, together
from truename.config import Config, ServerConfig, Settings
from truename.gateway.views.choice import fixed_view
from truename.gateway.views.view import read_path

GITHUB = ServerConfig(key="github", command="npx", args=("-y", "server-github"), env={"TOKEN": "one"})
LISTED = {"github": ["search", "fs.list", "Create-Issue"], "weather": ["search"]}


@pytest.mark.parametrize(
    ("client", "gateway", "matches"),
    [
        (GITHUB, GITHUB, True),
        (GITHUB, ServerConfig(key="other", command="npx", args=("-y", "server-github"), env={"TOKEN": "one"}), True),
        (GITHUB, ServerConfig(key="work", command="npx", args=("-y", "server-github"), env={"TOKEN": "two"}), False),
        (GITHUB, ServerConfig(key="github", command="npx", args=("-y", "server-github"), env={"TOKEN": "two"}), True),
        (GITHUB, ServerConfig(key="github", command="npx", args=("-y", "server-gitlab")), False),
        (GITHUB, ServerConfig(key="github", command="/usr/bin/npx", args=("-y", "server-github")), True),
        (GITHUB, ServerConfig(key="github", command="npx.cmd", args=("-y", "server-github")), True),
        *(
            (ServerConfig(key="github", command=command, args=tuple(args), env={"TOKEN": "one"}), GITHUB, True)
            for command, *args in (
                ("npx", "server-github"),
                ("npx", "--yes", "server-github@latest"),
                ("cmd", "/c", "npx", "-y", "server-github"),
                ("C:\\Windows\\System32\\cmd.exe", "/C", "npx.cmd", "server-github"),
                ("/opt/node/bin/npx", "${PACKAGE}"),
            )
        ),
        (ServerConfig(key="x", command="cmd", args=("/c", "npx", "server-github"), env=GITHUB.env), GITHUB, True),
        (ServerConfig(key="github", command="npx", args=("server-github@2",)), GITHUB, False),
        (ServerConfig(key="github", command="cmd", args=("/c",)), GITHUB, False),
        (GITHUB, ServerConfig(key="github", url="https://x.test/mcp", type="http"), False),
        (GITHUB, ServerConfig(key="github", disabled=True), False),
        (
            ServerConfig(key="a", url="https://X.test/mcp/", type="http"),
            ServerConfig(key="b", url="https://x.test/mcp", type="http"),
            True,
        ),
        (
            ServerConfig(key="a", url="${BASE}/mcp", type="http"),
            ServerConfig(key="a", url="https://x.test/mcp", type="http"),
            True,
        ),
        (
            ServerConfig(key="a", url="${BASE}/mcp", type="http"),
            ServerConfig(key="b", url="https://x.test/mcp", type="http"),
            False,
        ),
    ],
)
def test_a_server_is_found_by_what_it_runs(client: ServerConfig, gateway: ServerConfig, matches: bool) -> None:
    found = counterpart(client, [gateway])

    assert (found is not None) is matches


def test_the_server_of_the_same_key_goes_first() -> None:
    twins = [ServerConfig(key=key, command="npx", args=GITHUB.args, env=GITHUB.env) for key in ("a", "github")]

    found = counterpart(GITHUB, twins)

    assert found is not None
    assert found.server.key == "github"


def test_an_environment_that_differs_is_told() -> None:
    found = counterpart(GITHUB, [ServerConfig(key="github", command="npx", args=GITHUB.args, env={"TOKEN": "two"})])

    assert found is not None
    assert found.differing == ("TOKEN",)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a", "a", True),
        ("${TOKEN}", "anything", True),
        ("Bearer ${env:TOKEN}", "Bearer x", True),
        ("Bearer $TOKEN", "Basic x", False),
        ("{env:A}-{env:B}", "x-y", True),
        ("${{ secrets.A }}/end", "x/end", True),
        ("%A%ab", "ab", True),
        ("ab${A}ba", "aba", False),
    ],
)
def test_a_reference_stands_for_any_text(one: str, other: str, same: bool) -> None:
    assert same_text(one, other) is same
    assert same_text(other, one) is same


def test_many_references_cost_no_more_than_their_length() -> None:
    assert not same_text("${A}a" * 20_000 + "b", "a" * 20_000)


def test_one_server_alone_is_named_as_the_gateway_names_it() -> None:
    asked = read_path(alone_path("github", "claude-code"), ["github"])
    spec = fixed_view(asked, Settings())

    assert (spec.rules, spec.style, spec.scope) == (dialects.own("claude-code", "github"), ONLY_STYLE, "only/github")
    assert alone(LISTED, Config(), dialect="claude-code")["github"] == {
        "search": "search", "fs.list": "fs_list", "Create-Issue": "Create-Issue"
    }  # fmt: skip


def test_all_servers_together_get_universal_names() -> None:
    names = together(LISTED, Config(), dialect="universal")

    assert names["github"]["search"] == "github_search"
    assert names["weather"] == {"search": "weather_search"}


def test_a_long_name_stays_as_it_is_where_the_client_has_room_for_it() -> None:
    long = "create_issue_from_template_with_labels_and_assignees_in_project"

    roomy = alone({"github": [long]}, Config(), dialect="claude-code")
    tight = alone({"github": [long]}, Config(), dialect="universal")

    assert roomy["github"][long] == long
    assert len(tight["github"][long]) <= 46
