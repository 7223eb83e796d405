"""The plan: what speaks against a rename, what somebody has to look at, and what clients show."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from truename import Catalog, Ledger, project
from truename.conventions.convention import Convention
from truename.errors import MigrationError, UnknownDialect
from truename.identity import fold
from truename.migration import client_spellings, is_control_plane, plan, propose_by_convention, propose_underscored


def kinds(renames: dict[str, str], **more: object) -> list[tuple[str, tuple[str, ...]]]:
    made = plan(renames, **more)  # type: ignore[arg-type]
    return [(refusal.kind, refusal.names) for refusal in made.refusals]


@pytest.mark.parametrize(
    ("renames", "refusals"),
    [
        ({"fs.list": "fs_list"}, []),
        ({"fs.list": "fs_list", "fs.read": "fs_read"}, []),
        (
            {"net.dns_flush": "net_dns_flush", "net_dns.flush": "net_dns_flush"},
            [("merged", ("net.dns_flush", "net_dns.flush"))],
        ),
        ({"a.b": "get_it", "c.d": "get-it"}, [("merged", ("a.b", "c.d"))]),
        ({"a": "b", "b": "a"}, [("swap", ("a", "b"))]),
        ({"a": "b", "b": "c"}, [("chain", ("a", "b"))]),
        ({"x.y": "a-b", "a.b": "c"}, [("chain", ("x.y", "a.b"))]),
        ({"a": "b", "b": "c", "c": "a"}, [("chain", ("a", "b")), ("chain", ("b", "c")), ("chain", ("c", "a"))]),
        ({"a": "a"}, [("unchanged", ("a", "a"))]),
        ({"a": ""}, [("illegal", ("a", ""))]),
        ({"a b": "c"}, []),
        ({"a`b": "c"}, [("illegal", ("a`b", "c"))]),
        ({"a": 'b"'}, [("illegal", ("a", 'b"'))]),
        ({}, []),
    ],
)
def test_renames_that_break_a_promise_are_refused(
    renames: dict[str, str], refusals: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert kinds(renames) == refusals


@pytest.mark.parametrize(
    ("known", "told"),
    [
        (["fs.list", "fs_list"], "'fs_list' is already in use"),
        (["fs.list", "FS-List"], "'fs_list' is the same as 'FS-List' for some clients, which is in use"),
    ],
)
def test_a_name_that_is_there_is_not_given_to_another(known: list[str], told: str) -> None:
    (refusal,) = plan({"fs.list": "fs_list"}, known=known).refusals

    assert refusal.kind == "exists"
    assert str(refusal).startswith(told)


def test_the_clients_that_count_have_to_accept_a_name() -> None:
    made = plan({"fs_list": "fs.list"}, clients=["anthropic", "native"])

    (refusal,) = made.refusals
    assert "not legal for anthropic: '.' at 2" in str(refusal)
    assert not made.ok
    with pytest.raises(UnknownDialect):
        plan({"a": "b"}, clients=["nobody"])


def test_a_name_that_the_ledger_withdrew_does_not_come_back() -> None:
    ledger = Ledger.memory()
    catalog = Catalog.from_mcp({"files": [{"name": name} for name in ("read", "fetch", "list")]})
    project(catalog, "universal", ledger=ledger, style="on-conflict")
    ledger.retire("read")
    ledger.redirect("get_all", "fetch")

    for new in ("read", "Read", "get-all"):
        (refusal,) = plan({"list": new}, ledger=ledger).refusals
        assert refusal.kind == "withdrawn"
    assert plan({"fetch": "get_it"}, ledger=ledger).ok


def test_a_name_that_is_another_tools_in_the_ledger_needs_a_look_at_the_tools_there_are() -> None:
    ledger = Ledger.memory()
    catalog = Catalog.from_mcp({"files": [{"name": name} for name in ("fetch", "list")]})
    project(catalog, "universal", ledger=ledger, style="on-conflict")

    (refusal,) = plan({"fetch": "list"}, ledger=ledger).refusals

    assert refusal.kind == "held"
    assert plan({"fetch": "list"}, ledger=ledger, known=["list"]).ok
    assert not plan({"fetch": "list"}, ledger=ledger, known=["list", "fetch"]).ok


def test_a_clean_break_may_be_planned_again() -> None:
    ledger = Ledger.memory()
    ledger.break_name("fs.list", "fs_list")

    assert plan({"fs.list": "fs_list"}, ledger=ledger).ok


def test_tools_that_perform_the_upgrade_are_flagged() -> None:
    made = plan({"agent.update": "agent_update", "x.run": "x_run", "fs.list": "fs_list"}, control_plane=["x.run"])

    assert made.ok
    assert made.control_plane == ("agent.update", "x.run")
    assert [warning.names for warning in made.warnings] == [("agent.update",), ("x.run",)]
    assert "do not know its new name" in str(made.warnings[0])


@pytest.mark.parametrize(
    ("name", "flagged"),
    [
        ("agent.update", True),
        ("self_update", True),
        ("selfupdate", True),
        ("upgradeRuntime", True),
        ("daemon-rollback", True),
        ("update", False),
        ("agent.list", False),
        ("winget.update", False),
        ("update_client", False),
    ],
)
def test_control_plane_tools_are_known_by_two_words(name: str, flagged: bool) -> None:
    assert is_control_plane(name) is flagged


def test_names_that_nobody_has_and_names_that_are_words_are_told() -> None:
    made = plan({"search": "find_pages", "fs.lost": "fs_lost"}, known=["search", "fs.list"])

    assert made.ok
    assert [(warning.kind, warning.names) for warning in made.warnings] == [
        ("unknown", ("fs.lost",)),
        ("word", ("search",)),
    ]


def test_a_plan_with_refusals_can_not_be_carried_out() -> None:
    with pytest.raises(MigrationError, match=r"'c' would not change \(and 1 more\)"):
        plan({"a": "b", "b": "a", "c": "c"}).lexicon()


def test_what_clients_show_changes_with_the_name() -> None:
    made = plan({"fs_ls": "fs_list"}, servers=["kenny"])

    assert made.spellings["mcp__kenny__fs_ls"] == "mcp__kenny__fs_list"
    assert made.lexicon().meanings["mcp__kenny__fs_ls"] == "mcp__kenny__fs_list"
    assert plan({'"': "x"}, servers=["kenny"]).spellings == {}
    assert "kenny_fs_ls" in made.spellings
    assert "kenny_fs_ls" not in plan({"fs_ls": "fs_list"}, servers=["kenny"], known=["fs_ls", "kenny_fs_ls"]).spellings
    assert "fs_list" not in plan({"fs.list": "list_files"}, servers=["kenny"]).spellings


def test_a_spelling_that_several_names_share_is_left_alone() -> None:
    shared = client_spellings({"fs.list": "fs_a", "fs-list": "fs_b"}, ["kenny"])

    assert "mcp__kenny__fs_list" not in shared
    assert client_spellings({"mcp__kenny__x": "y", "x": "z"}, ["kenny"]).get("mcp__kenny__x") is None


def test_the_underscore_style_leaves_what_is_legal_and_what_it_can_not_mend() -> None:
    proposal = propose_underscored(["powershell.exec", "a/b:c d", "get-it", "readPage", ".x.", "é.x", "x" * 65, "..."])

    assert proposal.renames == {"powershell.exec": "powershell_exec", "a/b:c d": "a_b_c_d", ".x.": "x"}
    assert set(proposal.unclear) == {"é.x", "x" * 65, "..."}


def test_a_convention_is_proposed_only_where_it_leaves_no_choice() -> None:
    proposal = propose_by_convention(["clearKeychain_ios", "tap", "Some.Thing.Odd.v9x"], Convention.of("trailblaze"))

    assert proposal.renames["clearKeychain_ios"] == "ios_clearKeychain"
    assert "tap" not in {*proposal.renames, *proposal.unclear}
    assert all(why for why in proposal.unclear.values())


NAMES = st.text(alphabet="ab._-", min_size=1, max_size=4)


@given(st.dictionaries(NAMES, NAMES, max_size=6), st.lists(NAMES, max_size=6))
def test_a_plan_that_is_accepted_merges_nothing_and_passes_no_name_on(
    renames: dict[str, str], known: list[str]
) -> None:
    made = plan(renames, known=known)

    if made.ok:
        stay = [name for name in set(known) if name not in renames] if set(renames) <= set(known) else []
        news = [fold(new) for new in renames.values()]
        assert len(set(news)) == len(news)
        assert not set(news) & {fold(name) for name in stay}
        assert not set(renames.values()) & set(renames)


ANY = st.text(max_size=12)


@example(renames={"00": "0"}, known=[], servers=["#"])
@given(
    renames=st.dictionaries(ANY, ANY, max_size=5),
    known=st.lists(ANY, max_size=4),
    servers=st.lists(ANY, max_size=2),
)
def test_no_name_makes_a_plan_fail(renames: dict[str, str], known: list[str], servers: list[str]) -> None:
    made = plan(renames, known=known, servers=servers)

    if made.ok:
        assert made.lexicon().meanings.items() >= renames.items()
    assert all(str(remark).isprintable() for remark in (*made.refusals, *made.warnings))
