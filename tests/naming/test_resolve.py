"""The way back: every step that may answer, and that the first one that answers wins."""

from __future__ import annotations

import pytest

from tests.naming.tables import table
from truename import Catalog, Ledger, NameTable, ToolId, dialects, project, resolve
from truename.errors import AmbiguousName, RetiredName, UnknownTool
from truename.naming.suggest import NameSuggester

IDS = (
    "salesforce@1/get_leads@1",
    "salesforce@1/create_lead@1",
    "salesforce@2/create_lead@1",
    "data-grout@1/prism.refract@1",
    "data-grout@1/warden.canary@1",
)
SEED = table(IDS)
WEATHER = {"Weather": ["get_data", "getForecast"], "Database": ["get_data", "nasa/apod"], "My Server": ["hello tool"]}


def found(text: str, names: NameTable = SEED) -> tuple[str, str]:
    resolution = resolve(text, names)
    assert resolution.trail[-1].startswith(f"{resolution.step}: ")
    return str(resolution.id), resolution.step


@pytest.mark.parametrize(
    ("text", "expected", "step"),
    [
        ("sf_get_leads", "salesforce@1/get_leads@1", "table"),
        ("sf_create_lead_2", "salesforce@2/create_lead@1", "table"),
        ("dg%5Fprism%5Frefract", "data-grout@1/prism.refract@1", "table"),
        ("data-grout@1/prism.refract@1", "data-grout@1/prism.refract@1", "canonical"),
        ("data-grout/prism.refract", "data-grout@1/prism.refract@1", "canonical"),
        ("Data-Grout@V1/PRISM.refract@latest", "data-grout@1/prism.refract@1", "folded"),
        ("salesforce@1~get_leads@1", "salesforce@1/get_leads@1", "canonical"),
        ("salesforce%401%2Fget_leads%401", "salesforce@1/get_leads@1", "canonical"),
        ("salesforce%401~get_leads%401", "salesforce@1/get_leads@1", "canonical"),
        ("salesforce/create_lead", "salesforce@1/create_lead@1", "canonical"),
        ("salesforce@2/create_lead", "salesforce@2/create_lead@1", "canonical"),
        ("salesforce@latest/create_lead", "salesforce@2/create_lead@1", "folded"),
        ("salesforce@latest/get_leads", "salesforce@1/get_leads@1", "folded"),
        ("SF_GET_LEADS", "salesforce@1/get_leads@1", "folded"),
        ("sf-get-leads", "salesforce@1/get_leads@1", "folded"),
        ("sf__get_leads", "salesforce@1/get_leads@1", "folded"),
        ("salesforce_get_leads", "salesforce@1/get_leads@1", "spelling"),
        ("salesforce_create_lead", "salesforce@1/create_lead@1", "spelling"),
        ("salesforce_create_lead_2", "salesforce@2/create_lead@1", "spelling"),
        ("data-grout_prism_refract", "data-grout@1/prism.refract@1", "spelling"),
        ("data-grout_warden_canary", "data-grout@1/warden.canary@1", "spelling"),
        ("data-grout:prism.refract", "data-grout@1/prism.refract@1", "spelling"),
        ("prism.refract", "data-grout@1/prism.refract@1", "spelling"),
        ("prism__refract", "data-grout@1/prism.refract@1", "spelling"),
        ("refract", "data-grout@1/prism.refract@1", "folded"),
        ("get_leads", "salesforce@1/get_leads@1", "spelling"),
        ("mcp_data-grout__prism_refract", "data-grout@1/prism.refract@1", "spelling"),
        ("mcp__truename__sf_get_leads", "salesforce@1/get_leads@1", "spelling"),
        ("mcp_truename_sf_create_lead_2", "salesforce@2/create_lead@1", "spelling"),
        ("mcp--truename--sf_get_leads", "salesforce@1/get_leads@1", "spelling"),
        ("truename-sf_get_leads", "salesforce@1/get_leads@1", "spelling"),
        ("sf_get_leads_mcp_truename", "salesforce@1/get_leads@1", "spelling"),
        ("functions.sf_get_leads", "salesforce@1/get_leads@1", "spelling"),
        ("default_api:sf_get_leads", "salesforce@1/get_leads@1", "spelling"),
    ],
)
def test_every_form_of_the_seeds_leads_to_its_tool(text: str, expected: str, step: str) -> None:
    assert found(text) == (expected, step)


