"""What a rename enters in the ledger, and what old names then mean."""

from __future__ import annotations

from datetime import date

import pytest

from truename import Catalog, Ledger, NameTable, project, resolve
from truename.errors import UnknownTool
from truename.migration import plan_entries, record_entries
from truename.naming import listing

BEFORE = {"kenny": ["fs.list", "powershell.exec", "ping"]}
AFTER = {"kenny": ["fs_list", "powershell.exec", "agent_ping"]}
RENAMES = {"fs.list": "fs_list", "ping": "agent_ping"}


def table(ledger: Ledger, servers: dict[str, list[str]], style: str = "on-conflict") -> NameTable:
    pairs = {server: [{"name": name} for name in names] for server, names in servers.items()}
    return project(Catalog.from_mcp(pairs, bound=ledger.bindings()), "universal", ledger=ledger, style=style)


def entered(
    renames: dict[str, str], *, style: str = "on-conflict", until: str = "", clean_break: bool = False
) -> NameTable:
    ledger = Ledger.memory()
    table(ledger, BEFORE, style)
    wanted, unknown = plan_entries(renames, ledger)
    assert unknown == ()
    record_entries(ledger, wanted, until=until, clean_break=clean_break, protocol="0.3" if clean_break else "")
    return table(ledger, AFTER, style)


@pytest.mark.parametrize("style", ["on-conflict", "prefixed"])
def test_after_a_redirect_old_names_lead_to_the_renamed_tool(style: str) -> None:
    names = entered(RENAMES, style=style)

    for old, id in {
        "fs.list": "kenny@1/fs_list@1",
        "fs_list": "kenny@1/fs_list@1",
        "ping": "kenny@1/agent_ping@1",
    }.items():
        assert str(resolve(old, names).id) == id


def test_a_new_spelling_of_an_old_name_changes_nothing_for_clients() -> None:
    for clean_break in (False, True):
        names = entered({"fs.list": "fs_list"}, clean_break=clean_break)
        assert names["kenny@1/fs_list@1"] == "fs_list"


def test_after_a_clean_break_the_old_name_is_an_error_that_tells_the_new_one() -> None:
    names = entered(RENAMES, clean_break=True)

    for old, new in {"fs.list": "fs_list", "ping": "agent_ping"}.items():
        with pytest.raises(UnknownTool, match=f"It is '{new}' now") as caught:
            resolve(old, names)
        assert caught.value.reason == "moved"
        assert resolve(new, names).id is not None


@pytest.mark.parametrize("old", ["kenny/fs.list", "kenny_fs.list", "kenny.ping", "kenny@1/fs.list@1", "kenny@1/ping@1"])
def test_after_a_clean_break_no_other_spelling_of_the_old_name_runs_the_tool(old: str) -> None:
    names = entered(RENAMES, clean_break=True)

    with pytest.raises(UnknownTool, match=r"It is '(fs_list|agent_ping)' now"):
        resolve(old, names)


def test_old_names_are_listed_until_a_day() -> None:
    names = entered(RENAMES, until="2027-02-01")

    assert ("ping", "agent_ping") in {(one.name, one.now) for one in listing(names, date(2027, 2, 1))}
    assert "ping" not in {one.name for one in listing(names, date(2027, 2, 2))}


def test_a_name_that_two_servers_have_is_led_on_for_each() -> None:
    ledger = Ledger.memory()
    servers = {"one": ["search"], "two": ["search"]}
    table(ledger, servers, "prefixed")

    wanted, _ = plan_entries({"search": "find"}, ledger)

    assert [(promise.old, str(promise.new)) for promise in wanted] == [
        ("one@1/search@1", "one@1/find@1"),
        ("two@1/search@1", "two@1/find@1"),
    ]


def test_a_name_that_was_only_shown_is_led_to_the_tool_that_has_it() -> None:
    ledger = Ledger.memory()
    table(ledger, BEFORE, "prefixed")

    wanted, unknown = plan_entries(
        {"kenny_ping": "alive", "kenny_fs_list": "kenny_powershell_exec", "nobody": "x"}, ledger
    )

    assert [(promise.old, str(promise.new)) for promise in wanted] == [
        ("kenny_ping", "kenny@1/ping@1"),
        ("kenny_fs_list", "kenny@1/powershell.exec@1"),
    ]
    assert unknown == ("nobody",)


def test_a_name_under_which_another_tool_is_known_stays_that_ones() -> None:
    ledger = Ledger.memory()
    names = table(ledger, {"a": ["b_c"], "b": ["c"]}, "prefixed")
    assert names["b@1/c@1"] == "b_c"

    wanted, _ = plan_entries({"b_c": "x"}, ledger)

    assert [(promise.old, str(promise.new)) for promise in wanted] == [("a@1/b_c@1", "a@1/x@1")]


def test_entering_twice_adds_nothing() -> None:
    for until, clean_break in (("2027-02-01", False), ("", False), ("", True)):
        ledger = Ledger.memory()
        table(ledger, BEFORE)
        wanted, _ = plan_entries(RENAMES, ledger)
        record_entries(ledger, wanted, until=until, clean_break=clean_break)
        before = [ledger.history(name) for name in ("ping", "fs.list")]
        record_entries(ledger, wanted, until=until, clean_break=clean_break)
        assert [ledger.history(name) for name in ("ping", "fs.list")] == before


def test_every_scope_of_the_ledger_is_told() -> None:
    ledger = Ledger.memory()
    for view in (ledger, ledger.scoped("only/kenny")):
        table(view, BEFORE)
    wanted, _ = plan_entries(RENAMES, ledger)

    record_entries(ledger, wanted, clean_break=True)

    for view in (ledger, ledger.scoped("only/kenny")):
        standing = view.standing("ping")
        assert standing is not None
        assert standing.status == "broken"


@pytest.mark.parametrize("clean_break", [False, True])
def test_a_name_that_is_renamed_otherwise_later_leads_to_the_later_name(clean_break: bool) -> None:
    ledger = Ledger.memory()
    table(ledger, BEFORE)
    for new in ("agent_ping", "alive"):
        wanted, _ = plan_entries({"ping": new}, ledger)
        record_entries(ledger, wanted, clean_break=clean_break)

    standing = ledger.standing("ping")
    assert standing is not None
    assert str(standing.id) == "kenny@1/alive@1"
