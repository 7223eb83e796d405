"""A clean break (seed 002): the old name is no alias, in no spelling; its successor is told, never run for it."""

from __future__ import annotations

import pytest

from truename import Catalog, Ledger, NameTable, ToolId, project, resolve
from truename.errors import AmbiguousName, ResolutionError, RetiredName, UnknownTool

OLD, NEW = ToolId.parse("kenny/powershell.exec"), ToolId.parse("kenny/powershell_exec")


def catalog(*names: str) -> Catalog:
    return Catalog.from_mcp({"kenny": [*names, "fs_list"]})


def renamed(dialect: str = "native", style: str = "declared") -> NameTable:
    """Return the names after the server's tool was renamed with a clean break."""
    ledger = Ledger.memory()
    project(catalog("powershell.exec"), dialect, style=style, ledger=ledger)
    ledger.break_name("powershell.exec", "powershell_exec", id=NEW, protocol="0.3")
    ledger.break_name(str(OLD), "powershell_exec", id=NEW, protocol="0.3")
    return project(catalog("powershell_exec"), dialect, style=style, ledger=ledger)


def moved(text: str, names: NameTable) -> UnknownTool:
    with pytest.raises(UnknownTool) as caught:
        resolve(text, names)
    assert caught.value.reason == "moved"
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "powershell.exec",
        "powershell%2Eexec",
        "PowerShell.Exec",
        "powershell:exec",
        "mcp__truename__powershell.exec",
        "mcp_truename_powershell.exec",
        "kenny:powershell.exec",
        "kenny_powershell.exec",
        "mcp_kenny_powershell.exec",
    ],
)
def test_no_spelling_of_a_broken_name_leads_to_its_successor(text: str) -> None:
    error = moved(text, renamed())

    assert error.suggestions == ("powershell_exec",)
    assert str(error).startswith(f"Tool {text!r} does not exist since protocol 0.3; nothing was run. ")
    assert str(error).endswith("It is 'powershell_exec' now. Call it exactly.")


@pytest.mark.parametrize(
    "text",
    [
        "powershell_exec",
        "mcp__truename__powershell_exec",
        "kenny/powershell_exec",
        "kenny_powershell_exec",
        "mcp_kenny_powershell_exec",
    ],
)
def test_the_successor_is_called_as_any_tool(text: str) -> None:
    assert resolve(text, renamed()).id == NEW


def test_the_successor_is_told_as_each_client_knows_it() -> None:
    ledger = Ledger.memory()
    project(catalog("powershell.exec"), "native", style="declared", ledger=ledger)
    ledger.break_name("powershell.exec", "Kenny@v1/powershell_exec")
    names = project(catalog("powershell_exec"), "universal", style="declared", ledger=ledger)

    assert moved("powershell.exec", names).suggestions == ("powershell_exec",)
    away = project(catalog(), "universal", style="declared", ledger=ledger)
    assert moved("powershell.exec", away).suggestions == ("kenny@1/powershell_exec@1",)


def test_a_break_without_a_known_successor_tells_what_is_known() -> None:
    ledger = Ledger.memory()
    names = project(catalog(), "openai", ledger=ledger)
    ledger.break_name("gone")
    ledger.break_name("went", "somewhere_else")

    assert moved("gone", names).suggestions == ()
    assert str(moved("Gone", names)).endswith("nothing was run. List the tools and call one of them exactly.")
    assert moved("WENT", names).suggestions == ("somewhere_else",)
    error = moved("gone", names)
    assert (error.text, error.id, error.detail) == ("gone", None, "")
    assert error.trail == ("table: no such name", "ledger: removed by a clean break")


def test_a_break_says_which_tool_it_was_and_since_when() -> None:
    error = moved("powershell.exec", renamed())

    assert (error.text, error.id, error.detail) == ("powershell.exec", NEW, " since protocol 0.3")
    assert error.trail == ("table: no such name", "ledger: removed by a clean break")


def test_a_break_counts_for_a_table_that_was_made_before_it() -> None:
    ledger = Ledger.memory()
    names = project(catalog("powershell_exec"), "native", style="declared", ledger=ledger)
    assert resolve("powershell:exec", names).id == NEW

    ledger.break_name("powershell.exec", "powershell_exec")

    assert moved("powershell:exec", names).suggestions == ("powershell_exec",)
    assert resolve("powershell_exec", names).id == NEW


