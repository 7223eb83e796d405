"""What has changed between two lists of tools: what is proved, what is guessed, and what breaks somebody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.migration.listed import LIST, READ, SEND, bare, pairs, told, tool
from truename import Catalog
from truename.migration import Certainty, ChangeEffect, ChangeKind, diff, pins_of

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from truename.conventions.declarations import Declaration

# The renames that seeds 002 and 003 and real releases of servers had; only names are known.
NAMED = [
    ("powershell.exec", "powershell_exec"),
    ("net.dns_flush", "net_dns_flush"),
    ("agent.update", "agent_update"),
    ("adbShell", "android_adbShell"),
    ("androidSystemUiDemoMode", "android_systemUiDemoMode"),
    ("clearAppData", "mobile_clearAppData"),
    ("get-library-docs", "query-docs"),
    ("createIndex", "create-index"),
    ("getTinyImage", "get-tiny-image"),
    ("printEnv", "get-env"),
    ("playwright_screenshot", "browser_take_screenshot"),
    ("delete_object", "remove_object"),
]
UNRELATED = [("read_file", "send_message"), ("create_issue", "create_release"), ("___", "a"), ("", "x")]
SERVERS = st.sampled_from(["", "a", "b"])
TEXTS = st.sampled_from(["", "Get it.", LIST, READ, SEND])
NAMES = st.sampled_from(["fs_list", "fs-list", "list_files", "read", "send", "s"])
TOOLS = st.builds(
    lambda name, text, parameters, server: tool(name, text, *parameters, server=server),
    NAMES,
    TEXTS,
    st.lists(st.sampled_from(["path", "depth?", "text"]), unique=True, max_size=2),
    SERVERS,
)
LISTS = st.lists(TOOLS, max_size=7)


def test_equal_lists_have_no_changes_whatever_their_order() -> None:
    tools = [tool("a", LIST), tool("b", READ), *bare("c", "d")]

    assert len(diff(tools, tools[::-1])) == 0
    assert diff([], []).changes == ()


def test_a_definition_that_has_another_name_is_renamed_for_certain() -> None:
    changes = diff([tool("fs.list", LIST, "path"), tool("r", READ)], [tool("list_all", LIST, "path"), tool("r", READ)])

    assert told(changes) == [("renamed", "fs.list", "list_all")]
    assert changes.breaking == changes.changes
    assert str(changes.changes[0]).startswith("'fs.list' is now called 'list_all'; its definition is the same. Restore")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([tool("a")], [tool("b")]),
        ([tool("a", "Get status.")], [tool("b", "Get status.")]),
        ([tool("a", "", "lat", "lon")], [tool("b", "", "lat", "lon")]),
        ([tool("a", LIST), tool("c", LIST)], [tool("b", LIST), tool("c", LIST)]),
        ([tool("a", LIST)], [tool("b", LIST), tool("c", LIST)]),
        ([tool("a", LIST), tool("c", LIST)], [tool("b", LIST)]),
    ],
    ids=["says nothing", "says too little", "parameters alone", "has a twin", "has become two", "two have become one"],
)
def test_what_says_too_little_or_is_not_unique_proves_nothing(old: list[Declaration], new: list[Declaration]) -> None:
    assert diff(old, new).renames(Certainty.CERTAIN) == ()


@pytest.mark.parametrize(("old", "new"), NAMED)
def test_renames_of_which_only_names_are_known_are_guessed_and_never_certain(old: str, new: str) -> None:
    changes = diff(bare(old, "kept"), bare(new, "kept"))

    assert told(changes) == [("renamed?", old, new)]
    assert changes.changes[0].reasons
    assert changes.breaking


@pytest.mark.parametrize(("old", "new"), UNRELATED)
def test_what_has_nothing_in_common_is_removed_and_added(old: str, new: str) -> None:
    assert told(diff(bare(old), bare(new))) == [("removed", old, ""), ("added", "", new)]


def test_swapped_names_are_told_as_what_they_are() -> None:
    changes = diff([tool("a", LIST, "x"), tool("b", READ, "y")], [tool("b", LIST, "x"), tool("a", READ, "y")])

    assert told(changes) == [("swapped", "a", "b"), ("swapped", "b", "a")]
    assert len(changes.breaking) == 2
    assert "'b' now means the tool that 'a' meant, and vice versa." in str(changes.changes[0])


def test_swapped_names_of_tools_that_say_little_are_told_as_a_guess() -> None:
    changes = diff([tool("a", "", "x"), tool("b", "", "y")], [tool("a", "", "y"), tool("b", "", "x")])

    assert {("swapped?", "a", "b"), ("swapped?", "b", "a")} <= set(told(changes))


def test_swapped_names_are_suspected_even_if_the_tools_were_edited() -> None:
    old = [tool("a", LIST, "path", "depth"), tool("b", SEND, "text", "channel")]
    new = [tool("a", f"{SEND} Fast.", "text", "channel"), tool("b", f"{LIST} Deep.", "path", "depth")]

    assert {("reused?", "a", "b"), ("reused?", "b", "a")} <= set(told(diff(old, new)))


def test_a_name_that_was_passed_on_is_told_and_so_is_what_it_meant() -> None:
    changes = diff([tool("a", LIST), tool("b", READ)], [tool("b", LIST)])

    assert told(changes) == [("reused", "a", "b"), ("removed", "b", "")]
    assert changes.changes[1].fact == "The tool 'b' is gone; another tool has the name."


def test_a_name_that_got_another_tool_when_its_own_was_renamed_is_told() -> None:
    changes = diff([tool("a", LIST)], [tool("b", LIST), tool("a", SEND)])

    assert told(changes) == [("reused", "a", "a"), ("renamed", "a", "b")]
    assert changes.changes[0].fact == "'a' now means another tool; its former tool is called 'b'."
    assert pairs(changes) == {("a", "b"), ("a", "a")}


def test_names_that_went_round_are_all_told() -> None:
    old = [tool("a", LIST), tool("b", READ), tool("c", SEND)]
    new = [tool("b", LIST), tool("c", READ), tool("a", SEND)]

    assert told(diff(old, new)) == [("reused", "a", "b"), ("reused", "b", "c"), ("reused", "c", "a")]


def test_a_tool_that_moved_to_another_server_is_told_with_both() -> None:
    old = [tool("a", LIST, server="one"), tool("k", READ, server="two")]
    new = [tool("a", LIST, server="two"), tool("k", READ, server="two")]
    edited = [tool("a", f"{LIST} Twice.", server="two"), tool("k", READ, server="two")]

    assert diff(old, new).changes[0].fact == "'a' moved from server 'one' to 'two', or was copied."
    assert told(diff(old, edited)) == [("moved?", "a", "a")]
    assert told(diff(old, [tool("z", LIST, server="two"), old[1]]))[0] == ("renamed?", "a", "z")


def test_one_server_is_the_same_one_whatever_its_label() -> None:
    assert len(diff([tool("a", LIST, server="before")], [tool("a", LIST, server="after")])) == 0
    assert told(diff([tool("Get-Lead", server="x")], [tool("get_lead", server="y")])) == [
        ("renamed?", "Get-Lead", "get_lead")
    ]


def test_a_guess_that_has_a_better_owner_is_not_made_twice() -> None:
    changes = diff(bare("create_object", "delete_object"), bare("create_objects"))

    assert told(changes) == [("removed", "delete_object", ""), ("renamed?", "create_object", "create_objects")]


def test_a_guess_says_what_else_is_different() -> None:
    old, new = tool("fs_list", LIST, "path"), tool("list_dir", f"{LIST} Deep.", "path", "depth")
    (change,) = diff([old], [new])

    assert (change.kind, change.certainty) == (ChangeKind.RENAMED, Certainty.SUGGESTED)
    assert 0.4 <= change.score < 1
    assert any("descriptions are similar" in reason for reason in change.reasons)
    assert any("'depth' is a new required parameter" in str(detail) for detail in change.details)


def test_descriptions_in_scripts_without_spaces_are_compared_too() -> None:
    text = "获取当前活动视图的详细信息，包括视图类型、名称、比例等属性。"
    changes = diff([tool("aa", text)], [tool("bb", text[:-4] + "。")])

    assert told(changes) == [("renamed?", "aa", "bb")]
    assert told(diff([tool("aa", text)], [tool("bb", text)])) == [("renamed", "aa", "bb")]


# What differs of one tool `a`, the kinds of change that this is, and whether it breaks somebody.
EDITS: list[tuple[str, Declaration, Declaration, list[str], bool]] = [
    ("a new required parameter", tool("a", LIST), tool("a", LIST, "x"), ["narrowed"], True),
    ("a new optional parameter", tool("a", LIST), tool("a", LIST, "x?"), ["widened"], False),
    ("both at once", tool("a", LIST, "y"), tool("a", LIST, "x", "y?"), ["changed"], True),
    ("a description", tool("a", LIST), tool("a", READ), ["drifted"], False),
    ("a title", tool("a", LIST), tool("a", LIST, title="A"), ["drifted"], False),
    (
        "an annotation of one's own",
        tool("a", annotations={"x": 1}),
        tool("a", annotations={"x": True}),
        ["drifted"],
        False,
    ),
    ("annotations that are none", tool("a", annotations=[]), tool("a", annotations=7), ["drifted"], False),
    (
        "read-only no more",
        tool("a", annotations={"readOnlyHint": True}),
        tool("a", annotations={"readOnlyHint": False}),
        ["drifted"],
        True,
    ),
    ("read-only from now on", tool("a"), tool("a", annotations={"readOnlyHint": True}), ["drifted"], False),
    (
        "a promise that was taken back",
        tool("a", annotations={"destructiveHint": False}),
        tool("a"),
        ["drifted"],
        True,
    ),
    ("a schema's title", tool("a", LIST), tool("a", LIST, outputSchema=None), ["drifted"], False),
    (
        "a result that promises less",
        tool("a", outputSchema={"properties": {"x": {}}, "required": ["x"]}),
        tool("a", outputSchema={"properties": {"x": {}}}),
        ["widened"],
        True,
    ),
    (
        "input, output and text",
        tool("a", LIST, outputSchema={}),
        tool("a", READ, "x?"),
        ["widened", "widened", "drifted"],
        True,
    ),
]


@pytest.mark.parametrize(("old", "new", "kinds", "breaking"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_what_differs_of_one_tool_is_classified(
    old: Declaration, new: Declaration, kinds: list[str], breaking: bool
) -> None:
    changes = diff([old], [new])

    assert [str(one.kind) for one in changes] == kinds
    assert bool(changes.breaking) is breaking
    assert all(one.details for one in changes)


def test_a_lost_promise_is_told_loudly() -> None:
    old = tool("a", annotations={"readOnlyHint": True})
    (change,) = diff([old], [tool("a", annotations={})])

    assert "it is no longer read-only (annotations.readOnlyHint)." in change.fact
    assert next(one for one in change.details if one.breaking).effect is ChangeEffect.RESTATED


def test_the_breaking_changes_come_first() -> None:
    changes = diff([tool("a", LIST), tool("b", READ), tool("z", SEND)], [tool("a", READ), tool("b", READ, "x")])

    assert [one.breaking for one in changes] == sorted((one.breaking for one in changes), reverse=True)


def test_catalogues_are_compared_as_declarations_are() -> None:
    old, new = (Catalog.from_mcp({"s": [{"name": name, "description": LIST}]}) for name in ("a", "b"))

    assert told(diff(old, new)) == [("renamed", "a", "b")]
    assert [pin.key for pin in pins_of(old)] == [("s", "a")]


def test_of_a_name_that_is_listed_twice_the_first_counts() -> None:
    assert len(diff([tool("a", LIST), tool("a", READ)], [tool("a", LIST)])) == 0


def test_a_source_that_leaves_the_name_out_of_the_definition_is_as_one_that_has_it() -> None:
    whole = tool("a", LIST)
    part = type(whole)(name="a", definition={key: value for key, value in whole.definition.items() if key != "name"})

    assert pins_of([whole])[0].digest == pins_of([part])[0].digest
    assert len(diff([whole], [part])) == 0


@pytest.mark.parametrize(
    "definition",
    [
        {"description": 7, "inputSchema": []},
        {"inputSchema": {"properties": {"": {}, "a" * 5_000: True}, "required": [1, "a"]}},
        {"inputSchema": {"properties": [], "required": {}}, "outputSchema": "x", "title": {}},
        {"description": "word " * 200_000},
        {"description": "\ud800 \x1b[31m \u202e"},
    ],
    ids=["types", "names", "more types", "long", "odd characters"],
)
def test_definitions_that_are_none_are_compared_all_the_same(definition: dict[str, Any]) -> None:
    odd = type(tool("a"))(name="a", definition=definition)
    other = type(tool("a"))(name="b", definition={**definition, "title": "B"})

    assert len(diff([odd], [odd])) == 0
    for old, new in (([odd], [tool("a", LIST)]), ([tool("a", LIST)], [odd]), ([odd], [other])):
        assert all(str(one).isprintable() for one in diff(old, new))


@given(LISTS, LISTS, st.randoms(use_true_random=False))
def test_the_order_of_tools_says_nothing(
    old: Sequence[Declaration], new: Sequence[Declaration], chance: random.Random
) -> None:
    unique = [list({(one.server, one.name): one for one in several}.values()) for several in (old, new)]
    shuffled = [chance.sample(several, len(several)) for several in unique]

    assert diff(*unique) == diff(*shuffled)


@given(LISTS, LISTS)
def test_every_tool_is_accounted_for_once(old: Sequence[Declaration], new: Sequence[Declaration]) -> None:
    changes = diff(old, new)
    found = [
        one
        for one in changes
        if one.kind in (ChangeKind.RENAMED, ChangeKind.MOVED, ChangeKind.SWAPPED, ChangeKind.REUSED)
    ]
    proved = [one for one in found if one.certainty is Certainty.CERTAIN and one.old and one.new]
    guessed = [
        one
        for one in found
        if one.certainty is Certainty.SUGGESTED and one.kind in (ChangeKind.RENAMED, ChangeKind.MOVED)
    ]
    certain = [one for one in proved if one.old and one.new and one.old.key != one.new.key]

    for several in (certain, guessed):
        assert len({one.old.key for one in several if one.old}) == len(several)
        assert len({one.new.key for one in several if one.new}) == len(several)
    for one in certain:
        assert one.old is not None
        assert one.new is not None
        assert one.old.shape == one.new.shape != ""


@given(LISTS, LISTS)
def test_what_is_certain_of_a_rename_is_certain_of_its_way_back(
    old: Sequence[Declaration], new: Sequence[Declaration]
) -> None:
    there, back = (
        {
            (one.old.key, one.new.key)
            for one in diff(*sides)
            if one.old and one.new and one.certainty is Certainty.CERTAIN and one.old.name != one.new.name
        }
        for sides in ((old, new), (new, old))
    )

    assert there == {(one, other) for other, one in back}


@given(st.lists(st.text(max_size=12), unique=True, max_size=6), st.lists(st.text(max_size=12), unique=True, max_size=6))
def test_names_alone_prove_nothing(old: list[str], new: list[str]) -> None:
    changes = diff(bare(*old), bare(*new))

    assert changes.renames(Certainty.CERTAIN) == ()
    assert len(changes) + len(changes.renames()) == len(set(old) ^ set(new))
