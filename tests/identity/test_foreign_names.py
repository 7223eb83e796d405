"""From server keys and upstream tool names to components of an id."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import data
from truename import ToolId
from truename.identity import (
    component,
    default_agent_tool_name,
    default_handoff_name,
    digest_of,
    dotted_component,
    fold,
    is_kebab,
    with_digest,
)
from truename.identity.components import MAX_COMPONENT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data-grout", "data-grout"),
        ("Weather", "weather"),
        ("GET_LEADS", "get_leads"),
        ("21st_magic", "21st_magic"),
        ("__get_instructions__", "__get_instructions__"),
    ],
)
def test_ascii_capitals_are_folded_and_nothing_is_lost(text: str, expected: str) -> None:
    assert (None, expected, False) == component(text)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("Hello Tool", "hello-tool"),
        ("My Server.io/x", "my-server-io-x"),
        ("a  //  b", "a-b"),
        (" edges! ", "edges"),
        ("chat-with-${AI_CHAT_NAME_CLEAN}", "chat-with--ai_chat_name_clean"),
        ("長亭 IP 情報", "ip"),
        ("天気", "x"),
        ("___", "x"),
        ("-_-", "x"),
        ("🌦️", "x"),
        ("\u212aey", "ey"),
        ("a" * (MAX_COMPONENT + 1), "a" * (MAX_COMPONENT - 9)),
    ],
)
def test_what_is_lost_is_told_by_a_digest_of_the_verbatim_text(text: str, plain: str) -> None:
    suite, name, lossy = component(text)

    assert (None, f"{plain}-{digest_of(text)}", True) == (suite, name, lossy)
    assert len(name) <= MAX_COMPONENT


@pytest.mark.parametrize(
    ("text", "suite", "name"),
    [
        ("get_leads", None, "get_leads"),
        ("prism.refract", "prism", "refract"),
        ("Prism.Light.REFRACT", "prism.light", "refract"),
        ("fs.list", "fs", "list"),
    ],
)
def test_dots_make_a_suite_if_every_part_is_a_name(text: str, suite: str | None, name: str) -> None:
    assert (suite, name, False) == dotted_component(text)


@pytest.mark.parametrize("text", ["a..b", ".a", "a.", "a.b c", "a.___", "天.気", "a." + "b" * MAX_COMPONENT])
def test_dots_between_what_are_no_names_are_lost_as_a_whole(text: str) -> None:
    suite, name, lossy = dotted_component(text)

    assert (suite, lossy) == (None, True)
    assert name.endswith(f"-{digest_of(text)}")


@given(st.text(min_size=1, max_size=300))
def test_whatever_the_text_the_component_is_legal_in_an_id(text: str) -> None:
    suite, name, _ = dotted_component(text)

    id = ToolId(component(text).name, 1, suite, name, 1)

    assert id == ToolId.parse(str(id))


@given(st.text(min_size=1, max_size=30), st.text(min_size=1, max_size=30))
def test_two_texts_become_one_component_only_if_they_differ_in_ascii_case(one: str, other: str) -> None:
    if component(one).name == component(other).name:
        assert one.lower() == other.lower()


def test_the_odd_names_of_real_servers_become_ids_of_their_own() -> None:
    rows = json.loads(data("corpus", "edge-names.json").read_text("utf-8"))
    origins = {(row["server"], row["tool"]) for row in rows}

    ids = {ToolId(component(s).name, 1, dotted_component(t).suite, dotted_component(t).name, 1) for s, t in origins}

    assert len(origins) > 50
    assert len(origins) == len(ids)


def test_a_digest_takes_a_lone_surrogate() -> None:
    assert len(digest_of("\ud800")) == 8
    assert digest_of("\ud800") != digest_of("\ud801")


def test_a_name_with_a_digest_keeps_within_its_length_and_has_no_double_hyphen() -> None:
    name = with_digest("a" * (MAX_COMPONENT - 10) + "-bbbbbbbbbb", "verbatim")

    assert f"{'a' * (MAX_COMPONENT - 10)}-{digest_of('verbatim')}" == name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("get_lead", "get_lead"),
        ("Get-Lead", "get_lead"),
        ("get__lead_", "get_lead"),
        ("fs.list", "fs_list"),
        ("Weather:get_data", "weather_get_data"),
        ("a@1/b@1", "a_1_b_1"),
        ("天気", "天気"),
        ("\uff21\uff22", "ab"),
        ("Straße", "strasse"),
        ("___", "___"),
        ("", ""),
    ],
)
def test_names_that_a_client_could_take_for_one_have_one_fold(name: str, expected: str) -> None:
    assert expected == fold(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("data-grout", True),
        ("salesforce", True),
        ("a1-2b", True),
        ("data_grout", False),
        ("Data-Grout", False),
        ("-a", False),
        ("a--b", False),
        ("", False),
        ("a\n", False),
    ],
)
def test_integrations_are_written_in_kebab_case(text: str, expected: bool) -> None:
    assert is_kebab(text) is expected


@pytest.mark.parametrize(
    ("agent", "tool", "handoff"),
    [
        ("Billing Agent", "billing_agent", "transfer_to_billing_agent"),
        ("FAQ/v2", "faq_v2", "transfer_to_faq_v2"),
        ("天気", "__", "transfer_to___"),
    ],
)
def test_agents_are_tools_under_names_made_in_one_place(agent: str, tool: str, handoff: str) -> None:
    assert default_agent_tool_name(agent) == tool
    assert default_handoff_name(agent) == handoff


@given(st.text(max_size=50))
def test_folding_twice_changes_nothing(name: str) -> None:
    assert fold(name) == fold(fold(name))