def test_a_broken_id_leads_nowhere_and_neither_do_the_names_that_its_tool_held() -> None:
    ledger = Ledger.memory()
    project(catalog("powershell.exec"), "openai", ledger=ledger)
    ledger.break_name(str(OLD), "kenny_ps", id=ToolId.parse("kenny/ps"), protocol="0.3")
    names = project(catalog("ps"), "openai", ledger=ledger)

    for text in ("kenny/powershell.exec", "Kenny@1~PowerShell.exec", "kenny_powershell_exec"):
        assert moved(text, names).suggestions == ("kenny_ps",)
    assert resolve("kenny_ps", names).id == ToolId.parse("kenny/ps")


def test_a_redirect_to_a_broken_name_is_broken_too() -> None:
    ledger = Ledger.memory()
    names = project(catalog("powershell_exec"), "openai", ledger=ledger)
    ledger.redirect("older", OLD)
    ledger.break_name(str(OLD), NEW)

    assert moved("older", names).suggestions == ("kenny_powershell_exec",)


def test_the_names_of_a_tool_that_was_redirected_lead_to_the_new_one_once_the_old_one_is_gone() -> None:
    ledger = Ledger.memory()
    before = project(catalog("powershell.exec"), "openai", ledger=ledger)
    ledger.redirect(str(OLD), NEW)
    assert resolve("kenny_powershell_exec", before).id == OLD

    names = project(catalog("powershell_exec"), "openai", ledger=ledger)

    assert names[NEW] == "kenny_powershell_exec"
    assert resolve("kenny_powershell_exec", names).step == "table"
    back = project(catalog("powershell.exec"), "openai", ledger=ledger)
    assert back[OLD] != "kenny_powershell_exec"
    with pytest.raises(ResolutionError):
        resolve("kenny_powershell_exec", back)


def test_a_tool_that_already_has_a_name_keeps_it_and_answers_to_the_old_one() -> None:
    ledger = Ledger.memory()
    project(catalog("powershell.exec"), "openai", ledger=ledger)
    own = project(catalog("powershell_exec"), "openai", ledger=ledger)[NEW]
    ledger.redirect(str(OLD), NEW)
    names = project(catalog("powershell_exec"), "openai", ledger=ledger)

    assert names[NEW] == own != "kenny_powershell_exec"
    found = resolve("kenny_powershell_exec", names)
    assert (found.id, found.step) == (NEW, "ledger")
    assert found.trail[-2:] == (
        "ledger: held by kenny@1/powershell.exec@1, which is withdrawn too",
        "ledger: redirected",
    )


def test_a_present_name_that_was_redirected_to_its_own_tool_is_in_the_table_still() -> None:
    ledger = Ledger.memory()
    names = project(catalog("powershell_exec"), "openai", ledger=ledger)
    ledger.redirect("kenny_powershell_exec", NEW)

    assert resolve("kenny_powershell_exec", names).step == "table"
    assert resolve("Kenny-PowerShell-Exec", names).id == NEW


def test_a_spelling_of_a_tool_that_is_gone_follows_the_redirect_of_its_id() -> None:
    ledger = Ledger.memory()
    project(catalog("search", "gone"), "native", style="declared", ledger=ledger)
    ledger.redirect("kenny/search", NEW)
    ledger.retire("kenny/gone")
    names = project(catalog("powershell_exec"), "native", style="declared", ledger=ledger)

    assert resolve("kenny_search", names).id == NEW
    assert resolve("mcp_kenny_search", names).step == "spelling"
    with pytest.raises(RetiredName):
        resolve("kenny_gone", names)


def test_a_spelling_of_a_tool_whose_id_is_broken_is_refused_with_the_new_name() -> None:
    ledger = Ledger.memory()
    project(catalog("search", "lost"), "native", style="declared", ledger=ledger)
    ledger.break_name("kenny/search", NEW, protocol="2")
    ledger.break_name("kenny/lost")
    names = project(catalog("powershell_exec"), "native", style="declared", ledger=ledger)

    assert moved("kenny_search", names).suggestions == ("powershell_exec",)
    assert moved("mcp_kenny_lost", names).suggestions == ()


