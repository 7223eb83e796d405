"""What stands for a server in front of its tools' names: short, and never what is another server's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naming.tables import named, table
from truename import Catalog, Ledger, project, resolve
from truename.errors import AmbiguousName
from truename.identity import fold
from truename.naming.candidates import ServerKeyWords, ServerParts, key_forms

if TYPE_CHECKING:
    from collections.abc import Hashable

LONG = "create_confluence_page_for_whole_space"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        pytest.param(["@acme/mcp-server-git"], ["git"], id="organisation, mcp and server are left out"),
        pytest.param(["mcp-server"], ["mcp_server"], id="a key of nothing else stays"),
        pytest.param(["acme/mcp"], ["acme"], id="the organisation is all that a key says"),
        pytest.param(["@acme/git-mcp", "@other/git"], ["acme_git", "other_git"], id="two that would be alike"),
        pytest.param(["git", "git-mcp", "@a/git"], ["git", "git_mcp", "a_git"], id="who has no more words keeps them"),
        pytest.param(["@acme/git", "acme-git"], ["git", "acme_git"], id="a longer form of one is no reason"),
        pytest.param(
            ["@acme/git", "@b/git", "acme-git"], ["acme_git", "b_git", "acme_git"], id="keys that are words alike"
        ),
        pytest.param(["@BlackSand/hubspot", "@b/hubspot"], ["blacksand_hubspot", "b_hubspot"], id="firms are one word"),
        pytest.param(["21st/git"], ["git"], id="a part that cannot begin a name"),
    ],
)
def test_a_key_is_spelled_as_short_as_tells_it_apart(keys: list[str], expected: list[str]) -> None:
    names = table({key: [f"tool{number}"] for number, key in enumerate(keys)}, "universal")

    assert [name.rpartition("_")[0] for name in names.values()] == expected


def test_a_key_is_whole_where_the_style_shows_the_server_as_it_is() -> None:
    servers = {"@acme/mcp-server-git": ["status"], "b": ["status"]}

    assert list(table(servers, "native", "on-conflict").values())[:1] == ["@acme_mcp-server-git:status"]
    assert list(table(servers, "openai", "server-prefix").values())[:1] == ["mcp_acme_mcp-server-git__status"]


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        pytest.param(
            {"brave-search": ["search_web"]}, ["brave_search_web"], id="the last words of one begin the other"
        ),
        pytest.param(
            {"brave-search": ["brave_web_search"]}, ["brave_web_search"], id="a word that is the server's alone"
        ),
        pytest.param(
            {"brave-search": ["brave_web_search"], "brave-news": ["x"]},
            ["brave_search_web_search", "brave_news_x"],
            id="a word that another server has too goes from the tool's name",
        ),
        pytest.param(
            {"sequential-thinking": ["sequentialthinking"]}, ["sequentialthinking"], id="its words run together"
        ),
        pytest.param({"openai-websearch": ["web_search"]}, ["openai_web_search"], id="its words run together there"),
        pytest.param({"search-tools": ["search_files"]}, ["search_tools_search_files"], id="a verb names no server"),
        pytest.param({"brave-search": ["brave"]}, ["brave_search_brave"], id="a tool of one word keeps it"),
        pytest.param({"@x/git-mcp": ["git_add"]}, ["git_add"], id="the whole of it"),
        pytest.param(
            {"git": ["git_hub_x"], "git-hub": ["y"]}, ["git_git_hub_x", "git_hub_y"], id="not if it reads as another's"
        ),
        pytest.param(
            {"brave-search": ["search_web", "web"]},
            ["brave_search_search_web", "brave_search_web"],
            id="who is called so itself comes first",
        ),
    ],
)
def test_what_server_and_tool_both_say_is_said_once(tools: dict[str, list[str]], expected: list[str]) -> None:
    assert list(table(tools, "universal").values()) == expected


def test_a_word_that_is_left_out_of_a_tool_s_name_takes_the_signs_around_it_along() -> None:
    servers = {"brave-search": ["_brave_web_search"], "brave-news": ["x"]}

    assert list(table(servers, "openai", "prefixed").values()) == ["brave-search_web_search", "brave-news_x"]


def test_a_style_with_a_separator_of_its_own_keeps_the_server_s_part_whole() -> None:
    servers = {"brave-search": ["search_web"], "b": ["search_web"]}

    assert list(table(servers, "native", "on-conflict").values()) == ["brave-search:search_web", "b:search_web"]


def test_a_part_is_never_shaved_to_another_server_s_name() -> None:
    names = table({"lark-all-dot": [LONG], "lark": ["x"]}, "universal")

    assert not names[f"lark-all-dot@1/{LONG}@1"].startswith("lark_")
    assert list(table({"lark-all-dot": [LONG]}, "universal").values()) == [f"lark_{LONG}"]


def test_a_name_without_its_server_s_part_does_not_read_as_another_s() -> None:
    tool = "github_list_repository_organization_secrets_everywhere"

    names = table({"composio-tools": [tool], "github": ["x"]}, "universal")

    assert names[f"composio-tools@1/{tool}@1"].startswith("composio_")


def test_words_of_the_key_tell_servers_apart_before_a_digest_does() -> None:
    tool = "get_historical_stock_price_of_firm"
    servers = {"google-workspace-calendar": [tool], "google-workspace-gmail": [tool]}

    assert list(table(servers, "universal").values()) == [f"calendar_{tool}", f"gmail_{tool}"]


def test_a_name_that_is_held_by_another_gets_a_longer_form_of_its_server_s_key() -> None:
    ledger = Ledger.memory()
    project(Catalog.from_mcp({"@acme/mcp-git": ["status"]}), "universal", ledger=ledger)

    names = project(Catalog.from_mcp({"@other/mcp-git": ["status"]}), "universal", ledger=ledger)

    assert list(names.values()) == ["other_git_status"]


def test_of_an_organisation_one_word_is_enough() -> None:
    tool = "communications_get_preferences"

    names = table({"@black-sand-software/hubspot-mcp": [tool], "@b/hubspot-mcp": ["x"]}, "universal")

    assert list(names.values()) == [f"black_hubspot_{tool}", "b_hubspot_x"]


@pytest.mark.parametrize(
    ("key", "tool", "expected"),
    [
        (
            "paper-search",
            "search_the_files_of_the_whole_company_in_paris",
            "paper_search_files_of_whole_company_in_paris",
        ),
        (
            "brave-search",
            "brave_files_of_the_whole_company_in_every_place",
            "brave_files_of_whole_company_in_every_place",
        ),
    ],
)
def test_what_both_say_is_said_once_in_a_name_that_is_shortened_too(key: str, tool: str, expected: str) -> None:
    assert list(table({key: [tool]}, "universal").values()) == [expected]


def test_a_name_that_can_only_be_cut_keeps_its_server_s_part_where_it_would_read_as_another_s() -> None:
    tool = f"github_{'x' * 60}"

    names = list(table({"composio-tools": [tool], "github": ["x"]}, "universal").values())

    assert re.fullmatch("composio_tools_github_[0-9a-f]{4}", names[0])
    # Such a part leaves no room.
    names = list(table({f"{'w' * 20}-{'v' * 20}": [tool], "github": ["x"]}, "universal").values())
    assert re.fullmatch("github_[0-9a-f]{4}", names[0])


def test_forms_of_a_key_that_others_hold_are_passed_over() -> None:
    ledger = Ledger.memory()
    before = Catalog.from_mcp({"@acme/mcp-git": ["status"], "other-git": ["status"]})
    project(before, "universal", ledger=ledger)

    names = project(Catalog.from_mcp({"@other/mcp-git": ["status"]}), "universal", ledger=ledger)

    assert list(names.values()) == ["mcp_git_status"]


def test_names_on_record_stay_when_a_server_joins_that_would_be_called_alike() -> None:
    ledger = Ledger.memory()
    before = project(Catalog.from_mcp({"@acme/git": ["status"]}), "universal", ledger=ledger)
    both = Catalog.from_mcp({"@acme/git": ["status", "log"], "git": ["status"]})

    names = named(project(both, "universal", ledger=ledger))

    assert list(before.values()) == ["git_status"]
    assert list(names.values())[:2] == ["git_status", "acme_git_log"]
    assert len(set(names.values())) == 3


def test_a_key_in_full_still_finds_the_tool() -> None:
    names = table({"@acme/mcp-server-git": ["git_status"], "brave-search": ["brave_web_search"]}, "universal")
    git, brave = names

    assert names[git] == "git_status"
    assert resolve("acme_mcp_server_git_git_status", names).id == git
    assert resolve("@acme/mcp-server-git:git_status", names).id == git
    assert resolve("brave_search_brave_web_search", names).id == brave


def test_a_spelling_that_is_two_tools_is_neither_s() -> None:
    names = table({"@a/x-git": ["status"], "@b/x-git": ["status"]}, "universal")

    with pytest.raises(AmbiguousName):
        resolve("status", names)


KEYS = st.lists(
    st.from_regex(r"(@[a-c]/)?(mcp-|server-)?[a-c](-[a-c]){0,2}(-mcp)?", fullmatch=True), min_size=1, max_size=6
)


@given(KEYS)
def test_parts_are_a_function_of_the_set_of_keys_and_differ_where_keys_do(keys: list[str]) -> None:
    catalog = {key: ["x"] for key in keys}
    backwards = {key: ["x"] for key in reversed(catalog)}
    forward, back = named(table(catalog, "universal")), named(table(backwards, "universal"))

    assert forward == back
    assert len({fold(name) for name in forward.values()}) == len(catalog)


def test_forms_of_a_key_are_told_from_the_shortest() -> None:
    assert key_forms(("git",), ("git",)) == (("git",),)
    assert key_forms(("mcp",), ("mcp",)) == (("mcp",),)
    assert key_forms(("mcp", "git"), ("acme", "mcp", "git"), ("acme",)) == (
        ("git",),
        ("acme", "git"),
        ("mcp", "git"),
        ("acme", "mcp", "git"),
    )


def test_shorter_forms_have_a_word_of_no_other_server_first() -> None:
    keys: dict[Hashable, ServerKeyWords] = {
        name: ServerKeyWords("_".join(name), name, name)
        for name in (("k", "b", "c"), ("k", "b", "d"), ("e", "f", "api"))
    }
    parts = ServerParts(keys)

    assert list(parts.shorter(("k", "b", "c"))) == [("c",), ("k", "b"), ("k",)]
    assert list(parts.shorter(("e", "f", "api"))) == [("e", "f"), ("e",)]
    assert parts.begins_like_another_server(("k", "b", "c"), "e_f_api_x")
    assert not parts.begins_like_another_server(("k", "b", "c"), "x_e_f_api")