@pytest.mark.parametrize("client", ["claude-code", "gemini-cli", "cline", "roo-code", "librechat", "vscode-copilot"])
def test_a_name_as_any_client_shows_it_is_known_in_every_table(client: str) -> None:
    shown = dialects.get(client).shown("truename", "sf_get_leads")

    assert shown is not None
    assert found(shown)[0] == "salesforce@1/get_leads@1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Weather:get_data", "weather@1/get_data@1"),
        ("Database:get_data", "database@1/get_data@1"),
        ("weather__get_data", "weather@1/get_data@1"),
        ("getForecast", "weather@1/getforecast@1"),
        ("Weather:getForecast", "weather@1/getforecast@1"),
        ("get_forecast", "weather@1/getforecast@1"),
        ("weather_get_forecast", "weather@1/getforecast@1"),
        ("nasa/apod", "database@1/nasa-apod-c9f17ee8@1"),
        ("hello tool", "my-server-c2d9a82f@1/hello-tool-3dbb3b13@1"),
        ("My Server:hello tool", "my-server-c2d9a82f@1/hello-tool-3dbb3b13@1"),
        ("my_server_hello_tool", "my-server-c2d9a82f@1/hello-tool-3dbb3b13@1"),
    ],
)
@pytest.mark.parametrize("style", ["prefixed", "on-conflict", "server-prefix"])
def test_spellings_of_all_styles_are_known_whatever_the_style(text: str, expected: str, style: str) -> None:
    names = table(WEATHER, "openai", style)

    assert found(text, names)[0] == expected


def test_the_table_wins_over_every_theory_of_suffixes() -> None:
    names = table(("salesforce/create_lead", "salesforce/create_lead@2", "salesforce/create_lead_2"))

    assert found("sf_create_lead_2", names) == ("salesforce@1/create_lead_2@1", "table")
    assert found("salesforce_create_lead_2", names) == ("salesforce@1/create_lead_2@1", "spelling")
    assert found("sf_create_lead_3", names) == ("salesforce@1/create_lead@2", "table")
    assert found("salesforce_create_lead_3", names) == ("salesforce@1/create_lead@2", "spelling")


def test_an_encoded_name_is_looked_up_once_more() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.of("a/b"), "openai", ledger=ledger)
    ledger.redirect("old name", "a_b")

    assert found("a%5Fb", names) == ("a@1/b@1", "table")
    assert found("old%20name", names) == ("a@1/b@1", "ledger")


def test_a_name_shown_to_one_client_is_known_in_the_table_of_another() -> None:
    ledger = Ledger.memory()
    catalog = Catalog.from_mcp({"srv": ["createPage"]})
    project(catalog, "openai", ledger=ledger)

    assert found("srv_createPage", project(catalog, "universal", ledger=ledger)) == ("srv@1/createpage@1", "ledger")


@pytest.mark.parametrize(
    ("text", "trail"),
    [
        ("sf_get_leads", ("table: found",)),
        (
            "Salesforce/GET_LEADS",
            (
                "table: no such name",
                "ledger: never shown",
                "canonical: not in exact form (case, 'v' or 'latest')",
                "spelling: no tool has it exactly",
                "folded: read as salesforce@1/get_leads@1",
            ),
        ),
        (
            "salesforce%401~get_leads",
            (
                "table: no such name",
                "ledger: never shown",
                "canonical: it has no '/'",
                "spelling: no tool has it exactly",
                "decode: 'salesforce@1/get_leads'",
                "table: no such name",
                "ledger: never shown",
                "canonical: read as salesforce@1/get_leads@1",
            ),
        ),
        (
            "get_leads",
            (
                "table: no such name",
                "ledger: never shown",
                "canonical: it has no '/'",
                "spelling: another spelling of sf_get_leads",
            ),
        ),
    ],
)
def test_the_trail_tells_the_steps_that_were_tried(text: str, trail: tuple[str, ...]) -> None:
    assert resolve(text, SEED).trail == trail


def test_the_latest_version_is_the_highest_that_is_here_whatever_it_was_before() -> None:
    ledger = Ledger.memory()
    before = project(Catalog.of("a@2/x@1", "a@10/x@1"), "universal", ledger=ledger)
    after = project(Catalog.of("a@2/x@1"), "universal", ledger=ledger)

    assert found("a@latest/x", before)[0] == "a@10/x@1"
    assert found("a@latest/x", after)[0] == "a@2/x@1"
    with pytest.raises(UnknownTool):
        resolve("a@10/x", after)


