"""A server may call its tool like the id of another; no spelling of that id runs the tool, whoever asks."""

from __future__ import annotations

import pytest

from tests.laws.oracle import CLIENT_FORMS
from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.errors import AmbiguousName, ResolutionError, RetiredName, UnknownTool
from truename.ledger import SeenLedger

# Each is, in some form, the id of the tool `list` of the server `mcp`.
IDS = ["mcp@1/list@1", "mcp@1/list", "mcp/list@1", "MCP@1/list@1", "mcp@v1/list", "mcp%401/list%401", "mcp@1~list@1"]
LATEST = ["mcp@latest/list", "mcp@latest/LIST@latest"]
FORMS = ["{}", *CLIENT_FORMS, "functions.{}", "default_api:{}"]


def tables(name: str, ledger: Ledger | None, *, lists: bool = True) -> tuple[NameTable, NameTable]:
    """Return the table in which `git` calls a tool so, and what somebody sees to whom the server `mcp` is hidden."""
    servers = {"mcp": ["list", "other"] if lists else ["other"], "git": [name, "data"]}
    if ledger is None:
        catalog = Catalog.from_mcp(servers)
    else:
        catalog = Catalog.from_mcp(servers, bound=ledger.bindings(), owners=ledger.origins())
    whole = project(catalog, "openai", ledger=ledger)
    shown = [id for id in whole if id.integration != "mcp"]
    return whole, whole.among(shown, None if ledger is None else SeenLedger(ledger, lambda id: id.integration != "mcp"))


def meant(text: str, table: NameTable) -> set[str]:
    """Return the name of the tool that a text means, or of the candidates if it is ambiguous."""
    try:
        id = resolve(text, table).id
    except AmbiguousName as error:
        return set(error.candidates)
    assert id is not None
    return {table[id]}


@pytest.mark.parametrize("name", [*IDS, *LATEST])
@pytest.mark.parametrize("has_ledger", [False, True])
def test_the_id_of_a_hidden_tool_runs_no_tool_that_is_called_so(name: str, has_ledger: bool) -> None:
    _, part = tables(name, Ledger.memory() if has_ledger else None)

    for form in FORMS:
        with pytest.raises(UnknownTool) as caught:
            resolve(form.format(name), part)

        assert caught.value.reason == "unknown"
        assert "mcp_list" not in caught.value.suggestions


@pytest.mark.parametrize("name", [*IDS, *LATEST, "mcp/list"])
def test_the_id_of_a_visible_tool_runs_that_tool_or_is_ambiguous(name: str) -> None:
    whole, _ = tables(name, Ledger.memory())
    (called_so,) = (wire for id, wire in whole.items() if whole.catalog[id].origin.name == name)

    for form in FORMS:
        assert meant(form.format(name), whole) in ({"mcp_list"}, {"mcp_list", called_so})


@pytest.mark.parametrize("name", ["mcp/list", "mcp@2/list@1", "mcp@1/list@7"])
def test_a_clients_form_of_an_id_is_unknown_if_the_tool_is_hidden_or_has_no_such_version(name: str) -> None:
    whole, part = tables(name, Ledger.memory())

    for form in CLIENT_FORMS:
        for table in (whole, part) if "@" in name else (part,):
            with pytest.raises(UnknownTool):
                resolve(form.format(name), table)


@pytest.mark.parametrize("text", ["functions.MCP@1/Li-St@1", "functions.mcp@V1/LIST", "functions.MCP@2/list@1"])
@pytest.mark.parametrize("name", ["mcp@1/list@1", "mcp@v1/list", "mcp@2/list@1", "mcp@1/li_st@1"])
def test_an_id_in_other_case_behind_a_prefix_runs_no_tool_that_is_called_so(text: str, name: str) -> None:
    for table in tables(name, Ledger.memory()):
        with pytest.raises(ResolutionError):
            resolve(text, table)


@pytest.mark.parametrize("name", IDS)
def test_the_id_of_an_absent_tool_is_told_only_to_those_who_may_see_it(name: str) -> None:
    ledger = Ledger.memory()
    tables("data2", ledger)
    whole, part = tables(name, ledger, lists=False)

    for form in FORMS:
        with pytest.raises(ResolutionError):
            resolve(form.format(name), whole)
        with pytest.raises(UnknownTool) as caught:
            resolve(form.format(name), part)

        assert (caught.value.reason, caught.value.id) == ("unknown", None)


@pytest.mark.parametrize("name", IDS)
def test_an_id_that_was_redirected_to_a_hidden_tool_is_unknown(name: str) -> None:
    ledger = Ledger.memory()
    tables("data2", ledger)
    ledger.redirect("mcp@1/list@1", ToolId.parse("mcp/other"))
    whole, part = tables(name, ledger, lists=False)

    for form in FORMS:
        assert "mcp_other" in meant(form.format(name), whole)
        with pytest.raises(UnknownTool) as caught:
            resolve(form.format(name), part)
        assert caught.value.reason == "unknown"


def test_a_retired_name_of_a_hidden_tool_runs_no_tool_that_is_called_so() -> None:
    ledger = Ledger.memory()
    tables("data2", ledger)
    ledger.retire("mcp_list")
    whole, part = tables("mcp_list", ledger)

    for form in FORMS:
        with pytest.raises(RetiredName):
            resolve(form.format("mcp_list"), whole)
        with pytest.raises(UnknownTool):
            resolve(form.format("mcp_list"), part)


@pytest.mark.parametrize("name", ["mcp~list", "mcp%2Flist", "MCP/list"])
def test_an_own_name_goes_before_the_id_without_versions_that_it_is_when_decoded_or_folded(name: str) -> None:
    for table in tables(name, Ledger.memory()):
        ran = resolve(name, table).id

        assert ran is not None
        assert table.catalog[ran].origin.name == name


@pytest.mark.parametrize("has_ledger", [False, True])
@pytest.mark.parametrize(
    "spelling",
    ["create_lead", "salesforce:create_lead", "salesforce_create_lead", "CREATE-LEAD", "Salesforce.create-lead"],
)
def test_a_spelling_of_a_hidden_first_version_never_runs_a_further_version(spelling: str, has_ledger: bool) -> None:
    ledger = Ledger.memory() if has_ledger else None
    first, second = ToolId.parse("salesforce@1/create_lead@1"), ToolId.parse("salesforce@2/create_lead@1")
    whole = project(Catalog.of(str(first), str(second)), "openai", ledger=ledger)
    part = whole.among([second], None if ledger is None else SeenLedger(ledger, lambda id: id != first))

    for form in FORMS:
        with pytest.raises(UnknownTool) as caught:
            resolve(form.format(spelling), part)

        assert caught.value.reason == "unknown"
    assert resolve(f"{spelling}_2", part).id == second


@pytest.mark.parametrize("text", ["crm.t", "CRM.T"])
def test_a_spelling_of_a_hidden_first_version_runs_no_tool_of_another_server_by_its_fold(text: str) -> None:
    first, second = ToolId.parse("salesforce@1/crm.t@1"), ToolId.parse("salesforce@1/crm.t@2")
    other = ToolId.parse("crm@1/lead.t@1")
    whole = project(Catalog.of(str(first), str(second), str(other)), "universal", style="prefixed")
    part = whole.among([second, other], None)

    if text == "crm.t":
        with pytest.raises(UnknownTool):
            resolve(text, part)
    else:
        # For other forms it is as if there were no first version.
        assert resolve(text, part).id == other
    assert resolve(text, whole.among([other], None)).id == other
