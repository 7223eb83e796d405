"""What a model reads after a wrong name: a fact, that nothing was run, and what to do."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.naming.tables import table
from tests.shared import UNHURRIED
from truename import Catalog, Ledger, ToolId, project, resolve
from truename.errors import AmbiguousName, ResolutionError, RetiredName, UnknownTool
from truename.naming import suggest
from truename.naming.suggest import NameSuggester

NAMES = table(
    (
        "data-grout/prism.refract",
        "salesforce/get_leads",
        "salesforce/get_lead",
        "salesforce/create_lead",
        "weather/get_data",
        "database/get_data",
    )
)


def said(text: str) -> str:
    with pytest.raises(ResolutionError) as caught:
        resolve(text, NAMES)
    assert caught.value.text == text
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "dg_prism_refrakt",
            (
                "Tool 'dg_prism_refrakt' does not exist; nothing was run. "
                "Did you mean 'dg_prism_refract'? Call it exactly."
            ),
        ),
        (
            "sf_get_laeds",
            (
                "Tool 'sf_get_laeds' does not exist; nothing was run. "
                "Did you mean 'sf_get_leads', 'sf_get_lead' or 'sf_create_lead'? Call one of these exactly."
            ),
        ),
        (
            "zzz_qqq",
            "Tool 'zzz_qqq' does not exist; nothing was run. List the tools and call one of them exactly.",
        ),
        ("", "Tool '' does not exist; nothing was run. List the tools and call one of them exactly."),
        (
            "get_data",
            "'get_data' is not unique: 'database_get_data' and 'weather_get_data'. Call one of these exactly.",
        ),
        (
            "a%zz",
            (
                "'a%zz' is not a valid tool name: '%' is not followed by two hexadecimal digits; nothing was run. "
                "List the tools and call one of them exactly."
            ),
        ),
        (
            "a%2540b",
            (
                "'a%2540b' is not a valid tool name: it is encoded twice; nothing was run. "
                "List the tools and call one of them exactly."
            ),
        ),
        (
            "a/b/c",
            (
                "'a/b/c' is not a valid tool name: there is more than one '/'; nothing was run. "
                "List the tools and call one of them exactly."
            ),
        ),
        (
            "sf_get_leads\n",
            (
                r"'sf_get_leads\n' is not a valid tool name: U+000A cannot be printed; nothing was run. "
                "List the tools and call one of them exactly."
            ),
        ),
        (
            "sf\u202eget_leads",
            (
                r"'sf\u202eget_leads' is not a valid tool name: U+202E cannot be printed; nothing was run. "
                "List the tools and call one of them exactly."
            ),
        ),
    ],
)
def test_a_wrong_name_is_answered_as_a_person_would(text: str, expected: str) -> None:
    assert said(text) == expected


def test_an_absent_tool_a_retired_and_a_redirected_name_have_texts_of_their_own() -> None:
    ledger = Ledger.memory()
    project(Catalog.of("a/b", "a/c", "a/d"), "openai", ledger=ledger)
    ledger.retire("a_c")
    ledger.retire("a_d", successor="a@1/b@1")
    names = project(Catalog.of("a/c", "a/d"), "openai", ledger=ledger)
    day = ledger.history("a_c")[-1].at[:10]

    with pytest.raises(UnknownTool) as absent:
        resolve("a_b", names)
    with pytest.raises(RetiredName) as retired:
        resolve("a_c", names)
    with pytest.raises(RetiredName) as replaced:
        resolve("a_d", names)

    assert str(absent.value) == (
        "'a_b' is a@1/b@1, which is not available now; nothing was run. "
        "It works again when its server offers it; no other tool has this name."
    )
    assert str(retired.value) == f"'a_c' was retired on {day}; nothing was run. Call {names['a@1/c@1']!r}."
    assert str(replaced.value) == f"'a_d' was retired on {day}; nothing was run. Call 'a@1/b@1'."
    assert (retired.value.id, replaced.value.successor) == (ToolId.parse("a/c"), "a@1/b@1")


@pytest.mark.parametrize("piece", ["a", "_", "%41", "~", "/", "\x00", "\u202e", "天", "a/b@1"])
def test_ten_megabytes_are_refused_at_once_with_a_short_text(piece: str) -> None:
    began = time.process_time()

    with pytest.raises(ResolutionError) as caught:
        resolve(piece * (10_000_000 // len(piece)), NAMES)

    assert time.process_time() - began < UNHURRIED
    assert len(str(caught.value)) < 1_000
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text", ["\ud800", "🌦️", " ", "天気", "a\u0301", "@", "/", "a@/b", "a@0/b", "%F0%9F%8C%A6", "___"]
)
def test_odd_texts_are_unknown_and_nothing_worse(text: str) -> None:
    with pytest.raises(UnknownTool):
        resolve(text, NAMES)


def test_candidates_have_unique_names_even_if_they_are_not_here() -> None:
    ledger = Ledger.memory()
    project(Catalog.of("a/get", "b/get"), "openai", ledger=ledger)

    names = project(Catalog.of("b/get"), "openai", ledger=ledger)

    with pytest.raises(AmbiguousName) as caught:
        resolve("get", names)
    assert caught.value.candidates == ("a@1/get@1", "b_get")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sf_get_leads", ("sf_get_leads", "sf_get_lead")),
        ("sfGetLeads", ("sf_get_leads", "sf_get_lead")),
        ("get-leads", ("sf_get_leads", "sf_get_lead")),
        ("qqqq", ()),
        ("", ()),
        ("_", ()),
    ],
)
def test_the_nearest_names_are_suggested_best_first(text: str, expected: tuple[str, ...]) -> None:
    suggester = NameSuggester(["sf_get_lead", "sf_get_leads", "dg_prism_refract"])

    assert suggester.nearest(text) == expected


def test_at_most_as_many_as_asked_for_are_suggested() -> None:
    suggester = NameSuggester([f"get_data_{number}" for number in range(100)])

    assert len(suggester.nearest("get_data")) == 3
    assert len(suggester.nearest("get_data", 5)) == 5


@pytest.mark.parametrize("names", [10_000, 20_000])
def test_however_large_a_table_is_as_many_names_are_compared(names: int, monkeypatch: pytest.MonkeyPatch) -> None:
    suggester = NameSuggester([f"server{n % 100}_get_thing_{n}_of_team" for n in range(names)])
    suggester.prepare()
    read: list[str] = []
    grams = suggest._grams

    def counted(folded: str) -> set[str]:
        read.append(folded)
        return grams(folded)

    monkeypatch.setattr(suggest, "_grams", counted)

    assert suggester.nearest("server7_get_thing_107_of_taem")[0] == "server7_get_thing_107_of_team"
    assert len(read) < 100


def test_the_index_is_built_at_first_need_or_beforehand() -> None:
    suggester = NameSuggester(["get_data"])
    assert not suggester.is_ready
    assert suggester.nearest("get_dta") == ("get_data",)
    assert suggester.is_ready


@given(st.lists(st.text("abc_D-", min_size=1, max_size=12), max_size=30), st.text("abc_D-", max_size=12))
def test_names_that_are_near_are_of_the_table_and_the_nearest_comes_first(names: list[str], text: str) -> None:
    found = NameSuggester(names).nearest(text, 5)

    assert set(found) <= set(names)
    assert len(found) <= 5
    assert NameSuggester(names).nearest(text, 5)[:3] == NameSuggester(names).nearest(text)


@given(st.sampled_from([f"{verb}_{noun}" for verb in ("create", "delete") for noun in ("page", "issue", "branch")]))
def test_a_name_of_the_table_is_nearest_to_itself(name: str) -> None:
    names = [f"{verb}_{noun}" for verb in ("create", "delete") for noun in ("page", "issue", "branch")]

    assert NameSuggester(names).nearest(name)[0] == name
