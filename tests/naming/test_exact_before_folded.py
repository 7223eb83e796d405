"""What is exact answers before what is only folded: two tools whose names differ by case or signs never swap calls."""

from __future__ import annotations

import pytest

from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.errors import AmbiguousName, ResolutionError, UnknownTool

MEMORIES = ("no ledger", "a new ledger", "a second projection")
CYRILLIC_A = "\u0430"


def projected(
    catalog: Catalog, memory: str = "no ledger", client: str = "universal", style: str = "on-conflict"
) -> NameTable:
    ledger = None if memory == "no ledger" else Ledger.memory()
    for _ in range(2 if memory == "a second projection" else 1):
        names = project(catalog, client, style=style, ledger=ledger)
    return names


def origin(text: str, names: NameTable) -> tuple[str, str]:
    """Return whose tool a text runs: the server's label and its own name."""
    id = resolve(text, names).id
    assert id is not None
    found = names.catalog[id].origin
    return found.server, found.name


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("style", ["on-conflict", "prefixed", "server-prefix", "dotted-double"])
@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ({"Weather": ["get_data"], "X": ["Weather_get_data"]}, ("Weather", "get_data")),
        ({"git": ["hub_search"], "git_hub": ["search"]}, ("git_hub", "search")),
        ({"git": ["hub_search"], "git_hub": ["search"]}, ("git", "hub_search")),
        ({"Weather": ["t"], "weather": ["t"]}, ("Weather", "t")),
        ({"Weather": ["t"], "weather": ["t"]}, ("weather", "t")),
        ({"get": ["a", "a "]}, ("get", "a ")),
        ({"a b": ["get get", "a b_get get"]}, ("a b", "get get")),
    ],
)
def test_a_server_s_label_and_name_mean_its_own_tool(
    servers: dict[str, list[str]], expected: tuple[str, str], style: str, memory: str
) -> None:
    names = projected(Catalog.from_mcp(servers), memory, "openai", style)

    assert origin(":".join(expected), names) == expected


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("style", ["on-conflict", "prefixed"])
@pytest.mark.parametrize("client", ["universal", "openai", "native"])
def test_a_server_s_own_names_mean_their_own_tools(client: str, style: str, memory: str) -> None:
    own = ["deleteAll", "deleteall", "net.dns_flush", "net_dns_flush", "a%20b", "a~b", "100%", "a b"]
    names = projected(Catalog.from_mcp({"s": own}), memory, client, style)

    assert {name: origin(name, names)[1] for name in own} == {name: name for name in own}
    assert {name: origin(f"s:{name}", names)[1] for name in own} == {name: name for name in own}


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("text", ["DELETEALL", "delete-all", "Net.DNS-Flush", "s:deleteALL"])
def test_a_fold_that_two_tools_share_is_ambiguous_even_if_one_alone_is_shown_under_it(text: str, memory: str) -> None:
    own = ["deleteAll", "deleteall", "delete_all", "delete-ALL", "net.dns_flush", "net_dns_flush"]
    names = projected(Catalog.from_mcp({"s": own}), memory)

    with pytest.raises(AmbiguousName):
        resolve(text, names)


@pytest.mark.parametrize("memory", MEMORIES)
def test_one_exact_spelling_of_two_tools_is_ambiguous(memory: str) -> None:
    names = projected(Catalog.from_mcp({"x": ["a:t"], "a": ["t"]}), memory)

    with pytest.raises(AmbiguousName):
        resolve("a:t", names)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("style", ["on-conflict", "prefixed"])
def test_a_server_s_own_canonical_names_mean_its_tools_unless_they_are_another_s_id(style: str, memory: str) -> None:
    own = ["salesforce@1/get_leads@1", "data-grout/prism.refract", "weather@1/t@1"]
    names = projected(Catalog.from_mcp({"seed": own, "weather": ["t"]}), memory, style=style)

    assert [origin(name, names) for name in own] == [("seed", own[0]), ("seed", own[1]), ("weather", "t")]
    assert origin("seed:weather@1/t@1", names) == ("seed", "weather@1/t@1")


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(
    ("text", "id"),
    [
        ("salesforce_create_lead", "salesforce@1/create_lead@1"),
        ("salesforce_create_lead_2", "salesforce@2/create_lead@1"),
        ("sf_create_lead", "salesforce@1/create_lead@1"),
        ("sf_create_lead_2", "salesforce@2/create_lead@1"),
    ],
)
def test_derived_spellings_keep_the_number_of_the_name_that_is_held(text: str, id: str, memory: str) -> None:
    catalog = Catalog.of("salesforce@1/create_lead@1", "salesforce@2/create_lead@1")

    assert str(resolve(text, projected(catalog, memory, "openai", "prefixed")).id) == id


VERSIONS = ("salesforce@1/t@1", "salesforce@2/t@1", "salesforce@3/t@1")
OF_THE_FIRST = ("sf_t", "salesforce_t", "t", "salesforce:t", "mcp_salesforce__t", "salesforce/t", "salesforce@1/t@1")