def test_a_spelling_of_a_tool_that_is_away_and_of_another_is_still_nobodys() -> None:
    ledger = Ledger.memory()
    project(catalog("powershell.exec"), "openai", ledger=ledger)
    names = project(catalog("powershell_exec"), "openai", ledger=ledger)

    with pytest.raises(AmbiguousName):
        resolve("mcp_kenny_powershell_exec", names)


def test_a_retired_name_is_retired_as_ever() -> None:
    ledger = Ledger.memory()
    names = project(catalog("powershell_exec"), "openai", ledger=ledger)
    ledger.retire("kenny_fs_list", successor="x")

    with pytest.raises(RetiredName):
        resolve("Kenny-FS-List", names)


@pytest.mark.parametrize("text", ["fs.list", "files_fs.list", "files/fs.list", "mcp__truename__fs.list"])
def test_a_server_that_renamed_its_tool_shows_it_under_the_name_that_clients_know(text: str) -> None:
    ledger = Ledger.memory()
    old, new = ToolId.parse("files/fs.list"), ToolId.parse("files/fs_list")
    before = project(Catalog.from_mcp({"files": ["fs.list"]}), "universal", style="on-conflict", ledger=ledger)
    for name in ("fs.list", str(old)):
        ledger.break_name(name, "fs_list", id=new, protocol="0.3")
    after = project(Catalog.from_mcp({"files": ["fs_list"]}), "universal", style="on-conflict", ledger=ledger)

    assert (before[old], after[new]) == ("fs_list", "fs_list")
    assert resolve("fs_list", after) == (new, "table", ("table: found",))
    assert resolve("files_fs_list", after).id == new
    assert moved(text, after).suggestions == ("fs_list",)


def test_a_break_on_record_with_the_old_tool_stops_the_spellings_of_the_one_that_it_is_now() -> None:
    ledger = Ledger.memory()
    project(Catalog.from_mcp({"files": ["fs.list"]}), "universal", style="on-conflict", ledger=ledger)
    ledger.redirect("files/fs.list", "files/fs_list")
    ledger.break_name("fs.list", "fs_list")
    after = project(Catalog.from_mcp({"files": ["fs_list"]}), "universal", style="on-conflict", ledger=ledger)

    assert ledger.withdrawn["fs.list"].id == ToolId.parse("files/fs.list")
    for text in ("fs.list", "files_fs.list", "files:fs.list"):
        assert moved(text, after).suggestions == ("fs_list",)
    assert resolve("files_fs_list", after).id == ToolId.parse("files/fs_list")


@pytest.mark.parametrize("text", ["kenny_ping", "mcp_truename_kenny_ping", "mcp__truename__kenny_ping", "Kenny-Ping"])
def test_a_broken_name_ends_in_a_client_s_frame_too_where_its_tool_has_but_another_name_now(text: str) -> None:
    ledger = Ledger.memory()
    catalog = Catalog.from_mcp({"kenny": ["ping"]})
    project(catalog, "openai", style="prefixed", ledger=ledger)
    ledger.break_name("kenny_ping", "alive", id=ToolId.parse("kenny/ping"))

    names = project(catalog, "openai", style="prefixed", ledger=ledger)

    with pytest.raises(UnknownTool, match="It is 'kenny_ping_") as caught:
        resolve(text, names)
    assert caught.value.reason == "moved"


@pytest.mark.parametrize("text", ["alive", "Alive", "kenny:alive", "Kenny-Alive", "mcp__truename__Alive"])
def test_another_new_name_is_called_in_every_spelling(text: str) -> None:
    ledger = Ledger.memory()
    new = ToolId.parse("kenny/alive")
    project(Catalog.from_mcp({"kenny": ["ping"]}), "universal", style="on-conflict", ledger=ledger)
    for old in ("ping", "kenny/ping"):
        ledger.break_name(old, "alive", id=new, protocol="0.3")

    names = project(Catalog.from_mcp({"kenny": ["alive"]}), "universal", style="on-conflict", ledger=ledger)

    assert resolve(text, names).id == new
    assert moved("Kenny.Ping", names).suggestions == ("alive",)
