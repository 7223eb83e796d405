"""Every rung of the ladder: which name a tool gets, and which when somebody has it already."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

import pytest

from tests.naming.tables import named, table
from truename import Catalog, Style, project
from truename.errors import DuplicateTool, NoLegalName
from truename.naming import STYLES

Tools = tuple[str, ...] | Mapping[str, list[str]]


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        pytest.param(
            (
                "salesforce@1/get_leads@1",
                "data-grout@1/prism.refract@1",
                "data-grout@1/discovery.discover@1",
                "data-grout@1/warden.ensemble@1",
                "quickbooks@1/find_recent_invoices@1",
            ),
            [
                "sf_get_leads",
                "dg_prism_refract",
                "dg_discovery_discover",
                "dg_warden_ensemble",
                "qb_find_recent_invoices",
            ],
            id="alias, suite and tool",
        ),
        pytest.param(
            ("salesforce@1/create_lead@1", "salesforce@2/create_lead@1"),
            ["sf_create_lead", "sf_create_lead_2"],
            id="a further version is numbered",
        ),
        pytest.param(
            ("salesforce@10/create_lead@1", "salesforce@1/create_lead@1", "salesforce@2/create_lead@1"),
            ["sf_create_lead_3", "sf_create_lead", "sf_create_lead_2"],
            id="a number is not a version",
        ),
        pytest.param(("a/x@1", "a/x@2", "a/x@10"), ["a_x", "a_x_2", "a_x_3"], id="tool versions are numbered"),
        pytest.param(("a@2/x@3",), ["a_x"], id="a lone version needs no number"),
        pytest.param(
            ("salesforce/create_lead", "salesforce/create_lead@2", "salesforce/create_lead_2"),
            ["sf_create_lead", "sf_create_lead_3", "sf_create_lead_2"],
            id="an own name comes before a number",
        ),
        pytest.param(
            ("sf/get_leads", "salesforce/get_leads"),
            ["sf_get_leads", "salesforce_get_leads"],
            id="an alias that is an integration is nobody else's",
        ),
        pytest.param({"github": ["github_search"]}, ["github_search"], id="stutter is removed"),
        pytest.param({"github": ["github"]}, ["github"], id="a tool called like its server"),
        pytest.param(
            {"github": ["github_search", "search"]},
            ["github_github_search", "github_search"],
            id="stutter stays if the shorter form is claimed",
        ),
        pytest.param({"git": ["github_search"]}, ["git_github_search"], id="half a word is no stutter"),
        pytest.param(
            {"a": ["b_c"], "a_b": ["c"]}, ["a_b_c", "a_b_c_fcfa"], id="strangers are told apart by four digits"
        ),
        pytest.param({"a.b/c": ["d.e", "f g"]}, ["c_d_e", "c_f_g"], id="illegal characters are joints"),
    ],
)
def test_prefixed_names(tools: Tools, expected: list[str]) -> None:
    assert list(table(tools).values()) == expected


@pytest.mark.parametrize(
    ("aliases", "expected"),
    [
        (None, "sf_x"),
        ({}, "salesforce_x"),
        ({"salesforce": "crm"}, "crm_x"),
        ({"salesforce": "a", "other": "a"}, "salesforce_x"),
    ],
)
def test_aliases_are_the_caller_s(aliases: dict[str, str] | None, expected: str) -> None:
    assert list(table(("salesforce/x",), aliases=aliases).values()) == [expected]


WEATHER = {"Weather": ["get_data", "get_forecast"], "Database": ["get_data", "query_table"]}


@pytest.mark.parametrize(
    ("client", "tools", "expected"),
    [
        ("native", WEATHER, ["Weather:get_data", "get_forecast", "Database:get_data", "query_table"]),
        ("google-gemini", WEATHER, ["Weather:get_data", "get_forecast", "Database:get_data", "query_table"]),
        ("openai", WEATHER, ["weather_get_data", "get_forecast", "database_get_data", "query_table"]),
        ("universal", WEATHER, ["weather_get_data", "get_forecast", "database_get_data", "query_table"]),
        ("openai", {"a": ["get-data"], "b": ["get_data"]}, ["a_get-data", "b_get_data"]),
        ("openai", {"a": ["fs.list"], "b": ["x"]}, ["fs_list", "x"]),
        ("native", {"a": ["fs.list"], "b": ["fs_list"]}, ["a:fs.list", "b:fs_list"]),
        ("openai", ("a/x", "a/x@2", "a/x@3"), ["x", "x_2", "x_3"]),
        ("native", {"a": ["b:c"], "a:b": ["c"], "d": ["b:c", "c"]}, None),
        ("universal", {"a": ["class"]}, ["a_class"]),
        ("native", {"a": ["x@/y"]}, ["x@_y"]),
        ("native", {"a": ["b@1/c@1"], "b": ["c"]}, ["b@1_c@1", "c"]),
        ("google-gemini", {"a": ["3d"]}, ["tool_3d"]),
    ],
)
def test_on_conflict_names_are_bare_until_servers_clash(client: str, tools: Tools, expected: list[str] | None) -> None:
    names = list(table(tools, client, "on-conflict").values())

    assert expected is None or names == expected
    assert len(set(names)) == len(names)


def test_a_conflict_is_logged_with_its_servers(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "truename.naming"):
        table(WEATHER, style="on-conflict")

    assert [record.message for record in caplog.records] == [
        "name conflict: 'get_data' is a tool of 'Weather', 'Database'"
    ]


@pytest.mark.parametrize(
    ("client", "style", "tools", "expected"),
    [
        ("openai", "server-prefix", {"weather": ["get_data"]}, ["mcp_weather__get_data"]),
        ("openai", "server-prefix", {"My Server": ["x.y"]}, ["mcp_My_Server__x_y"]),
        ("openai", "dotted-double", {"a": ["fs.list", "net.dns.flush", "x"]}, ["fs__list", "net__dns__flush", "x"]),
        ("openai", "dotted-double", {"a": ["fs.list", "fs__list"]}, ["fs__list_fdfc", "fs__list"]),
        ("openai", "dotted-double", ("a/fs.list", "a/fs.list@2"), ["fs__list", "fs__list_2"]),
        ("google-gemini", "dotted-double", ("a/3d", "a/3d@2", "a/3d@3"), ["tool_3d", "tool_3d_2", "tool_3d_3"]),
        ("google-gemini", "on-conflict", ("a/3d", "a/3d@2", "a/3d@3"), ["tool_3d", "tool_3d_2", "tool_3d_3"]),
        ("openai-agents-python-prefix", "dotted-double", {"a": ["__get__"]}, ["get"]),
        ("native", "canonical", ("a/b", "data-grout@2/p.r@3"), ["a@1/b@1", "data-grout@2/p.r@3"]),
        ("native", "canonical", {"天気": ["取得"]}, ["x-bc79d84d@1/x-03ecfee0@1"]),
        ("openai", "declared", {"a": ["get_data", "GetMore"], "b": ["other-x"]}, ["get_data", "GetMore", "other-x"]),
        ("native", "declared", {"a": ["天気 取得", "fs.list"]}, ["天気 取得", "fs.list"]),
    ],
)
def test_other_styles(client: str, style: str, tools: Tools, expected: list[str]) -> None:
    assert list(table(tools, client, style).values()) == expected


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ({"srv": ["createPage"]}, "srv_create_page"),
        ({"srv": ["getURLs"]}, "srv_get_urls"),
        ({"srv": ["HTTPServer2"]}, "srv_http_server2"),
        ({"srv": ["list-issues"]}, "srv_list_issues"),
        ({"srv": ["Steam Games Price Checker"]}, "srv_steam_games_price_checker"),
        ({"srv": ["__get_instructions__"]}, "srv_get_instructions"),
        ({"天气": ["取得"]}, "tian_qi_qu_de"),
        ({"x": ["🌦️"]}, "x_white_sun_rain_cloud"),
        ({"x": ["naïve café"]}, "x_naive_cafe"),
        ({"x": ["___"]}, "x_tool_3aa9"),
        ({"21st": ["21st_magic"]}, "tool_21st_magic"),
        ({"21st/git": ["status"]}, "git_status"),
        ({"Weather Test Server": ["getData"]}, "weather_test_get_data"),
        ({"@acme/mcp-server-git": ["status"]}, "git_status"),
    ],
)
def test_universal_names_are_words_joined_by_single_underscores(tools: Tools, expected: str) -> None:
    assert list(table(tools, "universal").values()) == [expected]


@pytest.mark.parametrize("tools", [{"truename": ["data"]}, {"truename": ["truename_x", "truename"], "a": ["b"]}])
@pytest.mark.parametrize("style", ["prefixed", "on-conflict"])
@pytest.mark.parametrize("client", ["universal", "openai-agents-js", "zed", "crewai"])
def test_a_server_called_like_the_gateway_gets_names_too(tools: dict[str, list[str]], style: str, client: str) -> None:
    names = table(tools, client, style)

    assert len(names) == sum(map(len, tools.values()))
    assert not [name for name in names.values() if names.dialect.check(name)]


def errors(tools: Tools, client: str, style: str) -> list[Exception]:
    with pytest.raises(ExceptionGroup) as caught:
        table(tools, client, style)
    return list(caught.value.exceptions)


def test_declared_names_that_clash_or_are_illegal_are_all_told() -> None:
    found = errors({"a": ["x"], "b": ["x", "fs.list"]}, "openai", "declared")

    assert [type(error) for error in found] == [DuplicateTool, NoLegalName]
    assert str(found[0]) == (
        "a@1/x@1 and b@1/x@1 both have the name 'x'. Rename one, or choose a style that resolves clashes."
    )
    assert str(found[1]) == (
        "b@1/fs.list@1 has no legal name for openai in style declared ('.' at 2 is not in [a-zA-Z0-9_-]). "
        "Use a style that is legal there: prefixed, on-conflict, server-prefix, dotted-double."
    )


def test_declared_names_that_differ_only_after_folding_clash() -> None:
    (error,) = errors({"a": ["get-x"], "b": ["Get_x"]}, "native", "declared")

    assert isinstance(error, DuplicateTool)
    assert (error.existing, error.duplicate) == ("a@1/get-x@1", "b@1/get_x@1")


def test_a_canonical_name_is_illegal_for_most_clients_and_the_styles_that_would_do_are_told() -> None:
    found = errors(("a/b",), "openai", "canonical")

    assert isinstance(found[0], NoLegalName)
    assert found[0].styles == ("prefixed", "on-conflict", "server-prefix", "declared", "dotted-double")
    assert found[0].style == "canonical"


def test_nothing_is_recorded_when_names_can_not_be_made() -> None:
    from truename import Ledger  # noqa: PLC0415

    ledger = Ledger.memory()

    with pytest.raises(ExceptionGroup):
        project(Catalog.from_mcp({"a": ["x", "fs.list"]}), "openai", style="declared", ledger=ledger)

    assert ledger.settings is None
    assert ledger.history("x") == ()
    assert dict(ledger.bindings()) == {}


@pytest.mark.parametrize(
    ("style", "client", "expected"),
    [
        (Style("colons", separator=":"), "native", ["a:x", "b:x"]),
        (Style("colons", separator=":"), "openai", ["a_x", "b_x"]),
        (Style("bare", prefix="never"), "openai", ["x", "x_0a0c"]),
        (Style("loud", lead="tools-", separator="--"), "openai", ["tools-a--x", "tools-b--x"]),
        (Style("strict-prefixed", on_clash="error"), "openai", ["a_x", "b_x"]),
        (Style("double", prefix="on-conflict", separator="__"), "openai", ["a__x", "b__x"]),
    ],
)
def test_a_style_of_one_s_own(style: Style, client: str, expected: list[str]) -> None:
    names = table({"a": ["x"], "b": ["x"]}, client, style)

    assert [name[:-4] if name.startswith("x_") else name for name in names.values()] == [
        name[:-4] if name.startswith("x_") else name for name in expected
    ]


def test_a_verbatim_style_that_resolves_clashes_tells_them_apart() -> None:
    style = Style("verbatim", prefix="on-conflict", spelling="verbatim")

    names = table({"a": ["x", "y"], "b": ["x"]}, "openai", style)

    assert named(names)["a@1/y@1"] == "y"
    assert len(set(names.values())) == 3


def test_the_presets_are_these() -> None:
    assert list(STYLES) == ["prefixed", "on-conflict", "server-prefix", "canonical", "declared", "dotted-double"]
    assert all(style.name == name for name, style in STYLES.items())


def test_a_style_that_does_not_exist_is_told_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"'nice' is not a style. Use one of prefixed, on-conflict, .*, or pass a St"):
        table(("a/b",), style="nice")


def test_an_empty_catalogue_has_an_empty_table() -> None:
    names = table(())

    assert len(names) == 0
    assert repr(names) == "<NameTable of 0 tools for openai, style prefixed>"


@pytest.mark.parametrize(("style", "length"), [("prefixed", 5), ("declared", 1)])
def test_a_gateway_key_that_leaves_no_room_is_told_of_each_tool(style: str, length: int) -> None:
    key = "x" * 80
    with pytest.raises(ExceptionGroup) as caught:
        project(Catalog.of("a/b", "a/b@2"), "cursor", style=style, server_name=key)

    text = f"it has {length} characters, 0 are allowed for the server key {key!r}"
    assert [
        (str(error.id), error.dialect, error.style, [reason.text for reason in error.reasons])
        for error in caught.value.exceptions
        if isinstance(error, NoLegalName)
    ] == [(id, "cursor", style, [text]) for id in ("a@1/b@1", "a@1/b@2")]
    assert caught.value.message == "2 tools cannot be named"


def test_a_tool_that_is_called_like_the_gateway_is_told_apart_behind_a_word() -> None:
    names = project(Catalog.from_mcp({"x" * 60: ["truename"], "truename": ["truename"]}), "universal")

    assert sorted(re.sub("[0-9a-f]{4}", "####", name) for name in names.values()) == ["tool_truename_####", "truename"]


def test_a_number_that_is_the_gateways_own_key_tells_no_version_apart() -> None:
    names = project(Catalog.of("b/mcp", "b/mcp@2"), "universal", style="on-conflict", server_name="2")

    # LibreChat shows a tool `x` of this gateway as `x_mcp_2`.
    assert [re.sub("[0-9a-f]{4}", "####", name) for name in names.values()] == ["mcp", "mcp_####"]
