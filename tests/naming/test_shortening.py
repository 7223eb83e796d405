"""Names that are too long: which words go first, and what is never done to them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naming.tables import named, table
from truename.naming.words import distinguishing_words, drop_words, prefix_words, snake, split, without_fillers, words

LONG = "with_long_body_and_many_attachments_for_a_team"
ROOM = 46


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        pytest.param(
            {"@acme/mcp-server-atlassian-cloud": ["create_confluence_page_body"]},
            ["atlassian_cloud_create_confluence_page_body"],
            id="organisation, mcp and server go first",
        ),
        pytest.param(
            {"atlassian-cloud": ["create_a_confluence_page_in_the_site_v1"]},
            ["atlassian_cloud_create_confluence_page_in_site"],
            id="articles and a first version go before the server's part",
        ),
        pytest.param(
            {"@acme/mcp-server-atlassian-cloud": ["create_confluence_page_in_space"]},
            ["atlassian_create_confluence_page_in_space"],
            id="then the server's part is shaved at word ends",
        ),
        pytest.param(
            {"@acme/mcp-server-atlassian-cloud": ["create_confluence_page_in_the_space_of_team"]},
            ["create_confluence_page_in_the_space_of_team"],
            id="then it goes",
        ),
        pytest.param(
            {"atlassian": [f"createConfluencePage_{LONG}", f"deleteConfluencePage_{LONG}"]},
            [
                "create_confluence_page_body_attachments_team",
                "delete_confluence_page_body_attachments_team",
            ],
            id="then middle words of the tool, never the verb",
        ),
        pytest.param(
            {
                "s": [
                    "get_all_users_of_a_team_and_their_group_members_list",
                    "get_new_users_of_a_team_and_their_group_members_list",
                ]
            },
            ["get_all_users_of_team_and_group_members_list", "get_new_users_of_team_and_group_members_list"],
            id="never the word that tells it from a sibling",
        ),
        pytest.param(
            {"s": ["supercalifragilisticexpialidociousandmuchlongerthananyroom"]},
            ["supercalifragilisticexpialidociousandmuch_e39a"],
            id="one word too long is cut, with four digits",
        ),
        pytest.param(
            {"s": ["a" * 30 + "_" + "b" * 36 + "_" + "c" * 22]},
            ["a" * 30 + "_5dc7"],
            id="last, whole words from the front and four digits",
        ),
        pytest.param(
            (
                "s/get_all_users_of_a_team_and_their_group_members",
                "s/get_all_users_of_a_team_and_their_group_members@2",
            ),
            ["get_all_users_of_team_and_their_group_members", "get_all_users_of_team_and_group_members_2"],
            id="versions are numbered however long",
        ),
    ],
)
def test_universal_names_fit_in_46_characters(tools: dict[str, list[str]], expected: list[str]) -> None:
    names = list(table(tools, "universal").values())

    assert names == expected
    assert max(map(len, names)) <= ROOM


def test_an_alias_is_the_first_way_to_be_short() -> None:
    name = "create_confluence_page_in_the_space_of"
    key = "atlassian-cloud-for-everyone"

    assert list(table({key: [name]}, "universal", aliases={key: "at"}).values()) == [f"at_{name}"]
    assert list(table({key: [name]}, "universal").values()) == ["atlassian_create_confluence_page_in_space_of"]


def test_bare_names_are_shortened_alike_and_say_so() -> None:
    names = table(
        {"s": [f"{verb}_confluence_page_{LONG}" for verb in ("create", "delete")]}, "universal", "on-conflict"
    )

    assert [name.partition("_")[0] for name in names.values()] == ["create", "delete"]
    assert max(map(len, names.values())) <= ROOM
    assert all(names.explain(id).shortened for id in names)


VERBS = ["create", "delete", "update", "get", "list"]


@given(
    st.lists(st.sampled_from(VERBS), min_size=2, max_size=5, unique=True),
    st.lists(st.from_regex(r"[a-z]{1,9}", fullmatch=True), min_size=8, max_size=16),
    st.sampled_from(["universal", "gemini-cli", "cursor"]),
)
def test_siblings_that_differ_in_the_verb_keep_it_whatever_else_goes(
    verbs: list[str], rest: list[str], client: str
) -> None:
    names = named(table({"srv": ["_".join([verb, *rest]) for verb in verbs]}, client))

    for id, name in names.items():
        verb = id.removeprefix("srv@1/").partition("_")[0]
        assert name.startswith((f"{verb}_", f"srv_{verb}_"))


@given(st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), min_size=1, max_size=16))
def test_no_word_is_chopped_and_no_vowel_stripped(parts: list[str]) -> None:
    (name,) = table({"srv": ["_".join(parts)]}, "universal").values()

    known = {"srv", "tool", *parts}
    left = [word for word in name.split("_") if word not in known]
    assert len(left) <= 1
    assert all(re.fullmatch(r"[0-9a-f]{4}", word) for word in left)


@pytest.mark.parametrize(
    ("text", "room", "keep", "expected"),
    [
        ("list_available_php_versions_for_website_v1", 30, (), "list_php_versions_for_website"),
        ("list_machine_types_for_a_codespace", 28, (), "list_machine_types_codespace"),
        ("create_page_from_markdown_template", 25, (), "create_page_from_template"),
        ("remove_interaction_restrictions_for_organization", 20, (), "remove_restrictions"),
        ("remove_interaction_restrictions_for_organization", 20, ("organization",), None),
        ("get_of_team_members", 8, (), None),
        ("list_secrets_without_values", 24, (), "list_without_values"),
        ("create_review_comment_for_pull_request", 33, (), "create_comment_for_pull_request"),
        ("mail_send_my_weekly_report_now", 15, (), "mail_send_now"),
        ("list_all_x_users", 14, (), "list_all_users"),
        ("get_data", 8, (), "get_data"),
        ("get_the_data", 8, (), "get_data"),
        ("get_all_the_data_of_team", 20, (), "get_all_data_of_team"),
        ("get_all_the_data_of_team", 19, (), "get_data_of_team"),
        ("get_all_of_team", 12, (), "get_all_team"),
        ("get_all_of_team", 11, ("of",), None),
        ("get_all_team", 8, ("all",), None),
        ("one", 2, (), None),
    ],
)
def test_fillers_go_before_other_words_and_the_middle_before_the_edges(
    text: str, room: int, keep: tuple[str, ...], expected: str | None
) -> None:
    left = drop_words(tuple(text.split("_")), room, frozenset(keep))

    assert (None if left is None else "_".join(left)) == expected


@pytest.mark.parametrize(("room", "expected"), [(20, "get_all_data"), (11, "get_all"), (3, "get"), (2, "ge")])
def test_whole_words_from_the_front_are_kept(room: int, expected: str) -> None:
    assert "_".join(prefix_words(("get", "all", "data"), room)) == expected


def test_the_words_that_tell_siblings_apart_are_found() -> None:
    tools = [
        ("get", "all", "users"),
        ("get", "new", "users"),
        ("get", "users"),
        ("drop", "users"),
        ("get", "all", "Users"),
    ]

    assert distinguishing_words(tools) == {
        ("get", "all", "users"): {"all", "users"},
        ("get", "all", "Users"): {"users"},
        ("get", "new", "users"): {"new"},
        ("get", "users"): {"get"},
        ("drop", "users"): {"drop"},
    }


def test_equal_names_are_no_siblings() -> None:
    assert distinguishing_words([("get", "all", "users")] * 2) == {("get", "all", "users"): frozenset()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getWordPressPosts", "get WordPress Posts"),
        ("Node.js_docs", "Nodejs docs"),
        ("getOAuth2Token", "get OAuth2 Token"),
        ("listIPv4Routes", "list IPv4 Routes"),
        ("create3DModel", "create 3D Model"),
        ("PDFToText", "PDF To Text"),
        ("fetchURLV1", "fetch URL V1"),
        ("urlV1", "url V1"),
        ("exportCSV2", "export CSV2"),
        ("GitHubIssues", "GitHub Issues"),
        ("createPage", "create Page"),
        ("getURLs", "get URLs"),
        ("parseHTTPServer", "parse HTTP Server"),
        ("already_snake_2", "already snake 2"),
        ("kebab-case.and more", "kebab case and more"),
        ("X", "X"),
        ("__", ""),
        ("", ""),
        ("Straße", "Strasse"),
        ("天気 取得", "Tian Qi Qu De"),
        ("get2Data", "get2 Data"),
        ("APIs", "APIs"),
        ("listPRsOf", "list PRs Of"),
    ],
)
def test_words_of_names(text: str, expected: str) -> None:
    assert " ".join(split(text)) == expected
    assert words(text) == tuple(expected.lower().split())
    assert snake(text) == "_".join(words(text))


def test_articles_and_a_first_version_say_nothing_unless_they_tell_a_sibling() -> None:
    assert without_fillers(("get", "the", "state", "v1")) == ("get", "state")
    assert without_fillers(("get", "state", "v1"), frozenset({"v1"})) == ("get", "state", "v1")
    assert without_fillers(("a", "state")) == ("a", "state")
    assert without_fillers(("get", "v1")) == ("get", "v1")


def test_a_name_of_very_many_words_keeps_its_ends() -> None:
    words = tuple(f"w{number}" for number in range(200))

    left = drop_words(words, 20)

    assert left is not None
    assert (left[0], left[-1]) == ("w0", "w199")