def test_versions_of_a_tool_are_never_mixed_up() -> None:
    names = table(("a@1/x@2", "a@2/x@1", "a@10/x@3", "b@3/x@1"))

    assert found("a@latest/x@latest", names)[0] == "a@10/x@3"
    assert found("a@2/x@latest", names)[0] == "a@2/x@1"
    assert found("a@latest/x", names)[0] == "a@2/x@1"
    assert found("a@latest/x@2", names)[0] == "a@1/x@2"
    for text in ("a/x", "a@1/x@1", "a@3/x", "a@1/x@3", "b/x", "b@latest/x@2", "c@latest/x@latest"):
        with pytest.raises(UnknownTool):
            resolve(text, names)


def test_a_missing_version_never_falls_back_but_the_one_that_is_there_is_suggested() -> None:
    names = table(("salesforce@2/create_lead@1",))

    with pytest.raises(UnknownTool) as caught:
        resolve("salesforce@1/create_lead@1", names)

    assert caught.value.reason == "unknown"
    assert caught.value.suggestions == ("sf_create_lead",)
    assert caught.value.trail[-1] == "canonical: salesforce@1/create_lead@1 does not exist"


def test_an_unassigned_number_is_not_found() -> None:
    with pytest.raises(UnknownTool):
        resolve("sf_create_lead_7", SEED)
    with pytest.raises(UnknownTool):
        resolve("salesforce_create_lead_7", SEED)


def test_what_several_tools_answer_to_is_ambiguous_with_their_names() -> None:
    names = table(WEATHER)

    with pytest.raises(AmbiguousName) as caught:
        resolve("get_data", names)

    assert caught.value.candidates == ("database_get_data", "weather_get_data")
    assert caught.value.trail[-1] == "spelling: 2 tools have this spelling"


def test_case_twins_are_each_their_own_and_anything_between_is_refused_or_one_of_them() -> None:
    names = table({"a": ["getData", "getdata"]})

    assert {resolve(name, names).id for name in names.values()} == set(names)
    assert resolve("a_getdata", names).id == ToolId.parse("a/getdata")


def test_passthrough_gives_an_unknown_name_back_as_it_is() -> None:
    resolution = resolve("my_own_tool", SEED, on_unknown="passthrough")

    assert (resolution.id, resolution.step) == (None, "passthrough")
    assert resolution.trail[-1] == "passthrough: used unchanged"
    assert resolve("sf_get_leads", SEED, on_unknown="passthrough").step == "table"


def test_passthrough_looks_for_no_nearest_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names = table(WEATHER)
    monkeypatch.delattr(NameSuggester, "nearest")

    assert resolve("my_own_tool", names, on_unknown="passthrough").step == "passthrough"


@pytest.mark.parametrize("text", ["a%", "a%0Ab", "a\nb", "a/b/c", "x" * 5_000])
def test_passthrough_is_not_for_what_is_malformed(text: str) -> None:
    with pytest.raises(UnknownTool, match="is not a valid tool name"):
        resolve(text, SEED, on_unknown="passthrough")


def test_passthrough_is_not_for_what_is_ambiguous() -> None:
    with pytest.raises(AmbiguousName):
        resolve("get_data", table(WEATHER), on_unknown="passthrough")


def test_a_table_is_a_mapping_in_both_directions() -> None:
    id = ToolId.parse("salesforce@2/create_lead@1")

    assert SEED[id] == SEED["salesforce@2/create_lead@1"] == "sf_create_lead_2"
    assert SEED.id_of("sf_create_lead_2") == id
    assert id in SEED
    assert "salesforce@2/create_lead@1" in SEED
    assert list(SEED) == [ToolId.parse(text) for text in IDS]
    for name in ("nothing", "salesforce/nothing"):
        with pytest.raises(KeyError):
            SEED[name]
        with pytest.raises(KeyError):
            SEED.explain(name)
    with pytest.raises(KeyError):
        SEED.id_of("SF_CREATE_LEAD_2")