@pytest.mark.parametrize("style", ["prefixed", "on-conflict", "server-prefix"])
def test_what_meant_a_version_that_left_never_means_another(style: str) -> None:
    ledger = Ledger.memory()
    texts = [
        *OF_THE_FIRST,
        *(text.upper() for text in OF_THE_FIRST),
        *(text.replace("_", "-") for text in OF_THE_FIRST),
    ]
    before = {text: meaning(text, shown(ledger, style, *VERSIONS[:2])) for text in texts}
    for left in (VERSIONS[1:2], VERSIONS[1:], VERSIONS[2:]):
        after = {text: meaning(text, shown(ledger, style, *left)) for text in texts}

        assert {text: id for text, id in after.items() if id not in {before[text], ""}} == {}

    back = {text: meaning(text, shown(ledger, style, *VERSIONS[:2])) for text in texts}
    assert back == before


@pytest.mark.parametrize("text", ["create_lead", "salesforce:create_lead", "SALESFORCE:Create_Lead"])
def test_what_meant_a_version_that_lost_its_name_to_a_redirect_never_means_another(text: str) -> None:
    ledger = Ledger.memory()
    third, second = "salesforce@3/create_lead@1", "salesforce@2/create_lead@1"
    names = project(Catalog.of(third), "universal", ledger=ledger)
    assert str(resolve(text, names).id) == third
    ledger.redirect(names[third], "crm/create_lead")

    names = project(Catalog.of(second, third), "universal", ledger=ledger)

    assert str(resolve(text, names).id) == third


def test_a_version_that_joins_takes_the_next_number_after_those_that_left() -> None:
    ledger = Ledger.memory()
    shown(ledger, "prefixed", *VERSIONS[:2])

    names = shown(ledger, "prefixed", *VERSIONS[1:])

    assert {str(id): name for id, name in names.items()} == {VERSIONS[1]: "sf_t_2", VERSIONS[2]: "sf_t_3"}
    assert meaning("salesforce_t_3", names) == VERSIONS[2]


def shown(ledger: Ledger, style: str, *ids: str) -> NameTable:
    return project(Catalog.of(*ids), "openai", style=style, ledger=ledger)


def meaning(text: str, names: NameTable) -> str:
    try:
        return str(resolve(text, names).id)
    except ResolutionError:
        return ""


def test_what_meant_two_tools_stays_an_error_when_one_of_them_leaves() -> None:
    ledger = Ledger.memory()
    both = Catalog.from_mcp({"a": ["get_data"], "b": ["get_data"]})
    with pytest.raises(AmbiguousName):
        resolve("get_data", project(both, "universal", ledger=ledger))

    names = project(both.only("a"), "universal", ledger=ledger)

    with pytest.raises((AmbiguousName, UnknownTool)):
        resolve("get_data", names)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("style", ["on-conflict", "prefixed"])
@pytest.mark.parametrize("is_other_first", [True, False])
@pytest.mark.parametrize(
    ("honest", "other"),
    [
        ("get_data", f"get_d{CYRILLIC_A}ta"),
        ("cafe", "café"),
        ("a_b", "a b"),
        ("get", "ｇｅｔ"),
        ("list_all", "list-all"),
    ],
)
def test_who_is_legal_verbatim_takes_the_plain_name(
    honest: str, other: str, style: str, memory: str, is_other_first: bool
) -> None:
    own = [other, honest] if is_other_first else [honest, other]
    names = projected(Catalog.from_mcp({"s": own}), memory, "universal", style)

    plain = honest if style == "on-conflict" else f"s_{honest}"
    assert names[ToolId.parse(f"s/{honest}")] == plain
    assert origin(plain, names) == origin(f"s:{honest}", names) == ("s", honest)
    assert origin(other, names) == origin(f"s:{other}", names) == ("s", other)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize(
    ("servers", "plain"),
    [
        ({"a": [f"get_d{CYRILLIC_A}ta"], "b": ["get_data"]}, "get_data"),
        ({"a": ["café"], "b": ["cafe"]}, "cafe"),
        ({"a": ["a b"], "b": ["a_b"]}, "a_b"),
    ],
)
def test_a_look_alike_of_another_server_never_takes_the_plain_name(
    servers: dict[str, list[str]], plain: str, memory: str
) -> None:
    names = projected(Catalog.from_mcp(servers), memory, "universal", "on-conflict")

    for text in (plain, f"b_{plain}", f"b:{plain}"):
        assert origin(text, names) == ("b", plain)
    assert names[ToolId.parse(f"b/{plain}")] == plain


@pytest.mark.parametrize("own", ["get", "Get"])
def test_a_clashing_name_is_nobody_s_also_where_a_server_is_called_like_its_tool(own: str) -> None:
    catalog = Catalog.from_mcp({"get": [own], "git": ["get"], "hub": ["get"]})

    names = project(catalog, "universal", style="on-conflict")

    assert sorted(names.values()) == ["get_get", "git_get", "hub_get"]
    with pytest.raises(AmbiguousName):
        resolve("get", names)


def test_spellings_that_were_prepared_are_those_of_a_first_search() -> None:
    tools = {"Weather": ["get_data", "getData"], "X": ["Weather_get_data"]}
    prepared, fresh = (project(Catalog.from_mcp(tools), "universal") for _ in range(2))
    prepared.spellings.prepare()

    for text in ("Weather:get_data", "WEATHER-GET-DATA", "getData", "weather@2/get_data@1", "nothing"):
        assert meaning(text, prepared) == meaning(text, fresh)


def test_an_encoded_name_is_no_spelling_of_a_tool_that_no_style_would_call_so() -> None:
    names = project(Catalog.from_mcp({"get": ["a", "get.%61"]}), "claude-code", style="server-prefix")

    assert meaning("get_%61", names) == "get@1/a@1"
    assert meaning("get.%61", names) != "get@1/a@1"
