"""Rules of collisions: equal names, names that are the same but for spelling, and names that a client makes one."""

from __future__ import annotations

from tests.policy.ruling import SEED, found, linted, texts_of, tool
from truename.conventions import Convention, Location, lint

MCP = Convention()


def test_a_duplicate_is_an_error_that_names_both_owners() -> None:
    (one,) = linted(tool("myapp_ios_scroll", owner="a"), tool("myapp_ios_scroll", owner="b"))

    assert (one.rule.name, one.rule.severity) == ("duplicate_name", "error")
    assert "declared by a and by b" in one.fact


def test_a_duplicate_is_told_at_every_place_but_the_first() -> None:
    places = [Location(file="tools.py", line=line) for line in (9, 3, 6)]
    found = linted(*(tool("tap", location=place) for place in places))

    assert [one.location and one.location.line for one in found] == [6, 9]
    assert "declared by tools.py:3 and by tools.py:6" in found[0].fact


def test_names_are_unique_on_a_server_or_everywhere() -> None:
    pair = tool("search", server="one"), tool("search", server="two")
    rules = {"duplicate_name"}

    assert not rules & {text.split()[1] for text in found(*pair, convention=MCP)}
    assert "E duplicate_name" in found(*pair, convention=SEED)


def test_names_that_differ_in_capitals_or_separators_are_the_same() -> None:
    assert found("scrollUp", "scrollup") == ["E folded_collision"]
    assert found("get-leads", "get_leads", "getLeads", convention=MCP) == ["E folded_collision"]
    assert found("GET.leads", "get__leads", "get_leads", convention=MCP) == ["E folded_collision"] * 2


def test_each_spelling_is_told_once_however_often_it_stands() -> None:
    assert found("scrollUp", "scrollup", "scrollup") == ["E duplicate_name", "E folded_collision"]


def test_what_a_client_cuts_or_respells_can_become_one() -> None:
    mastra = Convention(clients=("mastra",))
    names = [f"get_the_billing_address_history_of_all_customers_in_{word}" for word in ("europe", "european_union")]

    assert found("search.files", "search_files", convention=mastra) == ["E illegal_for_client", "E folded_collision"]
    assert found(*names, convention=mastra)[-1] != "E merged_by_client"
    longer = [f"{name}_as_it_was_{year}" for name in names[:1] for year in ("then", "before")]
    assert "E merged_by_client" in found(*longer, convention=mastra)
    assert "become one name in mastra" in texts_of(*longer, convention=mastra)[-1]
    assert found(*longer, f"{longer[0]}_again", convention=mastra).count("E merged_by_client") == 1


def test_a_clash_with_a_tool_beside_is_told_of_the_own_one_only() -> None:
    own, peer = tool("tap", server="own"), tool("tap", server="peer")
    result = lint([own], SEED, peers=[peer])

    assert [(one.server, one.rule.name) for one in result.findings if one.rule.code == "TN110"] == [
        ("own", "duplicate_name")
    ]
    assert [one for one in lint([], SEED, peers=[own, peer]).findings if one.rule.code < "TN150"] == []