def test_every_id_on_record_is_absent_also_where_two_have_one_origin() -> None:
    ledger = Ledger.memory()
    ids = ("b@1/a.t@3", "b@1/a.t@10")
    project(Catalog.of(*ids), "openai", ledger=ledger)
    names = project(Catalog.of(), "openai", ledger=ledger)

    for text in (*ids, *(id.replace("1/", "%31/") for id in ids)):
        with pytest.raises(UnknownTool) as caught:
            resolve(text, names)
        assert caught.value.reason == "absent"


@pytest.mark.parametrize(("own", "adapted"), [("list_all", "list-all"), ("a_b", "a b"), ("fs__list", "fs.list")])
@pytest.mark.parametrize("style", ["prefixed", "on-conflict"])
def test_a_tool_s_own_name_is_its_alone_though_another_s_would_be_adapted_to_it(
    style: str, own: str, adapted: str
) -> None:
    names = project(Catalog.from_mcp({"s": [own], "t": [adapted]}), "universal", style=style)

    called = {text: names.catalog[str(resolve(text, names).id)].origin.name for text in (own, adapted)}
    assert called == {own: own, adapted: adapted}


@pytest.mark.parametrize("text", ["mcp__truename__a_x", "mcp_truename_a_x", "truename__a_x", "truename_a_x"])
@pytest.mark.parametrize("ledger", [False, True])
def test_a_client_s_frame_is_nobody_s_who_imitates_it(text: str, ledger: bool) -> None:
    catalog = Catalog.from_mcp({"a": ["x"], "truename": ["a_x"], "mcp__truename_": ["a_x"]})
    names = project(catalog, "openai", ledger=Ledger.memory() if ledger else None)

    assert names["a@1/x@1"] == "a_x"
    assert resolve(text, names).id == ToolId.parse("a/x")


def test_a_frame_around_a_name_that_was_withdrawn_leads_where_the_name_leads() -> None:
    ledger = Ledger.memory()
    names = project(Catalog.from_mcp({"a": ["x", "y"]}), "openai", ledger=ledger)
    ledger.redirect("a_x", "a/y")

    assert resolve("mcp__truename__a_x", names).id == ToolId.parse("a/y")
    ledger.retire("a_x")
    with pytest.raises(RetiredName):
        resolve("mcp__truename__a_x", names)


def test_a_version_that_is_missing_falls_back_to_no_name_that_looks_like_it() -> None:
    names = table({"github": ["search", "search_9"]})

    assert resolve("GitHub/Search@1", names).id == ToolId.parse("github/search")
    with pytest.raises(UnknownTool):
        resolve("GitHub/Search@9", names)


def test_a_version_that_is_missing_falls_back_to_no_tool_whose_own_name_looks_like_it() -> None:
    names = table({"github": ["search"], "x": ["GitHub/Search@9", "GitHub/Seek"]})
    own, seek = (
        next(id for id, one in names.catalog.items() if one.origin.name == f"GitHub/{name}")
        for name in ("Search@9", "Seek")
    )

    assert resolve("GitHub/Search@9", names).id == own
    assert resolve("GITHUB/SEEK", names).id == seek
    with pytest.raises(UnknownTool) as caught:
        resolve("GITHUB/SEARCH@9", names)
    assert caught.value.reason == "unknown"


def test_the_latest_of_what_is_away_is_its_first_version() -> None:
    ledger = Ledger.memory()
    project(Catalog.of("a/x", "a/gone"), "openai", ledger=ledger)
    names = project(Catalog.of("a/x"), "openai", ledger=ledger)
    with pytest.raises(UnknownTool) as caught:
        resolve("A/gone@latest", names)

    assert (caught.value.reason, caught.value.id) == ("absent", ToolId.parse("a/gone"))


@pytest.mark.parametrize(
    ("text", "detail", "trail"),
    [
        ("a" * 4_097, "it is longer than 4,096 characters", ()),
        ("a/b/c", "there is more than one '/'", ("table: no such name", "ledger: never shown")),
    ],
)
def test_what_can_be_no_name_says_why_and_what_was_tried(text: str, detail: str, trail: tuple[str, ...]) -> None:
    with pytest.raises(UnknownTool) as caught:
        resolve(text, table(("a/b",)))

    assert (caught.value.text, caught.value.reason, caught.value.detail) == (text, "malformed", detail)
    assert caught.value.trail[: len(trail)] == trail
    assert (caught.value.trail == ()) is (trail == ())
